#!/bin/sh
# The Ansible collection, on hosts made of network namespaces: syntax, lint, and what can be run for real. Needs root, sshd and PyPI.
set -eu
cd "$(dirname "$0")/.."
scripts/need-ssh.sh || true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! python3 -m venv "$folder/venv" || ! "$folder/venv/bin/pip" -q install ansible-core ansible-lint; then
  echo "SKIPPED: the Ansible collection: ansible-core cannot be installed from PyPI" >&2
  exit 0
fi
PATH="$folder/venv/bin:$PATH"
export PATH
(cd deploy/ansible && ansible-lint -q --offline --nocolor)
cargo test --release --locked --workspace --exclude dyno-official --test ansible -- --ignored --nocapture --test-threads=1
