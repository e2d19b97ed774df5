//! Where the warm-up ends, and how sure a mean is when neighbours are not independent.

use super::{autocorrelation, batches, mean};
use crate::interval::{MeanInterval, mean_interval};

/// How many intervals MSER-5 drops at the start (White, Cobb and Spratt, 2000): the number, a multiple of 5, for which the
/// standard error of the rest is least. `None` where that would be more than half: then there is no steady state to find.
pub fn mser5(all: &[f64]) -> Option<usize> {
    let means = batches(all, 5);
    if means.len() < 4 {
        return Some(0);
    }
    let error = |dropped: usize| {
        let rest = &means[dropped..];
        let middle = mean(rest);
        rest.iter().map(|one| (one - middle).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    // The last few always look steady.
    let best = (0..means.len() - 3).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
    (best <= means.len() / 2).then_some(best * 5)
}

/// A mean with an interval that holds although neighbours are alike.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SteadyMean {
    /// The interval, from the means of batches.
    pub interval: MeanInterval,
    /// Intervals of a batch.
    pub batch: usize,
    /// Correlation of neighbouring batches' means.
    pub correlation: f64,
    /// Von Neumann's ratio of the batches' means; about 2 if they are independent.
    pub neumann: f64,
    /// Whether they are: correlation below 0.2. Else the interval is too narrow, and a longer run is needed.
    pub independent: bool,
}

/// Fewest and most batches.
const BATCHES: (usize, usize) = (10, 20);

/// The mean of `all` by batch means. Batches are multiples of `period` (1 if there is none), as long as leaves ten to twenty
/// of them; `None` where there is no room for ten.
pub fn steady_mean(all: &[f64], period: usize) -> Option<SteadyMean> {
    let period = period.max(1);
    let of = |batch: usize| -> Option<SteadyMean> {
        let means = batches(all, batch);
        if means.len() < BATCHES.0 {
            return None;
        }
        let correlation = autocorrelation(&means, 1);
        let interval = mean_interval(&means)?;
        let steps: f64 = means.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        let spread = interval.deviation.powi(2) * (means.len() - 1) as f64;
        let neumann = if spread > 0.0 { steps / spread } else { 2.0 };
        Some(SteadyMean { interval, batch, correlation, neumann, independent: correlation < 0.2 })
    };
    let multiple = |length: usize| (length / period).max(1) * period;
    let first = multiple((all.len() / BATCHES.1).max(1));
    let last = multiple((all.len() / BATCHES.0).max(1));
    // Longer batches are less alike, but fewer.
    let sizes = (first..=last).step_by(period);
    let mut best = None;
    for size in sizes {
        let Some(found) = of(size) else { break };
        if found.independent {
            return Some(found);
        }
        best = Some(found);
    }
    best.or_else(|| of(first))
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{lab, noise, random};
    use super::*;

    #[test]
    fn a_warm_up_is_dropped() {
        let warming: Vec<f64> = noise(&mut random(2), 400, 0.0)
            .iter()
            .enumerate()
            .map(|(at, one)| 1000.0 - 600.0 * (-(at as f64) / 15.0).exp() + 20.0 * one)
            .collect();
        let dropped = mser5(&warming).unwrap();
        assert!((25..=90).contains(&dropped), "{dropped}");
        let falling: Vec<f64> = (0..100).map(|at| if at < 80 { 100.0 } else { 1.0 }).collect();
        assert_eq!(mser5(&falling), None);
    }

    #[test]
    fn the_labs_warm_up() {
        let (Some(burst), Some(array)) = (lab(1), lab(2)) else { return };
        // The sheet: 165 and 125 intervals. On the whole bad series the rule keeps the broken regime.
        assert_eq!(mser5(&burst), Some(165));
        assert_eq!(mser5(&array), Some(125));
    }

    #[test]
    fn intervals_cover_the_mean_of_noise_that_remembers() {
        let (mut inside, mut judged) = (0, 0);
        for seed in 0..300 {
            let all = noise(&mut random(seed), 600, 0.5);
            let found = steady_mean(&all, 1).unwrap();
            if found.independent {
                judged += 1;
                inside += usize::from(found.interval.mean.abs() <= found.interval.half_width);
            }
        }
        assert!(judged > 200 && inside as f64 >= 0.9 * judged as f64, "{inside} of {judged}");
        assert!(steady_mean(&[1.0; 9], 1).is_none());
        assert_eq!(steady_mean(&[1.0; 100], 7).unwrap().batch % 7, 0);
    }
}
