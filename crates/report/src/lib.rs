//! Texts that people read of runs. Nothing here prints: the caller gets the texts.
//!
//! `summary` is what a person reads after a run (`details`: what `-v` adds), `experiment` the table of an experiment,
//! `comparison` what `dyno compare` says, `faults` what faults did, `tuning` what tunings have found, `recompute_summary`
//! summaries of runs that have none, `cost_efficiency` throughput for a core and for money; `html` is the report as a page,
//! `markdown` as `summary.md`, `junit` as tests for CI, `grafana` makes dashboards.

pub mod comparison;
pub mod cost_efficiency;
pub mod details;
pub mod experiment;
pub mod faults;
pub mod grafana;
pub mod html;
pub mod junit;
pub mod latency_table;
pub mod markdown;
pub mod monitored;
pub mod recompute_summary;
mod replay;
pub mod style;
pub mod summary;
pub mod tuning;
