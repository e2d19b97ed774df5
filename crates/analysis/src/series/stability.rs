//! The judge of stationarity: is a run one level, and which figure stands for it?
//!
//! Throughput and response times are judged alike; verdict, `explain`, pages, `compare` and imports all ask here. In order:
//! stops, the period, outliers, [`fit_pieces`], and what of them matters.

use super::period::{Period, find_period};
use super::pieces::{Pieces, fit_pieces};
use super::steady::{SteadyMean, steady_mean};
use super::{batch_means, mean, robust_deviation};
use dyno_types::stats::median;

/// Answer of the judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StabilityAnswer {
    /// One level, or several that differ by less than an alarm.
    Steady,
    /// Parts with levels of their own, a drift, a period or stops.
    NotSteady,
    /// Nothing was found, but a change that matters would not have been either.
    CannotTell,
}

/// Label of a segment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentLabel {
    /// The first, which is worse than the next, early in the run.
    WarmUp,
    /// A level.
    Level,
    /// A level of throughput at least a fifth below the one before it.
    Collapse,
    /// A level of throughput that comes back towards one before a collapse.
    Recovery,
}

/// A part of a run with one level.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Segment {
    /// First interval, and the one after the last.
    pub range: (usize, usize),
    /// Mean of its intervals.
    pub mean: f64,
    /// Label.
    pub label: SegmentLabel,
}

/// Intervals in a row below half of the run's median, and by more than its noise, or in which next to nothing was done.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Stall {
    /// The first.
    pub at: usize,
    /// Number of intervals.
    pub intervals: usize,
    /// The least value.
    pub least: f64,
}

/// Stability of a series.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Stability {
    /// The answer.
    pub answer: StabilityAnswer,
    /// Levels, in order; one where nothing changed by a share that matters.
    pub segments: Vec<Segment>,
    /// The change that is worth an alarm, if one is: the number of the segment it begins.
    pub alarm: Option<usize>,
    /// Mean of the whole run and its interval; `None` where it is not steady, or there are fewer than 10 intervals.
    pub steady: Option<SteadyMean>,
    /// Intervals that warming up took, at the start of the run; they are in every other figure.
    pub warm_up: usize,
    /// The period, if the series repeats itself.
    pub period: Option<Period>,
    /// Share of its mean by which it changes along a straight line from beginning to end, if a line describes it best.
    pub drift: Option<f64>,
    /// Standard deviation by mean, and that of an interval about what was found, a period without.
    pub variation: (f64, f64),
    /// Correlation of neighbouring intervals about what was found.
    pub correlation: f64,
    /// Least step from one half of the run to the other, as a share, that is found in 95 % of series with this noise.
    pub detectable: f64,
    /// Stalls, in order; of response times there are none.
    pub stalls: Vec<Stall>,
}

/// What is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JudgedFigure {
    /// Operations a second, as they are.
    Throughput,
    /// Mean response times, by their logarithm.
    Mean,
    /// A high percentile of response times, by its logarithm.
    Tail,
}

impl JudgedFigure {
    /// The least step between two levels that is kept, and that is worth an alarm, as shares of the greater level: a response
    /// time moves by more than throughput does before a user notices.
    fn matters(self) -> (f64, f64) {
        match self {
            JudgedFigure::Throughput => (0.05, ALARMING),
            JudgedFigure::Mean => (0.10, 0.20),
            JudgedFigure::Tail => (0.15, 0.30),
        }
    }

    fn is_throughput(self) -> bool {
        self == JudgedFigure::Throughput
    }
}

/// A step or drift of throughput by so much is worth an alarm.
pub const ALARMING: f64 = 0.10;

/// A warm-up is over by then, as a share of the run.
const EARLY: f64 = 1.0 / 3.0;

/// A fall by so much is a collapse.
const COLLAPSE: f64 = 0.2;

/// Fewest intervals that are judged.
pub const FEWEST: usize = 5;

/// Longest series that is looked at as it is; longer ones are averaged first.
const MOST: usize = 10_000;

/// Stops that are no longer than this, in intervals, are no level of their own.
const SHORT: usize = 12;

/// Up to this share of the median nothing is done, however much intervals vary.
const NOTHING: f64 = 0.05;
/// Below this share of the median hardly anything is done.
const STOPPED: f64 = 0.25;

/// With fewer periods than this the usual one is taken away.
const PERIODS: usize = 12;

