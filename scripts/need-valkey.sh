#!/usr/bin/env bash
# Makes valkey-server available to the tests where none is on PATH, or says what is missing: Debian's own package, from backports
# where the release has none, unpacked into the user's cache without being installed beside Redis.
set -u
command -v valkey-server >/dev/null && exit 0
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-valkey"
[ -x "$home/bin/valkey-server" ] && exit 0

say() {
  echo "$1: what needs valkey-server is skipped" >&2
  exit 1
}

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || say "valkey-server is not installed"
mkdir -p "$home" || exit 1

# With a list of sources of its own, so that the host's lists stay as they are.
fetch() (
  set -e
  . /etc/os-release
  work=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  chmod 755 "$work"
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/packages"
  echo "deb http://deb.debian.org/debian $VERSION_CODENAME$1 main" >"$work/sources.list"
  apt() {
    apt-get -q -o Acquire::http::Timeout=20 -o Acquire::Retries=0 -o Dir::State="$work/state" -o Dir::Cache="$work/cache" -o Dir::Etc::SourceList="$work/sources.list" \
      -o Dir::Etc::SourceParts=/dev/null "$@"
  }
  apt update
  cd "$work/packages"
  apt download valkey-server valkey-tools
  for package in *.deb; do
    dpkg-deb -x "$package" "$work/root"
  done
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
