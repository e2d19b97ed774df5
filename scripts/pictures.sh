#!/usr/bin/env bash
# The pictures of README and guides, from a real run: docs/images/live.svg and summary.svg, and report.png where there is a browser.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
program=${CARGO_TARGET_DIR:-target}/release/dyno
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$cargo" run --quiet --release --locked -p dyno-xtask -- pictures "$program" "$folder"
cp "$folder/live.svg" "$folder/summary.svg" docs/images/
for browser in chromium chromium-browser google-chrome; do
  command -v "$browser" >/dev/null || continue
  "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,1180 \
    --screenshot="$folder/report.png" "file://$folder/run/report.html" >/dev/null 2>&1
  cp "$folder/report.png" docs/images/report.png
  exit 0
done
echo "docs/images/report.png stays as it is: no chromium on PATH (Debian: apt-get install chromium)" >&2
