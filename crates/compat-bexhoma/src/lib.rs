//! bexhoma: its command line and configuration as experiments.

pub mod catalogue;
pub mod front;
pub mod plan;
pub mod promql;

dyno_frontend::usage_errors!(crate::plan::config::ConfigError, crate::plan::flags::FlagError);
