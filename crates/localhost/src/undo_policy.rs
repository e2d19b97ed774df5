//! Decides for each entry of an undo journal whether dyno has written it: what lies below the journal's own folder may go, and
//! everything else only if the journal stands in the list of those that this user's dyno has begun on this host. Even then an
//! entry names what dyno makes, where dyno makes it.

use crate::machine::Machine;
use crate::undo::entry::Undo;
use crate::{clock, process, registry, settings};
use std::path::{Component, Path, PathBuf};

/// Limits of what a journal's entries may reach.
pub(super) struct AllowedPaths<'a> {
    /// Folder, as it is behind all links.
    pub directory: &'a Path,
    /// Its number, if it stands in the list of journals.
    pub listed: Option<&'a str>,
    /// This host.
    pub machine: &'a Machine,
    /// True if it is known to be of this host: only then are its numbers those of processes here.
    pub known: bool,
}

impl AllowedPaths<'_> {
    /// Returns the reason for which an entry is not followed, in words; `None` if it is one that dyno writes.
    pub fn refuse_entry(&self, undo: &Undo) -> Option<String> {
        if self.listed.is_none() && !self.is_below(undo) {
            let why = "is not in the list of journals that your dyno has begun on this host, so that only what lies below \
                       its own folder is removed";
            return Some(format!("{} {why}", said(undo)));
        }
        let (allowed, what) = match undo {
            Undo::Process { pid, .. } | Undo::Continue { pid, .. } => {
                let usual = *pid > 1 && *pid != std::process::id();
                (usual && self.known, format!("process {pid} is not known to be one that dyno has started"))
            }
            Undo::File { path } | Undo::Folder { path } => {
                let own = self.is_ours(path, undo) || is_absent(path);
                (own, format!("{} is outside the folders that dyno made", path.display()))
            }
            Undo::Mount { path } | Undo::Loop { file: path } => {
                let own = self.is_ours(path, undo) && !path.is_symlink();
                (own, format!("{} is outside the folders that dyno made", path.display()))
            }
            Undo::Cgroup { path } => {
                (self.is_group(path), format!("{} is no group of dyno's", path.display()))
            }
            Undo::Array { device } => {
                (is_array(device), format!("{} is no array of dyno's", device.display()))
            }
            Undo::Table { name } => (is_table(name), format!("{name:?} is no table of dyno's")),
            Undo::Device { name, handle } => (
                is_device(name) && is_handle(handle),
                format!("{name:?} {handle:?} is no discipline of dyno's"),
            ),
            Undo::Value { path, old } => {
                let plain = old.len() < 4096 && !old.chars().any(char::is_control);
                let own = plain && settings::is_setting(self.machine, path);
                (own, format!("{} is no setting that dyno changes", path.display()))
            }
        };
        (!allowed).then_some(what)
    }

    /// A file or folder below the journal's folder with a name that dyno gives.
    fn is_below(&self, undo: &Undo) -> bool {
        let (Undo::File { path } | Undo::Folder { path }) = undo else { return false };
        let temporary = name(self.directory).starts_with("dyno-");
        let named = |real: &Path| {
            let name = name(real);
            is_data(&name)
                || ["mount", "dyno-filling"].contains(&name.as_str())
                || (temporary && name == "data")
        };
        let below =
            |real: PathBuf| real.starts_with(self.directory) && real != self.directory && named(&real);
        real(path).is_some_and(below)
    }

    /// An entry of an unlisted journal of which nothing can be seen here. It is passed over, neither done nor refused: it may be
    /// there elsewhere, and must not keep others from being put back.
    pub fn is_passed_over(&self, undo: &Undo) -> bool {
        self.listed.is_none() && self.is_gone(undo)
    }

    fn is_gone(&self, undo: &Undo) -> bool {
        let mounted = |path: &Path| {
            self.machine.mounts().map_or(true, |mounts| mounts.iter().any(|mount| mount.point == *path))
        };
        match undo {
            Undo::Process { pid, session, .. } => {
                process::start_ticks(self.machine, *pid).is_none()
                    && session.is_none_or(|session| session == *pid)
            }
            Undo::Continue { pid, .. } => process::start_ticks(self.machine, *pid).is_none(),
            Undo::Mount { path } => is_absent(path) && !mounted(path),
            Undo::File { path }
            | Undo::Folder { path }
            | Undo::Cgroup { path }
            | Undo::Loop { file: path }
            | Undo::Array { device: path } => is_absent(path),
            Undo::Table { .. } | Undo::Device { .. } | Undo::Value { .. } => false,
        }
    }

    /// Below the journal's folder; elsewhere with its mark and a name that dyno gives; what a stepped clock leaves in memory.
    fn is_ours(&self, path: &Path, undo: &Undo) -> bool {
        let Some(real) = real(path) else { return false };
        let is_marked = || {
            let marked = self.listed.is_some_and(|id| registry::is_marked(&real, id));
            marked && !self.directory.starts_with(&real) && is_data(&name(&real))
        };
        let in_memory = || {
            let pid = name(&real).rsplit('_').next().and_then(|pid| pid.parse().ok());
            matches!(undo, Undo::File { .. })
                && pid.is_some_and(|pid| clock::leftover_files(pid).contains(&real))
        };
        (real.starts_with(self.directory) && real != self.directory) || is_marked() || in_memory()
    }

    /// A group called `dyno`, or one in such a group, in a tree of groups.
    fn is_group(&self, path: &Path) -> bool {
        let Some(real) = real(path) else { return is_absent(path) };
        let named = name(&real) == "dyno" || real.parent().is_some_and(|above| name(above) == "dyno");
        let mounts = self.machine.mounts().unwrap_or_default();
        let mut trees = mounts.iter().filter(|mount| matches!(mount.kind.as_str(), "cgroup" | "cgroup2"));
        named && trees.any(|tree| real != tree.point && real.starts_with(&tree.point))
    }
}

