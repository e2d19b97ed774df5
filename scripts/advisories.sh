#!/usr/bin/env bash
# Known weaknesses of everything that dyno is built from (RustSec's advisories). Where the database cannot be reached, it says so;
# ADVISORY_DB names a clone of it that is there already.
set -u
cd "$(dirname "$0")/.."
database=https://github.com/RustSec/advisory-db
options=()
if [ -n "${ADVISORY_DB:-}" ]; then
  options=(--db "$ADVISORY_DB" --no-fetch --stale)
elif ! GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --exit-code "$database" HEAD >/dev/null 2>&1; then
  echo "SKIPPED: advisories on dependencies: $database cannot be reached from here"
  exit 0
fi
if ! command -v cargo-audit >/dev/null; then
  ${CARGO:-cargo} install --locked --quiet cargo-audit || {
    echo "SKIPPED: advisories on dependencies: cargo-audit cannot be installed"
    exit 0
  }
fi
status=0
for lock in Cargo.lock fuzz/Cargo.lock; do
  [ -f "$lock" ] || continue
  echo "== cargo audit --file $lock"
  cargo-audit audit --file "$lock" ${options[@]+"${options[@]}"} || status=1
done
exit "$status"
