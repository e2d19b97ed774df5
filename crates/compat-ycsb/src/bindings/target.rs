//! Targets of a load, as the settings of a binding describe them.

use dyno_db_memcached::protocol::MemcachedOptions;
use dyno_db_mongodb::protocol::MongoOptions;
use dyno_db_redis::protocol::RedisOptions;

/// Target of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindingTarget {
    /// A networked server that speaks Redis' protocol.
    Redis {
        /// Everything about the target.
        options: Box<RedisOptions>,
        /// Longest wait for a reply, nanoseconds; `None` for ever. `dyno.timeout` wins over `redis.timeout`.
        timeout_ns: Option<u64>,
    },
    /// A server that speaks MongoDB's protocol.
    Mongo {
        /// Everything about the target.
        options: Box<MongoOptions>,
        /// Longest wait for a reply, nanoseconds; `None` for ever.
        timeout_ns: Option<u64>,
    },
    /// memcached servers.
    Memcached {
        /// Everything about the target.
        options: Box<MemcachedOptions>,
        /// Longest wait for a reply, nanoseconds; `None` for ever.
        timeout_ns: Option<u64>,
    },
    /// A server that speaks MongoDB's protocol, by the official driver.
    Official {
        /// The URI, with its secrets.
        uri: String,
        /// Database, where the URI's own is not meant.
        database: Option<String>,
        /// Inserts replace a record that is there.
        upsert: bool,
        /// Longest wait for a reply, nanoseconds; `None` for ever.
        timeout_ns: Option<u64>,
    },
    /// An embedded store or a mock, for `dyno_db_embedded::open`.
    Store {
        /// URI of the store.
        uri: String,
    },
    /// Nothing.
    Null,
}
