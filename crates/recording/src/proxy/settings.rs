//! Settings of a proxy.

use super::stream::StreamTls;
use crate::exchange::PairedProtocol;
use dyno_types::Endpoint;
use std::time::Duration;

/// Settings of a proxy.
pub struct ProxySettings {
    /// What clients and the server speak.
    pub protocol: PairedProtocol,
    /// The server.
    pub to: Endpoint,
    /// TLS towards it, and towards clients.
    pub tls: StreamTls,
    /// Clients at the same time; further ones are closed.
    pub connections: usize,
    /// Time after which the recording ends.
    pub duration: Option<Duration>,
    /// Values longer than this are not kept, bytes.
    pub value_limit: usize,
}
