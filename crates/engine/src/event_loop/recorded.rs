//! Recorded operations: each belongs to a user, and is due at a time of its own.
//!
//! A user has one place in the queue of users that are looked at (`idle`, `resting`), or waits for the end of an operation of its
//! own (`RecordedUser::waits`): never both, so that its operations begin in their order.

use super::load_thread::{LoadThread, OpenTransaction};
use crate::net::Net;
use dyno_record::RawSample;
use dyno_types::request::{FIRST_STEP, LAST_STEP};
use dyno_types::{Driver, Outcome, Request};
use dyno_workload::{NextRecorded, RecordedDue};
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
        let is_quiet = || self.dispatcher.idle.is_empty() && self.dispatcher.resting.is_empty();
        let is_over = now >= self.clock.end_ns && self.only_waits() && is_quiet();
        if is_over
            || now >= late_ns
            || (now >= self.clock.end_ns && !self.shared.job.workload.has_recorded_times())
        {
            self.abandon_recorded(now);
            self.time_is_over(now, self.clock.end_ns);
        }
    }

    /// Begins what is due of a user, and says when it is looked at again.
    fn begin_recorded(&mut self, user: u32, now: u64) {
        let number = self.dispatcher.user_number(user);
        loop {
            let (due, waits) = match self.shared.job.workload.next_recorded(number) {
                NextRecorded::Due { due, waits } => (due, waits),
                NextRecorded::Blocked { at_ns } => {
                    let due_ns = at_ns.map_or(now, |at_ns| self.clock.epoch_ns.saturating_add(at_ns));
                    if due_ns >= self.clock.end_ns {
                        return self.retire_recorded(user, now);
                    }
                    return self.dispatcher.resting.push(Reverse((due_ns.max(now + UNKNOWN_NS), user)));
                }
                NextRecorded::Unknown { not_before_ns } => {
                    // What the reader has not come to is not due before what it has.
                    let bound_ns = self.clock.epoch_ns.saturating_add(not_before_ns);
                    return self.dispatcher.resting.push(Reverse((bound_ns.max(now + UNKNOWN_NS), user)));
                }
                NextRecorded::Over => return self.retire_recorded(user, now),
            };
            let (epoch_ns, end_ns) = (self.clock.epoch_ns, self.clock.end_ns);
            let state = &mut self.users[user as usize].recorded;
            let due_ns = match due {
                RecordedDue::At(at_ns) => Some(epoch_ns.saturating_add(at_ns)),
                RecordedDue::AfterEnd(_) if state.under_way > 0 => {
                    state.waits = true;
                    return;
                }
                // Of a server that does not answer it is kept for a while.
                RecordedDue::AfterEnd(pause_ns) => {
                    Some(state.ended_ns.max(epoch_ns).saturating_add(pause_ns).max(state.pause_until_ns))
                }
                RecordedDue::AfterDue(gap_ns) => Some(state.due_ns.max(epoch_ns).saturating_add(gap_ns)),
                RecordedDue::AtOnce => None,
            };
            // What has begun in time is carried to its end.
            let continues = state.transactions.back().is_some_and(|last| !last.is_complete);
            if due_ns.is_some_and(|due_ns| due_ns >= end_ns) && !continues {
                return self.retire_recorded(user, now);
            }
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
        state.recorded.due_ns = intended;
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

    /// A user has nothing more to send; what the recording holds no end of ends here.
    fn retire_recorded(&mut self, user: u32, now: u64) {
        self.cut_transaction(user, Outcome::Ok, now);
        self.retire_user(user);
    }

    /// Counts a command among those of its transaction, if it has one. Returns whether that was due in the warm-up, if the
    /// command is not its first.
    pub(super) fn begin_step(
        &mut self,
        user: u32,
        request: &mut Request,
        intended_ns: u64,
        warm: bool,
        now: u64,
    ) -> Option<bool> {
        let is_open = |last: &OpenTransaction| !last.is_complete;
        let is_first = request.script != 0 && request.step == FIRST_STEP;
        let continues = request.script != 0
            && !is_first
            && self.users[user as usize].recorded.transactions.back().is_some_and(is_open);
        if !continues {
            // Its rest is not sent: its connection was lost.
            self.cut_transaction(user, Outcome::Disconnected, now);
        }
        let state = &mut self.users[user as usize].recorded;
        if is_first {
            state.begun += 1;
            state.transactions.push_back(OpenTransaction {
                number: state.begun,
                metric: request.script - 1,
                warm,
                is_complete: false,
                under_way: 0,
                intended_ns,
                sent_ns: 0,
                ideal_ns: 0,
                outcome: Outcome::Ok,
            });
        }
        if !is_first && !continues {
            // A command of a transaction whose begin was not sent is an operation of its own.
            request.script = 0;
            return None;
        }
        let last = state.transactions.back_mut()?;
        request.seed = last.number;
        last.under_way += 1;
        last.is_complete = request.step == LAST_STEP;
        continues.then_some(last.warm)
    }

    /// A command of a transaction has ended.
    pub(super) fn end_step(&mut self, id: u32, request: &Request, now: u64) {
        let op = &self.operations.ops[id as usize];
        let state = &mut self.users[op.user as usize].recorded;
        let Some(own) = state.transactions.iter_mut().find(|one| one.number == request.seed) else {
            debug_assert!(false, "a transaction ends with the last of its commands");
            return;
        };
        own.under_way -= 1;
        if own.outcome.is_ok() {
            own.outcome = op.first_outcome;
        }
        if own.sent_ns == 0 {
            own.sent_ns = op.first_sent_ns;
        }
        own.ideal_ns = own.ideal_ns.max(op.ideal_ns);
        let user = op.user;
        self.end_transactions(user, now);
    }

    /// Nothing more is sent of the transaction that a user has begun; `outcome`: what it has come to, if nothing has failed.
    fn cut_transaction(&mut self, user: u32, outcome: Outcome, now: u64) {
        let state = &mut self.users[user as usize].recorded;
        if let Some(last) = state.transactions.back_mut().filter(|last| !last.is_complete) {
            last.is_complete = true;
            if last.outcome.is_ok() {
                last.outcome = outcome;
            }
            self.end_transactions(user, now);
        }
    }

    /// Ends the transactions of a user of which nothing is under way any more.
    fn end_transactions(&mut self, user: u32, now: u64) {
        let is_over = |one: &OpenTransaction| one.is_complete && one.under_way == 0;
        let transactions = &mut self.users[user as usize].recorded.transactions;
        let place = transactions.iter().position(is_over);
        if let Some(ended) = place.and_then(|place| transactions.remove(place)) {
            self.end_transaction(&ended, user, now);
        }
    }

    fn end_transaction(&mut self, ended: &OpenTransaction, user: u32, now: u64) {
        let warm_but_late = ended.warm && self.clock.measuring;
        self.count_completion(warm_but_late, ended.outcome, now);
        let interval = &mut self.recorder.now;
        if warm_but_late {
            interval.carried += 1;
        } else {
            interval.ended[ended.outcome as usize] += 1;
            let server_ns = ended.ideal_ns.saturating_sub(ended.intended_ns);
            let sample = RawSample {
                metric: ended.metric,
                outcome: ended.outcome,
                done_ns: now.saturating_sub(self.clock.epoch_ns),
                service_ns: if ended.sent_ns == 0 { 0 } else { now.saturating_sub(ended.sent_ns) },
                response_ns: now.saturating_sub(ended.intended_ns),
            };
            interval.record_sample(sample, self.shared.job.raw_samples);
            if ended.outcome.is_ok() {
                interval.ideal.record(server_ns);
                interval.record_server(ended.metric, server_ns);
            }
        }
        self.end_transactions(user, now);
    }

    /// Ends every operation that is due and still waits for one before it.
    pub(super) fn abandon_recorded(&mut self, now: u64) {
        let until_ns = now.min(self.clock.end_ns);
        for user in 0..self.users.len() as u32 {
            self.cut_transaction(user, Outcome::Aborted, now);
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
