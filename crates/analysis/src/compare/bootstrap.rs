//! Resampling: intervals without a distribution assumed. Every method takes its seed, so a report can be recomputed.

use dyno_types::rng::{Purpose, Stream};
use serde::Serialize;

/// Replicates of a bootstrap.
pub const REPLICATES: usize = 2_000;

/// The `q`-quantile (0 to 1) of `all`, by linear interpolation; sorts them. 0 of nothing.
pub fn percentile(all: &mut [f64], q: f64) -> f64 {
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
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Indexes of a sample of `count` drawn with replacement.
pub fn redraw(count: usize, random: &mut Stream) -> Vec<usize> {
    (0..count).map(|_| random.next_below(count as u64) as usize).collect()
}

/// Two samples drawn anew, [`REPLICATES`] times.
pub fn redraws((ones, others): (usize, usize), seed: u64) -> Vec<(Vec<usize>, Vec<usize>)> {
    let mut random = Stream::new(seed, 0, Purpose::Choice);
    (0..REPLICATES).map(|_| (redraw(ones, &mut random), redraw(others, &mut random))).collect()
}

/// The interval of a value, from what replicates of two samples gave (Efron and Tibshirani, 1993). It is widened for small
/// samples by the ratio of Student's quantile to the normal one, times the square root of n / (n - 1) (Hesterberg, 2015).
pub fn interval_of(value: f64, mut found: Vec<f64>, (ones, others): (usize, usize), alpha: f64) -> Estimate {
    let tail = expanded(alpha / 2.0, ones.min(others));
    Estimate { value, low: percentile(&mut found, tail), high: percentile(&mut found, 1.0 - tail) }
}

/// The tail that gives a percentile interval of `count` samples about its nominal coverage.
fn expanded(tail: f64, count: usize) -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal, StudentsT};
    if count < 2 {
        return tail;
    }
    let freedom = (count - 1) as f64;
    let (Ok(student), Ok(normal)) = (StudentsT::new(0.0, 1.0, freedom), Normal::new(0.0, 1.0)) else {
        return tail;
    };
    let wide = (count as f64 / freedom).sqrt() * student.inverse_cdf(tail);
    normal.cdf(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate() {
        assert_eq!(percentile(&mut [3.0, 1.0, 2.0], 0.5), 2.0);
        assert_eq!(percentile(&mut [1.0, 2.0], 0.25), 1.25);
        assert_eq!(percentile(&mut [1.0, f64::INFINITY, f64::INFINITY], 0.9), f64::INFINITY);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }
}
