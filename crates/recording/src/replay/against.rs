//! The same recording on two servers at a time: the reply of one beside that of the other.

use super::compare::DivergenceCounts;
use crate::entry::{RecordedKind, RecordedReply};
use dyno_types::command::ReplyFacts;
use dyno_workload::ReplayedReplies;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Parts of the replies, so that load threads do not wait for each other.
const SHARDS: usize = 64;

/// Most replies of a part that wait for that of the other server.
const WAITING: usize = 1 << 16;

/// One of the two servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplaySide {
    /// The one that is measured.
    Measured,
    /// The one that it is compared with.
    Other,
}

/// A reply that has come, or none; and whose it is.
type Waiting = (ReplaySide, Option<RecordedReply>);

/// Some of the replies, by the number of their command in the file.
#[derive(Debug, Default)]
struct WaitingReplies {
    waiting: HashMap<u64, Waiting>,
    /// One server was so far behind that not all of them could be kept: from then on the first of two replies is not told from
    /// the second, and only those that were kept are compared.
    is_full: bool,
}

/// Replies of both servers.
#[derive(Debug)]
pub struct AgainstReplies {
    shards: [Mutex<WaitingReplies>; SHARDS],
    counts: DivergenceCounts,
}

impl Default for AgainstReplies {
    fn default() -> Self {
        AgainstReplies {
            shards: std::array::from_fn(|_| Mutex::default()),
            counts: DivergenceCounts::default(),
        }
    }
}

fn kept(reply: &ReplyFacts<'_>) -> RecordedReply {
    RecordedReply {
        kind: reply.kind.map_or(RecordedKind::Error, RecordedKind::Reply),
        size: reply.size,
        error: String::from_utf8_lossy(reply.error).into_owned(),
        after_ns: None,
    }
}

impl AgainstReplies {
    /// A command has its reply on one server, or has been given up; `command`: its words for messages.
    pub(super) fn note_reply(
        &self,
        side: ReplaySide,
        number: u64,
        reply: Option<&ReplyFacts<'_>>,
        command: &dyn Fn() -> String,
    ) {
        let own = reply.map(kept);
        let shard = &self.shards[number as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((whose, before)) = shard.waiting.remove(&number) else {
            shard.is_full |= shard.waiting.len() >= WAITING;
            if !shard.is_full {
                shard.waiting.insert(number, (side, own));
            } else if side == ReplaySide::Measured {
                self.counts.skip();
            }
            return;
        };
        drop(shard);
        if whose == side {
            debug_assert!(false, "a command has one reply on each server");
            return;
        }
        let (measured, other) = if side == ReplaySide::Measured { (own, before) } else { (before, own) };
        match (measured, other) {
            (None, None) => self.counts.skip(),
            (measured, Some(other)) => {
                let error = measured.as_ref().map_or(String::new(), |reply| reply.error.clone());
                let facts = measured.as_ref().map(|reply| facts_of(reply, &error));
                self.counts.compare(&other, facts.as_ref(), false, command);
            }
            // Only the one that is compared with has given none.
            (Some(_), None) => self.counts.miss(command),
        }
    }

    /// The counts so far.
    pub(super) fn so_far(&self) -> ReplayedReplies {
        let waiting = |shard: &Mutex<WaitingReplies>| {
            shard.lock().unwrap_or_else(PoisonError::into_inner).waiting.len() as u64
        };
        let counts = self.counts.so_far();
        let alone: u64 = self.shards.iter().map(waiting).sum();
        ReplayedReplies { not_compared: counts.not_compared + alone, ..counts }
    }
}

fn facts_of<'a>(reply: &RecordedReply, error: &'a str) -> ReplyFacts<'a> {
    match reply.kind {
        RecordedKind::Error => ReplyFacts { kind: None, size: 0, error: error.as_bytes() },
        RecordedKind::Reply(kind) => ReplyFacts { kind: Some(kind), size: reply.size, error: b"" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::command::ReplyKind;

    #[test]
    fn replies_are_paired_whichever_comes_first() {
        let text = |size| ReplyFacts { kind: Some(ReplyKind::Text), size, error: b"" };
        let error = ReplyFacts { kind: None, size: 0, error: b"OOM" };
        let both = AgainstReplies::default();
        let note = |number, measured: Option<&ReplyFacts<'_>>, other: Option<&ReplyFacts<'_>>| {
            let sides = [(ReplaySide::Measured, measured), (ReplaySide::Other, other)];
            let order = if number % 2 == 0 { [0, 1] } else { [1, 0] };
            for at in order {
                both.note_reply(sides[at].0, number, sides[at].1, &|| format!("GET {number}"));
            }
        };
        for number in [0, 1] {
            note(number, Some(&text(3)), Some(&text(3)));
        }
        for number in [2, 3] {
            note(number, Some(&text(3)), Some(&text(4)));
        }
        for number in [4, 5] {
            note(number, Some(&error), Some(&error));
        }
        note(6, Some(&text(3)), Some(&error));
        note(7, None, Some(&text(3)));
        note(8, Some(&text(3)), None);
        note(9, None, None);
        both.note_reply(ReplaySide::Other, 10, Some(&text(1)), &|| "GET 10".into());
        let found = both.so_far();
        assert_eq!((found.compared, found.size, found.error, found.missing), (9, 2, 1, 2));
        assert_eq!(found.not_compared, 2);
        assert_eq!(found.examples[0], ["GET 2".to_owned(), "4 bytes".into(), "3 bytes".into()]);
    }

    #[test]
    fn a_server_that_falls_far_behind_leaves_what_was_kept_to_compare() {
        let text = ReplyFacts { kind: Some(ReplyKind::Text), size: 3, error: b"" };
        let both = AgainstReplies::default();
        let (shards, room, all) = (SHARDS as u64, WAITING as u64, WAITING as u64 + 1_000);
        for side in [ReplaySide::Measured, ReplaySide::Other] {
            // All of one part.
            (0..all).for_each(|nth| both.note_reply(side, nth * shards, Some(&text), &|| "GET x".into()));
        }
        let found = both.so_far();
        assert_eq!((found.compared, found.not_compared, found.missing), (room, 1_000, 0));
    }
}
