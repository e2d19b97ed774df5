//! The list of databases ([`registry::ALL`]), and the servers that are started for a run. `dyno-db` has the interface of a
//! database; each has a crate of its own, `dyno-db-NAME`.

pub mod container;
pub mod null;
pub mod registry;
pub mod sim;
pub mod spawn;
pub mod spawned;
