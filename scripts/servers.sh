# To be sourced: servers that `need` has put into the user's cache, cargo-nextest, cargo-deny and s3s-fs are found after those of the user's own PATH.
servers="${XDG_CACHE_HOME:-$HOME/.cache}"
command -v mongod >/dev/null || PATH="$PATH:$servers/dyno-mongo/mongod-3.6.8/bin"
export PATH="$PATH:$servers/dyno-valkey/bin:$servers/dyno-nextest/bin:$servers/dyno-deny/bin:$servers/dyno-s3/bin"
