//! The journal of what must be put back.
//!
//! Each entry is a line of `undo.jsonl`, appended before the thing is done. A normal stop takes the same list from its end;
//! after a dyno that was killed, [`revert`] does it from the file. Every entry can be undone twice, or without ever having
//! been done.
//!
//! A journal that is read is a list of things that are done with the caller's rights. So it must be the caller's own
//! ([`own::read`]) and of this host, and it is done only what dyno could have noted ([`Undo::is_dynos`]).

use super::error::LocalError;
use super::machine::Machine;
use super::{cgroup, packets, process, shaping, storage, tuning};
use crate::own;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Something that must be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "undo")]
pub enum Undo {
    /// A process to be ended, and its group; its start time tells it from a later one of the same number.
    Process {
        /// Its number, and its group's.
        pid: u32,
        /// Clock ticks since the host's start.
        started: u64,
        /// Its session, by which what has outlived it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<u32>,
    },
    /// A process that was stopped (SIGSTOP), and its group: it goes on.
    Continue {
        /// Its number, and its group's if it leads one.
        pid: u32,
        /// Clock ticks since the host's start.
        started: u64,
    },
    /// A control group to be removed, with what still runs in it.
    Cgroup {
        /// Its folder.
        path: PathBuf,
    },
    /// A filesystem to be unmounted.
    Mount {
        /// Where.
        path: PathBuf,
    },
    /// Loop devices to be detached.
    Loop {
        /// The file behind them.
        file: PathBuf,
    },
    /// An md array to be stopped.
    Array {
        /// Its device.
        device: PathBuf,
    },
    /// A file to be removed.
    File {
        /// Its path.
        path: PathBuf,
    },
    /// A folder to be removed with all that is in it.
    Folder {
        /// Its path.
        path: PathBuf,
    },
    /// A table of the packet filter to be removed.
    Table {
        /// Its name.
        name: String,
    },
    /// A network device to be given its usual queueing discipline.
    Device {
        /// Its name.
        name: String,
        /// The handle of the root that is ours.
        handle: String,
    },
    /// A setting of the kernel to be written back.
    Value {
        /// Its file.
        path: PathBuf,
        /// What was in it.
        old: String,
    },
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", untagged)]
enum Line {
    Owner {
        owner: u32,
        started: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        boot: Option<String>,
        /// Where it was written; older journals have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
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
    next: u64,
    pending: Vec<(u64, Undo)>,
    machine: Machine,
}

/// Its name in a home.
pub const NAME: &str = "undo.jsonl";

impl Journal {
    /// Opens `undo.jsonl` in a home; refuses a journal that still has something to be undone.
    pub fn open(home: &Path, machine: &Machine) -> Result<Self, LocalError> {
        let path = home.join(NAME);
        let failed = |e: io::Error| LocalError::failed(path.display(), e);
        DirBuilder::new().recursive(true).mode(0o700).create(home).map_err(failed)?;
        let before = if path.exists() { Some(read(&path)?) } else { None };
        if before.as_ref().is_some_and(|found| !found.pending.is_empty()) {
            return Err(LocalError::Refused(format!(
                "{}: an earlier run has left something that must be undone first",
                path.display()
            )));
        }
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path).map_err(failed)?;
        file.set_len(before.map_or(0, |found| found.whole)).map_err(failed)?;
        let mut journal = Journal { file, path, next: 1, pending: Vec::new(), machine: machine.clone() };
        let owner = std::process::id();
        // Numbers begin anew with each owner.
        let started = process::started(&journal.machine, owner).unwrap_or(0);
        let boot = process::boot(&journal.machine);
        journal.append(&Line::Owner { owner, started, boot, host: Some(own::host()) })?;
        Ok(journal)
    }

    /// Notes what is about to be done.
    pub fn add(&mut self, undo: Undo) -> Result<u64, LocalError> {
        let id = self.next;
        self.append(&Line::Do { id, undo: undo.clone() })?;
        self.next += 1;
        self.pending.push((id, undo));
        Ok(id)
    }

