//! Replies of now beside those of then.

use crate::entry::{RecordedKind, RecordedReply};
use dyno_types::command::ReplyFacts;
use dyno_workload::{REPLAY_EXAMPLES, ReplayedReplies};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Way in which a reply differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    Missing,
    Error,
    Kind,
    Size,
}

/// The first way in which the reply of now differs.
pub(super) fn difference(then: &RecordedReply, now: Option<&ReplyFacts<'_>>) -> Option<Difference> {
    let Some(now) = now else { return Some(Difference::Missing) };
    match (then.kind, now.kind) {
        (RecordedKind::Error, None) if then.error.as_bytes() == now.error => None,
        (RecordedKind::Error, _) | (_, None) => Some(Difference::Error),
        (RecordedKind::Reply(then), Some(now)) if then != now => Some(Difference::Kind),
        _ => (then.size != now.size).then_some(Difference::Size),
    }
}

fn shown_then(then: &RecordedReply) -> String {
    match then.kind {
        RecordedKind::Error => format!("error {}", then.error),
        RecordedKind::Reply(kind) => shown(kind.kind_name(), then.size),
    }
}

fn shown(kind: &str, size: u64) -> String {
    match kind {
        "string" => format!("{size} bytes"),
        "array" => format!("{size} elements"),
        // Documents that a command of MongoDB has written.
        "status" if size > 0 => format!("status, {size}"),
        other => other.to_owned(),
    }
}

fn shown_now(now: Option<&ReplyFacts<'_>>) -> String {
    match now {
        None => "no reply".into(),
        Some(ReplyFacts { kind: None, error, .. }) => format!("error {}", String::from_utf8_lossy(error)),
        Some(ReplyFacts { kind: Some(kind), size, .. }) => shown(kind.kind_name(), *size),
    }
}

/// Counts of all load threads.
#[derive(Debug, Default)]
pub(super) struct DivergenceCounts {
    compared: AtomicU64,
    by_way: [AtomicU64; 4],
    connections: AtomicU64,
    not_compared: AtomicU64,
    errors_as_then: AtomicU64,
    examples: Mutex<Vec<[String; 3]>>,
}

impl DivergenceCounts {
    /// A reply cannot be compared.
    pub fn skip(&self) {
        self.not_compared.fetch_add(1, Ordering::Relaxed);
    }

    /// Compares a reply; `is_first`: none on its connection has differed before. Returns whether it differs.
    pub fn compare(
        &self,
        then: &RecordedReply,
        now: Option<&ReplyFacts<'_>>,
        is_first: bool,
        command: &dyn Fn() -> String,
    ) -> bool {
        self.compared.fetch_add(1, Ordering::Relaxed);
        let Some(way) = difference(then, now) else {
            if then.kind == RecordedKind::Error {
                self.errors_as_then.fetch_add(1, Ordering::Relaxed);
            }
            return false;
        };
        self.by_way[way as usize].fetch_add(1, Ordering::Relaxed);
        if is_first {
            self.connections.fetch_add(1, Ordering::Relaxed);
        }
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if examples.len() < REPLAY_EXAMPLES {
            let (then, now) = (shown_then(then), shown_now(now));
            examples.push([command(), then, now]);
        }
        true
    }

    /// There is no reply to compare with, although there is one.
    pub fn miss(&self, command: &dyn Fn() -> String) {
        self.compared.fetch_add(1, Ordering::Relaxed);
        self.by_way[Difference::Missing as usize].fetch_add(1, Ordering::Relaxed);
        let mut examples = self.examples.lock().unwrap_or_else(PoisonError::into_inner);
        if examples.len() < REPLAY_EXAMPLES {
            examples.push([command(), shown_now(None), "a reply".into()]);
        }
    }

    /// The counts so far.
    pub fn so_far(&self) -> ReplayedReplies {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ReplayedReplies {
            compared: of(&self.compared),
            missing: of(&self.by_way[Difference::Missing as usize]),
            error: of(&self.by_way[Difference::Error as usize]),
            kind: of(&self.by_way[Difference::Kind as usize]),
            size: of(&self.by_way[Difference::Size as usize]),
            connections: of(&self.connections),
            not_compared: of(&self.not_compared),
            errors_as_then: of(&self.errors_as_then),
            examples: self.examples.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..ReplayedReplies::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::command::ReplyKind;

    fn then(kind: RecordedKind, size: u64, error: &str) -> RecordedReply {
        RecordedReply { kind, size, error: error.into(), after_ns: None }
    }

    fn now(kind: Option<ReplyKind>, size: u64, error: &[u8]) -> ReplyFacts<'_> {
        ReplyFacts { kind, size, error }
    }

    #[test]
    fn a_reply_differs_in_the_first_way_that_applies() {
        let text = RecordedKind::Reply(ReplyKind::Text);
        let nil = RecordedKind::Reply(ReplyKind::Nil);
        let cases = [
            (then(text, 3, ""), Some(now(Some(ReplyKind::Text), 3, b"")), None),
            (then(text, 3, ""), Some(now(Some(ReplyKind::Text), 4, b"")), Some(Difference::Size)),
            (then(text, 3, ""), Some(now(Some(ReplyKind::Nil), 0, b"")), Some(Difference::Kind)),
            (then(nil, 0, ""), Some(now(Some(ReplyKind::Nil), 0, b"")), None),
            (then(text, 3, ""), Some(now(None, 0, b"ERR")), Some(Difference::Error)),
            (then(RecordedKind::Error, 0, "ERR"), Some(now(None, 0, b"ERR")), None),
            (then(RecordedKind::Error, 0, "ERR"), Some(now(None, 0, b"OOM")), Some(Difference::Error)),
            (
                then(RecordedKind::Error, 0, "ERR"),
                Some(now(Some(ReplyKind::Nil), 0, b"")),
                Some(Difference::Error),
            ),
            (then(text, 3, ""), None, Some(Difference::Missing)),
        ];
        let counts = DivergenceCounts::default();
        for (then, now, expected) in cases {
            assert_eq!(difference(&then, now.as_ref()), expected, "{then:?} {now:?}");
            counts.compare(&then, now.as_ref(), expected == Some(Difference::Size), &|| "GET a".into());
        }
        counts.skip();
        let all = counts.so_far();
        let ways = (all.missing, all.error, all.kind, all.size);
        assert_eq!((all.compared, ways, all.connections), (9, (1, 3, 1, 1), 1));
        assert_eq!((all.not_compared, all.errors_as_then, all.examples.len()), (1, 1, 5));
        assert_eq!(all.examples[0][2], "4 bytes");
    }
}
