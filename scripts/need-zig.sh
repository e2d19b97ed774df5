#!/usr/bin/env bash
# Makes a C compiler for musl on either architecture available to static builds, or says what is missing: Zig's, with the cargo
# subcommand that uses it, both installed by pip into a folder of the user's cache.
set -u
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-zig"
[ -x "$home/bin/cargo-zigbuild" ] && exit 0
mkdir -p "$home"
{
  python3 -m venv "$home" &&
    "$home/bin/pip" install -q cargo-zigbuild==0.24.0 ziglang==0.17.1 &&
    "$home/bin/cargo-zigbuild" --version
} >"$home/zig.log" 2>&1 && exit 0
rm -rf "$home/bin"
echo "zig cannot be fetched ($home/zig.log): static programs are linked as this host's own tools can" >&2
exit 1
