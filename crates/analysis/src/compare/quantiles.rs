//! Quantiles of two groups of runs: all of them from one bootstrap over runs, with histograms merged in every replicate.

use super::bootstrap::{Estimate, interval_of, redraws};
use super::decide::{ALPHA, Comparison, Margin, conclude, runs_needed};
use super::rank::{cliffs_delta, hodges_lehmann, mann_whitney};
use dyno_record::Buckets;
use serde::Serialize;

/// Quantiles of both sides: of everything that was measured, and of every replicate.
pub struct Quantiles<'a> {
    sides: (&'a [Buckets], &'a [Buckets]),
    percentiles: Vec<f64>,
    whole: (Vec<f64>, Vec<f64>),
    replicates: Vec<(Vec<f64>, Vec<f64>)>,
}

/// By how much a quantile of the second group lies beside that of the first.
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
struct Rows<'a> {
    runs: &'a [Buckets],
    /// First bucket that any of them has.
    first: usize,
    rows: Vec<Vec<u64>>,
}

impl<'a> Rows<'a> {
    fn of(runs: &'a [Buckets]) -> Self {
        let first = runs.iter().filter_map(|run| run.iter().next().map(|(at, _)| at)).min().unwrap_or(0);
        let row = |run: &Buckets| {
            let mut row = Vec::new();
            for (at, count) in run.iter() {
                row.resize(at - first + 1, 0);
                row[at - first] = count;
            }
            row
        };
        Rows { runs, first, rows: runs.iter().map(row).collect() }
    }

    /// Percentiles, in ascending order, of the chosen runs together.
    fn percentiles(&self, which: &[usize], wanted: &[f64], sums: &mut Vec<u64>) -> Vec<f64> {
        sums.clear();
        for at in which {
            let row = &self.rows[*at];
            if sums.len() < row.len() {
                sums.resize(row.len(), 0);
            }
            sums.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
        }
        let Some(scale) = self.runs.first().map(Buckets::scale) else { return vec![0.0; wanted.len()] };
        let greatest = which.iter().map(|at| self.runs[*at].max_ns()).max().unwrap_or(0);
        dyno_record::percentiles_of(sums, self.first, scale, greatest, wanted)
            .into_iter()
            .map(|ns| ns as f64)
            .collect()
    }
}

impl<'a> Quantiles<'a> {
    /// Draws replicates. `percentiles` (0 to 100) stand in ascending order. `None` where a side has no run or no sample.
    pub fn draw(one: &'a [Buckets], other: &'a [Buckets], percentiles: &[f64], seed: u64) -> Option<Self> {
        let samples = |all: &[Buckets]| all.iter().map(Buckets::count).sum::<u64>();
        if samples(one) == 0 || samples(other) == 0 {
            return None;
        }
        let (ones, others) = (Rows::of(one), Rows::of(other));
        let mut sums = Vec::new();
        let mut both = |a: &[usize], b: &[usize]| {
            (ones.percentiles(a, percentiles, &mut sums), others.percentiles(b, percentiles, &mut sums))
        };
        let all = |count: usize| (0..count).collect::<Vec<usize>>();
        let whole = both(&all(one.len()), &all(other.len()));
        let drawn = redraws((one.len(), other.len()), seed);
        let replicates = drawn.iter().map(|(a, b)| both(a, b)).collect();
        Some(Quantiles { sides: (one, other), percentiles: percentiles.to_vec(), whole, replicates })
    }

    fn counts(&self) -> (usize, usize) {
        (self.sides.0.len(), self.sides.1.len())
    }

    fn estimate(&self, at: usize, of: impl Fn(f64, f64) -> f64) -> Estimate {
        let value = of(self.whole.0[at], self.whole.1[at]);
        let found = self.replicates.iter().map(|(one, other)| of(one[at], other[at])).collect();
        interval_of(value, found, self.counts(), ALPHA)
    }

