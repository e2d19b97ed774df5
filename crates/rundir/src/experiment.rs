//! Reads an experiment's directory: its cells, and the runs that have ended. What is written there is described in
//! `docs/experiments.md`; unknown keys of later versions are passed over.

use crate::reader::{ContentError, ReadError};
use serde::{Deserialize, Serialize};
use std::path::{Component, Path, PathBuf};

/// Newest version that is read.
const VERSION: u32 = 1;

/// One cell of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RecordedCell {
    /// From 1.
    pub number: usize,
    /// Levels in words.
    pub label: String,
    /// The level of each factor.
    pub levels: Vec<(String, String)>,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct EndedRun {
    /// Number of the cell, from 1.
    pub cell: usize,
    /// From 1.
    pub repetition: u32,
    /// Values that a strategy has set, such as `users=8`; empty for the grid.
    pub point: String,
    /// Directory below the experiment's.
    pub dir: String,
    /// `complete`, `failed` or `interrupted`.
    pub status: String,
    /// Why it failed, or what speaks against it.
    #[serde(rename = "words")]
    pub message: String,
    /// `valid`, `suspect` or `invalid`; empty if it has no summary.
    pub trust: String,
    /// Successful operations per second in the window, by the experiment's estimator.
    pub throughput: Option<f64>,
    /// True if no threshold was missed.
    pub passed: bool,
}

#[derive(Deserialize)]
struct Record {
    version: u32,
    name: String,
    #[serde(default)]
    description: Option<String>,
    started: String,
    command: Vec<String>,
    #[serde(default)]
    sets: Vec<String>,
    cells: Vec<RecordedCell>,
    runs: usize,
    #[serde(default)]
    searches: bool,
}

/// Describes how many runs have ended: of those that were planned, or of so many searches, which make as many as they need.
pub fn describe_progress(ended: usize, planned: usize, searches: bool) -> String {
    match (searches, planned) {
        (false, _) => format!("{ended} of {planned} runs"),
        (true, 1) => format!("{ended} runs of a search"),
        (true, _) => format!("{ended} runs of {planned} searches"),
    }
}

/// A run that has ended counts no longer: it is made again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// Number of the cell, from 1.
    pub cell: usize,
    /// From 1.
    pub repetition: u32,
    /// Values that the strategy has set.
    pub point: String,
}

/// An experiment's directory.
#[derive(Clone, Debug)]
pub struct ExperimentDir {
    /// Where it is.
    pub path: PathBuf,
    /// Name.
    pub name: String,
    /// The question, in the file's words.
    pub description: Option<String>,
    /// Begin, RFC 3339.
    pub started: String,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    /// `KEY=VALUE` of every `--set`, secrets masked.
    pub sets: Vec<String>,
    /// The matrix.
    pub cells: Vec<RecordedCell>,
    /// Runs that were planned; of a search, how many searches.
    pub planned: usize,
    /// True if cells are searched: there may be any number of runs.
    pub searches: bool,
    /// Runs that have ended, in that order. One that was made again after an interruption is there once, the last time.
    pub runs: Vec<EndedRun>,
    /// True if the journal says that it came to its end.
    pub complete: bool,
    /// True if it has only loaded servers and left them for others.
    pub standing: bool,
}

impl ExperimentDir {
    /// Returns whether `path` looks like an experiment's directory.
    pub fn is_one(path: &Path) -> bool {
        path.join("experiment.json").is_file()
    }

