#!/usr/bin/env bash
# The files of a release: each is installed and run where nothing of this host is: the program alone and the image's layer in a root
# of their own, the Debian package in a root of dpkg's, the wheel in a fresh environment without a network, install.sh from a folder
# and from an HTTP server on loopback. DIST names a folder that `make dist` made; without it this host's architecture is built.
set -u
cd "$(dirname "$0")/.."
arch=$(uname -m)
work=$(mktemp -d "${TMPDIR:-/tmp}/dyno-dist.XXXXXX")
server=
end() {
  [ -z "$server" ] || kill "$server"
  rm -rf "$work"
}
trap end EXIT
dist=${DIST:-$(scripts/dist.sh "$arch")}
dist=$(cd "$dist" && pwd) || exit 1
passed=0 broken=0 skipped=0

# try TITLE COMMAND...: counts it, and shows what it said where it failed.
try() {
  local title=$1 begun=$SECONDS status
  shift
  # Not as a condition, where a shell goes on after a failure.
  (set -e; "$@") >"$work/log" 2>&1
  status=$?
  if [ "$status" = 0 ]; then
    passed=$((passed + 1))
    echo "ok: $title ($((SECONDS - begun)) s)"
  else
    broken=$((broken + 1))
    echo "FAILED: $title (exit code $status)"
    tail -n 20 "$work/log"
  fi
}

skip() {
  echo "SKIPPED: $1"
  skipped=$((skipped + 1))
}

# refuses WORDS COMMAND...: the command fails and says WORDS.
refuses() {
  local words=$1
  shift
  if "$@" >"$work/said" 2>&1; then
    echo "expected a refusal ($words): $*" && cat "$work/said" && return 1
  fi
  grep -qF -- "$words" "$work/said" || { echo "expected: $words" && cat "$work/said" && return 1; }
}

# Whether the load was judged (exit code 5) is this machine's matter.
judged() { "$@" || [ $? = 5 ]; }

# measures OUT COMMAND...: version, and a run that leaves a summary in OUT.
measures() {
  local out=$1
  shift
  "$@" --version | grep -qx "dyno $version"
  judged "$@" run sim: --duration 1s --out "${inner:-$out}" --quiet
  python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["version"]' "$out/summary.json"
}

# Namespaces of its own: no network, no process of this host, another root.
inside() {
  local root=$1
  shift
  unshare --user --map-root-user --net --mount --pid --fork --root="$root" --wd=/ "$@"
}

isolated=
if unshare --user --map-root-user --net --mount --pid --fork true 2>"$work/log"; then isolated=1; fi

archive=$(cd "$dist" && echo dyno-*-"$arch"-unknown-linux-musl.tar.gz)
version=${archive#dyno-}
version=${version%-"$arch"-*}
name=${archive%.tar.gz}
tar -xzf "$dist/$archive" -C "$work" || exit 1

checksums() {
  cd "$dist"
  sha256sum --check --quiet SHA256SUMS
  for file in *; do
    [ "$file" = SHA256SUMS ] || grep -qF "  $file" SHA256SUMS || { echo "$file has no checksum" && return 1; }
  done
}

# static FILE ARCH: an ELF file of this machine type that asks for no interpreter and has no symbols.
static() {
  python3 - "$1" "$2" <<'P'
import struct, sys
data = open(sys.argv[1], "rb").read()
machine, = struct.unpack_from("<H", data, 18)
assert data[:5] == b"\x7fELF\x02" and machine == {"x86_64": 62, "aarch64": 183}[sys.argv[2]], machine
programs, sections = struct.unpack_from("<QQ", data, 32)
size, count, width, number = struct.unpack_from("<HHHH", data, 54)
assert all(struct.unpack_from("<I", data, programs + size * one)[0] != 3 for one in range(count)), "asks for an interpreter"
assert all(struct.unpack_from("<I", data, sections + width * one + 4)[0] != 2 for one in range(number)), "has symbols"
P
}

programs_are_static() {
  local one each=$work/each
  mkdir "$each"
  for one in "$dist"/dyno-*.tar.gz; do
    tar -xzf "$one" -C "$each"
    one=${one##*/}
    one=${one%-unknown-linux-musl.tar.gz}
    static "$each/$one-unknown-linux-musl/dyno" "${one##*-}"
  done
}

alone() {
  mkdir -p "$work/alone/tmp" && cp "$work/$name/dyno" "$work/alone"
  inner=/tmp/run measures "$work/alone/tmp/run" inside "$work/alone" /dyno
}

# A root in which dpkg installs the package and removes it again.
deb() {
  local root=$work/deb package left
  case $arch in x86_64) package=$(echo "$dist"/dyno_*_amd64.deb) ;; *) package=$(echo "$dist"/dyno_*_arm64.deb) ;; esac
  mkdir -p "$root"/var/lib/dpkg/{info,updates,triggers} "$root/tmp" && : >"$root/var/lib/dpkg/status"
  dpkg --root="$root" --force-not-root --force-script-chrootless --log="$work/dpkg.log" --install "$package"
  for file in usr/bin/dyno usr/share/man/man1/dyno-run.1.gz usr/share/bash-completion/completions/dyno \
    usr/share/zsh/vendor-completions/_dyno usr/share/fish/vendor_completions.d/dyno.fish usr/share/doc/dyno/copyright \
    usr/share/doc/dyno/THIRD-PARTY-LICENSES.txt.gz usr/share/doc/dyno/docs/first-run.md; do
    [ -f "$root/$file" ] || { echo "$file is missing" && return 1; }
  done
  cmp "$root/usr/bin/dyno" "$work/$name/dyno"
  [ -z "$isolated" ] || inner=/tmp/run measures "$root/tmp/run" inside "$root" /usr/bin/dyno
  dpkg --root="$root" --force-not-root --force-script-chrootless --log="$work/dpkg.log" --purge dyno
  left=$(find "$root" -path "$root/usr/*" -name '*dyno*')
  [ -z "$left" ] || { echo "left behind: $left" && return 1; }
}