/// A file or folder that dyno makes outside the journal's folder, and marks.
pub(super) fn outside(directory: &Path, undo: &Undo) -> Option<PathBuf> {
    let (Undo::File { path } | Undo::Folder { path }) = undo else { return None };
    real(path).filter(|real| !real.starts_with(directory) && is_data(&name(real)))
}

/// An entry in words.
fn said(undo: &Undo) -> String {
    match undo {
        Undo::Process { pid, .. } | Undo::Continue { pid, .. } => format!("process {pid}: its journal"),
        Undo::Cgroup { path }
        | Undo::Mount { path }
        | Undo::Loop { file: path }
        | Undo::Array { device: path }
        | Undo::File { path }
        | Undo::Folder { path }
        | Undo::Value { path, .. } => format!("{}: its journal", path.display()),
        Undo::Table { name } | Undo::Device { name, .. } => format!("{name:?}: its journal"),
    }
}

/// The path with the links above its last part followed; `None` if there is none, or if it is not written out.
fn real(path: &Path) -> Option<PathBuf> {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let above = path.parent().filter(|_| path.is_absolute() && plain)?.canonicalize().ok()?;
    Some(above.join(path.file_name()?))
}

/// Returns whether there is nothing there, so that there is nothing to be removed.
fn is_absent(path: &Path) -> bool {
    path.is_absolute() && path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Names that data, copies, images and new volumes have.
fn is_data(name: &str) -> bool {
    let numbered =
        |parts: Option<(&str, &str)>| parts.is_some_and(|(front, end)| !front.is_empty() && is_number(end));
    name.ends_with(".data")
        || name.ends_with(".snapshot")
        || name.strip_prefix("image-").is_some_and(is_number)
        || numbered(name.rsplit_once(".new-"))
}

fn is_array(device: &Path) -> bool {
    device.to_str().and_then(|text| text.strip_prefix("/dev/md/dyno-")).is_some_and(is_number)
}

/// `dyno-PROCESS-START-NUMBER`
fn is_table(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    matches!(*parts, ["dyno", a, b, c] if [a, b, c].into_iter().all(is_number))
}

fn is_device(name: &str) -> bool {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"._:".contains(&byte) || byte == b'-';
    (1..16).contains(&name.len()) && !name.starts_with(['-', '.']) && name.bytes().all(usual)
}

/// `7abc:`
fn is_handle(handle: &str) -> bool {
    let digits = handle.strip_prefix('7').and_then(|rest| rest.strip_suffix(':'));
    digits.is_some_and(|digits| digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
#[path = "undo_policy_tests.rs"]
mod tests;
