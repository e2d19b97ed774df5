//! Checks of a run over time: whether its figures stand for all of it. One judge for the runs that dyno makes and for those
//! that it imports.

use super::checks::{CheckFinding, Checks, FIGURES, LATENCIES, RATE_AND_TAIL};
use crate::series::stability::ALARMING;
use crate::series::{
    Segment, SegmentLabel, Stability, StabilityAnswer, Stall, judge_stability, stability_of_responses,
    stability_of_tails,
};
use dyno_rundir::schema::{Pause, Reason, Silence, Trust};
use dyno_rundir::without_spoilt;
use dyno_types::units::{Rate, ShownLatency};

/// Figures of a run interval by interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct IntervalFigures<'a> {
    /// Successful operations a second.
    pub rates: &'a [f64],
    /// Mean response time, seconds; 0 of an interval without a success. Empty if it is not known.
    pub responses_s: &'a [f64],
    /// 99th percentile of response times, seconds, of intervals of so many seconds that hold enough operations for it, and when
    /// the first of these begins, seconds after the warm-up.
    pub tails: Option<(f64, f64, &'a [f64])>,
    /// Seconds of an interval.
    pub step_s: f64,
    /// When the first one begins, seconds after the warm-up.
    pub from_s: f64,
}

/// Judges response times alone: the answer, and what was found in words. `None` where too little is known of them.
pub fn steadiness_of_responses(over_time: &IntervalFigures<'_>) -> Option<(StabilityAnswer, Option<String>)> {
    let all = over_time.of_responses();
    let found = all.iter().find_map(SeriesStability::of_responses).map(|(_, text)| text);
    let told = all.iter().all(|told| told.found.answer == StabilityAnswer::Steady);
    let answer = match found.is_some() {
        true => StabilityAnswer::NotSteady,
        false if told => StabilityAnswer::Steady,
        false => StabilityAnswer::CannotTell,
    };
    (!all.is_empty()).then_some((answer, found))
}

/// Reasons against a result that others have made, and the checks.
pub fn judge_steadiness(over_time: &IntervalFigures<'_>) -> (Vec<Reason>, Vec<String>) {
    let mut all = Checks::default();
    run_steadiness_checks(over_time, true, &[], &mut all);
    (all.reasons, all.names)
}

/// Makes every check. Seconds in which the server was not there are told apart, and so are stalls in these silences.
pub(crate) fn run_steadiness_checks(
    over_time: &IntervalFigures<'_>,
    was_there: bool,
    silences: &[Silence],
    checks: &mut Checks,
) {
    let throughput = judge_stability(over_time.rates).map(|found| SeriesStability {
        found,
        what: "throughput",
        time: over_time.time(),
    });
    if let Some(told) = &throughput {
        checks.record_check("warm_up", FIGURES, told.warm_up());
        checks.record_check("level", FIGURES, told.level());
        checks.record_check("drift", FIGURES, told.drift().filter(|_| was_there));
        checks.record_check("period", FIGURES, told.period().filter(|_| was_there));
        checks.record_check("stalls", RATE_AND_TAIL, told.stalls(silences).filter(|_| was_there));
        checks.record_check("steadiness", FIGURES, told.cannot_tell());
    }
    // What throughput does in a closed loop response times do as well: it is said once.
    let is_told =
        throughput.is_some_and(|told| told.found.answer == StabilityAnswer::NotSteady) || !was_there;
    if let Some((_, found)) = steadiness_of_responses(over_time) {
        let found = found.filter(|_| !is_told).map(|text| (Trust::Suspect, text));
        checks.record_check("response_level", LATENCIES, found);
    }
}

impl IntervalFigures<'_> {
    /// Mean and tail, as far as they are known.
    fn of_responses(&self) -> Vec<SeriesStability> {
        let mean = stability_of_responses(self.responses_s);
        let tail = self.tails.and_then(|(step_s, from_s, values)| {
            Some((Time { step_s, from_s }, stability_of_tails(values)?))
        });
        let mean =
            mean.map(|found| SeriesStability { found, what: "the mean response time", time: self.time() });
        let tail = tail.map(|(time, found)| SeriesStability { found, what: "p99", time });
        mean.into_iter().chain(tail).collect()
    }

    fn time(&self) -> Time {
        Time { step_s: self.step_s, from_s: self.from_s }
    }
}

