//! The list of journals that this user's dyno has begun on this host. A directory that was unpacked can hold a journal that
//! names anything, but no archive is unpacked into this list: what a journal says is followed only while it stands here.
//!
//! An entry is a file named by the journal's random number, in `journals/` below the user's state: `$DYNO_STATE` alone, else
//! `$XDG_STATE_HOME/dyno`, `~/.local/state/dyno`, or where neither can be made a folder of the user's own in `/var/tmp` or for
//! temporary files. It is there from before the first thing is done until nothing is left to be undone.

use crate::error::LocalError;
use crate::machine::Machine;
use crate::process;
use crate::trusted;
use dyno_rundir::files;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Folder of the entries.
const FOLDER: &str = "journals";
/// Age of an entry whose journal has had the time to be written.
const YOUNG: Duration = Duration::from_secs(60);

/// An entry.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RegistryEntry {
    /// The journal's path, behind all links.
    journal: PathBuf,
    /// The file, by its filesystem and its number there: a copy is another one. None of a journal of objects in a cluster, whose
    /// name is random.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<(u64, u64)>,
    /// The host: folders of users may be shared by several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

impl RegistryEntry {
    fn is_of(&self, machine: &Machine) -> bool {
        self.host.is_none() || self.host == process::host(machine)
    }
}

/// A new random number of a journal: 32 hexadecimal digits.
pub(crate) fn number() -> Result<String, LocalError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| LocalError::failed_step("no random numbers", e))?;
    Ok(hex::encode(bytes))
}

fn is_number(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Enters a journal: the file at `path`, which is open.
pub(crate) fn enter(machine: &Machine, id: &str, path: &Path, file: &File) -> Result<(), LocalError> {
    let about = file.metadata().map_err(|e| LocalError::failed_step(path.display(), e))?;
    write(
        machine,
        id,
        &RegistryEntry {
            journal: path.to_owned(),
            file: Some((about.dev(), about.ino())),
            host: process::host(machine),
        },
    )
}

/// Enters a journal of objects in a cluster that is about to be written, by its path, whose name no other user can guess. In a
/// pod it is of no host: a controller that was killed may go on in a pod elsewhere.
pub fn enter_path(machine: &Machine, path: &Path) -> Result<(), LocalError> {
    forget_ended(machine);
    let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
    let host = process::host(machine).filter(|_| !in_pod);
    write(machine, &number()?, &RegistryEntry { journal: behind_links(path), file: None, host })
}

fn write(machine: &Machine, id: &str, entry: &RegistryEntry) -> Result<(), LocalError> {
    let text = serde_json::to_vec(entry).map_err(|e| LocalError::failed_step(entry.journal.display(), e))?;
    let mut why = Vec::new();
    for state in machine.state.iter().filter(|state| is_own(state)) {
        let folder = state.join(FOLDER);
        let made = trusted::make_folder(&folder).map_err(|e| LocalError::failed_step(folder.display(), e));
        match made.and_then(|()| trusted::folder(&folder)).and_then(|()| written(&folder.join(id), &text)) {
            Ok(()) => return Ok(()),
            Err(error) => why.push(error.to_string()),
        }
    }
    let what = "what dyno changes on this host cannot be noted: no folder for the list of its journals";
    Err(LocalError::Failed(format!("{what}: {}", why.join("; "))))
}

/// Returns whether a folder for the user's state is the user's own, or would be: not the home of the user who called `sudo`.
fn is_own(state: &Path) -> bool {
    let about = state.ancestors().find_map(|folder| folder.metadata().ok());
    about.is_some_and(|about| {
        let (owner, user) = (about.uid(), rustix::process::geteuid().as_raw());
        // Temporary folders of containers are root's, and have no sticky bit.
        owner == user || owner == 0 || about.mode() & 0o1000 != 0
    })
}

fn written(path: &Path, text: &[u8]) -> Result<(), LocalError> {
    let mut options = OpenOptions::new();
    let file = options.create_new(true).write(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()))
        .map_err(|e| LocalError::failed_step(path.display(), e))
}

/// Takes a journal from the list.
pub(crate) fn leave(machine: &Machine, id: &str) {
    if is_number(id) {
        for state in &machine.state {
            // It stands in one of them.
            let _ = fs::remove_file(state.join(FOLDER).join(id));
        }
    }
}