# Without a network where namespaces can be made.
wheel() {
  python3 -m venv "$work/venv"
  ${isolated:+unshare --user --map-root-user --net} "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index \
    "$(echo "$dist"/dyno_bench-*"$arch".whl)"
  cmp "$work/venv/bin/dyno" "$work/$name/dyno"
  measures "$work/wheel-run" "$work/venv/bin/dyno"
  "$work/venv/bin/pip" uninstall --quiet --yes dyno-bench
  [ ! -e "$work/venv/bin/dyno" ]
}

# The layer is unpacked by its digests, and what the image would start is started.
image() {
  python3 - "$dist/dyno-$version-$arch.oci.tar" "$work/image" >"$work/entry" <<'P'
import gzip, hashlib, io, json, sys, tarfile
archive = tarfile.open(sys.argv[1])
def blob(described):
    data = archive.extractfile("blobs/" + described["digest"].replace(":", "/")).read()
    assert len(data) == described["size"] and "sha256:" + hashlib.sha256(data).hexdigest() == described["digest"]
    return data
assert json.load(archive.extractfile("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
index = json.load(archive.extractfile("index.json"))
manifest = json.loads(blob(index["manifests"][0]))
config = json.loads(blob(manifest["config"]))
(layer,), (plain,) = manifest["layers"], config["rootfs"]["diff_ids"]
data = gzip.decompress(blob(layer))
assert "sha256:" + hashlib.sha256(data).hexdigest() == plain
saved, = json.load(archive.extractfile("manifest.json"))
assert saved["Config"].endswith(manifest["config"]["digest"][7:]) and saved["Layers"][0].endswith(layer["digest"][7:])
tarfile.open(fileobj=io.BytesIO(data)).extractall(sys.argv[2])
settings = config["config"]
print(settings["User"], settings["WorkingDir"], " ".join([*settings["Env"], *settings["Entrypoint"]]), sep="\n")
P
  grep -q 'BEGIN CERTIFICATE' "$work/image/etc/ssl/certs/ca-certificates.crt"
  [ -k "$work/image/tmp" ] && [ -k "$work/image/work" ]
  # The image's user (as root; others can be none but themselves), environment, working folder, and its entry point, looked up in PATH.
  local user folder entry as=(--user --map-root-user)
  { read -r user && read -r folder && read -ra entry; } <"$work/entry"
  [ "$(id -u)" != 0 ] || as=(--setuid "$user" --setgid "$user")
  chmod 755 "$work" "$work/image"
  inner=$folder/run measures "$work/image$folder/run" env -i "${entry[@]:0:${#entry[@]}-1}" \
    "$(command -v unshare)" "${as[@]}" --net --mount --pid --fork --root="$work/image" --wd="$folder" "${entry[-1]}"
  [ "$(id -u)" != 0 ] || [ "$(stat -c %u "$work/image$folder/run")" = "$user" ]
}

# Where both architectures were built, one image names them.
both() {
  python3 - "$dist/dyno-$version.oci.tar" <<'P'
import json, sys, tarfile
archive = tarfile.open(sys.argv[1])
read = lambda described: json.load(archive.extractfile("blobs/" + described["digest"].replace(":", "/")))
named, = json.load(archive.extractfile("index.json"))["manifests"]
assert sorted(one["platform"]["architecture"] for one in read(named)["manifests"]) == ["amd64", "arm64"]
P
}

engine() {
  "$1" load -i "$dist/dyno-$version-$arch.oci.tar"
  "$1" run --rm "localhost/dyno:$version" --version | grep -qx "dyno $version"
  "$1" rmi "localhost/dyno:$version"
}

install_from() {
  local home=$work/home
  mkdir -p "$home"
  env -i HOME="$home" PATH="$home/.local/bin:$PATH" sh "$dist/install.sh" "$1"
  cmp "$home/.local/bin/dyno" "$work/$name/dyno"
  measures "$work/run-of-$2" env -i HOME="$home" PATH="$home/.local/bin:/usr/bin:/bin" dyno
  for file in man/man1/dyno.1 bash-completion/completions/dyno zsh/site-functions/_dyno fish/vendor_completions.d/dyno.fish; do
    [ -f "$home/.local/share/$file" ] || { echo "$file is missing" && return 1; }
  done
  # Once more over what is there, then away, without the release.
  env -i HOME="$home" PATH="$PATH" sh "$dist/install.sh" "$1"
  env -i HOME="$home" PATH="$PATH" sh "$home/.local/share/dyno/install.sh" --uninstall
  rmdir "$home/.local/bin"
  local left
  left=$(find "$home" -name '*dyno*' -not -path '*/dyno-runs*' -type f)
  [ -z "$left" ] || { echo "left behind: $left" && return 1; }
}

# A release with something wrong, a host with something wrong: nothing is installed.
refusals() {
  local home=$work/nothing bad=$work/bad
  mkdir -p "$home" "$work/bin" && cp -r "$dist" "$bad"
  local at="env HOME=$home sh $dist/install.sh"
  # shellcheck disable=SC2086
  {
    refuses "usage:" $at
    refuses "is no folder" $at "$work/none"
    refuses "expected a folder, or an address" $at ftp://127.0.0.1/
    refuses "unknown option" $at --prefix "$dist"
    refuses "was given before" $at "$dist" "$dist"
    refuses "was not installed" $at --uninstall
    printf x >>"$bad/$archive"
    refuses "wrong checksum" $at "$bad"
    rm "$bad/$archive"
    refuses "$archive is missing" $at "$bad"
    grep -v "$arch-unknown-linux-musl.tar.gz" "$dist/SHA256SUMS" >"$bad/SHA256SUMS" || true
    refuses "names no archive for $arch" $at "$bad"
    rm "$bad/SHA256SUMS"
    refuses "SHA256SUMS is missing" $at "$bad"
    printf '#!/bin/sh\n[ "$1" = -m ] && echo riscv64 || echo Linux\n' >"$work/bin/uname" && chmod +x "$work/bin/uname"
    refuses "no program for riscv64" env "PATH=$work/bin:$PATH" $at "$dist"
    mkdir -p "$home/.local/bin" && echo other >"$home/.local/bin/dyno"
    refuses "was not installed by this script" $at "$dist"
  }
  [ "$(cat "$home/.local/bin/dyno")" = other ]
  [ ! -e "$home/.local/share" ]
}

# Every library that is in the program, and none of tests.
sbom() {
  python3 - "$dist/$name.cdx.json" "$version" <<'P'
import json, sys
text = open(sys.argv[1]).read()
assert "file://" not in text.replace("file:///dyno/", "").replace("file://.", ""), "paths of a machine"
bom = json.loads(text)
assert bom["bomFormat"] == "CycloneDX" and bom["metadata"]["component"]["name"] == "dyno", bom["metadata"]["component"]
assert bom["metadata"]["component"]["version"] == sys.argv[2]
names = {one["name"] for one in bom["components"]}
for name in ("redb", "rustls", "libsqlite3-sys", "hdrhistogram", "dyno-engine"):
    assert name in names, name
for name in ("proptest", "vt100", "mongodb"):
    assert name not in names, name
P
}

try "checksums of all files" checksums
try "programs are static, without symbols" programs_are_static
[ ! -e "$dist/dyno-$version.oci.tar" ] || try "the image of both architectures" both
if [ -n "$isolated" ]; then
  try "the program alone, in an empty root" alone
  try "the image's layer, as a container" image
else
  skip "the program and the image in roots of their own: unshare cannot make namespaces here ($(tail -n 1 "$work/log"))"
fi
if command -v dpkg >/dev/null; then try "the Debian package" deb; else skip "the Debian package: dpkg is not installed"; fi
if python3 -m venv --help >/dev/null 2>&1; then try "the wheel" wheel; else skip "the wheel: python3 has no venv"; fi
engines=0
for one in podman docker; do
  if "$one" info >/dev/null 2>&1; then engines=1 && try "the image in $one" engine "$one"; fi
done
[ "$engines" = 1 ] || skip "the image in a container engine: neither podman nor docker runs here"
try "install.sh from a folder" install_from "$dist" folder
(cd "$dist" && exec python3 - "$work/port") >"$work/server" 2>&1 <<'P' &
import http.server, os, sys
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open(sys.argv[1] + ".part", "w") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".part", sys.argv[1])
server.serve_forever()
P
server=$!
until [ -s "$work/port" ]; do
  kill -0 "$server" 2>/dev/null || { cat "$work/server" && exit 1; }
  sleep 0.1
done
address=http://127.0.0.1:$(cat "$work/port")
if command -v curl >/dev/null || command -v wget >/dev/null; then
  try "install.sh from an address" install_from "$address" address
  try "install.sh refuses an address without a release" refuses "SHA256SUMS cannot be fetched" env HOME="$work" sh "$dist/install.sh" "$address/none"
else
  skip "install.sh from an address: neither curl nor wget is installed"
fi
try "install.sh refuses what is wrong" refusals
try "the list of libraries" sbom
try "action.yml with these files" env DIST="$dist" DYNO="$work/$name/dyno" scripts/test-action.sh
echo "$passed passed, $broken failed, $skipped skipped"
[ "$broken" = 0 ]