    /// The comparison of one of the percentiles; `None` of one that was not drawn, or that is 0 on the first side.
    pub fn compare(&self, percentile: f64, margin: Margin, noise: f64) -> Option<Comparison> {
        let at = self.percentiles.iter().position(|known| *known == percentile)?;
        let means = (self.whole.0[at], self.whole.1[at]);
        if means.0 <= 0.0 {
            return None;
        }
        let ratio = self.estimate(at, |one, other| other / one);
        let difference = self.estimate(at, |one, other| other - one);
        let each = |all: &[Buckets]| -> Vec<f64> {
            all.iter().map(|run| run.percentile_ns(percentile) as f64).collect()
        };
        let (ones, others) = (each(self.sides.0), each(self.sides.1));
        let conclusion =
            conclude(self.counts(), &ratio, margin, noise, || runs_needed(&ones, &others, margin));
        Some(Comparison {
            runs: self.counts(),
            means,
            ratio,
            difference,
            shift: hodges_lehmann(&ones, &others),
            p: mann_whitney(&ones, &others),
            delta: cliffs_delta(&ones, &others),
            conclusion,
        })
    }

    /// The shift function: every percentile that was drawn and that is above 0 on the first side.
    pub fn shifts(&self) -> Vec<Shift> {
        let one_run = self.counts().0.min(self.counts().1) < 2;
        let shift = |(at, percentile): (usize, &f64)| {
            let values = (self.whole.0[at], self.whole.1[at]);
            if values.0 <= 0.0 {
                return None;
            }
            let found = self.estimate(at, |one, other| other / one);
            let interval = (!one_run).then_some((found.low, found.high));
            Some(Shift { percentile: *percentile, values, ratio: found.value, interval })
        };
        self.percentiles.iter().enumerate().filter_map(shift).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Conclusion;
    use dyno_record::Scale;

    fn run(slow: u64) -> Buckets {
        let mut buckets = Buckets::new(Scale::Ns64);
        (0..1_000u64).for_each(|i| buckets.record(if i < 980 { 100_000 + i } else { slow }));
        buckets
    }

    #[test]
    fn quantiles_come_from_merged_histograms() {
        let one: Vec<Buckets> = (0..5).map(|n| run(1_000_000 + n * 1_000)).collect();
        let other: Vec<Buckets> = (0..5).map(|n| run(2_000_000 + n * 1_000)).collect();
        let drawn = Quantiles::draw(&one, &other, &[50.0, 99.0], 1).unwrap();
        let found = drawn.compare(99.0, Margin::LATENCY, 0.0).unwrap();
        assert_eq!(found.conclusion, Conclusion::Worse);
        assert!((found.ratio.value - 2.0).abs() < 0.01, "{found:?}");
        let median = drawn.compare(50.0, Margin::LATENCY, 0.0).unwrap();
        assert_eq!(median.conclusion, Conclusion::Same);
        assert!(drawn.compare(98.0, Margin::LATENCY, 0.0).is_none());
        let mut merged = one[0].clone();
        one[1..].iter().for_each(|run| merged.merge(run));
        assert_eq!(found.means.0, merged.percentile_ns(99.0) as f64);
        let shifts = drawn.shifts();
        assert_eq!(shifts.len(), 2);
        let (low, high) = shifts[1].interval.unwrap();
        assert!(low <= shifts[1].ratio && shifts[1].ratio <= high && high - low < 0.02, "{shifts:?}");
    }

    #[test]
    fn one_run_has_no_interval_and_nothing_has_no_quantile() {
        let (one, other) = ([run(1_000_000)], [run(2_000_000)]);
        let drawn = Quantiles::draw(&one, &other, &[99.0], 1).unwrap();
        assert_eq!(drawn.shifts()[0].interval, None);
        assert_eq!(drawn.compare(99.0, Margin::LATENCY, 0.0).unwrap().conclusion, Conclusion::Unclear(3));
        let empty = [Buckets::new(Scale::Ns64)];
        assert!(Quantiles::draw(&one, &empty, &[50.0], 1).is_none());
        assert!(Quantiles::draw(&[], &one, &[50.0], 1).is_none());
    }
}
