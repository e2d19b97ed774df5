//! Both ends of the worker protocol, and what travels between them.
//!
//! A worker is this program in a process of its own: it applies load and nothing else, under the placement and the limits that
//! the controller starts it with. `crate::protocol` is what is said, `serve` the worker's end, `pool` the controller's, `member`
//! one worker of it, `spawn` its start, `clocks` what other hosts' clocks say, `abort_reason` what ends a phase early,
//! `sums` adds up what comes.
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
//!                  <-------------  the whole phase, done
//!   ping           ------------->           each second: a worker that hears nothing for its lease stops its load
//!   stop, abort    ------------->           any time
//! ```

pub mod abort_reason;
pub mod clocks;
mod event;
pub mod gather;
pub mod group;
mod member;
pub mod pool;
pub mod pool_error;
pub mod serve;
pub mod spawn;
mod sums;
