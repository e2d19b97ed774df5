//! Hosts that take part in a phase, as `summary.json` has them.

use crate::used::OthersUse;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Part that a host takes in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostRole {
    /// It applies load.
    #[default]
    Client,
    /// Servers run there.
    Server,
    /// Both.
    Both,
}

impl HostRole {
    /// Returns whether load is applied from there.
    pub fn is_client(self) -> bool {
        self != HostRole::Server
    }

    /// Returns whether servers run there.
    pub fn is_server(self) -> bool {
        self != HostRole::Client
    }

    /// The role of a host that has this one and another one.
    pub fn and_role(self, other: HostRole) -> HostRole {
        if self == other { self } else { HostRole::Both }
    }
}

/// A host (of a cluster: a node) that takes part in a phase, and what was seen of it meanwhile. Shares are of all its cores'
/// time, 0 to 1. Figures that were not read are absent, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseHost {
    /// Name, as ssh is given it; of a node, or of a pod whose node is not known.
    pub name: String,
    /// True where it is the host that conducted the run.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub local: bool,
    /// Part that it takes.
    pub role: HostRole,
    /// Number of its cores.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cores: Option<f64>,
    /// Neither idle nor waiting for input or output.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_busy_share: Option<f64>,
    /// Taken away by the hypervisor.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cpu_steal_share: Option<f64>,
    /// Programs there that are neither the load generator nor a server of the run.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub others: Option<OthersUse>,
    /// Median cost of reading the clock, nanoseconds, where load is applied.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_ns: Option<u64>,
    /// The kernel's clock source.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_source: Option<String>,
    /// Cores on which both the load and servers run, ascending, as far as that is known.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub shared_cores: Vec<usize>,
    /// Device and queueing discipline (`eth0: netem`) that hold back most of what this host sends, where load is applied.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub shaped: Option<String>,
    /// True if load threads spin there instead of sleeping: their CPU time says nothing then.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub spins: bool,
    /// Seconds from the beginning of the first worker of all to that of the last one there, by the clocks as they are known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late_s: Option<f64>,
    /// The longest time in which workers there heard nothing of their controller, seconds, if it was noteworthy: they went on by
    /// themselves.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unheard_s: Option<f64>,
}

impl PhaseHost {
    /// Share of its CPU time that other programs took, where that is known.
    pub fn others_share(&self) -> Option<f64> {
        let cores = self.cores.filter(|cores| *cores > 0.0)?;
        Some(self.others.as_ref()?.cpu_cores / cores)
    }
}
