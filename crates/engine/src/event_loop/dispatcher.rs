//! What a load thread is to begin, and who begins it.

use super::induced::Induced;
use crate::arrivals::Schedule;
use crate::claim::ClaimedBlock;
use crate::job::{Job, Pacing};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// Arrivals, users that are free, and operations that begin once more.
pub(super) struct Dispatcher {
    pub(super) per_user: bool,
    /// Operations are due at times that no answer moves: by a schedule, or as they were recorded.
    pub(super) is_open: bool,
    /// Operations have users and times of their own.
    pub(super) is_recorded: bool,
    /// The workload is told the time of each request.
    pub(super) timed: bool,
    /// Users (closed loop: with the time they became ready) or free places on connections (open loop).
    pub(super) idle: VecDeque<(u32, u64)>,
    /// Pause of a user between two operations, nanoseconds.
    pub(super) think_ns: u64,
    /// Open loop: when each of the idle places would be free if the client were never late.
    pub(super) free_ns: BinaryHeap<Reverse<u64>>,
    /// Users that think or are being kept from a dead server: (until, user).
    pub(super) resting: BinaryHeap<Reverse<(u64, u32)>>,
    /// Failed inserts to be tried again: (when, op).
    pub(super) retries: BinaryHeap<Reverse<(u64, u32)>>,
    /// Arrivals to dispatch, and the same arrivals run ahead to count those that are due.
    pub(super) schedule: Option<Schedule>,
    pub(super) due: Option<Schedule>,
    pub(super) backlog: u64,
    /// Open loop: when an arrival last found no free connection.
    pub(super) starved_ns: u64,
    pub(super) block: ClaimedBlock,
    /// First open-loop index beyond the end.
    pub(super) index_end: u64,
    /// Open loop: what the client's own lags make of the server's times.
    pub(super) induced: Induced,
    /// Users that begin later: (when, user), the next one first.
    pub(super) late: VecDeque<(u64, u32)>,
    /// Number of the first user.
    pub(super) first_user: u64,
    /// Users that have not begun all of their share, where operations belong to users.
    pub(super) users_with_quota: usize,
}

impl Dispatcher {
    /// Nothing is due yet. The thread's `users` users are numbered from `first_user`; those in `late` begin later.
    pub(super) fn new(job: &Job, users: usize, first_user: u64, late: VecDeque<(u64, u32)>) -> Self {
        Dispatcher {
            per_user: job.workload.is_per_user(),
            is_open: !matches!(job.pacing, Pacing::Closed { .. }),
            is_recorded: job.pacing == Pacing::Recorded,
            timed: job.workload.times_each(),
            think_ns: match job.pacing {
                Pacing::Closed { think_ns } => think_ns,
                Pacing::Open { .. } | Pacing::Recorded => 0,
            },
            idle: VecDeque::with_capacity(users * job.pipeline),
            free_ns: BinaryHeap::new(),
            resting: BinaryHeap::new(),
            retries: BinaryHeap::new(),
            schedule: None,
            due: None,
            backlog: 0,
            starved_ns: 0,
            block: ClaimedBlock::default(),
            index_end: u64::MAX,
            induced: Induced::new(job.workload.metrics().len()),
            late,
            first_user,
            users_with_quota: users,
        }
    }

    /// Goes on to the next arrival.
    pub(super) fn advance_schedule(&mut self) {
        if let Some(schedule) = &mut self.schedule {
            schedule.advance_arrival();
        }
        debug_assert!(self.backlog > 0, "an arrival is counted as due before it is taken");
        self.backlog = self.backlog.saturating_sub(1);
    }

