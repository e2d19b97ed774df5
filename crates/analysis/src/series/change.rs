//! Changes of a series' level.
//!
//! PELT (Killick, Fearnhead and Eckley, 2012) with squared error on the logarithm, in units of the noise; then changes that do
//! not matter are taken back, smallest first, until each remaining step is at least the materiality, as a share of the
//! greatest segment's median. The noise is the greatest of three robust scales, widened for autocorrelation: a series that
//! oscillates or remembers its past makes steps of its own, and they are no change of level.

use super::period::period;
use super::{autocorrelation, less_running_median, robust_deviation};
use dyno_types::stats::median;

/// The share of the reference level that matters within a run.
pub const MATERIAL: f64 = 0.05;

/// The share that is worth an alarm.
pub const ALARMING: f64 = 0.10;

/// Shortest segment, intervals, where no period asks for more: two periods of a minute's checkpoints at ten seconds.
const SHORTEST: usize = 13;

/// A segment this long, intervals, tells how much its noise remembers.
const TELLING: usize = 100;

/// Reach of the running median to either side.
const REACH: usize = 30;

/// Longest series that is looked at as it is; longer ones are averaged first.
const MOST: usize = 10_000;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The first interval of the new level.
    pub at: usize,
    /// Median before, of the segment that ends here.
    pub before: f64,
    /// Median after.
    pub after: f64,
}

/// The noise of `y` in its own unit, from one interval to the next, over a period, and about its running median: the
/// greatest of the three.
fn noise(y: &[f64], period: usize) -> f64 {
    let lagged = |lag: usize| -> f64 {
        let steps: Vec<f64> = y.iter().zip(y.iter().skip(lag)).map(|(a, b)| b - a).collect();
        robust_deviation(&steps) / std::f64::consts::SQRT_2
    };
    lagged(1).max(lagged(period)).max(robust_deviation(&less_running_median(y, REACH)))
}

/// Factor by which the variance of a segment's mean exceeds that of independent noise: the integrated autocorrelation time of
/// `y` about its median (Bartlett's weights), at least 1. An oscillation has none.
fn memory(y: &[f64]) -> f64 {
    let middle = median(y).unwrap_or(0.0);
    // Outliers would hide it.
    let edge = 4.0 * robust_deviation(y);
    let rest: Vec<f64> = y.iter().map(|one| (one - middle).clamp(-edge, edge)).collect();
    let reach = SHORTEST.min(y.len() / 10).max(1);
    let weighted = |lag: usize| (1.0 - lag as f64 / (reach + 1) as f64) * autocorrelation(&rest, lag);
    (1.0 + 2.0 * (1..=reach).map(weighted).sum::<f64>()).max(1.0)
}

/// The weight of each interval: little where the noise of its segment remembers. A short segment shows too little of that:
/// it remembers no less than the one beside it that remembers least.
fn weights(y: &[f64], found: &[usize], scale: f64) -> Vec<f64> {
    let edges: Vec<usize> =
        std::iter::once(0).chain(found.iter().copied()).chain(std::iter::once(y.len())).collect();
    let length = |at: usize| edges[at + 1] - edges[at];
    let own: Vec<f64> = edges.windows(2).map(|pair| memory(&y[pair[0]..pair[1]])).collect();
    let of = |at: usize| {
        let beside = at.checked_sub(1).into_iter().chain(Some(at + 1).filter(|next| *next < own.len()));
        let least = beside.filter(|other| length(*other) > length(at)).map(|other| own[other]);
        let least = least.reduce(f64::min).filter(|_| length(at) < TELLING).unwrap_or(0.0);
        own[at].max(least)
    };
    (0..own.len()).flat_map(|at| std::iter::repeat_n(1.0 / (scale * scale * of(at)), length(at))).collect()
}

/// Sums for the weighted squared error of any segment.
struct Sums {
    weights: Vec<f64>,
    plain: Vec<f64>,
    squares: Vec<f64>,
}

impl Sums {
    fn of(y: &[f64], w: &[f64]) -> Self {
        let all = |value: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            let running = y.iter().zip(w).scan(0.0, |sum, (y, w)| {
                *sum += value(*y, *w);
                Some(*sum)
            });
            std::iter::once(0.0).chain(running).collect()
        };
        Sums { weights: all(&|_, w| w), plain: all(&|y, w| w * y), squares: all(&|y, w| w * y * y) }
    }

    /// Squared error of the segment from `from` to before `to`.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let sum = self.plain[to] - self.plain[from];
        self.squares[to] - self.squares[from] - sum * sum / (self.weights[to] - self.weights[from])
    }
}

/// The best segmentation of `y`, whose values have the weights `w` (1 / variance), with segments of at least `shortest`, where
/// each change costs `penalty`.
pub fn pelt(y: &[f64], w: &[f64], penalty: f64, shortest: usize) -> Vec<usize> {
    let n = y.len();
    let shortest = shortest.max(1);
    if n < 2 * shortest {
        return Vec::new();
    }
    let sums = Sums::of(y, w);
    let mut best = vec![f64::INFINITY; n + 1];
    let mut from = vec![0; n + 1];
    best[0] = -penalty;
    // Each with the end from which on it cannot be the best: a change at an end where it costs too much makes up for it, but the
    // segment behind that change lasts for the shortest one at least.
    let mut candidates: Vec<(usize, usize)> = vec![(0, usize::MAX)];
    let mut costs: Vec<f64> = Vec::new();
    for to in shortest..=n {
        candidates.retain(|(_, until)| to < *until);
        costs.clear();
        for (candidate, _) in &candidates {
            let cost = best[*candidate] + sums.cost(*candidate, to) + penalty;
            costs.push(cost);
            if cost < best[to] {
                (best[to], from[to]) = (cost, *candidate);
            }
        }
        let limit = best[to] + penalty;
        for ((_, until), _) in candidates.iter_mut().zip(&costs).filter(|(_, cost)| **cost > limit) {
            *until = (*until).min(to + shortest);
        }
        let next = to + 1 - shortest;
        if next >= shortest {
            candidates.push((next, usize::MAX));
        }
    }
    let mut found = Vec::new();
    let mut at = n;
    while from[at] > 0 {
        at = from[at];
        found.push(at);
    }
    found.reverse();
    found
}

