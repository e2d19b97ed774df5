//! Connections that are made while a load runs: after so many requests of a user its connection is closed and opened again, and
//! users that begin later get theirs then.
//!
//! A user that has sent them all holds its places until the last is answered, and gets them back when the new connection is
//! ready: no request waits for a connection that is not there, so that the time belongs to no request.

use super::load_thread::LoadThread;
use super::pool::State;
use crate::job::Job;
use crate::net::Net;
use dyno_types::Driver;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Those of `users` users, the first of which is number `first`, that begin later: when, and which.
pub(super) fn late_users(job: &Job, first: u64, users: u32) -> VecDeque<(u64, u32)> {
    let Some(late) = job.late else { return VecDeque::new() };
    let begins = (0..users).map(|user| (late.begins_ns(first + u64::from(user)), user));
    let mut all: Vec<(u64, u32)> = begins.filter(|(after_ns, _)| *after_ns > 0).collect();
    all.sort_unstable();
    all.into()
}

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// A user's place, free since `since_ns`, is held back if the user's connection is to be made anew first.
    #[inline]
    pub(super) fn holds_back(&mut self, user: u32, since_ns: u64) -> bool {
        let Some(every) = self.shared.job.reconnect_every else { return false };
        let state = &mut self.users[user as usize];
        if state.since_connect < every {
            return false;
        }
        state.held.push(since_ns);
        true
    }

    /// An operation of a user has begun.
    #[inline]
    pub(super) fn counts_begun(&mut self, user: u32) {
        if self.shared.job.reconnect_every.is_some() {
            let state = &mut self.users[user as usize];
            state.since_connect += 1;
            state.under_way += 1;
        }
    }

    /// An operation of a user has ended: the last one before its connection is made anew plans that.
    #[inline]
    pub(super) fn counts_ended(&mut self, user: u32) {
        let Some(every) = self.shared.job.reconnect_every else { return };
        let state = &mut self.users[user as usize];
        state.under_way -= 1;
        if state.under_way == 0 && state.since_connect >= every {
            self.pool.renewals.push(user);
        }
    }

    /// Makes the connections anew that are planned.
    pub(super) fn renew_pass(&mut self) {
        while let Some(user) = self.pool.renewals.pop() {
            debug_assert_eq!(
                self.users[user as usize].under_way, 0,
                "a reply would be lost with its connection"
            );
            if self.nothing_left(user) {
                // Nothing more is sent.
                self.free_held(user);
                continue;
            }
            for id in self.users[user as usize].connections.clone().into_iter().flatten() {
                // One that was lost meanwhile is made anew as any other.
                if self.pool.connections[id as usize].state == State::Ready {
                    self.renew(id);
                }
            }
            if !self.is_awaited(user) {
                self.free_held(user);
            }
        }
    }

    /// Returns whether a user sends nothing more.
    fn nothing_left(&self, user: u32) -> bool {
        self.clock.issued_all
            || match &self.dispatcher.schedule {
                Some(schedule) => schedule.peek_arrival().0 >= self.dispatcher.index_end,
                None => self.dispatcher.per_user && !self.has_quota(user),
            }
    }

    /// Closes a connection on which nothing is under way, and opens it again.
    pub(super) fn renew(&mut self, id: u32) {
        let c = &mut self.pool.connections[id as usize];
        if let Some(socket) = c.socket.take() {
            self.net.close(socket);
        }
        // Replies to operations that have ended may still have been awaited.
        c.awaited.clear();
        c.input.clear();
        c.output.clear();
        (c.unsent, c.written, c.timeouts) = (0, 0, 0);
        c.renewed = true;
        self.open(id);
    }

    /// A connection that is made anew is ready, or cannot be opened: its user goes on.
    pub(super) fn renewal_ends(&mut self, id: u32) {
        let c = &mut self.pool.connections[id as usize];
        c.renewed = false;
        let user = c.user;
        if !self.is_awaited(user) {
            self.free_held(user);
        }
    }

    /// Returns whether a user has not begun yet.
    pub(super) fn is_late(&self, user: u32) -> bool {
        self.shared
            .job
            .late
            .is_some_and(|late| late.begins_ns(self.dispatcher.first_user + u64::from(user)) > 0)
    }

    /// Users whose time has come get connections, and begin when these are ready.
    pub(super) fn late_pass(&mut self, now: u64) {
        while let Some(&(after_ns, user)) = self.dispatcher.late.front() {
            if self.clock.issued_all || self.clock.epoch_ns.saturating_add(after_ns) > now {
                return;
            }
            self.count_users(now);
            self.dispatcher.late.pop_front();
            self.users[user as usize].held = vec![self.clock.epoch_ns; self.shared.job.pipeline];
            for node in self.driver.wanted() {
                let id = self.connection_to(user, node);
                let c = &mut self.pool.connections[id as usize];
                c.renewed = matches!(c.state, State::Opening { .. });
            }
            if !self.is_awaited(user) {
                self.free_held(user);
            }
        }
    }

    /// Returns whether a user waits for a connection that is being opened.
    fn is_awaited(&self, user: u32) -> bool {
        let all = self.users[user as usize].connections.iter().flatten();
        all.map(|id| &self.pool.connections[*id as usize])
            .any(|c| c.renewed && matches!(c.state, State::Opening { .. } | State::Greeting { .. }))
    }

    /// Gives a user's places back.
    fn free_held(&mut self, user: u32) {
        let now = self.net.now();
        let state = &mut self.users[user as usize];
        state.since_connect = 0;
        let mut held = std::mem::take(&mut state.held);
        for since_ns in held.drain(..) {
            if self.dispatcher.schedule.is_some() {
                // No client, however quick, has a place before.
                self.dispatcher.free_ns.push(Reverse(now));
            } else {
                // A user's time between two operations, which no histogram has.
                let (from, to) = (since_ns.max(self.clock.measure_ns), now.min(self.clock.bound_ns));
                self.clock.clipped_ns += to.saturating_sub(from) as i64;
            }
            self.dispatcher.idle.push_back((user, now));
        }
        self.users[user as usize].held = held;
    }
}
