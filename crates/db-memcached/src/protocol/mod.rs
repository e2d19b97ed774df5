//! memcached: records under keys, as values that the server does not look into.
//!
//! `reply` reads the replies of both text protocols, `meta` and `text` write the commands (`command`: what one is about),
//! `records` renders a record as one value, `ketama` maps keys to servers, `options` holds everything a user can set,
//! `driver` turns requests into commands and replies into outcomes, `commands` does so with commands of one's own (`own`: what
//! they are), `facts` asks a server what it is, `traffic` reads what other clients and their servers say.
//!
//! The data model is that of YCSB's memcached binding: a record is one value, a JSON object of strings. An insert is `add`, an
//! update is `replace`. Unlike the binding, an update of some fields keeps the others, and a read of a missing key is reported.
//! The binary protocol is deprecated, and UDP is off by default: neither is spoken.

mod command;
mod commands;
mod driver;
mod errors;
mod facts;
mod ketama;
mod meta;
mod options;
pub(crate) mod own;
mod records;
pub mod reply;
mod text;
pub mod traffic;

pub use driver::{Exchange, MemcachedDriver};
pub use errors::classify_error;
pub use facts::MemcachedFacts;
pub use ketama::{Ring, Servers};
pub use options::{Hash, Layout, MemcachedOptions, Protocol, Update};
