#!/usr/bin/env bash
# aarch64 under emulation, on any host: the static program makes runs against a real Redis, and the golden vectors of data, schedules,
# codecs and histograms are checked there. Skipped, and said so, where qemu or a compiler is not there.
set -euo pipefail
cd "$(dirname "$0")/.."
qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64) || {
  echo "SKIPPED: aarch64: qemu-user is not installed (apt-get install qemu-user-static)" >&2
  exit 0
}
scripts/worker.sh aarch64
zig=${XDG_CACHE_HOME:-$HOME/.cache}/dyno-zig/bin
PATH="$PATH:$zig"
if [ -x "$zig/python-zig" ]; then
  export CARGO_ZIGBUILD_ZIG_PATH=${CARGO_ZIGBUILD_ZIG_PATH:-$zig/python-zig}
fi
dyno=$(cd "${CARGO_TARGET_DIR:-target}/release" && pwd)/dyno-worker-aarch64
"$qemu" "$dyno" --version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$qemu" "$dyno" run null: --records 1000 --ops 20000 --out "$work/null" --quiet || [ $? = 5 ]
"$qemu" "$dyno" run sim: --records 1000 --rate 1000 --duration 5s --out "$work/sim" --quiet || [ $? = 5 ]
if command -v redis-server >/dev/null; then
  "$qemu" "$dyno" run --workload a --records 1000 --ops 5000 --out "$work/redis" --quiet || [ $? = 5 ]
fi
for run in "$work"/*; do
  "$qemu" "$dyno" report "$run" --format md | head -12
done
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER=$qemu
cargo-zigbuild test --release --locked --target aarch64-unknown-linux-musl -p dyno-types -p dyno-record -p dyno-workload -p dyno-wire \
  --lib --tests
