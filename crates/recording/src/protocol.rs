//! Protocols that recordings are of.

use crate::entry::VALUE_LIMIT;
use dyno_types::limits::MESSAGE_BYTES;
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
    /// Longest value that is kept as it is unless something else is asked for, bytes. MongoDB's bodies are kept as a whole:
    /// nothing like them can be made of a length.
    pub fn usual_value_limit(self) -> usize {
        match self {
            RecordedProtocol::Redis | RecordedProtocol::Memcached => VALUE_LIMIT,
            RecordedProtocol::Mongodb => MESSAGE_BYTES,
        }
    }

    /// The name in files and messages.
    pub fn protocol_name(self) -> &'static str {
        match self {
            RecordedProtocol::Redis => "redis",
            RecordedProtocol::Memcached => "memcached",
            RecordedProtocol::Mongodb => "mongodb",
        }
    }
}
