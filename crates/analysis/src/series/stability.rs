//! The whole of it: is the level of a run's throughput one level, and which figure stands for the run?

use super::change::{ALARMING, MATERIAL, changes};
use super::period::{Period, period};
use super::spell::spell;
use super::steady::{SteadyMean, steady_mean};
use super::trend::{Trend, along_a_line, trend};
use super::{mean, robust_deviation};
use dyno_types::stats::median;

/// Label of a segment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// The first, which rises to the next, early in the run.
    WarmUp,
    /// A level.
    Level,
    /// A level at least a fifth below the one before it.
    Collapse,
    /// A level that comes back towards one before a collapse.
    Recovery,
}

/// A part of a run with one level.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Segment {
    /// First interval, and the one after the last.
    pub range: (usize, usize),
    /// Median.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// Label.
    pub label: Label,
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

/// Stability of a run's throughput.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Stability {
    /// Levels, in order; one where nothing changed.
    pub segments: Vec<Segment>,
    /// The change that is worth an alarm, if one is: the number of the segment it begins.
    pub alarm: Option<usize>,
    /// True if a part of it differs from the rest by more than noise does; else its levels are no reproach.
    pub stands_out: bool,
    /// The last level.
    pub headline: usize,
    /// Mean of the whole run and its interval; `None` where a part stands out, stalls or drifts, or
    /// there are fewer than 10 intervals.
    pub steady: Option<SteadyMean>,
    /// Intervals that warming up took, at the start of the run; they are in every other figure.
    pub warm_up: usize,
    /// The period, if the series repeats itself.
    pub period: Option<Period>,
    /// Drift of the last level.
    pub trend: Option<Trend>,
    /// Share of its mean by which it changes along a straight line, if that is more than noise and explains it better than its
    /// levels do: then its levels are steps of a drift, and none is an alarm.
    pub drift: Option<f64>,
    /// Standard deviation by mean, and its robust form.
    pub variation: (f64, f64),
    /// Stalls, in order.
    pub stalls: Vec<Stall>,
}

/// A warm-up is over by then, as a share of the run.
const EARLY: f64 = 1.0 / 3.0;

/// A fall by so much is a collapse.
const COLLAPSE: f64 = 0.2;

/// Fewest intervals that are judged.
pub const FEWEST: usize = 5;

/// Stops that are no longer than this, in intervals, are no level of their own.
const SHORT: usize = 12;

/// Up to this share of the median nothing is done, however much intervals vary.
const NOTHING: f64 = 0.05;
/// Below this share of the median hardly anything is done.
const STOPPED: f64 = 0.25;

