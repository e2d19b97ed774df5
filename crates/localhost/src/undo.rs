//! The journal of what must be put back.
//!
//! Each entry is a line of `undo.jsonl`, appended before the thing is done. A normal stop takes the same list from its end;
//! after a dyno that was killed, [`revert_journal`] does it from the file. Every entry can be undone twice, or without ever
//! having
//! been done.

pub(crate) mod entry;

pub use entry::Undo;

use crate::cgroup::removal;
use crate::error::LocalError;
use crate::machine::Machine;
use crate::trusted;
use crate::{packet_filter, process, registry, shaping, storage, undo_policy};
use dyno_rundir::files;
use dyno_types::bounded;
use dyno_types::limits::DOCUMENT_BYTES;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
enum UndoLine {
    Owner {
        owner: u32,
        started: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        journal: Option<String>,
    },
    /// A folder for data, in journals of earlier versions: nothing follows from it.
    Folder {
        data: PathBuf,
    },
    Do {
        id: u64,
        #[serde(flatten)]
        undo: Undo,
    },
    Done {
        undone: u64,
    },
}

/// The journal of one server or of the host's settings.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// Random, by which the list of journals knows it.
    id: String,
    next: u64,
    pending: Vec<(u64, Undo)>,
    machine: Machine,
}

/// Name of the journal in its directory.
pub const NAME: &str = "undo.jsonl";

impl Journal {
    /// Opens `undo.jsonl` in a directory; refuses a journal that still has something to be undone.
    pub fn open(directory: &Path, machine: &Machine) -> Result<Self, LocalError> {
        let path = directory.join(NAME);
        let failed = |e: io::Error| LocalError::failed_step(path.display(), e);
        trusted::make_folder(directory).map_err(failed)?;
        let directory = directory.canonicalize().map_err(failed)?;
        let path = directory.join(NAME);
        let mut options = OpenOptions::new();
        options.read(true).append(true).mode(0o600);
        let (file, before) = match trusted::open(&path, &mut options)? {
            Some(mut file) => {
                let found = read(&mut file, &path)?;
                (file, Some(found))
            }
            None => (options.create_new(true).open(&path).map_err(failed)?, None),
        };
        if before.as_ref().is_some_and(|found| !found.pending.is_empty()) {
            let place = path.display().to_string();
            let text = format!("{place}: an earlier run has left something that must be undone first");
            return Err(LocalError::refuse(place, text));
        }
        file.set_len(before.map_or(0, |found| found.whole)).map_err(failed)?;
        let id = registry::number()?;
        let mut journal = Journal { file, path, id, next: 1, pending: Vec::new(), machine: machine.clone() };
        let owner = std::process::id();
        // Numbers begin anew with each owner.
        let started = process::start_ticks(&journal.machine, owner).unwrap_or(0);
        let boot = process::boot(&journal.machine);
        let host = process::host(&journal.machine);
        let number = Some(journal.id.clone());
        journal.append(&UndoLine::Owner { owner, started, boot, host, journal: number })?;
        Ok(journal)
    }

    /// Notes what is about to be done.
    pub fn note_action(&mut self, undo: Undo) -> Result<u64, LocalError> {
        let id = self.next;
        if self.pending.is_empty() {
            registry::enter(&self.machine, &self.id, &self.path, &self.file)?;
        }
        self.append(&UndoLine::Do { id, undo: undo.clone() })?;
        if let Some(outside) = undo_policy::outside(self.directory(), &undo) {
            registry::set_mark(&outside, &self.id)?;
        }
        tracing::debug!(journal = %self.path.display(), id, undo = ?undo, "noted what is to be undone");
        self.next += 1;
        self.pending.push((id, undo));
        Ok(id)
    }

    /// Returns the entry of that number, if it is not undone yet.
    pub fn noted_entry(&self, id: u64) -> Option<&Undo> {
        self.pending.iter().find(|(known, _)| *known == id).map(|(_, undo)| undo)
    }

