#!/bin/sh
# cargo-nextest, which runs the tests: compiled once into the user's cache, unless it is installed. Without optimization, which costs
# most of the time to compile and gives tests nothing, and without the part that updates it.
set -eu
command -v cargo-nextest >/dev/null && exit 0
root="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-nextest"
[ -x "$root/bin/cargo-nextest" ] && exit 0
echo "compiling cargo-nextest"
CARGO_TARGET_DIR="$root/target" ${CARGO:-cargo} install --quiet --locked --debug --no-default-features --features default-no-update \
  --root "$root" cargo-nextest
rm -rf "$root/target"
