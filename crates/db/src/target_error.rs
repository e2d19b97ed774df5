//! Why a target cannot be used.

use dyno_engine::RunError;
use dyno_types::{Outcome, Refused};

/// Why a target cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Invalid configuration.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It does not answer, or not as it should.
    #[error("{0}")]
    Unreachable(String),
}

impl From<RunError> for TargetError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Refused(refused) => TargetError::Refused(refused),
            RunError::Unreachable { outcome: Outcome::Aborted, message } => TargetError::Unreachable(message),
            other => TargetError::Unreachable(other.to_string()),
        }
    }
}
