//! YCSB: its command line, properties and bindings, and the reports that it prints.

pub mod bindings;
pub mod known;
pub mod plan;
pub mod property;
pub mod report;
