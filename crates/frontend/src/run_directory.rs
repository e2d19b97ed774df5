//! Run directories of all commands: where they are, and what they say at the start.

use crate::exit::Failure;
use dyno_rundir::files;
use dyno_rundir::must_be_new;
use dyno_rundir::schema::Status;
use std::fs::TryLockError;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A run writes once a second; one that has not written for this long is not under way any more, or nothing is known of it.
const SILENT: Duration = Duration::from_secs(10);

/// Wall clock, RFC 3339 in UTC.
pub fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// A directory under `dyno-runs` that does not exist yet.
pub fn new_directory(name: &str) -> PathBuf {
    let stamp = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S");
    let base = PathBuf::from("dyno-runs").join(format!("{stamp}-{name}"));
    let numbered = (2..1_000).map(|n| PathBuf::from(format!("{}-{n}", base.display())));
    std::iter::once(base.clone()).chain(numbered).find(|path| !path.exists()).unwrap_or(base)
}

/// A run directory that cannot be written.
pub fn unwritable(error: std::io::Error) -> Failure {
    Failure::usage(format!("cannot write the run directory: {error}"))
}

/// Checks that a run directory can be made at `path`, before a server is told anything.
pub fn check_new(path: Option<&PathBuf>) -> Result<(), Failure> {
    path.map_or(Ok(()), |path| must_be_new(path).map_err(unwritable))
}

/// Returns whether a run is being made: it has not ended, and the process that makes it holds its events. Where a file system
/// knows no locks, it has written lately.
pub fn is_under_way(path: &Path, status: Status) -> bool {
    let held = || match files::open(&path.join("events.jsonl")).ok()?.try_lock_shared() {
        Ok(()) => Some(false),
        Err(TryLockError::WouldBlock) => Some(true),
        Err(TryLockError::Error(_)) => None,
    };
    let lately = || silence(path).is_none_or(|silence| silence < SILENT);
    status == Status::Running && held().unwrap_or_else(lately)
}

/// Returns the time since something was written.
pub fn silence(path: &Path) -> Option<Duration> {
    let files = ["run.json", "series.csv", "events.jsonl", "journal.jsonl"];
    let changed = files.iter().filter_map(|name| std::fs::metadata(path.join(name)).ok()?.modified().ok());
    changed.max().and_then(|at| SystemTime::now().duration_since(at).ok())
}
