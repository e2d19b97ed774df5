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
mod induced;
mod monitors;
mod phase;
mod quota;
mod receive;
mod renew;
mod state;
mod timers;

pub(crate) use phase::clipped_ns;
pub use state::LoadThread;

use crate::arrivals::Schedule;
use crate::claim::Block;
use crate::job::Pacing;
use crate::merge::Ending;
use crate::net::Net;
use crate::shared::Shared;
use alarm::Alarm;
use dyno_record::Recorder;
use dyno_types::Driver;
use induced::Induced;
use state::{Drain, VirtualUser};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::sync::Arc;

/// Bytes received at once; larger replies take several turns of the receive loop.
const RECEIVE_BYTES: usize = 256 << 10;
/// Longest sleep, so that a request to stop is seen.
const NAP_NS: u64 = 50_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// A thread that has not connected yet.
    pub fn new(shared: Arc<Shared>, thread: usize, driver: D, net: N, recorder: Recorder) -> Self {
        let users = shared.job.users_of(thread);
        let first_user = (0..thread).map(|t| shared.job.users_of(t)).sum::<usize>() as u64;
        let late = renew::late_users(&shared.job, first_user, users as u32);
        let batches = shared.job.workload.only_inserts() && driver.batches();
        LoadThread {
            thread,
            hooks: shared.job.workload.hooks(),
            per_user: shared.job.workload.is_per_user(),
            timed: shared.job.workload.times_each(),
            driver,
            net,
            recorder,
            users: (0..users).map(|_| VirtualUser::default()).collect(),
            connections: Vec::with_capacity(users),
            ops: Vec::new(),
            free_ops: Vec::new(),
            in_flight: 0,
            connected: 0,
            counted_ns: u64::MAX,
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
            induced: Induced::new(shared.job.workload.metrics().len()),
            batch: if batches { shared.job.batch } else { 1 },
            batch_requests: Vec::new(),
            dirty: Vec::new(),
            ready: Vec::new(),
            unread: Vec::new(),
            buffer: vec![0; RECEIVE_BYTES],
            spare: Vec::new(),
            retrying: Vec::new(),
            late,
            renewals: Vec::new(),
            parked: Vec::new(),
            unsettled: 0,
            next_retry_ns: u64::MAX,
            next_sweep_ns: u64::MAX,
            next_topology_ns: 0,
            monitors: Vec::new(),
            next_check_ns: 0,
            unanswered: false,
            next_unanswered_ns: 0,
            next_swap_ns: u64::MAX,
            epoch_ns: 0,
            measure_ns: 0,
            end_ns: u64::MAX,
            bound_ns: u64::MAX,
            done_ns: 0,
            completed: 0,
            first_out: None,
            clipped_ns: 0,
            measuring: false,
            issued_all: false,
            first_user,
            users_with_quota: users,
            drain: Drain::NONE,
            errors: Vec::new(),
            shared,
        }
    }

    /// Runs from `epoch_ns` on until everything has ended.
    pub(crate) fn run(mut self, epoch_ns: u64) -> io::Result<Ending> {
        self.prepare(epoch_ns);
        let mut now = self.net.now();
        // All threads begin together, and nothing is sent in a time that does not count.
        while now < epoch_ns {
            self.net.wait(now, epoch_ns, &mut self.ready)?;
            now = self.net.now();
        }
        self.shared.control.begun(now.saturating_sub(epoch_ns));
        loop {
            self.begin_turn(now);
            self.receive_pass()?;
            self.tick(now)?;
            self.dispatch_pass()?;
            self.flush_pass();
            if self.finished() {
                break;
            }
            let rest = self.net.now();
            self.recorder.worked(rest);
            self.recorder.now.busy_ns += rest.saturating_sub(now);
            now = self.sleep(rest)?;
        }
        let ended_ns = self.net.now();
        self.count_users(ended_ns);
        self.clean_up();
        self.recorder.now.clipped_ns += self.clipped_ns;
        self.recorder.finish();
        Ok(Ending {
            errors: self.errors,
            ended_ns,
            bound_ns: self.bound_ns,
            done_ns: self.done_ns,
            counted: self.drain.counted && self.schedule.is_none(),
            busy_rate: Some(self.first_out.map_or(0.0, |(out_ns, completed)| {
                let busy_ns = out_ns.saturating_sub(self.measure_ns);
                if busy_ns > 0 { completed as f64 * 1e9 / busy_ns as f64 } else { 0.0 }
            })),
        })
    }

    fn prepare(&mut self, epoch_ns: u64) {
        let job = &self.shared.job;
        self.epoch_ns = epoch_ns;
        self.counted_ns = epoch_ns;
        self.recorder.begin_at(epoch_ns);
        self.measure_ns = epoch_ns + job.warmup_ns;
        self.measuring = job.warmup_ns == 0;
        self.recorder.now.warmup = !self.measuring;
        self.end_ns = job.end.duration_ns.map_or(u64::MAX, |d| self.measure_ns + d);
        self.bound_ns = self.end_ns;
        self.next_swap_ns = epoch_ns + self.shared.job.interval_ns;
        self.next_sweep_ns = epoch_ns;
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
        let all = self.users.len() as u32;
        let early: Vec<u32> = (0..all.min(late)).filter(|user| !self.is_late(*user)).collect();
        for _ in 0..job.pipeline {
            // Users that are not of the warm-up begin when it ends.
            self.resting
                .extend((all.min(late)..all).map(|user| Reverse((begin_ns.max(self.measure_ns), user))));
            if begin_ns > epoch_ns {
                self.resting.extend(early.iter().map(|&user| Reverse((begin_ns, user))));
            } else {
                if matches!(job.pacing, Pacing::Open { .. }) {
                    self.free_ns.extend(early.iter().map(|_| Reverse(epoch_ns)));
                }
                self.idle.extend(early.iter().map(|&user| (user, epoch_ns)));
            }
        }
        if let Pacing::Open { profile, process } = &job.pacing {
            let threads = job.cores.len() as u64;
            let (stripe, stripes) = job.stripe;
            let (mine, of) = (stripe * threads + self.thread as u64, stripes * threads);
            let schedule = Schedule::new(profile.clone(), *process, job.seed, mine, of);
            let mut due = schedule.clone();
            self.schedule = Some(schedule);
            if let Some(operations) = job.end.operations {
                let mut whole = Schedule::new(profile.clone(), *process, job.seed, 0, 1);
                while whole.peek().1 < job.warmup_ns {
                    whole.advance();
                }
                self.index_end = whole.peek().0 + operations;
                due.end_before(self.index_end);
            }
            self.due = Some(due);
            self.bound_by_count();
        }
    }

    /// Waits until something is ready or due; returns the time.
    fn sleep(&mut self, now: u64) -> io::Result<u64> {
        let until = self.wake_ns(now);
        let woken = self.sleep_until(now, until)?;
        self.recorder.woke(until, woken);
        Ok(woken)
    }

    fn sleep_until(&mut self, now: u64, until: u64) -> io::Result<u64> {
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
        if !self.dirty.is_empty() || !self.ready.is_empty() || (!self.renewals.is_empty() && !self.issued_all)
        {
            return now;
        }
        if !self.measuring {
            until = until.min(self.measure_ns);
        }
        if let (Some(&Reverse((at, _))), false) = (self.resting.peek(), self.issued_all) {
            until = until.min(at);
        }
        if let (Some(&(after_ns, _)), false) = (self.late.front(), self.issued_all) {
            until = until.min(self.epoch_ns.saturating_add(after_ns));
        }
        if let Some(&Reverse((at, _))) = self.retries.peek() {
            until = until.min(at);
        }
        if !self.retrying.is_empty() {
            until = until.min(self.next_retry_ns);
        }
        if let Some(from_ns) = self.parked.iter().map(|parked| parked.from_ns).min() {
            until = until.min(from_ns.max(now + again::LOOK_NS));
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
}
