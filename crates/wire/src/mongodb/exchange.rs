//! The state of one operation in flight, from its command to its last reply.

use super::session::Session;
use dyno_types::{Outcome, Request};

/// State of one operation in flight.
#[derive(Debug, Default)]
pub struct Exchange {
    pub(super) request: Request,
    /// The inserts of a batch; empty for a single operation.
    pub(super) batch: Vec<Request>,
    /// Where the operation goes, and the rest of its result comes from.
    pub(super) node: u16,
    pub(super) cursor: i64,
    pub(super) records: u32,
    pub(super) verified: Option<Outcome>,
    /// Statements that failed, by number.
    pub(super) failed: Vec<(u32, Outcome)>,
    /// The reply has been read to its end.
    pub(super) answered: bool,
    /// Kept from operation to operation, where the server expects one.
    pub(super) session: Option<Session>,
    /// A retryable write.
    pub(super) numbered: bool,
    /// True if it may be sent once more, has been, and whether the first try was lost without an answer.
    pub(super) retryable: bool,
    pub(super) retried: bool,
    pub(super) lost: bool,
    /// When the question for the topology was put, milliseconds.
    pub(super) asked_ms: i64,
}

impl Exchange {
    /// Forgets what came of the first try: there will be a second, and no third.
    pub(super) fn forget(&mut self) {
        self.retried = true;
        (self.answered, self.records, self.cursor, self.verified) = (false, 0, 0, None);
        self.failed.clear();
    }
}
