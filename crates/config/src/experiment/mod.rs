//! Experiment files: from YAML to a plan of runs. Pure: nothing is started, opened or asked.
//!
//! `spec`, `strategies`, `traces` and `fault` are what can be said, `faults` when they come,
//! `flags` the options of `dyno run` that set a key, `recorded` what a run notes of it,
//! `check` and `strategy_check` what the types cannot say, `factors` what is varied (`series`: by numbers), `matrix` the
//! cells of that, `cell` one of them, `order` in which order runs are made, `estimate` how long that takes.
//!
//! ```text
//! text -> tree -- --set --> tree -- factors, overrides --> a tree for each cell --> Experiment for each cell
//!                                                          cells x repetitions, ordered --> runs
//! ```

pub mod cell;
pub mod check;
pub mod estimate;
pub mod factors;
pub mod fault;
pub mod faults;
pub mod flags;
pub mod kubernetes;
pub mod matrix;
pub mod order;
pub mod recorded;
pub mod series;
pub mod spec;
pub mod ssh;
pub mod strategies;
pub mod strategy_check;
pub mod traces;

pub use crate::experiment::cell::MatrixCell;
pub use crate::experiment::matrix::{ExperimentPlan, mask_text, masked_set, read_plan};
pub use crate::experiment::order::PlannedRun;
pub use crate::experiment::spec::*;
pub use crate::experiment::strategies::*;
pub use dyno_types::limits::RUNS;

/// The JSON Schema of experiment files.
pub fn json_schema_text() -> String {
    let schema = schemars::schema_for!(Experiment);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests;
