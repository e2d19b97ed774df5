//! Folders for one run among the temporary files of the system, and what becomes of those whose dyno was killed.

use crate::error::LocalError;
use crate::machine::Machine;
use crate::process;
use crate::undo;
use crate::undo::{Journal, Undo};
use dyno_rundir::files;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Prefixes of the names of such folders.
const PREFIXES: [&str; 3] = ["dyno-server-", "dyno-store-", "dyno-proof-"];

/// Least age of an abandoned folder that says nothing of its dyno: a younger one may be about to.
const YOUNG: Duration = Duration::from_secs(60);

/// A folder that is removed when this is dropped. Its journal names its dyno and what it has started, so that another dyno can
/// do it instead.
#[derive(Debug)]
pub struct Temporary {
    journal: Journal,
    data: PathBuf,
    _folder: TempDir,
    /// Held until this process ends, however it does: also a dyno that does not see the process is told that it runs.
    _lock: File,
}

/// The file that is locked.
const LOCK: &str = "lock";

impl Temporary {
    /// Makes one for the data of a temporary server.
    pub fn for_server() -> Result<Self, LocalError> {
        Temporary::make(PREFIXES[0])
    }

    /// Makes one for the data of an embedded store.
    pub fn for_store() -> Result<Self, LocalError> {
        Temporary::make(PREFIXES[1])
    }

    /// Makes one for the servers of a proof.
    pub fn for_proof() -> Result<Self, LocalError> {
        Temporary::make(PREFIXES[2])
    }

    fn make(prefix: &str) -> Result<Self, LocalError> {
        let above = std::env::temp_dir();
        let failed = |e| LocalError::failed_step(above.display(), e);
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix(prefix).permissions(Permissions::from_mode(0o700));
        let folder = folder.tempdir_in(&above).map_err(failed)?;
        let lock = OpenOptions::new().create_new(true).write(true).mode(0o600).open(folder.path().join(LOCK));
        let lock = lock.map_err(failed)?;
        lock.try_lock().map_err(|e| LocalError::failed_step(folder.path().display(), e))?;
        let mut journal = Journal::open(folder.path(), &Machine::default())?;
        let data = folder.path().canonicalize().map_err(failed)?.join("data");
        journal.note_action(Undo::Folder { path: data.clone() })?;
        DirBuilder::new()
            .mode(0o700)
            .create(&data)
            .map_err(|e| LocalError::failed_step(data.display(), e))?;
        Ok(Temporary { journal, data, _folder: folder, _lock: lock })
    }

    /// Folder of the server's data.
    pub fn data_folder(&self) -> &Path {
        &self.data
    }

    /// Notes a process that is to end with this dyno.
    pub fn note_process(&mut self, pid: u32) -> Result<(), LocalError> {
        let machine = Machine::default();
        let Some(started) = process::start_ticks(&machine, pid) else { return Ok(()) };
        let session = process::session_of(&machine, pid);
        self.journal.note_action(Undo::Process { pid, started, session }).map(drop)
    }
}

/// Ends temporary servers and removes temporary folders whose dyno was killed, where they are the caller's own; what was done,
/// and what could not be, one line each.
pub fn remove_abandoned() -> Vec<String> {
    abandoned_in(&std::env::temp_dir())
}

