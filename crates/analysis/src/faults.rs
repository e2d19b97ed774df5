//! Effects of faults on the load, from the recorded intervals alone: time to detect, depth, operations lost, time to recover.
//!
//! Throughput is judged second by second; where intervals are shorter, by every second that begins with one of them. The depth
//! of a fault that was shorter than a second is judged by parts as long as itself: in a second it is hidden by what is caught up.

use dyno_rundir::faults::FaultFigures;
use dyno_types::stats::median;
use dyno_types::units::ShownLatency;
use statrs::distribution::{Binomial, DiscreteCDF};
use std::ops::Range;

/// An interval of the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntervalOutcomes {
    /// Begin, seconds from the begin of the phase.
    pub start_s: f64,
    /// Operations that ended well.
    pub ok: u64,
    /// Operations that failed.
    pub failed: u64,
    /// Mean response time of those that ended well, seconds.
    pub response_s: f64,
}

/// A fault that was carried out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InjectedFault {
    /// Number of the fault in the file, from 1.
    pub number: usize,
    /// Kind of the fault, and its target.
    pub fault: String,
    /// Means of the fault.
    pub means: String,
    /// Begin, seconds from the begin of the phase.
    pub begin_s: f64,
    /// Time at which it was undone, seconds; `None` if it was not undone before the end.
    pub end_s: Option<f64>,
}

/// Effects of all faults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultEffects {
    /// Figures of each fault, by its begin.
    pub figures: Vec<FaultFigures>,
    /// Failed operations that belong to a fault, each counted once.
    pub failed: u64,
}

/// The time before a fault that it is compared with, seconds.
const BEFORE_S: f64 = 10.0;

/// Seconds of it that are needed.
const LEAST: usize = 3;

/// Greatest lateness of a load thread of a busy host, seconds.
const EDGE_S: f64 = 0.05;

/// Recovered is what is back at this share of the median before ...
const BACK: f64 = 0.9;

/// ... for so many seconds.
const HELD: usize = 3;

/// Fewer intervals have no scatter to speak of.
const SCATTER: usize = 20;

/// A short stall may lie across so many intervals.
const ACROSS: usize = 2;

/// Probability below which something is not taken for chance.
const CHANCE: f64 = 0.001;

/// The intervals, and the seconds that begin with them.
struct ThroughputHistory<'a> {
    /// All intervals; the last may be a part.
    all: &'a [IntervalOutcomes],
    /// Intervals in a second.
    each: usize,
    /// Successful operations in the second that begins with each interval.
    seconds: Vec<f64>,
    length_s: f64,
}

impl<'a> ThroughputHistory<'a> {
    fn new(all: &'a [IntervalOutcomes], length_s: f64) -> Self {
        let each = (1.0 / length_s).round().max(1.0) as usize;
        let whole = &all[..all.len().saturating_sub(1)];
        let seconds = whole.windows(each).map(|part| part.iter().map(|one| one.ok as f64).sum()).collect();
        ThroughputHistory { all, each, seconds, length_s }
    }

    /// The least rate, per second, of all parts of so many intervals that begin with one of `begins`.
    fn worst(&self, begins: Range<usize>, width: usize) -> Option<f64> {
        let whole = &self.all[..self.all.len().saturating_sub(1)];
        let rate = |part: &[IntervalOutcomes]| {
            let ok: u64 = part.iter().map(|one| one.ok).sum();
            ok as f64 * self.each as f64 / width as f64
        };
        begins.filter_map(|k| whole.get(k..k + width)).map(rate).reduce(f64::min)
    }

    /// The interval in which a time lies; a microsecond of slack, since events are dated by a clock of their own.
    fn at(&self, time_s: f64) -> usize {
        self.all.iter().take_while(|one| one.start_s + self.length_s <= time_s + 1e-6).count()
    }

    /// The interval that ends just before a fault begins, if it is the first of all with failures: they are the fault's, counted
    /// by a load thread that was late to begin its next interval.
    fn edge(&self, begin: usize, begin_s: f64) -> Option<usize> {
        let before = begin.checked_sub(1)?;
        let near = begin_s - (self.all.get(before)?.start_s + self.length_s) <= EDGE_S;
        let first = self.all[..before].iter().all(|one| one.failed == 0);
        (near && first && self.all[before].failed > 0).then_some(before)
    }

