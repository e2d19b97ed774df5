#!/usr/bin/env bash
# Makes valkey-server available to the tests where none is on PATH, or says what is missing. Takes the package of the host's
# distribution, from backports where the release has none, and unpacks it into the user's cache: not installed beside Redis. A second
# call does nothing.
set -u
command -v valkey-server >/dev/null && exit 0
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-valkey"
[ -x "$home/bin/valkey-server" ] && exit 0
. "$(dirname "$0")/packages.sh"

say() {
  echo "$1: what needs valkey-server is skipped" >&2
  exit 1
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || say "valkey-server is not installed"
mkdir -p "$home" || exit 1

fetch() (
  set -e
  work=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  unpack_packages "$1" "$work/root" valkey-server valkey-tools
  "$work/root/usr/bin/valkey-server" --version
  rm -rf "$home/root"
  mv "$work/root" "$home/root"
  ln -sfn root/usr/bin "$home/bin"
)

: >"$home/valkey.log"
# Not behind a condition, where `set -e` would mean nothing.
for suite in "" -backports; do
  fetch "$suite" >>"$home/valkey.log" 2>&1
  [ $? = 0 ] && exit 0
done
say "valkey-server cannot be fetched ($home/valkey.log)"
