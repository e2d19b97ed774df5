//! The drain: everything has been sent, and replies are awaited; how long depends on why nothing more is sent.

use super::LoadThread;
use crate::net::Net;
use dyno_types::{Driver, Outcome};

/// How long a reply is awaited where a load ends by its count and its operations have no time-out, nanoseconds. It begins
/// anew as long as operations go on ending.
const UNANSWERED_NS: u64 = 120_000_000_000;

/// Why nothing more is sent, and until when replies are awaited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    /// When operations that are still under way end as aborted.
    pub until_ns: u64,
    /// All operations that were asked for have been sent, rather than that the time is over: none may be lost that a server
    /// would have answered.
    counted: bool,
    /// Operations under way when this was looked at last.
    left: usize,
}

impl Drain {
    /// Not begun.
    pub const NONE: Drain = Drain { until_ns: u64::MAX, counted: false, left: 0 };
}

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// The time is over, or somebody has ended the load.
    pub(super) fn time_is_over(&mut self, now: u64) {
        self.issued_all = true;
        let until_ns = now.saturating_add(self.shared.job.drain_ns);
        self.drain = Drain { until_ns, ..Drain::NONE };
    }

    /// The last operation that was asked for has been sent. An operation that has a time-out ends by that at the latest.
    pub(super) fn all_sent(&mut self, now: u64) {
        self.issued_all = true;
        let job = &self.shared.job;
        let until_ns = now.saturating_add(job.drain_ns.max(job.timeout_ns.unwrap_or(UNANSWERED_NS)));
        self.drain = Drain { until_ns, counted: true, left: self.in_flight };
    }

    /// Ends what is still under way once the drain is over.
    pub(super) fn drain_pass(&mut self, now: u64) {
        if !self.issued_all {
            return;
        }
        if self.shared.control.aborting() {
            return self.abandon(now);
        }
        if self.drain.counted && self.shared.control.stopping() {
            self.time_is_over(now);
        }
        if now < self.drain.until_ns {
            return;
        }
        // Attempts that wait for their turn are bounded in number, and each by the time-out.
        let goes_on = self.in_flight < self.drain.left || !self.retries.is_empty();
        if self.drain.counted && goes_on {
            return self.all_sent(now);
        }
        self.abandon(now);
    }

    /// What is still under way or waiting ends as aborted.
    fn abandon(&mut self, now: u64) {
        for id in 0..self.ops.len() as u32 {
            if self.ops[id as usize].active && !self.ops[id as usize].internal {
                // A script must not begin its next request.
                self.ops[id as usize].request.step = u16::MAX;
                self.finish(id, Outcome::Aborted, now);
            }
        }
    }
}
