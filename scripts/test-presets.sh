#!/bin/sh
# Presets as they are written, at their smallest scale and shortened by --set duration alone: a quarter of an hour. Needs mongod.
set -eu
cd "$(dirname "$0")/.."
. scripts/servers.sh
exec cargo test --release --locked -p dyno-cli --test servers -- presets:: --ignored --test-threads=1 --nocapture
