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
