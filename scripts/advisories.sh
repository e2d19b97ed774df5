#!/usr/bin/env bash
# Known weaknesses of everything that dyno is built from (RustSec's advisories). Where the database cannot be reached, it says so;
# ADVISORY_DB names a clone of it that is there already. Crates that nobody keeps any more, or that are unsound, are shown and are no failure.
set -u
cd "$(dirname "$0")/.."
. scripts/servers.sh
database=https://github.com/RustSec/advisory-db
config=deny.toml
if [ -n "${ADVISORY_DB:-}" ]; then
  folder=$(mktemp -d "${TMPDIR:-/tmp}/dyno-advisories.XXXXXX")
  trap 'rm -rf "$folder"' EXIT
  # It is cloned where its address would be asked.
  export GIT_CONFIG_COUNT=1 GIT_CONFIG_VALUE_0=$database
  GIT_CONFIG_KEY_0="url.file://$(realpath "$ADVISORY_DB").insteadOf"
  export GIT_CONFIG_KEY_0
  config=$folder/deny.toml
  { cat deny.toml; echo "db-path = \"$folder\""; } >"$config"
elif ! GIT_TERMINAL_PROMPT=0 timeout 30 git ls-remote --exit-code "$database" HEAD >/dev/null 2>&1; then
  echo "SKIPPED: advisories on dependencies: $database cannot be reached from here"
  exit 0
fi
scripts/need deny || {
  echo "SKIPPED: advisories on dependencies: cargo-deny cannot be installed"
  exit 0
}
status=0
for manifest in Cargo.toml fuzz/Cargo.toml; do
  echo "== cargo deny check advisories ($manifest)"
  cargo-deny --locked --manifest-path "$manifest" --config "$config" \
    check --hide-inclusion-graph -W unmaintained -W unsound -W notice advisories || status=1
done
exit "$status"
