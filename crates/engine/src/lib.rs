//! The load path: arrivals, reactor, connections, TLS, load threads, and the run that holds them together.
//!
//! `arrivals` says when, `claim` hands out indexes, `net` is the kernel (or a virtual clock), `event_loop` is the load
//! thread of networked databases, `thread_per_user` that of embedded stores, `run` starts threads, `merge` adds up their seconds.

pub mod affinity;
pub mod arrivals;
mod claim;
mod event_loop;
pub mod files;
mod job;
mod merge;
pub mod net;
pub mod null;
pub mod rates;
mod run;
mod run_error;
mod shared;
pub mod sim;
mod thread_per_user;

pub use job::{
    Clock, Control, End, Gate, INTERVAL_NS, Job, LateUsers, Pacing, Queue, Retry, Team, every_nth, share_of,
};
pub use merge::{Finished, Second};
pub use run::{run_blocking, run_null, run_on, run_virtual, run_wire};
pub use run_error::RunError;
