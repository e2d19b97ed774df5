//! Errors of servers on this host.

use dyno_types::{RefusalCode, Refused};
use std::process::ExitStatus;
use std::{error, fmt, io};

/// Cause of an error, if it has a type of its own.
pub type Cause = Box<dyn error::Error + Send + Sync>;

/// Errors while starting a local server, or something for it. Partial work has been undone.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Invalid configuration, or not possible on this machine.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A file that is to be obeyed is not the caller's own, or says what no dyno has written. Nothing of it was done.
    #[error("{0}")]
    Untrusted(String),
    /// A program is not installed.
    #[error("{0}")]
    Absent(String),
    /// The system does not allow it; `lost` says what the run would lose without.
    #[error("{what}: {why}; without it {lost} (if_not_permitted: continue goes on without)")]
    NotPermitted {
        /// Attempted action.
        what: String,
        /// Error of the system.
        #[source]
        why: Cause,
        /// Consequence for a run without it.
        lost: String,
    },
    /// A program of the system has not done its part.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A step failed.
    #[error("{step}: {source}")]
    Step {
        /// Failed step, with its object.
        step: String,
        /// Error of the system or of a server.
        source: Cause,
    },
    /// A server does not come up, or something beside it is not as it must be.
    #[error("{0}")]
    Failed(String),
}

impl LocalError {
    /// A value that cannot be used: the key or the file it belongs to, and the whole message.
    pub fn refuse(place: impl Into<String>, text: impl Into<String>) -> Self {
        LocalError::Refused(Refused::new(RefusalCode::BadValue, place, text))
    }

    /// A step that failed, and what the system says about it.
    pub fn failed_step(step: impl fmt::Display, why: impl Into<Cause>) -> Self {
        LocalError::Step { step: step.to_string(), source: why.into() }
    }
}

/// Errors of a program of the system.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is not on PATH.
    #[error("{program} is not installed{hint}")]
    Missing {
        /// Name.
        program: String,
        /// Hint for installing it, in parentheses; empty where that is not known.
        hint: &'static str,
    },
    /// It cannot be started, or not be waited for.
    #[error("{program}: {source}")]
    Io {
        /// Name.
        program: String,
        /// Error of the system.
        source: io::Error,
    },
    /// It has ended with a complaint.
    #[error("{program}: {message} ({status})")]
    Ended {
        /// Name.
        program: String,
        /// Standard error, as one line.
        message: String,
        /// Exit status.
        status: ExitStatus,
    },
}
