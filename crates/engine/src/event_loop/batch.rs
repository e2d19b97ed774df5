//! Batches: several inserts in one exchange.
//!
//! The first operation of a batch, its *leader*, holds the user's place and the exchange; the others, its *passengers*,
//! travel with it. Each is an arrival of its own with its own outcome, and each is recorded with the whole time of the
//! exchange: an insert of a batch is done when its batch is answered.

use super::load_thread::LoadThread;
use crate::net::Net;
use dyno_types::{Driver, Outcome};

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Users (closed loop): a user's next operations join the one it has just begun.
    pub(super) fn fill_closed(&mut self, leader: u32, user: u32, since: u64, now: u64) {
        for _ in 1..self.operations.batch {
            // Where there are no more, the next turn finds out.
            let Some(index) = self.claim(user) else { return };
            let id = self.begin(user, index, since, now);
            self.operations.add_passenger(leader, id);
        }
    }

    /// Open loop: arrivals that are due as well join the one that has just begun.
    pub(super) fn fill_open(&mut self, leader: u32, user: u32, now: u64) {
        for _ in 1..self.operations.batch {
            let Some((index, due)) = self.dispatcher.schedule.as_ref().map(|s| s.peek_arrival()) else {
                return;
            };
            let intended = self.clock.epoch_ns.saturating_add(due);
            if index >= self.dispatcher.index_end || intended >= self.clock.end_ns || intended > now {
                return;
            }
            self.dispatcher.advance_schedule();
            let id = self.begin(user, index, intended, now);
            self.operations.add_passenger(leader, id);
            let leader = &mut self.operations.ops[leader as usize];
            leader.begins_from(intended);
        }
    }

    /// Begins the exchange of an op, with its passengers if it has any; returns how many commands are to be sent.
    pub(super) fn begin_exchange(&mut self, id: u32) -> u32 {
        if self.operations.ops[id as usize].passengers.is_empty() {
            let op = &mut self.operations.ops[id as usize];
            return self.driver.begin(&mut op.exchange, &op.request);
        }
        let mut requests = std::mem::take(&mut self.operations.batch_requests);
        requests.clear();
        requests.push(self.operations.ops[id as usize].request);
        let passengers = &self.operations.ops[id as usize].passengers;
        requests.extend(passengers.iter().map(|&p| self.operations.ops[p as usize].request));
        let count = self.driver.begin_batch(&mut self.operations.ops[id as usize].exchange, &requests);
        self.operations.batch_requests = requests;
        count
    }

    /// A request has ended, and with it those of its passengers.
    pub(super) fn finish(&mut self, id: u32, outcome: Outcome, now: u64) {
        debug_assert!(self.operations.ops[id as usize].active, "only what is under way ends");
        if self.operations.ops[id as usize].passengers.is_empty() {
            return self.conclude(id, outcome, now);
        }
        let mut passengers = std::mem::take(&mut self.operations.ops[id as usize].passengers);
        let leader = &self.operations.ops[id as usize];
        let own = self.driver.batch_outcome(&leader.exchange, 0, outcome);
        let (sent_ns, first_sent_ns, ideal_ns) = (leader.sent_ns, leader.first_sent_ns, leader.ideal_ns);
        for (number, &passenger) in passengers.iter().enumerate() {
            let outcome = self.driver.batch_outcome(
                &self.operations.ops[id as usize].exchange,
                number as u32 + 1,
                outcome,
            );
            let op = &mut self.operations.ops[passenger as usize];
            debug_assert!(!op.active, "a passenger does not end by itself");
            debug_assert!(op.passengers.is_empty(), "a passenger leads no one");
            (op.active, op.sent_ns, op.first_sent_ns, op.ideal_ns) = (true, sent_ns, first_sent_ns, ideal_ns);
            self.conclude(passenger, outcome, now);
        }
        passengers.clear();
        self.operations.ops[id as usize].passengers = passengers;
        self.conclude(id, own, now);
    }
}
