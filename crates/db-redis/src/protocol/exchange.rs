//! The state of one operation in flight; of a batch, how each of its inserts has ended; of a command in parts, their replies.

use dyno_types::command::{ReplyFacts, ReplyKind};
use dyno_types::{Outcome, Request};

/// State of one operation in flight.
#[derive(Debug, Default)]
pub struct RedisExchange {
    pub(super) request: Request,
    /// Replies still awaited.
    pub(super) waiting: u32,
    pub(super) outcome: Outcome,
    pub(super) verified: Option<Outcome>,
    pub(super) records: u32,
    pub(super) removed: bool,
    /// Elements that were asked for: found, and not found.
    pub(super) elements: (u32, u32),
    /// True if it is a batch of inserts.
    pub(super) batched: bool,
    /// True if the next command has the text of its script, which the server has lost.
    pub(super) sends_script: bool,
    /// Apart, so that what all operations touch fills few cache lines.
    pub(super) more: Box<ScanState>,
}

/// State that only scans, batches and operations of several steps need.
#[derive(Debug, Default)]
pub(super) struct ScanState {
    /// A scan's keys end to end, and where each ends.
    pub(super) keys: Vec<u8>,
    pub(super) ends: Vec<u32>,
    /// The next record of a scan to ask for.
    pub(super) asked: u32,
    /// The inserts of a batch.
    pub(super) batch: Batch,
    /// Parts of replies that later steps of an operation use, by their numbers.
    pub(super) replies: Vec<Vec<u8>>,
    /// The replies so far to a recorded command that is sent as several.
    pub(super) joined: Option<JoinedReply>,
}

impl RedisExchange {
    /// A document more was found or written.
    pub(super) fn count(&mut self) {
        self.records += 1;
    }

    pub(super) fn scan_key(&self, record: u32) -> &[u8] {
        let record = record as usize;
        debug_assert!(record < self.more.ends.len(), "only records that the index named are asked for");
        let from = if record == 0 { 0 } else { self.more.ends[record - 1] as usize };
        &self.more.keys[from..self.more.ends[record] as usize]
    }
}

/// The replies to the parts of one command, as the reply that a single server would give: numbers and elements add up, and the
/// first error is that of the whole.
#[derive(Debug, Default)]
pub(super) struct JoinedReply {
    kind: Option<ReplyKind>,
    size: u64,
    error: Option<Vec<u8>>,
}

impl JoinedReply {
    pub(super) fn add_part(&mut self, part: &ReplyFacts<'_>) {
        match part.kind {
            None => drop(self.error.get_or_insert_with(|| part.error.to_vec())),
            Some(kind) => {
                let is_first = self.kind.is_none();
                self.kind.get_or_insert(kind);
                // Every node gives the same text: the hash of a script, the name of a library.
                if is_first || kind == ReplyKind::Array {
                    self.size += part.size;
                }
            }
        }
    }

    pub(super) fn facts(&self) -> ReplyFacts<'_> {
        match &self.error {
            Some(error) => ReplyFacts { kind: None, size: 0, error },
            None => ReplyFacts { kind: self.kind, size: self.size, error: b"" },
        }
    }
}

/// The inserts of a batch and how each has ended.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) requests: Vec<(Request, Outcome)>,
    indexed: bool,
}

/// Purpose of a command of a batch.
pub(super) enum BatchPart<'a> {
    /// A record's content.
    Record(&'a Request),
    /// The index entries of all.
    Index,
    /// A record's time to live.
    Expiry(&'a Request),
}

impl Batch {
    pub fn begin(&mut self, requests: &[Request], indexed: bool) {
        self.indexed = indexed;
        self.requests.clear();
        self.requests.extend(requests.iter().map(|request| (*request, Outcome::Ok)));
    }

    /// Purpose of a command.
    pub fn command_part(&self, command: u32) -> BatchPart<'_> {
        let command = command as usize;
        match self.record_of(command) {
            None => BatchPart::Index,
            Some(record) if record == command => BatchPart::Record(&self.requests[record].0),
            Some(record) => BatchPart::Expiry(&self.requests[record].0),
        }
    }

    /// The record that a command is about; `None` for the index entries.
    fn record_of(&self, command: usize) -> Option<usize> {
        let records = self.requests.len();
        let record = match command.checked_sub(records) {
            None => Some(command),
            Some(0) if self.indexed => None,
            Some(after) => Some(after - usize::from(self.indexed)),
        };
        debug_assert!(record.is_none_or(|record| record < records), "a batch has no such command");
        record
    }

    /// A command has failed.
    pub fn note_failure(&mut self, command: u32, outcome: Outcome) {
        let failed = match self.record_of(command as usize) {
            Some(one) => std::slice::from_mut(&mut self.requests[one]),
            None => &mut self.requests[..],
        };
        failed.iter_mut().filter(|(_, own)| own.is_ok()).for_each(|(_, own)| *own = outcome);
    }

    /// Outcome of request number `number`.
    pub fn request_outcome(&self, number: u32) -> Outcome {
        self.requests[number as usize].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_fails_alone_but_the_index_fails_all() {
        let mut batch = Batch::default();
        batch.begin(&[Request::default(); 3], true);
        batch.note_failure(1, Outcome::OutOfMemory);
        assert_eq!(
            [0, 1, 2].map(|n| batch.request_outcome(n)),
            [Outcome::Ok, Outcome::OutOfMemory, Outcome::Ok]
        );
        batch.note_failure(3, Outcome::ReadOnly);
        let expected = [Outcome::ReadOnly, Outcome::OutOfMemory, Outcome::ReadOnly];
        assert_eq!([0, 1, 2].map(|n| batch.request_outcome(n)), expected);
    }

    #[test]
    fn an_expiry_fails_its_own_record() {
        for (indexed, command) in [(true, 6), (false, 5)] {
            let mut batch = Batch::default();
            batch.begin(&[Request::default(); 3], indexed);
            batch.note_failure(command, Outcome::ReadOnly);
            assert_eq!(
                [0, 1, 2].map(|n| batch.request_outcome(n)),
                [Outcome::Ok, Outcome::Ok, Outcome::ReadOnly]
            );
        }
    }
}
