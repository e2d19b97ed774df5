//! Recordings: commands of real traffic with their times, connections and replies.
//!
//! ```text
//! a file of another program, a capture, a proxy --sources--> Entry --credentials--> RecordingWriter -> file
//! file -> RecordingReader -> Entry
//! ```
//!
//! `entry` is one command, `format` the file, `sources` what recordings are made of, `credentials` what never enters one.

pub mod credentials;
pub mod entry;
pub mod format;
pub mod sources;

pub use entry::{Arguments, Entry, LongValue, RecordedKind, RecordedReply};
pub use format::{
    Lack, RecordingError, RecordingHeader, RecordingPoint, RecordingReader, RecordingTotals, RecordingWriter,
};
