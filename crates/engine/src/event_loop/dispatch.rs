//! The dispatch pass: which operation starts now, for which user, and its commands' way onto connections.

use super::state::{Awaited, LoadThread, Op, State};
use crate::net::Net;
use dyno_types::driver::NOWHERE;
use dyno_types::limits::REDIRECTS;
use dyno_types::{Driver, Outcome, Request};
use std::cmp::Reverse;
use std::io;

const SECOND_NS: u64 = 1_000_000_000;
/// Pause of a user after a lost or refused connection, nanoseconds: first and longest.
const PENALTY_NS: (u64, u64) = (1_000_000, 100_000_000);

impl<D: Driver, N: Net> LoadThread<D, N> {
    pub(super) fn dispatch_pass(&mut self) -> io::Result<()> {
        if self.issued_all {
            return Ok(());
        }
        self.renew_pass();
        let now = self.net.now();
        self.end_warmup(now);
        if self.shared.control.stopping() {
            self.stop_issuing(now);
        }
        while let Some(&Reverse((at, user))) = self.resting.peek() {
            if at > now {
                break;
            }
            self.resting.pop();
            self.idle.push_back((user, at));
        }
        if self.issued_all {
            return Ok(());
        }
        if self.schedule.is_some() {
            self.dispatch_open(now)
        } else {
            self.dispatch_closed(now)
        }
        Ok(())
    }

    /// Users that are free start their next operation.
    fn dispatch_closed(&mut self, now: u64) {
        if now >= self.end_ns {
            return self.time_is_over(now, self.end_ns);
        }
        if self.users.is_empty() {
            // A thread without users has nothing to send.
            return self.all_sent(now);
        }
        // Only those that are idle now: one whose operation ends at once waits for the next turn.
        for _ in 0..self.idle.len() {
            let Some((user, since)) = self.idle.pop_front() else { break };
            if self.holds_back(user, since) {
                continue;
            }
            let Some(index) = self.claim(user) else {
                self.runs_out(since);
                if self.per_user {
                    continue;
                }
                self.idle.push_front((user, since));
                return self.all_sent(now);
            };
            let id = self.begin(user, index, since, now);
            self.fill_closed(id, user, since, now);
            self.send_request(id);
        }
        // Decided before a user is free again: an answer that never comes must not keep the end away.
        let nothing_left = match self.per_user {
            true => self.users_with_quota == 0,
            false => self.idle.is_empty() && self.measuring && self.block.is_last(&self.shared.claims),
        };
        if nothing_left {
            self.all_sent(now);
        }
    }

    /// Arrivals that are due start while there are free places; the rest waits, or is dropped beyond the bounds.
    fn dispatch_open(&mut self, now: u64) {
        let limit_ns = self.end_ns.min(now.saturating_add(1));
        self.count_due(limit_ns);
        loop {
            let Some((index, due)) = self.schedule.as_ref().map(|s| s.peek()) else { return };
            let intended = self.epoch_ns + due;
            if intended >= self.end_ns {
                return self.time_is_over(now, self.end_ns);
            }
            if index >= self.index_end {
                return self.all_sent(now);
            }
            if intended > now {
                return;
            }
            let waited = intended <= self.starved_ns;
            let outlasts_end = self.shared.job.queue.outlasts_end && !self.shared.control.stopping();
            if waited && now >= self.end_ns && !outlasts_end {
                self.abandon_queue(Outcome::Aborted);
                return self.time_is_over(now, self.end_ns);
            }
            if self.beyond_bounds(now, intended) {
                self.advance();
                self.drop_arrival(index, intended, Outcome::Dropped);
                continue;
            }
            let Some((user, since_ns)) = self.idle.pop_front() else {
                self.starved_ns = now;
                return;
            };
            if self.holds_back(user, since_ns) {
                self.free_ns.pop();
                continue;
            }
            self.advance();
            let id = self.begin(user, index, intended, now);
            let op = &mut self.ops[id as usize];
            op.ideal_ns = self.free_ns.pop().map_or(now, |Reverse(free_ns)| free_ns);
            op.ready_ns = since_ns;
            op.begins_from(intended);
            self.fill_open(id, user, now);
            self.send_request(id);
        }
    }

