#!/usr/bin/env bash
# Formatting, clippy with warnings denied, and every test but those of the official MongoDB driver, which doubles the build
# (test-official.sh); ends with counts and the names of what was skipped.
set -u
. scripts/servers.sh
cargo=${CARGO:-cargo}
log=$(mktemp "${TMPDIR:-/tmp}/dyno-test.XXXXXX")
trap 'rm -f "$log"' EXIT
failed=0

step() {
  echo "== $*"
  "$@" || { echo "FAILED: $*"; failed=1; }
}

step "$cargo" fmt --all --check
step "$cargo" clippy --release --locked --workspace --exclude dyno-official --all-targets --quiet -- -D warnings
echo "== $cargo test"
host=$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')
export "CARGO_TARGET_${host}_RUNNER=$PWD/scripts/bounded.sh"
"$cargo" test --release --locked --workspace --exclude dyno-official --no-fail-fast -- --nocapture 2>&1 | tee "$log" | grep --line-buffered -vE '^(test .* ok|running 0 tests|)$'
[ "${PIPESTATUS[0]}" = 0 ] || failed=1

# Pods of a real Kubernetes, where its binaries are there.
if [ -x "${KUBELAB:-$HOME/.cache/kubelab}/bin/kubeone" ]; then
  echo "== scripts/test-kubernetes.sh"
  scripts/test-kubernetes.sh 2>&1 | tee -a "$log" | grep --line-buffered -vE '^(test .* ok|running [0-9]+ tests?|)$'
  [ "${PIPESTATUS[0]}" = 0 ] || failed=1
else
  echo "SKIPPED: pods of a real Kubernetes: its binaries are not there (make kubernetes builds them)" | tee -a "$log"
fi

passed=$(sed -n 's/^test result: [a-zA-Z]*\. \([0-9]*\) passed.*/\1/p' "$log" | awk '{s+=$1} END {print s+0}')
broken=$(sed -n 's/^test result: .* \([0-9]*\) failed;.*/\1/p' "$log" | awk '{s+=$1} END {print s+0}')
skipped=$(grep -c '^SKIPPED:' "$log")
echo
if [ "$skipped" -gt 0 ]; then
  echo "Skipped:"
  grep '^SKIPPED:' "$log" | sort | uniq -c
fi
[ "$failed" = 0 ] || [ "$broken" -gt 0 ] || broken=1
echo "$passed passed, $broken failed, $skipped skipped"
exit "$failed"
