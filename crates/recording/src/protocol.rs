//! Protocols that recordings are of.

use serde::{Deserialize, Serialize};

/// Protocol of a recording's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RecordedProtocol {
    /// RESP, versions 2 and 3.
    Redis,
    /// Text and meta commands.
    Memcached,
    /// `OP_MSG`.
    Mongodb,
}

impl RecordedProtocol {
    /// The name in files and messages.
    pub fn protocol_name(self) -> &'static str {
        match self {
            RecordedProtocol::Redis => "redis",
            RecordedProtocol::Memcached => "memcached",
            RecordedProtocol::Mongodb => "mongodb",
        }
    }
}
