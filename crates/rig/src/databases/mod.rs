//! Databases: one module each, and what is common to them.
//!
//! A module describes its database to the rest of dyno by three traits. A [`Database`] reads target URIs; a [`Target`] is where
//! the load goes to, before anything was said to it; an [`OpenTarget`] is one that has answered. They are met once a phase: the
//! load itself is applied by the engine, whose drivers and stores are chosen in [`OpenTarget::apply`]. [`registry::ALL`] lists the
//! databases.

mod ask;
mod collections;
mod embedded;
pub mod memcached;
pub mod mongodb;
mod null;
pub(crate) mod probe;
pub mod redis;
pub mod registry;
mod sim;
mod spawned;
mod spoken;
pub mod target;

pub use collections::Collections;
pub use embedded::open_store;
pub use probe::Stop;
pub use registry::{ALL, parse, parse_for, schemes};
pub use spoken::Protocol;
pub use target::{Client, Database, OpenTarget, Scheme, Target, TargetError, TargetInfo, TempServer};
pub(crate) use target::{Nothing, WATCHED, tls_words};
