//! Many runs of the same thing, in order: where did the level change?
//!
//! The split with the greatest difference of means, by Welch's t, is kept if chance seldom makes as great a one and if the
//! difference matters; then both sides are looked at in the same way. This is the method of MongoDB's and Apache Otava's
//! detectors (Daly and others, 2020; Fleming and others, 2023) with a permutation test as in E-divisive (Matteson and James,
//! 2014): runs are few, and their noise has no textbook form. Runs that are like those before them are not exchanged: their
//! differences from what the run before lets expect are, and chance is made of these (a residual bootstrap of an
//! autoregression, Bühlmann 1997).

use crate::interval::mean_and_deviation;
use crate::series::{autocorrelation, mean};
use dyno_types::rng::{Purpose, Stream};
use dyno_types::stats::median;

/// Fewest runs on either side of a change.
pub const FEWEST: usize = 4;

/// Orders that are tried for the test.
const PERMUTATIONS: usize = 999;

/// The level of significance.
const ALPHA: f64 = 0.01;

/// A change between two runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelStep {
    /// The first run of the new level.
    pub at: usize,
    /// Mean of the level before.
    pub before: f64,
    /// Mean of the level after.
    pub after: f64,
    /// Chance of a difference as great.
    pub p: f64,
}

/// The greatest of Welch's t over all splits, and where.
fn greatest(all: &[f64]) -> Option<(f64, usize)> {
    let t = |at: usize| {
        let (one, other) = all.split_at(at);
        let ((own, spread), (next, wide)) = (mean_and_deviation(one)?, mean_and_deviation(other)?);
        let variance = spread.powi(2) / one.len() as f64 + wide.powi(2) / other.len() as f64;
        Some(((own - next).abs() / variance.sqrt().max(1e-9 * own.abs()).max(1e-300), at))
    };
    let last = all.len().checked_sub(FEWEST)?;
    (FEWEST..=last).filter_map(t).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// The greatest correlation: beyond, a level and its drift are the same thing.
const MOST_ALIKE: f64 = 0.95;
/// Runs before the first, in which a made history forgets where it began.
const FORGOTTEN: usize = 60;

/// What chance makes of a history without a step.
struct Chance {
    /// Correlation of a run with the one before it, beside the step that is looked at; 0 where there is none to speak of.
    correlation: f64,
    /// Differences of runs from what those before them let expect, about 0.
    surprises: Vec<f64>,
}

impl Chance {
    fn of(part: &[f64], at: usize) -> Self {
        let levels = [mean(&part[..at]), mean(&part[at..])];
        let rest: Vec<f64> =
            part.iter().enumerate().map(|(place, value)| value - levels[usize::from(place >= at)]).collect();
        // Of two levels each taken away the estimate is low by about (2 + 6 rho) / n (Kendall, 1954, for one level).
        let n = part.len() as f64;
        let found = autocorrelation(&rest, 1);
        let corrected = (found + 2.0 / n) / (1.0 - 6.0 / n).max(0.1);
        // What chance makes of runs without correlation in one case of six is none.
        let correlation =
            if found == 0.0 || corrected < 1.0 / n.sqrt() { 0.0 } else { corrected.min(MOST_ALIKE) };
        let mut surprises: Vec<f64> = rest.windows(2).map(|pair| pair[1] - correlation * pair[0]).collect();
        let middle = mean(&surprises);
        surprises.iter_mut().for_each(|one| *one -= middle);
        Chance { correlation, surprises }
    }

    /// Makes one, out of `made` where runs can be exchanged.
    fn make(&self, made: &mut [f64], random: &mut Stream) {
        if self.correlation == 0.0 {
            for place in (1..made.len()).rev() {
                made.swap(place, random.next_below(place as u64 + 1) as usize);
            }
            return;
        }
        let mut surprise = || self.surprises[random.next_below(self.surprises.len() as u64) as usize];
        let mut value = 0.0;
        for _ in 0..FORGOTTEN {
            value = self.correlation * value + surprise();
        }
        for one in made {
            value = self.correlation * value + surprise();
            *one = value;
        }
    }
}

/// The steps of at least `share` in a history of one figure.
pub fn find_level_steps(all: &[f64], share: f64, seed: u64) -> Vec<LevelStep> {
    let mut random = Stream::new(seed, 0, Purpose::Choice);
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut open = vec![(0, all.len())];
    while let Some((from, to)) = open.pop() {
        let part = &all[from..to];
        let Some((t, at)) = greatest(part) else { continue };
        let level = median(part).unwrap_or(0.0).abs();
        if (mean(&part[..at]) - mean(&part[at..])).abs() < share * level {
            continue;
        }
        let chance = Chance::of(part, at);
        let mut made = part.to_vec();
        let mut as_great = 0;
        for _ in 0..PERMUTATIONS {
            chance.make(&mut made, &mut random);
            as_great += usize::from(greatest(&made).is_some_and(|(other, _)| other >= t));
        }
        let p = (as_great + 1) as f64 / (PERMUTATIONS + 1) as f64;
        if p <= ALPHA {
            found.push((from + at, p));
            open.extend([(from, from + at), (from + at, to)]);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let edges: Vec<usize> =
        std::iter::once(0).chain(found.iter().map(|(at, _)| *at)).chain(std::iter::once(all.len())).collect();
    found
        .iter()
        .zip(edges.windows(3))
        .map(|((at, p), edge)| LevelStep {
            at: *at,
            before: mean(&all[edge[0]..edge[1]]),
            after: mean(&all[edge[1]..edge[2]]),
            p: *p,
        })
        .collect()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
