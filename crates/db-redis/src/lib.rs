//! Redis and what speaks its protocol (Valkey, KeyDB, Dragonfly): protocol, target, servers, monitors, copies for proofs.

pub mod client;
pub mod cluster;
mod commands;
pub mod copies;
pub mod dragonfly;
pub mod info;
pub mod monitors;
pub mod protocol;
pub mod server;
pub mod target;
