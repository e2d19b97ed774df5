#!/usr/bin/env bash
# Makes two servers that speak MongoDB's protocol available to the tests, or says what is missing: FerretDB (built from
# its Go module) and mongo-java-server (fetched by Maven). Both rest in the user's cache; a second call does nothing.
set -u
home="${XDG_CACHE_HOME:-$HOME/.cache}/dyno-mongo"
ferret=1.24.2
java_server=1.47.0
missing=0

say() {
  echo "$1: what needs it is skipped" >&2
  missing=1
}

# The module's own version list is refused by the proxy, and a plain build lacks the file that names the version.
build_ferretdb() (
  set -e
  work=$(mktemp -d "$home/build.XXXXXX")
  trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
  cd "$work"
  export GOTOOLCHAIN=local GOFLAGS=-mod=mod
  module=$(go mod download -json "github.com/FerretDB/FerretDB@v$ferret" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
  cp -R "$module" source
  chmod -R u+w source
  mkdir -p source/build/version
  echo "v$ferret" >source/build/version/version.txt
  cd source
  unset GOFLAGS
  go build -o "$work/ferretdb" ./cmd/ferretdb
  mv "$work/ferretdb" "$home/ferretdb-$ferret"
)

fetch_java_server() (
  set -e
  work=$(mktemp -d "$home/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  cat >"$work/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dyno</groupId><artifactId>tests</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>de.bwaldvogel</groupId><artifactId>mongo-java-server</artifactId><version>$java_server</version>
    </dependency>
  </dependencies>
</project>
POM
  cat >"$work/Serve.java" <<JAVA
import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;

public class Serve {
    public static void main(String[] arguments) throws Exception {
        MongoServer server = new MongoServer(new MemoryBackend());
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
        Thread.sleep(Long.MAX_VALUE);
    }
}
JAVA
  (cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory="$work/server")
  javac -cp "$work/server/*" -d "$work/server" "$work/Serve.java"
  mv "$work/server" "$home/mongo-java-server-$java_server"
)

mkdir -p "$home" || exit 1
if [ ! -x "$home/ferretdb-$ferret" ]; then
  if command -v go >/dev/null; then
    # Not behind a condition, where `set -e` would mean nothing.
    build_ferretdb >"$home/ferretdb.log" 2>&1
    [ $? = 0 ] || say "FerretDB cannot be built ($home/ferretdb.log)"
  else
    say "go is not installed and FerretDB cannot be built"
  fi
fi
if [ ! -d "$home/mongo-java-server-$java_server" ]; then
  if command -v mvn >/dev/null && command -v javac >/dev/null; then
    fetch_java_server >"$home/java-server.log" 2>&1
    [ $? = 0 ] || say "mongo-java-server cannot be fetched ($home/java-server.log)"
  else
    say "mvn or javac is not installed and mongo-java-server cannot be fetched"
  fi
fi
exit "$missing"
