//! Other hosts: the transport to them (`ssh`, `relay`), the program there (`deploy`), and what is done there in this host's name.
//!
//! ```text
//! this host                                    another host
//!   worker pool   --- ssh HOST dyno worker --stdio ---  applies load
//!   remote_agent  --- ssh HOST dyno host --stdio   ---  agent: starts servers as `servers` does, reads monitors
//! ```
//!
//! No ports, no daemons, no credentials of our own: who may speak is decided by ssh. Both programs end, and take with them
//! what they have started, when their pipe closes. In pods the same programs are spoken to through the `relay`.

pub mod agent;
pub mod channel;
pub mod deploy;
mod records;
pub mod relay;
pub mod remote_agent;
pub mod ssh;
pub mod transport;
pub mod worker;
