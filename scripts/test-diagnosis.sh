#!/bin/sh
# The diagnosis against seeded truth on real servers: needs redis-server, and root for control groups and namespaces.
# One cause after the other: each wants the whole host.
set -eu
cd "$(dirname "$0")/.."
exec cargo test --release --workspace --test alone -- diagnosis:: --ignored --test-threads=1 --nocapture
