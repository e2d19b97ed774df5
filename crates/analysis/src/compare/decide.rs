//! The verdict on two samples of runs: by an interval against a margin that matters in practice, not by a p-value.

use super::bootstrap::{ALPHA, IntervalEstimate};
use super::drift::Drift;
use super::rank::{cliffs_delta, hodges_lehmann, mann_whitney};
use crate::interval::{mean_difference, mean_interval};
use crate::series::mean;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Fewest runs a side for a verdict: of three against three the most extreme order still has p = 0.1.
pub const FEWEST: usize = 4;

/// Smallest difference that matters, and which way is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Relative difference below which a change does not matter.
    pub share: f64,
    /// True if more is better.
    pub more_is_better: bool,
}

impl Margin {
    /// Margin of throughput: 2 %.
    pub const THROUGHPUT: Margin = Margin { share: 0.02, more_is_better: true };
    /// Margin of latency quantiles: 5 %.
    pub const LATENCY: Margin = Margin { share: 0.05, more_is_better: false };
}

/// Conclusion of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The second is better.
    Better,
    /// The second is worse.
    Worse,
    /// Equivalent: the interval lies within the margin.
    Same,
    /// The interval is too wide: so many more runs a side should do; 0 where it cannot be said.
    Unclear(u32),
}

/// Two samples compared, the second against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Runs of each.
    pub runs: (usize, usize),
    /// Means of each.
    pub means: (f64, f64),
    /// Ratio of the means, with its interval.
    pub ratio: IntervalEstimate,
    /// Difference of the means, with its interval.
    pub difference: IntervalEstimate,
    /// Hodges and Lehmann's shift.
    pub shift: f64,
    /// Two-sided p-value of Mann and Whitney's test.
    pub p: f64,
    /// Cliff's delta.
    pub delta: f64,
    /// Drift along the order in which the runs were made, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift: Option<Drift>,
    /// Conclusion of a comparison.
    pub conclusion: Conclusion,
}

impl Comparison {
    /// With what a drift leaves of its conclusion.
    pub fn with_drift(mut self, drift: Option<Drift>, margin: Margin) -> Self {
        if let Some(drift) = &drift {
            self.conclusion = left(self.conclusion, self.ratio.value, drift, margin);
        }
        self.drift = drift;
        self
    }
}

/// What is left of a conclusion where a drift may have made it: a difference has to be there without the drift as well, and no
/// difference is one that a drift has hidden.
fn left(conclusion: Conclusion, ratio: f64, drift: &Drift, margin: Margin) -> Conclusion {
    let (low, high) = (drift.ratio.low - 1.0, drift.ratio.high - 1.0);
    let open = match conclusion {
        // On the same side of 1, that is: what a drift has turned round is open as well.
        Conclusion::Better | Conclusion::Worse => !(ratio > 1.0 && low > 0.0 || ratio < 1.0 && high < 0.0),
        Conclusion::Same => drift.p < ALPHA && !(low > -margin.share && high < margin.share),
        Conclusion::Unclear(_) => false,
    };
    if drift.is_confounded() && open { Conclusion::Unclear(0) } else { conclusion }
}

/// The ratio of two means, `other` by `one`, with its 95 % interval: Welch's on the logarithm, by the delta method, so that it
/// is right for few runs and for variances that differ. Of a single run a side the value alone.
fn ratio_of(one: &[f64], other: &[f64]) -> IntervalEstimate {
    let value = mean(other) / mean(one);
    let flat = IntervalEstimate { value, low: value, high: value };
    let (Some(a), Some(b)) = (mean_interval(one), mean_interval(other)) else { return flat };
    let part =
        |found: &crate::interval::MeanInterval| (found.deviation / found.mean).powi(2) / found.count as f64;
    let (va, vb) = (part(&a), part(&b));
    // Without variance, or about a mean of 0, this is no number, and the distribution none.
    let freedom = (va + vb).powi(2) / (va.powi(2) / (a.count - 1) as f64 + vb.powi(2) / (b.count - 1) as f64);
    let Ok(student) = StudentsT::new(0.0, 1.0, freedom) else { return flat };
    let half = student.inverse_cdf(1.0 - ALPHA / 2.0) * (va + vb).sqrt();
    IntervalEstimate { value, low: value * (-half).exp(), high: value * half.exp() }
}

