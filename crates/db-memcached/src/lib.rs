//! memcached: its protocol, target, servers and monitors.

pub mod monitors;
pub mod protocol;
pub mod server;
pub mod stats;
pub mod target;
