//! The directory of an experiment.
//!
//! ```text
//! experiment.yaml   the file as it was given, secrets masked
//! experiment.json   version, command line, cells, runs in order
//! journal.jsonl     what has begun and ended
//! lock              held by the dyno that works on it; its process number and when that was started
//! tuning.json       what tunings have found
//! runs/0001-...     run directories, see docs/run-directory.md
//! results.csv       one line for each run, written as they end
//! ```

use super::journal::{Entry, Journal, RunRecord, RunStatus};
use crate::local::{Machine, process};
use crate::own::{self, Untrusted};
use dyno_plan::experiment::{Plan, masked, masked_set};
use dyno_rundir::mask::mask_arguments;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Version of the directory's format. Readers refuse a higher one.
pub const VERSION: u32 = 1;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It cannot be meant.
    #[error("{0}")]
    Refused(String),
    /// The system refuses.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        error: io::Error,
    },
}

impl From<Untrusted> for DirectoryError {
    fn from(why: Untrusted) -> Self {
        DirectoryError::Refused(why.to_string())
    }
}

/// One cell, as it was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRecord {
    /// From 1.
    pub number: usize,
    /// Its levels in words.
    pub label: String,
    /// The level of each factor.
    pub levels: Vec<(String, String)>,
}

/// `experiment.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    /// [`VERSION`].
    pub version: u32,
    /// Version of dyno.
    pub dyno: String,
    /// Its name.
    pub name: String,
    /// What the text was called: a path, or a preset's name.
    pub path: String,
    /// `--set`, as typed.
    pub sets: Vec<String>,
    /// The command line, secrets masked.
    pub command: Vec<String>,
    /// Directory in which relative paths were meant.
    pub cwd: PathBuf,
    /// Begin, RFC 3339.
    pub started: String,
    /// The matrix.
    pub cells: Vec<CellRecord>,
    /// Runs that are planned; of searches, how many there are.
    pub runs: usize,
    /// Whether cells are searched, with as many runs as that needs.
    #[serde(default)]
    pub searches: bool,
    /// SHA-256 of experiment.yaml: an experiment that is gone on with is the one that was begun. Older directories have none.
    #[serde(default)]
    pub text: Option<String>,
}

/// SHA-256 in hexadecimal digits.
fn hash(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An experiment's directory, held by this process.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: File,
    journal: Journal,
    /// What was planned.
    pub record: ExperimentRecord,
    /// Runs that have ended.
    pub ended: Vec<RunRecord>,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |error| DirectoryError::Io { path, error }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path)
}

/// Writes a file that only its owner reads.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    private(path).and_then(|mut file| file.write_all(text.as_bytes()))
}

/// The process that holds a directory, if one does. A lock that is held by a process which is not the one that it names, or
/// that is somebody else's file, is held by nobody who could be asked to stop: `None`, as where it is free.
pub fn holder(path: &Path) -> Option<u32> {
    let name = path.join("lock");
    let text = own::read(&name).ok()?;
    let lock = OpenOptions::new().read(true).write(true).open(&name).ok()?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return None;
    }
    let mut words = text.split_whitespace();
    let pid: u32 = words.next()?.parse().ok()?;
    let started: Option<u64> = words.next().map(str::parse).transpose().ok()?;
    // Its number may be another process' by now: the start time tells.
    let runs = process::started(&Machine::default(), pid);
    (started.is_none() || started == runs).then_some(pid)
}

/// Holds a directory until the file is closed.
pub fn lock(path: &Path) -> Result<File, DirectoryError> {
    let name = path.join("lock");
    let opened = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits() as i32)
        .open(&name);
    let mut file = opened.map_err(io_error(&name))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let by = holder(path).map_or("another dyno".into(), |pid| format!("process {pid}"));
        let text = format!("{}: {by} is at work on it; `dyno stop` ends that", path.display());
        return Err(DirectoryError::Refused(text));
    }
    let (pid, machine) = (std::process::id(), Machine::default());
    let started = process::started(&machine, pid).unwrap_or_default();
    file.set_len(0).and_then(|()| writeln!(file, "{pid} {started}")).map_err(io_error(&name))?;
    Ok(file)
}

impl Directory {
    /// Makes a directory (it must not exist, or be empty).
    pub fn create(
        path: &Path,
        text: &str,
        called: &str,
        sets: &[String],
        plan: &Plan,
    ) -> Result<Directory, DirectoryError> {
        if path.exists() && std::fs::read_dir(path).map_err(io_error(path))?.next().is_some() {
            let text = format!("{}: not empty; `dyno resume {0}` goes on with an experiment", path.display());
            return Err(DirectoryError::Refused(text));
        }
        let runs = path.join("runs");
        DirBuilder::new().recursive(true).mode(0o700).create(&runs).map_err(io_error(&runs))?;
        let held = lock(path)?;
        let cells = plan
            .cells
            .iter()
            .map(|cell| CellRecord { number: cell.number, label: cell.label(), levels: cell.levels.clone() })
            .collect();
        let record = ExperimentRecord {
            version: VERSION,
            dyno: env!("CARGO_PKG_VERSION").into(),
            name: plan.name.clone(),
            path: called.to_owned(),
            sets: sets.iter().map(|set| masked_set(set)).collect(),
            command: mask_arguments(&std::env::args().collect::<Vec<_>>()),
            cwd: std::env::current_dir().unwrap_or_default(),
            started: jiff::Timestamp::now().to_string(),
            cells,
            runs: plan.runs.len(),
            searches: plan.cells.iter().any(|cell| cell.spec.strategy.is_some()),
            text: Some(hash(&masked(text))),
        };
        let yaml = path.join("experiment.yaml");
        private(&yaml)
            .and_then(|mut file| file.write_all(masked(text).as_bytes()))
            .map_err(io_error(&yaml))?;
        let json = path.join("experiment.json");
        let words = serde_json::to_string_pretty(&record).map_err(|e| io_error(&json)(e.into()))?;
        private(&json).and_then(|mut file| file.write_all(words.as_bytes())).map_err(io_error(&json))?;
        let mut directory = Self::with(path, held, record)?;
        directory.note(Entry::Begin { pid: std::process::id() })?;
        Ok(directory)
    }

