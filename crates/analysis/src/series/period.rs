//! Does a series repeat itself, as under checkpoints? The highest significant peak of its autocorrelation.

use super::{autocorrelation, batches, less_running_median};

/// A period that was found.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Period {
    /// Length in intervals.
    pub intervals: usize,
    /// Autocorrelation at that lag.
    pub strength: f64,
}

/// Least autocorrelation of a period.
const STRONG: f64 = 0.25;

/// Intervals after which a series is coarsened, to bound the work.
const MOST: usize = 4_000;

/// The dominant period of `all`, at least 3 intervals and at most a quarter of the series: the lag whose autocorrelation is
/// a peak, stands out from its neighbourhood's valley, and is significant. Levels and drifts are taken away before, by a
/// running median.
pub fn period(all: &[f64]) -> Option<Period> {
    let coarse = all.len().div_ceil(MOST).max(1);
    let series = batches(all, coarse);
    if series.len() < 24 {
        return None;
    }
    let longest = series.len() / 4;
    let flat = less_running_median(&series, longest.max(8));
    let lags: Vec<f64> = (0..=longest).map(|lag| autocorrelation(&flat, lag)).collect();
    // The first time the correlation falls below 0 is half-way of a wave; noise that merely persists never comes back.
    let valley = lags.iter().position(|r| *r < 0.0)?;
    let peak =
        (valley.max(2)..longest).filter(|lag| lags[*lag] >= lags[lag - 1] && lags[*lag] >= lags[lag + 1]);
    let best = peak.max_by(|a, b| lags[*a].total_cmp(&lags[*b]))?;
    let significant = 3.0 / (series.len() as f64).sqrt();
    let deepest = lags[valley..best].iter().copied().fold(0.0, f64::min);
    // A wave's valley is about as deep as its peak is high.
    let wave = deepest <= -0.5 * lags[best] || lags[best] > 0.5;
    // Multiples of the period are peaks, too: the shortest that is nearly as high.
    let first = (valley.max(2)..=best)
        .find(|lag| {
            lags[*lag] >= 0.85 * lags[best] && lags[*lag] >= lags[lag - 1] && lags[*lag] >= lags[lag + 1]
        })
        .unwrap_or(best);
    (wave && lags[first] >= STRONG.max(significant))
        .then(|| Period { intervals: first * coarse, strength: lags[first] })
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{noise, random};
    use super::*;

    #[test]
    fn waves_are_found_and_noise_is_none() {
        for (length, wave) in [(7.0, 400), (60.0, 600), (13.0, 120)] {
            let mut source = random(3);
            let all: Vec<f64> = noise(&mut source, wave, 0.0)
                .iter()
                .enumerate()
                .map(|(at, noise)| {
                    100.0 + 10.0 * (at as f64 * std::f64::consts::TAU / length).sin() + 4.0 * noise
                })
                .collect();
            let found = period(&all).unwrap_or_else(|| panic!("period {length}"));
            assert!((found.intervals as f64 - length).abs() <= 1.0, "{length}: {found:?}");
        }
        let mut alarms = 0;
        for seed in 0..100 {
            let rho = if seed % 2 == 0 { 0.0 } else { 0.5 };
            alarms += usize::from(period(&noise(&mut random(seed), 300, rho)).is_some());
        }
        assert!(alarms <= 5, "{alarms} of 100");
    }
}
