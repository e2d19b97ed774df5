#!/usr/bin/env bash
# The tests of embedded stores that need a library: those of the stores and of the command, with a feature for each library
# that is there. As root on a Debian-like system the missing ones are installed; what stays missing is named and counted.
set -u
cargo=${CARGO:-cargo}
log=$(mktemp "${TMPDIR:-/tmp}/dyno-test-all.XXXXXX")
trap 'rm -f "$log"' EXIT

# Feature and header.
libraries="lmdb:lmdb.h rocksdb:rocksdb/c.h wiredtiger:wiredtiger.h"

is_there() {
  echo "#include <${1#*:}>" | ${CC:-cc} -E -x c - >/dev/null 2>&1
}

missing=
for library in $libraries; do
  is_there "$library" || missing="$missing lib${library%%:*}-dev"
done
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null 2>&1
  for package in $missing; do
    apt-get install -y -qq "$package" >/dev/null 2>&1
  done
fi

features=
skipped=0
for library in $libraries; do
  name=${library%%:*}
  if is_there "$library"; then
    features="$features${features:+,}$name"
  else
    echo "SKIPPED: the tests of $name: $name is not installed (Debian: apt-get install lib$name-dev)"
    skipped=$((skipped + 1))
  fi
done
if [ -z "$features" ]; then
  echo "0 passed, 0 failed, $skipped skipped"
  exit 0
fi

failed=0
echo "== $cargo clippy and test --features $features"
"$cargo" clippy --release --locked -p dyno-db-embedded --all-targets --features "$features" --quiet -- -D warnings || failed=1
for crate in "-p dyno-db-embedded" "-p dyno-cli --test servers sysbench::"; do
  # shellcheck disable=SC2086
  "$cargo" test --release --locked $crate --features "$features" --no-fail-fast -- --nocapture 2>&1 |
    tee -a "$log" | grep -vE '^(test .* ok|running 0 tests|)$'
  [ "${PIPESTATUS[0]}" = 0 ] || failed=1
done
passed=$(sed -n 's/^test result: [a-zA-Z]*\. \([0-9]*\) passed.*/\1/p' "$log" | awk '{s+=$1} END {print s+0}')
broken=$(sed -n 's/^test result: .* \([0-9]*\) failed;.*/\1/p' "$log" | awk '{s+=$1} END {print s+0}')
skipped=$((skipped + $(grep -c '^SKIPPED:' "$log")))
[ "$failed" = 0 ] || [ "$broken" -gt 0 ] || broken=1
echo "$passed passed, $broken failed, $skipped skipped"
exit "$failed"