    /// Seconds that lie between two times.
    fn between(&self, from_s: f64, to_s: f64) -> Vec<usize> {
        let inside = |k: &usize| {
            let start = self.all[*k].start_s;
            start >= from_s - 1e-6 && start + self.each as f64 * self.length_s <= to_s + 1e-6
        };
        (0..self.seconds.len()).filter(inside).collect()
    }

    /// Whether whole seconds enough for a recovery follow a time.
    fn shows_a_recovery_after(&self, time_s: f64) -> bool {
        let first = self.all.iter().position(|one| one.start_s >= time_s - 1e-6);
        first.is_some_and(|first| self.seconds.len() > first + (HELD - 1) * self.each)
    }

    /// The first interval from `from` on that has at least `least` and with which three seconds begin that are back. What is
    /// caught up after a stall makes a second whole that was nearly empty: hence `least`.
    fn recovered(&self, from: usize, limit: usize, back: f64, least: f64) -> Option<usize> {
        let held = |k: usize| {
            (0..HELD).all(|n| self.seconds.get(k + n * self.each).is_some_and(|second| *second >= back))
        };
        (from..limit).find(|k| self.all[*k].ok as f64 >= least && held(*k))
    }
}

/// Intervals that are put in where none was recorded, at most: a week of seconds.
const GAP: usize = 7 * 86_400;

/// The intervals without gaps: one in which no operation ended is not recorded, and nothing was done in it.
fn filled(recorded: &[IntervalOutcomes], length_s: f64) -> Vec<IntervalOutcomes> {
    let mut all: Vec<IntervalOutcomes> = Vec::with_capacity(recorded.len());
    let mut left = GAP;
    for one in recorded {
        if let Some(last) = all.last().map(|last| last.start_s) {
            let missing = ((one.start_s - last) / length_s - 1.0).round().clamp(0.0, left as f64) as usize;
            left -= missing;
            let empty = |k: usize| IntervalOutcomes {
                start_s: last + k as f64 * length_s,
                ..IntervalOutcomes::default()
            };
            all.extend((1..=missing).map(empty));
        }
        all.push(*one);
    }
    all
}

/// Judges every fault. `intervals` are those of the measured phase in their order, each of `length_s`; the last may be a part.
pub fn assess_faults(
    intervals: &[IntervalOutcomes],
    length_s: f64,
    faults: &[InjectedFault],
) -> FaultEffects {
    let begun = intervals.iter().take_while(|one| one.start_s < -1e-6).count();
    let filled = filled(&intervals[begun..], length_s);
    let history = ThroughputHistory::new(&filled, length_s);
    let mut faults = faults.to_vec();
    faults.sort_by(|a, b| a.begin_s.total_cmp(&b.begin_s));
    let mut assessed = FaultEffects::default();
    let mut theirs = vec![false; history.all.len()];
    // End of the faults before, seconds.
    let mut calm_s: f64 = 0.0;
    for (at, fault) in faults.iter().enumerate() {
        let begin = history.at(fault.begin_s);
        let next =
            faults[at + 1..].iter().map(|other| history.at(other.begin_s)).find(|other| *other > begin);
        let (mut figures, to) = one(&history, fault, begin, next, calm_s);
        if let Some(edge) = history.edge(begin, fault.begin_s).filter(|edge| !theirs[*edge]) {
            figures.failed += history.all[edge].failed;
            theirs[edge] = true;
        }
        let over_s = figures.recover_s.map(|s| fault.begin_s + s).or(fault.end_s);
        calm_s = calm_s.max(over_s.unwrap_or(f64::INFINITY));
        theirs[begin.min(to)..to].fill(true);
        assessed.figures.push(figures);
    }
    let own = history.all.iter().zip(&theirs).filter(|(_, own)| **own);
    assessed.failed = own.map(|(one, _)| one.failed).sum();
    assessed
}

