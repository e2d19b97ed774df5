//! The journal of an experiment: what has begun and how it ended, one JSON line each, written before and after.

use dyno_rundir::{Again, files};
use dyno_types::secret::conceal_json;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// As planned; its verdict says how far it can be trusted.
    Complete,
    /// It could not be made, or its server or a worker died.
    Failed,
    /// By a signal; it is made again by `resume`.
    Interrupted,
}

/// Estimate of throughput from the intervals of a run's window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowEstimate {
    /// The window's throughput by the file's estimator, operations per second.
    pub figure: f64,
    /// Intervals in the window.
    pub intervals: usize,
    /// Mean of their throughputs.
    pub mean: f64,
    /// Half of its 95 % interval, as if they did not depend on each other; from two intervals on.
    pub half_width: Option<f64>,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Number of the cell, from 1.
    pub cell: usize,
    /// From 1.
    pub repetition: u32,
    /// Values that the strategy has set, such as `users=8`; empty for the grid.
    pub point: String,
    /// The value of that, for the strategy.
    pub value: f64,
    /// Directory below the experiment's.
    pub dir: String,
    /// End of the run.
    pub status: RunStatus,
    /// True if it failed because its target did not answer.
    #[serde(default)]
    pub unreachable: bool,
    /// True if it failed because a cluster or a host could not be reached, or because there was no room for its results.
    #[serde(skip)]
    pub out_of_reach: bool,
    /// True if its server did not start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub not_started: bool,
    /// Why it failed, or what speaks against it.
    #[serde(rename = "words")]
    pub cause: String,
    /// `valid`, `suspect` or `invalid`; empty if it has no summary.
    pub trust: String,
    /// Successful operations per second in the window, by the experiment's estimator; `None` if nothing was measured.
    pub throughput: Option<f64>,
    /// Scheduled arrivals per second (open loop).
    pub offered: Option<f64>,
    /// True if no threshold was missed.
    pub passed: bool,
    /// True if one was too close to call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_close: bool,
    /// Least margin of its thresholds, where they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// True if its queue grew from beginning to end: what was due is more than is done, however little.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overloaded: bool,
    /// True if it is invalid for a reason that is not the target's: it says nothing of what the target can do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub spoiled: bool,
    /// The window, if the file names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowEstimate>,
    /// Objective of a tuning, in the unit of its metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<f64>,
}

impl RunRecord {
    /// What is noted where it is made again.
    pub fn again(&self) -> Again {
        Again { cell: self.cell, repetition: self.repetition, point: self.point.clone() }
    }
}

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Entry {
    /// dyno has begun, or gone on.
    Begin {
        /// Process number.
        pid: u32,
    },
    /// A run begins.
    Run {
        /// Number of the cell, from 1.
        cell: usize,
        /// From 1.
        repetition: u32,
        /// Values that the strategy has set.
        point: String,
        /// Directory below the experiment's.
        dir: String,
    },
    /// A run has ended.
    Ended(RunRecord),
    /// A run that has ended counts no longer: it is made again.
    Again(Again),
    /// All runs that a controller's Job makes again are noted: its next pod notes none.
    AgainNoted {
        /// Identity of the Job.
        job: String,
    },
    /// The experiment has ended.
    End {
        /// `complete` or `interrupted`.
        status: String,
    },
}

#[derive(Serialize, Deserialize)]
struct JournalLine {
    at: String,
    #[serde(flatten)]
    entry: Entry,
}

/// A journal that is written on.
#[derive(Debug)]
pub struct OpenJournal {
    file: File,
}

impl OpenJournal {
    /// Opens it, or makes it. A line that a killed dyno has left unfinished is ended.
    pub fn open(path: &Path) -> io::Result<OpenJournal> {
        let text = match files::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        if text.last().is_some_and(|last| *last != b'\n') {
            file.write_all(b"\n")?;
        }
        Ok(OpenJournal { file })
    }

    /// Writes a line and waits until the disk has it.
    pub fn write(&mut self, entry: Entry) -> io::Result<()> {
        let line = JournalLine { at: jiff::Timestamp::now().to_string(), entry };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        self.file.write_all(conceal_json(&text).as_bytes())?;
        self.file.sync_data()
    }

    /// Everything that was written; torn lines are left out.
    pub fn read(path: &Path) -> io::Result<Vec<Entry>> {
        let text = match files::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let read = |line: &str| serde_json::from_str::<JournalLine>(line).ok().map(|line| line.entry);
        Ok(text.lines().filter_map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_lines_are_left_out_and_ended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.jsonl");
        OpenJournal::open(&path).unwrap().write(Entry::Begin { pid: 7 }).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"at\":\"2026").unwrap();
        let run = Entry::Run { cell: 1, repetition: 2, point: String::new(), dir: "runs/1".into() };
        OpenJournal::open(&path).unwrap().write(run.clone()).unwrap();
        assert_eq!(OpenJournal::read(&path).unwrap(), [Entry::Begin { pid: 7 }, run]);
    }
}
