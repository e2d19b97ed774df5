//! Redis and what speaks its protocol: Valkey, Dragonfly, KeyDB.
//!
//! `resp` reads and writes RESP2 and RESP3, `options` holds everything a user can set, `cluster` maps keys to nodes,
//! `driver` turns requests into commands and replies into outcomes, `facts` asks a server what it is.
//!
//! The data model is that of YCSB's Redis binding: a record is a hash `key -> field -> value`, and the sorted set
//! `_indices` holds every key with the Java hash of the key as its score.

mod batch;
mod cluster;
mod documents;
mod driver;
mod errors;
mod facts;
mod options;
mod records;
pub mod resp;

pub use crate::address::{Address, Tls};
pub use cluster::{SLOTS, Topology, key_slot};
pub use driver::{Exchange, RedisDriver, java_hash};
pub use errors::classify;
pub use facts::{Facts, FactsStep};
pub use options::{Index, Layout, ReadFrom, RedisOptions};
