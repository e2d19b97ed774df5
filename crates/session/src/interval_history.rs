//! A phase interval by interval: gathered into seconds for viewers, and kept where faults are to be judged by it.

use dyno_analysis::faults::{FaultEffects, InjectedFault, IntervalOutcomes, assess_faults};
use dyno_analysis::{Blocks, RunObservations};
use dyno_engine::{End, INTERVAL_NS, Job, Second};
use dyno_record::{Buckets, Totals};
use dyno_rundir::adds_up;
use dyno_types::Outcome;
use std::collections::BTreeMap;

/// Counts of each interval of a phase, and the effect of faults on them.
#[derive(Debug, Default)]
pub(crate) struct IntervalHistory {
    wanted: bool,
    intervals: Vec<IntervalOutcomes>,
    length_s: f64,
    /// Effect of the faults.
    pub assessed: FaultEffects,
    /// Faults that did not come, in words.
    pub missed: Vec<String>,
}

impl IntervalHistory {
    /// One that is kept from now on.
    pub fn start_recording() -> Self {
        IntervalHistory { wanted: true, ..IntervalHistory::default() }
    }

    /// An interval has been counted.
    pub fn add_interval(&mut self, second: &Second, job: &Job) {
        if !self.wanted || second.warmup {
            return;
        }
        let totals = &second.totals;
        let own = totals.ended[Outcome::Aborted as usize] + totals.ended[Outcome::Dropped as usize];
        self.length_s = job.interval_ns as f64 / 1e9;
        self.intervals.push(IntervalOutcomes {
            start_s: (second.number * job.interval_ns) as f64 / 1e9 - job.warmup_ns as f64 / 1e9,
            ok: totals.count_completed(),
            failed: totals.count_failed() - own,
            response_s: response_s(totals, job),
        });
    }

    /// The phase is over, and this is what happened in it.
    pub fn judge_phase(&mut self, happened: &[InjectedFault], missed: Vec<String>) {
        self.missed = missed;
        self.assessed =
            assess_faults(&self.intervals, if self.length_s > 0.0 { self.length_s } else { 1.0 }, happened);
    }
}

/// Mean response time of operations that ended well, seconds; 0 of none.
fn response_s(totals: &Totals, job: &Job) -> f64 {
    responses_s(totals, job) / totals.count_ok().max(1) as f64
}

/// Sum of the response times of operations that ended well, seconds.
fn responses_s(totals: &Totals, job: &Job) -> f64 {
    let names = job.workload.metrics();
    let own = names.iter().enumerate().filter(|(_, name)| adds_up(names, name));
    let sum: f64 = own.filter_map(|(n, _)| totals.ok_slot(n)).map(|slot| slot.response.sum_ns() as f64).sum();
    sum / 1e9
}

/// Figures of a second for the verdict: successes within the phase's time and those of its arrivals, the longest queue, the sum
/// of the latter's response times in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct VerdictRow {
    completed: u64,
    ok: u64,
    backlog: u64,
    responses_s: f64,
}

/// Figures for the verdict, by the second after the epoch.
#[derive(Debug)]
pub(crate) struct PerSecond {
    rows: BTreeMap<u64, VerdictRow>,
    blocks: Blocks,
}

/// Operations that an interval has to have for its 99th percentile, and intervals that a series of these has to have.
const TAIL: (u64, usize) = (1_000, 30);

/// Response times of operations that ended well, in the blocks of a phase.
struct Tails {
    /// Seconds of an interval.
    step_s: u64,
    /// By the number of the interval after the epoch.
    intervals: BTreeMap<u64, Buckets>,
}

impl Tails {
    /// Puts two intervals each together.
    fn widen(&mut self) {
        self.step_s *= 2;
        for (at, buckets) in std::mem::take(&mut self.intervals) {
            match self.intervals.get_mut(&(at / 2)) {
                Some(own) => own.merge(&buckets),
                None => drop(self.intervals.insert(at / 2, buckets)),
            }
        }
    }

