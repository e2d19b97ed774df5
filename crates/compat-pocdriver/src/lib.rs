//! POCDriver: what it prints.

pub mod report;
