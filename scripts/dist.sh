#!/usr/bin/env bash
# dist.sh [PART...] [ARCH...]: the files of a release, in target/dist-VERSION, with their checksums. PART is archive, deb, wheel,
# image or sbom; without one all of them are made anew. ARCH is x86_64 or aarch64; without one both.
# DYNO_PROGRAMS=FOLDER takes the static programs dyno-ARCH from there instead of building them.
set -euo pipefail
cd "$(dirname "$0")/.."
parts='' archs=''
for word; do
  case $word in
    archive | deb | wheel | image | sbom) parts="$parts $word" ;;
    x86_64 | aarch64) archs="$archs $word" ;;
    *) echo "$word: expected archive, deb, wheel, image, sbom, x86_64 or aarch64" >&2 && exit 2 ;;
  esac
done
whole=
[ -n "$parts" ] || { whole=1 && parts=" archive deb wheel image sbom"; }
archs=${archs:-x86_64 aarch64}
cargo=${CARGO:-cargo}
out=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=${XDG_CACHE_HOME:-$HOME/.cache}
made=$work/made
mkdir "$made"

has() { case "$parts " in *" $1 "*) ;; *) return 1 ;; esac; }

# What is missing is said before minutes of compiling.
! has wheel || scripts/need hatch
! has sbom || scripts/need cyclonedx
! has deb || command -v dpkg-deb >/dev/null || { echo "dpkg-deb is not installed: no Debian package can be made" >&2 && exit 1; }
PATH="$PATH:$cache/dyno-cyclonedx/bin"

"$cargo" xtask manual "$work/man"
"$cargo" xtask completions "$work/completions"
# Not before: C parts of what cargo compiles would be compiled anew for each commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

# A list of every library in the program, for one architecture. The tool writes beside each Cargo.toml, so it works on a copy.
sbom() {
  mkdir -p "$work/tree"
  tar -c --exclude='*/target' Cargo.toml Cargo.lock crates | tar -x -C "$work/tree"
  (cd "$work/tree/crates/cli" && "$cargo" cyclonedx --quiet --format json --spec-version 1.5 --target "$1-unknown-linux-musl" \
    --describe binaries --no-build-deps)
  # Paths of this machine are no part of it.
  sed "s|$work/tree|/dyno|g" "$work/tree/crates/cli/dyno_bin.cdx.json" >"$2"
}

images=()
for arch in $archs; do
  name=dyno-$version-$arch-unknown-linux-musl
  programs=${DYNO_PROGRAMS:-$out/release}
  [ -n "${DYNO_PROGRAMS:-}" ] || scripts/static.sh dyno "$arch" >&2
  program=$programs/dyno-$arch
  folder=$work/$name
  install -Dm755 "$program" "$folder/dyno"
  install -m755 scripts/install.sh "$folder"
  install -m644 LICENSE README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md "$folder"
  # Links of the README lead to these.
  cp -r docs "$folder"
  scripts/licences.py "$arch-unknown-linux-musl" >"$folder/THIRD-PARTY-LICENSES.txt"
  cp -r "$work/man" "$work/completions" "$folder"
  echo "$version" >"$folder/VERSION"
  chmod -R u=rwX,go=rX "$folder"
  ! has archive || tar -c -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$name" |
    gzip -9n >"$made/$name.tar.gz"
  if has deb; then
    case $arch in x86_64) debian=amd64 ;; *) debian=arm64 ;; esac
    scripts/deb.sh "$folder" "$arch" "$made/dyno_${version/-/\~}_$debian.deb"
  fi
  ! has wheel || (cd python/dyno-bench && DYNO_PROGRAM="$folder/dyno" DYNO_ARCH="$arch" PYTHONDONTWRITEBYTECODE=1 \
    "$cache/dyno-hatch/bin/hatchling" build -t wheel -d "$made" >"$work/log" 2>&1) || { cat "$work/log" >&2 && exit 1; }
  if has image; then
    certificates=$programs/ca-certificates.crt
    [ -r "$certificates" ] || { echo "no certificates of authorities are in $programs: an image needs them" >&2 && exit 1; }
    python3 scripts/image.py "$certificates" "$version" "$made/dyno-$version-$arch.oci.tar" "$folder/dyno" "$arch"
    images+=("$folder/dyno" "$arch")
  fi
  ! has sbom || sbom "$arch" "$made/$name.cdx.json"
done

# One image for nodes of both architectures.
[ "${#images[@]}" -lt 4 ] || python3 scripts/image.py "$certificates" "$version" "$made/dyno-$version.oci.tar" "${images[@]}"

dist=$out/dist-$version
[ -z "$whole" ] || rm -rf "$dist"
mkdir -p "$dist"
install -m755 scripts/install.sh "$made/install.sh"
chmod 644 "$made"/dyno*
mv "$made"/* "$dist"
(cd "$dist" && rm -f SHA256SUMS && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
echo "$dist"
