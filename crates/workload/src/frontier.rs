//! The frontier of acknowledged inserts: up to which key number every record is known to exist.
//!
//! The picture: a ring of words covers the keys just beyond the prefix; an acknowledgement sets one bit, and the thread that
//! completes the prefix moves `limit` over it. Each word carries the number of its lap round the ring beside its
//! bits, so it never needs clearing and a late or repeated acknowledgement cannot be mistaken for a new one. All
//! operations are sequentially consistent: of two threads that acknowledge neighbouring keys at once, at least one
//! sees both bits, so the limit never lags (YCSB's try-lock lets it). Nothing blocks and nothing allocates.

use dyno_types::limits::INSERT_WINDOW;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// Keys one word covers; the upper half of a word is its lap.
const WORD_KEYS: u64 = 32;
const WORDS: u64 = INSERT_WINDOW / WORD_KEYS;

/// Acknowledged inserts, shared by all load threads of one process.
///
/// Key numbers below the start are loaded and count as acknowledged. At most [`INSERT_WINDOW`] keys (rounded down to
/// a word of 32) may be ahead of the acknowledged prefix.
#[derive(Debug)]
pub struct Frontier {
    base: u64,
    /// Keys acknowledged without a gap, counted from `base`.
    limit: AtomicU64,
    /// The next rank handed out by [`Frontier::next_key`].
    issued: AtomicU64,
    /// Acknowledgements refused because the window was exceeded.
    refused: AtomicU64,
    ring: Box<[AtomicU64]>,
}

impl Frontier {
    /// A frontier where all keys below `last_loaded_plus_one` exist.
    pub fn new(last_loaded_plus_one: u64) -> Self {
        Frontier {
            base: last_loaded_plus_one,
            limit: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            ring: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Records that the insert of `keynum` has ended. False if the key is so far ahead of the acknowledged prefix
    /// that it lies outside the window: it stays unacknowledged, and [`Frontier::refused`] counts it.
    pub fn acknowledge(&self, keynum: u64) -> bool {
        let Some(rank) = keynum.checked_sub(self.base) else { return true };
        let word = rank / WORD_KEYS;
        if word >= self.limit.load(SeqCst) / WORD_KEYS + WORDS {
            self.refused.fetch_add(1, SeqCst);
            return false;
        }
        let lap = lap_of(word);
        let bit = 1u64 << (rank % WORD_KEYS);
        let set = self.slot(word).fetch_update(SeqCst, SeqCst, |old| match age(old, lap) {
            Age::Older => Some(u64::from(lap) << 32 | bit),
            Age::Same => Some(old | bit),
            Age::Newer => None,
        });
        if set.is_ok() {
            self.advance();
        }
        true
    }

    /// Moves the limit over everything acknowledged without a gap.
    fn advance(&self) {
        loop {
            let limit = self.limit.load(SeqCst);
            let word = limit / WORD_KEYS;
            let value = self.slot(word).load(SeqCst);
            let run = match age(value, lap_of(word)) {
                Age::Older => return,
                // Another thread has moved the limit since it was read.
                Age::Newer => continue,
                Age::Same => u64::from(((value as u32) >> (limit % WORD_KEYS)).trailing_ones()),
            };
            if run == 0 {
                return;
            }
            // Losing this exchange means that another thread moved the limit: look again from there.
            let _ = self.limit.compare_exchange(limit, limit + run, SeqCst, SeqCst);
        }
    }

    /// The newest key number of the acknowledged prefix; `None` if nothing exists yet.
    #[inline]
    pub fn last(&self) -> Option<u64> {
        (self.base + self.limit.load(SeqCst)).checked_sub(1)
    }

    /// The next key number to insert, each handed out once. For mixes whose insert ranks are not known beforehand.
    #[inline]
    pub fn next_key(&self) -> u64 {
        self.base + self.issued.fetch_add(1, SeqCst)
    }

    /// Number of acknowledgements that lay outside the window and were lost. Above 0 the run is suspect: reads no longer
    /// reach the keys inserted since.
    pub fn refused(&self) -> u64 {
        self.refused.load(SeqCst)
    }

    #[inline]
    fn slot(&self, word: u64) -> &AtomicU64 {
        &self.ring[(word % WORDS) as usize]
    }
}

enum Age {
    Older,
    Same,
    Newer,
}

/// The lap a word is in, from 1: a word of 0 has never been used. Wraps after 2^52 keys.
fn lap_of(word: u64) -> u32 {
    (word / WORDS) as u32 + 1
}

fn age(value: u64, lap: u32) -> Age {
    match ((value >> 32) as u32).wrapping_sub(lap) as i32 {
        0 => Age::Same,
        1.. => Age::Newer,
        _ => Age::Older,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn prefix_grows_only_without_gaps() {
        let f = Frontier::new(1000);
        assert_eq!(f.last(), Some(999));
        assert!(f.acknowledge(5));
        assert!(f.acknowledge(1001));
        assert_eq!(f.last(), Some(999));
        assert!(f.acknowledge(1000));
        assert_eq!(f.last(), Some(1001));
        assert!(f.acknowledge(1000), "repeating is harmless");
        assert_eq!(f.last(), Some(1001));
        assert_eq!((f.next_key(), f.next_key()), (1000, 1001));
        assert_eq!(Frontier::new(0).last(), None);
    }

    #[test]
    fn window_is_bounded_and_reusable() {
        let f = Frontier::new(7);
        assert!(f.acknowledge(7 + INSERT_WINDOW - 1));
        assert!(!f.acknowledge(7 + INSERT_WINDOW));
        assert_eq!((f.last(), f.refused()), (Some(6), 1));
        for k in 7..7 + INSERT_WINDOW {
            assert!(f.acknowledge(k));
        }
        // Three more laps, with stale repeats thrown in.
        for k in INSERT_WINDOW..4 * INSERT_WINDOW {
            assert!(f.acknowledge(7 + k));
            assert!(f.acknowledge(7 + k / 2));
        }
        assert_eq!(f.last(), Some(6 + 4 * INSERT_WINDOW));
    }

    #[test]
    fn threads_leave_no_lag() {
        let threads = 4;
        let each = 2 * INSERT_WINDOW;
        let f = Frontier::new(10);
        let monotone = AtomicBool::new(true);
        std::thread::scope(|s| {
            for _ in 0..threads {
                s.spawn(|| {
                    let mut seen = 0;
                    for _ in 0..each / threads {
                        let key = f.next_key();
                        // A thread that is kept from running holds the window back.
                        while !f.acknowledge(key) {
                            std::thread::yield_now();
                        }
                        let last = f.last().unwrap();
                        monotone.fetch_and(last >= seen, SeqCst);
                        seen = last;
                    }
                });
            }
        });
        assert!(monotone.load(SeqCst));
        assert_eq!(f.last(), Some(9 + each));
    }

    #[test]
    fn interleaved_stripes_leave_no_lag() {
        for round in 0..200 {
            let f = Frontier::new(0);
            let n = 512 + round;
            std::thread::scope(|s| {
                for t in 0..2 {
                    let f = &f;
                    s.spawn(move || (t..n).step_by(2).for_each(|k| assert!(f.acknowledge(k))));
                }
            });
            assert_eq!(f.last(), Some(n - 1));
        }
    }
}
