//! What one engine run is asked to do, and the flag that ends it early.

use crate::arrivals::{Process, Profile};
use dyno_record::Scale;
use dyno_types::Refused;
use dyno_types::limits::{BACKLOG, BATCH, CONNECTIONS, PIPELINE, THREADS};
use dyno_types::rng::{Purpose, draw, unit};
use dyno_workload::Workload;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Who decides when the next operation starts.
#[derive(Clone, Debug, PartialEq)]
pub enum Pacing {
    /// Users: each starts its next operation when its last has ended and it has thought.
    Closed {
        /// Pause between completion and next start, nanoseconds.
        think_ns: u64,
    },
    /// A schedule that waits for nobody.
    Open {
        /// Rate over time.
        profile: Profile,
        /// Even or Poisson.
        process: Process,
    },
}

/// When the measured part ends, whichever comes first. At least one must be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Operations (arrivals) of the measured part.
    pub operations: Option<u64>,
    /// Length of the measured part, nanoseconds.
    pub duration_ns: Option<u64>,
}

/// What happens to arrivals that find no free connection (open loop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// How many may wait before the oldest is dropped.
    pub length: u64,
    /// How long one may wait before it is dropped, nanoseconds; `None` for ever.
    pub age_ns: Option<u64>,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { length: BACKLOG, age_ns: None }
    }
}

/// Failed inserts are tried again with the same bytes (YCSB's insertion retries).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Further attempts after the first.
    pub limit: u64,
    /// Mean pause before an attempt, nanoseconds; the pause itself is uniform from 0.8 to 1.2 of it.
    pub pause_ns: u64,
}

impl Retry {
    /// The pause before attempt number `attempt` of the record with this seed.
    pub(crate) fn pause_ns(&self, seed: u64, attempt: u64) -> u64 {
        let spread = 0.8 + 0.4 * unit(draw(seed, attempt, Purpose::Jitter));
        (self.pause_ns as f64 * spread) as u64
    }
}

/// One engine run.
#[derive(Clone)]
pub struct Job {
    /// Source of operations.
    pub workload: Arc<dyn Workload>,
    /// Closed or open loop.
    pub pacing: Pacing,
    /// When to stop.
    pub end: End,
    /// Length of the unmeasured beginning, nanoseconds.
    pub warmup_ns: u64,
    /// Users (closed loop) or connections (open loop).
    pub users: usize,
    /// Operations under way on one connection.
    pub pipeline: usize,
    /// Inserts that go out as one batch, where the workload only inserts and the database has batches.
    pub batch: usize,
    /// Load threads; each is pinned to its core where one is given.
    pub cores: Vec<Option<usize>>,
    /// Time-out of one operation, nanoseconds; `None` waits for ever.
    pub timeout_ns: Option<u64>,
    /// Bounds of the queue.
    pub queue: Queue,
    /// Seed of arrivals.
    pub seed: u64,
    /// This process' share of open-loop arrivals: (number, of how many).
    pub stripe: (u64, u64),
    /// Unit of the histograms.
    pub scale: Scale,
    /// Keep every sample (for reports that list raw data).
    pub raw_samples: bool,
    /// Spin instead of sleeping.
    pub spin: bool,
    /// How long replies are awaited after the last arrival, nanoseconds.
    pub drain_ns: u64,
    /// What happens to failed inserts.
    pub retry: Option<Retry>,
}

impl Job {
    /// Refuses what cannot be run.
    pub fn check(&self) -> Result<(), Refused> {
        let refuse = |text: String| Err(Refused(text));
        if self.end.operations.is_none() && self.end.duration_ns.is_none() {
            return refuse("a run needs an end: a number of operations or a duration".into());
        }
        if self.users == 0 || self.users > CONNECTIONS {
            return refuse(format!("{} users or connections: expected 1 to {CONNECTIONS}", self.users));
        }
        if self.pipeline == 0 || self.pipeline > PIPELINE {
            return refuse(format!("pipeline {}: expected 1 to {PIPELINE}", self.pipeline));
        }
        if self.batch == 0 || self.batch > BATCH {
            return refuse(format!("batch {}: expected 1 to {BATCH}", self.batch));
        }
        if self.cores.is_empty() || self.cores.len() > THREADS {
            return refuse(format!("{} load threads: expected 1 to {THREADS}", self.cores.len()));
        }
        Ok(())
    }

    /// The users of load thread `thread`: they are dealt out as evenly as can be.
    pub fn users_of(&self, thread: usize) -> usize {
        let threads = self.cores.len();
        self.users / threads + usize::from(thread < self.users % threads)
    }
}

/// Ends a run early, from any thread or signal handler.
#[derive(Debug, Default)]
pub struct Control(AtomicU8);

impl Control {
    /// Start nothing new; wait for replies under way.
    pub fn stop(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// Do not even wait for replies.
    pub fn abort(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    /// Whether nothing new may start.
    pub fn stopping(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 1
    }

    /// Whether replies are not waited for.
    pub fn aborting(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= 2
    }
}
