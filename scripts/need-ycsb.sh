#!/usr/bin/env bash
# Makes YCSB's own client available to the tests, or says what is missing: its core and a Redis client from Maven, and our
# binding (crates/cli/tests/servers/java) compiled against them. It rests in the user's cache; a second call does nothing.
set -u
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-ycsb"
ycsb=0.17.0
jedis=2.9.0
source=$(cd "$(dirname "$0")/.." && pwd)/crates/cli/tests/servers/java/RecordStore.java

say() {
  echo "$1: what needs it is skipped" >&2
  exit 1
}

fetch() (
  set -e
  work=$(mktemp -d "$home/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dyno</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>site.ycsb</groupId><artifactId>core</artifactId><version>$ycsb</version></dependency>
    <dependency><groupId>redis.clients</groupId><artifactId>jedis</artifactId><version>$jedis</version></dependency>
  </dependencies>
</project>
POM
  (cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$work/client")
  mv "$work/client" "$home/client-$ycsb"
)

mkdir -p "$home" || exit 1
command -v javac >/dev/null || say "javac is not installed and YCSB's client cannot be used"
if [ ! -d "$home/client-$ycsb" ]; then
  command -v mvn >/dev/null || say "mvn is not installed and YCSB's client cannot be fetched"
  # Not behind a condition, where `set -e` would mean nothing.
  fetch >"$home/fetch.log" 2>&1
  [ $? = 0 ] || say "YCSB's client cannot be fetched ($home/fetch.log)"
fi
if [ "$source" -nt "$home/client-$ycsb/RecordStore.class" ]; then
  javac -cp "$home/client-$ycsb/*" -d "$home/client-$ycsb" "$source" >"$home/javac.log" 2>&1 ||
    say "the binding for YCSB's client cannot be compiled ($home/javac.log)"
fi
