//! Series that monitors saw: `monitor/SOURCE.csv` and `monitor/series.json`.
//!
//! One wide CSV a source: Unix time in milliseconds with three decimals, then a column for each series; an empty cell is
//! a missing value. A source whose set of series grows goes on in `SOURCE.2.csv`. Counters are kept raw; rates are
//! computed from them here, so that they can be cut exactly at the edges of phases.

mod reader;
mod table;
mod writer;

pub use table::{ELSEWHERE, PhaseSpan, RecordedSeries, Recording, WATCHED, WATCHED_BETWEEN};
pub use writer::{Column, MonitorWriter};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kind of a series: a counter only grows, a gauge does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Cumulative.
    Counter,
    /// A level.
    Gauge,
}

/// `series.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct SeriesIndex {
    /// Time between two ticks, milliseconds.
    interval_ms: f64,
    /// By name.
    sources: BTreeMap<String, SourceIndex>,
}

/// One source's files and series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct SourceIndex {
    /// In the order of time.
    files: Vec<String>,
    /// Kind by name.
    series: BTreeMap<String, Kind>,
}

/// Folder below the run directory.
const FOLDER: &str = "monitor";

#[cfg(test)]
mod tests;
