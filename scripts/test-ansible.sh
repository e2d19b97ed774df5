#!/bin/sh
# The Ansible collection, on hosts made of network namespaces: syntax, lint, check mode, and what can be run for real. Needs root,
# sshd and a registry of Python packages.
set -eu
cd "$(dirname "$0")/.."
scripts/need ssh || true
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! python3 -m venv "$folder/venv" || ! "$folder/venv/bin/pip" -q install ansible-core ansible-lint; then
  echo "SKIPPED: the Ansible collection: ansible-core cannot be installed by pip" >&2
  exit 0
fi
PATH="$folder/venv/bin:$PATH"
export PATH

# What aws.yml needs: from Galaxy where it is reachable, otherwise cut out of pip's large bundle (54 MB).
ANSIBLE_COLLECTIONS_PATH="$folder/collections"
export ANSIBLE_COLLECTIONS_PATH
bundled() {
  pip -q download --no-deps --only-binary :all: -d "$folder/bundle" ansible &&
    python - "$folder/bundle" "$ANSIBLE_COLLECTIONS_PATH" <<'END'
import pathlib, sys, zipfile
[path] = pathlib.Path(sys.argv[1]).glob("*.whl")
with zipfile.ZipFile(path) as wheel:
    names = [name for name in wheel.namelist() if name.startswith("ansible_collections/amazon/aws/")]
    wheel.extractall(sys.argv[2], names)
sys.exit(not names)
END
}
galaxy() {
  timeout 120 ansible-galaxy collection install --timeout 20 -p "$ANSIBLE_COLLECTIONS_PATH" amazon.aws >/dev/null 2>&1
}
without=
if ! galaxy && ! bundled; then
  without=playbooks/aws.yml
  echo "SKIPPED: syntax and lint of deploy/ansible/$without: the collection amazon.aws cannot be had from Galaxy or by pip" >&2
fi
(
  cd deploy/ansible
  for playbook in playbooks/*.yml; do
    [ "$playbook" = "$without" ] || ansible-playbook -i hosts.example.ini --syntax-check "$playbook" >/dev/null
  done
  ansible-lint -q --offline --nocolor ${without:+--exclude "$without"}
)
deploy/ansible/tests/check.sh
cargo test --release --locked --workspace --test servers -- ansible:: --ignored --nocapture --test-threads=1
