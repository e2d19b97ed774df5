//! Commands that are sent once more: the driver has said that they may be, and a node for them must be found first.

use super::load_thread::LoadThread;
use super::operations::Parked;
use super::pool::State;
use crate::net::Net;
use dyno_types::{Driver, Outcome};

/// Pause between two looks for a node, nanoseconds.
pub(super) const LOOK_NS: u64 = 1_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// A command is to be sent once more after a pause; at once, if there is none and a node for it.
    pub(super) fn park_command(&mut self, op: u32, command: u32, outcome: Outcome, pause_ns: u64, now: u64) {
        debug_assert!(self.operations.ops[op as usize].active, "what has ended is not sent once more");
        debug_assert!(!outcome.is_ok(), "what is sent once more has failed");
        let generation = self.operations.ops[op as usize].generation;
        let from_ns = now.saturating_add(pause_ns);
        let until_ns = from_ns.saturating_add(self.driver.patience_ns());
        let parked = Parked { op, generation, command, outcome, from_ns, until_ns };
        if !self.try_parked(parked, now) {
            self.operations.parked.push(parked);
        }
    }

    /// Looks for nodes for what waits.
    pub(super) fn parked_pass(&mut self, now: u64) {
        if self.operations.parked.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.operations.parked);
        waiting.retain(|parked| !self.try_parked(*parked, now));
        // Sending may have failed at once and parked others.
        waiting.append(&mut self.operations.parked);
        self.operations.parked = waiting;
    }

    /// Sends a command if there is a node, or ends its op if its time is over; false if it goes on waiting.
    fn try_parked(&mut self, parked: Parked, now: u64) -> bool {
        let op = &mut self.operations.ops[parked.op as usize];
        if !op.active || op.generation != parked.generation {
            return true;
        }
        if now < parked.from_ns {
            return false;
        }
        let user = op.user;
        if let Some(node) = self.driver.again(&mut op.exchange) {
            let connection = self.connection_to(user, node);
            if self.pool.connections[connection as usize].state == State::Ready {
                // The driver bounds the tries.
                self.operations.ops[parked.op as usize].hops = 0;
                self.redirect(parked.op, parked.command, node, false, now);
                return true;
            }
        }
        if now < parked.until_ns {
            return false;
        }
        self.finish(parked.op, parked.outcome, now);
        true
    }
}
