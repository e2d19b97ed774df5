//! Every output format. Nothing here prints: texts go to whoever asked for them.
//!
//! `grafana` makes dashboards, `summary` is what a person reads after a run, `experiment` the table of an experiment;
//! `html` is the report as a page, `markdown` as `summary.md`;
//! `ycsb`, `sysbench_mongodb`, `pocdriver` and `wsf` are what these programs print.

pub mod experiment;
pub mod grafana;
pub mod html;
pub mod markdown;
mod monitored;
pub mod pocdriver;
pub mod summary;
pub mod sysbench_mongodb;
pub mod wsf;
pub mod ycsb;
