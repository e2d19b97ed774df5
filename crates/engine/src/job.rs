//! Job of one engine run, and the flag that ends it early.

use crate::arrivals::{Process, Profile};
use crate::net::monotonic_ns;
use dyno_record::Scale;
use dyno_types::limits::{BACKLOG, BATCH, CONNECTIONS, DRAIN_NS, PIPELINE, THREADS};
use dyno_types::rng::{Purpose, draw_at, unit_interval};
use dyno_types::{Outcome, RefusalCode, Refused};
use dyno_workload::{Frontier, Workload};
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Length of the intervals that are recorded, unless a job says otherwise, nanoseconds: a second.
pub const INTERVAL_NS: u64 = 1_000_000_000;

/// The shortest interval that can be recorded, nanoseconds.
const SHORTEST_INTERVAL_NS: u64 = 10_000_000;

/// Rule that decides when the next operation starts.
#[derive(Clone, Debug, PartialEq)]
pub enum Pacing {
    /// Users: each starts its next operation when its last has ended and it has thought.
    Closed {
        /// Pause between completion and next start, nanoseconds.
        think_ns: u64,
    },
    /// A schedule that does not wait for answers.
    Open {
        /// Rate over time.
        profile: Profile,
        /// Even or Poisson.
        process: Process,
    },
    /// Operations that have users and times of their own: [`Workload::next_recorded`].
    Recorded,
}

/// When the measured part ends, whichever comes first. At least one must be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Operations (arrivals) of the measured part, of all stripes together. Where indexes belong to users, this is instead the
    /// index that ends the part (exclusive).
    pub operations: Option<u64>,
    /// Length of the measured part, nanoseconds.
    pub duration_ns: Option<u64>,
}

/// Queue of arrivals that find no free connection (open loop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Arrivals that may wait before the oldest is dropped.
    pub length: u64,
    /// Time that one may wait before it is dropped, nanoseconds; `None` for ever.
    pub age_ns: Option<u64>,
    /// True if those that still wait when the time is over are sent after it. YCSB sends nothing more: they end as aborted.
    pub outlasts_end: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { length: BACKLOG, age_ns: None, outlasts_end: true }
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
        let spread = 0.8 + 0.4 * unit_interval(draw_at(seed, attempt, Purpose::Jitter));
        (self.pause_ns as f64 * spread) as u64
    }
}

/// Clock that says when a reply arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's, where the connection has it: when the reply's last byte came. What the client was late is no part of it.
    Kernel,
    /// The network card's, where it stamps what arrives; else the kernel's.
    Hardware,
    /// The client's: when it got to the reply.
    Client,
}

/// Users that begin later: of each so many users the first ones begin at once, and at each step some more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateUsers {
    /// Users that follow each other's steps.
    pub of: usize,
    /// Of these, the ones that begin at once.
    pub first: usize,
    /// Those that begin at a step.
    pub step: usize,
    /// Length of a step, nanoseconds.
    pub every_ns: u64,
}

impl LateUsers {
    /// When user number `user` begins, from the epoch on.
    pub fn begins_ns(&self, user: u64) -> u64 {
        let place = user % self.of as u64;
        match place.checked_sub(self.first as u64) {
            Some(behind) => (behind / self.step as u64 + 1).saturating_mul(self.every_ns),
            None => 0,
        }
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
    /// Closed loop: users of the warm-up, at most `users`; the others begin at its end. `None`: all.
    pub warm_users: Option<usize>,
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
    /// This worker's share of the operations: (index, total). Open loop: every n-th arrival. Closed loop: every
    /// n-th block of 16 indexes.
    pub stripe: (u64, u64),
    /// State that the workers of one process share.
    pub team: Option<Arc<Team>>,
    /// Unit of the histograms.
    pub scale: Scale,
    /// Length of the intervals that are recorded, nanoseconds: 10 ms to a second, a whole number of them in a second.
    pub interval_ns: u64,
    /// Keep every sample (for reports that list raw data).
    pub raw_samples: bool,
    /// Clock that ends service times.
    pub stamps: Clock,
    /// Spin instead of sleeping.
    pub spin: bool,
    /// Time that replies are awaited after the last arrival, nanoseconds.
    pub drain_ns: u64,
    /// Retries of failed inserts.
    pub retry: Option<Retry>,
    /// Requests of a user after which its connection is closed and opened again; `None`: it stays. Those are no lost connections.
    pub reconnect_every: Option<u64>,
    /// Users that begin later; `None`: all begin at once. Only in a closed loop without a warm-up.
    pub late: Option<LateUsers>,
    /// Of a job beside the others: the target that it is applied to in place of theirs, of a type that its caller knows. It is in
    /// none of their figures.
    pub elsewhere: Option<Arc<dyn Any + Send + Sync>>,
}

impl Job {
    /// A job in a closed loop: one operation at a time for each user, without pauses, warm-up, time-outs or repeated inserts, on
    /// one load thread that is not pinned; recorded each second, in nanoseconds, by the client's clock.
    pub fn closed_loop(workload: Arc<dyn Workload>, users: usize, end: End) -> Self {
        Job {
            workload,
            pacing: Pacing::Closed { think_ns: 0 },
            end,
            warmup_ns: 0,
            users,
            warm_users: None,
            pipeline: 1,
            batch: 1,
            cores: vec![None],
            timeout_ns: None,
            queue: Queue::default(),
            seed: 0,
            stripe: (0, 1),
            team: None,
            scale: Scale::Ns64,
            interval_ns: INTERVAL_NS,
            raw_samples: false,
            stamps: Clock::Client,
            spin: false,
            drain_ns: DRAIN_NS,
            retry: None,
            reconnect_every: None,
            late: None,
            elsewhere: None,
        }
    }

