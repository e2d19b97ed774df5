//! Targets of a load, as the settings of a binding describe them.

use dyno_wire::memcached::MemcachedOptions;
use dyno_wire::mongodb::MongoOptions;
use dyno_wire::redis::RedisOptions;

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
    /// An embedded store or a mock, for `dyno_stores::open`.
    Store {
        /// URI of the store.
        uri: String,
    },
    /// Nothing.
    Null,
}
