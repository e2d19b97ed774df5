//! A phase interval by interval: gathered into seconds for viewers, and kept where faults are to be judged by it.

use dyno_analysis::Further;
use dyno_analysis::faults::{Assessed, Happened, Interval, assess};
use dyno_engine::{INTERVAL_NS, Job, Second};
use dyno_record::Totals;
use dyno_rundir::adds_up;
use dyno_types::Outcome;
use std::collections::BTreeMap;

/// What was counted in each interval, and what faults did to it.
#[derive(Debug, Default)]
pub(crate) struct Course {
    wanted: bool,
    intervals: Vec<Interval>,
    length_s: f64,
    /// What was found.
    pub assessed: Assessed,
    /// Faults that did not come, in words.
    pub missed: Vec<String>,
}

impl Course {
    /// One that is kept from now on.
    pub fn kept() -> Self {
        Course { wanted: true, ..Course::default() }
    }

    /// An interval has been counted.
    pub fn take(&mut self, second: &Second, job: &Job) {
        if !self.wanted || second.warmup {
            return;
        }
        let totals = &second.totals;
        let own = totals.ended[Outcome::Aborted as usize] + totals.ended[Outcome::Dropped as usize];
        self.length_s = job.interval_ns as f64 / 1e9;
        self.intervals.push(Interval {
            start_s: (second.number * job.interval_ns) as f64 / 1e9 - job.warmup_ns as f64 / 1e9,
            ok: totals.ok(),
            failed: totals.failed() - own,
            response_s: response_s(totals, job),
        });
    }

    /// The phase is over, and this is what happened in it.
    pub fn judge(&mut self, happened: &[Happened], missed: Vec<String>) {
        self.missed = missed;
        self.assessed =
            assess(&self.intervals, if self.length_s > 0.0 { self.length_s } else { 1.0 }, happened);
    }
}

/// Mean response time of operations that ended well, seconds; 0 of none.
fn response_s(totals: &Totals, job: &Job) -> f64 {
    let names = job.workload.metrics();
    let own = names.iter().enumerate().filter(|(_, name)| adds_up(names, name));
    let sum: f64 = own.filter_map(|(n, _)| totals.ok_slot(n)).map(|slot| slot.response.sum_ns() as f64).sum();
    sum / 1e9 / totals.ok().max(1) as f64
}

/// What the verdict looks at, by the second after the epoch.
#[derive(Debug, Default)]
pub(crate) struct PerSecond {
    rows: BTreeMap<u64, (f64, f64, f64)>,
}

impl PerSecond {
    /// A second of the measured phase.
    pub fn take(&mut self, second: u64, totals: &Totals, job: &Job) {
        let response_s = response_s(totals, job);
        self.rows.insert(second, (totals.ok() as f64, totals.backlog as f64, response_s));
    }

    /// The whole seconds of the phase that `job` asked for and that took so long, warm-up and all. One without a record is
    /// one in which nothing was done.
    pub fn whole(self, job: &Job, elapsed_ns: u64) -> Further {
        let planned = job.end.duration_ns.map(|ns| job.warmup_ns + ns);
        // Last replies come a little before the planned end, or a drain after it.
        let by_clock = planned.filter(|planned| elapsed_ns + INTERVAL_NS >= *planned);
        // Users who have a number of operations end one after the other.
        let ending = u64::from(by_clock.is_none() && job.end.operations.is_some());
        let until = (by_clock.unwrap_or(elapsed_ns) / INTERVAL_NS).saturating_sub(ending);
        let from = job.warmup_ns.div_ceil(INTERVAL_NS);
        let mut further = Further::default();
        for second in from..until {
            let (ok, backlog, response_s) = self.rows.get(&second).copied().unwrap_or_default();
            further.series.push(ok);
            further.backlog.push(backlog);
            further.response_s.push(response_s);
        }
        further
    }
}

/// Intervals shorter than a second, gathered into whole ones for viewers.
#[derive(Default)]
pub(crate) struct Whole {
    open: Option<Second>,
}

impl Whole {
    /// Adds an interval; the whole second where it is the last of one. What is left at the end is not shown.
    pub fn take(&mut self, interval: Second, interval_ns: u64) -> Option<Second> {
        if interval_ns == INTERVAL_NS {
            return Some(interval);
        }
        let last = (interval.number + 1).is_multiple_of(INTERVAL_NS / interval_ns);
        let mut whole = match self.open.take() {
            Some(open) if open.warmup == interval.warmup => open,
            _ => Second { totals: interval.totals.emptied(), ..interval },
        };
        whole.totals.merge(&interval.totals);
        whole.totals.samples.extend_from_slice(&interval.totals.samples);
        if last {
            return Some(whole);
        }
        self.open = Some(whole);
        None
    }
}