    /// The 99th percentiles in seconds, of intervals within these seconds that all have enough operations, the seconds of
    /// an interval, and when the first begins. A gap in them is no interval, so that it takes wider ones.
    fn whole(mut self, from: u64, until: u64) -> Option<(f64, f64, Vec<f64>)> {
        loop {
            let own = from.div_ceil(self.step_s)..until / self.step_s;
            debug_assert!(own.start * self.step_s >= from, "an interval would begin before the phase");
            debug_assert!(own.end * self.step_s <= until, "an interval would end behind the phase");
            if own.end.saturating_sub(own.start) < TAIL.1 as u64 {
                return None;
            }
            let all: Vec<&Buckets> = own.clone().filter_map(|at| self.intervals.get(&at)).collect();
            if all.len() as u64 == own.end - own.start && all.iter().all(|buckets| buckets.count() >= TAIL.0)
            {
                let tails = all.iter().map(|buckets| buckets.percentile_ns(99.0) as f64 / 1e9);
                return Some((self.step_s as f64, (own.start * self.step_s - from) as f64, tails.collect()));
            }
            self.widen();
        }
    }
}

impl PerSecond {
    /// Nothing yet of a workload with these metrics.
    pub fn new(metrics: &[String]) -> Self {
        PerSecond { rows: BTreeMap::new(), blocks: Blocks::new(metrics.to_vec()) }
    }

    /// An interval of the measured phase, within a second.
    pub fn add_interval(&mut self, second: u64, totals: &Totals, job: &Job) {
        let row = self.rows.entry(second).or_default();
        row.ok += totals.count_ok();
        row.completed += totals.count_completed();
        row.backlog = row.backlog.max(totals.backlog);
        row.responses_s += responses_s(totals, job);
        self.blocks.add_second(second, totals);
    }

    /// The whole seconds of a phase that was to end so and lasted so long behind its warm-up, with what is before and
    /// behind them, and the blocks of the phase. A second without a record is one in which nothing was done.
    pub fn whole_seconds(self, end: &End, warmup_ns: u64, measured_ns: u64) -> (RunObservations, Blocks) {
        let by_clock = end.duration_ns == Some(measured_ns);
        // Users who have a number of operations end one after the other.
        let ending = u64::from(!by_clock && end.operations.is_some());
        let ended = warmup_ns + measured_ns;
        let until = (ended / INTERVAL_NS).saturating_sub(ending);
        let from = warmup_ns.div_ceil(INTERVAL_NS);
        let (rows, blocks) = (self.rows, self.blocks);
        let (step_s, intervals) = blocks.responses_by_block();
        let tail = Tails { step_s, intervals }.whole(from, until);
        let row = |second: u64| rows.get(&second).copied().unwrap_or_default();
        let mut observations = RunObservations { tail, ..RunObservations::default() };
        for row in (from..until).map(row) {
            observations.series.push(row.completed as f64);
            observations.backlog.push(row.backlog as f64);
            observations.response_s.push(row.responses_s / row.ok.max(1) as f64);
        }
        let part = |second, ns: u64| match ns {
            0 => (0.0, 0.0),
            ns => (row(second).completed as f64, ns as f64 / 1e9),
        };
        observations.partial_seconds[0] = part(from.saturating_sub(1), from * INTERVAL_NS - warmup_ns);
        let behind = if ending > 0 { 0 } else { ended.saturating_sub(until.max(from) * INTERVAL_NS) };
        observations.partial_seconds[1] = part(until, behind);
        (observations, blocks)
    }
}

/// Intervals shorter than a second, gathered into whole ones for viewers.
#[derive(Default)]
pub(crate) struct WholeSeconds {
    open: Option<Second>,
}

