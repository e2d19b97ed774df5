//! Resampling: intervals without a distribution assumed. Every method takes its seed, so a report can be recomputed.

use crate::interval::mean_and_deviation;
use dyno_types::rng::{Purpose, Stream};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// The significance level of all intervals.
pub const ALPHA: f64 = 0.05;

/// Replicates of a bootstrap.
pub const REPLICATES: usize = 2_000;

/// The `q`-quantile (0 to 1) of `all`, by linear interpolation; sorts them. 0 of nothing.
pub fn interpolate_percentile(all: &mut [f64], q: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    let Some(last) = all.len().checked_sub(1) else { return 0.0 };
    let at = q * last as f64;
    let (low, part) = (at.floor() as usize, at.fract());
    let high = (low + 1).min(last);
    match part > 0.0 && all[low] != all[high] {
        true => all[low] + (all[high] - all[low]) * part,
        false => all[low],
    }
}

/// A value and the interval that holds it with a stated confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntervalEstimate {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Indexes of a sample of `count` drawn with replacement.
pub fn resample_indexes(count: usize, random: &mut Stream) -> Vec<usize> {
    (0..count).map(|_| random.next_below(count as u64) as usize).collect()
}

/// Two samples drawn anew, [`REPLICATES`] times.
pub fn resample_pairs((ones, others): (usize, usize), seed: u64) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut random = Stream::new(seed, 0, Purpose::Choice);
    (0..REPLICATES)
        .map(|_| (resample_indexes(ones, &mut random), resample_indexes(others, &mut random)))
        .collect()
}

/// The interval of a value, from what replicates of two samples gave (Efron and Tibshirani, 1993), widened for small samples.
pub fn interval_of(
    value: f64,
    mut found: Vec<f64>,
    (ones, others): (usize, usize),
    alpha: f64,
) -> IntervalEstimate {
    let tail = Small::of_runs(ones.min(others)).corrected_tail(alpha / 2.0);
    IntervalEstimate {
        value,
        low: interpolate_percentile(&mut found, tail),
        high: interpolate_percentile(&mut found, 1.0 - tail),
    }
}

/// The two-sided p-value of a ratio against 1, by the interval that [`interval_of`] gives: the greatest level at which that
/// interval does not hold it. Sorts the replicates. Where 1 lies beyond all of them, their number is no bound: their spread says
/// how far.
pub fn ratio_p(found: &mut [f64], (ones, others): (usize, usize)) -> f64 {
    found.sort_by(f64::total_cmp);
    let small = Small::of_runs(ones.min(others));
    let Some(last) = found.len().checked_sub(1) else { return 1.0 };
    if found[0] > 1.0 || found[last] < 1.0 {
        // The interval does not hold 1 either, whatever its tails.
        return (2.0 * small.tail_beyond(found)).min(0.999 * ALPHA);
    }
    // Place of 1 between two neighbours, as percentiles are interpolated.
    let between = |low: usize| {
        let part = (1.0 - found[low]) / (found[low + 1] - found[low]);
        low as f64 + if part.is_finite() { part } else { 0.0 }
    };
    let up_to = match found.partition_point(|one| *one <= 1.0) {
        0 => 0.0,
        above if above > last => last as f64,
        above => between(above - 1),
    };
    let from = match found.partition_point(|one| *one < 1.0) {
        0 => 0.0,
        above => between(above - 1),
    };
    let last = (last as f64).max(1.0);
    let tail = small.nominal_tail(up_to / last).min(small.nominal_tail(1.0 - from / last));
    (2.0 * tail).min(1.0)
}

/// Corrections for few samples: the variance that they hide, and how sure they are of it. Intervals of a bootstrap
/// are widened by the ratio of Student's quantile to the normal one, and by the root of n / (n - 1), as what is drawn
/// again scatters less (Hesterberg, 2015).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Small {
    /// Factor by which the replicates' variance is too small.
    pub shrunk: f64,
    /// Degrees of freedom of the variance.
    pub freedom: f64,
}

impl Small {
    /// Corrects for `count` runs that are drawn again; one is left as it is.
    pub fn of_runs(count: usize) -> Self {
        Small::of_residuals(count, 1)
    }

    /// Corrects for the residuals of `count` points about a law with so many parameters.
    pub fn of_residuals(count: usize, parameters: usize) -> Self {
        let freedom = count.saturating_sub(parameters) as f64;
        Small { shrunk: if freedom > 0.0 { count as f64 / freedom } else { 1.0 }, freedom }
    }

    /// Number of the replicates' standard deviations that the interval with this tail reaches to either side.
    pub fn interval_reach(self, tail: f64) -> f64 {
        let quantile = match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) => student.inverse_cdf(tail),
            Err(_) => Normal::new(0.0, 1.0).map_or(0.0, |normal| normal.inverse_cdf(tail)),
        };
        quantile.abs() * self.shrunk.sqrt()
    }

    /// The tail of replicates of a ratio that all lie on one side of 1.
    fn tail_beyond(self, found: &[f64]) -> f64 {
        // Replicates that are all the same have no spread, whatever rounding makes of it.
        if found.first() == found.last() {
            return 0.0;
        }
        let logs: Vec<f64> = found.iter().map(|one| one.ln()).collect();
        let spread = mean_and_deviation(&logs).map(|(mean, deviation)| mean.abs() / deviation);
        let reach = spread.filter(|reach| reach.is_finite()).map(|reach| -reach / self.shrunk.sqrt());
        match (reach, StudentsT::new(0.0, 1.0, self.freedom)) {
            (Some(reach), Ok(student)) => student.cdf(reach),
            _ => 0.0,
        }
    }

    /// The tail whose percentile interval ends at this share of the replicates: the inverse of [`Small::corrected_tail`].
    fn nominal_tail(self, share: f64) -> f64 {
        if share >= 0.5 {
            return 0.5;
        }
        if share <= 0.0 {
            return 0.0;
        }
        let Ok(normal) = Normal::new(0.0, 1.0) else { return share };
        let reach = normal.inverse_cdf(share) / self.shrunk.sqrt();
        match StudentsT::new(0.0, 1.0, self.freedom) {
            Ok(student) => student.cdf(reach),
            Err(_) => normal.cdf(reach),
        }
    }

    /// The tail that gives a percentile interval about its nominal coverage.
    pub fn corrected_tail(self, tail: f64) -> f64 {
        Normal::new(0.0, 1.0).map_or(tail, |normal| normal.cdf(-self.interval_reach(tail)))
    }
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