/// Intervals to either side whose median an outlier is held against, and the deviations that it may be away from it.
const AROUND: usize = 2;
const OUTLYING: f64 = 3.5;

/// Judges a series of throughput. `None` for fewer than 5 intervals.
pub fn judge_stability(all: &[f64]) -> Option<Stability> {
    judge(all, JudgedFigure::Throughput)
}

/// Judges mean response times (any unit) of intervals; those without an operation have 0 and are left out. `None` for fewer
/// than 5.
pub fn stability_of_responses(all: &[f64]) -> Option<Stability> {
    judge(all, JudgedFigure::Mean)
}

/// The same of a high percentile; each interval has to hold operations enough for it.
pub fn stability_of_tails(all: &[f64]) -> Option<Stability> {
    judge(all, JudgedFigure::Tail)
}

fn judge(all: &[f64], figure: JudgedFigure) -> Option<Stability> {
    if all.len() > MOST {
        let coarse = all.len().div_ceil(MOST);
        // Of intervals without an operation there is no response time.
        let known = |part: &[f64]| mean(part.iter().filter(|one| **one > 0.0));
        let averaged = match figure.is_throughput() {
            true => batch_means(all, coarse),
            false => all.chunks_exact(coarse).map(known).collect(),
        };
        return judge(&averaged, figure).map(|found| found.stretched(coarse));
    }
    let plain = figure.is_throughput();
    let stalls = if plain { stalls(all) } else { Vec::new() };
    // A short stop has its own name: it is not a level, and hides none.
    let stopped = |at: usize| stalls.iter().any(|stall| stall.is_stop && stall.stall.range().contains(&at));
    let repeats = find_period(all).filter(|_| plain || all.iter().all(|one| *one > 0.0));
    let kept: Vec<usize> = (0..all.len())
        .filter(|at| all[*at].is_finite())
        .filter(|at| if plain { repeats.is_some() || !stopped(*at) } else { all[*at] > 0.0 })
        .collect();
    if all.len() < FEWEST || kept.is_empty() {
        return None;
    }
    let values: Vec<f64> = kept.iter().map(|at| all[*at]).collect();
    let whole = mean(&values);
    let scaled = |value: f64| if plain { value / whole.max(f64::MIN_POSITIVE) } else { value.ln() };
    let series = without_period(&values.into_iter().map(scaled).collect::<Vec<_>>(), repeats.as_ref());
    let found = if kept.len() < FEWEST { Pieces::unknown() } else { fit_pieces(&clipped(&series)) };
    let share = |difference: f64| if plain { difference } else { difference.exp_m1() };
    // Edges by the intervals of the whole series.
    let edges = found.edges.iter().map(|edge| kept[*edge]).collect();
    let levels = Levels { all, counted: &kept, figure };
    let segments = levels.material(edges);
    let alarm = levels.alarm(&segments);
    let warm_up =
        segments.first().filter(|first| first.label == SegmentLabel::WarmUp).map_or(0, |first| first.range.1);
    // Steps that do not matter may be those of a drift.
    let drift = found.line.filter(|_| segments.len() == 1).map(share);
    let stalls: Vec<Stall> = stalls.into_iter().map(|stall| stall.stall).collect();
    let limit = figure.matters().1;
    let swings = repeats.as_ref().is_some_and(|period| period.relative_swing() >= limit);
    let moves = drift.is_some_and(|share| share.abs() >= limit);
    let detectable = share(found.detectable);
    let answer = match alarm.is_some() || warm_up > 0 || moves || swings || !stalls.is_empty() {
        true => StabilityAnswer::NotSteady,
        false if detectable > limit => StabilityAnswer::CannotTell,
        false => StabilityAnswer::Steady,
    };
    let spread =
        kept.iter().map(|at| (all[*at] - whole).powi(2)).sum::<f64>() / (kept.len().max(2) - 1) as f64;
    // A mean over several levels, a stall or a drift describes none of them. Over whole periods it does.
    let settled = segments.len() == 1 && drift.is_none() && stalls.is_empty() && plain;
    let steady = || steady_mean(all, repeats.as_ref().map_or(1, |period| period.intervals));
    Some(Stability {
        answer,
        alarm,
        steady: settled.then(steady).flatten(),
        warm_up,
        variation: (if whole > 0.0 { spread.sqrt() / whole } else { 0.0 }, found.deviation),
        period: repeats,
        drift,
        correlation: found.correlation,
        detectable,
        stalls,
        segments,
    })
}

