//! Intervals of a mean whose neighbours are not independent.

use super::{autocorrelation, batch_means, mean};
use crate::interval::{MeanInterval, mean_interval};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with an interval that holds although neighbours are alike.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SteadyMean {
    /// The interval; its count is that of the batches.
    pub interval: MeanInterval,
    /// Intervals of a batch.
    pub batch: usize,
    /// Correlation of neighbouring batches' means, corrected for what a short series hides of it.
    pub correlation: f64,
}

/// Fewest batches of an interval, and the most: longer series are averaged first.
const BATCHES: (usize, usize) = (10, 120);

/// Most correlation that a series of so few values can tell from a drift.
const ALIKE: f64 = 0.95;

/// Correlation above which neighbours are taken to be alike, and the part of its error that is added then.
const TOLD: f64 = 0.2;
const CAUTION: f64 = 0.6;

/// The mean of `all` and its 95 % interval, for noise that remembers as a first-order autoregression does. The correlation
/// of neighbours is corrected for the bias of short series (Marriott and Pope, 1954), the variance of the mean for the
/// correlation, and the degrees of freedom are 0.65 of the independent values that the series is worth, less one: by
/// simulation 93 to 97 % cover the mean for correlations up to 0.8 from 30 values on, and 92 % from 10 on. Batches are single
/// values, or of as many (a multiple of `period`, 1 if there is none) as leave 120 at most; `None` for fewer than 10 values.
pub fn steady_mean(all: &[f64], period: usize) -> Option<SteadyMean> {
    steady_mean_of(all, period, 0.0)
}

/// The same of values whose neighbours are known to correlate at least so much.
pub(crate) fn steady_mean_of(all: &[f64], period: usize, least: f64) -> Option<SteadyMean> {
    let whole = |period: usize| all.len().div_ceil(BATCHES.1).next_multiple_of(period.max(1));
    let batch = if all.len() / whole(period) >= BATCHES.0 { whole(period) } else { whole(1) };
    let means = batch_means(all, batch);
    let n = means.len() as f64;
    if means.len() < BATCHES.0 {
        return None;
    }
    let plain = mean_interval(&means)?;
    let unbiased = (autocorrelation(&means, 1) + 1.0 / n) / (1.0 - 4.0 / n);
    // Few values tell it with an error of their own, and one that is too small makes the interval too narrow.
    let cautious = if unbiased > TOLD { unbiased + CAUTION * (1.0 - unbiased) / n.sqrt() } else { unbiased };
    let correlation = cautious.clamp(least.clamp(0.0, ALIKE), ALIKE);
    // The variance of the mean of n such values, by that of one.
    let r = correlation;
    let widening = 1.0 + 2.0 * r / (1.0 - r) * (1.0 - (1.0 - r.powf(n)) / (n * (1.0 - r)));
    // Values that are alike scatter less about their own mean.
    let variance = plain.deviation.powi(2) * (n - 1.0) / (n - widening).max(1.0);
    let worth = n * (1.0 - r) / (1.0 + r);
    let freedom = (0.65 * worth - 1.0).clamp(1.5, n - 1.0);
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let half_width = student.inverse_cdf(0.975) * (variance * widening / n).sqrt();
    // Values that averaging leaves at the end belong to the mean.
    let interval = MeanInterval { mean: mean(all), half_width, ..plain };
    Some(SteadyMean { interval, batch, correlation })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{noise, random, told};
    use super::*;

    /// Series of each kind.
    const ROUNDS: u64 = 2_000;

    #[test]
    fn intervals_cover_the_mean_of_noise_that_remembers() {
        for seconds in [30, 60, 600] {
            for rho in [0.0, 0.3, 0.5, 0.8] {
                let covers = |seed: &u64| {
                    let found = steady_mean(&noise(&mut random(*seed), seconds, rho), 1).unwrap().interval;
                    found.mean.abs() <= found.half_width
                };
                let share = (0..ROUNDS).filter(covers).count() as f64 / ROUNDS as f64;
                told(&format!("| {seconds} s | {rho} | {:.1} % |", share * 100.0));
                // Batches of what remembers are less alike than the correction supposes: a little wide.
                let most = if seconds > BATCHES.1 { 0.98 } else { 0.97 };
                assert!((0.93..=most).contains(&share), "{seconds} s, rho {rho}: {share}");
            }
        }
    }

    #[test]
    fn edges() {
        assert!(steady_mean(&[1.0; 9], 1).is_none());
        assert_eq!(steady_mean(&[1.0; 10], 1).unwrap().interval.half_width, 0.0);
        assert_eq!(steady_mean(&[1.0; 100], 7).unwrap().batch, 7);
        // Too few periods for batches of their own.
        assert_eq!(steady_mean(&[1.0; 60], 13).unwrap().batch, 1);
    }
}