    /// The number of a user of this thread among all of this job.
    pub(super) fn user_number(&self, user: u32) -> u64 {
        self.first_user + u64::from(user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Process;
    use crate::job::End;
    use crate::rates::profile::Profile;
    use dyno_types::{Content, Request};
    use dyno_workload::{Draw, Frontier, Workload};
    use std::sync::Arc;

    /// Requests that are never executed; of users' own where it is so.
    struct NamedReads {
        metrics: Vec<String>,
        per_user: bool,
    }

    impl Workload for NamedReads {
        fn metrics(&self) -> &[String] {
            &self.metrics
        }
        fn content(&self) -> Arc<dyn Content> {
            unreachable!("nothing is executed")
        }
        fn draw(&self, index: u64) -> Draw {
            Draw { index, kind: 0, seed: 0 }
        }
        fn bind(&self, _draw: &Draw, _frontier: &Frontier) -> Request {
            Request::default()
        }
        fn is_per_user(&self) -> bool {
            self.per_user
        }
        fn is_pure(&self) -> bool {
            true
        }
    }

    fn job(pacing: Pacing, per_user: bool) -> Job {
        let reads = NamedReads { metrics: vec!["READ".into()], per_user };
        let end = End { operations: Some(100), duration_ns: None };
        Job { pacing, ..Job::closed_loop(Arc::new(reads), 4, end) }
    }

    fn open(rate: f64) -> Pacing {
        Pacing::Open { profile: Profile::Constant { rate }, process: Process::Constant }
    }

    #[test]
    fn the_pacing_decides_what_begins_operations() {
        let kind = |pacing: Pacing, per_user: bool| {
            let dispatcher = Dispatcher::new(&job(pacing, per_user), 4, 0, VecDeque::new());
            (dispatcher.is_open, dispatcher.is_recorded, dispatcher.per_user)
        };
        assert_eq!(kind(Pacing::Closed { think_ns: 0 }, false), (false, false, false));
        assert_eq!(kind(Pacing::Closed { think_ns: 0 }, true), (false, false, true));
        assert_eq!(kind(open(1_000.0), false), (true, false, false));
        // Recorded times do not wait for answers either.
        assert_eq!(kind(Pacing::Recorded, false), (true, true, false));
    }

    #[test]
    fn nothing_is_due_before_a_run_begins() {
        let late = VecDeque::from([(5_000, 2), (9_000, 3)]);
        let mut dispatcher = Dispatcher::new(&job(open(1_000.0), false), 4, 0, late.clone());
        assert!(dispatcher.idle.is_empty() && dispatcher.resting.is_empty() && dispatcher.retries.is_empty());
        assert!(dispatcher.schedule.is_none() && dispatcher.due.is_none());
        assert_eq!((dispatcher.backlog, dispatcher.index_end), (0, u64::MAX));
        assert_eq!((dispatcher.late, dispatcher.users_with_quota), (late, 4));
        // One place for each user and request that it may have under way, without allocating while the load runs.
        let pipelined = Job { pipeline: 8, ..job(open(1_000.0), false) };
        dispatcher = Dispatcher::new(&pipelined, 4, 0, VecDeque::new());
        assert!(dispatcher.idle.capacity() >= 32);
    }

    #[test]
    fn each_arrival_that_is_taken_leaves_the_backlog() {
        // Thread 1 of 2: every second arrival of 1,000 a second.
        let mut dispatcher = Dispatcher::new(&job(open(1_000.0), false), 4, 0, VecDeque::new());
        let profile = Profile::Constant { rate: 1_000.0 };
        dispatcher.schedule = Some(Schedule::new(profile, Process::Constant, 7, 1, 2));
        dispatcher.backlog = 3;
        let mut taken = Vec::new();
        while dispatcher.backlog > 0 {
            taken.extend(dispatcher.schedule.as_ref().map(Schedule::peek_arrival));
            dispatcher.advance_schedule();
        }
        assert_eq!(taken, [(1, 1_000_000), (3, 3_000_000), (5, 5_000_000)]);
        let next = dispatcher.schedule.as_ref().map(Schedule::peek_arrival);
        assert_eq!(next, Some((7, 7_000_000)));
    }

    #[test]
    fn users_are_numbered_among_all_of_the_job() {
        let numbers = |first: u64| {
            let dispatcher = Dispatcher::new(&job(Pacing::Recorded, true), 3, first, VecDeque::new());
            [0, 2].map(|user| dispatcher.user_number(user))
        };
        assert_eq!(numbers(0), [0, 2]);
        assert_eq!(numbers(30), [30, 32]);
    }

    /// When users rest, the one whose rest ends first is the first to begin; of two at once the lower number.
    #[test]
    fn the_first_to_end_a_rest_begins_first() {
        let mut dispatcher =
            Dispatcher::new(&job(Pacing::Closed { think_ns: 1 }, false), 4, 0, VecDeque::new());
        dispatcher.resting.extend([(30, 1), (10, 3), (10, 2)].map(Reverse));
        let order: Vec<_> =
            std::iter::from_fn(|| dispatcher.resting.pop().map(|Reverse(next)| next)).collect();
        assert_eq!(order, [(10, 2), (10, 3), (30, 1)]);
    }
}
