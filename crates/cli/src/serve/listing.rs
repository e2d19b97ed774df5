//! The list: every run and every experiment below a folder, with what its own files say of it.

use super::served_directory::ServedDirectory;
use dyno_experiment::directory::holder;
use dyno_frontend::run_directory::is_under_way;
use dyno_report::html::facts::slowest_operation;
use dyno_report::html::served::{Listed, ListedKind};
use dyno_rundir::files;
use dyno_rundir::schema::{Run, Status, Summary, VERSION};
use dyno_rundir::{ExperimentDir, ReadError};
use dyno_types::limits::{SERVED_DEPTH, SERVED_ENTRIES, SERVED_FOLDERS};
use std::io;
use std::path::{Path, PathBuf};

/// Folders of runs and experiments; the runs of an experiment are its own.
fn found(directory: &ServedDirectory) -> Vec<(PathBuf, ListedKind)> {
    let mut all = Vec::new();
    let mut folders = vec![(directory.start().to_owned(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        seen += 1;
        if seen > SERVED_FOLDERS {
            break;
        }
        if folder.join("experiment.json").is_file() {
            all.push((folder, ListedKind::Experiment));
        } else if folder.join("run.json").is_file() {
            all.push((folder, ListedKind::Run));
        } else if depth < SERVED_DEPTH {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            // Links are not followed.
            let below = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            let shown = below.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."));
            folders.extend(shown.map(|entry| (entry.path(), depth + 1)));
        }
    }
    all
}

/// Reasons for which a run or an experiment cannot be listed.
#[derive(Debug, thiserror::Error)]
enum ListingError {
    /// A file cannot be read.
    #[error("{file}: {source}")]
    Io { file: String, source: io::Error },
    /// A file is not what its name says.
    #[error("{file}: {source}")]
    Json { file: String, source: serde_json::Error },
    /// A link, a pipe or a device.
    #[error("{0}: no file")]
    NoFile(String),
    /// A later dyno has written it.
    #[error("format {0} is newer than this dyno reads ({VERSION})")]
    Newer(u32),
    /// An experiment's directory cannot be read.
    #[error(transparent)]
    Experiment(#[from] ReadError),
}

/// A file of a run as JSON, if it is no link.
fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, ListingError> {
    let file = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unread = |source| ListingError::Io { file: file(), source };
    if !std::fs::symlink_metadata(path).map_err(unread)?.is_file() {
        return Err(ListingError::NoFile(file()));
    }
    let text = files::read_to_string(path).map_err(unread)?;
    serde_json::from_str(&text).map_err(|source| ListingError::Json { file: file(), source })
}

/// The state of a run in words.
pub fn state(path: &Path, status: Status) -> &'static str {
    match status {
        Status::Complete => "complete",
        Status::Interrupted => "interrupted",
        Status::Failed => "failed",
        Status::Running if is_under_way(path, status) => "running",
        Status::Running => "cut off",
    }
}

fn run(path: &Path, entry: &mut Listed) -> Result<(), ListingError> {
    let run: Run = json(&path.join("run.json"))?;
    if run.version > VERSION {
        return Err(ListingError::Newer(run.version));
    }
    entry.state = state(path, run.status).into();
    entry.started = run.started;
    entry.target = format!("{} ({})", run.target, run.database);
    if let Some(title) = run.settings.iter().find(|setting| setting.key == "title") {
        entry.title = title.value.clone();
    }
    if path.join("summary.json").exists() {
        let summary: Summary = json(&path.join("summary.json"))?;
        entry.verdict = summary.verdict.trust.name().into();
        entry.throughput = summary.measured_phase().map(|phase| phase.throughput);
        entry.p99_us =
            summary.measured_phase().and_then(|phase| slowest_operation(phase, "p99")).map(|(_, us)| us);
        entry.title = summary.title;
    }
    Ok(())
}

fn experiment(path: &Path, entry: &mut Listed) -> Result<(), ListingError> {
    for name in ["experiment.json", "journal.jsonl", "lock"] {
        if std::fs::symlink_metadata(path.join(name)).is_ok_and(|own| !own.is_file()) {
            return Err(ListingError::NoFile(name.to_owned()));
        }
    }
    let dir = ExperimentDir::open(path)?;
    entry.throughput = dir.best_throughput();
    entry.title = dir.name;
    entry.started = dir.started;
    entry.state = match (holder(path), dir.complete) {
        (Some(_), _) => "running",
        (None, true) => "complete",
        (None, false) => "not complete",
    }
    .into();
    entry.runs = (!dir.searches).then_some((dir.runs.len(), dir.planned));
    let count = |what: &str| dir.runs.iter().filter(|run| run.trust == what).count();
    let words = ["valid", "suspect", "invalid"].map(|what| (count(what), what));
    let words: Vec<String> =
        words.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    entry.verdict = words.join(", ");
    let mut targets: Vec<String> = Vec::new();
    for one in dir.runs.iter().take(100) {
        let target = json::<Run>(&path.join(&one.dir).join("run.json")).map(|run| run.database);
        targets.extend(target.ok().filter(|target| !targets.contains(target)));
    }
    entry.target = targets.join(", ");
    Ok(())
}

/// A run or an experiment in its own folder; `words` say what is wrong with one that cannot be read.
pub fn listed(path: &Path) -> Listed {
    let is_experiment = path.join("experiment.json").is_file();
    let kind = if is_experiment { ListedKind::Experiment } else { ListedKind::Run };
    let mut entry = Listed { kind, ..Listed::default() };
    let read = if is_experiment { experiment(path, &mut entry) } else { run(path, &mut entry) };
    if let Err(error) = read {
        entry.state = "unreadable".into();
        entry.message = error.to_string();
    }
    entry
}

/// One entry; `None` for a path without a name.
pub fn entry(directory: &ServedDirectory, path: &Path, kind: ListedKind) -> Option<Listed> {
    let mut entry = Listed { name: directory.name(path)?, kind, ..Listed::default() };
    let read = match kind {
        ListedKind::Run => run(path, &mut entry),
        ListedKind::Experiment => experiment(path, &mut entry),
    };
    if let Err(error) = read {
        entry.state = "unreadable".into();
        entry.message = error.to_string();
    }
    Some(entry)
}

/// Everything, the latest first, and how many are not shown.
pub fn list(directory: &ServedDirectory) -> (Vec<Listed>, usize) {
    let found = found(directory);
    let mut all: Vec<Listed> =
        found.iter().filter_map(|(path, kind)| entry(directory, path, *kind)).collect();
    all.sort_by(|a, b| b.started.cmp(&a.started).then_with(|| b.name.cmp(&a.name)));
    let left_out = all.len().saturating_sub(SERVED_ENTRIES);
    all.truncate(SERVED_ENTRIES);
    (all, left_out)
}