/// Returns whether the file at `path`, which is open, is the journal of this number.
pub(crate) fn knows(machine: &Machine, id: &str, path: &Path, file: &File) -> bool {
    let Ok(about) = file.metadata() else { return false };
    // After a move the file has another path. Some filesystems number files anew: the path and an unguessable number do.
    let is_it = |entry: RegistryEntry| {
        entry
            .file
            .is_some_and(|file| behind_links(path) == entry.journal || file == (about.dev(), about.ino()))
    };
    is_number(id) && machine.state.iter().filter_map(|state| entry(&state.join(FOLDER), id)).any(is_it)
}

fn entry(folder: &Path, id: &str) -> Option<RegistryEntry> {
    trusted::folder(folder).ok()?;
    let mut options = OpenOptions::new();
    trusted::open(&folder.join(id), options.read(true)).ok()??;
    serde_json::from_slice(&files::read(&folder.join(id)).ok()?).ok()
}

/// The path with the links above its last part followed.
fn behind_links(path: &Path) -> PathBuf {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (above.canonicalize(), path.file_name()) {
        (Ok(above), Some(name)) => above.join(name),
        _ => path.to_owned(),
    }
}

/// Entries with their numbers, as far as they can be read.
fn entries(machine: &Machine) -> Vec<(String, RegistryEntry)> {
    let folders = machine.state.iter().map(|state| state.join(FOLDER));
    let of_folder = |folder: PathBuf| {
        let names = fs::read_dir(&folder).into_iter().flatten().flatten();
        let ids = names.filter_map(|name| name.file_name().into_string().ok()).filter(|name| is_number(name));
        ids.filter_map(|id| Some((id.clone(), entry(&folder, &id)?))).collect::<Vec<_>>()
    };
    folders.flat_map(of_folder).collect()
}

/// Returns whether a journal that was entered by its path stands in the list.
pub fn has_path(machine: &Machine, path: &Path) -> bool {
    let path = behind_links(path);
    entries(machine).iter().any(|(_, entry)| entry.file.is_none() && entry.journal == path)
}

/// Forgets journals of objects in clusters that are no more: the end of a run removes them.
fn forget_ended(machine: &Machine) {
    for (id, entry) in entries(machine).into_iter().filter(|(_, entry)| entry.file.is_none()) {
        // It may be about to be written, or on a disk that is not mounted now.
        let at = machine
            .state
            .iter()
            .find_map(|state| state.join(FOLDER).join(&id).metadata().ok()?.modified().ok());
        let old = at.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > YOUNG);
        if old
            && entry.is_of(machine)
            && entry.journal.parent().is_some_and(Path::is_dir)
            && !entry.journal.exists()
        {
            leave(machine, &id);
        }
    }
}

/// Journals of the list on this host by their paths, ascending, as far as they are there now.
pub fn list_journals(machine: &Machine) -> Vec<PathBuf> {
    let here = entries(machine).into_iter().filter(|(_, entry)| entry.is_of(machine));
    let paths = here.map(|(_, entry)| entry.journal);
    let mut found: Vec<PathBuf> = paths.filter(|path| path.symlink_metadata().is_ok()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The mark beside something that dyno makes outside a journal's directory: `.NAME.dyno`, with the journal's number.
fn mark(path: &Path) -> Option<PathBuf> {
    Some(path.with_file_name(format!(".{}.dyno", path.file_name()?.to_str()?)))
}

/// Marks what is about to be made.
pub(crate) fn set_mark(path: &Path, id: &str) -> Result<(), LocalError> {
    let mark = mark(path).ok_or_else(|| {
        LocalError::refuse(path.display().to_string(), format!("{}: has no name", path.display()))
    })?;
    trusted::write(&mark, id.as_bytes()).map_err(|e| LocalError::failed_step(mark.display(), e))
}

/// Returns whether the journal of this number has marked it.
pub(crate) fn is_marked(path: &Path, id: &str) -> bool {
    let Some(mark) = mark(path) else { return false };
    let own = fs::symlink_metadata(&mark)
        .is_ok_and(|about| about.is_file() && about.uid() == rustix::process::geteuid().as_raw());
    own && files::read(&mark).is_ok_and(|text| text == id.as_bytes())
}

/// Removes the journal's mark, if it has made one.
pub(crate) fn remove_mark(path: &Path, id: &str) {
    if is_marked(path, id)
        && let Some(mark) = mark(path)
    {
        let _ = fs::remove_file(mark);
    }
}
