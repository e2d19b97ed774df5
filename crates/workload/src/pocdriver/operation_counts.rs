//! Counts of what has been done, and of what of it was slow.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of what the server has acknowledged: inserts, key queries, updates, range queries, the order of the original's reports.
#[derive(Debug)]
pub struct AcknowledgedCounts {
    all: [AtomicU64; 4],
    /// Thresholds, and operations that took longer.
    slow: Vec<(Duration, [AtomicU64; 4])>,
}

/// Places in the counts.
pub(super) const INSERTS: usize = 0;
pub(super) const KEY_QUERIES: usize = 1;
pub(super) const UPDATES: usize = 2;
pub(super) const RANGE_QUERIES: usize = 3;

impl AcknowledgedCounts {
    pub(super) fn new(thresholds_ms: &[u64]) -> Self {
        let slow = thresholds_ms.iter().map(|ms| (Duration::from_millis(*ms), Default::default())).collect();
        AcknowledgedCounts { all: Default::default(), slow }
    }

    /// Inserts, key queries, updates (arrays included), range queries.
    pub fn count_all(&self) -> [u64; 4] {
        self.all.each_ref().map(|n| n.load(Ordering::Relaxed))
    }

    /// For each threshold how many of them took longer. Every write of a bulk takes as long as the bulk.
    pub fn count_slow(&self) -> Vec<[u64; 4]> {
        let numbers = |counts: &[AtomicU64; 4]| counts.each_ref().map(|n| n.load(Ordering::Relaxed));
        self.slow.iter().map(|(_, counts)| numbers(counts)).collect()
    }

    pub(super) fn done(&self, operation: usize, count: u64) {
        self.all[operation].fetch_add(count, Ordering::Relaxed);
    }

    /// Operations whose command, or whose whole bulk, took so long.
    pub(super) fn took(&self, operation: usize, count: u64, took: Duration) {
        for (_, slow) in self.slow.iter().filter(|(threshold, _)| took > *threshold) {
            slow[operation].fetch_add(count, Ordering::Relaxed);
        }
    }
}
