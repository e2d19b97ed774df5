//! Samples of monitors: named figures, counters raw and cumulative.

use crate::prometheus::ScrapeError;
use std::path::PathBuf;

/// True if a series only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SeriesKind {
    /// Cumulative; its reader computes rates.
    Counter,
    /// A level.
    Gauge,
}

impl SeriesKind {
    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            SeriesKind::Counter => "counter",
            SeriesKind::Gauge => "gauge",
        }
    }
}

/// One figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Name of the series, with its unit at the end.
    pub name: String,
    /// Counter or gauge.
    pub kind: SeriesKind,
    /// The value; always finite.
    pub value: f64,
}

/// Readings of a source at one instant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    readings: Vec<Reading>,
}

impl Sample {
    /// Adds a counter. A value that is not finite is no value and left out.
    pub fn add_counter(&mut self, name: impl Into<String>, value: f64) {
        self.add_figure(name.into(), SeriesKind::Counter, value);
    }

    /// Adds a gauge. A value that is not finite is no value and left out.
    pub fn add_gauge(&mut self, name: impl Into<String>, value: f64) {
        self.add_figure(name.into(), SeriesKind::Gauge, value);
    }

    /// Adds a figure.
    pub fn add_figure(&mut self, name: String, kind: SeriesKind, value: f64) {
        if value.is_finite() {
            self.readings.push(Reading { name, kind, value });
        }
    }

    /// All figures, in the order of the source.
    pub fn all_readings(&self) -> &[Reading] {
        &self.readings
    }

    /// A figure by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.readings.iter().find(|r| r.name == name).map(|r| r.value)
    }

    /// Returns whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.readings.is_empty()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.readings.clear();
    }
}

/// Whatever keeps a database from answering.
pub type QueryError = Box<dyn std::error::Error + Send + Sync>;

/// A source has nothing to say now.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The process has not been started, or is being started anew.
    #[error("is not running")]
    NotRunning,
    /// The process with this number has ended.
    #[error("process {0} has ended")]
    Ended(u32),
    /// A file of the system cannot be read.
    #[error("{} cannot be read", .0.display())]
    Unreadable(PathBuf),
    /// A database cannot be asked, or gives no answer.
    #[error(transparent)]
    Query(QueryError),
    /// A database's answer to this question has no known figure.
    #[error("{0} says nothing that is known")]
    NothingKnown(&'static str),
    /// An exporter cannot be read.
    #[error("{url}: {source}")]
    Scrape {
        /// URL of the exporter.
        url: String,
        /// Cause.
        source: ScrapeError,
    },
}

/// Something that can be asked again and again.
pub trait Source: Send {
    /// Name: that of its file in the run directory.
    fn name(&self) -> &str;

    /// Adds what it says now; after an error the sample is missing.
    fn sample(&mut self, into: &mut Sample) -> Result<(), SampleError>;

    /// Returns whether it waits for a server or a network. Such a source gets a thread of its own, so that it delays no other.
    fn waits(&self) -> bool {
        false
    }
}
