//! sysbench-mongodb: its configurations, its load, and what it prints.

#[cfg(feature = "front")]
pub mod front;
pub mod plan;
pub mod report;
pub mod work;
