//! The begin of an operation: a place is taken, its request is bound, and its commands go to connections.

use super::load_thread::LoadThread;
use super::pool::{Awaited, State};
use crate::net::Net;
use dyno_types::driver::UNSENDABLE;
use dyno_types::limits::REDIRECTS;
use dyno_types::{Driver, Outcome};

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Begins an operation of a user; nothing is sent yet.
    pub(super) fn begin(&mut self, user: u32, index: u64, intended: u64, now: u64) -> u32 {
        debug_assert!(intended <= now, "nothing begins before it is due");
        debug_assert!(index < self.dispatcher.index_end, "nothing begins beyond the end");
        debug_assert_ne!(self.recorder.now.warmup, self.clock.measuring, "it would count in the wrong phase");
        let job = &self.shared.job;
        let index = job.own_index(index, job.cores.len() as u64);
        let mut request = job.workload.request(index, &self.shared.frontier);
        // Open loop: by the intended start. A user's next operation belongs to where it starts.
        let mut warm =
            if self.dispatcher.is_open { intended < self.clock.measure_ns } else { !self.clock.measuring };
        let mut is_arrival = true;
        if self.dispatcher.is_recorded {
            match self.begin_step(user, &mut request, intended, warm, now) {
                // Its transaction's first command was the arrival.
                Some(begun_warm) => (warm, is_arrival) = (begun_warm, false),
                // What waits for data is beside the others.
                None => is_arrival = request.limit == 0,
            }
        }
        if is_arrival {
            match warm && self.clock.measuring {
                true => self.recorder.now.carried_arrivals += 1,
                false => self.recorder.now.arrivals += 1,
            }
        }
        if intended < self.clock.measure_ns && !warm {
            // A user that was ready before the phase: what it waited until then is none of it.
            self.clock.clipped_ns -= (self.clock.measure_ns - intended) as i64;
        }
        let keeps_first = self.hooks.scripts || self.hooks.resume;
        let id = self.operations.take_place(user, request, keeps_first);
        let op = &mut self.operations.ops[id as usize];
        (op.warm, op.internal) = (warm, false);
        (op.begun_ns, op.intended_ns, op.first_intended_ns) = (now, intended, intended);
        self.operations.in_flight += 1;
        debug_assert!(self.operations.places_add_up());
        self.counts_begun(user);
        id
    }

    /// Sends the current request of an op from its beginning.
    pub(super) fn send_request(&mut self, id: u32) {
        let count = self.begin_exchange(id);
        self.send_commands(id, 0, count);
    }

    /// Sends commands of an op, each on its user's connection to its node.
    pub(super) fn send_commands(&mut self, id: u32, first: u32, count: u32) {
        let generation = self.operations.ops[id as usize].generation;
        for command in first..first + count {
            let op = &self.operations.ops[id as usize];
            // A refused connection may have ended the op at an earlier command.
            if !op.active || op.generation != generation {
                return;
            }
            let node = self.driver.route(&op.exchange, command);
            let user = op.user;
            if node >= UNSENDABLE {
                let outcome = if node == UNSENDABLE { Outcome::BadRequest } else { Outcome::Unreachable };
                let (message, now) = (self.driver.last_error().to_owned(), self.net.now());
                self.remember(outcome, &message);
                return self.finish(id, outcome, now);
            }
            let connection = self.connection_to(user, node);
            self.send_command(id, command, connection, false);
        }
    }

    /// Appends one command to a connection's output.
    pub(super) fn send_command(&mut self, id: u32, command: u32, connection: u32, ask: bool) {
        debug_assert!(self.operations.ops[id as usize].active, "what has ended sends nothing more");
        if !self.pool.is_open(connection) {
            // The connection was lost, not refused. Reconnect at once: the back-off is only for refused connections.
            if self.pool.connections[connection as usize].refused.is_none() {
                self.open(connection);
            }
            if !self.pool.is_open(connection) {
                let refused = self.pool.connections[connection as usize].refused;
                let now = self.net.now();
                return self.finish(id, refused.unwrap_or(Outcome::Unreachable), now);
            }
        }
        let c = &mut self.pool.connections[connection as usize];
        let op = &mut self.operations.ops[id as usize];
        debug_assert_eq!(c.user, op.user, "a user's commands go out on its own connections");
        op.connection = connection;
        if c.output.capacity() == 0 {
            c.output = self.pool.spare.pop().unwrap_or_default();
        }
        let awaited = Awaited { op: id, generation: op.generation, command, preamble: false };
        if ask {
            self.driver.asking(&mut c.output);
            c.await_reply(Awaited { preamble: true, ..awaited });
        }
        self.driver.encode(&mut op.exchange, command, &mut c.output);
        c.await_reply(awaited);
        if !c.dirty && c.state == State::Ready {
            c.dirty = true;
            self.pool.dirty.push(connection);
        }
    }

    /// Sends a command again to where the server says it belongs.
    pub(super) fn redirect(&mut self, id: u32, command: u32, node: u16, ask: bool, now: u64) {
        self.recorder.now.redirects += 1;
        let op = &mut self.operations.ops[id as usize];
        op.hops += 1;
        if op.hops > REDIRECTS {
            return self.finish(id, Outcome::Redirects, now);
        }
        let user = op.user;
        let connection = self.connection_to(user, node);
        self.send_command(id, command, connection, ask);
    }
}
