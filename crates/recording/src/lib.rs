//! Recordings: commands of real traffic with their times, connections and replies.
//!
//! ```text
//! a file of another program, a capture, a proxy --sources--> Entry --credentials--> RecordingWriter -> file
//! file -> RecordingReader -> Entry --replay--> a workload of the engine
//! ```
//!
//! `entry` is one command, `format` the file, `sources` what recordings are made of, `exchange` pairs requests and replies,
//! `proxy` records what it relays, `replay` is a recording as a workload, `learn` a workload that behaves like one, `credentials`
//! what never enters one, `redis_options` which words of commands are options; `anonymise` puts other words in place of those
//! that say whose data they were.

pub mod anonymise;
pub mod credentials;
pub mod entry;
pub mod exchange;
pub mod format;
pub mod learn;
mod long;
pub mod protocol;
pub mod proxy;
mod redis_options;
pub mod replay;
pub mod sources;

pub use entry::{Arguments, Entry, LongValue, RecordedKind, RecordedReply};
pub use format::{
    Lack, RecordedProtocol, RecordingError, RecordingHeader, RecordingPoint, RecordingReader,
    RecordingTotals, RecordingWriter,
};
