#!/usr/bin/env bash
# The official MongoDB driver with AWS IAM: clippy with warnings denied and the tests of the features `official` and `aws`, and
# clippy of `gssapi` where Kerberos' headers and clang are there; ends with counts and the names of what was skipped.
set -u
cargo=${CARGO:-cargo}
here=$(dirname "$0")
log=$(mktemp "${TMPDIR:-/tmp}/dyno-test.XXXXXX")
trap 'rm -f "$log"' EXIT
failed=0

"$here/need" mongo || true
echo "== $cargo clippy --features aws"
"$cargo" clippy --release --locked -p dyno-db-mongodb -p dyno-databases -p dyno-cli --features dyno-cli/aws --all-targets --quiet \
  -- -D warnings || failed=1
echo "== $cargo clippy --features gssapi"
if command -v krb5-config >/dev/null && command -v clang >/dev/null; then
  "$cargo" clippy --release --locked -p dyno-db-mongodb --features dyno-db-mongodb/gssapi --quiet -- -D warnings || failed=1
else
  echo "SKIPPED: gssapi: libkrb5-dev or clang is not installed" | tee -a "$log"
fi
echo "== $cargo test --features aws"
"$cargo" test --release --locked -p dyno-db-mongodb -p dyno-cli --features dyno-cli/aws --lib --test official \
  --no-fail-fast -- --nocapture 2>&1 | tee -a "$log" | grep -vE '^(test .* ok|running 0 tests|)$'
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
