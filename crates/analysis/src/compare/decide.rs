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

/// Why a conclusion is left open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOpen {
    /// A side has too few runs.
    FewRuns,
    /// The interval holds both no change and one that matters.
    Spread,
    /// There is a change, but it may be smaller than what matters.
    Margin,
    /// There is a change, but the same thing changes as much from day to day.
    Noise,
    /// The order of the runs explains it as well.
    Drift,
}

/// The one decision of a comparison: its words, its interval and its p-value all come from here, so that they cannot contradict
/// each other. The interval holds 1 exactly where p is 0.05 or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Conclusion of a comparison.
    pub conclusion: Conclusion,
    /// Why it is left open, if it is.
    pub open: Option<LeftOpen>,
    /// Ratio of the means, with its interval.
    pub ratio: IntervalEstimate,
    /// Two-sided p-value of that ratio, by the test whose interval that is; `None` where a side has too few runs for one.
    pub p: Option<f64>,
}

/// A ratio with the p-value of the same test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TestedRatio {
    pub ratio: IntervalEstimate,
    pub p: f64,
}

/// Two samples compared, the second against the first. As JSON, what single runs cannot say is `null`: ends of intervals, where a
/// side has one run, and what the order of the runs says, where both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "WrittenComparison")]
pub struct Comparison {
    /// Runs of each.
    pub runs: (usize, usize),
    /// Means of each.
    pub means: (f64, f64),
    /// What is decided, and by what.
    pub decision: Decision,
    /// Difference of the means, with its interval.
    pub difference: IntervalEstimate,
    /// Hodges and Lehmann's shift.
    pub shift: f64,
    /// Two-sided p-value of Mann and Whitney's test, which decides nothing: of few runs their order says little.
    pub rank_p: f64,
    /// Cliff's delta.
    pub delta: f64,
    /// Drift along the order in which the runs were made, where that is known.
    pub drift: Option<Drift>,
}

/// An estimate as it is written: without ends where there is no interval.
#[derive(Serialize)]
struct WrittenEstimate {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// A comparison as it is written.
#[derive(Serialize)]
struct WrittenComparison {
    runs: (usize, usize),
    means: (f64, f64),
    conclusion: Conclusion,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<LeftOpen>,
    ratio: WrittenEstimate,
    p: Option<f64>,
    difference: WrittenEstimate,
    shift: f64,
    rank_p: Option<f64>,
    delta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Drift>,
}

impl From<Comparison> for WrittenComparison {
    fn from(found: Comparison) -> Self {
        let known = |known: bool, value: f64| known.then_some(value);
        let estimate = |of: IntervalEstimate| WrittenEstimate {
            value: of.value,
            low: known(found.has_intervals(), of.low),
            high: known(found.has_intervals(), of.high),
        };
        let Decision { conclusion, open, ratio, p } = found.decision;
        WrittenComparison {
            runs: found.runs,
            means: found.means,
            conclusion,
            open,
            ratio: estimate(ratio),
            p,
            difference: estimate(found.difference),
            shift: found.shift,
            rank_p: known(!found.is_one_pair(), found.rank_p),
            delta: known(!found.is_one_pair(), found.delta),
            drift: found.drift,
        }
    }
}

impl Comparison {
    /// Returns whether each side has one run: they say how far these two are apart, and nothing of how much runs differ.
    pub fn is_one_pair(&self) -> bool {
        self.runs.0.max(self.runs.1) == 1
    }

    /// Returns whether the estimates have intervals: of a side with one run there is no telling how much its runs differ.
    pub fn has_intervals(&self) -> bool {
        self.runs.0.min(self.runs.1) > 1
    }

