//! memcached: its protocol, target, servers and monitors.

mod commands;
pub mod monitors;
pub mod protocol;
pub mod server;
pub mod stats;
pub mod target;