    /// Opens a directory to go on with it; its text comes along.
    pub fn resume(path: &Path) -> Result<(Directory, String), DirectoryError> {
        own::directory(path)?;
        let record = read_record(path)?;
        // What it says is run, hooks among it.
        own::read(&path.join("experiment.json"))?;
        let yaml = path.join("experiment.yaml");
        let text = own::read(&yaml)?;
        let held = lock(path)?;
        if record.text.as_ref().is_some_and(|begun| *begun != hash(&text)) {
            let words = "was changed since the experiment began: runs of two configurations would stand side by side. Put it \
                         back, or run it as an experiment of its own";
            return Err(DirectoryError::Refused(format!("{}: {words}", yaml.display())));
        }
        let mut directory = Self::with(path, held, record)?;
        directory.note(Entry::Begin { pid: std::process::id() })?;
        Ok((directory, text))
    }

    fn with(path: &Path, held: File, record: ExperimentRecord) -> Result<Directory, DirectoryError> {
        let name = path.join("journal.jsonl");
        let entries = Journal::read(&name).map_err(io_error(&name))?;
        let journal = Journal::open(&name).map_err(io_error(&name))?;
        Ok(Directory { path: path.to_owned(), _lock: held, journal, record, ended: finished(entries) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a line of the journal.
    pub fn note(&mut self, entry: Entry) -> Result<(), DirectoryError> {
        if let Entry::Ended(record) = &entry
            && record.status != RunStatus::Interrupted
        {
            self.ended.push(record.clone());
            let results = self.path.join("results.csv");
            self.results(record).map_err(io_error(&results))?;
        }
        let name = self.path.join("journal.jsonl");
        self.journal.write(entry).map_err(io_error(&name))
    }

    /// Adds a line to `results.csv`, for spreadsheets.
    fn results(&self, run: &RunRecord) -> io::Result<()> {
        let path = self.path.join("results.csv");
        let new = !path.exists();
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let cell = self.record.cells.iter().find(|cell| cell.number == run.cell);
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " "));
        let figure = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.3}"));
        let status = match run.status {
            RunStatus::Complete => "complete",
            RunStatus::Failed => "failed",
            RunStatus::Interrupted => "interrupted",
        };
        let mut text = String::new();
        if new {
            text.push_str(
                "cell,repetition,label,point,status,trust,passed,throughput_per_s,offered_per_s,dir,words\n",
            );
        }
        text.push_str(&format!(
            "{},{},{},{},{},{},{},{},{},{},{}\n",
            run.cell,
            run.repetition,
            quoted(cell.map_or("", |cell| &cell.label)),
            quoted(&run.point),
            status,
            run.trust,
            run.passed,
            figure(run.throughput),
            figure(run.offered),
            quoted(&run.dir),
            quoted(&run.words),
        ));
        file.write_all(text.as_bytes())
    }

    /// A directory for the next run, which does not exist yet.
    pub fn run_directory(&self, cell: usize, repetition: u32, point: &str) -> PathBuf {
        let words: String = point.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let tail = if words.is_empty() { String::new() } else { format!("-{words}") };
        let name = format!("cell{cell:04}-rep{repetition:02}{tail}");
        let runs = self.path.join("runs");
        let again = (2..10_000).map(|n| runs.join(format!("{name}-try{n}")));
        let first = runs.join(&name);
        std::iter::once(first.clone()).chain(again).find(|path| !path.exists()).unwrap_or(first)
    }
}

/// Runs that need not be made again.
pub fn finished(entries: Vec<Entry>) -> Vec<RunRecord> {
    let ended = entries.into_iter().filter_map(|entry| match entry {
        Entry::Ended(record) if record.status != RunStatus::Interrupted => Some(record),
        _ => None,
    });
    ended.collect()
}

/// Reads `experiment.json`.
pub fn read_record(path: &Path) -> Result<ExperimentRecord, DirectoryError> {
    let name = path.join("experiment.json");
    let text = std::fs::read_to_string(&name).map_err(|error| {
        let text = format!("{}: no experiment's directory ({error})", path.display());
        DirectoryError::Refused(text)
    })?;
    let record: ExperimentRecord = serde_json::from_str(&text)
        .map_err(|error| DirectoryError::Refused(format!("{}:{}: {error}", name.display(), error.line())))?;
    if record.version > VERSION {
        let text = format!(
            "{}: format {} is newer than this dyno reads ({VERSION})",
            name.display(),
            record.version
        );
        return Err(DirectoryError::Refused(text));
    }
    Ok(record)
}

/// Reads the journal of an experiment's directory.
pub fn read_journal(path: &Path) -> Result<Vec<Entry>, DirectoryError> {
    let name = path.join("journal.jsonl");
    Journal::read(&name).map_err(io_error(&name))
}