    /// Undoes one thing now.
    pub fn undo_one(&mut self, id: u64) -> Result<(), LocalError> {
        let Some(at) = self.pending.iter().position(|(known, _)| *known == id) else { return Ok(()) };
        let what = &self.pending[at].1;
        undo_one(what, &self.machine).inspect_err(|error| {
            tracing::error!(journal = %self.path.display(), id, undo = ?what, %error, "could not be undone");
        })?;
        tracing::debug!(journal = %self.path.display(), id, "undone");
        self.forget_note(id)
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("/"))
    }

    /// Undoes everything, the last first; goes on after a failure and tells of all.
    pub fn undo_all(&mut self) -> Result<(), LocalError> {
        let mut failures = Vec::new();
        let ids: Vec<u64> = self.pending.iter().rev().map(|(id, _)| *id).collect();
        for id in ids {
            if let Err(failure) = self.undo_one(id) {
                failures.push(failure.to_string());
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(LocalError::Failed(failures.join("; "))) }
    }

    /// Returns the end of the list now, for [`Journal::undo_since`].
    pub fn current_end(&self) -> u64 {
        self.next
    }

    /// Undoes everything noted since a mark, the last first.
    pub fn undo_since(&mut self, mark: u64) -> Result<(), LocalError> {
        let ids: Vec<u64> = self.pending.iter().rev().map(|(id, _)| *id).filter(|id| *id >= mark).collect();
        ids.into_iter().try_for_each(|id| self.undo_one(id))
    }

    /// Takes back the note of something that has turned out not to have been done.
    pub fn forget_note(&mut self, id: u64) -> Result<(), LocalError> {
        let Some(at) = self.pending.iter().position(|(known, _)| *known == id) else { return Ok(()) };
        let (_, undo) = self.pending.remove(at);
        if let Some(outside) = undo_policy::outside(self.directory(), &undo) {
            registry::remove_mark(&outside, &self.id);
        }
        self.append(&UndoLine::Done { undone: id })?;
        if self.pending.is_empty() {
            registry::leave(&self.machine, &self.id);
        }
        Ok(())
    }

    /// Returns whether nothing is left to be undone.
    pub fn is_clear(&self) -> bool {
        self.pending.is_empty()
    }

    fn append(&mut self, line: &UndoLine) -> Result<(), LocalError> {
        let mut text =
            serde_json::to_string(line).map_err(|e| LocalError::failed_step(self.path.display(), e))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|e| LocalError::failed_step(self.path.display(), e))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Entries that fail here stay in the file, for `revert`.
        let _ = self.undo_all();
    }
}

/// Content of a journal.
#[derive(Default)]
struct FoundJournal {
    owner: Option<(u32, u64)>,
    boot: Option<String>,
    host: Option<String>,
    /// Its number in the list of journals.
    journal: Option<String>,
    pending: Vec<(u64, Undo)>,
    /// Length of its whole lines, bytes.
    whole: u64,
}

impl FoundJournal {
    /// The process that has written it runs still: this running of the kernel, number and start are its own.
    fn is_owner_running(&self, machine: &Machine) -> bool {
        let now = process::boot(machine);
        let gone = self.boot.is_some() && now.is_some() && self.boot != now;
        let running = |(owner, started)| process::start_ticks(machine, owner) == Some(started);
        !gone && self.owner.is_some_and(running)
    }
}

fn read(file: &mut File, path: &Path) -> Result<FoundJournal, LocalError> {
    let text =
        bounded::no_longer(file, DOCUMENT_BYTES).and_then(|()| bounded::read_text(file, DOCUMENT_BYTES));
    let text = text.map_err(|e| LocalError::failed_step(path.display(), e))?;
    // A line that was cut off while it was written is of something that had not been done.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut found = FoundJournal { whole: whole.len() as u64, ..FoundJournal::default() };
    for (number, line) in whole.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(UndoLine::Owner { owner, started, boot, host, journal }) => {
                (found.owner, found.boot, found.host) = (Some((owner, started)), boot, host);
                found.journal = journal;
            }
            Ok(UndoLine::Folder { .. }) => {}
            Ok(UndoLine::Do { id, undo }) => found.pending.push((id, undo)),
            // Numbers begin anew with each owner, but an owner begins only when nothing is pending.
            Ok(UndoLine::Done { undone }) => found.pending.retain(|(id, _)| *id != undone),
            Err(e) => return Err(LocalError::failed_step(format!("{}:{}", path.display(), number + 1), e)),
        }
    }
    Ok(found)
}

/// Journals in a folder and below it, as deep as an experiment's directory goes. What is behind a link belongs to another user
/// or program: a journal there is refused.
pub fn journals_below(path: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let (mut journals, mut folders) = (Vec::new(), vec![(path.to_owned(), 0)]);
    while let Some((folder, depth)) = folders.pop() {
        journals.extend(Some(folder.join(NAME)).filter(|journal| journal.symlink_metadata().is_ok()));
        // runs/CELL.server/worker-0 is the deepest.
        if depth < 4 && !(depth > 0 && folder.is_symlink()) {
            folders.extend(entries(&folder).filter(|e| e.path().is_dir()).map(|e| (e.path(), depth + 1)));
        }
    }
    journals
}

/// Reads a journal for display; undoes nothing.
fn look(path: &Path) -> Result<FoundJournal, LocalError> {
    let mut file = files::open(path).map_err(|e| LocalError::failed_step(path.display(), e))?;
    read(&mut file, path)
}

