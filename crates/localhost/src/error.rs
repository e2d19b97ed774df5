//! What can go wrong with servers on this host.

use std::fmt;

/// Why a local server, or something for it, is not to be had. Whatever had been made by then is gone again.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// What is asked for cannot be meant, or not on this machine.
    #[error("{0}")]
    Refused(String),
    /// A file that is to be obeyed is not the caller's own, or says what no dyno has written. Nothing of it was done.
    #[error("{0}")]
    Untrusted(String),
    /// A program is not installed.
    #[error("{0}")]
    Absent(String),
    /// The system does not allow it; `lost` says what the run would lose without.
    #[error("{what}: {why}; without it {lost} (if_not_permitted: continue goes on without)")]
    NotPermitted {
        /// What was tried.
        what: String,
        /// What the system says.
        why: String,
        /// What a run without it lacks.
        lost: String,
    },
    /// A server does not come up, or a step beside it failed.
    #[error("{0}")]
    Failed(String),
}

impl LocalError {
    /// A step that failed, and what the system says about it.
    pub fn failed(step: impl fmt::Display, why: impl fmt::Display) -> Self {
        LocalError::Failed(format!("{step}: {why}"))
    }
}
