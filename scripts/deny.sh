#!/usr/bin/env bash
# Licences, bans and sources of everything that dyno is built from, against deny.toml. Only what is not downloaded yet needs a network:
# crates of other systems are looked at, too.
set -u
cd "$(dirname "$0")/.."
. scripts/servers.sh
skip() {
  echo "SKIPPED: licences, bans and sources of dependencies: $1"
}
command -v cargo-deny >/dev/null || { skip "cargo-deny is not there (scripts/need deny compiles it)" && exit 0; }
status=0
for manifest in Cargo.toml fuzz/Cargo.toml; do
  if ! words=$(${CARGO:-cargo} fetch --quiet --locked --manifest-path "$manifest" 2>&1); then
    # A lock file that does not fit its manifest is no matter of the network.
    case $words in
      *"lock file"*) echo "$words" && status=1 ;;
      *) skip "not all crates of $manifest can be downloaded" ;;
    esac
    continue
  fi
  echo "== cargo deny check licenses bans sources ($manifest)"
  cargo-deny --log-level error --locked --offline --manifest-path "$manifest" --config deny.toml \
    check --hide-inclusion-graph licenses bans sources || status=1
done
exit "$status"
