#!/usr/bin/env bash
# Licences, bans and sources of everything that dyno is built from, against deny.toml. Only what is not downloaded yet needs a network:
# crates of other systems are looked at, too.
set -u
cd "$(dirname "$0")/.."
. scripts/servers.sh
skip() {
  echo "SKIPPED: licences, bans and sources of dependencies: $1"
}
command -v cargo-deny >/dev/null || { skip "cargo-deny is not there (scripts/need-deny.sh compiles it)" && exit 0; }
status=0
for manifest in Cargo.toml fuzz/Cargo.toml; do
  # A lock file that does not fit its manifest is no matter of the network.
  ${CARGO:-cargo} metadata --locked --offline --no-deps --format-version 1 --manifest-path "$manifest" >/dev/null || { status=1 && continue; }
  ${CARGO:-cargo} fetch --quiet --locked --manifest-path "$manifest" || { skip "not all crates of $manifest can be downloaded" && continue; }
  echo "== cargo deny check licenses bans sources ($manifest)"
  cargo-deny --log-level error --locked --offline --manifest-path "$manifest" --config deny.toml \
    check --hide-inclusion-graph licenses bans sources || status=1
done
exit "$status"
