#!/usr/bin/env bash
# dyno itself under load for MINUTES: its memory and its descriptors; the table goes to docs/reliability.md.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${MINUTES:-60}
log=$(mktemp)
trap 'rm -f "$log" "$log.table"' EXIT
SOAK_SECONDS=$((minutes * 60)) ${CARGO:-cargo} test --release --locked --workspace --exclude dyno-official --test alone -- soak:: --nocapture | tee "$log"
{
  echo "| process | observed | memory at most, middle third | last third | descriptors at most, middle third | last third |"
  echo "|---|---|---|---|---|---|"
  sed -n 's/^.*SOAK //p' "$log"
} >"$log.table"
python3 - "$log.table" <<'P'
import re, sys
text = open("docs/reliability.md").read()
table = open(sys.argv[1]).read()
text = re.sub(r"(<!-- soak -->\n).*?(\n<!-- end -->)", lambda m: m.group(1) + table.rstrip() + m.group(2), text, flags=re.S)
open("docs/reliability.md", "w").write(text)
P
