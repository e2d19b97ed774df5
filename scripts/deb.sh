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
doc=$root/usr/share/doc/dyno
mkdir -p "$doc"
{
  echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
  echo "Upstream-Name: dyno"
  echo
  echo "Files: *"
  echo "Copyright: 2026 The dyno project"
  echo "License: Apache-2.0"
  echo " On Debian systems the text is /usr/share/common-licenses/Apache-2.0."
  echo " Libraries in the program and their licences: THIRD-PARTY-LICENSES.txt.gz in this folder."
} >"$doc/copyright"
gzip -9nc "$folder/THIRD-PARTY-LICENSES.txt" >"$doc/THIRD-PARTY-LICENSES.txt.gz"
maintainer="The dyno project <maintainers@dyno.invalid>"
{
  echo "dyno (${version/-/\~}) unstable; urgency=medium"
  printf '\n  * What has changed: CHANGELOG.md in this folder.\n\n'
  echo " -- $maintainer  $(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$doc/changelog.gz"
# The README's links lead to the pages beside it.
install -m644 -t "$doc" "$folder/README.md" "$folder/CONTRIBUTING.md" "$folder/CHANGELOG.md" "$folder/SECURITY.md"
cp -r "$folder/docs" "$doc"
find "$doc" -type d -exec chmod 755 {} + -o -type f -exec chmod 644 {} +
# The program needs no library of the system's: it is meant to be static.
mkdir -p "$root/usr/share/lintian/overrides"
printf '%s\n' 'dyno: statically-linked-binary' 'dyno: embedded-library' >"$root/usr/share/lintian/overrides/dyno"
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
Maintainer: $maintainer
Section: database
Priority: optional
Recommends: redis-server
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Description: benchmark for NoSQL databases that judges its own results
 Loads Redis, Dragonfly, MongoDB, memcached and embedded stores with the
 workloads of YCSB, sysbench-mongodb, POCDriver and memtier_benchmark. It says
 how fast they are, what limits them, and whether a change helps.
C
(cd "$root" && find usr -type f | LC_ALL=C sort | xargs md5sum >DEBIAN/md5sums)
find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null