/// One fault, and the interval before which its failures end.
fn one(
    history: &ThroughputHistory<'_>,
    fault: &InjectedFault,
    begin: usize,
    next: Option<usize>,
    calm_s: f64,
) -> (FaultFigures, usize) {
    let mut figures = FaultFigures {
        number: fault.number,
        fault: fault.fault.clone(),
        means: fault.means.clone(),
        begin_s: fault.begin_s,
        end_s: fault.end_s,
        ..FaultFigures::default()
    };
    let all = history.all;
    let limit = next.unwrap_or(all.len());
    let failed = |to: usize| all[begin.min(to)..to].iter().map(|one| one.failed).sum();
    let before = history.between(calm_s.max(fault.begin_s - BEFORE_S), fault.begin_s);
    if before.len() < LEAST {
        figures.failed = failed(limit);
        figures.note =
            Some("fewer than three calm seconds before it: there is nothing to compare with".into());
        return (figures, limit);
    }
    let seconds: Vec<f64> = before.iter().map(|k| history.seconds[*k]).collect();
    let usual = median(&seconds).unwrap_or(0.0);
    figures.before_per_s = Some(usual);
    let each = usual / history.each as f64;
    // A difference within the scatter before the fault is no loss.
    let calm = &all[before[0]..(before[before.len() - 1] + history.each).min(all.len())];
    let least = scatter(calm).min(each * BACK);
    figures.before_us = mean_response_us(calm);
    let most_failed = calm.iter().map(|one| one.failed).max().unwrap_or(0);
    // The last interval may be a part: it can only be told by what failed.
    let whole = limit.min(all.len().saturating_sub(1));
    // An effect long after the fault was undone does not belong to it.
    let late = fault.end_s.map_or(limit, |end| history.at(end) + 1 + HELD * history.each).min(limit);
    let window = all.get(begin..late.min(whole)).unwrap_or_default();
    let missing = effect(calm, window, least).map(|k| begin + k);
    let failing = (begin..late).find(|k| all[*k].failed > most_failed);
    let seen = missing.into_iter().chain(failing).min();
    figures.detect_s = seen.map(|k| all[k].start_s + history.length_s - fault.begin_s);
    let back = seen.and_then(|k| history.recovered(k, limit, usual * BACK, least));
    figures.recover_s = back.map(|k| (all[k].start_s - fault.begin_s).max(0.0));
    let until = back.unwrap_or(if seen.is_some() { whole } else { late.min(whole) });
    // Number of intervals that it lasted, as far as they fill no more than a second; 0 if it was shorter than one.
    let lasted =
        fault.end_s.map_or(history.each, |end| ((end - fault.begin_s) / history.length_s + 0.01) as usize);
    let hidden = lasted == 0;
    if !hidden || seen.is_some() {
        let width = if hidden { 1 } else { lasted.min(history.each) };
        figures.worst_per_s = history.worst(begin..until.max(begin + 1), width);
    }
    let worst = figures.worst_per_s.filter(|_| usual > 0.0 && !hidden);
    figures.depth = worst.map(|worst| (1.0 - worst / usual).max(0.0));
    // Operations that wait are recorded when they end: up to the interval after.
    let slow = all.get(begin..(late.max(until) + 1).min(limit)).unwrap_or_default();
    figures.worst_us = slow.iter().filter_map(|one| mean_response_us(&[*one])).reduce(f64::max);
    let short = |one: &IntervalOutcomes| (each - one.ok as f64).max(0.0);
    figures.lost = match seen {
        Some(_) => Some(all[begin.min(until)..until].iter().map(short).sum()),
        None => (!hidden).then_some(0.0),
    };
    // Failures belong to it until it is undone, too, and for ever if it has not recovered.
    let undone = fault.end_s.map_or(limit, |end| history.at(end) + 1);
    let to = if seen.is_some() && back.is_none() { limit } else { until_or(back, undone, limit) };
    // So do those that go on without a pause while the last connections come back.
    let held = (to + HELD * history.each).min(limit);
    let to = (to..held).find(|k| all[*k].failed <= most_failed).unwrap_or(held);
    figures.failed = failed(to);
    figures.note = match (seen, back, next) {
        (None, ..) if hidden => {
            let interval = ShownLatency((history.length_s * 1e9).round() as u64);
            Some(format!(
                "shorter than an interval of {interval}: what is caught up within one does not show (phases.measure.interval)"
            ))
        }
        (None, ..) => Some("nothing failed and nothing was missing beyond what was usual before".into()),
        (_, None, Some(_)) => Some("had not recovered when the next fault came".into()),
        (_, None, None) if fault.end_s.is_some_and(|end| !history.shows_a_recovery_after(end)) => {
            Some(format!(
                "too short to tell whether it recovered: the phase ended less than {HELD} whole seconds after it was undone"
            ))
        }
        (_, None, None) => Some(format!("had not recovered for {HELD} s when the phase ended")),
        _ => None,
    };
    (figures, to)
}

