#!/usr/bin/env bash
# Makes libfaketime available to the tests, or says how. Installs only as root on a Debian-like system.
set -u
command -v faketime >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends faketime; } >/dev/null 2>&1
fi
command -v faketime >/dev/null && exit 0
echo "faketime is not installed: clocks that jump are skipped (Debian: apt-get install faketime)" >&2
exit 1
