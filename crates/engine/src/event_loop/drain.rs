//! The drain: everything has been sent, and replies are awaited; how long depends on why nothing more is sent.

use super::load_thread::LoadThread;
use super::phase_clock::Drain;
use crate::net::Net;
use dyno_types::{Driver, Outcome};
use std::io;

/// Time that a reply is awaited where a load ends by its count and its operations have no time-out, nanoseconds. It begins
/// anew as long as operations go on ending.
const UNANSWERED_NS: u64 = 120_000_000_000;

/// Time-outs are looked for now and then: an operation ends by its own up to so much later, nanoseconds.
const GRAIN_NS: u64 = 250_000_000;

impl<D: Driver, N: Net> LoadThread<D, N> {
    /// The time is over, or the caller has ended the load: the measured phase ends at `bound_ns`, which may lie ahead.
    pub(super) fn time_is_over(&mut self, now: u64, bound_ns: u64) {
        debug_assert_eq!(self.dispatcher.backlog, 0, "an arrival that was due would never end");
        self.clock.issued_all = true;
        self.clock.bound_ns = self.clock.bound_ns.min(bound_ns);
        let until_ns = now.max(self.clock.bound_ns).saturating_add(self.shared.job.drain_ns);
        self.clock.drain = Drain { until_ns, ..Drain::NONE };
        if !self.dispatcher.is_open {
            self.clip_idle();
        }
    }

    /// The last operation that was asked for has been sent.
    pub(super) fn all_sent(&mut self, now: u64) {
        debug_assert!(!self.clock.issued_all, "the last operation is sent once");
        debug_assert_eq!(self.dispatcher.backlog, 0, "an arrival that was due would never end");
        self.clock.issued_all = true;
        let until_ns = now.saturating_add(self.patience_ns());
        self.clock.drain = Drain {
            until_ns: until_ns.min(self.latest_ns()),
            counted: true,
            left: self.operations.in_flight,
        };
    }

    /// Returns the time that a request of a load that ends by its count may stay unanswered: until its own time-out has ended it.
    fn patience_ns(&self) -> u64 {
        let job = &self.shared.job;
        job.timeout_ns.map_or(UNANSWERED_NS, |timeout| timeout.saturating_add(GRAIN_NS)).max(job.drain_ns)
    }

    /// Where a load has a duration beside its count, nothing is awaited for longer than at the end of that.
    fn latest_ns(&self) -> u64 {
        self.clock.end_ns.saturating_add(self.shared.job.drain_ns)
    }

    /// Until when a load that ends by its count is waited for: as long as requests may be answered in time, attempts wait for
    /// their turn (which are bounded in number, and each by the time-out), or operations go on ending.
    fn answered_by_ns(&self, now: u64) -> u64 {
        let patience_ns = self.patience_ns();
        let under_way = self.operations.ops.iter().filter(|op| op.active && !op.internal);
        let last = under_way.map(|op| op.begun_ns.saturating_add(patience_ns)).max().unwrap_or(now);
        let goes_on =
            self.operations.in_flight < self.clock.drain.left || !self.dispatcher.retries.is_empty();
        let until_ns = if goes_on { last.max(now.saturating_add(patience_ns)) } else { last };
        until_ns.min(self.latest_ns())
    }

    /// Ends what is still under way once the drain is over.
    pub(super) fn drain_pass(&mut self, now: u64) -> io::Result<()> {
        if !self.clock.issued_all {
            return Ok(());
        }
        if self.shared.control.is_aborting() {
            self.abandon(now);
            return Ok(());
        }
        if self.clock.drain.counted && self.shared.control.is_stopping() {
            self.time_is_over(now, now);
        }
        if self.only_waits() {
            self.abandon(now);
            return Ok(());
        }
        if now < self.clock.drain.until_ns {
            return Ok(());
        }
        // After a pause of the client the replies are there.
        if self.operations.in_flight > 0 {
            self.catch_up()?;
        }
        if self.clock.drain.counted {
            let until_ns = self.answered_by_ns(now);
            if until_ns > now {
                self.clock.drain = Drain { until_ns, left: self.operations.in_flight, ..self.clock.drain };
                return Ok(());
            }
        }
        self.abandon(now);
        Ok(())
    }

    /// Ends as aborted what is still under way or waiting.
    fn abandon(&mut self, now: u64) {
        for id in 0..self.operations.ops.len() as u32 {
            if self.operations.ops[id as usize].active && !self.operations.ops[id as usize].internal {
                // A script must not begin its next request.
                self.operations.ops[id as usize].request.step = u16::MAX;
                self.finish(id, Outcome::Aborted, now);
            }
        }
    }
}
