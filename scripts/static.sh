#!/usr/bin/env bash
# static.sh PROGRAM ARCH: a static program for Linux on ARCH (x86_64 or aarch64; without a word this host's), as PROGRAM-ARCH beside
# the usual one. PROGRAM is dyno-worker, for other hosts and for images of pods, or dyno. On musl, whose programs
# resolve names by themselves; where its target or a compiler cannot be had, on this host's own C library, and that is said. The same tree and tools give the same bytes, wherever the tree lies.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
program=${1:-dyno-worker}
case $program in
  dyno-worker) package=dyno-worker profile=dist-worker ;;
  dyno) package=dyno-cli profile=dist ;;
  *) echo "$program: expected dyno or dyno-worker" >&2 && exit 2 ;;
esac
arch=${2:-$(uname -m)}
case $arch in
  x86_64 | aarch64) ;;
  arm64) arch=aarch64 ;;
  *) echo "$arch: expected x86_64 or aarch64" >&2 && exit 2 ;;
esac
out=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
export CARGO_TARGET_DIR=$out

has_target() {
  [ -d "$(rustc --print sysroot)/lib/rustlib/$1/lib" ] || rustup target add "$1" >&2
}

zig=${XDG_CACHE_HOME:-$HOME/.cache}/dyno-zig/bin
target=$arch-unknown-linux-musl
command="zigbuild"
if ! has_target "$target" || ! { command -v cargo-zigbuild >/dev/null || scripts/need zig; }; then
  [ "$arch" = "$(uname -m)" ] || { echo "no static program for $arch can be built here" >&2 && exit 1; }
  target=$arch-unknown-linux-gnu
  command="build"
  echo "linked with this host's C library: names are resolved where the same version of it is" >&2
fi
PATH="$PATH:$zig"
if [ -x "$zig/python-zig" ]; then
  export CARGO_ZIGBUILD_ZIG_PATH=${CARGO_ZIGBUILD_ZIG_PATH:-$zig/python-zig}
fi

# Paths of this machine are no part of the program.
home=${CARGO_HOME:-$HOME/.cargo}
flags="-C target-feature=+crt-static"
flags="$flags --remap-path-prefix=$home=/cargo --remap-path-prefix=$out=/target --remap-path-prefix=$PWD=/dyno"
cflags="-ffile-prefix-map=$home=/cargo -ffile-prefix-map=$out=/target -ffile-prefix-map=$PWD=/dyno"
if [ "$profile" = dist-worker ]; then
  # A program that aborts on a panic and has no symbols needs no tables for unwinding.
  flags="$flags -C force-unwind-tables=no"
  cflags="$cflags -fno-asynchronous-unwind-tables -fno-unwind-tables"
fi
export "CFLAGS_${target//-/_}=$cflags"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
# What --version says.
DYNO_COMMIT=${DYNO_COMMIT:-$(git rev-parse --short=12 HEAD 2>/dev/null || true)}
export DYNO_COMMIT
RUSTFLAGS="$flags" "$cargo" "$command" --profile "$profile" --locked -p "$package" --target "$target"
mkdir -p "$out/release"
install -m755 "$out/$target/$profile/$program" "$out/release/$program-$arch"
# Whom the image of this program trusts, for servers with TLS: those whom this host trusts.
for bundle in "${SSL_CERT_FILE:-}" /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
  [ -r "$bundle" ] && install -m644 "$bundle" "$out/release/ca-certificates.crt" && break
done
[ -r "$out/release/ca-certificates.crt" ] || echo "no certificates of authorities are here: an image needs them" >&2
echo "$out/release/$program-$arch"
