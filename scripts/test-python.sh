#!/usr/bin/env bash
# The Python packages: tests on runs made on the spot, SciPy, ruptures and Apache Otava as oracles of dyno's statistics, the wheel with
# the program in it, the example notebook and the lines of both README files, executed. Everything is installed into temporary environments.
# DYNO names the command; it is built if it is not set.
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

failed=0 passed=0 broken=0 skipped=0

unittested() { # LOG: counts what unittest says of each test.
  grep -vE '\.\.\. ok$' "$1" | grep -v '^$'
  passed=$((passed + $(grep -cE '\.\.\. ok$' "$1")))
  broken=$((broken + $(grep -cE '\.\.\. (FAIL|ERROR)$' "$1")))
  grep -E '\.\.\. skipped' "$1" | sed 's/^\([^ ]*\).*skipped/SKIPPED: \1:/'
  skipped=$((skipped + $(grep -cE '\.\.\. skipped' "$1")))
}

executed() { # COMMAND...: one test more.
  if "$@" >"$work/log" 2>&1; then
    passed=$((passed + 1))
    grep '^SKIPPED:' "$work/log" && skipped=$((skipped + 1))
  else
    tail -n 40 "$work/log"
    broken=$((broken + 1))
    failed=1
  fi
}

echo "== unittest of dyno-results"
"$work/venv/bin/python" -m unittest discover -v -s "$root/python/dyno-results/tests" >"$work/tests" 2>&1 || failed=1
unittested "$work/tests"
[ -z "$missing" ] || echo "could not be installed:$missing"

echo "== the wheel dyno-bench"
# A wheel of this program, made as scripts/dist.sh makes it, from a copy.
mkdir -p "$work/tree/wheel" && cp -r "$root/python" "$root/Cargo.toml" "$work/tree"
if "$root/scripts/need" hatch 2>"$work/log"; then
  (cd "$work/tree/python/dyno-bench" && DYNO_PROGRAM=$DYNO DYNO_ARCH=$(uname -m) \
    "${XDG_CACHE_HOME:-$HOME/.cache}/dyno-hatch/bin/hatchling" build -t wheel -d "$work/tree/wheel") >"$work/log" 2>&1 ||
    { cat "$work/log" && exit 1; }
  wheel=$(echo "$work/tree/wheel"/*.whl)
  # Nothing but the wheel is in the first one.
  "$python" -m venv "$work/alone" && "$work/alone/bin/pip" --quiet --disable-pip-version-check install --no-index "$wheel" || exit 1
  (cd "$work" && "$work/alone/bin/python" -m unittest discover -v -s "$root/python/dyno-bench/tests") >"$work/tests" 2>&1 || failed=1
  unittested "$work/tests"
  $pip "$wheel[notebook]" >"$work/log" 2>&1 || { cat "$work/log" && failed=1; }
  if command -v redis-server >/dev/null; then
    MPLBACKEND=Agg executed "$work/venv/bin/python" "$root/python/dyno-bench/tests/readme.py" "$root"/python/*/README.md
  else
    echo "SKIPPED: the lines of the README files: no redis-server on PATH"
    skipped=$((skipped + 1))
  fi
else
  echo "SKIPPED: the wheel and the lines of the README files: $(tail -n 1 "$work/log")"
  skipped=$((skipped + 2))
fi

echo "== the example notebook"
# `dyno bexhoma jupyter` starts what is on PATH.
PATH="$work/venv/bin:$PATH" executed "$work/venv/bin/python" "$root/python/dyno-results/examples/execute.py" "$work"
[ "$failed" = 0 ] || [ "$broken" -gt 0 ] || broken=1
echo "$passed passed, $broken failed, $skipped skipped"
exit "$failed"
