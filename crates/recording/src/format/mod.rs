//! The file of a recording.
//!
//! ```text
//! "DYNOREC1" | length u32 | header, JSON
//! block:  length of its data u32 (not 0) | length unpacked u32 | records u32 | data: a zstd frame with its checksum
//! end:    0 u32 | totals, JSON | length of the totals u32 | "DYNOEND1"
//! ```
//!
//! Numbers are little-endian. A block unpacks to at most [`BLOCK_BYTES`] and one record; it can be read without those before it.
//! Within a block, numbers are LEB128 and signed ones zigzag:
//!
//! ```text
//! command: flags u8 | time, less that of the command before it in the block (signed) | connection | words
//!          word: length times two, plus one where it was not kept | its bytes, or length's hash u64 and hundredths u8
//!          reply, where flag 1 says that there is one
//! reply that came late: flags u8 = 16 | number of its command from the file's begin on | reply
//! reply:   kind u8 | size | nanoseconds after the command, plus one; 0 unknown | of an error: length and bytes of its class
//! flags:   1 reply, 2 overlaps, 4 implied, 16 late reply
//! ```
//!
//! Commands stand in the order of their times. A command waits at most for [`REPLY_WINDOW_NS`] or [`REPLY_WINDOW`] others for its
//! reply: what comes later is a record of its own. A file without its end was cut off: it is read as far as it goes.

mod codec;
mod header;
mod order;
mod reader;
mod writer;

pub use crate::protocol::RecordedProtocol;
pub use header::{Lack, RecordingHeader, RecordingPoint, RecordingTotals};
pub use order::{OrderedEntries, REPLY_WINDOW, REPLY_WINDOW_NS};
pub use reader::{RecordedEvent, RecordingReader};
pub use writer::RecordingWriter;

use std::io;

/// The first bytes of a recording.
pub const MAGIC: &[u8; 8] = b"DYNOREC1";
const END_MAGIC: &[u8; 8] = b"DYNOEND1";

/// A block is closed when its records reach this length, bytes.
pub const BLOCK_BYTES: usize = 1 << 20;

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// Another file.
    #[error("it is no recording of dyno: `dyno record FILE` makes one of captures, logs and proxied traffic")]
    NotRecording,
    /// A later version of the format.
    #[error("it is a recording of a later version ({0}): this dyno reads version 1")]
    Version(String),
    /// Bytes that no writer makes.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// Nothing was recorded.
    #[error("it holds no commands")]
    Empty,
    /// Words of such a recording cannot be replaced.
    #[error("snapshots of Redis cannot be anonymised, because their values carry checksums: record traffic")]
    NotAnonymised,
    /// Words of another protocol are in no slots.
    #[error("keys of {} are in no slots: leave --keep-slots out", .0.protocol_name())]
    NoSlots(RecordedProtocol),
}

#[cfg(test)]
mod tests;
