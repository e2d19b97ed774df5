#!/usr/bin/env bash
# deb.sh FOLDER ARCH PACKAGE: a Debian package of what dist.sh put into FOLDER: the static program, manual pages, completions.
# It depends on no package. The same input gives the same bytes: times are SOURCE_DATE_EPOCH.
set -euo pipefail
folder=$1 package=$3
case $2 in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) echo "$2: expected x86_64 or aarch64" >&2 && exit 2 ;;
esac
command -v dpkg-deb >/dev/null || { echo "dpkg-deb is not installed: no Debian package can be made" >&2 && exit 1; }
version=$(cat "$folder/VERSION")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/dyno
install -Dm755 "$folder/dyno" "$root/usr/bin/dyno"
install -Dm644 "$folder/LICENSE" "$root/usr/share/doc/dyno/copyright"
install -Dm644 "$folder/README.md" "$root/usr/share/doc/dyno/README.md"
install -Dm644 -t "$root/usr/share/man/man1" "$folder"/man/*.1
gzip -9n "$root"/usr/share/man/man1/*.1
install -Dm644 -t "$root/usr/share/bash-completion/completions" "$folder/completions/dyno"
install -Dm644 -t "$root/usr/share/zsh/vendor-completions" "$folder/completions/_dyno"
install -Dm644 -t "$root/usr/share/fish/vendor_completions.d" "$folder/completions/dyno.fish"
mkdir -p "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<C
Package: dyno
Version: ${version/-/\~}
Architecture: $architecture
Maintainer: The dyno project
Section: database
Priority: optional
Recommends: redis-server
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Description: puts a database on the dynamometer
 Loads Redis, Dragonfly, MongoDB and embedded stores with the workloads of YCSB, sysbench-mongodb and POCDriver, and says how fast
 they are, what limits them, and whether a change helps.
C
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
