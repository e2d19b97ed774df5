#!/usr/bin/env bash
# Makes a real mongod and mongos (3.6.8, the last under AGPL) available to the tests where none is on PATH, or says what is missing.
# Takes the package of Ubuntu 20.04 and the libraries that it depends on, and unpacks them into the user's cache: nothing of it is
# installed. mmdebstrap knows where Ubuntu is; apt checks the signatures with Ubuntu's keys. A second call does nothing.
set -u
# A mongos of another version beside the host's own mongod would be a mixture.
command -v mongod >/dev/null && exit 0
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-mongo"
[ -x "$home/mongod-3.6.8/bin/mongod" ] && exit 0
. "$(dirname "$0")/packages.sh"

say() {
  echo "$1: what needs mongod is skipped" >&2
  exit 1
}

[ "$(uname -m)" = x86_64 ] || say "no package of mongod 3.6.8 is known for $(uname -m)"
if ! command -v mmdebstrap >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends mmdebstrap; } >/dev/null 2>&1
fi
command -v mmdebstrap >/dev/null || say "mmdebstrap is not installed and mongod cannot be fetched (Debian: apt-get install mmdebstrap)"
mkdir -p "$home" || exit 1

keys=usr/share/keyrings/ubuntu-archive-keyring.gpg

# Prints the file with Ubuntu's keys: the host's, or that of a package of the host's distribution, which may be in backports only.
ubuntu_keys() {
  if [ -r "/$keys" ]; then
    echo "/$keys"
    return
  fi
  for suite in "" -backports; do
    unpack_packages "$suite" "$1" ubuntu-keyring ubuntu-archive-keyring >&2
    [ ! -r "$1/$keys" ] || break
  done
  echo "$1/$keys"
}

fetch() (
  set -e
  work=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # The user that apt downloads with must be able to read it.
  chmod 755 "$work"
  keys=$(ubuntu_keys "$work/keys")
  [ -r "$keys" ] || { echo "Ubuntu's keys are neither installed nor in the host's distribution"; exit 1; }
  # Nothing of a package is run, so an ordinary user can do it too.
  mode=chrootless
  [ "$(id -u)" != 0 ] || mode=root
  mmdebstrap --variant=extract --mode="$mode" --components=main,universe --keyring="$keys" --include=mongodb-server-core focal "$work/all"
  # Of the libraries only those that the host lacks: its C library must not meet an older one.
  libraries=lib/x86_64-linux-gnu
  mkdir -p "$work/root/usr/bin" "$work/root/$libraries" "$work/bin"
  mv "$work/all/usr/bin/mongod" "$work/all/usr/bin/mongos" "$work/root/usr/bin"
  while
    missing=$(LD_LIBRARY_PATH="$work/root/$libraries" ldd "$work"/root/usr/bin/* | sed -n 's/^\t\(.*\) => not found$/\1/p' | sort -u)
    [ -n "$missing" ]
  do
    for library in $missing; do
      cp -L "$(find "$work/all/lib" "$work/all/usr/lib" -name "$library" -print -quit)" "$work/root/$libraries/$library"
    done
  done
  rm -rf "$work/all" "$work/keys"
  # Programs that find their libraries beside themselves, whoever starts them.
  for program in mongod mongos; do
    cat >"$work/bin/$program" <<'PROGRAM'
#!/bin/sh
home=$(dirname "$(readlink -f "$0")")/../root
export LD_LIBRARY_PATH="$home/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$home/usr/bin/$(basename "$0")" "$@"
PROGRAM
    chmod +x "$work/bin/$program"
  done
  "$work/bin/mongod" --version
  "$work/bin/mongos" --version
  trap - EXIT
  rm -rf "$home/mongod-3.6.8"
  mv -T "$work" "$home/mongod-3.6.8"
  chmod 755 "$home/mongod-3.6.8"
)

# Not behind a condition, where `set -e` would mean nothing.
fetch >"$home/mongod.log" 2>&1
[ $? = 0 ] || say "mongod cannot be fetched ($home/mongod.log)"
