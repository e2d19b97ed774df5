//! Names of the kinds of servers that dyno starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Kind of server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerKind {
    /// redis-server.
    Redis,
    /// valkey-server.
    Valkey,
    /// keydb-server.
    KeyDb,
    /// Dragonfly.
    Dragonfly,
    /// mongod.
    Mongod,
    /// FerretDB 1.x with its SQLite backend.
    FerretDb,
    /// memcached.
    Memcached,
}

impl ServerKind {
    /// All kinds, in the order of messages.
    pub const ALL: [ServerKind; 7] = [
        ServerKind::Redis,
        ServerKind::Valkey,
        ServerKind::KeyDb,
        ServerKind::Dragonfly,
        ServerKind::Mongod,
        ServerKind::FerretDb,
        ServerKind::Memcached,
    ];
}
