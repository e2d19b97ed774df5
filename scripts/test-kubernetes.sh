#!/bin/sh
# Experiments in pods of a real one-node Kubernetes; skipped, and said so, where its binaries are not there (`make kubernetes` builds
# them).
set -eu
cd "$(dirname "$0")/.."
# One program with a whole cluster in it: seven minutes, more than others may take on a slow machine (scripts/bounded.sh).
export BOUND="${BOUND:-1500}"
exec "${CARGO:-cargo}" test --release --locked --workspace --exclude dyno-official --test kubernetes -- --ignored --nocapture