    /// With what a drift leaves of its conclusion.
    pub fn with_drift(mut self, drift: Option<Drift>, margin: Margin) -> Self {
        if let Some(drift) = &drift {
            self.decision = left(self.decision, drift, margin);
        }
        self.drift = drift;
        self
    }
}

/// What is left of a decision where a drift may have made it: a difference has to be there without the drift as well, and no
/// difference is one that a drift has hidden. Where it is left open, it is by the ratio without the drift.
fn left(decision: Decision, drift: &Drift, margin: Margin) -> Decision {
    let ratio = decision.ratio.value;
    let (low, high) = (drift.ratio.low - 1.0, drift.ratio.high - 1.0);
    let open = match decision.conclusion {
        // On the same side of 1, that is: what a drift has turned round is open as well.
        Conclusion::Better | Conclusion::Worse => !(ratio > 1.0 && low > 0.0 || ratio < 1.0 && high < 0.0),
        Conclusion::Same => drift.p < ALPHA && !(low > -margin.share && high < margin.share),
        Conclusion::Unclear(_) => false,
    };
    if !drift.is_confounded() || !open {
        return decision;
    }
    Decision {
        conclusion: Conclusion::Unclear(0),
        open: Some(LeftOpen::Drift),
        ratio: drift.ratio,
        p: Some(drift.ratio_p),
    }
}

/// The ratio of two means, `other` by `one`, with its 95 % interval: Welch's on the logarithm, by the delta method, so that it
/// is right for few runs and for variances that differ. Of a single run a side the value alone.
fn ratio_of(one: &[f64], other: &[f64]) -> TestedRatio {
    let value = mean(other) / mean(one);
    // Runs that do not differ at all are sure of it.
    let p = if value == 1.0 { 1.0 } else { 0.0 };
    let flat = TestedRatio { ratio: IntervalEstimate { value, low: value, high: value }, p };
    let (Some(a), Some(b)) = (mean_interval(one), mean_interval(other)) else { return flat };
    let part =
        |found: &crate::interval::MeanInterval| (found.deviation / found.mean).powi(2) / found.count as f64;
    let (va, vb) = (part(&a), part(&b));
    // Without variance, or about a mean of 0, this is no number, and the distribution none.
    let freedom = (va + vb).powi(2) / (va.powi(2) / (a.count - 1) as f64 + vb.powi(2) / (b.count - 1) as f64);
    let Ok(student) = StudentsT::new(0.0, 1.0, freedom) else { return flat };
    let half = student.inverse_cdf(1.0 - ALPHA / 2.0) * (va + vb).sqrt();
    TestedRatio {
        ratio: IntervalEstimate { value, low: value * (-half).exp(), high: value * half.exp() },
        p: 2.0 * student.cdf(-value.ln().abs() / (va + vb).sqrt()),
    }
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
    let decision = decide(counts, ratio_of(one, other), margin, noise, || runs_needed(one, other, margin));
    Some(Comparison {
        runs: counts,
        means: (mean(one), mean(other)),
        decision,
        difference: difference_of(one, other),
        shift: hodges_lehmann(one, other),
        rank_p: mann_whitney(one, other),
        delta: cliffs_delta(one, other),
        drift: None,
    })
}

/// Decides by the interval of a ratio.
pub(super) fn decide(
    (ones, others): (usize, usize),
    TestedRatio { ratio, p }: TestedRatio,
    margin: Margin,
    noise: f64,
    needed: impl Fn() -> u32,
) -> Decision {
    let sure = |conclusion| Decision { conclusion, open: None, ratio, p: Some(p) };
    let open = |why| Decision { open: Some(why), ..sure(Conclusion::Unclear(needed())) };
    if ones.min(others) < FEWEST {
        // So many are the least; what two runs show of the noise may ask for more.
        let runs = ((FEWEST - ones.min(others)) as u32).max(needed());
        return Decision { conclusion: Conclusion::Unclear(runs), p: None, ..open(LeftOpen::FewRuns) };
    }
    let (low, high) = (ratio.low - 1.0, ratio.high - 1.0);
    if low > -margin.share && high < margin.share {
        return sure(Conclusion::Same);
    }
    // Beyond nothing for certain, and beyond what matters and what noise does by the best estimate.
    let change = (ratio.value - 1.0).abs();
    match (low > 0.0, high < 0.0) {
        (false, false) => open(LeftOpen::Spread),
        _ if change <= margin.share => open(LeftOpen::Margin),
        _ if change <= noise => open(LeftOpen::Noise),
        (more, _) if more == margin.more_is_better => sure(Conclusion::Better),
        _ => sure(Conclusion::Worse),
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
