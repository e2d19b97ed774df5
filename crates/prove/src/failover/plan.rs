//! Plan of a proof of failover: the load, the faults, and the servers.

use dyno_config::server::{Election, ServerKind};
use dyno_db::copies::plan::IngestPlan;
use serde::Serialize;
use std::time::Duration;

/// Fault that is injected into a primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Disruption {
    /// SIGKILL, after the others have stood still.
    Kill,
    /// No packet passes between it and the other servers; writers still reach it.
    Cut,
    /// SIGSTOP, after the others have stood still; SIGCONT heals it.
    Freeze,
}

impl Disruption {
    /// Returns whether the primary goes on after the election, until it is healed.
    pub fn lasts(self) -> bool {
        self != Disruption::Kill
    }
}

/// Plan of what is to be proven.
#[derive(Clone, Debug)]
pub struct FailoverPlan {
    /// Records that are written meanwhile.
    pub ingest: IngestPlan,
    /// Fault that is injected into primaries.
    pub by: Disruption,
    /// Number of rounds.
    pub rounds: u32,
    /// Servers beside the primary.
    pub replicas: u32,
    /// Time that the others stand still before a kill or a freeze.
    pub isolate: Duration,
    /// Time that a cut or a freeze lasts after the election, at least; up to as long again at random.
    pub heal_after: Duration,
    /// After how long without a sign a server counts as down.
    pub down_after: Duration,
    /// Between two rounds, at least; up to as long again at random.
    pub between: Duration,
    /// Kind of the servers.
    pub kind: ServerKind,
    /// Processes that elect a new primary of them.
    pub election: Election,
}
