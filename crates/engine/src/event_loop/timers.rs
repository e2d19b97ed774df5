//! Events that happen by time: the interval's swap, the end of the warm-up, time-outs, reconnecting, asking for the topology.

use super::state::{Connection, LoadThread, State};
use crate::net::Net;
use dyno_types::{Driver, Outcome, Request, Verb};

/// Pause between two looks whether a connection is wanted, nanoseconds.
const LOOK_NS: u64 = 10_000_000;
/// Pause between two questions for the topology, nanoseconds.
const TOPOLOGY_NS: u64 = 100_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Everything that is due by `now`.
    pub(super) fn tick(&mut self, now: u64) {
        self.end_warmup(now);
        if now >= self.next_swap_ns {
            let interval_ns = self.shared.job.interval_ns;
            let number = (now - self.epoch_ns) / interval_ns;
            match N::VIRTUAL {
                true => self.recorder.swap_waiting(number, !self.measuring),
                false => self.recorder.swap(number, !self.measuring),
            }
            self.next_swap_ns = self.epoch_ns + (number + 1) * interval_ns;
        }
        if now >= self.next_sweep_ns {
            self.sweep(now);
        }
        if now >= self.next_retry_ns && !self.retrying.is_empty() {
            self.reconnect(now);
        }
        self.retry_pass(now);
        self.parked_pass(now);
        if now >= self.next_heartbeat_ns {
            self.ask_all(now);
        }
        if self.driver.wants_topology() && now >= self.next_topology_ns {
            self.ask_topology(now);
        }
        let late = self.end_ns.saturating_add(self.shared.job.drain_ns);
        if !self.issued_all && self.schedule.is_some() && now >= late {
            self.abandon_queue(Outcome::Dropped);
        }
        self.drain_pass(now);
    }

    /// Ends the warm-up when it is over. Asked before every dispatch too: an arrival of the measured part must not be
    /// counted in the warm-up's interval.
    #[inline]
    pub(super) fn end_warmup(&mut self, now: u64) {
        if !self.measuring && now >= self.measure_ns {
            self.measuring = true;
            self.recorder.end_warmup((self.measure_ns - self.epoch_ns) / self.shared.job.interval_ns);
        }
    }

    /// Ends operations whose time is over. A second time-out on one connection closes it.
    fn sweep(&mut self, now: u64) {
        // Openings are looked after here too; a refusal is an outcome, never an error of the run.
        let _ = self.sweep_openings(now);
        let Some(timeout_ns) = self.shared.job.timeout_ns else {
            self.next_sweep_ns = now + 1_000_000_000;
            return;
        };
        self.next_sweep_ns = now + (timeout_ns / 16).clamp(1_000_000, 100_000_000);
        for id in 0..self.ops.len() as u32 {
            let op = &self.ops[id as usize];
            if !op.active || now.saturating_sub(op.begun_ns) < timeout_ns {
                continue;
            }
            let connection = op.connection;
            let never_sent = op.sent_ns == 0;
            self.finish(id, Outcome::TimedOut, now);
            let c = &mut self.connections[connection as usize];
            if never_sent || c.state != State::Ready {
                continue;
            }
            c.timeouts += 1;
            let node = c.node;
            if c.timeouts == 1 {
                // Silence may be a lost node: somebody else may serve its keys by now.
                self.driver.lost(node);
            } else {
                let text = self.naming(connection, "closed after two time-outs");
                self.lose(connection, Outcome::Disconnected, &text);
            }
        }
    }

    fn reconnect(&mut self, now: u64) {
        self.next_retry_ns = u64::MAX;
        let wanted = !self.issued_all || !self.parked.is_empty() || !self.retries.is_empty();
        let mut waiting = std::mem::take(&mut self.retrying);
        waiting.retain(|&id| match self.connections[id as usize].state {
            State::Closed { retry_ns } if retry_ns <= now && wanted => {
                self.open(id);
                false
            }
            State::Closed { retry_ns } => {
                // Nobody wants it now; an insert that is tried again may.
                let look_ns = if wanted { retry_ns } else { retry_ns.max(now + LOOK_NS) };
                self.next_retry_ns = self.next_retry_ns.min(look_ns);
                true
            }
            _ => false,
        });
        // Opening may fail at once and enlist a connection again.
        waiting.append(&mut self.retrying);
        self.retrying = waiting;
    }

    /// Asks any node that can be asked for the topology.
    fn ask_topology(&mut self, now: u64) {
        self.next_topology_ns = now + TOPOLOGY_NS;
        let n = self.connections.len();
        let start = (now / TOPOLOGY_NS) as usize;
        let tells = |connection: &Connection<N::Socket>| {
            connection.state == State::Ready && self.driver.may_tell(connection.node)
        };
        let found = (0..n).map(|i| (start + i) % n).find(|&i| tells(&self.connections[i]));
        if let Some(connection) = found {
            self.ask_on(connection as u32, now);
        }
    }

    /// Asks every node, on the first user's connections.
    fn ask_all(&mut self, now: u64) {
        let every = self.driver.heartbeat_ns().unwrap_or(u64::MAX);
        self.next_heartbeat_ns = now.saturating_add(every);
        if self.users.is_empty() || self.issued_all {
            return;
        }
        for node in 0..self.driver.endpoints().len() as u16 {
            // A node that is new is connected to first; its greeting tells what it is.
            let connection = self.connection_to(0, node);
            if self.connections[connection as usize].state == State::Ready {
                self.ask_on(connection, now);
            }
        }
    }

    fn ask_on(&mut self, connection: u32, now: u64) {
        let (user, node) = {
            let c = &self.connections[connection as usize];
            (c.user, c.node)
        };
        let request = Request { verb: Verb::Topology, ..Request::default() };
        let id = self.new_op(user, request);
        let op = &mut self.ops[id as usize];
        (op.internal, op.begun_ns, op.intended_ns) = (true, now, now);
        self.driver.begin_topology(&mut op.exchange, &request, node, now);
        self.send_command(id, 0, connection, false);
    }
}
