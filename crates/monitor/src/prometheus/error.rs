//! Errors of reading an exporter.

use std::io;

/// Series that are taken from one exporter.
pub(super) const SERIES: usize = 10_000;

/// A text that is not Prometheus' format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A line that is something else.
    #[error("line {line} is not Prometheus' text format: {shown:?}")]
    Line {
        /// The line, from 1.
        line: usize,
        /// Beginning.
        shown: String,
    },
    /// More than [`SERIES`].
    #[error("more than {SERIES} series")]
    TooMany,
}

/// An exporter that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ScrapeError {
    /// It does not answer, or does not speak HTTP.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The answer is no text.
    #[error("the answer is not UTF-8")]
    NotUtf8(#[from] std::string::FromUtf8Error),
    /// The answer is another text.
    #[error(transparent)]
    Text(#[from] TextError),
}