    fn beyond_bounds(&self, now: u64, intended: u64) -> bool {
        let queue = &self.shared.job.queue;
        let share = (queue.length / self.shared.job.cores.len() as u64).max(1);
        let waiting = self.backlog.saturating_sub(self.idle.len() as u64);
        waiting > share || queue.age_ns.is_some_and(|age| now - intended > age)
    }

    pub(super) fn advance(&mut self) {
        if let Some(schedule) = &mut self.schedule {
            schedule.advance();
        }
        self.backlog = self.backlog.saturating_sub(1);
    }

    /// Runs the second schedule up to now: the queue is the difference of two counters.
    fn count_due(&mut self, until_ns: u64) {
        let Some(due) = &mut self.due else { return };
        loop {
            let (index, at) = due.peek();
            if self.epoch_ns + at >= until_ns || index >= self.index_end {
                break;
            }
            due.advance();
            self.backlog += 1;
        }
        if self.index_end != u64::MAX {
            self.bound_by_count();
        }
        self.recorder.now.backlog =
            self.recorder.now.backlog.max(self.backlog.saturating_sub(self.idle.len() as u64));
    }

    /// An arrival that will not be sent.
    fn drop_arrival(&mut self, index: u64, intended: u64, outcome: Outcome) {
        self.recorder.unanswered(intended);
        let interval = &mut self.recorder.now;
        let kind = self.shared.job.workload.draw(index).kind as usize;
        if intended < self.measure_ns && self.measuring {
            // The arrival's warm-up interval is closed: it counts as an arrival of the warm-up that ended late.
            interval.carried += 1;
            interval.carried_arrivals += 1;
            return;
        }
        interval.outcomes[kind][outcome as usize] += 1;
        if outcome == Outcome::Dropped {
            interval.drop_at((intended - self.epoch_ns) / SECOND_NS);
        } else {
            interval.arrivals += 1;
            interval.ended[outcome as usize] += 1;
        }
    }

    /// The caller has ended the load. Arrivals that are due and find a free connection are sent; users begin nothing more.
    fn stop_issuing(&mut self, now: u64) {
        if self.schedule.is_some() {
            self.end_ns = self.end_ns.min(now.saturating_add(1));
        } else {
            self.time_is_over(now, now);
        }
    }

    /// Ends every arrival that is due and still waits.
    pub(super) fn abandon_queue(&mut self, outcome: Outcome) {
        while self.backlog > 0 {
            let Some((index, due)) = self.schedule.as_ref().map(|s| s.peek()) else { return };
            // One of the warm-up is counted by no outcome.
            if outcome == Outcome::Dropped && self.epoch_ns + due >= self.measure_ns {
                self.recorder.now.undrained += 1;
            }
            self.advance();
            self.drop_arrival(index, self.epoch_ns + due, outcome);
        }
    }

    /// Begins an operation of a user; nothing is sent yet.
    pub(super) fn begin(&mut self, user: u32, index: u64, intended: u64, now: u64) -> u32 {
        let job = &self.shared.job;
        let index = job.own_index(index, job.cores.len() as u64);
        let request = job.workload.request(index, &self.shared.frontier);
        // Open loop: by the intended start. A user's next operation belongs to where it starts.
        let warm = if self.schedule.is_some() { intended < self.measure_ns } else { !self.measuring };
        if warm && self.measuring {
            self.recorder.now.carried_arrivals += 1;
        } else {
            self.recorder.now.arrivals += 1;
        }
        if intended < self.measure_ns && !warm {
            // A user that was ready before the phase: what it waited until then is none of it.
            self.clipped_ns -= (self.measure_ns - intended) as i64;
        }
        let id = self.new_op(user, request);
        let op = &mut self.ops[id as usize];
        (op.warm, op.internal) = (warm, false);
        (op.begun_ns, op.intended_ns, op.first_intended_ns) = (now, intended, intended);
        self.in_flight += 1;
        self.counts_begun(user);
        id
    }

