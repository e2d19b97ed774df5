//! Follows a run as it goes: YCSB's status lines on standard error, and its `.hdr` files, one line an
//! interval.
//!
//! The engine hands out every second once all load threads are past it; seconds are gathered here into
//! intervals of `status.interval`. An interval ends when the wall clock says so, so that the part of a second
//! at the end of a run belongs to the line at the end.

use crate::report::hdrfiles::{HdrFileError, HdrFiles};
use crate::report::metrics::{Metrics, metrics};
use crate::report::options::{Interval, MeasurementOptions};
use crate::report::status::{StatusLines, StatusProgress as Where, local_zone};
use crate::work::YcsbWork;
use dyno_engine::Job;
use dyno_frontend::terminal;
use dyno_record::{Scale, Totals};
use dyno_rundir::schema::Phase;
use dyno_session::session::{Observer, PhaseProgress};
use dyno_types::Outcome;
use jiff::Timestamp;
use std::time::{Instant, SystemTime};

/// Follows a run.
pub(super) struct YcsbWatch {
    options: MeasurementOptions,
    interval: Interval,
    names: Vec<String>,
    /// True if status lines are shown.
    shown: bool,
    quiet: bool,
    operations: Option<u64>,
    limit_ms: Option<u64>,
    lines: StatusLines,
    hdr: HdrFiles,
    failure: Option<HdrFileError>,
    begun: Instant,
    /// Milliseconds after `begun` at which the next line is due.
    next_ms: u64,
    /// Operations done in the intervals before.
    done: u64,
    /// Totals of the interval under way, and when it began.
    pending: Totals,
    since: SystemTime,
    told_limit: bool,
}

/// Operations that ended; what was dropped or aborted was never done.
fn done(totals: &Totals) -> u64 {
    totals.ended_total() - totals.ended[Outcome::Dropped as usize] - totals.ended[Outcome::Aborted as usize]
}

impl YcsbWatch {
    /// Before the run.
    pub fn new(work: &YcsbWork) -> Self {
        let options = work.options.clone();
        let names = work.metrics();
        YcsbWatch {
            interval: work.interval(),
            shown: options.status && !work.extras.quiet,
            quiet: work.extras.quiet,
            operations: work.client.operations,
            limit_ms: work.client.max_execution_s.map(|s| s * 1_000),
            lines: StatusLines::new(&options, local_zone()),
            hdr: HdrFiles::new(&options, local_zone()),
            failure: None,
            begun: Instant::now(),
            next_ms: options.status_interval_s * 1_000,
            done: 0,
            pending: Totals::new(names.len(), Scale::Micros),
            since: SystemTime::now(),
            told_limit: false,
            options,
            names,
        }
    }

    fn elapsed_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    /// The metrics of the interval under way, which ends.
    fn take_interval(&mut self) -> Metrics {
        let pending = std::mem::replace(&mut self.pending, Totals::new(self.names.len(), Scale::Micros));
        self.done += done(&pending);
        metrics(&self.names, &pending, self.since, &self.options, self.interval)
    }

    fn line(&mut self) {
        let interval = self.take_interval();
        let now = SystemTime::now();
        let logged = self.hdr.interval(&interval, self.since, now);
        self.failure = self.failure.take().or(logged.err());
        self.since = now;
        if self.shown {
            let elapsed_ms = self.elapsed_ms();
            let todo = self.operations.map_or(0, |all| all.saturating_sub(self.done));
            let at = Timestamp::now();
            let line = self.lines.line(at, Where { elapsed_ms, operations: self.done, todo }, &interval);
            terminal::verbatim(&line);
            if self.options.status_on_stdout() {
                terminal::out(&format!("{line}\n"));
            }
        }
    }

    /// YCSB's words when `maxexecutiontime` is over.
    fn tell_limit(&mut self) {
        self.told_limit = true;
        if !self.quiet {
            terminal::verbatim("Maximum time elapsed. Requesting stop for the workload.");
            terminal::verbatim("Stop requested for workload. Now Joining!");
        }
    }

    /// After the run, whose totals these are: the last line of everything.
    pub fn finish(&mut self, totals: &Totals, interrupted: bool) {
        if self.limit_ms.is_some() && !self.told_limit && !interrupted {
            if self.operations.is_none_or(|all| totals.ended_total() < all) {
                self.tell_limit();
            } else if !self.quiet {
                terminal::verbatim("Could not wait until max specified time, TerminatorThread interrupted.");
            }
        }
        // A line of nothing but zeros, where the end fell on an interval, would be one that YCSB never has.
        if self.done == 0 || done(&self.pending) > 0 {
            self.line();
        }
    }

    /// A log file that could not be written.
    pub fn failure(&self) -> Option<&HdrFileError> {
        self.failure.as_ref()
    }
}

impl Observer for YcsbWatch {
    fn begin(&mut self, _phase: &str, _job: &Job) {
        (self.begun, self.since) = (Instant::now(), SystemTime::now());
        if self.shown {
            let none = self.take_interval();
            let todo = self.operations.unwrap_or(0);
            let place = Where { elapsed_ms: 0, operations: 0, todo };
            let line = self.lines.line(Timestamp::now(), place, &none);
            terminal::verbatim(&line);
            if self.options.status_on_stdout() {
                terminal::out(&format!("{line}\n"));
            }
        }
    }

    fn second(&mut self, progress: &PhaseProgress<'_>) {
        if progress.phase != "warmup" {
            self.pending.merge(progress.last);
            if self.options.status && self.options.needs_samples() {
                self.pending.samples.extend_from_slice(&progress.last.samples);
            }
        }
        let elapsed_ms = self.elapsed_ms();
        if self.options.status && elapsed_ms >= self.next_ms {
            let step = self.options.status_interval_s * 1_000;
            self.next_ms = (elapsed_ms / step + 1) * step;
            self.line();
        }
        if self.limit_ms.is_some_and(|limit| elapsed_ms >= limit) && !self.told_limit {
            self.tell_limit();
        }
    }

    fn end(&mut self, _phase: &Phase) {}
}
