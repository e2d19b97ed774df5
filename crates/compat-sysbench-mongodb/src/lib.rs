//! sysbench-mongodb: its configurations, and what it prints.

pub mod plan;
pub mod report;
