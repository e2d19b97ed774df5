//! YCSB: its command line, properties and bindings, its load and run as work, and the reports that it prints.

pub mod bindings;
#[cfg(feature = "front")]
pub mod front;
pub mod known;
pub mod open;
pub mod plan;
pub mod property;
pub mod report;
pub mod work;
