//! Why a run was not made.

use crate::outage::is_out_of_reach;
use dyno_engine::RunError;
use dyno_hosts::remote::ssh::RemoteError;
use dyno_hosts::remote::worker::pool_error::WorkerPoolError;
use dyno_localhost::error::{Cause, LocalError};
use dyno_types::Refused;

/// Why a run was not made.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// There is no target.
    #[error(transparent)]
    Unreachable(Cause),
    /// A server did not start: its options or this host are wrong.
    #[error(transparent)]
    Server(Cause),
    /// Any other error.
    #[error(transparent)]
    Other(Cause),
    /// A signal came first.
    #[error("interrupted")]
    Interrupted,
}

impl ExperimentError {
    /// There is no target.
    pub(super) fn unreachable(why: impl Into<Cause>) -> Self {
        ExperimentError::Unreachable(why.into())
    }

    /// Returns whether it says that a cluster or a host cannot be reached now.
    pub(super) fn is_out_of_reach(&self) -> bool {
        match self {
            ExperimentError::Unreachable(why)
            | ExperimentError::Server(why)
            | ExperimentError::Other(why) => is_out_of_reach(why.as_ref()),
            ExperimentError::Interrupted => false,
        }
    }

    /// Any other error.
    pub(super) fn other(why: impl Into<Cause>) -> Self {
        ExperimentError::Other(why.into())
    }
}

macro_rules! other {
    ($($error:ty),*) => {
        $(impl From<$error> for ExperimentError {
            fn from(error: $error) -> Self {
                ExperimentError::other(error)
            }
        })*
    };
}

other!(LocalError, Refused, RunError);

impl From<WorkerPoolError> for ExperimentError {
    fn from(error: WorkerPoolError) -> Self {
        match error {
            WorkerPoolError::Unreachable(_) => ExperimentError::unreachable(error),
            other => ExperimentError::other(other),
        }
    }
}

impl From<RemoteError> for ExperimentError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Unreachable { .. } | RemoteError::AgentLost { .. } => {
                ExperimentError::unreachable(error)
            }
            RemoteError::Failed { .. } => ExperimentError::other(error),
        }
    }
}

/// An error of a server, which says that it is one.
pub(super) fn of_server(error: impl Into<Cause>) -> LocalError {
    LocalError::failed_step("server", error)
}
