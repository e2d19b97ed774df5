//! MongoDB and what speaks its protocol (FerretDB), by dyno's own codec or by the official driver: protocol, target, servers,
//! monitors, copies for proofs.

pub mod admin;
pub mod cluster;
pub mod command_error;
pub mod connection;
pub mod copies;
pub mod dns;
pub mod ferretdb;
pub mod monitors;
#[cfg_attr(not(feature = "official"), path = "without_official.rs")]
pub mod official;
#[cfg(feature = "official")]
pub mod official_driver;
pub mod probe;
pub mod protocol;
pub mod server;
pub mod server_status;
pub mod target;
