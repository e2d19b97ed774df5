//! Questions that a proof asks of a database.

use crate::copies::ledger::Ledger;
use crate::copies::plan::{Durability, IngestPlan};
use crate::copies::records::Records;
use crate::copies::sent::Sent;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A question that is asked before anything is claimed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreCheck {
    /// Name of the thing that is checked.
    pub name: String,
    /// True if it is as the claim needs it.
    pub held: bool,
    /// State that was found.
    pub found: String,
}

impl PreCheck {
    /// Notes what was looked at, whether it held, and what was found.
    pub fn new(name: &str, held: bool, found: impl Into<String>) -> Self {
        PreCheck { name: name.into(), held, found: found.into() }
    }

    /// On how many hosts copies are. Said, not demanded: a demonstration runs on one machine.
    pub fn count_hosts(mut hosts: Vec<String>, copies: usize) -> Self {
        hosts.sort_unstable();
        hosts.dedup();
        let message = match hosts.len() >= copies {
            true => format!("{} hosts", hosts.len()),
            false => format!("{} host: what takes it takes all copies", hosts.len()),
        };
        PreCheck::new("distinct hosts", true, message)
    }
}

/// Why a database does not answer a proof: it counts as unreachable.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// There is no connection, it was lost, or the server has refused a command: the error of the database's own client.
    #[error(transparent)]
    Client(Box<dyn std::error::Error + Send + Sync>),
    /// No primary is elected, or no reachable member knows it.
    #[error("{0}")]
    NoPrimary(&'static str),
    /// The name of a member is no address.
    #[error("{0}: no address")]
    NoAddress(String),
    /// A reply lacks what was asked for.
    #[error("{0}")]
    Incomplete(String),
    /// This kind of database is not asked that.
    #[error("it is not asked")]
    NotAsked,
}

impl DatabaseError {
    /// Reports a reply that lacks what was asked for.
    pub fn incomplete_reply(message: impl Into<String>) -> Self {
        DatabaseError::Incomplete(message.into())
    }
}

/// Unit that copies are counted behind in, and by how much each is.
pub type ReplicationLag = (&'static str, Vec<(String, f64)>);

/// A primary, and copies elsewhere; members are `host:port`.
pub trait ReplicatedStore: Send + Sync {
    /// The primary now.
    fn primary(&self) -> Result<String, DatabaseError>;

    /// Members that hold copies, the primary left out.
    fn replicas(&self) -> Result<Vec<String>, DatabaseError>;

    /// Conditions that must hold so that the claim means anything.
    fn pre_checks(&self, copies: usize, durability: Durability) -> Result<Vec<PreCheck>, DatabaseError>;

    /// Durability that an acknowledgement of this plan stands for, by what the members say of themselves; and in words.
    fn acknowledges(&self, plan: &IngestPlan) -> (Durability, String) {
        let message = match plan.durability {
            Durability::Memory => "in memory",
            Durability::Disk => "in a log on disk",
        };
        (plan.durability, message.to_owned())
    }

    /// Returns whether records may be documents, which it keeps as such.
    fn keeps_documents(&self) -> bool {
        false
    }

    /// Makes ready what records are written into.
    fn prepare(&self, _plan: &IngestPlan) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// Speaks to a member, whose answers to writes may take `patience` longer than others.
    fn connect(&self, member: &str, patience: Duration) -> Result<Box<dyn IngestClient>, DatabaseError>;

    /// Returns whether a replica has everything that the primary has written by now.
    fn caught_up(&self, replica: &str) -> Result<bool, DatabaseError>;

    /// A member's clock, Unix nanoseconds.
    fn clock_ns(&self, _member: &str) -> Result<u64, DatabaseError> {
        Err(DatabaseError::NotAsked)
    }

    /// Distance of each copy behind the primary by now, and the unit that it is counted in.
    fn behind(&self) -> Result<ReplicationLag, DatabaseError> {
        Err(DatabaseError::NotAsked)
    }

    /// Things that are there already under names of this run: there must be none.
    fn existing(&self, _plan: &IngestPlan) -> Result<u64, DatabaseError> {
        Ok(0)
    }

    /// Sizes that the primary reports of what it holds, by name.
    fn storage(&self, _plan: &IngestPlan) -> Result<BTreeMap<String, f64>, DatabaseError> {
        Ok(BTreeMap::new())
    }

    /// Removes a run's records and indexes: those of the ledger; without one whatever is there under the run's names.
    fn remove(&self, records: &Records, ledger: Option<&Ledger>) -> Result<(), DatabaseError>;
}

/// Longest time that writes of clients that are gone may come after a removal.
const LATE_WRITES: Duration = Duration::from_secs(60);

/// Removes until nothing is left: a server may still be at work on what a killed client had sent, and make again what was
/// removed. `remove` returns whether anything was there or on its way.
///
/// # Errors
/// Those of `remove`; or something was still written after a minute.
pub fn until_gone(mut remove: impl FnMut() -> Result<bool, DatabaseError>) -> Result<(), DatabaseError> {
    let begun = Instant::now();
    while remove()? {
        if begun.elapsed() > LATE_WRITES {
            return Err(DatabaseError::incomplete_reply("something still writes the records of this proof"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// As many copies as asked for have it; it was sent then.
    Acknowledged(Instant),
    /// It may be there or not.
    Indeterminate(String),
    /// It must not be there.
    Refused(String),
}

/// Consecutive records of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSpan {
    /// The worker, from 0.
    pub worker: u32,
    /// The first.
    pub from: u64,
    /// The one after the last.
    pub to: u64,
}

/// A conversation with a member.
pub trait IngestClient: Send {
    /// Writes records and waits until as many copies have them as the plan says.
    fn put(&mut self, records: &Records, part: RecordSpan, plan: &IngestPlan) -> WriteOutcome;

    /// Counts of what has gone out since the last call, acknowledged or not.
    fn take_sent(&mut self) -> Sent {
        Sent::default()
    }

    /// Content that a copy holds of a record that is there as it was sent.
    fn content(&self, records: &Records, worker: u32, number: u64) -> Vec<u8> {
        records.record_value(worker, number).into_bytes()
    }

    /// Contents of records, in their order; `None` for what is not there.
    fn get(&mut self, records: &Records, part: RecordSpan) -> Result<Vec<Option<Vec<u8>>>, DatabaseError>;

    /// Entries of an index.
    fn indexed(&mut self, records: &Records, index: usize) -> Result<u64, DatabaseError>;

    /// All records of the run, each counted as often as it is there; `None` where a name can be there only once.
    fn held(&mut self, _records: &Records) -> Result<Option<u64>, DatabaseError> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_after_a_removal_is_removed_too() {
        let mut left = vec![false, true, true];
        until_gone(|| Ok(left.pop().expect("it ends with the first look that finds nothing"))).unwrap();
        assert!(left.is_empty());
        let refused = until_gone(|| Err(DatabaseError::NotAsked));
        assert!(matches!(refused, Err(DatabaseError::NotAsked)));
    }
}