impl Stall {
    fn range(&self) -> std::ops::Range<usize> {
        self.at..self.at + self.intervals
    }
}

impl Stability {
    /// The same of a series whose intervals were `coarse` intervals.
    fn stretched(mut self, coarse: usize) -> Self {
        for segment in &mut self.segments {
            segment.range = (segment.range.0 * coarse, segment.range.1 * coarse);
        }
        for stall in &mut self.stalls {
            (stall.at, stall.intervals) = (stall.at * coarse, stall.intervals * coarse);
        }
        if let Some(period) = &mut self.period {
            period.intervals *= coarse;
        }
        if let Some(steady) = &mut self.steady {
            steady.batch *= coarse;
        }
        self.warm_up *= coarse;
        self
    }

    /// What would not have been seen, in words.
    pub fn describe_unseen_steps(&self) -> String {
        match self.detectable < 1.0 {
            true => format!("a step below {:.0} % would not be seen", self.detectable * 100.0),
            false => "hardly any step would be seen".to_owned(),
        }
    }

    /// The level that holds for most intervals, and the segments that are away from it by a share that is worth an alarm.
    pub fn usual_level(&self) -> (f64, Vec<&Segment>) {
        let away = |level: f64, other: f64| (level - other).abs() >= ALARMING * level.max(other);
        let length = |segment: &Segment| segment.range.1 - segment.range.0;
        let alike = |level: f64| -> usize {
            self.segments.iter().filter(|other| !away(level, other.mean)).map(length).sum()
        };
        let Some(most) = self.segments.iter().max_by_key(|segment| alike(segment.mean)) else {
            return (0.0, Vec::new());
        };
        let (own, others): (Vec<&Segment>, Vec<&Segment>) =
            self.segments.iter().partition(|segment| !away(most.mean, segment.mean));
        let sum: f64 = own.iter().map(|segment| segment.mean * length(segment) as f64).sum();
        (sum / own.iter().map(|segment| length(segment)).sum::<usize>() as f64, others)
    }
}

/// A stall, and whether it is a short stop.
struct ClassifiedStall {
    stall: Stall,
    is_stop: bool,
}

fn stalls(all: &[f64]) -> Vec<ClassifiedStall> {
    let middle = median(all).unwrap_or(0.0);
    let edge = (middle / 2.0).min(middle - 4.0 * robust_deviation(all)).max(middle * NOTHING);
    let stops = stalls_below(all, (middle * STOPPED).min(edge));
    let mut found: Vec<ClassifiedStall> =
        stalls_below(all, edge).into_iter().map(|stall| ClassifiedStall { stall, is_stop: false }).collect();
    // What is a stop within a longer stall has edges of its own: then all of the stall is left out.
    for one in &mut found {
        let inside = |stop: &&Stall| one.stall.range().contains(&stop.at);
        let stopped: usize = stops.iter().filter(inside).map(|stop| stop.intervals).sum();
        one.is_stop = one.stall.intervals <= SHORT && stopped + 2 >= one.stall.intervals && stopped > 0;
    }
    found
}

fn stalls_below(all: &[f64], below: f64) -> Vec<Stall> {
    let mut found: Vec<Stall> = Vec::new();
    for (at, one) in all.iter().enumerate().filter(|(_, one)| **one < below) {
        match found.last_mut().filter(|last| last.at + last.intervals == at) {
            Some(last) => {
                last.intervals += 1;
                last.least = last.least.min(*one);
            }
            None => found.push(Stall { at, intervals: 1, least: *one }),
        }
    }
    found
}

/// The series without a period that it has few of: a part of it would be a level. Many of them are noise that no level follows.
fn without_period(series: &[f64], repeats: Option<&Period>) -> Vec<f64> {
    let few = repeats.map(|period| period.intervals).filter(|length| series.len() / length < PERIODS);
    let Some(length) = few else { return series.to_vec() };
    let usual: Vec<f64> = (0..length)
        .map(|phase| {
            let all: Vec<f64> = series.iter().skip(phase).step_by(length).copied().collect();
            median(&all).unwrap_or(0.0)
        })
        .collect();
    let middle = mean(&usual);
    series.iter().enumerate().map(|(at, one)| one - usual[at % length] + middle).collect()
}

