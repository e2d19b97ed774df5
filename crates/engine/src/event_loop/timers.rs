//! Events that happen by time: the interval's swap, the end of the warm-up, time-outs, reconnecting, asking for the topology.

use super::load_thread::LoadThread;
use super::operations::Op;
use super::pool::{CHECKER, State};
use crate::net::Net;
use dyno_types::{Driver, Outcome, Request};
use std::io;

/// Pause between two looks whether a connection is wanted, nanoseconds.
const LOOK_NS: u64 = 10_000_000;
/// Connections that one look at what is ready takes in at least.
const READY: usize = 256;

/// How often commands that wait for data are looked after, nanoseconds.
const WAIT_SWEEP_NS: u64 = 100_000_000;

/// The time that a recorded command may wait for data, nanoseconds; `None` for one that does not.
fn wait_limit_ns(is_recorded: bool, request: &Request) -> Option<u64> {
    (is_recorded && request.limit > 0).then(|| u64::from(request.limit) * 1_000_000)
}

/// Pause between two looks for time-outs, nanoseconds.
fn sweep_every_ns(timeout_ns: u64) -> u64 {
    (timeout_ns / 16).clamp(1_000_000, 100_000_000)
}

/// Pause between two questions for the topology, nanoseconds.
const TOPOLOGY_NS: u64 = 100_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Begins what is counted from `now` on.
    pub(super) fn begin_turn(&mut self, now: u64) {
        self.end_warmup(now);
        if now >= self.clock.next_swap_ns {
            self.count_users(now);
            let interval_ns = self.shared.job.interval_ns;
            let number = (now - self.clock.epoch_ns) / interval_ns;
            debug_assert!(number >= self.recorder.now.number, "an interval that was handed over comes again");
            match N::VIRTUAL {
                true => self.recorder.swap_waiting(number, !self.clock.measuring),
                false => self.recorder.swap_interval(number, !self.clock.measuring),
            }
            self.clock.next_swap_ns = self.clock.epoch_ns + (number + 1) * interval_ns;
        }
        debug_assert!(self.clock.next_swap_ns > now);
    }

    /// Does everything that is due by `now`. What had arrived when the thread woke up has been received: a reply that is there
    /// ends its operation before any time-out does.
    pub(super) fn tick(&mut self, now: u64) -> io::Result<()> {
        if now >= self.pool.next_sweep_ns {
            self.sweep(now)?;
        }
        if now >= self.pool.next_retry_ns && !self.pool.retrying.is_empty() {
            self.reconnect(now);
        }
        self.late_pass(now);
        self.retry_pass(now);
        self.parked_pass(now);
        if now >= self.pool.next_check_ns {
            self.monitor_pass(now);
        }
        if self.driver.wants_topology() && now >= self.pool.next_topology_ns {
            self.ask_topology(now);
        }
        let late = self.clock.end_ns.saturating_add(self.shared.job.drain_ns);
        if !self.clock.issued_all && self.dispatcher.schedule.is_some() && now >= late {
            self.abandon_queue(Outcome::Dropped);
        }
        self.drain_pass(now)
    }

    /// Receives what has arrived by now. A thread that was stopped while it slept is woken without being told what is ready;
    /// replies then lie in the sockets of operations whose time seems to be over.
    pub(super) fn catch_up(&mut self) -> io::Result<()> {
        if N::VIRTUAL {
            return Ok(());
        }
        // Each look takes in a number of connections, and they take turns.
        for _ in 0..2 + self.pool.connections.len() / READY {
            let now = self.net.now();
            self.net.wait(now, now, &mut self.pool.ready)?;
            if self.pool.ready.is_empty() {
                break;
            }
            self.receive_pass()?;
        }
        Ok(())
    }

    /// Ends the warm-up when it is over. Asked before every dispatch too: an arrival of the measured part must not be
    /// counted in the warm-up's interval.
    #[inline]
    pub(super) fn end_warmup(&mut self, now: u64) {
        if !self.clock.measuring && now >= self.clock.measure_ns {
            self.count_users(self.clock.measure_ns);
            self.clock.measuring = true;
            self.recorder
                .end_warmup((self.clock.measure_ns - self.clock.epoch_ns) / self.shared.job.interval_ns);
            debug_assert!(!self.recorder.now.warmup, "what is measured would count as warm-up");
        }
    }

    /// Ends operations whose time is over. A second time-out on one connection closes it.
    fn sweep(&mut self, now: u64) -> io::Result<()> {
        // Openings are looked after here too; a refusal is an outcome, never an error of the run.
        let _ = self.sweep_openings(now);
        let timeout_ns = self.shared.job.timeout_ns;
        let waits = self.dispatcher.is_recorded;
        if timeout_ns.is_none() && !waits {
            self.pool.next_sweep_ns = now + 1_000_000_000;
            return Ok(());
        }
        let sweep_ns = timeout_ns.map_or(u64::MAX, sweep_every_ns);
        self.pool.next_sweep_ns = now + if waits { sweep_ns.min(WAIT_SWEEP_NS) } else { sweep_ns };
        // Checks of nodes have a time-out of their own.
        let is_overdue = |thread: &Self, op: &Op<D::Exchange>| {
            let limit_ns = wait_limit_ns(waits, &op.request).or(timeout_ns);
            op.active
                && op.user != CHECKER
                && limit_ns.is_some_and(|limit_ns| thread.waited_ns(op, now) >= limit_ns)
        };
        if self.operations.ops.iter().any(|op| is_overdue(self, op)) {
            self.catch_up()?;
        }
        for id in 0..self.operations.ops.len() as u32 {
            let op = &self.operations.ops[id as usize];
            if !is_overdue(self, op) {
                continue;
            }
            let connection = op.connection;
            let never_sent = op.sent_ns == 0;
            if wait_limit_ns(waits, &op.request).is_some() {
                self.cut_wait(id, now);
                continue;
            }
            if waits && self.is_behind_wait(id) {
                continue;
            }
            self.finish(id, Outcome::TimedOut, now);
            let c = &mut self.pool.connections[connection as usize];
            if never_sent || c.state != State::Ready {
                continue;
            }
            c.timeouts += 1;
            let node = c.node;
            if c.timeouts == 1 {
                self.driver.timed_out(node);
            } else {
                let text = self.naming(connection, "closed after two time-outs");
                self.lose(connection, Outcome::Disconnected, &text);
            }
        }
        Ok(())
    }

    /// Ends a recorded command that has waited for data for as long as it may. Its connection is made anew: the reply to it would
    /// come before those to others.
    fn cut_wait(&mut self, id: u32, now: u64) {
        let op = &self.operations.ops[id as usize];
        let (connection, user) = (op.connection, op.user);
        self.finish(id, Outcome::TimedOut, now);
        let c = &self.pool.connections[connection as usize];
        if c.state != State::Ready {
            return;
        }
        if c.awaited.iter().any(|reply| self.operations.is_current(*reply)) {
            let text = self.naming(connection, "closed after a wait for data, with commands behind it");
            // The server had to keep them waiting.
            return self.lose(connection, Outcome::Aborted, &text);
        }
        self.shared.job.workload.connection_lost(self.dispatcher.user_number(user));
        self.renew(connection);
    }

    /// The time that the server has had for an operation by `now`, nanoseconds. What the client held back before it sent is no
    /// wait for the server, and what a wait for data before it has taken is none of its making.
    #[inline]
    fn waited_ns(&self, op: &Op<D::Exchange>, now: u64) -> u64 {
        now.saturating_sub(self.served_ns(op).max(op.first_sent_ns))
    }

    /// When an operation began that the server could answer from then on: behind a wait for data, when that had ended.
    #[inline]
    pub(super) fn served_ns(&self, op: &Op<D::Exchange>) -> u64 {
        match self.dispatcher.is_recorded && op.sent_ns != 0 {
            true => op.begun_ns.max(self.pool.connections[op.connection as usize].wait_ended_ns),
            false => op.begun_ns,
        }
    }

    /// The same of the first of the operations that the server could answer now.
    pub(super) fn first_served_ns(&self) -> Option<u64> {
        let is_recorded = self.dispatcher.is_recorded;
        let ops = (0..).zip(&self.operations.ops).filter(|(_, op)| op.active && !op.internal);
        let served =
            ops.filter(|(id, op)| !is_recorded || op.request.limit == 0 && !self.is_behind_wait(*id));
        served.map(|(_, op)| self.served_ns(op)).min()
    }

    /// Returns whether an operation is in a pipeline behind one that waits for data: the server must keep it waiting.
    fn is_behind_wait(&self, id: u32) -> bool {
        let op = &self.operations.ops[id as usize];
        let before = self.pool.connections[op.connection as usize].awaited.iter();
        let mut before = before.take_while(|reply| reply.op != id);
        before.any(|reply| {
            self.operations.is_current(*reply) && self.operations.ops[reply.op as usize].request.limit > 0
        })
    }

    /// Returns whether what is under way waits for data, and nothing else is.
    pub(super) fn only_waits(&self) -> bool {
        let mut under_way = self.operations.ops.iter().filter(|op| op.active && !op.internal);
        self.dispatcher.is_recorded
            && self.operations.in_flight > 0
            && under_way.all(|op| op.request.limit > 0)
    }

    /// Returns whether a reply that the kernel stamped came after the time-out of its operation, and later than a client that is
    /// never late would have noticed.
    #[inline]
    pub(super) fn came_too_late(&self, id: u32, came_ns: u64) -> bool {
        let op = &self.operations.ops[id as usize];
        let waited_ns = self.waited_ns(op, came_ns);
        let limit_ns = match wait_limit_ns(self.dispatcher.is_recorded, &op.request) {
            Some(_) => None,
            None => self.shared.job.timeout_ns,
        };
        limit_ns.is_some_and(|limit_ns| waited_ns >= limit_ns + sweep_every_ns(limit_ns))
    }

    fn reconnect(&mut self, now: u64) {
        self.pool.next_retry_ns = u64::MAX;
        let wanted = !self.clock.issued_all
            || !self.operations.parked.is_empty()
            || !self.dispatcher.retries.is_empty();
        let mut waiting = std::mem::take(&mut self.pool.retrying);
        let rest_ns = self.driver.heartbeat_ns().unwrap_or(0);
        waiting.retain(|&id| match self.pool.connections[id as usize].state {
            State::Closed { retry_ns } if retry_ns <= now && wanted => {
                if self.driver.is_checked(self.pool.connections[id as usize].node) {
                    self.open(id);
                    return false;
                }
                // A node that has left may come back.
                self.pool.connections[id as usize].state = State::Closed { retry_ns: now + rest_ns };
                self.pool.next_retry_ns = self.pool.next_retry_ns.min(now + rest_ns);
                true
            }
            State::Closed { retry_ns } => {
                // No operation wants it now; an insert that is tried again may.
                let look_ns = if wanted { retry_ns } else { retry_ns.max(now + LOOK_NS) };
                self.pool.next_retry_ns = self.pool.next_retry_ns.min(look_ns);
                true
            }
            _ => false,
        });
        // Opening may fail at once and enlist a connection again.
        waiting.append(&mut self.pool.retrying);
        self.pool.retrying = waiting;
    }

    /// Asks any node for the topology.
    fn ask_topology(&mut self, now: u64) {
        self.pool.next_topology_ns = now + TOPOLOGY_NS;
        let n = self.pool.connections.len();
        let start = (now / TOPOLOGY_NS) as usize;
        let found = (0..n).map(|i| (start + i) % n).find(|&i| self.pool.connections[i].state == State::Ready);
        if let Some(connection) = found {
            self.ask_on(connection as u32, now);
        }
    }
}
