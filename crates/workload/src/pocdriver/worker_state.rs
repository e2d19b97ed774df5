//! State of each worker: what it has done, has queued, and is sending.

use dyno_types::rng::Stream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A write that waits for its bulk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Queued {
    Insert(u64),
    /// Shape, sequence number, random value.
    Update(u16, u64, u32),
}

/// Commands of a bulk: shape, first, how many, collection.
pub(super) type BulkRun = (u16, u64, u32, u32);

#[derive(Debug)]
pub(super) struct PocWorker {
    pub(super) iteration: u64,
    /// The next sequence number.
    pub(super) sequence: u64,
    /// The first sequence number that has not been sent yet.
    pub(super) unsent: u64,
    pub(super) flush_due: bool,
    pub(super) queue: Vec<Queued>,
    /// Targets of the updates of the bulk under way.
    pub(super) updates: Vec<(u64, u32)>,
    pub(super) runs: Vec<BulkRun>,
    pub(super) stack: Vec<u64>,
    pub(super) stream: Stream,
    /// Iterations of the last arrival.
    pub(super) units: u64,
    /// When the last arrival began, and the documents that its bulk has inserted and updated.
    pub(super) begun: Instant,
    pub(super) written: [u64; 2],
}

/// All workers of this process.
#[derive(Debug)]
pub struct Workers(pub(super) Vec<Mutex<PocWorker>>);

impl Workers {
    pub(super) fn get(&self, user: u64) -> MutexGuard<'_, PocWorker> {
        self.0[user as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn update(&self, user: u64, place: u64) -> (u64, u32) {
        self.get(user).updates[place as usize]
    }
}
