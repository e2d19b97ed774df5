#!/usr/bin/env bash
# Fuzzes every target (or those named) with cargo-fuzz, MINUTES each (or RUNS executions each), from the corpus in the repository,
# and prints executions, coverage and commit as rows of docs/reliability.md. cargo-fuzz needs a nightly Rust; both are looked for, and
# cargo-fuzz is installed where it is missing. Without a sanitizer: this is safe Rust, what is looked for are panics, hangs and memory.
set -eu
cd "$(dirname "$0")/.."
minutes=${MINUTES:-1}
targets=${*:-$(sed -n 's/^    ("\([a-z_0-9]*\)", .*/\1/p' crates/fuzz/src/lib.rs)}
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
rustup toolchain list | grep -q nightly || { echo "fuzzing needs a nightly Rust: rustup toolchain install nightly" >&2; exit 2; }
limit="-max_total_time=$((minutes * 60))"
[ -z "${RUNS:-}" ] || limit="$limit -runs=$RUNS"
[ -n "${BUILT:-}" ] || cargo +nightly fuzz build -O -s none
programs=fuzz/target/$(rustc -vV | sed -n 's/^host: //p')/release
commit=$(git rev-parse --short HEAD)
status=0
for target in $targets; do
  log=$(mktemp)
  mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
  found=none
  # shellcheck disable=SC2086
  "$programs/$target" "fuzz/corpus/$target" "crates/fuzz/corpus/$target" $limit -max_len=2048 -timeout=20 -rss_limit_mb=4096 \
    -artifact_prefix="fuzz/artifacts/$target/" -print_final_stats=1 >"$log" 2>&1 || {
    found="broken: see fuzz/artifacts/$target"
    tail -30 "$log"
    status=1
  }
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  cover=$(grep -o 'cov: [0-9]*' "$log" | tail -1 | cut -d' ' -f2)
  echo "| $target | ${runs:-0} | ${cover:-0} | $found | $(date -u +%F) | $commit |"
  rm -f "$log"
done
exit "$status"
