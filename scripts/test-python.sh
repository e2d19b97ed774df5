#!/usr/bin/env bash
# The Python package: its tests on runs made on the spot, SciPy, ruptures and Apache Otava as oracles of dyno's statistics, and the
# example notebook, executed. Everything is installed into a temporary environment. DYNO names the command; it is built if it is not set.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
cargo=${CARGO:-cargo}
python=${PYTHON:-python3}

skip() {
  echo "SKIPPED: the Python package, its notebook and the oracles: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

command -v "$python" >/dev/null || skip "$python is not installed"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || skip "$python is older than 3.9"
work=$(mktemp -d "${TMPDIR:-/tmp}/dyno-python.XXXXXX")
trap 'rm -rf "$work"' EXIT
"$python" -m venv "$work/venv" >"$work/log" 2>&1 || skip "$python cannot make an environment ($(tail -n 1 "$work/log"))"
# A copy, so that building leaves nothing in the sources.
cp -r "$root/python/dyno-results" "$work/package"
pip="$work/venv/bin/pip --quiet --disable-pip-version-check install"
$pip "$work/package[notebook]" scipy >"$work/log" 2>&1 || skip "pip cannot install what it needs ($(tail -n 1 "$work/log"))"
missing=
for oracle in ruptures apache-otava; do
  $pip "$oracle" >"$work/log" 2>&1 || missing="$missing $oracle"
done

if [ -z "${DYNO:-}" ]; then
  "$cargo" build --release --locked -p dyno-cli || exit 1
  DYNO=${CARGO_TARGET_DIR:-$root/target}/release/dyno
fi
DYNO=$(readlink -f "$DYNO")
export DYNO PYTHONDONTWRITEBYTECODE=1

failed=0
echo "== unittest of dyno-results"
"$work/venv/bin/python" -m unittest discover -v -s "$root/python/dyno-results/tests" >"$work/tests" 2>&1 || failed=1
grep -vE '\.\.\. ok$' "$work/tests" | grep -v '^$'
passed=$(grep -cE '\.\.\. ok$' "$work/tests")
broken=$(grep -cE '\.\.\. (FAIL|ERROR)$' "$work/tests")
grep -E '\.\.\. skipped' "$work/tests" | sed 's/^\([^ ]*\).*skipped/SKIPPED: \1:/'
skipped=$(grep -cE '\.\.\. skipped' "$work/tests")
[ -z "$missing" ] || echo "could not be installed:$missing"

echo "== the example notebook"
# `dyno bexhoma jupyter` starts what is on PATH.
if PATH="$work/venv/bin:$PATH" "$work/venv/bin/python" "$root/python/dyno-results/examples/execute.py" "$work" >"$work/log" 2>&1; then
  passed=$((passed + 1))
  grep '^SKIPPED:' "$work/log" && skipped=$((skipped + 1))
else
  tail -n 40 "$work/log"
  broken=$((broken + 1))
  failed=1
fi
[ "$failed" = 0 ] || [ "$broken" -gt 0 ] || broken=1
echo "$passed passed, $broken failed, $skipped skipped"
exit "$failed"
