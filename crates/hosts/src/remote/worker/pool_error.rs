//! Why workers could not be brought to work.

use dyno_engine::RunError;
use dyno_types::{Outcome, RefusalCode, Refused};

/// Why workers could not be brought to work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerPoolError {
    /// The request is wrong.
    #[error("{0}")]
    Refused(String),
    /// The target does not answer, or not as it should.
    #[error("{0}")]
    Unreachable(String),
    /// A worker could not be started, or died.
    #[error("{0}")]
    Worker(String),
}

impl From<WorkerPoolError> for RunError {
    fn from(error: WorkerPoolError) -> Self {
        match error {
            WorkerPoolError::Refused(words) => {
                RunError::Refused(Refused::new(RefusalCode::BadValue, "", words))
            }
            WorkerPoolError::Unreachable(words) => {
                RunError::Unreachable { outcome: Outcome::Unreachable, words }
            }
            WorkerPoolError::Worker(words) => RunError::Io(std::io::Error::other(words)),
        }
    }
}
