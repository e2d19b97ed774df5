//! Redis and what speaks its protocol: Valkey, Dragonfly, KeyDB.
//!
//! `resp` reads and writes RESP2 and RESP3, `options` holds everything a user can set, `cluster` maps keys to nodes,
//! `driver` turns requests into commands and replies into outcomes (`state`: what it knows, `exchange`: an operation in
//! flight), `index` is the sorted set of keys, `facts` asks a server what it is.
//!
//! The data model is that of YCSB's Redis binding: a record is a hash `key -> field -> value`, and the sorted set
//! `_indices` holds every key with the Java hash of the key as its score.

mod batch;
mod cluster;
mod command_templates;
mod commands;
mod documents;
mod driver;
mod errors;
mod exchange;
mod facts;
mod index;
mod messages;
mod options;
mod recorded;
mod records;
pub mod resp;
mod state;

pub use cluster::{ClusterTopology, SLOTS, crc16, hash_tag, key_slot};
pub use errors::classify_error;
pub use exchange::RedisExchange;
pub use facts::RedisFacts;
pub use options::{Index, ReadFrom, RecordLayout, RedisOptions};
pub use state::RedisDriver;
