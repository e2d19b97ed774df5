//! Does a series rise or fall, whatever the shape? Mann and Kendall's test corrected for autocorrelation, with Theil and Sen's
//! slope.

use super::{autocorrelation, batch_means};
use dyno_types::stats::median;
use statrs::distribution::{ContinuousCDF, Normal};

/// A drift.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Trend {
    /// Median slope, units of the series per interval.
    pub slope: f64,
    /// Two-sided p-value of there being none.
    pub p: f64,
}

/// Longest series whose pairs are all looked at; longer ones are averaged first.
const MOST: usize = 1_500;

/// Ranks from 1, ties sharing theirs.
fn ranks(all: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by(|a, b| all[*a].total_cmp(&all[*b]));
    let mut out = vec![0.0; all.len()];
    let mut from = 0;
    while from < order.len() {
        let same =
            order[from..].iter().take_while(|at| all[**at].total_cmp(&all[order[from]]).is_eq()).count();
        let rank = (2 * from + same + 1) as f64 / 2.0;
        order[from..from + same].iter().for_each(|at| out[*at] = rank);
        from += same;
    }
    out
}

/// The trend of `all`; `None` for fewer than 10 values. The variance is Hamed and Rao's (1998): widened by the significant
/// autocorrelations of the ranks once the slope is taken away; at least by their integrated time, and never narrowed.
pub fn estimate_trend(all: &[f64]) -> Option<Trend> {
    let coarse = all.len().div_ceil(MOST).max(1);
    let series = batch_means(all, coarse);
    let n = series.len();
    if n < 10 {
        return None;
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    let mut score = 0.0;
    for (at, one) in series.iter().enumerate() {
        for (far, other) in series[at + 1..].iter().enumerate() {
            slopes.push((other - one) / (far + 1) as f64);
            score += (other - one).partial_cmp(&0.0).map_or(0.0, |order| f64::from(order as i8));
        }
    }
    let slope = median(&slopes)?;
    let level: Vec<f64> = series.iter().enumerate().map(|(at, one)| one - slope * at as f64).collect();
    let ranked = ranks(&level);
    let n = n as f64;
    let significant = 1.96 / n.sqrt();
    let widening: f64 = (1..series.len() - 2)
        .map(|lag| (lag as f64, autocorrelation(&ranked, lag)))
        .filter(|(_, r)| r.abs() > significant)
        .map(|(lag, r)| (n - lag) * (n - lag - 1.0) * (n - lag - 2.0) * r)
        .sum();
    let widening = 1.0 + 2.0 / (n * (n - 1.0) * (n - 2.0)) * widening;
    // Small autocorrelations at many lags count, too (Bartlett's weights).
    let reach = n.sqrt().floor();
    let weighted = |lag: usize| (1.0 - lag as f64 / (reach + 1.0)) * autocorrelation(&ranked, lag);
    let together = 1.0 + 2.0 * (1..=reach as usize).map(weighted).sum::<f64>();
    let widening = widening.max(together).max(1.0);
    let variance = n * (n - 1.0) * (2.0 * n + 5.0) / 18.0 * widening;
    let z = (score.abs() - 1.0).max(0.0) / variance.sqrt();
    let p = Normal::new(0.0, 1.0).map_or(1.0, |normal| (2.0 * normal.cdf(-z)).min(1.0));
    Some(Trend { slope: slope / coarse as f64, p })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{noise, random};
    use super::*;

    #[test]
    fn a_ramp_is_found_and_its_slope() {
        let rising: Vec<f64> = noise(&mut random(1), 200, 0.3)
            .iter()
            .enumerate()
            .map(|(at, one)| 1000.0 + 0.5 * at as f64 + 10.0 * one)
            .collect();
        let found = estimate_trend(&rising).unwrap();
        assert!((found.slope - 0.5).abs() < 0.05 && found.p < 0.001, "{found:?}");
        assert!(estimate_trend(&[1.0; 5]).is_none());
        assert_eq!(estimate_trend(&[3.0; 50]).unwrap(), Trend { slope: 0.0, p: 1.0 });
    }

    #[test]
    fn noise_that_remembers_is_seldom_a_trend() {
        let alarms = (0..200)
            .filter(|seed| estimate_trend(&noise(&mut random(*seed), 120, 0.5)).unwrap().p < 0.01)
            .count();
        assert!(alarms <= 10, "{alarms} of 200");
    }

    #[test]
    fn ties_share_a_rank() {
        assert_eq!(ranks(&[10.0, 20.0, 10.0, 5.0]), [2.5, 4.0, 2.5, 1.0]);
    }
}
