#!/bin/sh
# cargo-cyclonedx, which lists what a program is built from: compiled once into the user's cache, unless it is installed. Without
# optimization: it takes two CPU minutes to compile and 2 s to list.
set -eu
command -v cargo-cyclonedx >/dev/null && exit 0
root="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-cyclonedx"
[ -x "$root/bin/cargo-cyclonedx" ] && exit 0
echo "compiling cargo-cyclonedx" >&2
CARGO_TARGET_DIR="$root/target" ${CARGO:-cargo} install --quiet --locked --debug --root "$root" cargo-cyclonedx@0.5.9
rm -rf "$root/target"
