//! The end of an operation: its outcome is recorded, it begins once more, or its user goes on.

use super::load_thread::LoadThread;
use crate::net::Net;
use dyno_types::{Driver, Outcome, Request};
use dyno_workload::Hooks;
use std::cmp::Reverse;

/// Pause of a user after a lost or refused connection, nanoseconds: first and longest.
const PENALTY_NS: (u64, u64) = (1_000_000, 100_000_000);

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// A request has ended: it is recorded, and its operation goes on or ends too.
    pub(super) fn conclude(&mut self, id: u32, outcome: Outcome, now: u64) {
        let op = &mut self.operations.ops[id as usize];
        debug_assert!(op.active, "a request ends once");
        debug_assert!(op.passengers.is_empty(), "passengers end before their leader");
        op.generation = op.generation.wrapping_add(1);
        if op.internal {
            op.active = false;
            let (connection, round_trip_ns) = (op.connection, now.saturating_sub(op.sent_ns));
            self.operations.free_ops.push(id);
            debug_assert!(self.operations.places_add_up());
            return self.check_ended(connection, outcome.is_ok().then_some(round_trip_ns));
        }
        let is_wait = self.dispatcher.is_recorded && op.request.limit > 0;
        let warm_but_late = op.warm && self.clock.measuring;
        let service_ns = if op.sent_ns == 0 { 0 } else { now.saturating_sub(op.sent_ns) };
        let response_ns = now.saturating_sub(op.intended_ns);
        let metric = op.request.metric;
        if self.dispatcher.is_open {
            // An operation that was never sent held its place all the same.
            let own_ns = if outcome.is_ok() {
                self.dispatcher.induced.part_ns(metric, op.intended_ns, service_ns)
            } else {
                0
            };
            op.ideal_ns = if op.sent_ns == 0 { now } else { op.ideal_ns + (service_ns - own_ns) };
        }
        if is_wait {
            // Nothing is to be said of a server that had no data to wait for.
            if op.sent_ns != 0 {
                self.pool.connections[op.connection as usize].wait_ended_ns = now;
            }
        } else if outcome.is_ok() {
            if self.recorder.ends_gap(now) {
                self.end_gap(id, now);
            }
            self.recorder.note_success(now);
        }
        let records_more = self.shared.records_more;
        if !outcome.is_ok() {
            self.note_failure(id, outcome, is_wait);
        } else if records_more {
            self.check_values(id);
        }
        if is_wait {
            // One that was ended early has no time.
            if !warm_but_late && !outcome.is_unanswered() {
                self.recorder.now.record_ended(metric, outcome, service_ns, service_ns);
            }
        } else if !warm_but_late {
            self.recorder.now.record_ended(metric, outcome, service_ns, response_ns);
            if self.dispatcher.is_open && outcome.is_ok() {
                // What comes after the first request of a script begins when that has ended, whichever side was late before.
                let op = &self.operations.ops[id as usize];
                let is_first = op.intended_ns == op.first_intended_ns;
                let server_ns =
                    if is_first { op.ideal_ns.saturating_sub(op.intended_ns) } else { service_ns };
                self.recorder.now.record_server(metric, server_ns);
            }
            if records_more {
                self.record_own(id, outcome, now, service_ns, response_ns);
            }
        }
        if !outcome.is_ok() && self.try_again(id, outcome, now) {
            return;
        }
        if self.hooks != Hooks::NONE
            && let Some(next) = self.call_hooks(id, outcome)
        {
            let op = &mut self.operations.ops[id as usize];
            (op.request, op.intended_ns, op.begun_ns, op.sent_ns, op.hops) = (next, now, now, 0, 0);
            return self.send_request(id);
        }
        self.end_operation(id, now, warm_but_late);
    }

    /// Tells the workload of the end of a request, as it has asked for; returns what comes next in the same operation.
    fn call_hooks(&mut self, id: u32, outcome: Outcome) -> Option<Request> {
        let workload = &self.shared.job.workload;
        let op = &self.operations.ops[id as usize];
        let request = &op.request;
        if self.hooks.answered {
            let records = self.driver.records(&op.exchange);
            workload.answered(request, outcome, records);
        }
        if self.hooks.settled {
            workload.settled(request, &self.shared.frontier);
        }
        if self.hooks.scripts { workload.next(request, outcome) } else { None }
    }

    /// The first success for long, or behind a pause of the thread.
    #[cold]
    fn end_gap(&mut self, id: u32, now: u64) {
        // Whichever reply is read first: all that are under way have waited.
        let begun_ns = self.first_served_ns().unwrap_or(self.operations.ops[id as usize].begun_ns);
        self.recorder.end_gap(begun_ns, now);
    }

    /// A value that is not what it should be spoils the operation.
    fn check_values(&mut self, id: u32) {
        let op = &mut self.operations.ops[id as usize];
        if self.shared.own.verify.is_some()
            && op.first_outcome.is_ok()
            && self.driver.verified(&op.exchange) == Some(Outcome::Mismatch)
        {
            op.first_outcome = Outcome::Mismatch;
        }
    }

    /// A request of an operation has failed: it may spoil all of it, and its words are kept. `is_wait`: it waited for data, so
    /// that no answer says nothing of the server.
    #[cold]
    fn note_failure(&mut self, id: u32, outcome: Outcome, is_wait: bool) {
        if outcome.is_unanswered() && !is_wait {
            let begun_ns = self.served_ns(&self.operations.ops[id as usize]);
            self.recorder.note_unanswered(begun_ns);
        }
        let op = &mut self.operations.ops[id as usize];
        let request = op.request;
        let spoils = !self.hooks.scripts || self.shared.job.workload.spoils(&request, outcome);
        if spoils && op.first_outcome.is_ok() {
            op.first_outcome = outcome;
        }
        let has_words = outcome.is_error_reply()
            || (outcome == Outcome::Mismatch && request.verb == dyno_types::Verb::Command);
        if has_words && self.errors.iter().all(|(o, _)| *o != outcome) {
            let message = self.driver.last_error().to_owned();
            self.remember(outcome, &message);
        }
    }

    /// Plans another attempt of a failed insert; false if there is none.
    #[cold]
    fn try_again(&mut self, id: u32, outcome: Outcome, now: u64) -> bool {
        let op = &mut self.operations.ops[id as usize];
        let Some(retry) = self.shared.job.retry.filter(|r| op.attempts < r.limit) else { return false };
        let over = outcome == Outcome::Aborted || self.shared.control.is_stopping();
        if op.request.verb != dyno_types::Verb::Insert || over {
            return false;
        }
        op.attempts += 1;
        debug_assert!(op.attempts <= retry.limit);
        op.first_outcome = Outcome::Ok;
        let at = now + retry.pause_ns(op.request.seed, op.attempts);
        op.ideal_ns += at - now;
        // The time-out of the next attempt begins with it.
        (op.begun_ns, op.sent_ns, op.hops) = (at, 0, 0);
        self.dispatcher.retries.push(Reverse((at, id)));
        true
    }

    /// Sends inserts whose pause is over once more.
    pub(super) fn retry_pass(&mut self, now: u64) {
        while let Some(&Reverse((at, id))) = self.dispatcher.retries.peek() {
            if at > now {
                break;
            }
            self.dispatcher.retries.pop();
            // An op that was ended meanwhile (or ended and used anew) is not waiting for this.
            let op = &self.operations.ops[id as usize];
            if op.active && op.begun_ns == at && op.sent_ns == 0 {
                self.send_request(id);
            }
        }
    }

    /// Records what the engine derives from a request: verification, a scan's share per record, raw samples.
    fn record_own(&mut self, id: u32, outcome: Outcome, now: u64, service_ns: u64, response_ns: u64) {
        let op = &self.operations.ops[id as usize];
        let interval = &mut self.recorder.now;
        let (keep, done_ns) = (self.shared.job.raw_samples, now.saturating_sub(self.clock.epoch_ns));
        let sample = |metric, outcome, service_ns, response_ns| dyno_record::RawSample {
            metric,
            outcome,
            done_ns,
            service_ns,
            response_ns,
        };
        if let (Some(metric), dyno_types::Verb::Read) = (self.shared.own.verify, op.request.verb) {
            // A value that was not read cannot be what it should be, and one that was not looked at is not verified.
            let verified = if outcome.is_ok() { self.driver.verified(&op.exchange) } else { Some(outcome) };
            if let Some(verified) = verified {
                interval.record_sample(sample(metric, verified, op.verify_ns, op.verify_ns), keep);
            }
        }
        if let (Some(metric), dyno_types::Verb::Scan) = (self.shared.own.scan_per_record, op.request.verb) {
            let records = u64::from(self.driver.records(&op.exchange));
            if outcome.is_ok() && records > 0 {
                interval.record_sample(
                    sample(metric, outcome, service_ns / records, response_ns / records),
                    keep,
                );
            }
        }
        if self.shared.own.elements && matches!(outcome, Outcome::Ok | Outcome::NotFound) {
            let (found, missing) = self.driver.elements(&op.exchange);
            if let Some((hits, misses)) =
                (found + missing > 0).then(|| self.shared.job.workload.element_metrics(&op.request)).flatten()
            {
                interval.outcomes[usize::from(hits)][Outcome::Ok as usize] += u64::from(found);
                interval.outcomes[usize::from(misses)][Outcome::Ok as usize] += u64::from(missing);
            }
        }
        if keep {
            interval.samples.push(sample(op.request.metric, outcome, service_ns, response_ns));
        }
        if self.dispatcher.timed && !outcome.is_unanswered() {
            self.shared.job.workload.timed(&op.request, service_ns, done_ns);
        }
    }

    /// The operation has ended: its arrival gets its outcome, and its user becomes free.
    fn end_operation(&mut self, id: u32, now: u64, warm_but_late: bool) {
        let op = &mut self.operations.ops[id as usize];
        let (outcome, holds_place) = (op.first_outcome, op.holds_place);
        debug_assert!(!op.internal, "the driver's own questions are no arrivals");
        debug_assert!(op.first_intended_ns <= now, "nothing ends before it was due");
        op.active = false;
        let (warm, intended_ns) = (op.warm, op.first_intended_ns);
        if self.dispatcher.is_recorded && (op.request.script != 0 || op.request.limit > 0) {
            let request = op.request;
            if request.script != 0 {
                self.end_step(id, &request, now);
            }
        } else {
            self.count_operation(id, (warm, intended_ns), warm_but_late, outcome, now);
        }
        self.free_operation(id, holds_place, outcome, now);
    }

    /// Counts an operation that has ended with this outcome.
    #[inline]
    fn count_operation(
        &mut self,
        id: u32,
        (warm, intended_ns): (bool, u64),
        warm_but_late: bool,
        outcome: Outcome,
        now: u64,
    ) {
        self.count_completion(warm_but_late, outcome, now);
        if !self.dispatcher.is_open && (warm || now + self.dispatcher.think_ns > self.clock.bound_ns) {
            self.clip(warm, intended_ns, now);
        }
        let op = &self.operations.ops[id as usize];
        let interval = &mut self.recorder.now;
        if warm_but_late {
            interval.carried += 1;
        } else {
            interval.ended[outcome as usize] += 1;
            if self.dispatcher.is_open && outcome.is_ok() {
                interval.ideal.record(op.ideal_ns - op.first_intended_ns);
            }
            if self.hooks.scripts
                && let Some(metric) = self.shared.job.workload.script(&op.first)
            {
                let service_ns = if op.first_sent_ns == 0 { 0 } else { now - op.first_sent_ns };
                let response_ns = now - op.first_intended_ns;
                let done_ns = now - self.clock.epoch_ns;
                let sample = dyno_record::RawSample { metric, outcome, done_ns, service_ns, response_ns };
                interval.record_sample(sample, self.shared.job.raw_samples);
                if self.dispatcher.is_open && outcome.is_ok() {
                    interval.record_server(metric, op.ideal_ns - op.first_intended_ns);
                }
            }
        }
    }

    /// The place of an operation becomes free, and its user.
    #[inline]
    fn free_operation(&mut self, id: u32, holds_place: bool, outcome: Outcome, now: u64) {
        let op = &self.operations.ops[id as usize];
        let (user, ideal_ns) = (op.user, op.ideal_ns);
        if self.dispatcher.is_recorded && op.sent_ns != 0 {
            self.users[user as usize].recorded.node = self.pool.connections[op.connection as usize].node;
        }
        self.operations.free_ops.push(id);
        self.operations.in_flight -= 1;
        debug_assert!(self.operations.places_add_up());
        self.counts_ended(user);
        if holds_place {
            self.release(user, id, outcome, now, ideal_ns);
        }
    }

    /// A user goes on, or ends, after its operation `id`, whose place is free by now and not taken yet.
    fn release(&mut self, user: u32, id: u32, outcome: Outcome, now: u64, ideal_ns: u64) {
        if self.dispatcher.is_recorded {
            return self.release_recorded(user, outcome, now, ideal_ns);
        }
        let until = match self.dispatcher.is_open {
            true => {
                // A place on a connection: the schedule alone decides.
                self.dispatcher.free_ns.push(Reverse(ideal_ns));
                now
            }
            false => self.rests_until(user, id, outcome, now),
        };
        if until == now {
            self.dispatcher.idle.push_back((user, now));
        } else if until == u64::MAX {
            self.retire_user(user);
        } else {
            self.dispatcher.resting.push(Reverse((until, user)));
        }
    }

    /// When a user of a closed loop goes on after its operation `id`; `u64::MAX`: never.
    fn rests_until(&mut self, user: u32, id: u32, outcome: Outcome, now: u64) -> u64 {
        if self.clock.issued_all && self.clock.drain.counted {
            self.clock.note_user_out(now);
        }
        let state = &mut self.users[user as usize];
        state.penalty_ns = match (outcome, state.penalty_ns) {
            (Outcome::Unreachable | Outcome::Disconnected | Outcome::Aborted, before) => {
                (before * 2).clamp(PENALTY_NS.0, PENALTY_NS.1)
            }
            _ => 0,
        };
        let resume = match self.hooks.resume {
            true => self.shared.job.workload.resume_ns(&self.operations.ops[id as usize].first, now),
            false => now,
        };
        resume.max(now + self.dispatcher.think_ns.max(state.penalty_ns))
    }
}
