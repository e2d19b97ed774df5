#!/bin/sh
# mdBook, which makes the documentation a site: compiled once into the user's cache, unless it is installed. Without optimization, and
# without the parts that serve and watch.
set -eu
command -v mdbook >/dev/null && exit 0
root="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-mdbook"
[ -x "$root/bin/mdbook" ] && exit 0
echo "compiling mdbook"
CARGO_TARGET_DIR="$root/target" ${CARGO:-cargo} install --quiet --locked --debug --no-default-features --features search \
  --root "$root" mdbook@0.5.4
rm -rf "$root/target"
