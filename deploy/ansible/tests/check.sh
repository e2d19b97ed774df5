#!/bin/sh
# Roles in check mode on this host, and what the storage role must refuse. Nothing on this host is changed: storage is given loop
# devices, mounted in a namespace of their own. Needs ansible-playbook, and root for the devices.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
if [ "${1:-}" != inside ]; then
  folder=$(mktemp -d)
  devices=
  trap 'for device in $devices; do losetup --detach "$device" || true; done; rm -rf "$folder"' EXIT
  for name in a b c; do
    truncate --size 400M "$folder/$name"
    device=$(losetup --find --show "$folder/$name" 2>/dev/null) || break
    devices="$devices $device"
  done
  # shellcheck disable=SC2086
  unshare --mount true 2>/dev/null && set -- unshare --mount sh "$0" inside "$folder" $devices || set -- sh "$0" inside "$folder"
  "$@"
  exit
fi
shift
folder=$1
shift

export ANSIBLE_CONFIG="$here/ansible.cfg" ANSIBLE_NOCOLOR=1 ANSIBLE_PYTHON_INTERPRETER=/usr/bin/python3
for name in mongodb dragonfly grafana storage; do
  printf -- '- hosts: localhost\n  connection: local\n  roles: [%s]\n' "$name" >"$folder/$name.yml"
done

# play ROLE WORDS...: its output is in $folder/told.
play() {
  role=$1
  shift
  ansible-playbook -i localhost, "$folder/$role.yml" -e dyno_password=hush-for-tests "$@" >"$folder/told" 2>&1
}

fail() {
  cat "$folder/told" >&2
  echo "$1" >&2
  exit 1
}

# A package by its name where apt knows it, and one that is there in its place otherwise.
known() {
  if apt-cache show "$1" >/dev/null 2>&1; then echo "$1"; else echo dpkg; fi
}

# What the roles would write, as it is now.
written() {
  for path in /etc/mongod.conf /etc/dragonfly /etc/grafana /etc/default/grafana-server /var/lib/grafana; do
    [ ! -e "$path" ] || find "$path" -printf '%p %m %s %T@\n'
  done
}

if ! /usr/bin/python3 -c 'import apt' 2>/dev/null || ! command -v dpkg-deb >/dev/null; then
  echo "SKIPPED: roles in check mode: they need Debian's python3-apt" >&2
  exit 0
fi
written >"$folder/before"
mkdir -p "$folder/package/DEBIAN"
printf 'Package: dyno-check\nVersion: 1\nArchitecture: all\nMaintainer: dyno <dyno@localhost>\nDescription: empty\n' \
  >"$folder/package/DEBIAN/control"
dpkg-deb --build "$folder/package" "$folder/dragonfly.deb" >/dev/null
for role in mongodb dragonfly grafana; do
  play "$role" --check -e "mongodb_package=$(known mongodb-org)" -e "grafana_package=$(known grafana)" \
    -e "dragonfly_package=$folder/dragonfly.deb" || fail "$role fails in check mode"
  ! grep -q hush-for-tests "$folder/told" || fail "$role shows the password"
  echo "check mode: $role"
done
written >"$folder/after"
cmp "$folder/before" "$folder/after"

if [ $# != 3 ]; then
  echo "SKIPPED: the storage role in check mode and its refusals: no loop devices, or no mount namespaces" >&2
  exit 0
fi
a=$1 b=$2 c=$3
mkfs.ext4 -q "$a"
mkfs.ext4 -q "$c"
mkdir "$folder/elsewhere" "$folder/data"
sync "$folder/a" "$folder/b" "$folder/c"

# refused MESSAGE DEVICES WORDS...: a run, not in check mode, that ends with the role's own words and leaves all as it was.
refused() {
  message=$1 listed=$2
  shift 2
  mounts=$(cat /proc/self/mounts)
  ! play storage -e storage_manage_service=false -e "storage_mount=$folder/data" -e "{\"storage_devices\": [$listed]}" "$@" ||
    fail "storage was made where it must not be: $message"
  tr -s ' \n' ' ' <"$folder/told" | grep -qF "$message" || fail "not refused with: $message"
  grep -qF 'Nothing was done.' "$folder/told" || fail "not refused by the role"
  [ "$mounts" = "$(cat /proc/self/mounts)" ] || fail "what is mounted has changed: $message"
  [ "$(blkid --probe --output value --match-tag TYPE "$a"):$(blkid --probe --output value --match-tag TYPE "$c")" = ext4:ext4 ] ||
    fail "a filesystem is gone: $message"
  echo "refused: $message"
}

refused 'say storage_confirm=erase' "\"$a\""
refused 'list them (storage_devices)' '' -e storage_confirm=erase
refused "/dev/null is no block device" '"/dev/null"' -e storage_confirm=erase
mount "$a" "$folder/elsewhere"
refused "$a holds a filesystem that is mounted elsewhere" "\"$a\"" -e storage_confirm=erase
refused "$a holds a filesystem that is mounted elsewhere" "\"$b\", \"$a\"" -e storage_confirm=erase -e storage_raid=true
# The other mount is of the data folder itself: both count.
mount "$a" "$folder/data"
refused "$a holds a filesystem that is mounted elsewhere" "\"$a\"" -e storage_confirm=erase
umount "$folder/data" "$folder/elsewhere"
mount "$c" "$folder/data"
refused "$c (mounted at $folder/data) is not of storage_devices alone" "\"$a\", \"$b\"" -e storage_confirm=erase
umount "$folder/data"
refused "$c (the array) is not of storage_devices alone" "\"$a\", \"$b\"" -e storage_confirm=erase -e "storage_array=$c"

if apt-cache show mdadm >/dev/null 2>&1; then
  sums=$(sha256sum "$folder/a" "$folder/b")
  for kind in xfs ext4; do
    play storage --check -e storage_manage_service=false -e "storage_mount=$folder/data" -e storage_confirm=erase \
      -e storage_raid=true -e "storage_filesystem=$kind" -e "{\"storage_devices\": [\"$a\", \"$b\"]}" ||
      fail "storage fails in check mode"
  done
  [ "$sums" = "$(sha256sum "$folder/a" "$folder/b")" ] || fail "check mode has written to the devices"
  echo "check mode: storage, RAID-0"
else
  echo "SKIPPED: RAID-0 in check mode: apt does not know mdadm" >&2
fi
