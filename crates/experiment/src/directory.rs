//! The directory of an experiment.
//!
//! ```text
//! experiment.yaml   the file as it was given, secrets masked
//! experiment.json   version, command line, cells, runs in order
//! journal.jsonl     what has begun and ended
//! lock              held by the dyno that works on it; its process number, and when that was started
//! tuning.json       what tunings have found
//! runs/0001-...     run directories, see docs/run-directory.md
//! results.csv       one line for each run, written as they end
//! ```

use crate::hooks::HookError;
use crate::journal::{Entry, OpenJournal, RunRecord, RunStatus};
use dyno_config::experiment::{ExperimentPlan, mask_text, masked_set};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use dyno_localhost::trusted;
use dyno_rundir::{Again, files};
use dyno_types::bounded;
use dyno_types::limits::LINE_BYTES;
use dyno_types::secret::{conceal, conceal_json, own_command_line};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The table for spreadsheets.
const RESULTS: &str = "results.csv";
/// First line of `results.csv`.
const COLUMNS: &str =
    "cell,repetition,label,point,status,trust,passed,throughput_per_s,offered_per_s,dir,words\n";

/// Version of the directory's format. Readers refuse a higher one.
pub const VERSION: u32 = 1;

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Invalid configuration.
    #[error("{0}")]
    Refused(String),
    /// A command around the experiment failed.
    #[error(transparent)]
    Hook(#[from] HookError),
    /// Settings of this host, or servers that outlive their run.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The copy of it elsewhere cannot be kept.
    #[error("{0}; what has not been copied is made again by `dyno resume`")]
    NotCopied(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The system refuses.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        #[source]
        error: io::Error,
    },
}

/// One cell, as it was planned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellRecord {
    /// From 1.
    pub number: usize,
    /// Levels in words.
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
    /// Name.
    pub name: String,
    /// The question, in the file's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name of the text: a path, or a preset's name.
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
    /// True if cells are searched, with as many runs as that needs.
    #[serde(default)]
    pub searches: bool,
    /// SHA-256 of experiment.yaml: an experiment that is gone on with is the one that was begun. Older directories have none.
    #[serde(default)]
    pub text: Option<String>,
}

/// Keeps a directory elsewhere, too, where this one goes with its pod.
pub trait DirectoryCopy: std::fmt::Debug + Send + Sync {
    /// Takes over all that has changed since the last time.
    ///
    /// # Errors
    /// The copy cannot be written, however long that was tried.
    fn update(&self, path: &Path) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// SHA-256 in hexadecimal digits.
fn hash(text: &str) -> String {
    hex::encode(Sha256::digest(text.as_bytes()))
}

/// An experiment's directory, held by this process.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    _lock: File,
    journal: OpenJournal,
    copy: Option<Arc<dyn DirectoryCopy>>,
    /// Jobs whose runs that are made again are noted.
    noted_again: Vec<String>,
    /// Planned experiment.
    pub record: ExperimentRecord,
    /// Runs that have ended.
    pub ended: Vec<RunRecord>,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |error| DirectoryError::Io { path, error }
}

/// The process that holds a directory, if one does that can be told.
pub fn holder(path: &Path) -> Option<u32> {
    verified_holder(path).ok().flatten()
}

/// The same; an error where the lock is held by a process other than the one it names. A process is told by its number and its
/// start time, because the kernel gives numbers again; locks of older versions have no start time.
pub fn verified_holder(path: &Path) -> Result<Option<u32>, DirectoryError> {
    let name = path.join("lock");
    let Ok(lock) = files::open_with(&name, OpenOptions::new().read(true).write(true)) else {
        return Ok(None);
    };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        return Ok(None);
    }
    let text = bounded::read_text(lock, LINE_BYTES as u64).map_err(io_error(&name))?;
    let mut words = text.split_whitespace();
    let pid = words.next().and_then(|pid| pid.parse().ok());
    let started = words.next().map(str::parse::<u64>);
    let is_it = |pid: &u32| match &started {
        None => true,
        Some(started) => process::start_ticks(&Machine::default(), *pid) == started.clone().ok(),
    };
    pid.filter(is_it).map(Some).ok_or_else(|| {
        let name = name.display();
        DirectoryError::Refused(format!(
            "{name}: held by a process other than the one it names; find it with `fuser {name}` and end it"
        ))
    })
}