    /// Refuses what cannot be run.
    pub fn check(&self) -> Result<(), Refused> {
        let refuse = |place: &str, text: &str| Err(Refused::new(RefusalCode::BadValue, place, text));
        let ends = self.end.operations.is_some() || self.end.duration_ns.is_some();
        // A recording has its own end.
        if !ends && self.pacing != Pacing::Recorded {
            let text = "a run needs an end: a number of operations or a duration";
            return Err(Refused::new(RefusalCode::Missing, "operations", text));
        }
        if let (Pacing::Open { profile, .. }, Some(operations), None) =
            (&self.pacing, self.end.operations, self.end.duration_ns)
            && let Some(total) = profile.total()
        {
            let text = format!(
                "the rate ends at 0 after {total:.0} operations: a run of {operations} might never end; expected a duration too"
            );
            return Err(Refused::new(RefusalCode::Conflict, "rate", text));
        }
        if self.users == 0 || self.users > CONNECTIONS {
            let text = format!("{} users or connections: expected 1 to {CONNECTIONS}", self.users);
            return Err(refuse_number(self.users, "users", text));
        }
        // A worker's share may be none.
        if self.warm_users.is_some_and(|warm| warm > self.users) {
            let text =
                format!("users of the warm-up: expected at most {}, those that are measured", self.users);
            return refuse("warm_users", &text);
        }
        if self.pipeline == 0 || self.pipeline > PIPELINE {
            let text = format!("pipeline {}: expected 1 to {PIPELINE}", self.pipeline);
            return Err(refuse_number(self.pipeline, "pipeline", text));
        }
        if self.batch == 0 || self.batch > BATCH {
            let text = format!("batch {}: expected 1 to {BATCH}", self.batch);
            return Err(refuse_number(self.batch, "batch", text));
        }
        if !(SHORTEST_INTERVAL_NS..=INTERVAL_NS).contains(&self.interval_ns)
            || !INTERVAL_NS.is_multiple_of(self.interval_ns)
        {
            let text = format!(
                "interval {} ms: expected 10ms to 1s, a whole number of them in a second",
                self.interval_ns as f64 / 1e6
            );
            return refuse("interval", &text);
        }
        if let Some(late) = self.late {
            if late.step == 0 || late.of == 0 || late.every_ns == 0 {
                return refuse(
                    "users",
                    "users that begin later: expected steps of one user and one nanosecond at least",
                );
            }
            if self.warmup_ns > 0 || !matches!(self.pacing, Pacing::Closed { .. }) {
                let text = "users that begin later: only in a closed loop without a warm-up";
                return Err(Refused::new(RefusalCode::Conflict, "users", text));
            }
        }
        if self.reconnect_every == Some(0) {
            return refuse("users", "connections made anew after 0 requests: expected 1 or more");
        }
        if self.cores.is_empty() || self.cores.len() > THREADS {
            let text = format!("{} load threads: expected 1 to {THREADS}", self.cores.len());
            return Err(refuse_number(self.cores.len(), "threads", text));
        }
        Ok(())
    }