    /// What is noted by that number and not undone yet.
    pub fn noted(&self, id: u64) -> Option<&Undo> {
        self.pending.iter().find(|(known, _)| *known == id).map(|(_, undo)| undo)
    }

    /// Undoes one thing now.
    pub fn undo(&mut self, id: u64) -> Result<(), LocalError> {
        let Some(at) = self.pending.iter().position(|(known, _)| *known == id) else { return Ok(()) };
        undo_one(&self.pending[at].1, &self.machine)?;
        self.pending.remove(at);
        self.append(&Line::Done { undone: id })
    }

    /// Undoes everything, the last first; goes on after a failure and tells of all.
    pub fn undo_all(&mut self) -> Result<(), LocalError> {
        let mut failures = Vec::new();
        let ids: Vec<u64> = self.pending.iter().rev().map(|(id, _)| *id).collect();
        for id in ids {
            if let Err(failure) = self.undo(id) {
                failures.push(failure.to_string());
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(LocalError::Failed(failures.join("; "))) }
    }

    /// Where the list ends now, for [`Journal::undo_since`].
    pub fn mark(&self) -> u64 {
        self.next
    }

    /// Undoes everything noted since a mark, the last first.
    pub fn undo_since(&mut self, mark: u64) -> Result<(), LocalError> {
        let ids: Vec<u64> = self.pending.iter().rev().map(|(id, _)| *id).filter(|id| *id >= mark).collect();
        ids.into_iter().try_for_each(|id| self.undo(id))
    }

    /// Takes back the note of something that has turned out not to have been done.
    pub fn forget(&mut self, id: u64) -> Result<(), LocalError> {
        self.pending.retain(|(known, _)| *known != id);
        self.append(&Line::Done { undone: id })
    }

    /// Whether nothing is left to be undone.
    pub fn is_clear(&self) -> bool {
        self.pending.is_empty()
    }

    fn append(&mut self, line: &Line) -> Result<(), LocalError> {
        let mut text = serde_json::to_string(line).map_err(|e| LocalError::failed(self.path.display(), e))?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|e| LocalError::failed(self.path.display(), e))
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // What fails here stays in the file, for `revert`.
        let _ = self.undo_all();
    }
}

/// What a file says.
struct Found {
    owner: Option<(u32, u64)>,
    boot: Option<String>,
    host: Option<String>,
    pending: Vec<(u64, Undo)>,
    /// Length of its whole lines, bytes.
    whole: u64,
}

fn read(path: &Path) -> Result<Found, LocalError> {
    let text = own::read(path)?;
    // A line that was cut off while it was written is of something that had not been done.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    let mut found =
        Found { owner: None, boot: None, host: None, pending: Vec::new(), whole: whole.len() as u64 };
    for (number, line) in whole.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(Line::Owner { owner, started, boot, host }) => {
                (found.owner, found.boot, found.host) = (Some((owner, started)), boot, host)
            }
            Ok(Line::Do { id, undo }) => found.pending.push((id, undo)),
            // Numbers begin anew with each owner, but an owner begins only when nothing is pending.
            Ok(Line::Done { undone }) => found.pending.retain(|(id, _)| *id != undone),
            Err(e) => return Err(LocalError::failed(format!("{}:{}", path.display(), number + 1), e)),
        }
    }
    Ok(found)
}

/// How many processes that a journal names run now.
pub fn running(path: &Path, machine: &Machine) -> usize {
    let pending = read(path).map(|found| found.pending).unwrap_or_default();
    let runs = |undo: &Undo| match undo {
        Undo::Process { pid, started, .. } => process::started(machine, *pid) == Some(*started),
        _ => false,
    };
    pending.iter().filter(|(_, undo)| runs(undo)).count()
}

/// How many things a journal says are still to be undone; one that cannot be read is itself one.
pub fn pending(path: &Path) -> usize {
    read(path).map_or(1, |found| found.pending.len())
}

