//! Why a run did not begin or could not go on.

use dyno_types::{Outcome, Refused};
use std::io;

/// Why a run did not begin or could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The job cannot be done.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The target did not answer, or not as it should.
    #[error("{message}")]
    Unreachable {
        /// Class of the failure.
        outcome: Outcome,
        /// Error, with the node's name.
        message: String,
    },
    /// The operating system refused something.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A load thread has panicked: an error of dyno itself.
    #[error("a load thread ended unexpectedly: this is a defect of dyno")]
    Panicked,
}
