#!/usr/bin/env bash
# Makes memcached available, or says how. Installs only as root on a Debian-like system.
set -u
command -v memcached >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # The package must not start a service.
  made=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && made=1
  fi
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq memcached; } >/dev/null 2>&1
  [ -n "$made" ] && rm -f /usr/sbin/policy-rc.d
fi
command -v memcached >/dev/null && exit 0
echo "memcached is not installed: what needs it is skipped (Debian: apt-get install memcached)" >&2
exit 1
