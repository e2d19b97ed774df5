//! Connections: opening, greeting, losing and flushing them.

use super::load_thread::LoadThread;
use super::operations::Op;
use super::pool::{CHECKER, State};
use super::receive::PASS_NS;
use crate::files::OutOfFiles;
use crate::job::Clock;
use crate::net::{Net, Patience, Ready};
use crate::run_error::RunError;
use dyno_types::driver::UNSENDABLE;
use dyno_types::limits::BACKOFF_NS;
use dyno_types::{ConnectionStep, Driver, Outcome, RefusalCode, Refused};
use std::collections::VecDeque;
use std::io;

/// Connections that may be opening at once: a server's accept queue holds 511 by default.
const OPENING: usize = 128;
/// One connection in this many is asked for the kernel's arrival times where these do not end service times.
const STAMPED_EVERY: usize = 16;
/// Longest time for one connection to be opened.
const OPEN_NS: u64 = 5_000_000_000;
/// Time between two looks at connections that are being opened before a phase, nanoseconds.
const OPENING_LOOK_NS: u64 = 10_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Opens every user's connection to every node that serves something. An error names the node and the reason.
    pub fn connect_all(&mut self) -> Result<(), RunError> {
        let failed = |outcome, message| Err(RunError::Unreachable { outcome, message });
        let nodes = self.driver.wanted();
        let mut wanted: VecDeque<(u32, u16)> = (0..self.users.len() as u32)
            .filter(|user| !self.is_late(*user))
            .flat_map(|user| nodes.iter().map(move |&node| (user, node)))
            .collect();
        self.open_monitors();
        let patience_ns = OPEN_NS + self.users.len() as u64 * 1_000_000;
        let mut patience = Patience::new(self.net.now(), patience_ns, OPENING_LOOK_NS);
        while !wanted.is_empty() || self.pool.unsettled > 0 {
            while self.pool.unsettled < OPENING {
                let Some((user, node)) = wanted.pop_front() else { break };
                self.connection_to(user, node);
            }
            let now = self.net.now();
            self.net.wait(now, now + OPENING_LOOK_NS, &mut self.pool.ready)?;
            self.receive_pass()?;
            match self.errors.pop() {
                Some((Outcome::Aborted, text)) => {
                    return Err(Refused::new(RefusalCode::Limit, "users", text).into());
                }
                Some((outcome, text)) => return failed(outcome, text),
                None => {}
            }
            if self.shared.control.is_stopping() {
                return failed(Outcome::Aborted, "interrupted while connecting".into());
            }
            if patience.count_wait(self.net.now()) == 0 {
                return failed(Outcome::Unreachable, "no answer to the connection attempt in time".into());
            }
        }
        Ok(())
    }

    /// The user's connection to a node, opened if it does not exist yet.
    #[inline]
    pub(super) fn connection_to(&mut self, user: u32, node: u16) -> u32 {
        debug_assert!(node < UNSENDABLE, "what goes nowhere needs no connection");
        match self.users[user as usize].connections.get(node as usize) {
            Some(&Some(id)) => {
                debug_assert_eq!(self.pool.connections[id as usize].user, user);
                debug_assert_eq!(self.pool.connections[id as usize].node, node);
                id
            }
            _ => self.open_first(user, node),
        }
    }

    /// A user's first connection to a node.
    #[cold]
    fn open_first(&mut self, user: u32, node: u16) -> u32 {
        let id = self.pool.add_connection(user, node);
        let connections = &mut self.users[user as usize].connections;
        connections.resize(connections.len().max(node as usize + 1), None);
        connections[node as usize] = Some(id);
        self.open(id);
        id
    }

    /// Begins to open a closed connection.
    pub(super) fn open(&mut self, id: u32) {
        let now = self.net.now();
        let c = &mut self.pool.connections[id as usize];
        debug_assert!(
            !matches!(c.state, State::Opening { .. } | State::Greeting { .. }),
            "it would count twice as being opened"
        );
        debug_assert!(c.socket.is_none(), "the socket before would be lost without being closed");
        debug_assert!(c.awaited.is_empty(), "replies belong to the connection on which they were asked for");
        debug_assert!(
            c.input.is_empty(),
            "bytes of the connection before would be read as replies of this one"
        );
        debug_assert!(c.output.is_empty(), "commands that have ended would be sent all the same");
        debug_assert_eq!(c.written, 0);
        let Some(endpoint) = self.driver.endpoints().get(c.node as usize) else { return };
        let by_kernel = self.shared.job.stamps != Clock::Client;
        let stamped = by_kernel || (id as usize).is_multiple_of(STAMPED_EVERY);
        match self.net.connect(endpoint, id, stamped) {
            Ok(socket) => {
                c.socket = Some(socket);
                c.state = State::Opening { since_ns: now };
                c.watching = true;
                self.pool.unsettled += 1;
            }
            Err(error) => {
                let text = format!("{endpoint}: {error}");
                c.state = State::Opening { since_ns: now };
                self.pool.unsettled += 1;
                // A limit on what this process may open says nothing of the server.
                let own = OutOfFiles::limit_behind(&error).is_some();
                self.lose(id, if own { Outcome::Aborted } else { Outcome::Unreachable }, &text);
            }
        }
    }

    /// Something happened to a connection that is being opened.
    pub(super) fn opening(&mut self, id: u32, _event: Ready) {
        let c = &mut self.pool.connections[id as usize];
        let Some(socket) = c.socket.as_mut() else { return };
        match self.net.established(socket, id) {
            Ok(false) => {}
            Ok(true) => {
                let _ = self.net.watch_write(socket, id, false);
                c.watching = false;
                let mut greeting = self.pool.spare.pop().unwrap_or_default();
                let greets = match c.user {
                    CHECKER => self.driver.hello_for_checks(c.node, id, &mut greeting),
                    _ => self.driver.hello(c.node, id, &mut greeting),
                };
                if greets {
                    let since_ns = self.net.now();
                    let c = &mut self.pool.connections[id as usize];
                    c.state = State::Greeting { reply: 0, since_ns };
                    let sent = c.socket.as_mut().map(|s| self.net.send(s, &greeting));
                    match sent {
                        Some(Ok(n)) if n == greeting.len() => {}
                        // A greeting always fits an empty socket buffer.
                        _ => self.lose(id, Outcome::Unreachable, "the greeting could not be sent"),
                    }
                } else {
                    self.welcome(id);
                }
                greeting.clear();
                self.pool.spare.push(greeting);
            }
            Err(error) => {
                let text = self.naming(id, &error.to_string());
                self.lose(id, Outcome::Unreachable, &text);
            }
        }
    }

    /// The connection is ready for operations.
    pub(super) fn welcome(&mut self, id: u32) {
        let now = self.net.now();
        let c = &mut self.pool.connections[id as usize];
        debug_assert!(matches!(c.state, State::Opening { .. } | State::Greeting { .. }), "it is ready once");
        debug_assert!(self.pool.unsettled > 0);
        c.state = State::Ready;
        // No client could have sent earlier what waits for this.
        for reply in &c.awaited {
            let op = &mut self.operations.ops[reply.op as usize];
            if op.active && op.generation == reply.generation && op.sent_ns == 0 {
                op.begins_from(now);
            }
        }
        c.backoff_ns = BACKOFF_NS.0;
        c.timeouts = 0;
        c.refused = None;
        self.pool.unsettled -= 1;
        let renewed = c.renewed;
        let was_there = renewed && c.ever_ready;
        if c.ever_ready && c.user != CHECKER && !renewed {
            self.recorder.now.reconnects += 1;
        }
        c.ever_ready = true;
        let user = c.user;
        if !c.output.is_empty() && !c.dirty {
            c.dirty = true;
            self.pool.dirty.push(id);
        }
        // One that is made anew on purpose counts as there all the time.
        if !was_there {
            self.count_ready(user, true, now);
        }
        if renewed {
            self.renewal_ends(id);
        }
    }

    /// `text` with the node's name before it.
    pub(super) fn naming(&self, id: u32, text: &str) -> String {
        let node = self.pool.connections[id as usize].node as usize;
        match self.driver.endpoints().get(node) {
            Some(endpoint) => format!("{endpoint}: {text}"),
            None => text.to_owned(),
        }
    }

    /// Closes a connection, ends the operations under way on it, and plans the next attempt.
    pub(super) fn lose(&mut self, id: u32, outcome: Outcome, text: &str) {
        debug_assert!(self.pool.is_open(id), "a connection is lost once");
        debug_assert!(!outcome.is_ok(), "it would end operations well");
        let now = self.net.now();
        // What a check meets explains no operation.
        if self.pool.connections[id as usize].user != CHECKER || self.clock.epoch_ns == 0 {
            self.remember(outcome, text);
        }
        let c = &self.pool.connections[id as usize];
        let renewed = c.renewed;
        if c.state == State::Ready || (renewed && c.ever_ready) {
            self.count_ready(c.user, false, now);
        }
        let c = &mut self.pool.connections[id as usize];
        if let Some(socket) = c.socket.take() {
            self.net.close(socket);
        }
        let opening = matches!(c.state, State::Opening { .. } | State::Greeting { .. });
        let step = match c.state {
            _ if c.user == CHECKER => ConnectionStep::Check,
            State::Opening { .. } | State::Greeting { reply: 0, .. } => ConnectionStep::Opening,
            State::Greeting { .. } => ConnectionStep::Login,
            State::Ready | State::Closed { .. } => ConnectionStep::Ready,
        };
        let own = outcome == Outcome::Aborted;
        c.refused = opening.then_some(if own { Outcome::Aborted } else { Outcome::Unreachable });
        if opening {
            debug_assert!(self.pool.unsettled > 0);
            self.pool.unsettled -= 1;
        }
        let retry_ns = now + c.backoff_ns;
        c.backoff_ns = (c.backoff_ns * 2).min(BACKOFF_NS.1);
        c.state = State::Closed { retry_ns };
        (c.unsent, c.written, c.timeouts) = (0, 0, 0);
        c.input = Vec::new();
        c.output.clear();
        let awaited = std::mem::take(&mut c.awaited);
        let node = c.node;
        if !self.pool.retrying.contains(&id) {
            self.pool.retrying.push(id);
        }
        self.pool.next_retry_ns = self.pool.next_retry_ns.min(retry_ns);
        self.driver.lost(node, id, step);
        let user = self.pool.connections[id as usize].user;
        let is_last_used =
            |user: u32| self.users.get(user as usize).is_some_and(|own| own.recorded.node == node);
        if self.dispatcher.is_recorded && user != CHECKER && self.clock.epoch_ns != 0 && is_last_used(user) {
            // Also where nothing was under way: what the connection was told before is forgotten.
            self.shared.job.workload.connection_lost(self.dispatcher.user_number(user));
        }
        for reply in awaited {
            if !self.operations.is_current(reply) {
                continue;
            }
            let op = &mut self.operations.ops[reply.op as usize];
            let passes = matches!(outcome, Outcome::Disconnected | Outcome::Unreachable) && !op.internal;
            let sent = op.sent_ns != 0;
            if passes && self.driver.lost_command(&mut op.exchange, reply.command, sent) {
                self.park_command(reply.op, reply.command, outcome, 0, now);
            } else {
                self.finish(reply.op, outcome, now);
            }
        }
        if renewed {
            self.renewal_ends(id);
        }
    }

    /// Hands every connection's output to its socket.
    pub(super) fn flush_pass(&mut self) {
        let mut dirty = std::mem::take(&mut self.pool.dirty);
        for id in dirty.drain(..) {
            self.flush(id);
        }
        // Losing a connection while flushing may have made others dirty: they go out in the next turn.
        if self.pool.dirty.is_empty() {
            self.pool.dirty = dirty;
        }
    }

    fn flush(&mut self, id: u32) {
        debug_assert!(self.pool.connections[id as usize].dirty, "the list of the dirty ones has each once");
        self.pool.connections[id as usize].dirty = false;
        let c = &self.pool.connections[id as usize];
        // Watched: TLS may hold bytes of an output that is empty by now.
        if c.state != State::Ready {
            return;
        }
        let sends_nothing = c.output.is_empty() && !c.watching;
        if sends_nothing && c.unsent == 0 {
            return;
        }
        let stamp = self.net.now();
        self.stamp(id, stamp);
        // A request that sends nothing, because it waits for a message, waits from now on.
        if sends_nothing {
            return;
        }
        let c = &mut self.pool.connections[id as usize];
        let Some(socket) = c.socket.as_mut() else { return };
        match self.net.send(socket, &c.output[c.written..]) {
            Ok(n) => {
                c.written += n;
                debug_assert!(c.written <= c.output.len(), "no more was taken than was handed over");
                let all_taken = c.written == c.output.len();
                let blocked = !all_taken || self.net.has_unsent(socket);
                if all_taken && n > 0 {
                    let mut done = std::mem::take(&mut c.output);
                    done.clear();
                    c.written = 0;
                    self.pool.spare.push(done);
                }
                if blocked != c.watching {
                    c.watching = blocked;
                    // If watching fails, the connection is broken and receiving will say so.
                    let _ = self.net.watch_write(socket, id, blocked);
                }
            }
            Err(error) => {
                // Replies that came before the connection broke have been given.
                self.receive(id, true, PASS_NS);
                if self.pool.connections[id as usize].state == State::Ready {
                    let text = self.naming(id, &error.to_string());
                    self.lose(id, Outcome::Disconnected, &text);
                }
            }
        }
    }

    /// Notes the time of sending in every op whose bytes go out now for the first time.
    fn stamp(&mut self, id: u32, stamp: u64) {
        let c = &mut self.pool.connections[id as usize];
        let from = c.awaited.len() - c.unsent.min(c.awaited.len());
        c.unsent = 0;
        let open_loop = self.dispatcher.is_open;
        for reply in c.awaited.range(from..) {
            let op: &mut Op<_> = &mut self.operations.ops[reply.op as usize];
            if !op.active || op.generation != reply.generation || op.sent_ns != 0 {
                continue;
            }
            // 0 is a moment of virtual time, and means "not sent" here.
            op.sent_ns = stamp.max(1);
            let first = op.first_sent_ns == 0;
            if first {
                op.first_sent_ns = stamp.max(1);
            }
            debug_assert!(op.begun_ns <= stamp, "nothing is sent before it begins");
            debug_assert!(op.first_sent_ns <= op.sent_ns);
            if op.internal || op.warm || !first {
                continue;
            }
            let op = &self.operations.ops[reply.op as usize];
            let interval = &mut self.recorder.now;
            if open_loop {
                // A batch is late by its leader, when a client that is never late would have sent all of it.
                let (late_ns, held_ns) =
                    (stamp.saturating_sub(op.ideal_ns), stamp.saturating_sub(op.ready_ns));
                for _ in 0..=op.passengers.len() {
                    interval.lag.record(late_ns);
                    self.dispatcher.induced.note_sent(stamp, held_ns);
                }
            } else {
                interval.turnaround.record(stamp.saturating_sub(op.intended_ns));
                for &passenger in &op.passengers {
                    let intended_ns = self.operations.ops[passenger as usize].intended_ns;
                    interval.turnaround.record(stamp.saturating_sub(intended_ns));
                }
            }
        }
    }

    /// Closes everything; one CLEANUP sample per user where the workload has that metric.
    pub(super) fn clean_up(&mut self) {
        for monitor in std::mem::take(&mut self.pool.monitors) {
            let connection = monitor.connection.map(|id| &mut self.pool.connections[id as usize]);
            if let Some(socket) = connection.and_then(|c| c.socket.take()) {
                self.net.close(socket);
            }
        }
        for user in 0..self.users.len() {
            let begun = self.net.now();
            for id in std::mem::take(&mut self.users[user].connections).into_iter().flatten() {
                if let Some(socket) = self.pool.connections[id as usize].socket.take() {
                    self.net.close(socket);
                }
            }
            if let Some(metric) = self.shared.own.cleanup {
                let now = self.net.now();
                let (took, done_ns) = (now - begun, now - self.clock.epoch_ns);
                let (outcome, service_ns, response_ns) = (Outcome::Ok, took, took);
                let sample = dyno_record::RawSample { metric, outcome, done_ns, service_ns, response_ns };
                self.recorder.now.record_sample(sample, self.shared.job.raw_samples);
            }
        }
    }

    /// Attempts that have taken too long are given up.
    pub(super) fn sweep_openings(&mut self, now: u64) -> io::Result<()> {
        if self.pool.unsettled == 0 {
            return Ok(());
        }
        for id in 0..self.pool.connections.len() as u32 {
            let (since, outcome) = match self.pool.connections[id as usize].state {
                State::Opening { since_ns } => (since_ns, Outcome::Unreachable),
                State::Greeting { since_ns, .. } => (since_ns, Outcome::Disconnected),
                _ => continue,
            };
            if now > since + OPEN_NS {
                let text = self.naming(id, "no answer to the connection attempt");
                self.lose(id, outcome, &text);
                if outcome == Outcome::Disconnected {
                    // One that took the connection and says nothing has refused no request: what needs it waits for its own time.
                    self.pool.connections[id as usize].refused = None;
                }
            }
        }
        Ok(())
    }
}
