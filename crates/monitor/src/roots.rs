//! Roots of the kernel's figures. Tests use recorded trees.

use std::fs::File;
use std::io::{self, Read};
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
    pub fn recorded_tree(folder: &Path) -> Self {
        Roots { proc: folder.join("proc"), sys: folder.join("sys"), cgroup: folder.join("cgroup") }
    }

    /// A file below `proc`.
    pub(crate) fn proc(&self, name: &str) -> Option<String> {
        read(&self.proc.join(name)).ok()
    }
}

/// Reads a small file of the kernel's as text, in as few calls as it takes: such files say that they have no length, and
/// [`std::fs::read_to_string`] begins with a few bytes. A run reads hundreds of them.
pub fn read(path: &Path) -> io::Result<String> {
    const USUAL: usize = 8192;
    let mut text = String::with_capacity(USUAL);
    // `take` has no length of its own: a file would ask for its.
    File::open(path)?.take(u64::MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// The one number that a file holds; `max` and the like are no number.
pub(crate) fn number(path: &Path) -> Option<f64> {
    read(path).ok()?.trim().parse().ok()
}

/// Lines `name value` of a file.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once([' ', '\t'])?;
        Some((name.trim_end_matches(':'), value.split_whitespace().next()?.parse().ok()?))
    })
}
