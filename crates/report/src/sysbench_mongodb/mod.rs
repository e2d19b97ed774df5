//! What sysbench-mongodb prints: header, a line each interval, its table, and the average that results are quoted with.
//!
//! Lines, columns and number formats are those of the two versions, checked against real outputs. Callers count, hand
//! in a [`Tick`] and get text; nothing is printed here.

mod average;
mod console;
mod header;

pub use average::{Average, BadTable, Window, average};
pub use console::{Reporter, Stage, Tick, Wording, finish, thread_line};
pub use header::{ExecuteHeader, LoadHeader};

#[cfg(test)]
mod golden_tests;
