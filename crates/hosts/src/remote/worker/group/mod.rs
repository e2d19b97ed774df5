//! Several workers of one host behind one connection.
//!
//! ```text
//! controller                      host                         workers
//!   pool member 4 -- frame of 0 --\
//!   pool member 5 -- frame of 1 ---- dyno worker --group --stdio ---- dyno worker --stdio, twice
//!                <-- frame of 0 ---/   adds up their seconds
//!                <-- sum of both -/
//! ```
//!
//! A node of Kubernetes is such a host, too: the group runs in the first of its pods, and reaches the workers of the others by
//! the relay's sealed connections.

pub(crate) mod controller;
pub mod host;