    /// A free slot for an operation, generation kept.
    pub(super) fn new_op(&mut self, user: u32, request: Request) -> u32 {
        let id = self.free_ops.pop().unwrap_or_else(|| {
            self.ops.push(Op {
                generation: 0,
                active: false,
                internal: false,
                warm: false,
                holds_place: true,
                hops: 0,
                attempts: 0,
                verify_ns: 0,
                user: 0,
                connection: 0,
                first: Request::default(),
                request: Request::default(),
                first_outcome: Outcome::Ok,
                begun_ns: 0,
                intended_ns: 0,
                sent_ns: 0,
                ideal_ns: 0,
                ready_ns: 0,
                first_intended_ns: 0,
                first_sent_ns: 0,
                passengers: Vec::new(),
                exchange: D::Exchange::default(),
            });
            self.ops.len() as u32 - 1
        });
        let op = &mut self.ops[id as usize];
        (op.active, op.user, op.request) = (true, user, request);
        if self.hooks.scripts || self.hooks.resume {
            op.first = request;
        }
        op.holds_place = true;
        (op.hops, op.attempts, op.first_outcome) = (0, 0, Outcome::Ok);
        (op.sent_ns, op.first_sent_ns) = (0, 0);
        id
    }

    /// Sends the current request of an op from its beginning.
    pub(super) fn send_request(&mut self, id: u32) {
        let count = self.begin_exchange(id);
        self.send_commands(id, 0, count);
    }

    /// Sends commands of an op, each on its user's connection to its node.
    pub(super) fn send_commands(&mut self, id: u32, first: u32, count: u32) {
        let generation = self.ops[id as usize].generation;
        for command in first..first + count {
            let op = &self.ops[id as usize];
            // A refused connection may have ended the op at an earlier command.
            if !op.active || op.generation != generation {
                return;
            }
            let node = self.driver.route(&op.exchange, command);
            let user = op.user;
            if node == NOWHERE {
                let (words, now) = (self.driver.last_error().to_owned(), self.net.now());
                self.remember(Outcome::Unreachable, &words);
                return self.finish(id, Outcome::Unreachable, now);
            }
            let connection = self.connection_to(user, node);
            self.send_command(id, command, connection, false);
        }
    }

    /// Appends one command to a connection's output.
    pub(super) fn send_command(&mut self, id: u32, command: u32, connection: u32, ask: bool) {
        if !self.is_open(connection) {
            // The connection was lost, not refused. Reconnect at once: the back-off is only for refused connections.
            if self.connections[connection as usize].refused.is_none() {
                self.open(connection);
            }
            if !self.is_open(connection) {
                let refused = self.connections[connection as usize].refused;
                let now = self.net.now();
                return self.finish(id, refused.unwrap_or(Outcome::Unreachable), now);
            }
        }
        let c = &mut self.connections[connection as usize];
        let op = &mut self.ops[id as usize];
        op.connection = connection;
        if c.output.capacity() == 0 {
            c.output = self.spare.pop().unwrap_or_default();
        }
        let awaited = Awaited { op: id, generation: op.generation, command, preamble: false };
        if ask {
            self.driver.asking(&mut c.output);
            c.awaited.push_back(Awaited { preamble: true, ..awaited });
            c.unsent += 1;
        }
        self.driver.encode(&mut op.exchange, command, &mut c.output);
        c.awaited.push_back(awaited);
        c.unsent += 1;
        if !c.dirty && c.state == State::Ready {
            c.dirty = true;
            self.dirty.push(connection);
        }
    }

    fn is_open(&self, connection: u32) -> bool {
        !matches!(self.connections[connection as usize].state, State::Closed { .. })
    }

    /// Sends a command again to where the server says it belongs.
    pub(super) fn redirect(&mut self, id: u32, command: u32, node: u16, ask: bool, now: u64) {
        self.recorder.now.redirects += 1;
        let op = &mut self.ops[id as usize];
        op.hops += 1;
        if op.hops > REDIRECTS {
            return self.finish(id, Outcome::Redirects, now);
        }
        let user = op.user;
        let connection = self.connection_to(user, node);
        self.send_command(id, command, connection, ask);
    }

