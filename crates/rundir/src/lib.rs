//! The run directory: the contract between what measures and what reports.
//!
//! `schema` holds every type that is written as JSON, `hlog` the histogram log, `series` the per-second CSV,
//! `intervals` the exact counters, `writer` creates a directory and fills it as the run goes, `reader` reads one back,
//! finished or not, `monitor` holds what monitors saw, `log` what dyno did. The format is described in
//! `docs/run-directory.md`.

mod experiment;
pub mod faults;
pub mod files;
#[cfg(test)]
mod fixtures;
pub mod hlog;
mod hosts;
pub mod imported;
mod interval_history;
mod intervals;
pub mod log;
pub mod monitor;
mod older_settings;
mod reader;
mod recorded;
pub mod schema;
pub mod series;
mod setting;
pub mod system;
pub mod tuning;
mod unit;
mod used;
mod verdict;
mod writer;

pub use experiment::{Again, EndedRun, ExperimentDir, RecordedCell, describe_progress};
pub use interval_history::{IntervalHistory, without_spoilt};
pub use intervals::{ImplausibleInterval, IntervalLine};
pub use reader::{ContentError, Event, ReadError, RecordedPhase, RunDir};
pub use recorded::{RecordedInterval, RecordedMetric};
pub use unit::{READ_MODIFY_WRITE, TRANSACTIONAL, adds_up, is_beside, is_element_count, unit_name};
pub use writer::{IntervalFacts, RunWriter, must_be_new};
