//! Checks of the nodes, for drivers that want them: each node is asked what it is on a connection that nothing else uses, so
//! that a long operation of a user's is no silence of the node.

use super::load_thread::LoadThread;
use super::pool::{CHECKER, Monitor, State};
use crate::net::Net;
use dyno_types::{Driver, Outcome, Request, Verb};

/// Pause between two looks at what is due, nanoseconds.
const PASS_NS: u64 = 10_000_000;
/// Pause between two checks of a node that is in doubt, nanoseconds.
const SOON_NS: u64 = 100_000_000;
/// Pause between two checks of all nodes while operations stay unanswered (`minHeartbeatFrequencyMS`), and the time after which
/// one counts as that, nanoseconds.
const UNANSWERED_NS: u64 = 500_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Opens a connection to each node for its checks, where the driver wants any.
    pub(super) fn open_monitors(&mut self) {
        if self.driver.heartbeat_ns().is_none() || self.users.is_empty() {
            return;
        }
        for node in self.driver.wanted() {
            self.monitor_of(node);
        }
    }

    /// The connection on which a node is checked.
    fn monitor_of(&mut self, node: u16) -> u32 {
        let at = usize::from(node);
        self.pool.monitors.resize(self.pool.monitors.len().max(at + 1), Monitor::default());
        if let Some(connection) = self.pool.monitors[at].connection {
            return connection;
        }
        let connection = self.pool.add_connection(CHECKER, node);
        self.pool.monitors[at].connection = Some(connection);
        self.open(connection);
        connection
    }

    /// Sends the checks that are due, and gives up nodes that leave one unanswered.
    pub(super) fn monitor_pass(&mut self, now: u64) {
        let Some(heartbeat_ns) = self.driver.heartbeat_ns() else {
            self.pool.next_check_ns = u64::MAX;
            return;
        };
        self.pool.next_check_ns = now + PASS_NS;
        if self.users.is_empty() || (self.clock.issued_all && self.operations.in_flight == 0) {
            return;
        }
        if now >= self.operations.next_unanswered_ns {
            self.operations.next_unanswered_ns = now + UNANSWERED_NS;
            self.operations.unanswered = self.operations.has_unanswered(now, UNANSWERED_NS);
        }
        for node in 0..self.driver.endpoints().len() as u16 {
            if !self.driver.is_checked(node) {
                continue;
            }
            let connection = self.monitor_of(node);
            let monitor = self.pool.monitors[usize::from(node)];
            if let Some(asked_ns) = monitor.asked_ns {
                if now.saturating_sub(asked_ns) >= self.driver.check_timeout_ns(node) {
                    match monitor.overdue {
                        true => self.give_up(node, now - asked_ns),
                        false => self.pool.monitors[usize::from(node)].overdue = true,
                    }
                }
                continue;
            }
            let every_ns = match self.operations.unanswered {
                _ if self.driver.is_checked_soon(node) => SOON_NS,
                true => UNANSWERED_NS,
                false => heartbeat_ns,
            };
            let due = now.saturating_sub(monitor.begun_ns) >= every_ns.min(heartbeat_ns);
            if due && self.pool.connections[connection as usize].state == State::Ready {
                let monitor = &mut self.pool.monitors[usize::from(node)];
                (monitor.begun_ns, monitor.asked_ns, monitor.overdue) = (now, Some(now), false);
                self.ask_on(connection, now);
            }
        }
    }

    /// A node does not answer: all connections to it are closed, and what is under way on them ends.
    fn give_up(&mut self, node: u16, silent_ns: u64) {
        self.driver.check_failed(node);
        let message =
            format!("no answer to a check for {:.1} s: its connections are closed", silent_ns as f64 / 1e9);
        for id in 0..self.pool.connections.len() as u32 {
            let c = &self.pool.connections[id as usize];
            if c.node == node && !matches!(c.state, State::Closed { .. }) {
                let text = self.naming(id, &message);
                self.lose(id, Outcome::Disconnected, &text);
            }
        }
        self.pool.monitors[usize::from(node)].asked_ns = None;
    }

    /// A check has ended, after this time if it was answered.
    pub(super) fn check_ended(&mut self, connection: u32, round_trip_ns: Option<u64>) {
        let c = &self.pool.connections[connection as usize];
        if c.user != CHECKER {
            return;
        }
        let node = c.node;
        if let Some(monitor) = self.pool.monitors.get_mut(usize::from(node)) {
            monitor.asked_ns = None;
        }
        if let Some(round_trip_ns) = round_trip_ns {
            self.driver.checked(node, round_trip_ns);
        }
    }

    /// Asks the node at the other end of a connection what it is.
    pub(super) fn ask_on(&mut self, connection: u32, now: u64) {
        let (user, node) = {
            let c = &self.pool.connections[connection as usize];
            debug_assert_eq!(c.state, State::Ready, "a question of one's own opens no connection");
            (c.user, c.node)
        };
        let request = Request { verb: Verb::Topology, ..Request::default() };
        let keeps_first = self.hooks.scripts || self.hooks.resume;
        let id = self.operations.take_place(user, request, keeps_first);
        let op = &mut self.operations.ops[id as usize];
        (op.internal, op.begun_ns, op.intended_ns) = (true, now, now);
        self.driver.begin_topology(&mut op.exchange, &request, node, now);
        self.send_command(id, 0, connection, false);
    }
}
