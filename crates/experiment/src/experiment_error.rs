//! Why a run was not made.

use crate::outage::is_out_of_reach;
use dyno_engine::RunError;
use dyno_hosts::remote::ssh::RemoteError;
use dyno_hosts::remote::worker::pool_error::WorkerPoolError;
use dyno_localhost::error::{Cause, LocalError};
use dyno_types::Refused;

/// Why a run was not made.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
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

impl Failed {
    /// There is no target.
    pub(super) fn unreachable(why: impl Into<Cause>) -> Self {
        Failed::Unreachable(why.into())
    }

    /// Returns whether it says that a cluster or a host cannot be reached now.
    pub(super) fn is_out_of_reach(&self) -> bool {
        match self {
            Failed::Unreachable(why) | Failed::Server(why) | Failed::Other(why) => {
                is_out_of_reach(why.as_ref())
            }
            Failed::Interrupted => false,
        }
    }

    /// Any other error.
    pub(super) fn other(why: impl Into<Cause>) -> Self {
        Failed::Other(why.into())
    }
}

macro_rules! other {
    ($($error:ty),*) => {
        $(impl From<$error> for Failed {
            fn from(error: $error) -> Self {
                Failed::other(error)
            }
        })*
    };
}

other!(LocalError, Refused, RunError);

impl From<WorkerPoolError> for Failed {
    fn from(error: WorkerPoolError) -> Self {
        match error {
            WorkerPoolError::Unreachable(_) => Failed::unreachable(error),
            other => Failed::other(other),
        }
    }
}

impl From<RemoteError> for Failed {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Unreachable { .. } | RemoteError::AgentLost { .. } => Failed::unreachable(error),
            RemoteError::Failed { .. } => Failed::other(error),
        }
    }
}

/// An error of a server, which says that it is one.
pub(super) fn of_server(error: impl Into<Cause>) -> LocalError {
    LocalError::failed_step("server", error)
}
