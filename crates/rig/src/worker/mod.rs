//! Both ends of the worker protocol, and what travels between them.
//!
//! A worker is this program in a process of its own: it applies load and nothing else, under the placement and the limits
//! that the controller starts it with. `frame` is how messages are cut, `serve` the worker's end, `pool` the
//! controller's, `spawn` the start of a worker, `clocks` what other hosts' clocks say, `cut_short` what ends a phase early.
//!
//! ```text
//! controller                      worker
//!   hello          ------------->           (version, clock)
//!                  <-------------  hello
//!   assign         ------------->           opens the target, reads the work
//!                  <-------------  ready    (or failed)
//!   prepare        ------------->           the first worker of a target: collections, are records there?
//!                  <-------------  prepared
//!   clock          ------------->           of workers on other hosts, several times
//!                  <-------------  clock
//!   start PHASE    ------------->           connects
//!                  <-------------  connected
//!   begin AT       ------------->           the same instant for all
//!                  <-------------  interval, each second
//!                  <-------------  done
//!   ping           ------------->           five times a second: a worker that hears nothing for its lease stops its load
//!   stop, abort    ------------->           any time
//! ```

mod clocks;
mod cut_short;
mod frame;
mod gather;
mod messages;
mod pool;
mod pool_error;
mod serve;
mod spawn;

pub use crate::collection_stats::{CollectionStats, Part};
pub(crate) use cut_short::CutShort;
pub use frame::{FRAME_BYTES, Frame, FrameError, read_frame, write_frame};
pub use messages::{Assignment, Done, FromWorker, LEASE_MS, PROTOCOL, Stage, ToWorker};
pub use pool::WorkerPool;
pub use pool_error::WorkerPoolError;
pub use serve::{ReadWork, serve};
pub use spawn::{Start, WorkerSpec};