/// The series with single outliers drawn in: one interval is no part, and its noise has tails.
fn clipped(series: &[f64]) -> Vec<f64> {
    let near = |at: usize| &series[at.saturating_sub(AROUND)..(at + AROUND + 1).min(series.len())];
    let middles: Vec<f64> = (0..series.len()).filter_map(|at| median(near(at))).collect();
    let away: Vec<f64> = series.iter().zip(&middles).map(|(one, middle)| (one - middle).abs()).collect();
    // Values are a part of the median that they are held against, so that they seem nearer to it by a fifth.
    let edge = OUTLYING * 1.25 * super::MAD_TO_DEVIATION * median(&away).unwrap_or(0.0);
    if edge <= 0.0 {
        return series.to_vec();
    }
    series.iter().zip(&middles).map(|(one, middle)| one.clamp(middle - edge, middle + edge)).collect()
}

/// The levels between edges.
struct Levels<'a> {
    all: &'a [f64],
    /// The intervals that are no stops.
    counted: &'a [usize],
    figure: JudgedFigure,
}

impl Levels<'_> {
    fn mean(&self, from: usize, to: usize) -> f64 {
        let own = &self.counted[self.counted.partition_point(|at| *at < from)..];
        mean(own.iter().take_while(|at| **at < to).map(|at| self.all[*at]))
    }

    /// The step between two levels as a share of the greatest, or of response times of the greater of the two.
    fn step(&self, a: f64, b: f64, greatest: f64) -> f64 {
        (a - b).abs() / if self.figure.is_throughput() { greatest } else { a.max(b).max(f64::MIN_POSITIVE) }
    }

    /// The segments between those edges whose steps matter: the least are taken back first.
    fn material(&self, mut edges: Vec<usize>) -> Vec<Segment> {
        let between = |edges: &[usize]| -> Vec<((usize, usize), f64)> {
            let all: Vec<usize> =
                std::iter::once(0).chain(edges.iter().copied()).chain([self.all.len()]).collect();
            all.windows(2).map(|pair| ((pair[0], pair[1]), self.mean(pair[0], pair[1]))).collect()
        };
        loop {
            let levels = between(&edges);
            let greatest = levels.iter().map(|(_, level)| *level).fold(f64::MIN_POSITIVE, f64::max);
            let steps = levels.windows(2).map(|pair| self.step(pair[0].1, pair[1].1, greatest));
            match steps.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) {
                Some((least, step)) if step < self.figure.matters().0 => drop(edges.remove(least)),
                _ => return self.labelled(&levels),
            }
        }
    }

    fn labelled(&self, levels: &[((usize, usize), f64)]) -> Vec<Segment> {
        let plain = self.figure.is_throughput();
        let label = |at: usize| {
            let (range, own) = levels[at];
            if at == 0 {
                let Some((_, next)) = levels.get(1) else { return SegmentLabel::Level };
                let worse = if plain { own < *next && own >= STOPPED * next } else { own > *next };
                // A run that begins well and falls then has not warmed up.
                let begins_so = (self.all[0] - own).abs() <= (self.all[0] - next).abs();
                let early = range.1 as f64 <= EARLY * self.all.len() as f64;
                return if worse && early && begins_so { SegmentLabel::WarmUp } else { SegmentLabel::Level };
            }
            let before = levels[at - 1].1;
            let higher = levels[..at].iter().map(|(_, level)| *level).fold(0.0, f64::max);
            match own {
                _ if !plain => SegmentLabel::Level,
                own if own < before * (1.0 - COLLAPSE) => SegmentLabel::Collapse,
                own if own > before && before < higher * (1.0 - COLLAPSE) => SegmentLabel::Recovery,
                _ => SegmentLabel::Level,
            }
        };
        let segment = |(at, (range, mean)): (usize, &((usize, usize), f64))| Segment {
            range: *range,
            mean: *mean,
            label: label(at),
        };
        levels.iter().enumerate().map(segment).collect()
    }

    /// The first level that is away from any before it by a share that is worth an alarm: small steps add up. The end of a
    /// warm-up is none.
    fn alarm(&self, segments: &[Segment]) -> Option<usize> {
        let greatest = segments.iter().map(|segment| segment.mean).fold(f64::MIN_POSITIVE, f64::max);
        let limit = self.figure.matters().1;
        (1..segments.len()).find(|at| {
            let before = segments[..*at].iter().filter(|segment| segment.label != SegmentLabel::WarmUp);
            before.into_iter().any(|before| self.step(before.mean, segments[*at].mean, greatest) >= limit)
        })
    }
}

#[cfg(test)]
#[path = "stability_tests.rs"]
mod tests;
