#!/usr/bin/env bash
# Makes sshd available to the tests, or says how. Installs only as root on a Debian-like system.
set -u
[ -x /usr/sbin/sshd ] && command -v ip >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # The package must not start a service of its own.
  made=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && made=1
  fi
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends openssh-server openssh-client iproute2; } >/dev/null 2>&1
  [ -n "$made" ] && rm -f /usr/sbin/policy-rc.d
fi
[ -x /usr/sbin/sshd ] && exit 0
echo "sshd is not installed: what needs other hosts is skipped (Debian: apt-get install openssh-server)" >&2
exit 1
