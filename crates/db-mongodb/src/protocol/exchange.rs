//! The state of one operation in flight, from its command to its last reply.

use super::session::LogicalSession;
use dyno_types::{Outcome, Request};

/// State of one operation in flight.
#[derive(Debug, Default)]
pub struct MongoExchange {
    pub(super) request: Request,
    /// Number of the message that asked last: each command follows the reply to the one before.
    pub(super) id: i32,
    /// The request writes, or belongs to a transaction: it goes to the primary.
    pub(super) writes: bool,
    pub(super) in_transaction: bool,
    /// The inserts of a batch; empty for a single operation.
    pub(super) batch: Vec<Request>,
    /// Number of statements of a write, which may take several commands; 0 for other operations.
    pub(super) statements: u32,
    /// The statements of the command under way: first, and behind the last.
    pub(super) part: (u32, u32),
    /// Outcome of the first command that failed, where others follow.
    pub(super) first_failure: Option<Outcome>,
    /// A command has found or written something.
    pub(super) found: bool,
    /// Where the operation goes, and the rest of its result comes from.
    pub(super) node: u16,
    pub(super) cursor: i64,
    pub(super) records: u32,
    /// Records before the command under way.
    pub(super) records_before: u32,
    pub(super) verified: Option<Outcome>,
    /// Statements that failed, by number.
    pub(super) failed: Vec<(u32, Outcome)>,
    /// Statements below this number have results of their own.
    pub(super) settled: u32,
    /// The reply has been read to its end.
    pub(super) answered: bool,
    /// Kept from operation to operation, where the server expects one.
    pub(super) session: Option<LogicalSession>,
    /// A retryable write.
    pub(super) numbered: bool,
    /// It may be sent once more after errors that pass.
    pub(super) retryable: bool,
    /// The command under way may be sent once more if the server is overloaded.
    pub(super) sheddable: bool,
    pub(super) tries: Tries,
    /// When the question for the topology was put, milliseconds.
    pub(super) asked_ms: i64,
}

/// Tries of the command under way.
#[derive(Debug, Default)]
pub(super) struct Tries {
    /// Number that failed.
    pub failed: u32,
    /// One of them found the server overloaded.
    pub overloaded: bool,
    /// One was lost without an answer: it may have been done.
    pub lost: bool,
    /// Outcome of the last one that may have written something.
    pub wrote: Option<Outcome>,
    /// Servers that come last for the next one.
    pub deprioritized: Vec<u16>,
    /// The next one goes to the same server: a cursor or a transaction is there.
    pub pinned: bool,
}

impl MongoExchange {
    /// Begins the next command of the operation.
    pub(super) fn next_command(&mut self) {
        self.records_before = self.records;
        let mut deprioritized = std::mem::take(&mut self.tries.deprioritized);
        deprioritized.clear();
        self.tries = Tries { deprioritized, ..Tries::default() };
    }

    /// Forgets what came of the last try.
    pub(super) fn forget_reply(&mut self) {
        (self.answered, self.verified, self.records) = (false, None, self.records_before);
        self.failed.retain(|(number, _)| *number < self.part.0);
    }
}
