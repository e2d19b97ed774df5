//! What recordings are made of: files of other programs, captures, and traffic through a proxy.

pub mod aof;
mod bson_file;
mod cache_request;
pub mod cache_trace;
pub mod capture;
mod clock;
pub mod command_log;
mod databases;
pub mod dump;
mod extended_json;
pub mod mongodb;
pub mod monitor;
pub mod packed;
pub mod playback;
pub mod rdb;
mod seconds;
pub mod traffic_log;

use crate::format::{RecordedProtocol, RecordingError, RecordingHeader, RecordingWriter};
use std::io::Write;

/// Why a source cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The recording cannot be written.
    #[error("the recording cannot be written: {0}")]
    Recording(#[from] RecordingError),
    /// It has nothing of what is looked for.
    #[error("it has no {0}")]
    Nothing(&'static str),
    /// It is what is looked for, but cannot be read by dyno.
    #[error("{0}")]
    Unreadable(String),
}

/// Begins recordings, once their header is known.
type Begin<'a, W> = Box<dyn FnMut(&RecordingHeader) -> Result<RecordingWriter<W>, RecordingError> + 'a>;

/// A recording that begins with the first command that a source finds.
pub struct NewRecording<'a, W: Write> {
    asked_limit: Option<usize>,
    begin: Begin<'a, W>,
}

impl<'a, W: Write> NewRecording<'a, W> {
    /// `value_limit`: longest value that is kept as it is, bytes; `None`: what is usual for the protocol. `begin` makes the file.
    pub fn new(
        value_limit: impl Into<Option<usize>>,
        begin: impl FnMut(&RecordingHeader) -> Result<RecordingWriter<W>, RecordingError> + 'a,
    ) -> Self {
        NewRecording { asked_limit: value_limit.into(), begin: Box::new(begin) }
    }

    /// Longest value that is kept as it is, bytes.
    pub fn value_limit(&self, protocol: RecordedProtocol) -> usize {
        self.asked_limit.unwrap_or_else(|| protocol.usual_value_limit())
    }

    /// Begins it.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn begin(&mut self, header: &RecordingHeader) -> Result<RecordingWriter<W>, RecordingError> {
        (self.begin)(header)
    }
}

#[cfg(test)]
mod tests;