/// The difference of two means, `other` less `one`, with Welch's interval.
fn difference_of(one: &[f64], other: &[f64]) -> IntervalEstimate {
    let value = mean(other) - mean(one);
    let half = mean_difference(other, one).map_or(0.0, |found| found.half_width);
    IntervalEstimate { value, low: value - half, high: value + half }
}

/// Compares one figure of two samples of runs. `noise` is the relative half-width that runs of the same thing have shown
/// (an A/A comparison), below which no difference is claimed. `None` where a side has no run, or its mean is 0.
pub fn compare_samples(one: &[f64], other: &[f64], margin: Margin, noise: f64) -> Option<Comparison> {
    if one.is_empty() || other.is_empty() || mean(one) == 0.0 {
        return None;
    }
    let counts = (one.len(), other.len());
    let (ratio, difference) = (ratio_of(one, other), difference_of(one, other));
    let p = mann_whitney(one, other);
    let conclusion = draw_conclusion(counts, &ratio, margin, noise, || runs_needed(one, other, margin));
    Some(Comparison {
        runs: counts,
        means: (mean(one), mean(other)),
        ratio,
        difference,
        shift: hodges_lehmann(one, other),
        p,
        delta: cliffs_delta(one, other),
        drift: None,
        conclusion,
    })
}

pub(super) fn draw_conclusion(
    (ones, others): (usize, usize),
    ratio: &IntervalEstimate,
    margin: Margin,
    noise: f64,
    needed: impl Fn() -> u32,
) -> Conclusion {
    if ones.min(others) < FEWEST {
        // So many are the least; what two runs show of the noise may ask for more.
        return Conclusion::Unclear(((FEWEST - ones.min(others)) as u32).max(needed()));
    }
    let (low, high) = (ratio.low - 1.0, ratio.high - 1.0);
    if low > -margin.share && high < margin.share {
        return Conclusion::Same;
    }
    // Beyond nothing for certain, and beyond what matters and what noise does by the best estimate.
    let value = ratio.value - 1.0;
    let claimed = value.abs() > margin.share.max(noise);
    match (low > 0.0, high < 0.0) {
        (true, _) if claimed && margin.more_is_better => Conclusion::Better,
        (true, _) if claimed => Conclusion::Worse,
        (_, true) if claimed && margin.more_is_better => Conclusion::Worse,
        (_, true) if claimed => Conclusion::Better,
        _ => Conclusion::Unclear(needed()),
    }
}

/// Computes how many more runs a side would show the difference that was seen, or one of the margin if that is
/// greater, with a power of 80 %, given the variance that was seen; at least 1. 0 where nothing can be said.
pub fn runs_needed(one: &[f64], other: &[f64], margin: Margin) -> u32 {
    let (Some(a), Some(b)) = (mean_interval(one), mean_interval(other)) else { return 0 };
    let Ok(normal) = Normal::new(0.0, 1.0) else { return 0 };
    let z = normal.inverse_cdf(1.0 - ALPHA / 2.0) + normal.inverse_cdf(0.8);
    let wanted = (margin.share * a.mean.abs()).max((b.mean - a.mean).abs());
    if wanted <= 0.0 {
        return 0;
    }
    let runs = z * z * (a.deviation.powi(2) + b.deviation.powi(2)) / wanted.powi(2);
    let have = one.len().min(other.len()) as f64;
    (runs.ceil() - have).clamp(1.0, 10_000.0) as u32
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