/// Undoes what a dyno that is no more has left, from its journal; the number of things undone. A journal whose dyno still
/// runs is refused, a journal that is not there is clear. Refused are, too, one that is not the caller's own or of another
/// host, and what dyno never notes; that stays in it.
pub fn revert(path: &Path, machine: &Machine) -> Result<usize, LocalError> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(0);
    }
    let found = read(path)?;
    if found.pending.is_empty() {
        return Ok(0);
    }
    // After the host has been started anew none of those processes is there, whoever has their numbers now, and no table.
    let now = process::boot(machine);
    let here = match &found.host {
        Some(host) => *host == own::host(),
        // One running of a host is of one host.
        None => found.boot.is_some() && found.boot == now,
    };
    if !here {
        return Err(LocalError::Refused(format!(
            "{}: was written on another host: what it lists is not done here",
            path.display()
        )));
    }
    let gone = found.boot.is_some() && now.is_some() && found.boot != now;
    if let Some((owner, started)) = found.owner
        && !gone
        && owner != std::process::id()
        && process::started(machine, owner) == Some(started)
    {
        return Err(LocalError::Refused(format!(
            "{}: its dyno, process {owner}, still runs",
            path.display()
        )));
    }
    let mut file =
        OpenOptions::new().append(true).open(path).map_err(|e| LocalError::failed(path.display(), e))?;
    file.set_len(found.whole).map_err(|e| LocalError::failed(path.display(), e))?;
    let (mut undone, mut failures, mut refused) = (0, Vec::new(), Vec::new());
    let home = path.parent().unwrap_or(Path::new("."));
    for (id, undo) in found.pending.iter().rev() {
        if let Err(what) = undo.is_dynos(home, machine) {
            refused.push(format!("{}: {what}: dyno does not note that, and does not do it", path.display()));
            continue;
        }
        let done = match undo {
            Undo::Process { .. } | Undo::Continue { .. } | Undo::Table { .. } | Undo::Device { .. }
                if gone =>
            {
                Ok(())
            }
            undo => undo_one(undo, machine),
        };
        match done {
            Ok(()) => {
                undone += 1;
                writeln!(file, "{{\"undone\":{id}}}").map_err(|e| LocalError::failed(path.display(), e))?;
            }
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    if !refused.is_empty() {
        refused.extend(failures);
        return Err(LocalError::Refused(refused.join("; ")));
    }
    if failures.is_empty() { Ok(undone) } else { Err(LocalError::Failed(failures.join("; "))) }
}

/// What dyno calls folders and files that it makes for data outside its own folders, and its clock's leavings.
fn is_own_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let numbered = |rest: Option<&str>| rest.is_some_and(|rest| rest.parse::<u32>().is_ok());
    let end = name.rsplit_once('.').map(|(_, end)| end);
    matches!(end, Some("data" | "snapshot"))
        || numbered(end.and_then(|end| end.strip_prefix("new-")))
        || numbered(name.strip_prefix("image-"))
        || name == "dyno-filling"
        || path.parent() == Some(Path::new("/dev/shm"))
            && ["faketime_shm_", "sem.faketime_sem_"].iter().any(|head| numbered(name.strip_prefix(head)))
}

/// Whether a path leads below a folder, whatever links are on its way.
fn is_below(path: &Path, folder: &Path) -> bool {
    let (Some(parent), Ok(folder)) = (path.parent(), folder.canonicalize()) else { return false };
    // What is not there any more is removed already.
    parent.canonicalize().is_ok_and(|parent| parent.starts_with(&folder)) || !parent.exists()
}

