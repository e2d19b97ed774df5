//! A proxy that records: it passes bytes on first and reads them afterwards.
//!
//! ```text
//! client <-> relay thread <-> server
//!                | copies of what has passed, in batches; never waits
//!                v
//!            traffic queue (bounded) -> recorder thread: pairs, orders, compresses, writes
//! ```
//!
//! If the recorder cannot keep up, batches are dropped and counted: traffic is never slowed by its recording.

mod recorder;
mod relay;
mod settings;
mod stream;
mod traffic_queue;

pub use stream::{ListenerTls, StreamTls};

use crate::exchange::{ExchangeSettings, PairedProtocol};
use crate::format::{
    Lack, RecordingError, RecordingHeader, RecordingPoint, RecordingTotals, RecordingWriter,
};
use dyno_engine::net::monotonic_ns;
use recorder::Recorder;
use relay::Relay;
pub use settings::ProxySettings;
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Reasons for which something that the proxy has seen is not in the recording.
pub mod reason {
    /// The recorder was slower than the traffic.
    pub const OVERFLOW: &str = "bytes that came faster than they could be recorded";
    /// The server did not take a connection.
    pub const UNREACHABLE: &str = "connections that the server has not taken";
    /// More clients than allowed.
    pub const TOO_MANY: &str = "connections above the limit";
    /// A handshake that failed, on either side.
    pub const TLS: &str = "connections whose TLS has failed";
}

/// What came of a proxy's work.
#[derive(Clone, Debug, Default)]
pub struct ProxyTotals {
    /// Of the recording; `None` where nothing was to be recorded.
    pub recording: Option<RecordingTotals>,
    /// Connections of clients that were accepted.
    pub accepted: u64,
    /// Replies that sent a client to another node of a cluster, or named members of a replica set.
    pub redirections: u64,
}

/// Why a proxy has ended before it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The relay cannot go on.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The recording cannot be written.
    #[error("the recording cannot be written: {0}")]
    Recording(#[from] RecordingError),
}

/// The header of a proxy's recording that begins now.
pub fn proxy_header(protocol: PairedProtocol, value_limit: usize) -> RecordingHeader {
    let begins = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    RecordingHeader {
        protocol: protocol.recorded_protocol(),
        source: "proxy".into(),
        point: RecordingPoint::Proxy,
        begins_ns: Some(begins.as_nanos() as u64),
        clock_step_ns: 1,
        lacks: Vec::<Lack>::new(),
        value_limit: value_limit as u64,
    }
}

/// Relays and records until `stop` is set or the duration has passed. Without a writer it only relays.
///
/// # Errors
/// The relay cannot go on, or the recording cannot be written.
pub fn run_proxy<W: Write + Send>(
    listener: TcpListener,
    settings: &ProxySettings,
    writer: Option<RecordingWriter<W>>,
    stop: &AtomicBool,
) -> Result<ProxyTotals, ProxyError> {
    let begins_ns = monotonic_ns();
    let Some(writer) = writer else {
        let mut relay = Relay::new(listener, settings, None, begins_ns)?;
        relay.relay_until(stop, &|| false)?;
        return Ok(ProxyTotals { accepted: relay.counts().accepted, ..ProxyTotals::default() });
    };
    let (sender, receiver) = traffic_queue::traffic_queue();
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let recorder = std::thread::Builder::new().name("recorder".into()).spawn_scoped(scope, || {
            let exchanges = ExchangeSettings::new(settings.protocol, settings.value_limit);
            let mut recorder = Recorder::new(writer, exchanges, begins_ns);
            let ended = recorder.record_all(&receiver);
            failed.store(ended.is_err(), Ordering::Release);
            // What still comes is not waited for.
            drop(receiver);
            ended.map(|()| recorder)
        })?;
        let mut relay = Relay::new(listener, settings, Some(sender), begins_ns)?;
        let relayed = relay.relay_until(stop, &|| failed.load(Ordering::Acquire));
        let counts = relay.counts();
        // The recorder ends with the sender.
        drop(relay);
        let recorder = recorder.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        relayed?;
        let redirections = recorder.redirections();
        let left_out = [
            (reason::OVERFLOW, counts.overflow_bytes),
            (reason::UNREACHABLE, counts.unreachable),
            (reason::TOO_MANY, counts.too_many),
            (reason::TLS, counts.tls_failures),
        ];
        let recording = recorder.finish(&left_out)?;
        Ok(ProxyTotals { recording: Some(recording), accepted: counts.accepted, redirections })
    })
}

#[cfg(test)]
mod tests;
