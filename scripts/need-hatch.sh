#!/usr/bin/env bash
# Makes hatchling, which packs Python wheels, available, or says what is missing: installed by pip into a folder of the user's cache.
set -u
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-hatch"
[ -x "$home/bin/hatchling" ] && exit 0
mkdir -p "$home"
{
  python3 -m venv "$home" && "$home/bin/pip" install -q hatchling==1.27.0 && "$home/bin/hatchling" version --help
} >"$home/hatch.log" 2>&1 && exit 0
rm -rf "$home/bin"
echo "hatchling cannot be fetched ($home/hatch.log): wheels cannot be made" >&2
exit 1