    /// The job divided among `workers`, each with its share of users, load threads and operations; together they do
    /// exactly what the whole does. Not for workloads whose indexes belong to users: their front ends know how.
    pub fn divide_among(&self, workers: usize) -> Result<Vec<Job>, Refused> {
        if workers == 0 || workers > self.users {
            return Err(Refused::new(
                RefusalCode::BadValue,
                "workers",
                format!("{workers} workers: expected 1 to {}, the number of users", self.users),
            ));
        }
        if workers > 1 && self.workload.is_per_user() {
            return Err(Refused::new(
                RefusalCode::Conflict,
                "workers",
                format!("{workers} workers: the operations of this workload belong to users"),
            ));
        }
        if workers == 1 {
            return Ok(vec![self.clone()]);
        }
        let team = Team::new(workers, self.workload.frontier());
        let part = |number: usize| Job {
            users: share_of(self.users, number, workers),
            warm_users: self.warm_users.map(|warm| share_of(warm, number, workers)),
            stripe: (self.stripe.0 * workers as u64 + number as u64, self.stripe.1 * workers as u64),
            cores: every_nth(&self.cores, number, workers),
            team: Some(team.clone()),
            queue: Queue { length: (self.queue.length / workers as u64).max(1), ..self.queue },
            ..self.clone()
        };
        let parts: Vec<Job> = (0..workers).map(part).collect();
        debug_assert_eq!(parts.iter().map(|part| part.users).sum::<usize>(), self.users);
        Ok(parts)
    }

    /// Which of this worker's own arrivals number `index` of all workers' is, where indexes belong to users and `threads`
    /// schedules share the worker's part: users take turns among what the worker has itself.
    pub(crate) fn own_index(&self, index: u64, threads: u64) -> u64 {
        let (_, workers) = self.stripe;
        match self.pacing {
            Pacing::Open { .. } if workers > 1 && self.workload.is_per_user() => {
                index / (workers * threads) * threads + index % threads
            }
            _ => index,
        }
    }

    /// The users of load thread `thread`: they are dealt out as evenly as can be.
    pub fn users_of(&self, thread: usize) -> usize {
        share_of(self.users, thread, self.cores.len())
    }

    /// Number of them that are there from the beginning, the first ones: all without a warm-up of its own.
    pub fn warm_users_of(&self, thread: usize) -> usize {
        share_of(self.warm_users.unwrap_or(self.users), thread, self.cores.len())
    }
}

/// Refuses a number that is 0, or above the most that dyno can do.
fn refuse_number(found: usize, place: &str, text: String) -> Refused {
    Refused::new(if found == 0 { RefusalCode::BadValue } else { RefusalCode::Limit }, place, text)
}

/// Number of items that go to `index` of `total` when `all` are dealt out one by one.
pub fn share_of(all: usize, index: usize, total: usize) -> usize {
    all / total + usize::from(index < all % total)
}

/// Every n-th item of `all` from `index` on, for `total` workers: at least one, which workers share if there are too few.
pub fn every_nth<T: Clone>(all: &[T], index: usize, total: usize) -> Vec<T> {
    debug_assert!(!all.is_empty(), "there is nothing to share");
    if all.len() >= total {
        all.iter().skip(index).step_by(total).cloned().collect()
    } else {
        vec![all[index % all.len()].clone()]
    }
}

/// State that several workers of one process share: they begin together, and the inserts of each are known to all.
#[derive(Debug)]
pub struct Team {
    pub(crate) frontier: Arc<Frontier>,
    workers: usize,
    /// Number of workers that have connected, and the latest of the beginnings they propose.
    met: Mutex<(usize, u64)>,
    all_met: Condvar,
    gate: Option<Arc<Gate>>,
}

/// Holds a run back between its connecting and its beginning, until the caller says when it begins.
#[derive(Debug, Default)]
pub struct Gate {
    /// Flag that all have connected, and the beginning on the monotonic clock, nanoseconds.
    state: Mutex<(bool, Option<u64>)>,
    changed: Condvar,
}

impl Gate {
    /// Lets the run begin at `begin_ns` of the monotonic clock.
    pub fn open(&self, begin_ns: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = Some(begin_ns);
        self.changed.notify_all();
    }

    /// Waits until the run has connected; false if it has not after `patience`.
    pub fn await_connected(&self, patience: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(state, patience, |state| !state.0);
        waited.unwrap_or_else(PoisonError::into_inner).0.0
    }

