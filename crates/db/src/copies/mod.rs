//! Questions that a proof asks of a database: primaries, copies, and what an acknowledgement stands for.

pub mod database;
pub mod ledger;
pub mod plan;
pub mod records;
pub mod sent;
