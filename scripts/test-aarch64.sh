#!/usr/bin/env bash
# aarch64 under emulation, on any host: the static program makes runs on embedded stores (and against a real Redis, where qemu has what
# that needs), and the golden vectors of data, codecs and histograms are checked there. Skipped, and said so, where qemu or a compiler is not there.
set -euo pipefail
cd "$(dirname "$0")/.."
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || {
  echo "SKIPPED: aarch64: qemu-user is not installed (apt-get install qemu-user-static)" >&2
  exit 0
}
[ -n "${BUILT:-}" ] || scripts/static.sh dyno aarch64
zig=${XDG_CACHE_HOME:-$HOME/.cache}/dyno-zig/bin
PATH="$PATH:$zig"
if [ -x "$zig/python-zig" ]; then
  export CARGO_ZIGBUILD_ZIG_PATH=${CARGO_ZIGBUILD_ZIG_PATH:-$zig/python-zig}
fi
dyno=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)/dyno-aarch64
"$qemu" "$dyno" --version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$qemu" "$dyno" run null: --records 1000 --ops 20000 --out "$work/null" --quiet || [ $? = 5 ]
"$qemu" "$dyno" run sim: --records 1000 --rate 1000 --duration 5s --out "$work/sim" --quiet || [ $? = 5 ]
for store in sqlite redb fjall; do
  "$qemu" "$dyno" run "$store:$work/$store.db" --workload a --records 500 --ops 2000 --out "$work/$store" --quiet || [ $? = 5 ]
done
# A server over the network needs epoll_pwait2, which an older qemu does not have.
if command -v redis-server >/dev/null; then
  told=$("$qemu" "$dyno" run --workload a --records 1000 --ops 5000 --out "$work/redis" --quiet 2>&1) || [ $? = 5 ] || case $told in
    *"Function not implemented"*) echo "SKIPPED: aarch64: a run over the network: this qemu has no epoll_pwait2" >&2 ;;
    *) echo "$told" >&2 && exit 1 ;;
  esac
fi
for run in "$work"/*/summary.json; do
  "$qemu" "$dyno" report "$(dirname "$run")" --format md | head -3
done
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=$qemu
cargo-zigbuild test --release --locked --target aarch64-unknown-linux-musl -p dyno-types -p dyno-record -p dyno-workload -p dyno-db-redis \
  --lib --tests