impl Undo {
    /// Whether dyno could have noted this in a journal of that home; otherwise what it is.
    fn is_dynos(&self, home: &Path, machine: &Machine) -> Result<(), String> {
        let plain = |path: &Path| {
            path.is_absolute() && !path.components().any(|part| matches!(part, Component::ParentDir))
        };
        // A link in the place of what dyno made is somebody else's.
        let link = |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
        let own = |path: &Path| {
            let usual = is_below(path, home) || plain(path) && is_own_name(path);
            usual && !link(path) && !home.starts_with(path)
        };
        let name_of = |name: &str, head: &str| {
            name.starts_with(head) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.@".contains(&b))
        };
        let (usual, what) = match self {
            Undo::Process { pid, .. } | Undo::Continue { pid, .. } => (*pid > 1, format!("process {pid}")),
            Undo::Cgroup { path } => (cgroup::is_own(path, machine), format!("group {}", path.display())),
            Undo::Mount { path } => (is_below(path, home), format!("mount {}", path.display())),
            Undo::Loop { file } => (own(file), format!("device of {}", file.display())),
            Undo::Array { device } => {
                let name = device.strip_prefix("/dev").unwrap_or(Path::new("")).to_string_lossy();
                (name_of(&name.replace('/', "-"), "md"), format!("array {}", device.display()))
            }
            Undo::File { path } => (own(path), format!("file {}", path.display())),
            Undo::Folder { path } => (own(path), format!("folder {}", path.display())),
            Undo::Table { name } => (name_of(name, "dyno-"), format!("table {name}")),
            Undo::Device { name, handle } => {
                (name_of(name, "") && name_of(&handle.replace(':', "-"), ""), format!("device {name}"))
            }
            Undo::Value { path, old } => (
                plain(path) && tuning::is_setting(path, machine) && !old.contains(['\n', '\0']),
                format!("setting {}", path.display()),
            ),
        };
        if usual { Ok(()) } else { Err(what) }
    }
}