/// Judges a series of throughput. `None` for fewer than 5 intervals.
pub fn stability(all: &[f64]) -> Option<Stability> {
    if all.len() < FEWEST {
        return None;
    }
    let repeats = period(all);
    let middle = median(all).unwrap_or(0.0);
    let scatter = robust_deviation(all);
    let edge = (middle / 2.0).min(middle - 4.0 * scatter).max(middle * NOTHING);
    let stalls = stalls_below(all, edge);
    // A short stop has its own name: it is not a level, and hides none.
    let mut filled = all.to_vec();
    for stop in stalls_below(all, (middle * STOPPED).min(edge)).iter().filter(|stop| stop.intervals <= SHORT)
    {
        filled[stop.at..stop.at + stop.intervals].fill(middle);
    }
    let by_changes: Vec<usize> = changes(&filled, MATERIAL).iter().map(|change| change.at).collect();
    let (mut segments, step) = levels(all, &by_changes);
    let spell = spell(&filled, repeats.map_or(1, |period| period.intervals));
    // Parts that are too short for a level of their own may stand out all the same.
    if let Some((from, to)) = spell.filter(|_| step < ALARMING) {
        let edges: Vec<usize> = [from, to].into_iter().filter(|at| (1..all.len()).contains(at)).collect();
        let (short, step) = levels(all, &edges);
        if step >= ALARMING {
            segments = short;
        }
    }
    let greatest = segments.iter().map(|s| s.median).fold(f64::MIN_POSITIVE, f64::max);
    let steps = |at: &usize| {
        let step = (segments[*at].median - segments[*at - 1].median).abs() / greatest;
        step >= ALARMING && segments[*at - 1].label != Label::WarmUp
    };
    let warm_up = segments.iter().filter(|s| s.label == Label::WarmUp).map(|s| s.range.1).max().unwrap_or(0);
    let later: Vec<Segment> = segments.iter().filter(|s| s.label != Label::WarmUp).cloned().collect();
    let stairs = drift(&all[warm_up..], &later).filter(|_| spell.is_some());
    let alarm = (1..segments.len()).find(steps).filter(|_| spell.is_some() && stairs.is_none());
    let drift = stairs.or_else(|| along_a_line(&filled[warm_up..]).filter(|_| alarm.is_none()));
    let headline = segments.len() - 1;
    let (from, to) = segments[headline].range;
    let whole = mean(all);
    let spread = all.iter().map(|one| (one - whole).powi(2)).sum::<f64>() / (all.len() - 1) as f64;
    let share = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
    // A mean over several levels, a stall or a drift describes none of them.
    let settled = spell.is_none() && drift.is_none() && stalls.is_empty();
    let steady = || steady_mean(all, repeats.map_or(1, |period| period.intervals));
    Some(Stability {
        stands_out: spell.is_some(),
        alarm,
        headline,
        steady: settled.then(steady).flatten(),
        warm_up,
        period: repeats,
        trend: trend(&all[from..to]),
        drift,
        variation: (share(spread.sqrt(), whole), share(scatter, middle)),
        stalls,
        segments,
    })
}

/// The levels between `edges`, labelled, and the greatest step between two of them as a share of the greatest level.
fn levels(all: &[f64], edges: &[usize]) -> (Vec<Segment>, f64) {
    let edges: Vec<usize> =
        std::iter::once(0).chain(edges.iter().copied()).chain(std::iter::once(all.len())).collect();
    let mut segments: Vec<Segment> = edges
        .windows(2)
        .map(|pair| {
            let part = &all[pair[0]..pair[1]];
            let middle = median(part).unwrap_or(0.0);
            Segment { range: (pair[0], pair[1]), median: middle, mean: mean(part), label: Label::Level }
        })
        .collect();
    label(&mut segments, all.len());
    let greatest = segments.iter().map(|s| s.median).fold(f64::MIN_POSITIVE, f64::max);
    let steps = segments.windows(2).map(|pair| (pair[1].median - pair[0].median).abs() / greatest);
    let step = steps.fold(0.0, f64::max);
    (segments, step)
}

/// The change over a straight line by least squares, as a share of the mean, if it fits better than the levels do: by the
/// Bayesian information criterion, two parameters against a mean and an edge for each level.
fn drift(all: &[f64], levels: &[Segment]) -> Option<f64> {
    let n = all.len() as f64;
    if levels.len() < 2 {
        return None;
    }
    let (middle, centre) = (mean(all), (n - 1.0) / 2.0);
    let each = || all.iter().enumerate().map(|(at, value)| (at as f64 - centre, value - middle));
    let slope = each().map(|(x, y)| x * y).sum::<f64>() / each().map(|(x, _)| x * x).sum::<f64>();
    let of_line: f64 = each().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let mut of_levels = 0.0;
    let mut rest = all;
    for level in levels {
        let (own, after) = rest.split_at((level.range.1 - level.range.0).min(rest.len()));
        of_levels += own.iter().map(|value| (value - level.mean).powi(2)).sum::<f64>();
        rest = after;
    }
    let criterion =
        |squares: f64, parameters: f64| n * (squares / n).max(f64::MIN_POSITIVE).ln() + parameters * n.ln();
    let straighter = criterion(of_line, 2.0) < criterion(of_levels, 2.0 * levels.len() as f64 - 1.0);
    straighter.then_some(slope * (n - 1.0) / middle.max(1e-9))
}

