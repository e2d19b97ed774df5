//! bexhoma: its command line and configuration as experiments.

pub mod plan;
