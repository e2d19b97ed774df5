#!/usr/bin/env bash
# Builds this commit's static dyno twice, in two folders, and compares the bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
arch=${1:-$(uname -m)}
commit=$(git rev-parse HEAD)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for one in first a/second/folder; do
  mkdir -p "$(dirname "$work/$one")"
  git clone -q . "$work/$one" && git -C "$work/$one" checkout -q "$commit"
  (cd "$work/$one" && env -u CARGO_TARGET_DIR scripts/static.sh dyno "$arch" >"$work/log" 2>&1) || { tail -20 "$work/log" && exit 1; }
  (cd "$work/$one/target/release" && sha256sum "dyno-$arch") | tee -a "$work/sums"
  mv "$work/$one/target/release/dyno-$arch" "$work/dyno-$(basename "$one")"
  rm -rf "${work:?}/$one"
done
cmp "$work/dyno-first" "$work/dyno-folder" && echo "equal, byte by byte: $(git rev-parse --short "$commit"), $arch"
