//! Other hosts: the way to them (`ssh`), the program there (`deploy`), and what is done there in this host's name.
//!
//! ```text
//! this host                                    another host
//!   worker pool   --- ssh HOST dyno worker --stdio ---  applies load
//!   far    --- ssh HOST dyno host --stdio   ---  agent: starts servers as `local` does, reads monitors
//! ```
//!
//! No ports, no daemons, no credentials of our own: who may speak is decided by ssh. Both programs end, and take with them
//! what they have started, when their pipe closes. In pods the same programs are spoken to through the `relay`.

mod agent;
mod deploy;
mod far;
mod link;
mod messages;
mod ssh;
mod way;

pub use crate::offset::Offset;
pub use agent::agent;
pub use deploy::deploy;
pub use far::{Far, FarServer};
pub use link::{Input, Link, Running};
pub use messages::{FromHost, LEASE_MS, ToHost};
pub use ssh::{RemoteError, SshHost};
pub use way::{Pod, Way};
