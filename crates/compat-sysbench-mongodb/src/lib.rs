//! sysbench-mongodb: its configurations, its load, and what it prints.

pub mod plan;
pub mod report;
pub mod work;
