//! Resampling: intervals without a distribution assumed. Every method takes its seed, so a report can be recomputed.

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

    /// The tail that gives a percentile interval about its nominal coverage.
    pub fn corrected_tail(self, tail: f64) -> f64 {
        Normal::new(0.0, 1.0).map_or(tail, |normal| normal.cdf(-self.interval_reach(tail)))
    }
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