/// Counts the running processes that a journal names.
pub fn count_running(path: &Path, machine: &Machine) -> usize {
    let pending = look(path).map(|found| found.pending).unwrap_or_default();
    let runs = |undo: &Undo| match undo {
        Undo::Process { pid, started, .. } => process::start_ticks(machine, *pid) == Some(*started),
        _ => false,
    };
    pending.iter().filter(|(_, undo)| runs(undo)).count()
}

/// Counts the things that a journal says are still to be undone; one that cannot be read is itself one.
pub fn count_pending(path: &Path) -> usize {
    look(path).map_or(1, |found| found.pending.len())
}

/// Returns whether the dyno that writes on a journal runs.
pub fn is_followed(path: &Path, machine: &Machine) -> bool {
    look(path).is_ok_and(|found| found.is_owner_running(machine))
}

/// Undoes what a dyno that is no more has left, from its journal; the number of things undone. A journal whose dyno still
/// runs is refused, a journal that is not there is clear. One that is not the caller's own, or of another host, is refused as a
/// whole; of others an entry that no dyno writes stays, and is named.
pub fn revert_journal(path: &Path, machine: &Machine) -> Result<usize, LocalError> {
    // Nothing is believed of a journal with nothing left to be done, no matter which user wrote it.
    if look(path).is_ok_and(|found| found.pending.is_empty()) {
        return Ok(0);
    }
    let Some(mut file) = trusted::open(path, OpenOptions::new().read(true).append(true))? else {
        return Ok(0);
    };
    let found = read(&mut file, path)?;
    let now = process::boot(machine);
    // One running of a kernel is of one host, whatever a container calls it.
    let same_boot = found.boot.is_some() && found.boot == now;
    if !same_boot && found.host.is_some() && found.host != process::host(machine) {
        let why = "was made on another host, and nothing of it is done here: `dyno stop` it there, or remove the file \
                   where that host is no more";
        return Err(LocalError::Untrusted(format!("{}: {why}", path.display())));
    }
    // After a restart of the host none of those processes is there, whatever runs under their numbers now, and no table.
    let gone = found.boot.is_some() && now.is_some() && found.boot != now;
    if let Some((owner, _)) = found.owner
        && owner != std::process::id()
        && found.is_owner_running(machine)
    {
        let place = path.display().to_string();
        let text = format!("{place}: its dyno, process {owner}, still runs");
        return Err(LocalError::refuse(place, text));
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let directory = directory.canonicalize().map_err(|e| LocalError::failed_step(directory.display(), e))?;
    // Without either it is not known whose numbers those of its processes are.
    let known = found.host.is_some() || found.boot.is_some();
    let listed = found.journal.as_deref().filter(|id| registry::knows(machine, id, path, &file));
    let within = undo_policy::AllowedPaths { directory: &directory, listed, machine, known };
    file.set_len(found.whole).map_err(|e| LocalError::failed_step(path.display(), e))?;
    let (mut undone, mut failures, mut refused) = (0, Vec::new(), false);
    for (id, undo) in found.pending.iter().rev().filter(|(_, undo)| !within.is_passed_over(undo)) {
        let done = match undo {
            Undo::Process { .. } | Undo::Continue { .. } | Undo::Table { .. } | Undo::Device { .. }
                if gone =>
            {
                Ok(())
            }
            undo => match within.refuse_entry(undo) {
                None => undo_one(undo, machine),
                Some(why) => {
                    refused = true;
                    let how =
                        "left as it is: look at it, undo it by hand, and remove that line of the journal";
                    Err(LocalError::Failed(format!("{}: {why}; {how}", path.display())))
                }
            },
        };
        match done {
            Ok(()) => {
                undone += 1;
                if let (Some(outside), Some(listed)) = (undo_policy::outside(&directory, undo), listed) {
                    registry::remove_mark(&outside, listed);
                }
                writeln!(file, "{{\"undone\":{id}}}")
                    .map_err(|e| LocalError::failed_step(path.display(), e))?;
            }
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    match (failures.is_empty(), refused) {
        (true, _) => {
            listed.into_iter().for_each(|id| registry::leave(machine, id));
            Ok(undone)
        }
        (false, true) => Err(LocalError::Untrusted(failures.join("; "))),
        (false, false) => Err(LocalError::Failed(failures.join("; "))),
    }
}

fn undo_one(undo: &Undo, machine: &Machine) -> Result<(), LocalError> {
    let gone = |result: io::Result<()>, path: &Path| match result {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(LocalError::failed_step(path.display(), e)),
        _ => Ok(()),
    };
    match undo {
        Undo::Process { pid, started, session } => {
            process::end(machine, (*pid, *started, *session), Duration::from_secs(5))
        }
        Undo::Continue { pid, started } => {
            process::go_on(machine, *pid, *started);
            Ok(())
        }
        Undo::Cgroup { path } => removal::remove(path),
        Undo::Mount { path } => storage::unmount(machine, path),
        Undo::Loop { file } => storage::detach(machine, file),
        Undo::Array { device } => storage::stop_array(machine, device),
        Undo::File { path } => gone(fs::remove_file(path), path),
        Undo::Folder { path } => {
            // Never through a mount: the filesystem below it has another owner until it is unmounted.
            if storage::mounts_below(machine, path)?.is_empty() {
                gone(fs::remove_dir_all(path), path)
            } else {
                Err(LocalError::Failed(format!("{}: something is mounted there", path.display())))
            }
        }
        Undo::Table { name } => packet_filter::remove(machine, name),
        Undo::Device { name, handle } => shaping::remove(machine, name, handle),
        Undo::Value { path, old } => match fs::write(path, old) {
            // Its device is gone, and its settings with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => {
                done.map_err(|e| LocalError::failed_step(format!("{} back to {old:?}", path.display()), e))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: impl AsRef<[u8]>) -> io::Result<()> {
        trusted::write(path, text.as_ref())
    }

    #[test]
    fn a_line_that_was_cut_off_is_of_nothing_done() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::default();
        let file = directory.path().join("x.data");
        fs::write(&file, "").unwrap();
        let path = directory.path().join(NAME);
        let entry = serde_json::json!({"id": 1, "undo": "file", "path": file});
        let lines = format!("{{\"owner\":1,\"started\":1}}\n{entry}\n{{\"id\":2,\"undo\":\"fi");
        write(&path, &lines).unwrap();
        assert!(
            Journal::open(directory.path(), &machine)
                .unwrap_err()
                .to_string()
                .contains("must be undone first")
        );
        assert_eq!(revert_journal(&path, &machine).unwrap(), 1);
        assert!(!file.exists());
        let mut journal = Journal::open(directory.path(), &machine).unwrap();
        journal.note_action(Undo::File { path: file.clone() }).unwrap();
        // The file was never made.
        journal.undo_all().unwrap();
        drop(journal);
        assert_eq!(revert_journal(&path, &machine).unwrap(), 0);
        assert_eq!(revert_journal(&directory.path().join("none"), &machine).unwrap(), 0);
    }

    #[test]
    fn a_journal_whose_dyno_runs_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::default();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = process::start_ticks(&machine, other.id()).unwrap();
        let path = directory.path().join(NAME);
        let owner = |started: u64| format!("{{\"owner\":{},\"started\":{started}}}\n", other.id());
        let file = directory.path().join("x.data");
        let entry = serde_json::json!({"id": 1, "undo": "file", "path": file});
        fs::write(&file, "").unwrap();
        write(&path, format!("{}{entry}\n", owner(started))).unwrap();
        assert!(revert_journal(&path, &machine).unwrap_err().to_string().contains("still runs"));
        assert!(file.exists());
        // The same number, but another process.
        write(&path, format!("{}{entry}\n", owner(started + 1))).unwrap();
        assert_eq!(revert_journal(&path, &machine).unwrap(), 1);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn after_a_restart_of_the_host_numbers_are_of_other_processes() {
        let directory = tempfile::tempdir().unwrap();
        let machine = Machine::default();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, started) = (other.id(), process::start_ticks(&machine, other.id()).unwrap());
        let path = directory.path().join(NAME);
        let process = serde_json::json!({"id": 1, "undo": "process", "pid": pid, "started": started});
        // The owner's pid, too, is reused by a live process.
        let owner = |boot: &str| serde_json::json!({"owner": pid, "started": started, "boot": boot});
        write(&path, format!("{}\n{process}\n", owner("before"))).unwrap();
        assert_eq!(revert_journal(&path, &machine).unwrap(), 1);
        assert_eq!(process::start_ticks(&machine, pid), Some(started));
        let boot = process::boot(&machine).unwrap();
        write(&path, format!("{}\n{process}\n", owner(&boot))).unwrap();
        assert!(revert_journal(&path, &machine).unwrap_err().to_string().contains("still runs"));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn what_is_no_journal_is_named_by_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        write(&path, "{\"owner\":1,\"started\":1}\n{\"id\":1,\"undo\":\"everything\"}\n").unwrap();
        let error = revert_journal(&path, &Machine::default()).unwrap_err().to_string();
        assert!(error.contains("undo.jsonl:2"), "{error}");
    }
}
