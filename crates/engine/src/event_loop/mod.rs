//! The load thread of networked databases: one turn is a receive pass, a dispatch pass, a flush and a sleep.
//!
//! Terms: a *virtual user* has a set of connections, one to each node it has needed (open loop: it is a connection); an
//! *op* is an operation in flight; a connection keeps its awaited replies in order, each naming its op and the op's
//! generation, so that a reply to an op that has ended meanwhile is recognised and discarded.

mod alarm;
mod batch;
mod begin;
mod conclude;
mod connection;
mod dispatch;
mod dispatcher;
mod drain;
mod induced;
mod load_thread;
mod monitors;
mod operations;
mod parked;
mod phase;
mod phase_clock;
mod pool;
mod quota;
mod receive;
mod recorded;
mod renew;
mod timers;

pub use load_thread::LoadThread;
pub(crate) use phase::clipped_ns;

use crate::arrivals::Schedule;
use crate::job::Pacing;
use crate::merge::Ending;
use crate::net::Net;
use crate::shared::RunState;
use dispatcher::Dispatcher;
use dyno_record::Recorder;
use dyno_types::Driver;
use load_thread::VirtualUser;
use operations::Operations;
use phase_clock::PhaseClock;
use pool::Connections;
use std::cmp::Reverse;
use std::io;
use std::sync::Arc;

