//! The dispatch pass: which operation begins now, for which user.

use super::load_thread::LoadThread;
use crate::arrivals::Schedule;
use crate::net::Net;
use dyno_types::{Driver, Outcome};
use std::cmp::Reverse;
use std::io;

const SECOND_NS: u64 = 1_000_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    pub(super) fn dispatch_pass(&mut self) -> io::Result<()> {
        if self.clock.issued_all {
            return Ok(());
        }
        self.renew_pass();
        let now = self.net.now();
        self.end_warmup(now);
        if self.shared.control.is_stopping() {
            self.stop_issuing(now);
        }
        while let Some(&Reverse((at, user))) = self.dispatcher.resting.peek() {
            if at > now {
                break;
            }
            self.dispatcher.resting.pop();
            self.dispatcher.idle.push_back((user, at));
        }
        if self.clock.issued_all {
            return Ok(());
        }
        if self.dispatcher.schedule.is_some() {
            self.dispatch_open(now)
        } else if self.dispatcher.is_recorded {
            self.dispatch_recorded(now)
        } else {
            self.dispatch_closed(now)
        }
        Ok(())
    }

    /// Users that are free start their next operation.
    fn dispatch_closed(&mut self, now: u64) {
        if now >= self.clock.end_ns {
            return self.time_is_over(now, self.clock.end_ns);
        }
        if self.users.is_empty() {
            // A thread without users has nothing to send.
            return self.all_sent(now);
        }
        // Only those that are idle now: one whose operation ends at once waits for the next turn.
        for _ in 0..self.dispatcher.idle.len() {
            let Some((user, since)) = self.dispatcher.idle.pop_front() else { break };
            if self.holds_back(user, since) {
                continue;
            }
            let Some(index) = self.claim(user) else {
                self.clock.note_user_out(since);
                if self.dispatcher.per_user {
                    continue;
                }
                self.dispatcher.idle.push_front((user, since));
                return self.all_sent(now);
            };
            let id = self.begin(user, index, since, now);
            self.fill_closed(id, user, since, now);
            self.send_request(id);
        }
        // Decided before a user is free again: an answer that never comes must not keep the end away.
        let nothing_left = match self.dispatcher.per_user {
            true => self.dispatcher.users_with_quota == 0,
            false => {
                self.dispatcher.idle.is_empty()
                    && self.clock.measuring
                    && self.dispatcher.block.is_last(&self.shared.claims)
            }
        };
        if nothing_left {
            self.all_sent(now);
        }
    }

    /// Arrivals that are due start while there are free places; the rest waits, or is dropped beyond the bounds.
    fn dispatch_open(&mut self, now: u64) {
        let free = self.dispatcher.idle.len();
        debug_assert_eq!(free, self.dispatcher.free_ns.len(), "each free place has its ideal time");
        debug_assert!(free <= self.users.len() * self.shared.job.pipeline, "a place was given back twice");
        let limit_ns = self.clock.end_ns.min(now.saturating_add(1));
        self.count_due(limit_ns);
        loop {
            let Some((index, due)) = self.dispatcher.schedule.as_ref().map(|s| s.peek_arrival()) else {
                return;
            };
            let intended = self.clock.epoch_ns.saturating_add(due);
            if intended >= self.clock.end_ns {
                return self.time_is_over(now, self.clock.end_ns);
            }
            if index >= self.dispatcher.index_end {
                return self.all_sent(now);
            }
            if intended > now {
                return;
            }
            let waited = intended <= self.dispatcher.starved_ns;
            let outlasts_end = self.shared.job.queue.outlasts_end && !self.shared.control.is_stopping();
            if waited && now >= self.clock.end_ns && !outlasts_end {
                self.abandon_queue(Outcome::Aborted);
                return self.time_is_over(now, self.clock.end_ns);
            }
            if self.beyond_bounds(now, intended) {
                self.dispatcher.advance_schedule();
                self.drop_arrival(index, intended, Outcome::Dropped);
                continue;
            }
            let Some((user, since_ns)) = self.dispatcher.idle.pop_front() else {
                self.dispatcher.starved_ns = now;
                return;
            };
            if self.holds_back(user, since_ns) {
                self.dispatcher.free_ns.pop();
                continue;
            }
            self.dispatcher.advance_schedule();
            let id = self.begin(user, index, intended, now);
            let op = &mut self.operations.ops[id as usize];
            op.ideal_ns = self.dispatcher.free_ns.pop().map_or(now, |Reverse(free_ns)| free_ns);
            op.ready_ns = since_ns;
            op.begins_from(intended);
            self.fill_open(id, user, now);
            self.send_request(id);
        }
    }

    fn beyond_bounds(&self, now: u64, intended: u64) -> bool {
        let queue = &self.shared.job.queue;
        let share = (queue.length / self.shared.job.cores.len() as u64).max(1);
        let waiting = self.dispatcher.backlog.saturating_sub(self.dispatcher.idle.len() as u64);
        waiting > share || queue.age_ns.is_some_and(|age| now - intended > age)
    }

    /// Runs the second schedule up to now: the queue is the difference of two counters.
    fn count_due(&mut self, until_ns: u64) {
        let Some(due) = &mut self.dispatcher.due else { return };
        loop {
            let (index, at) = due.peek_arrival();
            if self.clock.epoch_ns.saturating_add(at) >= until_ns || index >= self.dispatcher.index_end {
                break;
            }
            due.advance_arrival();
            self.dispatcher.backlog += 1;
        }
        debug_assert!(self.backlog_adds_up(), "an arrival was dispatched uncounted, or counted twice");
        if self.dispatcher.index_end != u64::MAX {
            self.bound_by_count();
        }
        self.recorder.now.backlog = self
            .recorder
            .now
            .backlog
            .max(self.dispatcher.backlog.saturating_sub(self.dispatcher.idle.len() as u64));
    }

    /// Returns whether the queue is as long as its two schedules are apart.
    fn backlog_adds_up(&self) -> bool {
        let index = |schedule: &Option<Schedule>| schedule.as_ref().map_or(0, |s| s.peek_arrival().0);
        let stripes = self.shared.job.stripe.1 * self.shared.job.cores.len() as u64;
        index(&self.dispatcher.due) == index(&self.dispatcher.schedule) + self.dispatcher.backlog * stripes
    }

    /// An arrival that will not be sent.
    pub(super) fn drop_arrival(&mut self, index: u64, intended: u64, outcome: Outcome) {
        debug_assert!(
            matches!(outcome, Outcome::Dropped | Outcome::Aborted),
            "what was not sent has no answer"
        );
        debug_assert!(index < self.dispatcher.index_end, "only what was to be sent is dropped");
        self.recorder.note_unanswered(intended);
        let interval = &mut self.recorder.now;
        let kind = self.shared.job.workload.draw(index).kind as usize;
        if intended < self.clock.measure_ns && self.clock.measuring {
            // The arrival's warm-up interval is closed: it counts as an arrival of the warm-up that ended late.
            interval.carried += 1;
            interval.carried_arrivals += 1;
            return;
        }
        interval.outcomes[kind][outcome as usize] += 1;
        if outcome == Outcome::Dropped {
            interval.drop_at((intended - self.clock.epoch_ns) / SECOND_NS);
        } else {
            interval.arrivals += 1;
            interval.ended[outcome as usize] += 1;
        }
    }

    /// The caller has ended the load. Arrivals that are due and find a free connection are sent; users begin nothing more.
    fn stop_issuing(&mut self, now: u64) {
        if self.dispatcher.schedule.is_some() {
            self.clock.end_ns = self.clock.end_ns.min(now.saturating_add(1));
        } else {
            if self.dispatcher.is_recorded {
                self.abandon_recorded(now);
            }
            self.time_is_over(now, now);
        }
    }

    /// Ends every arrival that is due and still waits.
    pub(super) fn abandon_queue(&mut self, outcome: Outcome) {
        while self.dispatcher.backlog > 0 {
            let Some((index, due)) = self.dispatcher.schedule.as_ref().map(|s| s.peek_arrival()) else {
                return;
            };
            // One of the warm-up is counted by no outcome.
            if outcome == Outcome::Dropped && self.clock.epoch_ns.saturating_add(due) >= self.clock.measure_ns
            {
                self.recorder.now.undrained += 1;
            }
            self.dispatcher.advance_schedule();
            self.drop_arrival(index, self.clock.epoch_ns.saturating_add(due), outcome);
        }
    }
}
