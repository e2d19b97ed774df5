//! Every output format. Nothing here prints: texts go to whoever asked for them.
//!
//! `summary` is what a person reads after a run, `ycsb` is what YCSB prints.

pub mod summary;
pub mod ycsb;