/// Longest sleep, so that a request to stop is seen.
const NAP_NS: u64 = 50_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// A thread that has not connected yet.
    pub fn new(shared: Arc<RunState>, thread: usize, driver: D, net: N, recorder: Recorder) -> Self {
        let users = shared.job.users_of(thread);
        let first_user = (0..thread).map(|t| shared.job.users_of(t)).sum::<usize>() as u64;
        let late = renew::late_users(&shared.job, first_user, users as u32);
        let batches = shared.job.workload.only_inserts() && driver.batches();
        LoadThread {
            thread,
            hooks: shared.job.workload.hooks(),
            driver,
            net,
            recorder,
            users: (0..users).map(|_| VirtualUser::default()).collect(),
            dispatcher: Dispatcher::new(&shared.job, users, first_user, late),
            pool: Connections::new(users),
            operations: Operations::new(if batches { shared.job.batch } else { 1 }),
            clock: PhaseClock::new(),
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
            self.net.wait(now, epoch_ns, &mut self.pool.ready)?;
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
            self.recorder.note_work(rest);
            self.recorder.now.busy_ns += rest.saturating_sub(now);
            now = self.sleep(rest)?;
            debug_assert!(now >= rest, "the network's clock never goes back");
        }
        let ended_ns = self.net.now();
        debug_assert!(self.clock.done_ns <= ended_ns, "nothing is done after the end");
        self.count_users(ended_ns);
        self.clean_up();
        self.recorder.now.clipped_ns += self.clock.clipped_ns;
        // A driver reports what it has counted when it goes: an observer of the last second finds all of it.
        drop(self.driver);
        self.recorder.finish();
        Ok(Ending {
            errors: self.errors,
            ended_ns,
            bound_ns: self.clock.bound_ns,
            done_ns: self.clock.done_ns,
            counted: self.clock.drain.counted && !self.dispatcher.is_open,
            busy_rate: Some(self.clock.first_out.map_or(0.0, |(out_ns, completed)| {
                let busy_ns = out_ns.saturating_sub(self.clock.measure_ns);
                if busy_ns > 0 { completed as f64 * 1e9 / busy_ns as f64 } else { 0.0 }
            })),
        })
    }

    fn prepare(&mut self, epoch_ns: u64) {
        let job = &self.shared.job;
        debug_assert_eq!(self.operations.in_flight, 0, "nothing is sent before the epoch");
        debug_assert_eq!(self.pool.unsettled, 0, "all connections were awaited");
        self.clock.epoch_ns = epoch_ns;
        self.pool.counted_ns = epoch_ns;
        self.recorder.begin_at(epoch_ns);
        self.clock.measure_ns = epoch_ns + job.warmup_ns;
        self.clock.measuring = job.warmup_ns == 0;
        self.recorder.now.warmup = !self.clock.measuring;
        self.clock.end_ns = job.end.duration_ns.map_or(u64::MAX, |d| self.clock.measure_ns + d);
        self.clock.bound_ns = self.clock.end_ns;
        self.clock.next_swap_ns = epoch_ns + self.shared.job.interval_ns;
        self.pool.next_sweep_ns = epoch_ns;
        let begin_ns = match job.pacing {
            Pacing::Closed { .. } => epoch_ns.saturating_add(job.workload.begin_ns()),
            Pacing::Open { .. } | Pacing::Recorded => epoch_ns,
        };
        if let (Some(operations), true) = (job.end.operations, self.dispatcher.per_user) {
            self.dispatcher.users_with_quota =
                (self.users.len() as u64).min(operations.saturating_sub(self.dispatcher.first_user)) as usize;
        }
        debug_assert!(self.dispatcher.users_with_quota <= self.users.len());
        let late = match job.pacing {
            Pacing::Closed { .. } => job.warm_users_of(self.thread) as u32,
            Pacing::Open { .. } | Pacing::Recorded => u32::MAX,
        };
        let all = self.users.len() as u32;
        let early: Vec<u32> = (0..all.min(late)).filter(|user| !self.is_late(*user)).collect();
        for _ in 0..job.pipeline {
            // Users that are not of the warm-up begin when it ends.
            self.dispatcher.resting.extend(
                (all.min(late)..all).map(|user| Reverse((begin_ns.max(self.clock.measure_ns), user))),
            );
            if begin_ns > epoch_ns {
                self.dispatcher.resting.extend(early.iter().map(|&user| Reverse((begin_ns, user))));
            } else {
                if matches!(job.pacing, Pacing::Open { .. }) {
                    self.dispatcher.free_ns.extend(early.iter().map(|_| Reverse(epoch_ns)));
                }
                self.dispatcher.idle.extend(early.iter().map(|&user| (user, epoch_ns)));
            }
        }
        if let Pacing::Open { profile, process } = &job.pacing {
            let threads = job.cores.len() as u64;
            let (stripe, stripes) = job.stripe;
            let (mine, of) = (stripe * threads + self.thread as u64, stripes * threads);
            let schedule = Schedule::new(profile.clone(), *process, job.seed, mine, of);
            let mut due = schedule.clone();
            self.dispatcher.schedule = Some(schedule);
            if let Some(operations) = job.end.operations {
                let mut whole = Schedule::new(profile.clone(), *process, job.seed, 0, 1);
                while whole.peek_arrival().1 < job.warmup_ns {
                    whole.advance_arrival();
                }
                self.dispatcher.index_end = whole.peek_arrival().0 + operations;
                due.end_before(self.dispatcher.index_end);
            }
            self.dispatcher.due = Some(due);
            self.bound_by_count();
        }
    }

    /// Waits until something is ready or due; returns the time.
    fn sleep(&mut self, now: u64) -> io::Result<u64> {
        let until = self.wake_ns(now);
        let woken = self.sleep_until(now, until)?;
        self.recorder.note_wake(until, woken);
        Ok(woken)
    }

    fn sleep_until(&mut self, now: u64, until: u64) -> io::Result<u64> {
        let schedule = self.dispatcher.schedule.as_ref();
        let recorded = self.dispatcher.resting.peek().filter(|_| self.dispatcher.is_recorded);
        let for_arrival = schedule
            .is_some_and(|s| until == self.clock.epoch_ns.saturating_add(s.peek_arrival().1))
            || recorded.is_some_and(|Reverse((at, _))| until == *at);
        // Virtual time goes on only while it is waited for.
        if !for_arrival || N::VIRTUAL {
            self.net.wait(now, until, &mut self.pool.ready)?;
            return Ok(self.net.now());
        }
        let asked = self.clock.alarm.wake_time(until);
        self.net.wait(now, asked, &mut self.pool.ready)?;
        let mut woken = self.net.now();
        if asked > now && self.pool.ready.is_empty() {
            self.clock.alarm.note_wake(asked, woken);
        }
        while woken < until && self.pool.ready.is_empty() {
            self.net.wait(woken, woken, &mut self.pool.ready)?;
            woken = self.net.now();
        }
        Ok(woken)
    }

    /// When the thread must be awake again at the latest.
    fn wake_ns(&self, now: u64) -> u64 {
        let mut until = (now + NAP_NS).min(self.clock.next_swap_ns).min(self.clock.drain.until_ns);
        if !self.pool.dirty.is_empty()
            || !self.pool.ready.is_empty()
            || (!self.pool.renewals.is_empty() && !self.clock.issued_all)
        {
            return now;
        }
        if !self.clock.measuring {
            until = until.min(self.clock.measure_ns);
        }
        if let (Some(&Reverse((at, _))), false) = (self.dispatcher.resting.peek(), self.clock.issued_all) {
            until = until.min(at);
        }
        if let (Some(&(after_ns, _)), false) = (self.dispatcher.late.front(), self.clock.issued_all) {
            until = until.min(self.clock.epoch_ns.saturating_add(after_ns));
        }
        if let Some(&Reverse((at, _))) = self.dispatcher.retries.peek() {
            until = until.min(at);
        }
        if !self.pool.retrying.is_empty() {
            until = until.min(self.pool.next_retry_ns);
        }
        if let Some(from_ns) = self.operations.parked.iter().map(|parked| parked.from_ns).min() {
            until = until.min(from_ns.max(now + parked::LOOK_NS));
        }
        if (self.shared.job.timeout_ns.is_some() || self.dispatcher.is_recorded)
            && self.operations.in_flight > 0
        {
            until = until.min(self.pool.next_sweep_ns);
        }
        if !self.clock.issued_all {
            match &self.dispatcher.schedule {
                Some(schedule) if !self.dispatcher.idle.is_empty() => {
                    until = until.min(self.clock.epoch_ns.saturating_add(schedule.peek_arrival().1))
                }
                Some(_) => {}
                None if !self.dispatcher.idle.is_empty() => until = now,
                None => {}
            }
            if now < self.clock.end_ns {
                until = until.min(self.clock.end_ns);
            }
        }
        until
    }

    fn finished(&self) -> bool {
        self.clock.issued_all && self.operations.in_flight == 0
    }
}
