//! Every output format.

pub mod ycsb;