    /// A request has ended: it is recorded, and its operation goes on or ends too.
    pub(super) fn conclude(&mut self, id: u32, outcome: Outcome, now: u64) {
        let op = &mut self.ops[id as usize];
        op.generation = op.generation.wrapping_add(1);
        if op.internal {
            op.active = false;
            let (connection, round_trip_ns) = (op.connection, now.saturating_sub(op.sent_ns));
            self.free_ops.push(id);
            return self.check_ended(connection, outcome.is_ok().then_some(round_trip_ns));
        }
        match outcome {
            Outcome::Ok => {
                let mut begun_ns = op.begun_ns;
                if self.recorder.ends_gap(now) {
                    // Whichever reply is read first: all that are under way have waited.
                    let under_way = self.ops.iter().filter(|op| op.active && !op.internal);
                    begun_ns = under_way.map(|op| op.begun_ns).min().unwrap_or(begun_ns);
                }
                self.recorder.succeeded(begun_ns, now);
            }
            _ if outcome.is_unanswered() => self.recorder.unanswered(op.begun_ns),
            _ => {}
        }
        let op = &mut self.ops[id as usize];
        let warm_but_late = op.warm && self.measuring;
        let service_ns = if op.sent_ns == 0 { 0 } else { now.saturating_sub(op.sent_ns) };
        let response_ns = now.saturating_sub(op.intended_ns);
        if self.schedule.is_some() {
            // An operation that was never sent held its place all the same.
            let own_ns = if outcome.is_ok() {
                self.induced.part_ns(op.request.metric, op.intended_ns, service_ns)
            } else {
                0
            };
            op.ideal_ns = if op.sent_ns == 0 { now } else { op.ideal_ns + (service_ns - own_ns) };
        }
        // What comes after the first request of a script begins when that has ended, whichever side was late before.
        let first = op.intended_ns == op.first_intended_ns;
        let server_ns = if first { op.ideal_ns.saturating_sub(op.intended_ns) } else { service_ns };
        let request = op.request;
        let spoils =
            !outcome.is_ok() && (!self.hooks.scripts || self.shared.job.workload.spoils(&request, outcome));
        if spoils && op.first_outcome.is_ok() {
            op.first_outcome = outcome;
        }
        let wrong = || self.driver.verified(&op.exchange) == Some(Outcome::Mismatch);
        if self.shared.own.verify.is_some() && outcome.is_ok() && op.first_outcome.is_ok() && wrong() {
            op.first_outcome = Outcome::Mismatch;
        }
        let has_words = outcome.is_error_reply()
            || (outcome == Outcome::Mismatch && request.verb == dyno_types::Verb::Command);
        if has_words && self.errors.iter().all(|(o, _)| *o != outcome) {
            let words = self.driver.last_error().to_owned();
            self.remember(outcome, &words);
        }
        if !warm_but_late {
            self.recorder.now.record(request.metric, outcome, service_ns, response_ns);
            if self.schedule.is_some() && outcome.is_ok() {
                self.recorder.now.record_server(request.metric, server_ns);
            }
            self.record_own(id, outcome, now, service_ns, response_ns);
            if self.timed && !outcome.is_unanswered() {
                self.shared.job.workload.timed(&request, service_ns, now.saturating_sub(self.epoch_ns));
            }
        }
        if !outcome.is_ok() && self.try_again(id, outcome, now) {
            return;
        }
        if self.hooks.answered {
            let records = self.driver.records(&self.ops[id as usize].exchange);
            self.shared.job.workload.answered(&request, outcome, records);
        }
        if self.hooks.settled {
            self.shared.job.workload.settled(&request, &self.shared.frontier);
        }
        if self.hooks.scripts
            && let Some(next) = self.shared.job.workload.next(&request, outcome)
        {
            let op = &mut self.ops[id as usize];
            (op.request, op.intended_ns, op.begun_ns, op.sent_ns, op.hops) = (next, now, now, 0, 0);
            return self.send_request(id);
        }
        self.end_operation(id, now, warm_but_late);
    }

    /// Plans another attempt of a failed insert; false if there is none.
    #[cold]
    fn try_again(&mut self, id: u32, outcome: Outcome, now: u64) -> bool {
        let op = &mut self.ops[id as usize];
        let Some(retry) = self.shared.job.retry.filter(|r| op.attempts < r.limit) else { return false };
        let over = outcome == Outcome::Aborted || self.shared.control.stopping();
        if op.request.verb != dyno_types::Verb::Insert || over {
            return false;
        }
        op.attempts += 1;
        op.first_outcome = Outcome::Ok;
        let at = now + retry.pause_ns(op.request.seed, op.attempts);
        op.ideal_ns += at - now;
        // The time-out of the next attempt begins with it.
        (op.begun_ns, op.sent_ns, op.hops) = (at, 0, 0);
        self.retries.push(Reverse((at, id)));
        true
    }