/// Holds a directory until the file is closed.
pub fn lock(path: &Path) -> Result<File, DirectoryError> {
    let name = path.join("lock");
    let mut options = OpenOptions::new();
    options.create(true).read(true).write(true).truncate(false).mode(0o600);
    let mut file = files::open_with(&name, &mut options).map_err(io_error(&name))?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let by = holder(path).map_or("another dyno".into(), |pid| format!("process {pid}"));
        let text = format!("{}: {by} is at work on it; `dyno stop` ends that", path.display());
        return Err(DirectoryError::Refused(text));
    }
    let own = std::process::id();
    let message = match process::start_ticks(&Machine::default(), own) {
        Some(started) => format!("{own} {started}\n"),
        None => format!("{own}\n"),
    };
    file.set_len(0).and_then(|()| file.write_all(message.as_bytes())).map_err(io_error(&name))?;
    Ok(file)
}

impl Directory {
    /// Makes a directory (it must not exist, or be empty).
    pub fn create(
        path: &Path,
        text: &str,
        called: &str,
        sets: &[String],
        plan: &ExperimentPlan,
    ) -> Result<Directory, DirectoryError> {
        let refused = |e: std::io::Error| DirectoryError::Refused(format!("{}: {e}", path.display()));
        if path.exists() && std::fs::read_dir(path).map_err(refused)?.next().is_some() {
            let text = format!("{}: not empty; `dyno resume {0}` goes on with an experiment", path.display());
            return Err(DirectoryError::Refused(text));
        }
        let runs = path.join("runs");
        trusted::make_folder(path).map_err(refused)?;
        // Before anything is started that `dyno stop` would refuse to end.
        trusted::check_directory(path)
            .map_err(|e| DirectoryError::Refused(format!("{e}; choose a new folder")))?;
        trusted::make_folder(&runs).map_err(io_error(&runs))?;
        let held = lock(path)?;
        let cells = plan
            .cells
            .iter()
            .map(|cell| CellRecord {
                number: cell.number,
                label: cell.levels_label(),
                levels: cell.levels.clone(),
            })
            .collect();
        let record = ExperimentRecord {
            version: VERSION,
            dyno: env!("CARGO_PKG_VERSION").into(),
            description: plan.base.description.clone(),
            name: plan.name.clone(),
            path: called.to_owned(),
            sets: sets.iter().map(|set| masked_set(set)).collect(),
            command: own_command_line(),
            cwd: std::env::current_dir().unwrap_or_default(),
            started: jiff::Timestamp::now().to_string(),
            cells,
            runs: plan.runs.len(),
            searches: plan.cells.iter().any(|cell| cell.spec.strategy.is_some()),
            text: Some(hash(&mask_text(text))),
        };
        let yaml = path.join("experiment.yaml");
        trusted::write(&yaml, mask_text(text).as_bytes()).map_err(io_error(&yaml))?;
        let json = path.join("experiment.json");
        let message = serde_json::to_string_pretty(&record).map_err(|e| io_error(&json)(e.into()))?;
        trusted::write(&json, conceal_json(&message).as_bytes()).map_err(io_error(&json))?;
        let mut directory = Self::with(path, held, record)?;
        directory.note(Entry::Begin { pid: std::process::id() })?;
        Ok(directory)
    }

    /// Opens a directory to go on with it; its text comes along.
    pub fn resume(path: &Path) -> Result<(Directory, String), DirectoryError> {
        trusted::check_directory(path)?;
        let record = read_record(path)?;
        let held = lock(path)?;
        let yaml = path.join("experiment.yaml");
        let text = files::read_to_string(&yaml).map_err(io_error(&yaml))?;
        if record.text.as_ref().is_some_and(|begun| *begun != hash(&text)) {
            let message = "was changed since the experiment began: runs of two configurations would stand side by side. Put it \
                         back, or run it as an experiment of its own";
            return Err(DirectoryError::Refused(format!("{}: {message}", yaml.display())));
        }
        let mut directory = Self::with(path, held, record)?;
        if path.join(RESULTS).exists() {
            // One that was killed between the table and the journal has a row of a run that is made again.
            directory.write_results()?;
        }
        directory.note(Entry::Begin { pid: std::process::id() })?;
        Ok((directory, text))
    }

    fn with(path: &Path, held: File, record: ExperimentRecord) -> Result<Directory, DirectoryError> {
        let name = path.join("journal.jsonl");
        let entries = OpenJournal::read(&name).map_err(io_error(&name))?;
        let journal = OpenJournal::open(&name).map_err(io_error(&name))?;
        let noted = entries.iter().filter_map(|entry| match entry {
            Entry::AgainNoted { job } => Some(job.clone()),
            _ => None,
        });
        let noted_again = noted.collect();
        Ok(Directory {
            path: path.to_owned(),
            _lock: held,
            journal,
            copy: None,
            noted_again,
            record,
            ended: finished(entries),
        })
    }

