//! Batches of inserts: each record by a command of its own (0 to n - 1), then one command with the index entries of all
//! where there is an index, then the expiry of each record where records expire. A record whose own command failed has
//! failed alone; without the index entries none of them is whole.

use super::cluster::key_slot;
use super::driver::{Exchange, INDEX_KEY, RedisDriver, java_hash};
use super::resp::{put_array, put_bulk, put_length};
use dyno_types::{Outcome, Request};
use std::io::Write;

/// The inserts of a batch and how each has ended.
#[derive(Debug, Default)]
pub(super) struct Batch {
    requests: Vec<(Request, Outcome)>,
    indexed: bool,
}

/// What a command of a batch is for.
pub(super) enum Part<'a> {
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

    /// What a command is for.
    pub fn part(&self, command: u32) -> Part<'_> {
        let command = command as usize;
        match self.record_of(command) {
            None => Part::Index,
            Some(record) if record == command => Part::Record(&self.requests[record].0),
            Some(record) => Part::Expiry(&self.requests[record].0),
        }
    }

    /// The record that a command is about; `None` for the index entries.
    fn record_of(&self, command: usize) -> Option<usize> {
        let records = self.requests.len();
        match command.checked_sub(records) {
            None => Some(command),
            Some(0) if self.indexed => None,
            Some(after) => Some(after - usize::from(self.indexed)),
        }
    }

    /// A command has failed.
    pub fn fail(&mut self, command: u32, outcome: Outcome) {
        let failed = match self.record_of(command as usize) {
            Some(one) => std::slice::from_mut(&mut self.requests[one]),
            None => &mut self.requests[..],
        };
        failed.iter_mut().filter(|(_, own)| own.is_ok()).for_each(|(_, own)| *own = outcome);
    }

    /// How request number `number` has ended.
    pub fn outcome(&self, number: u32) -> Outcome {
        self.requests[number as usize].1
    }
}

/// Appends the score of a key's index entry as a bulk string.
pub(super) fn put_score(out: &mut Vec<u8>, key: &[u8]) {
    let score = java_hash(key);
    let digits = score.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
    put_length(out, digits + usize::from(score < 0));
    // Writing to a vector cannot fail.
    let _ = write!(out, "{score}\r\n");
}

impl RedisDriver {
    /// The slot of a command's key.
    pub(super) fn batched_slot(&mut self, x: &Exchange, command: u32) -> u16 {
        let request = match x.more.batch.part(command) {
            Part::Index => return self.index_slot,
            Part::Record(request) | Part::Expiry(request) => request,
        };
        self.batch_key.clear();
        self.content.key(request, &mut self.batch_key);
        key_slot(&self.batch_key)
    }

    /// A command of a batch: one of its records, or after them all its index entries.
    pub(super) fn put_batched(&mut self, x: &Exchange, command: u32, out: &mut Vec<u8>) {
        let mut key = std::mem::take(&mut self.batch_key);
        key.clear();
        match x.more.batch.part(command) {
            Part::Record(request) => {
                self.content.key(request, &mut key);
                self.put_write(request, &key, out);
            }
            Part::Expiry(request) => {
                self.content.key(request, &mut key);
                self.put_expiry(&key, out);
            }
            Part::Index => {
                put_array(out, 2 + 2 * x.more.batch.requests.len());
                out.extend_from_slice(b"$4\r\nZADD\r\n");
                put_bulk(out, INDEX_KEY);
                for (request, _) in &x.more.batch.requests {
                    key.clear();
                    self.content.key(request, &mut key);
                    put_score(out, &key);
                    put_bulk(out, &key);
                }
            }
        }
        self.batch_key = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_decimal() {
        for (key, expected) in [(&b""[..], "$1\r\n0\r\n"), (b"a", "$2\r\n97\r\n")] {
            let mut out = Vec::new();
            put_score(&mut out, key);
            assert_eq!(out, expected.as_bytes());
        }
        let mut out = Vec::new();
        put_score(&mut out, b"user8517097267634966620");
        assert_eq!(out, b"$10\r\n-314243905\r\n");
    }

    #[test]
    fn a_record_fails_alone_but_the_index_fails_all() {
        let mut batch = Batch::default();
        batch.begin(&[Request::default(); 3], true);
        batch.fail(1, Outcome::OutOfMemory);
        assert_eq!([0, 1, 2].map(|n| batch.outcome(n)), [Outcome::Ok, Outcome::OutOfMemory, Outcome::Ok]);
        batch.fail(3, Outcome::ReadOnly);
        let expected = [Outcome::ReadOnly, Outcome::OutOfMemory, Outcome::ReadOnly];
        assert_eq!([0, 1, 2].map(|n| batch.outcome(n)), expected);
    }

    #[test]
    fn an_expiry_fails_its_own_record() {
        for (indexed, command) in [(true, 6), (false, 5)] {
            let mut batch = Batch::default();
            batch.begin(&[Request::default(); 3], indexed);
            batch.fail(command, Outcome::ReadOnly);
            assert_eq!([0, 1, 2].map(|n| batch.outcome(n)), [Outcome::Ok, Outcome::Ok, Outcome::ReadOnly]);
        }
    }
}
