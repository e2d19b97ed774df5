//! Other hosts: the way to them (`ssh`), the program there (`deploy`), and what is done there in this host's name.
//!
//! ```text
//! this host                                    another host
//!   worker pool   --- ssh HOST dyno worker --stdio ---  applies load
//!   far    --- ssh HOST dyno host --stdio   ---  agent: starts servers as `servers` does, reads monitors
//! ```
//!
//! No ports, no daemons, no credentials of our own: who may speak is decided by ssh. Both programs end, and take with them
//! what they have started, when their pipe closes. In pods the same programs are spoken to through the `relay`.

pub mod agent;
pub mod deploy;
pub mod far;
pub mod link;
mod records;
pub mod relay;
pub mod ssh;
pub mod way;
pub mod worker;
