#!/usr/bin/env bash
# A Debian package of the program, its manual pages and completions, made of what `make build` has built.
# The same tree and compiler give the same bytes: times are those of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."
dyno=${DYNO:-${CARGO_TARGET_DIR:-target}/release/dyno}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/dyno
install -Dm755 "$dyno" "$root/usr/bin/dyno"
strip "$root/usr/bin/dyno"
install -Dm644 LICENSE "$root/usr/share/doc/dyno/copyright"
install -Dm644 README.md "$root/usr/share/doc/dyno/README.md"
mkdir -p "$root/usr/share/man/man1" "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" \
  "$root/usr/share/fish/vendor_completions.d" "$root/DEBIAN"
${CARGO:-cargo} run --quiet --release --locked -p dyno-xtask -- manual "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
"$dyno" completions bash >"$root/usr/share/bash-completion/completions/dyno"
"$dyno" completions zsh >"$root/usr/share/zsh/vendor-completions/_dyno"
"$dyno" completions fish >"$root/usr/share/fish/vendor_completions.d/dyno.fish"
needs=$(mkdir -p "$work/debian" && touch "$work/debian/control" && cd "$work" &&
  dpkg-shlibdeps -O "$root/usr/bin/dyno" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
cat >"$root/DEBIAN/control" <<C
Package: dyno
Version: $version
Architecture: $architecture
Maintainer: The dyno project
Section: database
Priority: optional
Depends: ${needs:-libc6}
Recommends: redis-server
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Description: puts a database on the dynamometer
 Loads Redis, Dragonfly, MongoDB and embedded stores with the workloads of YCSB, sysbench-mongodb and POCDriver, and says how fast
 they are, what limits them, and whether a change helps.
C
find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
out=${CARGO_TARGET_DIR:-target}/dyno_${version}_$architecture.deb
mkdir -p "${out%/*}"
dpkg-deb --root-owner-group -Zxz --build "$root" "$out" >/dev/null
echo "$out"
