//! Analysis of a series over time: where its level changes, where its warm-up ends, whether it repeats itself or drifts, how
//! sure its mean is, and whether it looks like a volume that has used up its burst credits.
//!
//! A series is equally spaced: one value an interval, no gaps. Callers fill no gap: they cut the series there. Everything that
//! says a word about steadiness asks [`judge_stability`].

pub mod burst;
pub mod period;
pub mod pieces;
pub mod silence;
pub mod stability;
pub mod steady;
pub mod trend;

pub use stability::{
    Segment, SegmentLabel, Stability, StabilityAnswer, Stall, judge_stability, stability_of_responses,
    stability_of_tails,
};

use dyno_types::stats::{self, median};
use std::borrow::Borrow;

/// Factor from a median absolute deviation to a standard deviation of normal noise.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// Arithmetic mean; 0 of nothing.
pub fn mean(all: impl IntoIterator<Item = impl Borrow<f64>>) -> f64 {
    stats::mean(all).unwrap_or(0.0)
}

/// Standard deviation that few outliers do not change: 1.4826 times the median distance from the median.
pub fn robust_deviation(all: &[f64]) -> f64 {
    let Some(middle) = median(all) else { return 0.0 };
    let distances: Vec<f64> = all.iter().map(|one| (one - middle).abs()).collect();
    MAD_TO_DEVIATION * median(&distances).unwrap_or(0.0)
}

/// Correlation of a series with itself `lag` intervals later; 0 for a constant one.
pub fn autocorrelation(all: &[f64], lag: usize) -> f64 {
    let middle = mean(all);
    let spread: f64 = all.iter().map(|one| (one - middle).powi(2)).sum();
    if spread <= 0.0 || lag >= all.len() {
        return 0.0;
    }
    let both = all.iter().zip(&all[lag..]).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>();
    both / spread
}

/// Each value less the median of those within `reach` of it.
pub fn less_running_median(all: &[f64], reach: usize) -> Vec<f64> {
    let mut window: Vec<f64> = Vec::with_capacity(2 * reach + 1);
    let place = |window: &[f64], value: f64| window.partition_point(|one| one.total_cmp(&value).is_lt());
    for value in all.iter().take(reach) {
        window.insert(place(&window, *value), *value);
    }
    let mut out = Vec::with_capacity(all.len());
    for (at, value) in all.iter().enumerate() {
        if let Some(next) = all.get(at + reach) {
            window.insert(place(&window, *next), *next);
        }
        if let Some(old) = at.checked_sub(reach + 1) {
            window.remove(place(&window, all[old]));
        }
        let half = window.len() / 2;
        let middle =
            if window.len() % 2 == 1 { window[half] } else { window[half - 1].midpoint(window[half]) };
        out.push(value - middle);
    }
    out
}

/// Means of `size` neighbours each; what is left at the end is dropped.
pub fn batch_means(all: &[f64], size: usize) -> Vec<f64> {
    all.chunks_exact(size.max(1)).map(mean).collect()
}

#[cfg(test)]
pub(crate) mod synthetic {
    //! Series with known truth.

    use dyno_types::rng::{Purpose, Stream};

    /// Noise of mean 0 and deviation 1: normal, autocorrelated by `rho` from one value to the next.
    pub fn noise(random: &mut Stream, count: usize, rho: f64) -> Vec<f64> {
        let mut normal = || (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
        let mut last = normal();
        (0..count)
            .map(|_| {
                last = rho * last + (1.0 - rho * rho).sqrt() * normal();
                last
            })
            .collect()
    }

    /// Noise with heavy tails: Student's with 3 degrees of freedom, deviation 1.
    pub fn heavy(random: &mut Stream, count: usize) -> Vec<f64> {
        let plain = noise(random, 4 * count, 0.0);
        plain
            .chunks_exact(4)
            .map(|four| four[0] / (four[1..].iter().map(|x| x * x).sum::<f64>() / 3.0).sqrt() / 3f64.sqrt())
            .collect()
    }

    /// A column of the lab's long runs without their last interval, a part of one.
    pub fn lab(column: usize) -> Vec<f64> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/lab-longrun.csv");
        let text = std::fs::read_to_string(path).unwrap();
        let cell = |line: &str| line.split(',').nth(column).and_then(|cell| cell.parse().ok());
        let mut all: Vec<f64> = text.lines().skip(1).filter_map(cell).collect();
        all.pop();
        all
    }

    /// Tells a share that was found by simulation, where `RATES` is set: a row of docs/reliability.md.
    pub fn told(row: &str) {
        use std::io::Write as _;
        if std::env::var_os("RATES").is_some() {
            let _ = writeln!(std::io::stderr(), "{row}");
        }
    }

    pub fn random(seed: u64) -> Stream {
        Stream::new(seed, 0, Purpose::Choice)
    }

    fn whole(count: usize, of: impl Fn(usize) -> usize) -> Vec<f64> {
        (0..count).map(|at| of(at) as f64).collect()
    }

    /// Whole numbers whose neighbours are far apart.
    pub fn wobble(count: usize) -> Vec<f64> {
        whole(count, |at| at * 37 % 23)
    }

    /// Whole numbers of which four are alike, and which wobble.
    pub fn persisting(count: usize) -> Vec<f64> {
        whole(count, |at| at / 4 * 5 % 7 * 3 + at * 37 % 5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_and_correlations() {
        assert!((robust_deviation(&[1.0, 2.0, 3.0, 4.0, 100.0]) - 1.4826).abs() < 1e-12);
        let wave: Vec<f64> = (0..100).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!((autocorrelation(&wave, 1) + 0.99).abs() < 1e-9);
        assert!((autocorrelation(&wave, 2) - 0.98).abs() < 1e-9);
        assert_eq!(autocorrelation(&[1.0, 1.0], 1), 0.0);
        assert_eq!(batch_means(&[1.0, 3.0, 5.0], 2), [2.0]);
    }

    #[test]
    fn a_running_median_slides() {
        let all = [5.0, 1.0, 4.0, 4.0, 9.0, 2.0, 2.0];
        let plain: Vec<f64> = (0..all.len())
            .map(|at: usize| {
                let window = &all[at.saturating_sub(2)..(at + 3).min(all.len())];
                all[at] - median(window).unwrap()
            })
            .collect();
        assert_eq!(less_running_median(&all, 2), plain);
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod figures;
