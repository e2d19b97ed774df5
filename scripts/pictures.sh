#!/usr/bin/env bash
# The pictures of README and guides, from a real run: docs/images/live.svg and summary.svg, and where there is a browser report.png and
# the same with numbers, report-explained.png. DYNO_PROGRAM=PROGRAM draws another program than the
# one of target/release, DYNO_XTASK=PROGRAM is a dyno-xtask that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
program=${DYNO_PROGRAM:-${CARGO_TARGET_DIR:-target}/release/dyno}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -n "${DYNO_XTASK:-}" ]; then
  "$DYNO_XTASK" pictures "$program" "$folder"
else
  "$cargo" run --quiet --release --locked -p dyno-xtask -- pictures "$program" "$folder"
fi
cp "$folder/live.svg" "$folder/summary.svg" docs/images/
# Numbers beside the parts that docs/reading-results.md explains; the page's own policy lets in no style but its own.
explained='.bar, dl.figures, caption, figcaption { position: relative; overflow: visible }
.bar .trust:first-child::before, .what::before, nav ul::before, dl.figures::before, caption::before, .tools::before, figcaption::before {
  counter-increment: part; content: counter(part); display: inline-block; width: 22px; height: 22px; margin-right: 8px; border-radius: 11px;
  background: #e3b341; color: #0d1117; font: bold 14px/22px sans-serif; text-align: center }
dl.figures::before { position: absolute; left: -32px; top: 4px }
body { counter-reset: part }'
sed -e '/Content-Security-Policy/d' "$folder/run/report.html" |
  awk -v style="<style>${explained//$'\n'/ }</style>" '{ sub(/<\/head>/, style "</head>"); print }' >"$folder/run/explained.html"
for browser in chromium chromium-browser google-chrome; do
  command -v "$browser" >/dev/null || continue
  for page in report explained; do
    "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1320 \
      --screenshot="$folder/$page.png" "file://$folder/run/$page.html" >/dev/null 2>&1
  done
  cp "$folder/report.png" docs/images/report.png
  cp "$folder/explained.png" docs/images/report-explained.png
  exit 0
done
echo "docs/images/report.png stays as it is: no chromium on PATH (Debian: apt-get install chromium)" >&2