fn undo_one(undo: &Undo, machine: &Machine) -> Result<(), LocalError> {
    let gone = |result: io::Result<()>, path: &Path| match result {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(LocalError::failed(path.display(), e)),
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
        Undo::Cgroup { path } => cgroup::remove(path),
        Undo::Mount { path } => storage::unmount(machine, path),
        Undo::Loop { file } => storage::detach(machine, file),
        Undo::Array { device } => storage::stop_array(machine, device),
        Undo::File { path } => gone(fs::remove_file(path), path),
        Undo::Folder { path } => {
            // Never through a mount: the filesystem below it is somebody's until it is unmounted.
            if storage::mounts_below(machine, path)?.is_empty() {
                gone(fs::remove_dir_all(path), path)
            } else {
                Err(LocalError::Failed(format!("{}: something is mounted there", path.display())))
            }
        }
        Undo::Table { name } => packets::remove(machine, name),
        Undo::Device { name, handle } => shaping::remove(machine, name, handle),
        Undo::Value { path, old } => fs::write(path, old)
            .map_err(|e| LocalError::failed(format!("{} back to {old:?}", path.display()), e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal as dyno writes it: nobody else can read it.
    fn write(path: &Path, text: &str) {
        let file = OpenOptions::new().create(true).write(true).truncate(true).mode(0o600).open(path);
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn only_what_dyno_notes_is_undone() {
        let (base, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let machine = Machine::default();
        let at = |name: &str| base.path().join(name);
        let outside = |name: &str| {
            fs::create_dir(at(name)).unwrap();
            at(name)
        };
        fs::write(at("file"), "").unwrap();
        std::os::unix::fs::symlink(outside("target"), at("link.data")).unwrap();
        std::os::unix::fs::symlink(base.path(), home.path().join("way")).unwrap();
        let folder = |path: PathBuf| Undo::Folder { path };
        for undo in [
            folder(outside("precious")),
            folder(at("link.data")),
            folder(home.path().join("way/precious")),
            folder(home.path().join("../precious")),
            folder(home.path().into()),
            folder("/".into()),
            Undo::File { path: at("file") },
            Undo::File { path: "/dev/shm/other".into() },
            Undo::Mount { path: at("precious") },
            Undo::Cgroup { path: at("precious") },
            Undo::Cgroup { path: "/sys/fs/cgroup/system.slice".into() },
            Undo::Value { path: at("file"), old: "x".into() },
            Undo::Value { path: "/proc/sys/kernel/core_pattern".into(), old: "|/bin/sh".into() },
            Undo::Value { path: "/sys/kernel/mm/transparent_hugepage/../x".into(), old: "x".into() },
            Undo::Process { pid: 1, started: 0, session: None },
            Undo::Array { device: "/dev/sda".into() },
            Undo::Table { name: "filter".into() },
            Undo::Device { name: "a b".into(), handle: "1:".into() },
        ] {
            assert!(undo.is_dynos(home.path(), &machine).is_err(), "{undo:?}");
        }
        for undo in [
            folder(outside("server-1.data")),
            folder(at("server-1.snapshot")),
            folder(at("volume.new-17")),
            folder(home.path().join("gone/deep")),
            Undo::File { path: at("image-0") },
            Undo::File { path: "/dev/shm/faketime_shm_12".into() },
            Undo::Mount { path: home.path().join("mount") },
            Undo::Value { path: "/sys/kernel/mm/transparent_hugepage/enabled".into(), old: "never".into() },
            Undo::Array { device: "/dev/md/dyno-1".into() },
            Undo::Table { name: "dyno-1-2-3".into() },
            Undo::Device { name: "eth0".into(), handle: "1f:".into() },
        ] {
            assert_eq!(undo.is_dynos(home.path(), &machine), Ok(()), "{undo:?}");
        }
    }

    #[test]
    fn a_line_that_was_cut_off_is_of_nothing_done() {
        let home = tempfile::tempdir().unwrap();
        let machine = Machine::default();
        let file = home.path().join("x");
        fs::write(&file, "").unwrap();
        let path = home.path().join(NAME);
        let entry = serde_json::json!({"id": 1, "undo": "file", "path": file});
        let owner = serde_json::json!({"owner": 1, "started": 1, "host": own::host()});
        write(&path, &format!("{owner}\n{entry}\n{{\"id\":2,\"undo\":\"fi"));
        assert!(
            Journal::open(home.path(), &machine).unwrap_err().to_string().contains("must be undone first")
        );
        assert_eq!(revert(&path, &machine).unwrap(), 1);
        assert!(!file.exists());
        let mut journal = Journal::open(home.path(), &machine).unwrap();
        journal.add(Undo::File { path: file.clone() }).unwrap();
        // The file was never made.
        journal.undo_all().unwrap();
        drop(journal);
        assert_eq!(revert(&path, &machine).unwrap(), 0);
        assert_eq!(revert(&home.path().join("none"), &machine).unwrap(), 0);
    }

    #[test]
    fn a_journal_whose_dyno_runs_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let machine = Machine::default();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let started = process::started(&machine, other.id()).unwrap();
        let path = home.path().join(NAME);
        let owner = |started: u64| {
            format!("{}\n", serde_json::json!({"owner": other.id(), "started": started, "host": own::host()}))
        };
        let file = home.path().join("x");
        let entry = serde_json::json!({"id": 1, "undo": "file", "path": file});
        fs::write(&file, "").unwrap();
        write(&path, &format!("{}{entry}\n", owner(started)));
        assert!(revert(&path, &machine).unwrap_err().to_string().contains("still runs"));
        assert!(file.exists());
        // The same number, but another process.
        write(&path, &format!("{}{entry}\n", owner(started + 1)));
        assert_eq!(revert(&path, &machine).unwrap(), 1);
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn after_the_host_has_been_started_anew_numbers_are_somebody_elses() {
        let home = tempfile::tempdir().unwrap();
        let machine = Machine::default();
        let mut other = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (pid, started) = (other.id(), process::started(&machine, other.id()).unwrap());
        let path = home.path().join(NAME);
        let process = serde_json::json!({"id": 1, "undo": "process", "pid": pid, "started": started});
        // Its owner, too, has the number of a process that runs.
        let owner = |boot: &str| serde_json::json!({"owner": pid, "started": started, "boot": boot, "host": own::host()});
        write(&path, &format!("{}\n{process}\n", owner("before")));
        assert_eq!(revert(&path, &machine).unwrap(), 1);
        assert_eq!(process::started(&machine, pid), Some(started));
        let boot = process::boot(&machine).unwrap();
        write(&path, &format!("{}\n{process}\n", owner(&boot)));
        assert!(revert(&path, &machine).unwrap_err().to_string().contains("still runs"));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn what_is_no_journal_is_named_by_its_line() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(NAME);
        write(&path, "{\"owner\":1,\"started\":1}\n{\"id\":1,\"undo\":\"everything\"}\n");
        let error = revert(&path, &Machine::default()).unwrap_err().to_string();
        assert!(error.contains("undo.jsonl:2"), "{error}");
    }
}