fn abandoned_in(above: &Path) -> Vec<String> {
    let entries =
        fs::read_dir(above).map(|entries| entries.flatten().collect()).unwrap_or_else(|_| Vec::new());
    let named = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let mut said = Vec::new();
    for path in entries.into_iter().filter(|e| e.file_name().to_str().is_some_and(named)).map(|e| e.path()) {
        let own = fs::symlink_metadata(&path).ok().filter(is_own);
        let Some(about) = own else { continue };
        let lock = files::open(&path.join(LOCK));
        if lock.as_ref().is_ok_and(|lock| lock.try_lock().is_err()) {
            continue;
        }
        // Servers end before the folder goes that their data are in: the folder's own journal is the last.
        let own = path.join(undo::NAME);
        let below = undo::journals_below(&path).into_iter().filter(|journal| *journal != own);
        let ended: Result<usize, LocalError> =
            below.map(|journal| undo::revert_journal(&journal, &Machine::default())).sum();
        let removed = match ended.and_then(|_| undo::revert_journal(&own, &Machine::default())) {
            // The folder's dyno has undone everything itself, or has not said yet who it is.
            Ok(0) if about.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age > YOUNG)) => {
                fs::remove_dir_all(&path).map_err(|e| e.to_string())
            }
            Ok(0) => continue,
            Ok(_) => fs::remove_dir_all(&path).map_err(|e| e.to_string()),
            // The folder's dyno runs.
            Err(LocalError::Refused(_)) => continue,
            Err(error) => Err(error.to_string()),
        };
        said.push(match removed {
            Ok(()) => format!("{}: removed; the dyno that made it was killed", path.display()),
            Err(why) => format!("{}: a dyno that was killed has left it: {why}", path.display()),
        });
    }
    said
}

/// A folder of the caller's own, no link, that no other user reaches.
fn is_own(about: &Metadata) -> bool {
    about.is_dir() && about.uid() == rustix::process::geteuid().as_raw() && about.mode() & 0o077 == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trusted;
    use std::os::unix::fs::symlink;

    /// A folder as a dyno leaves it: its process number and start, and what is to be undone.
    fn left(above: &Path, name: &str, owner: (u32, u64)) -> PathBuf {
        let folder = above.join(name);
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        fs::create_dir(folder.join("data")).unwrap();
        let boot = process::boot(&Machine::default()).unwrap();
        let line = serde_json::json!({"owner": owner.0, "started": owner.1, "boot": boot});
        let entry = serde_json::json!({"id": 1, "undo": "folder", "path": folder.join("data")});
        trusted::write(&folder.join(undo::NAME), format!("{line}\n{entry}\n").as_bytes()).unwrap();
        folder
    }

    #[test]
    fn only_the_callers_own_folders_of_a_dyno_that_is_gone_are_removed() {
        let above = tempfile::tempdir().unwrap();
        let above = above.path().canonicalize().unwrap();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = process::start_ticks(&Machine::default(), other.id()).unwrap();
        let gone = left(&above, "dyno-server-gone", (other.id(), started + 1));
        let store = left(&above, "dyno-store-gone", (other.id(), started + 1));
        let runs = left(&above, "dyno-server-runs", (other.id(), started));
        // As a container sees it that has the folder and not the process.
        let held = left(&above, "dyno-server-held", (other.id(), started + 1));
        let lock = File::create(held.join(LOCK)).unwrap();
        lock.lock().unwrap();
        let foreign = left(&above, "another-users", (other.id(), started + 1));
        let open = left(&above, "dyno-server-open", (other.id(), started + 1));
        fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
        let (link, young) = (above.join("dyno-server-link"), above.join("dyno-server-young"));
        symlink(&foreign, &link).unwrap();
        DirBuilder::new().mode(0o700).create(&young).unwrap();
        let mut said = abandoned_in(&above);
        said.sort();
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(
            said[0].contains("dyno-server-gone: removed") && said[1].contains("dyno-store-gone: removed")
        );
        assert!(!gone.exists() && !store.exists());
        for kept in [&runs, &held, &foreign, &open, &young] {
            assert!(kept.exists(), "{}", kept.display());
        }
        assert!(link.is_symlink() && foreign.join("data").exists());
    }

    #[test]
    fn a_folder_goes_with_its_owner() {
        let made = Temporary::for_server().unwrap();
        let (data, folder) = (made.data_folder().to_owned(), made._folder.path().to_owned());
        assert!(data.is_dir() && is_own(&fs::metadata(&folder).unwrap()));
        drop(made);
        assert!(!folder.exists());
    }
}
