#!/usr/bin/env bash
# dyno under fault, ROUNDS times each fault at random moments; the table goes to docs/reliability.md.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${ROUNDS:-20}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
CHAOS_ROUNDS=$rounds ${CARGO:-cargo} test --release --locked --workspace --exclude dyno-official --test alone -- chaos:: --nocapture | tee "$log"
{
  echo "| component | fault | survived | operations called done, all of them there | took |"
  echo "|---|---|---|---|---|"
  sed -n 's/^.*CHAOS //p' "$log"
} >"$log.table"
python3 - "$log.table" <<'P' || { cat "$log.table"; rm -f "$log.table"; exit 1; }
import re, sys
text = open("docs/reliability.md").read()
table = open(sys.argv[1]).read()
text = re.sub(r"(<!-- chaos -->\n).*?(\n<!-- end -->)", lambda m: m.group(1) + table.rstrip() + m.group(2), text, flags=re.S)
open("docs/reliability.md", "w").write(text)
P
rm -f "$log.table"
