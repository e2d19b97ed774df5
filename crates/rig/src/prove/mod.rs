//! Proofs: so many records in so many seconds, each in so many places, none lost; and what is left after a failover.
//!
//! `ledger` takes down what was acknowledged, what failed, and what nobody knows; `records` makes content that can be made
//! again from its number; `database` is what a proof asks of a database, `redis` and `mongo` are two of them; `drive`
//! writes; `verify` looks everything up again on every copy; `failover` kills primaries or cuts them off meanwhile;
//! `embedded` kills the process that writes; `evidence` is what else is taken down.

mod database;
mod drive;
mod embedded;
mod evidence;
mod failover;
mod ledger;
mod mongo;
mod records;
mod redis;
mod verify;

pub use database::{Behind, Database, DatabaseError, Durability, PreCheck};
pub use drive::{Course, IngestPlan, Written, ingest};
pub use embedded::{EmbeddedError, EmbeddedProof, Kill, embedded, write_embedded};
pub use evidence::{Lag, Sent, clocks};
pub use failover::{
    By, Curve, FailoverError, FailoverPlan, FailoverProof, Fates, PartitionError, Round, entrance, failover,
    inside,
};
pub use ledger::{Ledger, Range, Status};
pub use mongo::MongoSet;
pub use records::Records;
pub use redis::RedisSet;
pub use verify::{Copy, verify};

/// A document of fields, for tests.
#[cfg(test)]
fn document(fields: &dyn Fn(&mut Vec<u8>)) -> Vec<u8> {
    use dyno_types::bson;
    let mut out = Vec::new();
    let at = bson::open(&mut out);
    fields(&mut out);
    bson::close(&mut out, at);
    out
}
