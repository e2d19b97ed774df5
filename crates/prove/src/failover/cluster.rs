//! A cluster whose primary is taken away: what a proof asks of it, and why it may not go on.

use crate::failover::partition::PartitionError;
use dyno_db::copies::database::{DatabaseError, ReplicatedStore};
use dyno_engine::Control;
use dyno_engine::RunError;
use dyno_localhost::error::LocalError;
use dyno_types::Refused;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that an election may take, and an old primary until it follows.
pub(super) const ELECTION: Duration = Duration::from_secs(60);

/// Why a proof of failover does not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum FailoverError {
    /// A server does not start, or not again.
    #[error(transparent)]
    Server(#[from] LocalError),
    /// A server does not start with an address of its own.
    #[error("{0} (cutting off needs bind-source-addr: Redis 7 or later, Valkey)")]
    NoOwnAddress(#[source] LocalError),
    /// Options of the servers are refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A server does not answer, or refuses a command.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The engine cannot write as planned.
    #[error(transparent)]
    Engine(#[from] RunError),
    /// A step with a member failed.
    #[error("{step}: {source}")]
    Member {
        /// The member, and what was asked of it.
        step: String,
        /// Why.
        source: DatabaseError,
    },
    /// Nothing can be cut off, or healed.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// A member could not be stopped or killed.
    #[error("{0}")]
    Fault(String),
    /// The primary is no member that was started.
    #[error("{0}: not among the members that were started")]
    UnknownMember(String),
    /// Something has not come about in time.
    #[error("{what} after {} s", patience.as_secs())]
    Late {
        /// Condition that is not met.
        what: String,
        /// Time that it was waited for.
        patience: Duration,
    },
    /// The proof was stopped before something had come about.
    #[error("{0}: no longer waited for")]
    Stopped(String),
    /// A thread that writes has panicked.
    #[error("a writer has panicked")]
    Panicked,
}

/// Servers of a proof, of which one is primary and another takes its place. They end when this is dropped.
pub(super) trait FailoverCluster {
    /// Their version.
    fn version(&self) -> String;

    /// Database that writers speak to: the current primary.
    fn database(&self) -> Arc<dyn ReplicatedStore>;

    /// Takes the primary away; from then on it is gone.
    fn inject(&mut self, primary: &str) -> Result<Instant, FailoverError>;

    /// Another that has taken its place and says so itself, if there is one.
    fn new_primary(&self, of: &str) -> Option<String>;

    /// Waits until another has taken its place; which.
    fn await_primary(&self, of: &str, control: &Control) -> Result<String, FailoverError> {
        await_some(ELECTION, control, "no other primary", || self.new_primary(of))
    }

    /// Undoes what was done, so that the old primary can follow the new one; when it was undone.
    fn heal(&mut self, old: &str, new: &str) -> Result<Instant, FailoverError>;

    /// Returns whether the old primary follows the new one.
    fn is_replica(&self, old: &str, new: &str) -> bool;

    /// Waits until the old primary follows the new one.
    fn await_replica(&self, old: &str, new: &str, control: &Control) -> Result<(), FailoverError> {
        let follows = || self.is_replica(old, new).then_some(());
        await_some(ELECTION, control, &format!("{old} does not follow {new}"), follows)
    }

    /// Waits until one is primary, all others follow it and all agree on that; the primary.
    fn await_healthy(&self) -> Result<String, FailoverError>;
}

/// Waits until there is something, at most for `patience` and while `control` does not stop.
pub(super) fn await_some<T>(
    patience: Duration,
    control: &Control,
    what: &str,
    mut look: impl FnMut() -> Option<T>,
) -> Result<T, FailoverError> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if control.is_stopping() {
            return Err(FailoverError::Stopped(what.to_owned()));
        }
        if begun.elapsed() > patience {
            return Err(FailoverError::Late { what: what.to_owned(), patience });
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(super) fn pause(length: Duration, control: &Control) {
    let until = Instant::now() + length;
    while Instant::now() < until && !control.is_stopping() {
        std::thread::sleep(Duration::from_millis(10));
    }
}