    /// Waits for the beginning, unless the run is given up.
    fn pass(&self, proposed_ns: u64, control: &Control) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = true;
        self.changed.notify_all();
        loop {
            match state.1 {
                Some(begin_ns) => return begin_ns,
                None if control.is_stopping() => return proposed_ns,
                None => {
                    let waited = self.changed.wait_timeout(state, Duration::from_millis(20));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

impl Team {
    /// A team of `workers` that begins behind `frontier`.
    pub fn new(workers: usize, frontier: Frontier) -> Arc<Self> {
        Self::with_optional_gate(workers, frontier, None)
    }

    /// The same, held back by a gate.
    pub fn with_gate(workers: usize, frontier: Frontier, gate: Arc<Gate>) -> Arc<Self> {
        Self::with_optional_gate(workers, frontier, Some(gate))
    }

    fn with_optional_gate(workers: usize, frontier: Frontier, gate: Option<Arc<Gate>>) -> Arc<Self> {
        let (met, all_met) = (Mutex::new((0, 0)), Condvar::new());
        Arc::new(Team { frontier: Arc::new(frontier), workers, met, all_met, gate })
    }

    /// Waits for the others, unless the run is given up; returns when all begin.
    pub(crate) fn meet(&self, proposed_ns: u64, control: &Control) -> u64 {
        let mut met = self.met.lock().unwrap_or_else(PoisonError::into_inner);
        *met = (met.0 + 1, met.1.max(proposed_ns));
        self.all_met.notify_all();
        while met.0 < self.workers && !control.is_stopping() {
            let waited = self.all_met.wait_timeout(met, Duration::from_millis(20));
            met = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let begin_ns = met.1;
        drop(met);
        self.gate.as_ref().map_or(begin_ns, |gate| gate.pass(begin_ns, control))
    }
}

/// Called when a run begins.
type OnBegin = Box<dyn Fn(SystemTime) + Send + Sync>;

/// Ends a run early, from any thread, and tells when one begins.
#[derive(Default)]
pub struct Control {
    level: AtomicU8,
    late_ns: AtomicU64,
    on_begin: Mutex<Option<OnBegin>>,
    errors: Mutex<Vec<(Outcome, String)>>,
    above: Option<Arc<Control>>,
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Control {
    /// Ends what it controls when `above` ends; ending it leaves `above` alone.
    pub fn below_control(above: &Arc<Control>) -> Self {
        Control { above: Some(above.clone()), ..Control::default() }
    }

    /// A load thread has begun so long after the epoch.
    pub(crate) fn begun(&self, late_ns: u64) {
        self.late_ns.fetch_max(late_ns, Ordering::Relaxed);
    }

    /// Returns how long after the epoch the last load thread of what this controls began, nanoseconds.
    pub fn begun_late_ns(&self) -> u64 {
        self.late_ns.load(Ordering::Relaxed)
    }

    /// Keeps the first text of a class of errors, for a view of a run that goes on.
    pub(crate) fn note_error(&self, outcome: Outcome, text: &str) {
        let mut known = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        if known.iter().all(|(other, _)| *other != outcome) {
            known.push((outcome, text.to_owned()));
        }
    }

    /// The first text of each class of errors so far. Errors of workers in other processes are known when a phase has ended.
    pub fn errors_so_far(&self) -> Vec<(Outcome, String)> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has `tell` called with the wall clock's time of the epoch, a little before it, each time a run that this controls
    /// begins; workers of one run each call it.
    pub fn on_begin(&self, tell: impl Fn(SystemTime) + Send + Sync + 'static) {
        *self.on_begin.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(tell));
    }

    /// A run begins at `epoch_ns` of the monotonic clock; returns the wall clock's time of it.
    pub(crate) fn begins(&self, epoch_ns: u64) -> SystemTime {
        let (wall, now) = (SystemTime::now(), monotonic_ns());
        let epoch = match epoch_ns.checked_sub(now) {
            Some(ahead) => wall + Duration::from_nanos(ahead),
            None => wall - Duration::from_nanos(now - epoch_ns),
        };
        self.announce_begin(epoch);
        epoch
    }

    /// Tells the caller that waits for it that a run begins at `epoch`.
    pub fn announce_begin(&self, epoch: SystemTime) {
        if let Some(tell) = self.on_begin.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            tell(epoch);
        }
    }

    /// Start nothing new; wait for replies under way.
    pub fn stop(&self) {
        self.level.fetch_max(1, Ordering::Relaxed);
    }

    /// Do not even wait for replies.
    pub fn abort_run(&self) {
        self.level.fetch_max(2, Ordering::Relaxed);
    }

    /// Returns whether nothing new may start.
    pub fn is_stopping(&self) -> bool {
        self.level() >= 1
    }

    /// Returns whether replies are not waited for.
    pub fn is_aborting(&self) -> bool {
        self.level() >= 2
    }

    fn level(&self) -> u8 {
        let above = self.above.as_ref().map_or(0, |above| above.level());
        self.level.load(Ordering::Relaxed).max(above)
    }
}
