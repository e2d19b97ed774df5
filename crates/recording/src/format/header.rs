//! Facts about a recording: its header, and its totals at the end.

use crate::protocol::RecordedProtocol;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Place at which times were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingPoint {
    /// On the server's host, or in the server.
    Server,
    /// On the client's host.
    Client,
    /// Between them.
    Proxy,
    /// Not told.
    Unknown,
}

/// Something that a source of recordings does not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// Which connection a command came on.
    Connections,
    /// Replies, and so the times that they took.
    Replies,
    /// Commands that only read.
    Reads,
    /// Bytes of values: only their lengths are known.
    Values,
    /// Times of commands.
    Times,
    /// Times finer than a second.
    Subseconds,
    /// Which database of the server a command was for.
    Databases,
    /// Times of replies; their kinds and sizes are known as far as the source tells them.
    ReplyTimes,
    /// Commands that were faster than the source's threshold.
    QuickCommands,
}

impl Lack {
    /// The words of a list of what is missing.
    pub fn lack_words(self) -> &'static str {
        match self {
            Lack::Connections => "connections",
            Lack::Replies => "replies and their times",
            Lack::Reads => "commands that only read",
            Lack::Values => "values",
            Lack::Times => "times",
            Lack::Subseconds => "times finer than a second",
            Lack::Databases => "databases",
            Lack::ReplyTimes => "times of replies, and all replies of some commands",
            Lack::QuickCommands => "commands faster than the server's threshold (slowms), if it had one",
        }
    }
}

/// What is known before the first command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecordingHeader {
    /// The protocol of its commands.
    pub protocol: RecordedProtocol,
    /// Kind of what it was made of, such as `monitor`, `capture` or `proxy`.
    pub source: String,
    /// Where times were taken.
    pub point: RecordingPoint,
    /// Begin of the recording, nanoseconds since 1970; `None` where it is unknown.
    pub begins_ns: Option<u64>,
    /// Step of the clock that took the times, nanoseconds.
    pub clock_step_ns: u64,
    /// What the source does not tell.
    pub lacks: Vec<Lack>,
    /// Values longer than this are not kept, bytes.
    pub value_limit: u64,
}

impl RecordingHeader {
    /// Returns whether its source tells nothing of `lack`.
    pub fn is_without(&self, lack: Lack) -> bool {
        self.lacks.contains(&lack)
    }
}

/// What is known after the last command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingTotals {
    /// Commands in the file.
    pub commands: u64,
    /// Time of the last one, nanoseconds from the begin on.
    pub length_ns: u64,
    /// Connections.
    pub connections: u64,
    /// Commands whose reply is known.
    pub replies: u64,
    /// Bytes of all words.
    pub bytes: u64,
    /// Commands by their names, in capitals; `OTHER` for names of more than 64 bytes, and for those after the first 1,000.
    pub by_name: BTreeMap<String, u64>,
    /// What was seen and is not in it, by its reason, such as `credentials`.
    pub left_out: BTreeMap<String, u64>,
}
