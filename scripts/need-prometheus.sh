#!/usr/bin/env bash
# Makes Prometheus and two of its exporters available to the tests, or says how. Installs only as root on a Debian-like system.
set -u
there() {
  command -v prometheus >/dev/null && command -v prometheus-node-exporter >/dev/null && command -v prometheus-redis-exporter >/dev/null
}
there && exit 0
packages="prometheus prometheus-node-exporter prometheus-redis-exporter"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # The packages must not start services of their own.
  made=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d && made=1
  fi
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages; } >/dev/null 2>&1
  [ -n "$made" ] && rm -f /usr/sbin/policy-rc.d
fi
there && exit 0
echo "Prometheus or its exporters are not installed: what needs them is skipped (Debian: apt-get install $packages)" >&2
exit 1
