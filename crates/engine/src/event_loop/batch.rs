//! Batches: several inserts in one exchange.
//!
//! The first operation of a batch, its *leader*, holds the user's place and the exchange; the others, its *passengers*,
//! travel with it. Each is an arrival of its own with its own outcome, and each is recorded with the whole time of the
//! exchange: an insert of a batch is done when its batch is answered.

use super::state::LoadThread;
use crate::net::Net;
use dyno_types::{Driver, Outcome};

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// Users (closed loop): a user's next operations join the one it has just begun.
    pub(super) fn fill_closed(&mut self, leader: u32, user: u32, since: u64, now: u64) {
        for _ in 1..self.batch {
            // Where there are no more, the next turn finds out.
            let Some(index) = self.claim(user) else { return };
            let id = self.begin(user, index, since, now);
            self.board(leader, id);
        }
    }

    /// Open loop: arrivals that are due as well join the one that has just begun.
    pub(super) fn fill_open(&mut self, leader: u32, user: u32, now: u64) {
        for _ in 1..self.batch {
            let Some((index, due)) = self.schedule.as_ref().map(|s| s.peek()) else { return };
            let intended = self.epoch_ns + due;
            if index >= self.index_end || intended >= self.end_ns || intended > now {
                return;
            }
            self.advance();
            let id = self.begin(user, index, intended, now);
            self.board(leader, id);
            let leader = &mut self.ops[leader as usize];
            leader.begins_from(intended);
        }
    }

    fn board(&mut self, leader: u32, id: u32) {
        let op = &mut self.ops[id as usize];
        // Only the leader may end it.
        (op.active, op.holds_place) = (false, false);
        self.ops[leader as usize].passengers.push(id);
    }

    /// Begins the exchange of an op, with its passengers if it has any; returns how many commands are to be sent.
    pub(super) fn begin_exchange(&mut self, id: u32) -> u32 {
        if self.ops[id as usize].passengers.is_empty() {
            let op = &mut self.ops[id as usize];
            return self.driver.begin(&mut op.exchange, &op.request);
        }
        let mut requests = std::mem::take(&mut self.batch_requests);
        requests.clear();
        requests.push(self.ops[id as usize].request);
        let passengers = &self.ops[id as usize].passengers;
        requests.extend(passengers.iter().map(|&p| self.ops[p as usize].request));
        let count = self.driver.begin_batch(&mut self.ops[id as usize].exchange, &requests);
        self.batch_requests = requests;
        count
    }

    /// A request has ended, and with it those of its passengers.
    pub(super) fn finish(&mut self, id: u32, outcome: Outcome, now: u64) {
        if self.ops[id as usize].passengers.is_empty() {
            return self.conclude(id, outcome, now);
        }
        let mut passengers = std::mem::take(&mut self.ops[id as usize].passengers);
        let leader = &self.ops[id as usize];
        let own = self.driver.batch_outcome(&leader.exchange, 0, outcome);
        let (sent_ns, first_sent_ns, ideal_ns) = (leader.sent_ns, leader.first_sent_ns, leader.ideal_ns);
        for (number, &passenger) in passengers.iter().enumerate() {
            let outcome =
                self.driver.batch_outcome(&self.ops[id as usize].exchange, number as u32 + 1, outcome);
            let op = &mut self.ops[passenger as usize];
            (op.active, op.sent_ns, op.first_sent_ns, op.ideal_ns) = (true, sent_ns, first_sent_ns, ideal_ns);
            self.conclude(passenger, outcome, now);
        }
        passengers.clear();
        self.ops[id as usize].passengers = passengers;
        self.conclude(id, own, now);
    }
}
