//! Interface of a database to the rest of dyno, and what several databases share.
//!
//! A database describes itself by three traits of [`target`]: a `Database` reads target URIs, a `Target` is where the load goes
//! to, before anything was said to it, an `OpenTarget` is one that has answered. They are met once a phase: the engine applies
//! the load, and `OpenTarget::apply` chooses its driver or store. [`servers`] has the trait of servers that dyno starts.

pub mod cluster;
pub mod collections;
pub mod command_target;
pub mod command_traffic;
pub mod copies;
pub mod monitor_connection;
pub mod names;
pub mod node;
pub mod probe;
pub mod protocol;
pub mod protocol_detection;
pub mod servers;
pub mod target;
pub mod target_error;
