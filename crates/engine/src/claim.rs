//! Indexes of operations, handed out to the next free thread, so that no thread idles while another has work left.

use std::sync::atomic::{AtomicU64, Ordering};

/// Indexes of the warm-up have this bit set: they are draws of their own and use up none of the measured ones.
pub const WARMUP: u64 = 1 << 63;

/// Indexes in a row that belong to one worker.
const BLOCK: u64 = 16;

/// The counters that all load threads of a closed-loop run share.
#[derive(Debug)]
pub struct Claims {
    next: AtomicU64,
    warm: AtomicU64,
    limit: u64,
    threads: u64,
    /// Number of this worker, and how many there are.
    stripe: (u64, u64),
}

impl Claims {
    /// Worker `stripe.0` of `stripe.1` with `threads` load threads: of `limit` measured operations it gets those in every
    /// n-th block.
    pub fn new(limit: Option<u64>, threads: usize, stripe: (u64, u64)) -> Self {
        let (number, workers) = stripe;
        debug_assert!(number < workers);
        debug_assert!(threads > 0);
        let own = |all: u64| {
            let (blocks, rest) = (all / BLOCK, all % BLOCK);
            let whole = blocks / workers + u64::from(number < blocks % workers);
            whole * BLOCK + if blocks % workers == number { rest } else { 0 }
        };
        Claims {
            next: AtomicU64::new(0),
            warm: AtomicU64::new(0),
            limit: limit.map_or((WARMUP - 1) / workers, own),
            threads: threads as u64,
            stripe,
        }
    }

    /// The index of this worker's operation number `own`.
    #[inline]
    fn global(&self, own: u64) -> u64 {
        match self.stripe {
            (_, 1) => own,
            (number, workers) => (own / BLOCK * workers + number) * BLOCK + own % BLOCK,
        }
    }

    fn take(&self, block: &mut ClaimedBlock) -> bool {
        debug_assert!(block.next >= block.end, "indexes that were claimed would never be used");
        let seen = self.next.load(Ordering::Relaxed);
        if seen >= self.limit {
            return false;
        }
        // Large blocks while much is left, single ones at the tail.
        let size = ((self.limit - seen) / (self.threads * 64)).clamp(1, 16);
        let from = self.next.fetch_add(size, Ordering::Relaxed);
        *block = ClaimedBlock { next: from, end: (from + size).min(self.limit) };
        debug_assert!(block.end <= self.limit, "more would be done than was asked for");
        block.next < block.end
    }
}

/// Indexes a thread has claimed and not yet used.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimedBlock {
    next: u64,
    end: u64,
}

impl ClaimedBlock {
    /// The next measured index; `None` when all are taken.
    #[inline]
    pub fn claim_measured(&mut self, claims: &Claims) -> Option<u64> {
        if self.next >= self.end && !claims.take(self) {
            return None;
        }
        debug_assert!(self.next < self.end);
        self.next += 1;
        let index = claims.global(self.next - 1);
        debug_assert!(index < WARMUP, "it would be an index of the warm-up");
        Some(index)
    }

    /// Returns whether no measured index is left, here or for others.
    #[inline]
    pub fn is_last(&self, claims: &Claims) -> bool {
        self.next >= self.end && claims.next.load(Ordering::Relaxed) >= claims.limit
    }

    /// The next index of the warm-up.
    #[inline]
    pub fn claim_warm(&mut self, claims: &Claims) -> u64 {
        let index = claims.global(claims.warm.fetch_add(1, Ordering::Relaxed));
        debug_assert!(index < WARMUP, "the mark of the warm-up would change it");
        WARMUP | index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_handed_out_once() {
        let claims = Claims::new(Some(10_001), 4, (0, 1));
        let mut seen: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut block = ClaimedBlock::default();
                        std::iter::from_fn(|| block.claim_measured(&claims)).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        seen.sort_unstable();
        assert_eq!(seen, (0..10_001).collect::<Vec<_>>());
    }

    #[test]
    fn workers_share_the_indexes() {
        for (limit, workers) in [(10_001, 3), (5, 4), (64, 2), (47, 3), (48, 3), (49, 3)] {
            let mut seen = Vec::new();
            for number in 0..workers {
                let claims = Claims::new(Some(limit), 2, (number, workers));
                let mut block = ClaimedBlock::default();
                let own: Vec<u64> = std::iter::from_fn(|| block.claim_measured(&claims)).collect();
                assert!(own.len() as u64 <= limit / workers + 2 * BLOCK, "{limit} {workers}");
                seen.extend(own);
                let warm = block.claim_warm(&claims);
                assert!(warm >= WARMUP);
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..limit).collect::<Vec<_>>(), "{workers} workers");
        }
    }
}
