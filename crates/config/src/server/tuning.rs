//! Settings of the host, applied for the run and put back.

use crate::server::invalid::InvalidSetting;
use crate::values::Cores;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The cores that take packets of a network device (receive packet steering).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Rps {
    /// `local`: those of the device's memory node; `all`: every core; `none`: that of the interrupt.
    Word(RpsWord),
    /// These.
    Cores(Cores),
}

/// A word instead of a list of cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RpsWord {
    /// The cores of the device's memory node.
    Local,
    /// All cores.
    All,
    /// No steering.
    None,
}

/// Settings of the servers' host that change results. They are always reported; what stands here is applied before the run,
/// read back, and put back afterwards: on this host, on those of `ssh.servers`, or on the nodes of privileged servers. Default of
/// every key: left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostTuning {
    /// Frequency governor of all cores, such as performance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub governor: Option<String>,
    /// Transparent huge pages: always, madvise or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transparent_huge_pages: Option<String>,
    /// When huge pages are made by compaction: always, defer, defer+madvise, madvise or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defrag: Option<String>,
    /// Read-ahead of block devices by their names (`nvme0n1: 16`), KiB.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub read_ahead_kib: BTreeMap<String, u32>,
    /// Receive packet steering of network devices by their names (`"*"`: all of the hardware): local, all, none, or a list of
    /// cores.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rps: BTreeMap<String, Rps>,
    /// vm.swappiness, 0 to 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swappiness: Option<u32>,
    /// vm.zone_reclaim_mode, a sum of 1, 2 and 4; 0 is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone_reclaim_mode: Option<u32>,
    /// kernel.numa_balancing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_balancing: Option<bool>,
}

impl HostTuning {
    /// Returns whether everything is left alone.
    pub fn is_nothing(&self) -> bool {
        *self == HostTuning::default()
    }

    /// Refuses an invalid configuration, by its key.
    pub fn check(&self) -> Result<(), InvalidSetting> {
        let words: [(&str, &Option<String>, &[&str]); 2] = [
            ("transparent_huge_pages", &self.transparent_huge_pages, &["always", "madvise", "never"]),
            ("defrag", &self.defrag, &["always", "defer", "defer+madvise", "madvise", "never"]),
        ];
        for (key, value, known) in words {
            if let Some(word) = value
                && !known.contains(&word.as_str())
            {
                return Err(InvalidSetting::new(key, format!("{word:?}: expected {}", known.join(", "))));
            }
        }
        if let Some(n) = self.swappiness.filter(|n| *n > 200) {
            return Err(InvalidSetting::new("swappiness", format!("{n}: expected 0 to 200")));
        }
        if let Some(n) = self.zone_reclaim_mode.filter(|n| *n > 7) {
            return Err(InvalidSetting::new("zone_reclaim_mode", format!("{n}: expected 0 to 7")));
        }
        let devices = self.read_ahead_kib.keys().chain(self.rps.keys());
        match devices.into_iter().find(|name| name.is_empty() || name.contains('/') || name.starts_with('.'))
        {
            Some(bad) => {
                Err(InvalidSetting::new("read_ahead_kib, rps", format!("{bad:?} is no name of a device")))
            }
            None => Ok(()),
        }
    }
}
