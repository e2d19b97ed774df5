//! Every output format. Nothing here prints: texts go to whoever asked for them.
//!
//! `summary` is what a person reads after a run, `ycsb`, `sysbench_mongodb` and `wsf` are what these programs print,
//! `grafana` makes dashboards.

pub mod experiment;
pub mod grafana;
mod monitored;
pub mod pocdriver;
pub mod summary;
pub mod sysbench_mongodb;
pub mod wsf;
pub mod ycsb;
