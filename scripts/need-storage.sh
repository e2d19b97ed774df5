#!/usr/bin/env bash
# Makes the programs available that the local rig's tests use for filesystems and placement, or says what is missing.
# Installs only as root on a Debian-like system; a second call does nothing.
set -u
have() {
  PATH="$PATH:/usr/sbin:/sbin"
  for program in mkfs.xfs mkfs.btrfs mkfs.ext4 losetup taskset setpriv numactl; do
    command -v "$program" >/dev/null || return 1
  done
}
have && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  { apt-get update -qq && apt-get install -y -qq xfsprogs btrfs-progs e2fsprogs util-linux numactl; } >/dev/null 2>&1
fi
have && exit 0
echo "mkfs.xfs, mkfs.btrfs, mkfs.ext4, losetup, taskset, setpriv or numactl is not installed: what needs it is skipped" >&2
exit 1
