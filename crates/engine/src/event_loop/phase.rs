//! The measured phase [0, T): which completions lie in it, and what of the users' times.

use super::load_thread::LoadThread;
use super::pool::CHECKER;
use crate::net::Net;
use dyno_types::{Driver, Outcome};

/// What of a user's time between two moments lies in the measured phase, from one time to another, less what the histograms say
/// of it: nothing of an operation of the warm-up, all from the phase's begin on of another.
pub(crate) fn clipped_ns((from, to): (u64, u64), warm: bool, (begin, end): (u64, u64)) -> i64 {
    debug_assert!(begin <= end);
    debug_assert!(warm || from <= end, "what is measured ends after the phase has begun");
    let within = |at: u64| at.clamp(from, to.max(from));
    let counted = if warm { 0 } else { end - begin.max(from) };
    (within(end) - within(begin)) as i64 - counted as i64
}

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// An operation was done at `now`. Throughput counts successes by when they were done, every other figure by when they were
    /// due: the difference is kept. `warm_but_late`: it is the warm-up's, and is handled in the measured phase.
    #[inline]
    pub(super) fn count_completion(&mut self, warm_but_late: bool, outcome: Outcome, now: u64) {
        if warm_but_late {
            let within = outcome.is_ok() && now >= self.clock.measure_ns && now < self.clock.bound_ns;
            self.recorder.now.crossed += i64::from(within);
            return;
        }
        self.clock.done_ns = self.clock.done_ns.max(now);
        self.clock.completed += u64::from(outcome.is_ok());
        if now >= self.clock.bound_ns && outcome.is_ok() {
            self.recorder.now.crossed -= 1;
        }
    }

    /// Sets right what the histograms say of a user's operation, due at `intended_ns` and done at `now`, and of the pause after
    /// it, where a boundary of the measured phase lies in them. Little's law counts the pause with the operation before it.
    #[cold]
    pub(super) fn clip(&mut self, warm: bool, intended_ns: u64, now: u64) {
        let rested = now.saturating_add(self.dispatcher.think_ns);
        self.clock.clipped_ns +=
            clipped_ns((self.clock.measure_ns, self.clock.bound_ns), warm, (intended_ns, rested));
    }

    /// The time is over: users that are ready have waited until now.
    pub(super) fn clip_idle(&mut self) {
        let bound_ns = self.clock.bound_ns.max(self.clock.measure_ns);
        let waited = |since: u64| bound_ns.saturating_sub(since.max(self.clock.measure_ns)) as i64;
        let held = self.users.iter().flat_map(|user| user.held.iter());
        let late = self
            .dispatcher
            .late
            .iter()
            .flat_map(|_| std::iter::repeat_n(&self.clock.epoch_ns, self.shared.job.pipeline));
        let idle = self.dispatcher.idle.iter().map(|(_, since)| since);
        self.clock.clipped_ns += idle.chain(held).chain(late).map(|since| waited(*since)).sum::<i64>();
        // No user begins any more.
        self.users.iter_mut().for_each(|user| user.held.clear());
    }

    /// Open loop that ends by a number of arrivals: the phase ends when one more would be due, which may not be known yet.
    pub(super) fn bound_by_count(&mut self) {
        let end_ns = self.dispatcher.due.as_ref().and_then(|due| due.end_due_ns());
        self.clock.bound_ns =
            self.clock.bound_ns.min(end_ns.map_or(u64::MAX, |ns| self.clock.epoch_ns.saturating_add(ns)));
    }

    /// Counts the time of users, and of those that had a connection, until now or the end of the measured phase.
    pub(super) fn count_users(&mut self, now: u64) {
        debug_assert!(self.dispatcher.late.len() <= self.users.len());
        debug_assert!(
            self.pool.connected + self.dispatcher.late.len() <= self.users.len(),
            "users with a connection are some of those that have begun"
        );
        let until_ns = now.min(self.clock.bound_ns);
        let passed_ns = until_ns.saturating_sub(self.pool.counted_ns);
        self.pool.counted_ns = self.pool.counted_ns.max(until_ns);
        let [users_ns, connected_ns] = &mut self.recorder.now.users_ns;
        *users_ns += passed_ns * (self.users.len() - self.dispatcher.late.len()) as u64;
        *connected_ns += passed_ns * self.pool.connected as u64;
    }

    /// A connection of a user has become ready, or is not any more.
    pub(super) fn count_ready(&mut self, user: u32, ready: bool, now: u64) {
        if user == CHECKER {
            return;
        }
        self.count_users(now);
        let state = &mut self.users[user as usize];
        debug_assert!(ready || state.ready > 0, "only what was counted as ready is not any more");
        state.ready = if ready { state.ready + 1 } else { state.ready - 1 };
        debug_assert!(usize::from(state.ready) <= state.connections.len(), "one was counted twice");
        match (ready, state.ready) {
            (true, 1) => self.pool.connected += 1,
            (false, 0) => self.pool.connected -= 1,
            _ => {}
        }
        debug_assert!(self.pool.connected <= self.users.len());
    }
}
