//! The Workload Services Framework: its cases and variables as experiments, and the logs that it leaves.

pub mod folder;
pub mod plan;
pub mod report;
