#!/bin/sh
# Experiments in pods of a real Kubernetes of three nodes; skipped, and said so, where its binaries are not there (`make kubernetes` builds
# them).
set -eu
cd "$(dirname "$0")/.."
# Two tests with a whole cluster each, one after the other, take a quarter of an hour; more than 45 minutes are none.
. scripts/servers.sh
exec timeout --foreground -k 10 2700 "${CARGO:-cargo}" test --release --locked --workspace --test kubernetes -- --ignored --nocapture
