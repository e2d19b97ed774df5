//! Recorded operations: each belongs to a user, and is due at a time of its own.
//!
//! A user has one place in the queue of users that are looked at (`idle`, `resting`), or waits for the end of an operation of its
//! own (`RecordedUser::waits`): never both, so that its operations begin in their order.

use super::load_thread::LoadThread;
use crate::net::Net;
use dyno_record::RawSample;
use dyno_types::{Driver, Outcome};
use dyno_workload::NextRecorded;
use std::cmp::Reverse;

/// Pause before a user is looked at again whose next operation is not known yet, nanoseconds.
const UNKNOWN_NS: u64 = 500_000;

/// Most operations of a user under way: where they have no times, all that were sent without waiting would otherwise go out at
/// once.
const UNDER_WAY: u32 = 1_024;

/// Pause of a user after a lost connection where its operations have no times, nanoseconds: first and longest.
const PENALTY_NS: (u64, u64) = (1_000_000, 100_000_000);

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Users whose next operation is due begin it.
    pub(super) fn dispatch_recorded(&mut self, now: u64) {
        // Only those that are idle now: one whose operation ends at once is looked at in the next turn.
        for _ in 0..self.dispatcher.idle.len() {
            let Some((user, _)) = self.dispatcher.idle.pop_front() else { break };
            self.begin_recorded(user, now);
        }
        if self.dispatcher.users_with_quota == 0 {
            return self.all_sent(now);
        }
        // What was due before the end is sent after it, as long as replies are awaited.
        let late_ns = self.clock.end_ns.saturating_add(self.shared.job.drain_ns);
        if now >= late_ns || (now >= self.clock.end_ns && !self.shared.job.workload.has_recorded_times()) {
            self.abandon_recorded(now);
            self.time_is_over(now, self.clock.end_ns);
        }
    }

    /// Begins what is due of a user, and says when it is looked at again.
    fn begin_recorded(&mut self, user: u32, now: u64) {
        let number = self.dispatcher.user_number(user);
        loop {
            let (at_ns, waits) = match self.shared.job.workload.next_recorded(number) {
                NextRecorded::Due { at_ns, waits } => (at_ns, waits),
                NextRecorded::Blocked { at_ns } => {
                    let due_ns = at_ns.map_or(now, |at_ns| self.clock.epoch_ns.saturating_add(at_ns));
                    if due_ns >= self.clock.end_ns {
                        return self.retire_user(user);
                    }
                    return self.dispatcher.resting.push(Reverse((due_ns.max(now + UNKNOWN_NS), user)));
                }
                NextRecorded::Unknown { not_before_ns } => {
                    // What the reader has not come to is not due before what it has.
                    let bound_ns = self.clock.epoch_ns.saturating_add(not_before_ns);
                    return self.dispatcher.resting.push(Reverse((bound_ns.max(now + UNKNOWN_NS), user)));
                }
                NextRecorded::Over => return self.retire_user(user),
            };
            let due_ns = at_ns.map(|at_ns| self.clock.epoch_ns.saturating_add(at_ns));
            if due_ns.is_some_and(|due_ns| due_ns >= self.clock.end_ns) {
                return self.retire_user(user);
            }
            let state = &mut self.users[user as usize].recorded;
            let until_ns = due_ns.unwrap_or(state.pause_until_ns);
            if until_ns > now {
                return self.dispatcher.resting.push(Reverse((until_ns, user)));
            }
            if state.under_way >= if waits { 1 } else { UNDER_WAY } {
                state.waits = true;
                return;
            }
            self.begin_one(user, due_ns, waits, now);
            if self.clock.issued_all {
                return;
            }
        }
    }

    fn begin_one(&mut self, user: u32, due_ns: Option<u64>, waits: bool, now: u64) {
        let users = self.shared.job.users as u64;
        let number = self.dispatcher.user_number(user);
        let state = &mut self.users[user as usize];
        let index = number + state.position * users;
        state.position += 1;
        state.recorded.under_way += 1;
        let (ended_ns, ideal_ns) = (state.recorded.ended_ns, state.recorded.ideal_ns);
        let intended = due_ns.unwrap_or(now);
        let id = self.begin(user, index, intended, now);
        let op = &mut self.operations.ops[id as usize];
        (op.ideal_ns, op.ready_ns) = if waits { (ideal_ns, ended_ns) } else { (0, 0) };
        op.begins_from(intended);
        let warm = op.warm;
        if waits && ended_ns > intended && !warm {
            let held_ns = ended_ns - intended;
            let done_ns = now.saturating_sub(self.clock.epoch_ns);
            if let Some(metric) = self.shared.own.held {
                let sample = RawSample {
                    metric,
                    outcome: Outcome::Ok,
                    done_ns,
                    service_ns: held_ns,
                    response_ns: held_ns,
                };
                self.recorder.now.record_sample(sample, self.shared.job.raw_samples);
            }
        }
        self.send_request(id);
    }

    /// An operation of a user has ended.
    pub(super) fn release_recorded(&mut self, user: u32, outcome: Outcome, now: u64, ideal_ns: u64) {
        let state = &mut self.users[user as usize].recorded;
        debug_assert!(state.under_way > 0, "an operation ends once");
        state.under_way -= 1;
        (state.ended_ns, state.ideal_ns) = (now, ideal_ns);
        let lost = matches!(outcome, Outcome::Unreachable | Outcome::Disconnected | Outcome::Aborted);
        state.penalty_ns = match (lost, state.penalty_ns) {
            (false, _) => 0,
            (true, 0) => PENALTY_NS.0,
            (true, before) => (before * 2).min(PENALTY_NS.1),
        };
        state.pause_until_ns = now + state.penalty_ns;
        if std::mem::take(&mut state.waits) {
            self.dispatcher.idle.push_back((user, now));
        }
    }

    /// Ends every operation that is due and still waits for one before it.
    pub(super) fn abandon_recorded(&mut self, now: u64) {
        let until_ns = now.min(self.clock.end_ns);
        for user in 0..self.users.len() as u32 {
            let number = self.dispatcher.user_number(user);
            while let Some(at_ns) = self.shared.job.workload.left_recorded(number) {
                let due_ns = self.clock.epoch_ns.saturating_add(at_ns);
                if due_ns >= until_ns || self.users[user as usize].gone {
                    break;
                }
                let state = &mut self.users[user as usize];
                let index = number + state.position * self.shared.job.users as u64;
                state.position += 1;
                self.drop_arrival(index, due_ns, Outcome::Aborted);
            }
        }
    }
}
