//! Plan of the records that a proof writes.

use crate::copies::records::{RecordDocuments, Records};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

/// Durability that an acknowledgement must stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// In the memory of that many machines.
    Memory,
    /// In the append-only files or journals of that many machines (Redis: WAITAOF, from 7.2 on; MongoDB: `j: true`).
    Disk,
}

/// Records to be written.
#[derive(Clone, Debug)]
pub struct IngestPlan {
    /// Connections, each with a thread.
    pub workers: u32,
    /// Records that go out together.
    pub batch: u64,
    /// Bytes of a record.
    pub record_bytes: usize,
    /// Secondary indexes.
    pub indexes: usize,
    /// Copies that an acknowledgement stands for, the primary's own among them.
    pub copies: usize,
    /// Durability that makes something a copy.
    pub durability: Durability,
    /// Time that a batch waits for its copies.
    pub patience: Duration,
    /// Time that a primary is looked for before it is given up.
    pub wait: Duration,
    /// For how long records are written.
    pub duration: Option<Duration>,
    /// Number of records to write.
    pub records: Option<u64>,
    /// Records a second, at most.
    pub rate: Option<f64>,
    /// Seed of the contents.
    pub seed: u64,
    /// Makes names of this run's own.
    pub run: String,
    /// Documents instead of names and values, where the database keeps documents.
    pub documents: Option<Arc<dyn RecordDocuments>>,
}

impl IngestPlan {
    /// Time for an election, and for a server that starts anew.
    pub const ELECTION: Duration = Duration::from_secs(90);
    /// The same where there is no primary to elect.
    pub const ALONE: Duration = Duration::from_secs(10);

    /// Recipe by which its records are made.
    pub fn record_recipe(&self) -> Records {
        let (run, bytes, indexes, seed) = (self.run.clone(), self.record_bytes, self.indexes, self.seed);
        Records { run, bytes, indexes, seed, documents: self.documents.clone() }
    }

    /// Records of a worker; very many if their number is not fixed.
    pub fn worker_share(&self, worker: u32) -> u64 {
        let workers = u64::from(self.workers);
        // Below what an embedded store's keys can hold.
        let many = 1 << 39;
        self.records.map_or(many, |all| all / workers + u64::from(u64::from(worker) < all % workers))
    }

    /// From a worker's batch to its next, as the rate has it: all workers may wait for that long at once.
    pub fn batch_gap(&self) -> Duration {
        let seconds = self.rate.map_or(0.0, |rate| self.batch as f64 * f64::from(self.workers) / rate);
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}
