#!/bin/sh
# Experiments in pods of a real one-node Kubernetes; skipped, and said so, where its binaries are not there (`make kubernetes` builds
# them).
set -eu
cd "$(dirname "$0")/.."
exec "${CARGO:-cargo}" test --release --locked --workspace --exclude dyno-official --test kubernetes -- --ignored --nocapture
