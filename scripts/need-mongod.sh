#!/usr/bin/env bash
# Makes a real mongod and mongos (3.6.8, the last under AGPL) available to the tests where none is on PATH, or says what is missing.
# Ubuntu 20.04's packages and the libraries they name, checked by digest, unpacked into the user's cache without being installed.
set -u
# A mongos of another version beside the host's own mongod would be a mixture.
command -v mongod >/dev/null && exit 0
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-mongo"
[ -x "$home/mongod-3.6.8/bin/mongod" ] && exit 0
archive=http://archive.ubuntu.com/ubuntu/pool

say() {
  echo "$1: what needs mongod is skipped" >&2
  exit 1
}

packages='
main/b/boost1.71/libboost-filesystem1.71.0_1.71.0-6ubuntu6_amd64.deb 6793184cc2b8df0da401fdbe78fbf57ac598438177a6af163f99f9f1c14f9eb8
main/b/boost1.71/libboost-program-options1.71.0_1.71.0-6ubuntu6_amd64.deb 389095c7167251ee73667031a4c0f45083a31347cc95faddbdf5b7d22ac4c774
main/g/google-perftools/libgoogle-perftools4_2.7-1ubuntu2_amd64.deb be06998b03fac2ed2e5a74911ff9ea41b63630a94bfddac496f5422b3d51c12a
main/g/google-perftools/libtcmalloc-minimal4_2.7-1ubuntu2_amd64.deb fbb0cd8d46d794445d1c7aac9fe151ef814dc4f6e28f26157793999457425304
main/libu/libunwind/libunwind8_1.2.1-9ubuntu0.1_amd64.deb 269f62bfb9fc6d7e5bbfb600b8f688e2d94099ff9dc0fddc28351330915212d1
main/o/openssl/libssl1.1_1.1.1f-1ubuntu2.24_amd64.deb 7cf39d70a639017d1dd7c8d36daa2258063608688e449fddf40ffdd46f992a78
main/p/pcre3/libpcre3_8.39-12ubuntu0.1_amd64.deb 98c25f98cc8df949e774a7ebaff509c37a6baea4dab83786a3c1efecb850bfae
main/p/pcre3/libpcrecpp0v5_8.39-12ubuntu0.1_amd64.deb aa3849bf6ee28f8f55b88369b34346ee8c3a33e3ee337b1ccefa112516f2fb15
main/s/snappy/libsnappy1v5_1.1.8-1build1_amd64.deb 45656990b8613e70263cd4bacc8dd2c081ca1913d86952e95c11ba70db36d0b2
main/s/snowball/libstemmer0d_0%2bsvn585-2_amd64.deb ca98a75e3eb1d446215bfa194148a7005453b9204dfb1ad625130ee4aecd5235
main/y/yaml-cpp/libyaml-cpp0.6_0.6.2-4ubuntu1_amd64.deb fa32c293c9935750089d496d20da5edfa870fad741ab5822e43900ccb61483bb
universe/m/mongodb/mongodb-server-core_3.6.9%2breally3.6.8%2b90%7eg8e540c0b6d-0ubuntu5.3_amd64.deb d10f54f9790e708f020979222782e0ae90b82c9b26d22099c0b7ba23a6a6d1e0
'

[ "$(uname -m)" = x86_64 ] || say "no package of mongod 3.6.8 is known for $(uname -m)"
for tool in curl dpkg-deb sha256sum; do
  command -v "$tool" >/dev/null || say "$tool is not installed and mongod cannot be fetched"
done
mkdir -p "$home" || exit 1

fetch() (
  set -e
  work=$(mktemp -d "$home/fetch.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  while read -r path digest; do
    [ -n "$path" ] || continue
    curl -sfL --max-time 300 --retry 2 -o "$work/package" "$archive/$path"
    echo "$digest  $work/package" | sha256sum --check --status || { echo "$path: another digest than the one known"; exit 1; }
    dpkg-deb -x "$work/package" "$work/root"
  done <<<"$packages"
  rm "$work/package"
  # Programs that find their libraries beside themselves, whoever starts them.
  mkdir "$work/bin"
  for program in mongod mongos; do
    cat >"$work/bin/$program" <<'PROGRAM'
#!/bin/sh
home=$(dirname "$(readlink -f "$0")")/../root
export LD_LIBRARY_PATH="$home/usr/lib/x86_64-linux-gnu:$home/lib/x86_64-linux-gnu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$home/usr/bin/$(basename "$0")" "$@"
PROGRAM
    chmod +x "$work/bin/$program"
  done
  "$work/bin/mongod" --version
  "$work/bin/mongos" --version
  trap - EXIT
  rm -rf "$home/mongod-3.6.8"
  mv -T "$work" "$home/mongod-3.6.8"
  chmod 755 "$home/mongod-3.6.8"
)

# Not behind a condition, where `set -e` would mean nothing.
fetch >"$home/mongod.log" 2>&1
[ $? = 0 ] || say "mongod cannot be fetched ($home/mongod.log)"