/// Computes the level that intervals without a fault seldom fall below: twice as far below their median as the
/// twentieth part of them reaches. A single stall before the fault does not make its outage usual. Of few it is the
/// least.
fn scatter(calm: &[IntervalOutcomes]) -> f64 {
    let [least, low, middle] = quantiles(calm);
    least.max(middle - 2.0 * (middle - low))
}

/// Computes the level that a single interval must be below to say something: all before, its scatter twice over, and
/// half of what is usual. One that has nothing at all always is, unless that was so before.
fn depth(calm: &[IntervalOutcomes]) -> f64 {
    let [least, low, middle] = quantiles(calm);
    let depth = least.min(middle - 4.0 * (middle - low)).min(middle / 2.0);
    if least > 0.0 { depth.max(1.0) } else { depth }
}

/// Successes of intervals: the fewest, those that the twentieth part does not reach, and the median.
fn quantiles(intervals: &[IntervalOutcomes]) -> [f64; 3] {
    let mut all: Vec<f64> = intervals.iter().map(|one| one.ok as f64).collect();
    all.sort_by(f64::total_cmp);
    let at = |k: usize| all.get(k).copied().unwrap_or(0.0);
    [at(0), at(all.len() / SCATTER), at(all.len() / 2)]
}

/// The first interval of `window` that is low and no chance. A server that stalls now and then stalls beside a fault, too: only
/// what is longer or lower than all that the calm part has shown counts, or clearly more frequent.
fn effect(calm: &[IntervalOutcomes], window: &[IntervalOutcomes], least: f64) -> Option<usize> {
    let (before, after) = (runs(calm, least), runs(window, least));
    let longest = before.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    let usual = (2 * longest).max(ACROSS);
    let chance = by_chance((before.len(), calm.len()), (after.len(), window.len()));
    // A few intervals cannot tell how often.
    let any = calm.len() < SCATTER || chance < CHANCE;
    let deep = depth(calm);
    let lowest = |run: &Range<usize>| window[run.clone()].iter().map(|one| one.ok).min().unwrap_or(0) as f64;
    let own = |run: &&Range<usize>| any || run.len() > usual || lowest(run) < deep;
    after.iter().find(own).map(|run| run.start)
}

/// Runs of intervals that have less than `least`.
fn runs(part: &[IntervalOutcomes], least: f64) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (at, _) in part.iter().enumerate().filter(|(_, one)| (one.ok as f64) < least) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

/// Computes how likely it is that so many of the runs of two parts, or more, are in the second: how many each has,
/// and its length.
fn by_chance(calm: (usize, usize), window: (usize, usize)) -> f64 {
    let share = window.1 as f64 / (calm.1 + window.1).max(1) as f64;
    match Binomial::new(share, (calm.0 + window.0) as u64) {
        Ok(all) if window.0 > 0 => all.sf(window.0 as u64 - 1),
        _ => 1.0,
    }
}

/// Mean response time of what ended well in these intervals, microseconds.
fn mean_response_us(intervals: &[IntervalOutcomes]) -> Option<f64> {
    let (sum, count) = intervals
        .iter()
        .fold((0.0, 0), |(sum, count), one| (sum + one.response_s * one.ok as f64, count + one.ok));
    (count > 0).then(|| sum / count as f64 * 1e6)
}

fn until_or(back: Option<usize>, undone: usize, limit: usize) -> usize {
    back.unwrap_or(0).max(undone).min(limit)
}

#[cfg(test)]
#[path = "faults_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "faults_parts_tests.rs"]
mod parts;

#[cfg(test)]
#[path = "faults_limits_tests.rs"]
mod limits;