    /// Sends inserts whose pause is over once more.
    pub(super) fn retry_pass(&mut self, now: u64) {
        while let Some(&Reverse((at, id))) = self.retries.peek() {
            if at > now {
                break;
            }
            self.retries.pop();
            // An op that was ended meanwhile (or ended and used anew) is not waiting for this.
            let op = &self.ops[id as usize];
            if op.active && op.begun_ns == at && op.sent_ns == 0 {
                self.send_request(id);
            }
        }
    }

    /// Records what the engine derives from a request: verification, a scan's share per record, raw samples.
    fn record_own(&mut self, id: u32, outcome: Outcome, now: u64, service_ns: u64, response_ns: u64) {
        let op = &self.ops[id as usize];
        let interval = &mut self.recorder.now;
        let (keep, done_ns) = (self.shared.job.raw_samples, now.saturating_sub(self.epoch_ns));
        let sample = |metric, outcome, service_ns, response_ns| dyno_record::Sample {
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
        if keep {
            interval.samples.push(sample(op.request.metric, outcome, service_ns, response_ns));
        }
    }

    /// The operation has ended: its arrival gets its outcome, and its user becomes free.
    fn end_operation(&mut self, id: u32, now: u64, warm_but_late: bool) {
        let op = &mut self.ops[id as usize];
        let seen_again = self.hooks.scripts || self.hooks.resume;
        let (outcome, first) = (op.first_outcome, if seen_again { op.first } else { op.request });
        let (user, holds_place) = (op.user, op.holds_place);
        op.active = false;
        let (warm, intended_ns) = (op.warm, op.first_intended_ns);
        self.count_completion(warm_but_late, outcome, now);
        if self.schedule.is_none() && (warm || now + self.think_ns() > self.bound_ns) {
            self.clip(warm, intended_ns, now);
        }
        let op = &self.ops[id as usize];
        let interval = &mut self.recorder.now;
        if warm_but_late {
            interval.carried += 1;
        } else {
            interval.ended[outcome as usize] += 1;
            if self.schedule.is_some() && outcome.is_ok() {
                interval.ideal.record(op.ideal_ns - op.first_intended_ns);
            }
            if self.hooks.scripts
                && let Some(metric) = self.shared.job.workload.script(&first)
            {
                let service_ns = if op.first_sent_ns == 0 { 0 } else { now - op.first_sent_ns };
                let response_ns = now - op.first_intended_ns;
                let done_ns = now - self.epoch_ns;
                let sample = dyno_record::Sample { metric, outcome, done_ns, service_ns, response_ns };
                interval.record_sample(sample, self.shared.job.raw_samples);
                if self.schedule.is_some() && outcome.is_ok() {
                    interval.record_server(metric, op.ideal_ns - op.first_intended_ns);
                }
            }
        }
        let ideal_ns = op.ideal_ns;
        self.free_ops.push(id);
        self.in_flight -= 1;
        self.counts_ended(user);
        if holds_place {
            self.release(user, &first, outcome, now, ideal_ns);
        }
    }

    fn release(&mut self, user: u32, first: &Request, outcome: Outcome, now: u64, ideal_ns: u64) {
        let think_ns = match self.shared.job.pacing {
            crate::job::Pacing::Closed { think_ns } => think_ns,
            // A place on a connection: the schedule alone decides.
            crate::job::Pacing::Open { .. } => {
                self.free_ns.push(Reverse(ideal_ns));
                return self.idle.push_back((user, now));
            }
        };
        if self.issued_all && self.drain.counted {
            self.runs_out(now);
        }
        let state = &mut self.users[user as usize];
        let lost = matches!(outcome, Outcome::Unreachable | Outcome::Disconnected | Outcome::Aborted);
        state.penalty_ns = match (lost, state.penalty_ns) {
            (false, _) => 0,
            (true, 0) => PENALTY_NS.0,
            (true, before) => (before * 2).min(PENALTY_NS.1),
        };
        let resume = if self.hooks.resume { self.shared.job.workload.resume_ns(first, now) } else { now };
        let until = resume.max(now + think_ns.max(state.penalty_ns));
        if resume == u64::MAX {
            self.gone(user);
        } else if until == now {
            self.idle.push_back((user, now));
        } else {
            self.resting.push(Reverse((until, user)));
        }
    }
}