    /// Reads what is there. A journal's torn last line is left out.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.join("experiment.json");
        let record: Record = crate::reader::json(&name)?;
        if record.version > VERSION {
            return Err(ReadError::Newer { path: path.to_owned(), found: record.version });
        }
        let journal = path.join("journal.jsonl");
        let text = crate::reader::read(&journal)?;
        let mut runs: Vec<EndedRun> = Vec::new();
        let (mut complete, mut standing) = (false, false);
        for (number, line) in crate::files::whole_lines(&text).enumerate() {
            let bad = |error: serde_json::Error| ReadError::Content {
                path: journal.clone(),
                line: number + 1,
                why: error.into(),
            };
            let value: serde_json::Value = serde_json::from_str(line).map_err(bad)?;
            match value["event"].as_str() {
                Some("ended") => {
                    let run: EndedRun = serde_json::from_value(value).map_err(bad)?;
                    // Whatever a journal says, nothing outside of the experiment is read for it.
                    let below =
                        |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
                    if !Path::new(&run.dir).components().all(below) {
                        let why = ContentError::Outside(run.dir);
                        return Err(ReadError::Content { path: journal, line: number + 1, why });
                    }
                    runs.retain(|old| {
                        (old.cell, old.repetition, &old.point) != (run.cell, run.repetition, &run.point)
                    });
                    runs.push(run);
                }
                Some("again") => {
                    let again: Again = serde_json::from_value(value).map_err(bad)?;
                    runs.retain(|old| {
                        (old.cell, old.repetition, &old.point) != (again.cell, again.repetition, &again.point)
                    });
                    complete = false;
                }
                Some("end") => {
                    (complete, standing) = (value["status"] == "complete", value["status"] == "standing");
                }
                _ => {}
            }
        }
        Ok(ExperimentDir {
            path: path.to_owned(),
            name: record.name,
            description: record.description,
            started: record.started,
            command: record.command,
            sets: record.sets,
            cells: record.cells,
            planned: record.runs,
            searches: record.searches,
            runs,
            complete,
            standing,
        })
    }

    /// The levels of the cell of which a run directory in an experiment's is a run: (factor, level). `None` if it lies in
    /// none, or that cannot be read.
    pub fn levels_around(run: &Path, cell: &str) -> Option<Vec<(String, String)>> {
        let around = run.ancestors().skip(1).take(2).find(|path| Self::is_one(path))?;
        let record: Record = crate::reader::json(&around.join("experiment.json")).ok()?;
        record.cells.into_iter().find(|one| one.label == cell).map(|one| one.levels)
    }

    /// Operations per second of the best run. A run that is invalid or did not complete is never the best.
    pub fn best_throughput(&self) -> Option<f64> {
        let counts = |run: &&EndedRun| run.status == "complete" && run.trust != "invalid";
        self.runs.iter().filter(counts).filter_map(|run| run.throughput).reduce(f64::max)
    }

    /// The cell with a number.
    pub fn find_cell(&self, number: usize) -> Option<&RecordedCell> {
        self.cells.iter().find(|cell| cell.number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_run_is_never_the_best() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        let record = r#"{"version": 1, "name": "n", "started": "", "command": [], "cells": [], "runs": 5}"#;
        std::fs::write(here.join("experiment.json"), record).unwrap();
        let best = |runs: &[(&str, &str, f64)]| {
            let line = |(number, (status, trust, throughput)): (usize, &(&str, &str, f64))| {
                format!(
                    "{{\"event\": \"ended\", \"cell\": 1, \"repetition\": {number}, \"point\": \"\", \"dir\": \"r{number}\", \
                     \"status\": \"{status}\", \"words\": \"\", \"trust\": \"{trust}\", \"throughput\": {throughput}, \
                     \"passed\": true}}\n"
                )
            };
            std::fs::write(here.join("journal.jsonl"), runs.iter().enumerate().map(line).collect::<String>())
                .unwrap();
            ExperimentDir::open(here).unwrap().best_throughput()
        };
        let (valid, suspect) = (("complete", "valid", 100.0), ("complete", "suspect", 110.0));
        let (invalid, cut) = (("complete", "invalid", 900.0), ("interrupted", "valid", 800.0));
        assert_eq!(best(&[valid, ("complete", "valid", 90.0)]), Some(100.0), "the best, not the mean");
        assert_eq!(best(&[invalid, valid, suspect, cut]), Some(110.0));
        assert_eq!(best(&[invalid, cut]), None);
    }
}
