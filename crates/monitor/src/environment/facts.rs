//! Facts about a host by group and name, and where they are read from.

use crate::roots::Roots;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// Facts: group, name, value.
pub type HostFacts = BTreeMap<String, BTreeMap<String, String>>;

/// Facts about a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EnvironmentFacts {
    /// Facts that stay as they are unless a user or a program changes them.
    pub facts: HostFacts,
    /// Facts that change by themselves: free memory, load, clock rates, neighbours.
    pub volatile: HostFacts,
}

/// Roots and folders that it is read from.
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
    pub(super) fn fact(&mut self, group: &str, name: &str, value: Option<String>) {
        put(&mut self.facts, group, name, value);
    }

    pub(super) fn volatile(&mut self, group: &str, name: &str, value: Option<String>) {
        put(&mut self.volatile, group, name, value);
    }

    /// Adds what another part of the host told.
    pub(super) fn extend(&mut self, more: EnvironmentFacts) {
        for (facts, more) in [(&mut self.facts, more.facts), (&mut self.volatile, more.volatile)] {
            for (group, values) in more {
                facts.entry(group).or_default().extend(values);
            }
        }
    }

    /// A fact, if it is known.
    pub fn get(&self, group: &str, name: &str) -> Option<&str> {
        self.facts.get(group)?.get(name).map(String::as_str)
    }
}

fn put(facts: &mut HostFacts, group: &str, name: &str, value: Option<String>) {
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        facts.entry(group.to_owned()).or_default().insert(name.to_owned(), value);
    }
}