    /// Has a copy kept of it, which is brought up to date now, before each run begins, and once it has ended.
    ///
    /// # Errors
    /// The copy cannot be written.
    pub fn keep_copy(&mut self, copy: Arc<dyn DirectoryCopy>) -> Result<(), DirectoryError> {
        self.copy = Some(copy);
        self.update_copy()
    }

    fn update_copy(&self) -> Result<(), DirectoryError> {
        self.copy.as_ref().map_or(Ok(()), |copy| copy.update(&self.path).map_err(DirectoryError::NotCopied))
    }

    /// Returns whether all runs that this Job makes again are noted.
    pub fn has_noted_again(&self, job: &str) -> bool {
        self.noted_again.iter().any(|noted| noted == job)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Has runs made again: they count no longer, and are not in `results.csv`. The last one goes first, so that whatever follows
    /// from a run never counts without it, also where dyno is killed in between.
    ///
    /// # Errors
    /// The journal or the table cannot be written.
    pub fn make_again(&mut self, runs: &[Again]) -> Result<(), DirectoryError> {
        for again in runs.iter().rev() {
            self.note(Entry::Again(again.clone()))?;
            self.ended.retain(|run| run.again() != *again);
        }
        if runs.is_empty() { Ok(()) } else { self.write_results() }
    }

    /// Writes `results.csv` anew.
    fn write_results(&self) -> Result<(), DirectoryError> {
        let path = self.path.join(RESULTS);
        let rows: String = self.ended.iter().map(|run| self.row(run)).collect();
        files::put_private(&path, conceal(&format!("{COLUMNS}{rows}")).as_bytes()).map_err(io_error(&path))
    }

    /// Writes a line of the journal.
    pub fn note(&mut self, entry: Entry) -> Result<(), DirectoryError> {
        if matches!(entry, Entry::Ended(_)) {
            // A copy whose journal says that a run has ended has all of its files.
            self.update_copy()?;
        }
        if let Entry::Ended(record) = &entry
            && record.status != RunStatus::Interrupted
        {
            self.ended.push(record.clone());
            let results = self.path.join(RESULTS);
            self.results(record).map_err(io_error(&results))?;
        }
        let name = self.path.join("journal.jsonl");
        let message = format!("{entry:?}");
        self.journal.write(entry).map_err(io_error(&name))?;
        tracing::info!(journal = %self.path.display(), entry = message, "the journal is written");
        self.update_copy()
    }

    /// Adds a line to `results.csv`, for spreadsheets.
    fn results(&self, run: &RunRecord) -> io::Result<()> {
        let path = self.path.join(RESULTS);
        let new = !path.exists();
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let text = format!("{}{}", if new { COLUMNS } else { "" }, self.row(run));
        file.write_all(conceal(&text).as_bytes())
    }

    fn row(&self, run: &RunRecord) -> String {
        let cell = self.record.cells.iter().find(|cell| cell.number == run.cell);
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\"").replace(['\n', '\r'], " "));
        let figure = |n: Option<f64>| n.map_or(String::new(), |n| format!("{n:.3}"));
        let status = match run.status {
            RunStatus::Complete => "complete",
            RunStatus::Failed => "failed",
            RunStatus::Interrupted => "interrupted",
        };
        format!(
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
            quoted(&run.cause),
        )
    }

    /// A directory for the next run, which does not exist yet.
    pub fn run_directory(&self, cell: usize, repetition: u32, point: &str) -> PathBuf {
        let message: String =
            point.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let tail = if message.is_empty() { String::new() } else { format!("-{message}") };
        let name = format!("cell{cell:04}-rep{repetition:02}{tail}");
        let runs = self.path.join("runs");
        let again = (2..10_000).map(|n| runs.join(format!("{name}-try{n}")));
        let first = runs.join(&name);
        std::iter::once(first.clone()).chain(again).find(|path| !path.exists()).unwrap_or(first)
    }
}

/// Runs that need not be made again.
pub fn finished(entries: Vec<Entry>) -> Vec<RunRecord> {
    let mut ended: Vec<RunRecord> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Ended(record) if record.status != RunStatus::Interrupted => ended.push(record),
            Entry::Again(again) => ended.retain(|run| run.again() != again),
            _ => {}
        }
    }
    ended
}

/// Reads `experiment.json`.
pub fn read_record(path: &Path) -> Result<ExperimentRecord, DirectoryError> {
    let name = path.join("experiment.json");
    let text = files::read_to_string(&name).map_err(|error| {
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
    OpenJournal::read(&name).map_err(io_error(&name))
}