/// Takes back the changes that do not matter in a series of `length`; `level` gives the median from an interval to before
/// another.
fn material(
    length: usize,
    level: impl Fn(usize, usize) -> f64,
    mut found: Vec<usize>,
    share: f64,
) -> Vec<Change> {
    let edge = |found: &[usize], at: usize| at.checked_sub(1).map_or(Some(0), |at| found.get(at).copied());
    let of = |found: &[usize], at: usize| {
        level(edge(found, at).unwrap_or(0), edge(found, at + 1).unwrap_or(length))
    };
    let mut medians: Vec<f64> = (0..=found.len()).map(|at| of(&found, at)).collect();
    loop {
        let greatest = medians.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let step = |at: usize| (medians[at + 1] - medians[at]).abs() / greatest;
        let least = (0..found.len()).min_by(|a, b| step(*a).total_cmp(&step(*b)));
        match least {
            Some(at) if step(at) < share => {
                found.remove(at);
                medians.remove(at + 1);
                medians[at] = of(&found, at);
            }
            _ => {
                let change = |(at, first): (usize, &usize)| Change {
                    at: *first,
                    before: medians[at],
                    after: medians[at + 1],
                };
                return found.iter().enumerate().map(change).collect();
            }
        }
    }
}

/// Changes of the level of `x` by at least `share` of the greatest level. A series shorter than two segments has none.
pub fn changes(x: &[f64], share: f64) -> Vec<Change> {
    let coarse = x.len().div_ceil(MOST).max(1);
    let series = if coarse == 1 { x.to_vec() } else { super::batches(x, coarse) };
    // The logarithm of nothing: a thousandth of the usual level is as good as nothing.
    let floor = median(&series).unwrap_or(0.0).abs().max(f64::MIN_POSITIVE) / 1e3;
    let y: Vec<f64> = series.iter().map(|one| one.max(floor).ln()).collect();
    let repeats = period(&y).map_or(0, |period| period.intervals);
    let shortest = SHORTEST.max(2 * repeats).min((series.len() / 4).max(SHORTEST));
    let scale = noise(&y, if repeats > 0 { repeats } else { SHORTEST });
    if scale <= 0.0 {
        return steps_of_constants(x, share);
    }
    // Sums of squares are more exact about 0.
    let middle = median(&y).unwrap_or(0.0);
    let y: Vec<f64> = y.iter().map(|one| one - middle).collect();
    let find = |found: &[usize], remembers: bool| {
        let w = if remembers { weights(&y, found, scale) } else { vec![1.0 / (scale * scale); y.len()] };
        pelt(&y, &w, 3.0 * (series.len() as f64).ln(), shortest)
    };
    let level = |from: usize, to: usize| median(&series[from..to]).unwrap_or(0.0);
    let length = series.len();
    // Memory of the noise is seen only when the steps that matter are out of the way.
    let first: Vec<usize> =
        material(length, level, find(&[], false), MATERIAL).iter().map(|change| change.at).collect();
    let mut all = material(length, level, find(&first, true), share);
    all.iter_mut().for_each(|change| change.at *= coarse);
    all
}

/// Without any noise every step is a change. What changes in more than a quarter of the intervals, or of the longest series that
/// is looked at as it is, has no levels.
fn steps_of_constants(x: &[f64], share: f64) -> Vec<Change> {
    let found: Vec<usize> = (SHORTEST..x.len()).filter(|at| x[*at] != x[at - 1]).collect();
    if found.len() > x.len().min(MOST) / 4 {
        return Vec::new();
    }
    // Positions at which a value begins that holds for a while: years of a constant are one of them.
    let begins: Vec<usize> = (0..x.len()).filter(|at| *at == 0 || x[*at] != x[at - 1]).collect();
    let level = |from: usize, to: usize| {
        let own = &begins[begins.partition_point(|begin| *begin <= from).saturating_sub(1)..];
        let ends = own.iter().skip(1).copied().chain(std::iter::once(x.len()));
        let held = own.iter().zip(ends).take_while(|(begin, _)| **begin < to);
        let held = held.map(|(begin, end)| (x[*begin], end.min(to) - from.max(*begin)));
        median_of_held(&mut held.collect::<Vec<_>>())
    };
    material(x.len(), level, found, share)
}

/// The median of values of which each is there as often as its number says.
fn median_of_held(held: &mut [(f64, usize)]) -> f64 {
    held.sort_by(|a, b| a.0.total_cmp(&b.0));
    let count: usize = held.iter().map(|(_, times)| times).sum();
    let nth = |n: usize| {
        let mut before = 0;
        let found = held.iter().find(|(_, times)| {
            before += times;
            before > n
        });
        found.map_or(0.0, |(value, _)| *value)
    };
    let half = count / 2;
    if count % 2 == 1 { nth(half) } else { nth(half.saturating_sub(1)).midpoint(nth(half)) }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "change_parts_tests.rs"]
mod parts;
