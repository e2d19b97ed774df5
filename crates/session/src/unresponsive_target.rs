//! Servers that never say anything.

use dyno_engine::{Control, Job, Second};
use dyno_types::Outcome;
use std::sync::Arc;

/// Ends a phase that ends by a count of operations, not by time, and whose target never says anything.
pub(crate) struct UnresponsiveTarget {
    /// Ends the phase; the run's own control ends it, too.
    pub control: Arc<Control>,
    /// When nothing is expected any more, nanoseconds since the epoch.
    after_ns: Option<u64>,
    interval_ns: u64,
    /// True if operations time out, so that none of them may say that none was due.
    times_out: bool,
    answered: u64,
    timed_out: u64,
}

impl UnresponsiveTarget {
    /// Time-outs that an answer is awaited for.
    const TIMEOUTS: u64 = 3;
    /// Time-out of inserts that have none, nanoseconds. Other operations may take any time.
    const INSERT_NS: u64 = 60_000_000_000;

    /// Listens to a phase of `job`.
    pub fn of_job(job: &Job, control: &Arc<Control>) -> Self {
        let inserts = job.workload.only_inserts().then_some(UnresponsiveTarget::INSERT_NS);
        let after_ns = job.timeout_ns.or(inserts).filter(|_| job.end.duration_ns.is_none());
        UnresponsiveTarget {
            control: Arc::new(Control::below_control(control)),
            after_ns: after_ns.map(|ns| ns.saturating_mul(UnresponsiveTarget::TIMEOUTS)),
            interval_ns: job.interval_ns,
            times_out: job.timeout_ns.is_some(),
            answered: 0,
            timed_out: 0,
        }
    }

    /// Takes an interval in.
    pub fn add_interval(&mut self, second: &Second) {
        let ended = &second.totals.ended;
        let count = |outcome: Outcome| ended[outcome as usize];
        let without = [Outcome::Disconnected, Outcome::Dropped, Outcome::Aborted].map(count);
        self.timed_out += count(Outcome::TimedOut);
        self.answered += ended.iter().sum::<u64>() - count(Outcome::TimedOut) - without.iter().sum::<u64>();
        let so_far_ns = (second.number + 1).saturating_mul(self.interval_ns);
        let over = self.after_ns.is_some_and(|after_ns| so_far_ns >= after_ns);
        if over && self.answered == 0 && (self.timed_out > 0 || !self.times_out) {
            self.control.abort_run();
        }
    }

    /// Describes what has happened.
    pub fn describe_silence(&self, target: &str) -> String {
        let seconds = self.after_ns.unwrap_or(0) as f64 / 1e9;
        format!("{target}: no operation was answered within {seconds} s, {} timed out", self.timed_out)
    }
}
