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
mod snapshot;
#[cfg(test)]
mod tests;

pub use error::{BadHeaders, BadReceiver, PushError};
pub use headers::parse as parse_headers;
pub use pusher::{Delivery, Pusher};
pub use receiver::{PushProtocol, Receiver};
pub use snapshot::{Sender, Snapshot};
