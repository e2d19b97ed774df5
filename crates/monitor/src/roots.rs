//! Roots of the kernel's figures. Tests use recorded trees.

use std::fs;
use std::path::{Path, PathBuf};

/// The roots of the file trees that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`
    pub proc: PathBuf,
    /// `/sys`
    pub sys: PathBuf,
    /// `/sys/fs/cgroup`
    pub cgroup: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { proc: "/proc".into(), sys: "/sys".into(), cgroup: "/sys/fs/cgroup".into() }
    }
}

impl Roots {
    /// A recorded tree with `proc`, `sys` and `cgroup` in it.
    pub fn recorded(folder: &Path) -> Self {
        Roots { proc: folder.join("proc"), sys: folder.join("sys"), cgroup: folder.join("cgroup") }
    }

    /// A file below `proc`.
    pub(crate) fn proc(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.proc.join(name)).ok()
    }
}

/// The one number that a file holds; `max` and the like are no number.
pub(crate) fn number(path: &Path) -> Option<f64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Lines `name value` of a file.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once([' ', '\t'])?;
        Some((name.trim_end_matches(':'), value.split_whitespace().next()?.parse().ok()?))
    })
}
