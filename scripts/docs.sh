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
cp -r --parents book.toml docs scripts/docs "$source"
sed -Ei 's/\[([^]]*)\]\(\.\.\/[^)]*\)/\1/g' "$source"/docs/*.md
sed -Ei 's/\[([^]]*)\]\(\.\.\/\.\.\/[^)]*\)/\1/g' "$source"/docs/contributing/*.md
rm -rf "$site"
mdbook build "$source" --dest-dir "$site"
# The frame with the contents, shown where no script runs, is a page of its own: it needs a title, a heading and a landmark.
find "$site" -name '*.html' -exec sed -i 's/<iframe class="sidebar-iframe-outer"/& title="Table of contents"/' {} +
sed -i -e 's/<meta charset="UTF-8">/&<title>Table of contents - dyno<\/title>/' \
  -e 's/<body class="sidebar-iframe-inner">/&<main><h1>Contents<\/h1>/' -e 's/<\/body>/<\/main>&/' "$site/toc.html"
# Another mdbook may write it otherwise.
grep -q 'title="Table of contents"' "$site/index.html" && grep -q '<main><h1>Contents' "$site/toc.html" ||
  { echo "mdbook's template has changed: the frame with the contents has no title or no heading" >&2 && exit 1; }
echo "documentation: file://$site/index.html"
