#!/bin/sh
# Installs dyno for one user from the files of a release, or removes it.
set -eu

usage() {
  cat <<'U'
usage: install.sh [--to DIR] FOLDER|URL
       install.sh [--to DIR] --uninstall

Installs dyno from a folder, or from an http or https address, that holds the files of a release: SHA256SUMS and an
archive for this machine's architecture. The archive is checked against SHA256SUMS before anything is installed.

  --to DIR      install below DIR: DIR/bin, DIR/share (default: ~/.local)
  --uninstall   remove what this script installed there
U
}

fail() {
  echo "install.sh: $1" >&2
  exit "${2:-1}"
}

to='' from='' uninstall=''
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit 0 ;;
    --to)
      [ $# -ge 2 ] && [ -n "$2" ] || fail "--to needs a folder" 2
      to=$2
      shift
      ;;
    --to=?*) to=${1#--to=} ;;
    --uninstall) uninstall=1 ;;
    -*) fail "$1: unknown option; --help lists all" 2 ;;
    *)
      [ -z "$from" ] || fail "$1: expected one FOLDER or URL, and $from was given before" 2
      from=$1
      ;;
  esac
  shift
done
if [ -n "$uninstall" ]; then
  [ -z "$from" ] || fail "--uninstall takes no FOLDER or URL, and $from was given" 2
elif [ -z "$from" ]; then
  usage >&2
  exit 2
fi

again=''
if [ -n "$to" ]; then
  case $to in /*) ;; *) to=$PWD/$to ;; esac
  again=" --to '$to'"
else
  to=${HOME:?HOME is not set: say --to DIR}/.local
fi
share=$to/share
program=$to/bin/dyno
list=$share/dyno/installed

# Removes the files of an installation, and the folders that only it had.
remove() {
  while IFS= read -r file; do
    case $file in
      *..*) fail "$list names $file, which this script never installs; remove dyno by hand" ;;
      bin/dyno | share/*dyno*) rm -f "$to/$file" ;;
      *) fail "$list names $file, which this script never installs; remove dyno by hand" ;;
    esac
  done <"$list"
  rm -f "$list"
  for folder in share/dyno share/man/man1 share/man share/bash-completion/completions share/bash-completion \
    share/zsh/site-functions share/zsh share/fish/vendor_completions.d share/fish; do
    rmdir "$to/$folder" 2>/dev/null || true
  done
}

if [ -n "$uninstall" ]; then
  [ -f "$list" ] || fail "dyno was not installed below $to by this script ($list is missing)"
  number=$(wc -l <"$list")
  remove
  echo "removed $((number)) files below $to; runs and settings stay where they are"
  exit 0
fi

[ "$(uname -s)" = Linux ] || fail "dyno runs on Linux; this is $(uname -s)"
arch=$(uname -m)
case $arch in
  x86_64 | aarch64) ;;
  amd64) arch=x86_64 ;;
  arm64) arch=aarch64 ;;
  *) fail "there is no program for $arch, only for x86_64 and aarch64" ;;
esac
if [ -e "$program" ] && [ ! -f "$list" ]; then
  fail "$program is there and was not installed by this script: remove it, or say --to DIR"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

# fetch NAME: a file of the release, into $work.
fetch() {
  case $from in
    http://* | https://*)
      if command -v curl >/dev/null; then
        curl -fsSL -o "$work/$1" "${from%/}/$1" || fail "${from%/}/$1 cannot be fetched"
      elif command -v wget >/dev/null; then
        wget -q -O "$work/$1" "${from%/}/$1" || fail "${from%/}/$1 cannot be fetched"
      else
        fail "neither curl nor wget is installed: fetch the files of the release and give their folder"
      fi
      ;;
    *://*) fail "$from: expected a folder, or an address with http:// or https://" ;;
    *)
      [ -d "$from" ] || fail "$from is no folder"
      [ -f "$from/$1" ] || fail "$from/$1 is missing"
      cp "$from/$1" "$work/$1"
      ;;
  esac
}

fetch SHA256SUMS
sed -n "s/^[0-9a-f]\{64\} [ *]\(dyno-[0-9A-Za-z.+-]*-$arch-unknown-linux-musl\.tar\.gz\)\$/\1/p" "$work/SHA256SUMS" >"$work/names"
case $(($(wc -l <"$work/names"))) in
  0) fail "SHA256SUMS of $from names no archive for $arch" ;;
  1) ;;
  *) fail "SHA256SUMS of $from names several archives for $arch: $(tr '\n' ' ' <"$work/names")" ;;
esac
archive=$(cat "$work/names")
fetch "$archive"
expected=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$archive\$/\1/p" "$work/SHA256SUMS")
if command -v sha256sum >/dev/null; then
  found=$(sha256sum <"$work/$archive")
elif command -v shasum >/dev/null; then
  found=$(shasum -a 256 <"$work/$archive")
else
  fail "neither sha256sum nor shasum is installed: the archive cannot be checked"
fi
[ "${found%% *}" = "$expected" ] || fail "$archive: wrong checksum
  SHA256SUMS says $expected
  the file has    ${found%% *}"

name=${archive%.tar.gz}
tar -xzf "$work/$archive" -C "$work" || fail "$archive cannot be unpacked"
version=$("$work/$name/dyno" --version) || fail "the program of $archive does not run here"

# What an older version installed goes first.
[ ! -f "$list" ] || remove
mkdir -p "$share/dyno"
: >"$list"
# put MODE FILE PLACE
put() {
  mkdir -p "$(dirname "$to/$3")"
  echo "$3" >>"$list"
  # A program that runs keeps its file.
  rm -f "$to/$3"
  cp "$work/$name/$2" "$to/$3"
  chmod "$1" "$to/$3"
}
put 755 dyno bin/dyno
for page in "$work/$name"/man/*.1; do
  put 644 "man/${page##*/}" "share/man/man1/${page##*/}"
done
put 644 completions/dyno share/bash-completion/completions/dyno
put 644 completions/_dyno share/zsh/site-functions/_dyno
put 644 completions/dyno.fish share/fish/vendor_completions.d/dyno.fish
# So that it can be removed without the release.
put 755 install.sh share/dyno/install.sh

cat <<S
installed $version
  program       $program
  manual pages  $share/man/man1
  completions   bash: $share/bash-completion/completions
                fish: $share/fish/vendor_completions.d
                zsh:  $share/zsh/site-functions (has to be in your fpath)
To remove it: sh '$share/dyno/install.sh'$again --uninstall
S
first=$(command -v dyno || true)
case :$PATH: in
  *":$to/bin:"*) [ "$first" = "$program" ] || echo "Note: \`dyno\` starts $first, which is before $to/bin in PATH" ;;
  *) echo "Note: $to/bin is not in PATH; add it, or type $program" ;;
esac
