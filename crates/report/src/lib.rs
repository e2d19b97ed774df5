//! What people read of runs. Nothing here prints: texts go to whoever asked for them.
//!
//! `summary` is what a person reads after a run, `experiment` the table of an experiment, `comparison` what `dyno compare` says,
//! `faults` what faults did, `tuning` what tunings have found, `rebuilt` summaries of runs that have none, `worth` throughput
//! for a core and for money; `html` is the report as a page, `markdown` as `summary.md`, `grafana` makes dashboards.

pub mod comparison;
pub mod experiment;
pub mod faults;
pub mod grafana;
pub mod html;
pub mod markdown;
pub mod monitored;
pub mod rebuilt;
pub mod summary;
pub mod tuning;
pub mod worth;