/// Values of intervals of so many seconds, from a time on, with what pauses of the client have spoilt closed.
pub(crate) fn without_pauses(
    mut values: Vec<f64>,
    (step_s, from_s): (f64, f64),
    pauses: &[Pause],
) -> Vec<f64> {
    let at = |interval: usize| from_s + interval as f64 * step_s;
    let spoils = |interval| pauses.iter().any(|one| one.spoils_interval(at(interval), at(interval + 1)));
    let spoilt: Vec<bool> = (0..values.len()).map(spoils).collect();
    if !pauses.is_empty() {
        without_spoilt(&mut values, &spoilt);
    }
    values
}

/// Seconds of intervals.
#[derive(Clone, Copy, Debug)]
struct Time {
    step_s: f64,
    from_s: f64,
}

impl Time {
    /// Seconds after the warm-up at which an interval begins.
    fn at(&self, interval: usize) -> f64 {
        self.from_s + self.length_s(interval)
    }

    fn length_s(&self, intervals: usize) -> f64 {
        intervals as f64 * self.step_s
    }
}

/// What was found, in words.
struct SeriesStability {
    found: Stability,
    what: &'static str,
    time: Time,
}

/// A warm-up that changes the mean by so much is worth a word.
const WARM_UP: f64 = 0.01;

/// A period of response times that moves them by so much is named before a drift.
const SWING: f64 = 0.2;

/// Parts that are named.
const NAMED: usize = 4;

fn per_s(rate: f64) -> String {
    format!("{}/s", Rate(rate))
}

fn latency(s: f64) -> String {
    ShownLatency((s * 1e9) as u64).to_string()
}

impl SeriesStability {
    fn warm_up(&self) -> CheckFinding {
        let found = &self.found;
        let first = found.segments.first().filter(|segment| segment.label == SegmentLabel::WarmUp)?;
        let (sum, count) = found.segments.iter().fold((0.0, 0.0), |(sum, count), segment| {
            let intervals = (segment.range.1 - segment.range.0) as f64;
            (sum + segment.mean * intervals, count + intervals)
        });
        let warm = found.warm_up as f64;
        let rest = (sum - first.mean * warm) / (count - warm);
        (rest > (sum / count) * (1.0 + WARM_UP)).then(|| {
            (
                Trust::Suspect,
                format!(
                    "the first {} s run at {}, the rest at {}, and every figure has both in: warm up for longer (--warmup)",
                    self.time.at(found.warm_up),
                    per_s(first.mean),
                    per_s(rest)
                ),
            )
        })
    }

    /// The levels in words: those in order, or where it comes back to the usual one those that are away from it.
    fn levels(&self, figure: fn(f64) -> String) -> String {
        let all = &self.found.segments;
        let (usual, others) = self.found.usual_level();
        let at = |interval: usize| self.time.at(interval);
        // Dips are told by their own edges.
        if all.len() > 2
            && !others.is_empty()
            && others.len() + 1 < all.len()
            && all[0].label != SegmentLabel::WarmUp
        {
            let part = |segment: &&Segment| {
                format!("{} from {} to {} s", figure(segment.mean), at(segment.range.0), at(segment.range.1))
            };
            let named: Vec<String> = others.iter().take(NAMED).map(part).collect();
            let more = match others.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            return format!("{}, but {}{more}", figure(usual), named.join(", "));
        }
        let first = if all[0].label == SegmentLabel::WarmUp { 1.min(all.len() - 1) } else { 0 };
        let part = |segment: &Segment| match segment.range.1 == all[all.len() - 1].range.1 {
            true => format!("{} to the end", figure(segment.mean)),
            false => format!("{} until {} s", figure(segment.mean), at(segment.range.1)),
        };
        let named: Vec<String> = all[first..].iter().take(NAMED).map(part).collect();
        let more = if all.len() - first > NAMED { ", and so on" } else { "" };
        format!("{}{more}", named.join(", "))
    }

    fn level(&self) -> CheckFinding {
        self.found.alarm?;
        let levels = self.levels(per_s);
        let text =
            format!("the level of throughput changes: {levels}: the mean of the run describes none of them");
        Some((Trust::Suspect, text))
    }

