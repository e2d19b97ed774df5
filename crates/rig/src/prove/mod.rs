//! Proofs: so many records in so many seconds, each in so many places, none lost; and what is left after a failover.
//!
//! `ledger` takes down what was acknowledged, what failed, and what nobody knows; `records` makes content that can be made again
//! from its number; `redis` is Redis and its kin; `drive` writes; `verify` looks everything up again on every copy; `failover`
//! kills primaries meanwhile.

mod drive;
mod failover;
mod ledger;
mod records;
mod redis;
mod verify;

pub use drive::{Course, IngestPlan, Written, ingest};
pub use failover::{FailoverPlan, FailoverProof, Round, failover};
pub use ledger::{Ledger, Range, Status};
pub use redis::{Durability, PreCheck, RedisSet};
pub use verify::{Copy, verify};
