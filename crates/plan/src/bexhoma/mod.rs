//! bexhoma's `ycsb` command: its flags, what they expand into, and the experiment file that does the same. Pure.
//!
//! ```text
//! words -- flags::parse --> Typed -- Options::read --> Options -- expand --> configurations, rounds, pods
//!                                                      Options -- lower --> the text of an experiment
//! ```

mod about;
mod config;
mod expand;
mod flags;
pub mod literal;
mod lower;
mod options;

pub use about::{About, about};
pub use config::{ClusterConfig, ConfigError, Context, Docker, Metric, MetricKind, read_config};
pub use expand::{Configuration, Job, Pod, Round, dropped, expand, share};
pub use flags::{FLAGS, Flag, FlagError, Mode, Standing, Takes, Typed, help, parse};
pub use lower::{Lowered, lower};
pub use options::{Dbms, Options};

#[cfg(test)]
mod tests;