    fn drift(&self) -> CheckFinding {
        let share = self.found.drift.filter(|share| share.abs() >= ALARMING)?;
        let text = format!(
            "throughput drifts by {:+.0} % over the run: it has not settled; run longer",
            share * 100.0
        );
        Some((Trust::Suspect, text))
    }

    fn period(&self) -> CheckFinding {
        let period = self.found.period.as_ref().filter(|period| period.relative_swing() >= ALARMING)?;
        let (low, high) = period.levels;
        let text = format!(
            "throughput repeats itself every {} s, between {} and {}: run for many whole periods",
            self.time.length_s(period.intervals),
            per_s(low),
            per_s(high)
        );
        Some((Trust::Suspect, text))
    }

    /// What could not be seen of a level that was looked for.
    fn cannot_tell(&self) -> CheckFinding {
        (self.found.answer == StabilityAnswer::CannotTell).then(|| {
            let text = format!(
                "whether throughput is steady cannot be told: it varies by {:.1} %, so that {} in so short a run; run longer",
                self.found.variation.0 * 100.0,
                self.found.describe_unseen_steps()
            );
            (Trust::Valid, text)
        })
    }

    fn stalls(&self, silences: &[Silence]) -> CheckFinding {
        let found = &self.found;
        // A level that is that low has been named. A stall within it is far below that level, too.
        let levels = found.segments.iter().skip(1).zip(&found.segments);
        let low = levels.filter(|(own, before)| own.mean < before.mean / 2.0).map(|(own, _)| own);
        let low: Vec<&Segment> = low.filter(|_| found.alarm.is_some()).collect();
        let named = |stall: &Stall, level: &Segment| {
            let within = stall.at + stall.intervals > level.range.0 && stall.at < level.range.1;
            within && stall.least >= level.mean / 2.0
        };
        let own = |stall: &&Stall| {
            let warming = stall.at + stall.intervals <= found.warm_up;
            let (from_s, until_s) = (self.time.at(stall.at), self.time.at(stall.at + stall.intervals));
            let silent =
                silences.iter().any(|one| one.from_s < until_s && one.from_s + one.length_s > from_s);
            !warming && !silent && !low.iter().any(|level| named(stall, level))
        };
        let own: Vec<&Stall> = found.stalls.iter().filter(own).collect();
        let longest = own.iter().max_by_key(|stall| (stall.intervals, std::cmp::Reverse(stall.at)))?;
        let seconds = self.time.length_s(own.iter().map(|stall| stall.intervals).sum());
        let span = format!(
            "{} to {} s, down to {}",
            self.time.at(longest.at),
            self.time.at(longest.at + longest.intervals),
            per_s(longest.least)
        );
        let places = if own.len() > 1 { format!("{} times, the longest {span}", own.len()) } else { span };
        Some((
            Trust::Suspect,
            format!(
                "throughput falls below half of its median for {seconds} s ({places}): look for checkpoints, snapshots or \
                 neighbours there"
            ),
        ))
    }

    /// Response times over the run: in an open loop throughput is what was asked for, whatever they do.
    fn of_responses(&self) -> CheckFinding {
        let (found, what) = (&self.found, self.what);
        if found.answer != StabilityAnswer::NotSteady {
            return None;
        }
        let text = if found.alarm.is_some() {
            format!("{what} changes its level: {}", self.levels(latency))
        } else if found.warm_up > 0 {
            let (first, next) = (&found.segments[0], found.segments.get(1)?);
            let until = self.time.at(found.warm_up);
            let (first, next) = (latency(first.mean), latency(next.mean));
            format!(
                "{what} is {first} for the first {until} s and {next} then (warm up for longer: --warmup)"
            )
        } else if let Some(period) = found.period.as_ref().filter(|period| period.relative_swing() >= SWING) {
            let every = self.time.length_s(period.intervals);
            let (low, high) = period.levels;
            format!("{what} repeats itself every {every} s, between {} and {}", latency(low), latency(high))
        } else {
            let share = found.drift?;
            let mean = latency(found.segments.first()?.mean);
            format!("{what}, {mean} on average, drifts by {:+.0} % over the run", share * 100.0)
        };
        Some((Trust::Suspect, format!("{text}: percentiles of the run have all of it in")))
    }
}

#[cfg(test)]
#[path = "steadiness_tests.rs"]
mod tests;
