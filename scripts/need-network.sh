#!/usr/bin/env bash
# Makes nft and ip available to the tests that cut servers off, or says how. Installs only as root on a Debian-like system.
set -u
have() {
  PATH="$PATH:/usr/sbin:/sbin"
  command -v nft >/dev/null && command -v ip >/dev/null
}
have && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends nftables iproute2; } >/dev/null 2>&1
fi
have && exit 0
echo "nft or ip is not installed: cutting servers off is skipped (Debian: apt-get install nftables iproute2)" >&2
exit 1
