#!/usr/bin/env bash
# The official MongoDB driver: clippy with warnings denied and the tests of the feature `official`; ends with counts and the
# names of what was skipped.
set -u
cargo=${CARGO:-cargo}
here=$(dirname "$0")
log=$(mktemp "${TMPDIR:-/tmp}/dyno-test.XXXXXX")
trap 'rm -f "$log"' EXIT
failed=0

"$here/need-mongo.sh" || true
echo "== $cargo clippy --features official"
"$cargo" clippy --release --locked -p dyno-official -p dyno-rig -p dyno-cli --features dyno-cli/official --all-targets --quiet \
  -- -D warnings || failed=1
echo "== $cargo test --features official"
"$cargo" test --release --locked -p dyno-official -p dyno-cli --features dyno-cli/official --lib --test official \
  --test wire_equality --no-fail-fast -- --nocapture 2>&1 | tee "$log" | grep -vE '^(test .* ok|running 0 tests|)$'
[ "${PIPESTATUS[0]}" = 0 ] || failed=1

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
