#!/usr/bin/env bash
# The reports in a real browser. As root on a Debian-like system Chromium is installed; where there is none the test is named
# and counted as skipped.
set -u
cargo=${CARGO:-cargo}

has_browser() {
  command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null
}

if ! has_browser && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null 2>&1
  apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null 2>&1
fi
if ! has_browser; then
  echo "SKIPPED: the reports in a browser: no chromium on PATH (Debian: apt-get install chromium)"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
echo "== $cargo test --workspace --test browser -- --ignored"
exec "$cargo" test --release --locked --workspace --test browser -- --ignored --nocapture