fn label(segments: &mut [Segment], length: usize) {
    for at in 1..segments.len() {
        let (before, own) = (segments[at - 1].median, segments[at].median);
        let higher = segments[..at].iter().map(|s| s.median).fold(0.0, f64::max);
        segments[at].label = match own {
            own if own < before * (1.0 - COLLAPSE) => Label::Collapse,
            own if own > before && before < higher * (1.0 - COLLAPSE) => Label::Recovery,
            _ => Label::Level,
        };
    }
    let early = segments.len() > 1 && segments[0].range.1 as f64 <= EARLY * length as f64;
    if early && segments[1].median > segments[0].median {
        segments[0].label = Label::WarmUp;
    }
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

#[cfg(test)]
mod tests {
    use super::super::synthetic::{noise, random};
    use super::*;

    fn around(level: f64, count: usize, seed: u64) -> Vec<f64> {
        noise(&mut random(seed), count, 0.2).iter().map(|one| level * (1.0 + 0.02 * one)).collect()
    }

    #[test]
    fn one_level() {
        let found = stability(&around(1000.0, 300, 1)).unwrap();
        assert_eq!((found.segments.len(), found.alarm, found.stalls.len()), (1, None, 0));
        let steady = found.steady.unwrap();
        assert!((steady.interval.mean - 1000.0).abs() < 3.0 * steady.interval.half_width.max(1.0));
        assert!(stability(&[1.0; 4]).is_none());
    }

    #[test]
    fn warm_up_collapse_and_recovery() {
        let mut all = around(700.0, 40, 1);
        all.extend(around(1000.0, 200, 2));
        all.extend(around(300.0, 100, 3));
        all.extend(around(1000.0, 100, 4));
        let found = stability(&all).unwrap();
        let labels: Vec<Label> = found.segments.iter().map(|segment| segment.label).collect();
        assert_eq!(labels, [Label::WarmUp, Label::Level, Label::Collapse, Label::Recovery], "{found:?}");
        assert_eq!((found.warm_up, found.alarm), (found.segments[0].range.1, Some(2)));
        assert!((found.segments[2].range.0).abs_diff(240) <= 2);
        assert_eq!(found.headline, 3);
    }

    #[test]
    fn a_straight_line_is_a_drift_and_a_step_is_none() {
        let level = around(1000.0, 120, 6);
        let falling: Vec<f64> =
            level.iter().enumerate().map(|(at, one)| one * (1.0 - 0.3 * at as f64 / 119.0)).collect();
        let found = stability(&falling).unwrap();
        assert!(found.drift.is_some_and(|share| (-0.4..-0.28).contains(&share)), "{found:?}");
        assert_eq!(found.alarm, None);
        let mut stepped = level.clone();
        stepped[60..].iter_mut().for_each(|one| *one *= 0.7);
        let found = stability(&stepped).unwrap();
        assert_eq!((found.drift, found.alarm), (None, Some(1)));
    }

    /// `DEBUG SLEEP 3` on a host that is busy with other things.
    #[test]
    fn a_stop_is_a_stop_however_noisy_the_rest() {
        let all = [26e3, 9e3, 31e3, 14e3, 0.0, 0.0, 8e3, 29e3, 12e3, 27e3];
        let found = stability(&all).unwrap();
        assert_eq!(
            (found.stalls.len(), found.stalls[0].at, found.stalls[0].intervals),
            (1, 4, 2),
            "{found:?}"
        );
        assert!(found.steady.is_none());
    }

    #[test]
    fn stalls_are_counted() {
        let mut all = around(1000.0, 100, 5);
        (all[30], all[31], all[70]) = (0.0, 100.0, 10.0);
        let found = stability(&all).unwrap();
        let places: Vec<(usize, usize)> = found.stalls.iter().map(|s| (s.at, s.intervals)).collect();
        assert_eq!(places, [(30, 2), (70, 1)]);
        assert_eq!(found.segments.len(), 1);
    }
}

#[cfg(test)]
#[path = "stability_parts_tests.rs"]
mod parts;
