#!/usr/bin/env bash
# The tests in tiers: `scripts/test.sh check` is formatting, clippy with warnings denied, unit tests and whole runs without servers,
# with overflow checks and debug assertions (profile `fast`); without a word all of that, then real servers with the program that
# is shipped. The official MongoDB driver doubles the build and has its own script (test-official.sh). Ends with counts and the
# names of what was skipped; skips fail whose line has a word of DYNO_TEST_REQUIRE ("redis,mongod"; "all" for any).
set -u
cd "$(dirname "$0")/.."
. scripts/servers.sh
cargo=${CARGO:-cargo}
logs=$(mktemp -d "${TMPDIR:-/tmp}/dyno-test.XXXXXX")
trap 'rm -rf "$logs"' EXIT
failed=0
all="--locked --workspace"

step() {
  echo "== $*"
  local begun=$SECONDS
  "$@" || { echo "FAILED: $*"; failed=1; }
  echo "== $((SECONDS - begun)) s"
}

# nextest PROFILE TARGETS...: its report stays in $logs.
nextest() {
  local profile=$1
  shift
  # What an earlier run has left is not counted.
  rm -f target/nextest/default/junit.xml
  # Two on each core: most wait for servers.
  # shellcheck disable=SC2086
  step "$cargo" nextest run --cargo-profile "$profile" --test-threads "$((2 * $(nproc)))" $all "$@"
  mv target/nextest/default/junit.xml "$logs/$profile.xml" || failed=1
}

# The fuzz targets are a workspace of their own, whose lock file is easily forgotten. Where no index can be read, nothing is known of it.
fuzz_lock() {
  local words
  words=$("$cargo" update --quiet --workspace --locked --manifest-path fuzz/Cargo.toml 2>&1) && return
  case $words in
    *"lock file"*) echo "$words" && return 1 ;;
    *) echo "SKIPPED: the lock file of the fuzz targets: no index of crates can be read" | tee "$logs/fuzz.log" ;;
  esac
}

step "$cargo" fmt --all --check
step fuzz_lock
# shellcheck disable=SC2086
step "$cargo" clippy --profile fast $all --all-targets --quiet -- -D warnings
nextest fast --lib --bins --test it --test bson --test corpus --test engine --test hostile --test phase --test program --test read_back --test server_configuration --test specifications --test stores --test toy_database --test trees
if [ "${1:-}" != check ]; then
  step scripts/deny.sh > >(tee "$logs/deny.log") 2>&1
  nextest release --test servers --test alone --test arrival --test local --test memcached
  # Pods of a real Kubernetes, where its binaries are there.
  if [ -x "${KUBELAB:-$HOME/.cache/kubelab}/bin/kubeone" ]; then
    echo "== scripts/test-kubernetes.sh"
    scripts/test-kubernetes.sh 2>&1 | tee "$logs/kubernetes.log" | grep --line-buffered -vE '^(test .* ok|running [0-9]+ tests?|)$'
    [ "${PIPESTATUS[0]}" = 0 ] || failed=1
  else
    echo "SKIPPED: pods of a real Kubernetes: its binaries are not there (make kubernetes builds them)" >"$logs/kubernetes.log"
  fi
fi

# count ATTRIBUTE: the sum over nextest's reports. pods WORD: that of the tests in pods, which cargo runs.
sum() { grep -o '[0-9]*$' | awk '{s += $1} END {print s + 0}'; }
count() { grep -hos "<testsuites [^>]*" "$logs"/*.xml | grep -o " $1=\"[0-9]*" | sum; }
pods() { sed -n "s/^test result: .* \([0-9]*\) $1;.*/\1/p" "$logs/kubernetes.log" 2>/dev/null | sum; }
broken=$(($(count failures) + $(count errors)))
passed=$(($(count tests) - broken + $(pods passed)))
broken=$((broken + $(pods failed)))
grep -rhoE 'SKIPPED: [^<]*' "$logs" | sed "s/&quot;/\"/g; s/&apos;/'/g; s/&lt;/</g; s/&gt;/>/g; s/&amp;/\&/g" | sort | uniq -c >"$logs/skipped"
skipped=$(awk '{s += $1} END {print s + 0}' "$logs/skipped")
if [ "$skipped" -gt 0 ]; then
  echo
  echo "Skipped:"
  cat "$logs/skipped"
fi
required=${DYNO_TEST_REQUIRE:-}
[ "$required" != all ] || required=SKIPPED
if [ -n "$required" ] && grep -iE "${required//,/|}" "$logs/skipped" >"$logs/required"; then
  echo "FAILED: DYNO_TEST_REQUIRE asks for what was skipped:"
  cat "$logs/required"
  failed=1
  broken=$((broken + $(awk '{s += $1} END {print s}' "$logs/required")))
fi
[ "$failed" = 0 ] || [ "$broken" -gt 0 ] || broken=1
echo "$passed passed, $broken failed, $skipped skipped"
exit "$failed"
