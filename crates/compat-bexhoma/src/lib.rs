//! bexhoma: its command line and configuration as experiments.

pub mod catalogue;
pub mod plan;
pub mod promql;
