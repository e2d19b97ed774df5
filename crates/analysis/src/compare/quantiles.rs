//! Quantiles of two groups of runs: all of them from one bootstrap over runs, with histograms merged in every replicate.

use super::bootstrap::ALPHA;
use super::bootstrap::{IntervalEstimate, interval_of, ratio_p, resample_pairs};
use super::decide::{Comparison, Margin, TestedRatio, decide, runs_needed};
use super::rank::{cliffs_delta, hodges_lehmann, mann_whitney};
use crate::arrival_latency::{ArrivalLatency, percentile_among_timed};
use dyno_record::Buckets;
use serde::Serialize;

/// Quantiles of both sides: of everything that was measured, and of every replicate.
pub struct Quantiles<'a> {
    sides: (&'a [ArrivalLatency], &'a [ArrivalLatency]),
    percentiles: Vec<f64>,
    whole: (Vec<f64>, Vec<f64>),
    replicates: Vec<(Vec<f64>, Vec<f64>)>,
}

/// Distance of a quantile of the second group from that of the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shift {
    /// 0 to 100.
    pub percentile: f64,
    /// The quantile of each, nanoseconds.
    pub values: (f64, f64),
    /// Ratio of the second to the first; without an interval where a side has one run.
    pub ratio: f64,
    /// The ratio's 95 % interval, for this quantile alone.
    pub interval: Option<(f64, f64)>,
}

/// Histograms of one group, laid out so that they are added up quickly.
struct BucketMatrix<'a> {
    runs: Vec<&'a Buckets>,
    /// First bucket that any of them has.
    first: usize,
    rows: Vec<Vec<u64>>,
}

impl<'a> BucketMatrix<'a> {
    fn of(runs: Vec<&'a Buckets>) -> Self {
        let first = runs.iter().filter_map(|run| run.iter().next().map(|(at, _)| at)).min().unwrap_or(0);
        let row = |run: &&Buckets| {
            let mut row = Vec::new();
            for (at, count) in run.iter() {
                row.resize(at - first + 1, 0);
                row[at - first] = count;
            }
            row
        };
        let rows = runs.iter().map(row).collect();
        BucketMatrix { runs, first, rows }
    }

    /// Percentiles, in ascending order, of the chosen runs together, `unsent` arrivals beyond all of them.
    fn percentiles(&self, which: &[usize], wanted: &[f64], unsent: u64, sums: &mut Vec<u64>) -> Vec<f64> {
        sums.clear();
        for at in which {
            let row = &self.rows[*at];
            if sums.len() < row.len() {
                sums.resize(row.len(), 0);
            }
            sums.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
        }
        let Some(scale) = self.runs.first().map(|run| run.bucket_scale()) else {
            return vec![0.0; wanted.len()];
        };
        let greatest = which.iter().map(|at| self.runs[*at].max_ns()).max().unwrap_or(0);
        let timed: u64 = sums.iter().sum();
        let own: Vec<f64> = wanted.iter().map(|p| percentile_among_timed(*p, timed, unsent)).collect();
        let found = dyno_record::percentiles_of(sums, self.first, scale, greatest, &own);
        found.into_iter().zip(own).map(|(ns, p)| if p > 100.0 { f64::INFINITY } else { ns as f64 }).collect()
    }
}

/// Runs of one group: of the successes, and with failures where there are any, of which no figure is less.
struct RunHistograms<'a> {
    ok: BucketMatrix<'a>,
    all: Option<BucketMatrix<'a>>,
    unsent: Vec<u64>,
}

impl<'a> RunHistograms<'a> {
    fn of(runs: &'a [ArrivalLatency], all: &'a [Buckets]) -> Self {
        RunHistograms {
            ok: BucketMatrix::of(runs.iter().map(|run| &run.ok).collect()),
            all: (!runs.iter().all(ArrivalLatency::all_ok)).then(|| BucketMatrix::of(all.iter().collect())),
            unsent: runs.iter().map(|run| run.unsent).collect(),
        }
    }

    fn percentiles(&self, which: &[usize], wanted: &[f64], sums: &mut Vec<u64>) -> Vec<f64> {
        let ok = self.ok.percentiles(which, wanted, 0, sums);
        let Some(all) = &self.all else { return ok };
        let unsent = which.iter().map(|at| self.unsent[*at]).sum();
        let arrivals = all.percentiles(which, wanted, unsent, sums);
        arrivals.into_iter().zip(ok).map(|(arrivals, ok)| arrivals.max(ok)).collect()
    }
}

