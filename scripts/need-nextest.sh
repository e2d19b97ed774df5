#!/bin/sh
# cargo-nextest, which runs the tests: compiled once into the user's cache (some minutes), unless it is installed.
set -eu
command -v cargo-nextest >/dev/null && exit 0
root="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-nextest"
[ -x "$root/bin/cargo-nextest" ] && exit 0
echo "compiling cargo-nextest"
CARGO_TARGET_DIR="$root/target" ${CARGO:-cargo} install --quiet --locked --root "$root" cargo-nextest
rm -rf "$root/target"
