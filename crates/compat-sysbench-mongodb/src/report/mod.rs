//! Output of sysbench-mongodb: header, a line each interval, its table, and the average that results are quoted with.
//!
//! Lines, columns and number formats are those of the two versions, checked against real outputs. Callers count, hand
//! in a [`Tick`](console::Tick) and get text; nothing is printed here.

pub mod average;
pub mod console;
pub mod header;

#[cfg(test)]
mod golden_tests;
