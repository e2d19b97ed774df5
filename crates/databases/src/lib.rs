//! Databases: one module each, and what is common to them.
//!
//! A module describes its database to the rest of dyno by three traits of [`target`]: a `Database` reads target URIs, a
//! `Target` is where the load goes to, before anything was said to it, an `OpenTarget` is one that has answered. They are met
//! once a phase: the engine applies the load, and `OpenTarget::apply` chooses its driver or store. [`registry::ALL`] lists the
//! databases.

pub mod ask;
pub mod cluster;
pub mod collections;
pub mod container;
pub mod copies;
pub mod dragonfly;
pub mod embedded;
pub mod ferretdb;
pub mod memcached;
pub mod mongodb;
pub mod node;
pub mod null;
pub mod probe;
pub mod protocol;
pub mod protocol_detection;
pub mod redis;
pub mod registry;
pub mod servers;
pub mod sim;
pub mod spawn;
pub mod spawned;
pub mod target;
pub mod target_error;