impl WholeSeconds {
    /// Adds an interval; the second where it is the last of one, or the last of its phase. What is left where operations end the
    /// phase is not shown.
    pub fn add_interval(&mut self, interval: Second, job: &Job) -> Option<Second> {
        let interval_ns = job.interval_ns;
        if interval_ns == INTERVAL_NS {
            return Some(interval);
        }
        debug_assert!(INTERVAL_NS.is_multiple_of(interval_ns), "a second would never be whole");
        let (begin_ns, end_ns) = (interval.number * interval_ns, (interval.number + 1) * interval_ns);
        let ends = (begin_ns + 1..=end_ns).contains(&phase_end_ns(job, interval.warmup));
        let last = ends || end_ns.is_multiple_of(INTERVAL_NS);
        let mut whole = match self.open.take() {
            Some(open) if open.warmup == interval.warmup => open,
            _ => Second { totals: interval.totals.empty_like(), ..interval },
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

/// End of the warm-up or of the measured phase, nanoseconds since the epoch; never, where operations end it.
fn phase_end_ns(job: &Job, warmup: bool) -> u64 {
    let measured = || job.end.duration_ns.map_or(u64::MAX, |ns| job.warmup_ns.saturating_add(ns));
    if warmup { job.warmup_ns } else { measured() }
}

/// Begin and end, in seconds since the epoch, of what lies in one phase of the second that began `start_s` after the epoch.
pub(crate) fn within_phase(job: &Job, start_s: u64, warmup: bool) -> (f64, f64) {
    let phase_from = if warmup { 0 } else { job.warmup_ns };
    let phase_to = phase_end_ns(job, warmup);
    // Of what is received after the end nothing lies in the phase.
    let from = (start_s * 1_000_000_000).max(phase_from).min(phase_to);
    let to = ((start_s + 1) * 1_000_000_000).min(phase_to).max(from);
    (from as f64 / 1e9, to as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::ping_job;
    use dyno_engine::Pacing;
    use dyno_record::Scale;

    const TENTH_NS: u64 = INTERVAL_NS / 10;

    #[test]
    fn viewers_are_told_how_long_the_seconds_of_a_phase_are() {
        // 0.6 s of warm-up, then 2.5 s, in intervals of a tenth: an operation in each.
        let end = End { duration_ns: Some(25 * TENTH_NS), operations: None };
        let pacing = Pacing::Closed { think_ns: 0 };
        let job = Job { warmup_ns: 6 * TENTH_NS, interval_ns: TENTH_NS, ..ping_job(pacing, 1, 1, end) };
        let mut seconds = WholeSeconds::default();
        let shown = (0..31).filter_map(|number| {
            let mut totals = Totals::new(1, Scale::Ns64);
            totals.arrivals = 1;
            let warmup = number < 6;
            let second = seconds.add_interval(Second { number, warmup, totals }, &job)?;
            let (from, to) = within_phase(&job, number * TENTH_NS / INTERVAL_NS, warmup);
            Some((warmup, second.totals.arrivals, [from, to].map(|at| (at * 10.0).round() as u64)))
        });
        let expected = [
            (true, 6, [0, 6]),
            (false, 4, [6, 10]),
            (false, 10, [10, 20]),
            (false, 10, [20, 30]),
            (false, 1, [30, 31]),
        ];
        assert_eq!(shown.collect::<Vec<_>>(), expected);
        assert_eq!(within_phase(&job, 5, false), (3.1, 3.1), "replies that come after the end");
    }

    /// Six seconds behind a warm-up of 0.6 s: 100 operations a second, and as many of each part of a second.
    fn seconds(end: &End, measured_ns: u64) -> RunObservations {
        let row = |ok| VerdictRow { completed: ok, ok, backlog: ok / 10, responses_s: ok as f64 * 0.5 };
        let rows = [(0, 40), (1, 100), (2, 100), (4, 100), (5, 100), (6, 60)];
        let rows = rows.into_iter().map(|(second, ok)| (second, row(ok))).collect();
        PerSecond { rows, ..PerSecond::new(&[]) }.whole_seconds(end, 6 * TENTH_NS, measured_ns).0
    }

    #[test]
    fn seconds_are_whole_ones_and_the_parts_at_both_ends() {
        let timed = End { duration_ns: Some(6 * INTERVAL_NS), ..End::default() };
        let all = seconds(&timed, 60 * TENTH_NS);
        assert_eq!(all.series, [100.0, 100.0, 0.0, 100.0, 100.0]);
        assert_eq!(all.backlog, [10.0, 10.0, 0.0, 10.0, 10.0]);
        assert_eq!(all.response_s, [0.5, 0.5, 0.0, 0.5, 0.5]);
        assert_eq!(all.partial_seconds, [(40.0, 0.4), (60.0, 0.6)]);
        // It was ended early, in its second 3.
        let early = seconds(&timed, 27 * TENTH_NS);
        assert_eq!((early.series.len(), early.partial_seconds[1]), (2, (0.0, 0.3)));
        // Users who have a number of operations end one after the other.
        let counted = End { operations: Some(500), ..End::default() };
        let all = seconds(&counted, 60 * TENTH_NS);
        assert_eq!((all.series.len(), all.partial_seconds), (4, [(40.0, 0.4), (0.0, 0.0)]));
    }
}
