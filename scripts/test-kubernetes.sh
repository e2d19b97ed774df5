#!/bin/sh
# Experiments in pods of a real one-node Kubernetes; skipped, and said so, where its binaries are not there (`make kubernetes` builds
# them).
set -eu
cd "$(dirname "$0")/.."
# One program with a whole cluster in it takes seven minutes; more than 25 are none.
exec timeout --foreground -k 10 1500 "${CARGO:-cargo}" test --release --locked --workspace --test kubernetes -- --ignored --nocapture
