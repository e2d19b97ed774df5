//! The load thread of networked databases: one turn is a receive pass, a dispatch pass, a flush and a sleep.
//!
//! Terms: a *virtual user* has a set of connections, one to each node it has needed (open loop: it is a connection); an
//! *op* is an operation in flight; a connection keeps its awaited replies in order, each naming its op and the op's
//! generation, so that a reply to an op that has ended meanwhile is recognised and discarded.

mod again;
mod alarm;
mod batch;
mod connection;
mod dispatch;
mod drain;
mod quota;
mod receive;
mod timers;

use crate::arrivals::Schedule;
use crate::claim::{Block, Claims};
use crate::job::{Control, Job, Pacing};
use crate::net::{Net, Ready};
use alarm::Alarm;
use connection::Connection;
use drain::Drain;
use dyno_record::Recorder;
use dyno_types::{Driver, Outcome, Request};
use dyno_workload::{Frontier, Hooks};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

/// Bytes received at once; larger replies take several turns of the receive loop.
const RECEIVE_BYTES: usize = 256 << 10;
/// Longest sleep, so that a request to stop is seen.
const NAP_NS: u64 = 50_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// State that all load threads of a run share.
pub struct Shared {
    /// The run.
    pub job: Job,
    /// Indexes of closed-loop operations.
    pub claims: Claims,
    /// Acknowledged inserts.
    pub frontier: Arc<Frontier>,
    /// The flag that ends the run early.
    pub control: Arc<Control>,
    /// Metrics that the engine records by itself, where the workload has them.
    pub own: OwnMetrics,
}

/// Numbers of the metrics that are not requests of their own.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnMetrics {
    /// Verification of what was read.
    pub verify: Option<u16>,
    /// A scan's time divided by its records.
    pub scan_per_record: Option<u16>,
    /// Closing a user's connections.
    pub cleanup: Option<u16>,
}

impl OwnMetrics {
    /// Finds them by YCSB's names.
    pub fn find(metrics: &[String]) -> Self {
        let at = |name: &str| metrics.iter().position(|m| m == name).map(|i| i as u16);
        OwnMetrics {
            verify: at("VERIFY"),
            scan_per_record: at("SCAN-LATENCY-PER-RECORD"),
            cleanup: at("CLEANUP"),
        }
    }
}

/// A user with its connections by node; in the open loop a connection.
#[derive(Debug, Default)]
struct VirtualUser {
    connections: Vec<Option<u32>>,
    /// Pause after a lost or refused connection, nanoseconds; doubles until an operation succeeds.
    penalty_ns: u64,
    /// Operations begun by this user (for workloads whose indexes belong to users).
    position: u64,
    /// Operations of this user that are measured.
    measured: u64,
    /// The user does nothing any more.
    gone: bool,
}

/// An operation in flight. What every operation touches comes first, so that it fills few cache lines: with many under way
/// they do not fit the first cache.
#[repr(C)]
struct Op<X> {
    generation: u32,
    user: u32,
    connection: u32,
    active: bool,
    /// A question of the driver's own: not recorded.
    internal: bool,
    /// Begun in the warm-up.
    warm: bool,
    /// Waited for a free connection: says nothing about the schedule lag.
    waited: bool,
    /// The end frees its user; not so for passengers of a batch.
    holds_place: bool,
    hops: u8,
    first_outcome: Outcome,
    begun_ns: u64,
    intended_ns: u64,
    sent_ns: u64,
    first_intended_ns: u64,
    first_sent_ns: u64,
    /// Open loop: when a client that is never late would begin the request under way.
    ideal_ns: u64,
    request: Request,
    /// The other operations of the batch that this one leads.
    passengers: Vec<u32>,
    /// Attempts of an insert that have failed.
    attempts: u64,
    /// Time that the last reply took to decode, nanoseconds, where values are verified meanwhile.
    verify_ns: u64,
    exchange: X,
    /// The first request of a script, where the workload has scripts or wants to see it again.
    first: Request,
}

