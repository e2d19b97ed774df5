//! What this host is and how it is set up: facts by group, read from procfs, sysfs, cgroupfs and `/etc`.
//!
//! `cpu`, `memory`, `storage`, `network`, `kernel` and `firmware` read files, `programs` asks programs; `findings`
//! says what speaks against good measurements, and `profiles` compares with the hardware, kernel and BIOS lists of
//! known recipes. Facts that change from minute to minute stand apart in `volatile`. What cannot be read is absent.

mod cpu;
mod findings;
mod firmware;
pub(crate) mod kernel;
mod memory;
mod network;
mod profiles;
mod programs;
mod storage;

#[cfg(test)]
mod tests;

pub use findings::{Finding, Severity, findings};
pub use profiles::{Checked, Match, PROFILES, Profile, profile};

use crate::roots::Roots;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Facts: group, name, value.
pub type Facts = BTreeMap<String, BTreeMap<String, String>>;

/// Facts about a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentFacts {
    /// Facts that stay as they are unless somebody changes them.
    pub facts: Facts,
    /// Facts that change by themselves: free memory, load, clock rates, neighbours.
    pub volatile: Facts,
}

/// Where it is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// procfs, sysfs, cgroupfs.
    pub roots: Roots,
    /// Usually `/etc`.
    pub etc: PathBuf,
    /// Usually `/run`.
    pub run: PathBuf,
    /// Usually `/dev`.
    pub dev: PathBuf,
    /// Folders of programs that may be asked; none: no program is started.
    pub path: Option<OsString>,
}

impl Default for Places {
    fn default() -> Self {
        Places {
            roots: Roots::default(),
            etc: "/etc".into(),
            run: "/run".into(),
            dev: "/dev".into(),
            path: std::env::var_os("PATH"),
        }
    }
}

impl EnvironmentFacts {
    /// Reads everything that can be read.
    pub fn read(places: &Places) -> Self {
        let mut all = EnvironmentFacts::default();
        let sys = &places.roots.sys;
        cpu::read(&places.roots, &mut all);
        memory::read(&places.roots, &mut all);
        kernel::read(places, &mut all);
        storage::read(&places.roots, &mut all);
        network::read(&places.roots, &mut all);
        firmware::read(sys, &mut all);
        programs::read(places, &mut all);
        all
    }

    fn fact(&mut self, group: &str, name: &str, value: Option<String>) {
        put(&mut self.facts, group, name, value);
    }

    fn volatile(&mut self, group: &str, name: &str, value: Option<String>) {
        put(&mut self.volatile, group, name, value);
    }

    /// Facts that matter and are not known here, and what would tell them.
    pub fn unknown(&self) -> Vec<(String, &'static str)> {
        programs::unknown(self)
    }

    /// A fact, if it is known.
    pub fn get(&self, group: &str, name: &str) -> Option<&str> {
        self.facts.get(group)?.get(name).map(String::as_str)
    }
}

fn put(facts: &mut Facts, group: &str, name: &str, value: Option<String>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        facts.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
    }
}

/// Reads a small file, as one line.
fn text(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty())
}

/// `always [madvise] never` means `madvise`.
fn chosen(text: String) -> String {
    match (text.find('['), text.find(']')) {
        (Some(open), Some(close)) if open < close => text[open + 1..close].to_owned(),
        _ => text,
    }
}

/// Names in a folder, sorted; none where there is no folder.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The distinct values, each with how often it was found where there are several: `performance`, or
/// `performance x 2, powersave x 6`.
fn tally(values: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    match counts.len() {
        0 => None,
        1 => counts.into_keys().next(),
        _ => Some(counts.iter().map(|(value, n)| format!("{value} x {n}")).collect::<Vec<_>>().join(", ")),
    }
}
