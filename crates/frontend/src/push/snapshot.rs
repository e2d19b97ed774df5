//! What is sent, and by whom.

use dyno_monitor::prometheus::Family;
use std::time::SystemTime;

/// Who sends. No secret is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Name of the host.
    pub host: String,
    /// Name of the run, or of the experiment.
    pub run: String,
    /// The target, secrets masked.
    pub target: String,
    /// Version of dyno.
    pub version: String,
}

impl Sender {
    /// Tells this run from all others: what a scraper calls `instance`.
    pub(super) fn instance(&self) -> String {
        format!("{}:{}", self.host, self.run)
    }
}

/// Name of the service, which a scraper calls `job`.
pub(super) const SERVICE: &str = "dyno";

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The moment.
    pub at: SystemTime,
    /// Every family.
    pub families: Vec<Family>,
}

/// Nanoseconds since 1970.
pub(super) fn unix_ns(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