impl<'a> Quantiles<'a> {
    /// Draws replicates. `percentiles` (0 to 100) stand in ascending order. `None` where a side has no run or no sample.
    pub fn draw_replicates(
        one: &'a [ArrivalLatency],
        other: &'a [ArrivalLatency],
        percentiles: &[f64],
        seed: u64,
    ) -> Option<Self> {
        let samples = |all: &[ArrivalLatency]| all.iter().map(ArrivalLatency::count).sum::<u64>();
        if samples(one) == 0 || samples(other) == 0 {
            return None;
        }
        let timed =
            |all: &[ArrivalLatency]| all.iter().map(ArrivalLatency::timed_buckets).collect::<Vec<Buckets>>();
        let (timed_one, timed_other) = (timed(one), timed(other));
        let (ones, others) = (RunHistograms::of(one, &timed_one), RunHistograms::of(other, &timed_other));
        let mut sums = Vec::new();
        let mut both = |a: &[usize], b: &[usize]| {
            (ones.percentiles(a, percentiles, &mut sums), others.percentiles(b, percentiles, &mut sums))
        };
        let all = |count: usize| (0..count).collect::<Vec<usize>>();
        let whole = both(&all(one.len()), &all(other.len()));
        let drawn = resample_pairs((one.len(), other.len()), seed);
        let replicates = drawn.iter().map(|(a, b)| both(a, b)).collect();
        Some(Quantiles { sides: (one, other), percentiles: percentiles.to_vec(), whole, replicates })
    }

    fn counts(&self) -> (usize, usize) {
        (self.sides.0.len(), self.sides.1.len())
    }

    fn estimate(&self, at: usize, of: impl Fn(f64, f64) -> f64) -> IntervalEstimate {
        let value = of(self.whole.0[at], self.whole.1[at]);
        interval_of(value, self.each(at, of), self.counts(), ALPHA)
    }

    /// Value of every replicate.
    fn each(&self, at: usize, of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        self.replicates.iter().map(|(one, other)| of(one[at], other[at])).collect()
    }

    /// The comparison of one of the percentiles; `None` of one that was not drawn, that is 0 on the first side, or that lies
    /// among arrivals that were never sent on one.
    pub fn compare_percentile(&self, percentile: f64, margin: Margin, noise: f64) -> Option<Comparison> {
        let at = self.percentiles.iter().position(|known| *known == percentile)?;
        let means = (self.whole.0[at], self.whole.1[at]);
        if means.0 <= 0.0 || !means.0.is_finite() || !means.1.is_finite() {
            return None;
        }
        let tested = TestedRatio {
            ratio: self.estimate(at, ratio),
            p: ratio_p(&mut self.each(at, ratio), self.counts()),
        };
        let difference = self.estimate(at, |one, other| if one == other { 0.0 } else { other - one });
        let each = |all: &[ArrivalLatency]| -> Vec<f64> {
            all.iter().map(|run| run.percentile_ns(percentile)).collect()
        };
        let (ones, others) = (each(self.sides.0), each(self.sides.1));
        let decision = decide(self.counts(), tested, margin, noise, || runs_needed(&ones, &others, margin));
        Some(Comparison {
            runs: self.counts(),
            means,
            decision,
            difference,
            shift: hodges_lehmann(&ones, &others),
            rank_p: mann_whitney(&ones, &others),
            delta: cliffs_delta(&ones, &others),
            drift: None,
        })
    }

    /// The percentile of each side in nanoseconds, infinite among arrivals that were never sent; `None` of one that was not
    /// drawn.
    pub fn percentile_values(&self, percentile: f64) -> Option<(f64, f64)> {
        let at = self.percentiles.iter().position(|known| *known == percentile)?;
        Some((self.whole.0[at], self.whole.1[at]))
    }

    /// The shift function: every percentile that was drawn and that is above 0 on the first side.
    pub fn percentile_shifts(&self) -> Vec<Shift> {
        let one_run = self.counts().0.min(self.counts().1) < 2;
        let shift = |(at, percentile): (usize, &f64)| {
            let values = (self.whole.0[at], self.whole.1[at]);
            if values.0 <= 0.0 || !values.0.is_finite() || !values.1.is_finite() {
                return None;
            }
            let found = self.estimate(at, ratio);
            let interval = (!one_run).then_some((found.low, found.high));
            Some(Shift { percentile: *percentile, values, ratio: found.value, interval })
        };
        self.percentiles.iter().enumerate().filter_map(shift).collect()
    }
}

/// The second by the first; two that are infinite are the same.
fn ratio(one: f64, other: f64) -> f64 {
    if one == other { 1.0 } else { other / one }
}

#[cfg(test)]
#[path = "quantiles_tests.rs"]
mod tests;
