#!/usr/bin/env bash
# Builds the documentation as a site: target/book/index.html. It works offline, search included. Links to files outside of docs/ become
# plain text: the site holds no sources.
set -eu
cd "$(dirname "$0")/.."
PATH="$PATH:${XDG_CACHE_HOME:-$HOME/.cache}/dyno-mdbook/bin"
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
site=$(cd "$target" && pwd)/book
source=$(mktemp -d "${TMPDIR:-/tmp}/dyno-docs.XXXXXX")
trap 'rm -rf "$source"' EXIT
cp -r book.toml docs "$source"
sed -Ei 's/\[([^]]*)\]\(\.\.\/[^)]*\)/\1/g' "$source"/docs/*.md
sed -Ei 's/\[([^]]*)\]\(\.\.\/\.\.\/[^)]*\)/\1/g' "$source"/docs/contributing/*.md
rm -rf "$site"
mdbook build "$source" --dest-dir "$site"
echo "documentation: file://$site/index.html"
