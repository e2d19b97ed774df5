//! Proofs: so many records in so many seconds, each in so many places, none lost; and what is left after a failover.
//!
//! `dyno_db::copies` is what a proof asks of a database: the ledger takes down what was acknowledged, what failed, and
//! what is not known; records can be made again from their number. `drive` writes; `verify` looks everything up again on every
//! copy; `failover` kills primaries or cuts them off meanwhile; `embedded` kills the process that writes; `evidence` is what
//! else is taken down; `front`: the command.

pub mod drive;
pub mod embedded;
pub mod evidence;
pub mod failover;
pub mod front;
pub mod poc_documents;
pub mod verify;