/// A load thread.
pub struct LoadThread<D: Driver, N: Net> {
    shared: Arc<Shared>,
    thread: usize,
    hooks: Hooks,
    per_user: bool,
    driver: D,
    net: N,
    recorder: Recorder,
    users: Vec<VirtualUser>,
    connections: Vec<Connection<N::Socket>>,
    ops: Vec<Op<D::Exchange>>,
    free_ops: Vec<u32>,
    in_flight: usize,
    /// Users (closed loop: with the time they became ready) or free places on connections (open loop).
    idle: VecDeque<(u32, u64)>,
    /// Open loop: when each of the idle places would be free if the client were never late.
    free_ns: BinaryHeap<Reverse<u64>>,
    /// Users that think or are being kept from a dead server: (until, user).
    resting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Failed inserts to be tried again: (when, op).
    retries: BinaryHeap<Reverse<(u64, u32)>>,
    /// Arrivals to dispatch, and the same arrivals run ahead to count those that are due.
    schedule: Option<Schedule>,
    due: Option<Schedule>,
    backlog: u64,
    starved_ns: u64,
    block: Block,
    /// First open-loop index beyond the end.
    index_end: u64,
    alarm: Alarm,
    /// Operations that share one exchange.
    batch: usize,
    batch_requests: Vec<Request>,
    dirty: Vec<u32>,
    ready: Vec<Ready>,
    /// Connections that are read on in the next pass.
    unread: Vec<Ready>,
    buffer: Vec<u8>,
    spare: Vec<Vec<u8>>,
    retrying: Vec<u32>,
    /// Commands that wait for a node to be sent to once more.
    parked: Vec<again::Parked>,
    unsettled: usize,
    next_retry_ns: u64,
    next_sweep_ns: u64,
    next_topology_ns: u64,
    next_heartbeat_ns: u64,
    next_swap_ns: u64,
    epoch_ns: u64,
    measure_ns: u64,
    end_ns: u64,
    measuring: bool,
    issued_all: bool,
    /// Number of the first user.
    first_user: u64,
    /// Users that have not begun all of their share, where operations belong to users.
    users_with_quota: usize,
    drain: Drain,
    errors: Vec<(Outcome, String)>,
}

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// A thread that has not connected yet.
    pub fn new(shared: Arc<Shared>, thread: usize, driver: D, net: N, recorder: Recorder) -> Self {
        let users = shared.job.users_of(thread);
        let batches = shared.job.workload.only_inserts() && driver.batches();
        LoadThread {
            thread,
            hooks: shared.job.workload.hooks(),
            per_user: shared.job.workload.is_per_user(),
            driver,
            net,
            recorder,
            users: (0..users).map(|_| VirtualUser::default()).collect(),
            connections: Vec::with_capacity(users),
            ops: Vec::new(),
            free_ops: Vec::new(),
            in_flight: 0,
            idle: VecDeque::with_capacity(users * shared.job.pipeline),
            free_ns: BinaryHeap::new(),
            resting: BinaryHeap::new(),
            retries: BinaryHeap::new(),
            schedule: None,
            due: None,
            backlog: 0,
            starved_ns: 0,
            block: Block::default(),
            index_end: u64::MAX,
            alarm: Alarm::default(),
            batch: if batches { shared.job.batch } else { 1 },
            batch_requests: Vec::new(),
            dirty: Vec::new(),
            ready: Vec::new(),
            unread: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
            spare: Vec::new(),
            retrying: Vec::new(),
            parked: Vec::new(),
            unsettled: 0,
            next_retry_ns: u64::MAX,
            next_sweep_ns: u64::MAX,
            next_topology_ns: 0,
            next_heartbeat_ns: u64::MAX,
            next_swap_ns: u64::MAX,
            epoch_ns: 0,
            measure_ns: 0,
            end_ns: u64::MAX,
            measuring: false,
            issued_all: false,
            first_user: (0..thread).map(|t| shared.job.users_of(t)).sum::<usize>() as u64,
            users_with_quota: users,
            drain: Drain::NONE,
            errors: Vec::new(),
            shared,
        }
    }

    /// Runs from `epoch_ns` on until everything has ended. Returns the errors' words by class, and the time of the end.
    pub fn run(mut self, epoch_ns: u64) -> io::Result<(Vec<(Outcome, String)>, u64)> {
        self.prepare(epoch_ns);
        let mut now = self.net.now();
        // All threads begin together, and nothing is sent in a time that does not count.
        while now < epoch_ns {
            self.net.wait(now, epoch_ns, &mut self.ready)?;
            now = self.net.now();
        }
        self.shared.control.begun(now.saturating_sub(epoch_ns));
        loop {
            self.tick(now);
            self.receive_pass()?;
            self.dispatch_pass()?;
            self.flush_pass();
            if self.finished() {
                break;
            }
            let rest = self.net.now();
            self.recorder.now.busy_ns += rest.saturating_sub(now);
            now = self.sleep(rest)?;
        }
        let ended_ns = self.net.now();
        self.clean_up();
        self.recorder.finish();
        Ok((self.errors, ended_ns))
    }

    fn prepare(&mut self, epoch_ns: u64) {
        let job = &self.shared.job;
        self.epoch_ns = epoch_ns;
        self.measure_ns = epoch_ns + job.warmup_ns;
        self.measuring = job.warmup_ns == 0;
        self.recorder.now.warmup = !self.measuring;
        self.end_ns = job.end.duration_ns.map_or(u64::MAX, |d| self.measure_ns + d);
        self.next_swap_ns = epoch_ns + self.shared.job.interval_ns;
        self.next_sweep_ns = epoch_ns;
        self.next_heartbeat_ns =
            self.driver.heartbeat_ns().map_or(u64::MAX, |every| epoch_ns.saturating_add(every));
        let begin_ns = match job.pacing {
            Pacing::Closed { .. } => epoch_ns.saturating_add(job.workload.begin_ns()),
            Pacing::Open { .. } => epoch_ns,
        };
        if let (Some(operations), true) = (job.end.operations, self.per_user) {
            self.users_with_quota =
                (self.users.len() as u64).min(operations.saturating_sub(self.first_user)) as usize;
        }
        let late = match job.pacing {
            Pacing::Closed { .. } => job.warm_users_of(self.thread) as u32,
            Pacing::Open { .. } => u32::MAX,
        };
        for _ in 0..job.pipeline {
            let all = self.users.len() as u32;
            let early = 0..all.min(late);
            // Users that are not of the warm-up begin when it ends.
            self.resting.extend((early.end..all).map(|user| Reverse((begin_ns.max(self.measure_ns), user))));
            if begin_ns > epoch_ns {
                self.resting.extend(early.map(|user| Reverse((begin_ns, user))));
            } else {
                if matches!(job.pacing, Pacing::Open { .. }) {
                    self.free_ns.extend(early.clone().map(|_| Reverse(epoch_ns)));
                }
                self.idle.extend(early.map(|user| (user, epoch_ns)));
            }
        }
        if let Pacing::Open { profile, process } = &job.pacing {
            let threads = job.cores.len() as u64;
            let (stripe, stripes) = job.stripe;
            let (mine, of) = (stripe * threads + self.thread as u64, stripes * threads);
            let schedule = Schedule::new(profile.clone(), *process, job.seed, mine, of);
            self.due = Some(schedule.clone());
            self.schedule = Some(schedule);
            if let Some(operations) = job.end.operations {
                let mut whole = Schedule::new(profile.clone(), *process, job.seed, 0, 1);
                while whole.peek().1 < job.warmup_ns {
                    whole.advance();
                }
                self.index_end = whole.peek().0 + operations;
            }
        }
    }

    /// Waits until something is ready or due; returns the time.
    fn sleep(&mut self, now: u64) -> io::Result<u64> {
        let until = self.wake_ns(now);
        let for_arrival = self.schedule.as_ref().is_some_and(|s| until == self.epoch_ns + s.peek().1);
        // Virtual time goes on only while it is waited for.
        if !for_arrival || N::VIRTUAL {
            self.net.wait(now, until, &mut self.ready)?;
            return Ok(self.net.now());
        }
        let asked = self.alarm.ask(until);
        self.net.wait(now, asked, &mut self.ready)?;
        let mut woken = self.net.now();
        if asked > now && self.ready.is_empty() {
            self.alarm.woke(asked, woken);
        }
        while woken < until && self.ready.is_empty() {
            self.net.wait(woken, woken, &mut self.ready)?;
            woken = self.net.now();
        }
        Ok(woken)
    }

    /// When the thread must be awake again at the latest.
    fn wake_ns(&self, now: u64) -> u64 {
        let mut until = (now + NAP_NS).min(self.next_swap_ns).min(self.drain.until_ns);
        if !self.dirty.is_empty() || !self.ready.is_empty() {
            return now;
        }
        if !self.measuring {
            until = until.min(self.measure_ns);
        }
        if let (Some(&Reverse((at, _))), false) = (self.resting.peek(), self.issued_all) {
            until = until.min(at);
        }
        if let Some(&Reverse((at, _))) = self.retries.peek() {
            until = until.min(at);
        }
        if !self.retrying.is_empty() {
            until = until.min(self.next_retry_ns);
        }
        if !self.parked.is_empty() {
            until = until.min(now + again::LOOK_NS);
        }
        if self.shared.job.timeout_ns.is_some() && self.in_flight > 0 {
            until = until.min(self.next_sweep_ns);
        }
        if !self.issued_all {
            match &self.schedule {
                Some(schedule) if !self.idle.is_empty() => {
                    until = until.min(self.epoch_ns + schedule.peek().1)
                }
                Some(_) => {}
                None if !self.idle.is_empty() => until = now,
                None => {}
            }
            if now < self.end_ns {
                until = until.min(self.end_ns);
            }
        }
        until
    }

    fn finished(&self) -> bool {
        self.issued_all && self.in_flight == 0
    }

    /// Keeps one text per class of error, the first.
    fn remember(&mut self, outcome: Outcome, text: &str) {
        if self.errors.iter().all(|(o, _)| *o != outcome) {
            self.errors.push((outcome, text.to_owned()));
        }
    }
}
