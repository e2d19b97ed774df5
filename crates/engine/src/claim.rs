//! Indexes of operations, handed out to whoever is free, so that no thread idles while another has work left.

use std::sync::atomic::{AtomicU64, Ordering};

/// Indexes of the warm-up have this bit set: they are draws of their own and use up none of the measured ones.
pub const WARMUP: u64 = 1 << 63;

/// The counters that all load threads of a closed-loop run share.
#[derive(Debug)]
pub struct Claims {
    next: AtomicU64,
    warm: AtomicU64,
    limit: u64,
    threads: u64,
}

impl Claims {
    /// Up to `limit` measured operations for `threads` load threads.
    pub fn new(limit: Option<u64>, threads: usize) -> Self {
        Claims {
            next: AtomicU64::new(0),
            warm: AtomicU64::new(0),
            limit: limit.unwrap_or(WARMUP - 1),
            threads: threads as u64,
        }
    }

    fn take(&self, block: &mut Block) -> bool {
        let seen = self.next.load(Ordering::Relaxed);
        if seen >= self.limit {
            return false;
        }
        // Large blocks while much is left, single ones at the tail.
        let size = ((self.limit - seen) / (self.threads * 64)).clamp(1, 16);
        let from = self.next.fetch_add(size, Ordering::Relaxed);
        *block = Block { next: from, end: (from + size).min(self.limit) };
        block.next < block.end
    }
}

/// Indexes a thread has claimed and not yet used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Block {
    next: u64,
    end: u64,
}

impl Block {
    /// The next measured index; `None` when all are taken.
    #[inline]
    pub fn measured(&mut self, claims: &Claims) -> Option<u64> {
        if self.next >= self.end && !claims.take(self) {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// The next index of the warm-up.
    #[inline]
    pub fn warm(&mut self, claims: &Claims) -> u64 {
        WARMUP | claims.warm.fetch_add(1, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_is_handed_out_once() {
        let claims = Claims::new(Some(10_001), 4);
        let mut seen: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut block = Block::default();
                        std::iter::from_fn(|| block.measured(&claims)).collect::<Vec<_>>()
                    })
                })
                .collect();
            threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
        });
        seen.sort_unstable();
        assert_eq!(seen, (0..10_001).collect::<Vec<_>>());
    }
}
