//! Whose turn an operation is: the indexes of users, and how much of their shares is left.

use super::LoadThread;
use crate::net::Net;
use dyno_types::Driver;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// The index of a user's next operation.
    pub(super) fn claim(&mut self, lane: u32) -> Option<u64> {
        let shared = &self.shared;
        if !self.per_user {
            return if self.measuring {
                self.block.measured(&shared.claims)
            } else {
                Some(self.block.warm(&shared.claims))
            };
        }
        let job = &shared.job;
        let user = self.first_user + u64::from(lane);
        let (lane, users) = (&mut self.lanes[lane as usize], job.users as u64);
        if self.measuring {
            // A user's share of the operations; the warm-up uses up none.
            let limit = job.end.operations.unwrap_or(u64::MAX);
            if lane.gone || user + lane.measured * users >= limit {
                return None;
            }
            lane.measured += 1;
            if user.saturating_add(lane.measured * users) >= limit {
                self.shares -= 1;
            }
        }
        let index = user + lane.position * users;
        lane.position += 1;
        Some(index)
    }

    /// A user that does nothing any more.
    pub(super) fn gone(&mut self, lane: u32) {
        let limit = self.shared.job.end.operations.unwrap_or(u64::MAX);
        let (user, users) = (self.user(lane), self.shared.job.users as u64);
        let lane = &mut self.lanes[lane as usize];
        if !lane.gone && user.saturating_add(lane.measured * users) < limit {
            self.shares -= 1;
        }
        lane.gone = true;
    }

    /// The number of a lane's user among all of this job.
    fn user(&self, lane: u32) -> u64 {
        self.first_user + u64::from(lane)
    }
}
