//! Turns of users: the indexes of users, and how much of their quota is left.

use super::load_thread::LoadThread;
use crate::net::Net;
use dyno_types::Driver;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// The index of a user's next operation.
    pub(super) fn claim(&mut self, user: u32) -> Option<u64> {
        let shared = &self.shared;
        if !self.dispatcher.per_user {
            return if self.clock.measuring {
                self.dispatcher.block.claim_measured(&shared.claims)
            } else {
                Some(self.dispatcher.block.claim_warm(&shared.claims))
            };
        }
        let job = &shared.job;
        let number = self.dispatcher.first_user + u64::from(user);
        let (user, users) = (&mut self.users[user as usize], job.users as u64);
        if self.clock.measuring {
            // A user's quota of operations; the warm-up uses up none.
            let limit = job.end.operations.unwrap_or(u64::MAX);
            if user.gone || number + user.measured * users >= limit {
                return None;
            }
            user.measured += 1;
            if number.saturating_add(user.measured * users) >= limit {
                debug_assert!(self.dispatcher.users_with_quota > 0, "a user uses its quota up once");
                self.dispatcher.users_with_quota -= 1;
            }
        }
        let index = number + user.position * users;
        user.position += 1;
        Some(index)
    }

    /// Returns whether a user has operations left to begin.
    pub(super) fn has_quota(&self, user: u32) -> bool {
        let limit = self.shared.job.end.operations.unwrap_or(u64::MAX);
        let (number, users) = (self.dispatcher.user_number(user), self.shared.job.users as u64);
        let user = &self.users[user as usize];
        !user.gone && number.saturating_add(user.measured * users) < limit
    }

    /// A user that does nothing any more.
    pub(super) fn retire_user(&mut self, user: u32) {
        let limit = self.shared.job.end.operations.unwrap_or(u64::MAX);
        let (number, users) = (self.dispatcher.user_number(user), self.shared.job.users as u64);
        let user = &mut self.users[user as usize];
        if !user.gone && number.saturating_add(user.measured * users) < limit {
            debug_assert!(self.dispatcher.users_with_quota > 0, "a user retires once");
            self.dispatcher.users_with_quota -= 1;
        }
        user.gone = true;
    }
}
