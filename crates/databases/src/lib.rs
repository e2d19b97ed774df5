//! The databases: one module each, and the list of them ([`registry::ALL`]). `dyno-db` has their interface.

pub mod container;
pub mod dragonfly;
pub mod embedded;
pub mod ferretdb;
pub mod memcached;
pub mod mongodb;
pub mod null;
pub mod redis;
pub mod registry;
pub mod sim;
pub mod spawn;
pub mod spawned;
