//! The copy of an experiment's directory in a store.

use crate::object_store::client::StoreClient;
use crate::object_store::error::StoreError;
use crate::signals;
use dyno_experiment::directory::DirectoryCopy;
use dyno_localhost::trusted;
use dyno_rundir::log::NOTICE;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Time between two attempts.
const PAUSE: Duration = Duration::from_secs(5);
/// Time for what is still to be copied once a signal has asked for the end.
const AFTER_SIGNAL: Duration = Duration::from_secs(30);
/// What goes last, in this order: the record says that there is an experiment, and a line of the journal that a run is there.
const LAST: [&str; 2] = ["journal.jsonl", "experiment.json"];

/// What tells a file that has changed.
type FileState = (u64, Option<SystemTime>);

/// Keeps the copy of a directory in the folder of a store.
#[derive(Debug)]
pub struct FolderCopy {
    client: StoreClient,
    /// Longest time that the store may be out of reach.
    outage: Duration,
    /// Files that the store has, as they were when it got them.
    stored: Mutex<BTreeMap<String, FileState>>,
    /// True once the store was waited for in vain: what is tried afterwards is tried once.
    is_given_up: AtomicBool,
}

impl FolderCopy {
    /// Reaches the store, and takes what an earlier pod has put there into `folder`, where it is an experiment's. A store that
    /// does not answer at first is waited for at most `first`, and later at most `outage`; so is a refusal, where `follows` says
    /// that an earlier pod was let in.
    ///
    /// # Errors
    /// The store does not answer in time or refuses, or `folder` cannot be written.
    pub fn begin(
        client: StoreClient,
        folder: &Path,
        (first, outage): (Duration, Duration),
        follows: bool,
    ) -> Result<Self, StoreError> {
        let passes = if follows { StoreError::may_pass } else { StoreError::is_silence };
        let names = persist(first, passes, || client.list_names())?;
        let mut stored = BTreeMap::new();
        if names.iter().any(|name| name == LAST[1]) {
            for name in names.into_iter().filter(|name| is_kept(name)) {
                let path = folder.join(&name);
                persist(outage, StoreError::may_pass, || client.get_file(&name, &path))?;
                let about = path.metadata().map_err(|source| StoreError::Io { path, source })?;
                stored.insert(name, state_of(&about));
            }
        }
        Ok(FolderCopy { client, outage, stored: Mutex::new(stored), is_given_up: AtomicBool::new(false) })
    }

    /// Has something done by the store, which is waited for as long as may be.
    fn persist(&self, attempt: impl Fn() -> Result<(), StoreError>) -> Result<(), StoreError> {
        let limit = if self.is_given_up.load(Ordering::Relaxed) { Duration::ZERO } else { self.outage };
        let done = persist(limit, StoreError::may_pass, attempt);
        self.is_given_up.store(done.is_err(), Ordering::Relaxed);
        done
    }

    fn copy_changed(&self, folder: &Path) -> Result<(), StoreError> {
        let mut files = BTreeMap::new();
        files_below(folder, "", &mut files).map_err(|(path, source)| StoreError::Io { path, source })?;
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let is_last = |name: &String| LAST.iter().position(|last| last == name);
        let mut changed: Vec<(&String, &FileState)> =
            files.iter().filter(|(name, state)| stored.get(*name) != Some(*state)).collect();
        changed.sort_by_key(|(name, _)| is_last(name));
        for (name, state) in changed {
            let path = folder.join(name);
            self.persist(|| self.client.put_file(name, &path))?;
            stored.insert(name.clone(), *state);
        }
        let gone: Vec<String> = stored.keys().filter(|name| !files.contains_key(*name)).cloned().collect();
        for name in gone {
            self.persist(|| self.client.remove_file(&name))?;
            stored.remove(&name);
        }
        Ok(())
    }
}

impl DirectoryCopy for FolderCopy {
    fn update(&self, path: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.copy_changed(path)?)
    }
}

fn state_of(about: &Metadata) -> FileState {
    (about.len(), about.modified().ok())
}

/// Returns whether a file is copied, either way. What belongs to one pod alone is not: its lock, and its list of what is to be
/// removed.
fn is_kept(name: &str) -> bool {
    name != "lock" && !trusted::is_of_pods(name)
}

/// Takes down all files below a folder that are copied.
fn files_below(
    folder: &Path,
    below: &str,
    files: &mut BTreeMap<String, FileState>,
) -> Result<(), (PathBuf, io::Error)> {
    let failed = |source| (folder.to_owned(), source);
    let found = match std::fs::read_dir(folder) {
        // An experiment that was refused has left nothing.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.map_err(failed)?,
    };
    for entry in found {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().into_string().map_err(|name| {
            (folder.join(name), io::Error::new(io::ErrorKind::InvalidData, "its name is no text"))
        })?;
        let kind = entry.file_type().map_err(failed)?;
        let shown = format!("{below}{name}");
        if kind.is_dir() {
            files_below(&entry.path(), &format!("{shown}/"), files)?;
        } else if kind.is_file() && is_kept(&shown) {
            files.insert(shown, state_of(&entry.metadata().map_err(failed)?));
        }
    }
    Ok(())
}

/// Does something until it goes well, its error is none that `passes`, or `limit` is over. The login is read for each attempt:
/// one that was renewed is taken.
fn persist<T>(
    limit: Duration,
    passes: fn(&StoreError) -> bool,
    attempt: impl Fn() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let (begun, mut told) = (Instant::now(), String::new());
    loop {
        let error = match attempt() {
            Ok(done) => {
                if !told.is_empty() {
                    tracing::warn!(target: NOTICE, "the object store takes requests again");
                }
                return Ok(done);
            }
            Err(error) => error,
        };
        let limit = if signals::interrupted() { limit.min(AFTER_SIGNAL) } else { limit };
        let left = limit.saturating_sub(begun.elapsed());
        if !passes(&error) || left.is_zero() {
            return Err(error);
        }
        let message = error.to_string();
        if message != told {
            let seconds = left.as_secs();
            tracing::warn!(target: NOTICE, "{message}; tries again for {seconds} s, with the login as it is then");
            told = message;
        }
        std::thread::sleep(PAUSE.min(left));
    }
}
