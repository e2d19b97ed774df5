#!/usr/bin/env bash
# Makes redis-server and redis-cli available, or says how. Installs only as root on a Debian-like system.
set -u
command -v redis-server >/dev/null && command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # The packages must not start services of their own.
  made=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && made=1
  fi
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq redis-server redis-tools; } >/dev/null 2>&1
  [ -n "$made" ] && rm -f /usr/sbin/policy-rc.d
fi
command -v redis-server >/dev/null && exit 0
echo "redis-server is not installed: what needs it is skipped (Debian: apt-get install redis-server redis-tools)" >&2
exit 1
