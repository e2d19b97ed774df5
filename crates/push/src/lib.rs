//! Live metrics, sent to receivers: Prometheus remote write 1.0 (`remote_write`) and OTLP over HTTP (`otlp`).
//!
//! Both are made of the families that the scrape endpoint shows (`dyno_monitor::prometheus`), under the same names and labels. A
//! [`Pusher`] sends from a thread of its own, from a queue with an end: a caller that gives it a snapshot never waits.

mod error;
mod headers;
mod http;
mod otlp;
mod pusher;
mod receiver;
mod remote_write;
#[cfg(test)]
mod tests;

pub use error::{BadHeaders, BadReceiver, PushError};
pub use headers::parse as parse_headers;
pub use pusher::{Delivery, Pusher};
pub use receiver::{PushProtocol, Receiver};

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
    fn instance(&self) -> String {
        format!("{}:{}", self.host, self.run)
    }
}

/// Name of the service, which a scraper calls `job`.
const SERVICE: &str = "dyno";

/// Everything at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The moment.
    pub at: SystemTime,
    /// Every family.
    pub families: Vec<Family>,
}

/// Nanoseconds since 1970.
fn unix_ns(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
