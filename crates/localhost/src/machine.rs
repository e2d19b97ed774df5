//! Roots of the machine's files, which tests replace.

use crate::error::LocalError;
use dyno_monitor::topology::Topology;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Usually `/proc`.
    pub proc: PathBuf,
    /// Usually `/sys`.
    pub sys: PathBuf,
    /// Folders in which programs are looked for.
    pub path: OsString,
    /// Group below which dyno makes its own, as the kernel writes it (`/`, `/user.slice`); default: that of this process,
    /// with cgroup v2 the one above it, since a group with processes of its own cannot limit groups below it.
    pub cgroup_parent: Option<PathBuf>,
    /// Folders for the list of journals, the first that can be made.
    pub state: Vec<PathBuf>,
}

impl Default for Machine {
    fn default() -> Self {
        Machine {
            proc: "/proc".into(),
            sys: "/sys".into(),
            path: std::env::var_os("PATH").unwrap_or_default(),
            cgroup_parent: None,
            state: state_folders(),
        }
    }
}

/// One line of `mountinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The folder of the filesystem that is shown.
    pub root: String,
    /// Mount point.
    pub point: PathBuf,
    /// xfs, cgroup2, ...
    pub kind: String,
    /// The device, or whatever the kind shows there.
    pub source: String,
    /// Options of the filesystem itself.
    pub options: Vec<String>,
}

impl Machine {
    /// A program on its path.
    pub fn find_program(&self, program: &str) -> Option<PathBuf> {
        // Programs for administrators are often not on the PATH of others.
        let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        std::env::split_paths(&self.path).chain(more).map(|dir| dir.join(program)).find(|p| is_program(p))
    }

    /// Processors and memory.
    pub fn machine_topology(&self) -> Result<Topology, LocalError> {
        let topology = Topology::read(&self.sys).map_err(|e| LocalError::Failed(e.to_string()))?;
        let meminfo = std::fs::read_to_string(self.proc.join("meminfo")).unwrap_or_default();
        let kib = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
        Ok(Topology { total_bytes: kib.map(|kib| kib << 10), ..topology })
    }

    /// Everything mounted, in the order of mounting.
    pub(crate) fn mounts(&self) -> Result<Vec<Mount>, LocalError> {
        let path = self.proc.join("self/mountinfo");
        let text = std::fs::read_to_string(&path).map_err(|e| LocalError::failed_step(path.display(), e))?;
        Ok(text.lines().filter_map(mount).collect())
    }
}

/// Folders in which the user's state may be, the usual one first; with `DYNO_STATE` that one alone.
pub fn state_folders() -> Vec<PathBuf> {
    let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if let Some(only) = set("DYNO_STATE") {
        return vec![only];
    }
    let own = format!("dyno-{}", rustix::process::geteuid().as_raw());
    // Where the environment says otherwise than it did: by cron, by sudo.
    let told = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let uid = rustix::process::geteuid().as_raw().to_string();
    let entry = told.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let home =
        entry.filter(|of| of.get(2) == Some(&uid.as_str())).find_map(|of| of.get(5).map(PathBuf::from));
    let of_home = |home: PathBuf| home.join(".local/state");
    let of_user = [set("XDG_STATE_HOME"), set("HOME").map(of_home), home.map(of_home)];
    let of_user = of_user.into_iter().flatten().map(|state| state.join("dyno"));
    of_user.chain([Path::new("/var/tmp").join(&own), std::env::temp_dir().join(&own)]).collect()
}

/// Returns whether this is a file that may be executed.
pub fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// `36 35 98:0 /root /point rw,noatime shared:1 - ext3 /dev/root rw,errors=continue`
fn mount(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(3);
    let (root, point) = (front.next()?, front.next()?);
    let mut back = back.split(' ');
    let (kind, source) = (back.next()?, back.next()?);
    Some(Mount {
        root: unescape(root),
        point: unescape(point).into(),
        kind: kind.to_owned(),
        source: unescape(source),
        options: back.next().unwrap_or_default().split(',').map(str::to_owned).collect(),
    })
}

/// The kernel writes space, tab, newline and backslash as `\040` and the like.
fn unescape(text: &str) -> String {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let digits = text.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match digits.and_then(|d| u8::from_str_radix(d, 8).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 4;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_spaces() {
        let line = r"36 35 98:0 /docker/x /mnt/a\040b rw,noatime shared:1 master:2 - cgroup cgroup rw,memory";
        let found = mount(line).unwrap();
        assert_eq!((found.root.as_str(), found.point.to_str().unwrap()), ("/docker/x", "/mnt/a b"));
        assert_eq!((found.kind.as_str(), found.options), ("cgroup", vec!["rw".to_owned(), "memory".into()]));
        assert!(mount("nonsense").is_none());
    }

    #[test]
    fn all_memory_is_what_the_kernel_says() {
        let proc = tempfile::tempdir().unwrap();
        let machine = Machine { proc: proc.path().to_owned(), ..Machine::default() };
        let nodes = machine.machine_topology().unwrap();
        assert_eq!(nodes.total_bytes, None);
        std::fs::write(proc.path().join("meminfo"), "MemTotal:       999999999 kB\nMemFree: 1 kB\n").unwrap();
        let topology = machine.machine_topology().unwrap();
        assert_eq!(
            (topology.total_bytes, topology.memory()),
            (Some(999_999_999 << 10), Some(999_999_999 << 10))
        );
    }

    #[test]
    fn programs_are_files_that_run() {
        let machine = Machine::default();
        assert!(machine.find_program("sh").is_some_and(|p| p.is_absolute()));
        assert_eq!(machine.find_program("no-such-program-here"), None);
    }
}
