//! Does a series repeat itself, as under checkpoints? The highest significant peak of its autocorrelation.

use super::{autocorrelation, batch_means, less_running_median, mean};

/// A period that was found.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Period {
    /// Length in intervals.
    pub intervals: usize,
    /// Autocorrelation at that lag.
    pub strength: f64,
    /// The least and the greatest level within it: means of the phases that are lowest and highest in every other period, taken
    /// from the periods between them, so that noise alone has no swing.
    pub levels: (f64, f64),
}

impl Period {
    /// What it moves, as a share of its greatest level; 0 where that is noise.
    pub fn relative_swing(&self) -> f64 {
        ((self.levels.1 - self.levels.0) / self.levels.1.max(f64::MIN_POSITIVE)).max(0.0)
    }
}

/// Levels within the period of `length` intervals.
fn levels(all: &[f64], length: usize) -> (f64, f64) {
    // Phases are smoothed, so that one interval is no level.
    let reach = if length >= 6 { 1 } else { 0 };
    let usual = |odd: usize| -> Vec<f64> {
        let of = |phase: usize| {
            let near = (0..=2 * reach).map(|shift| (phase + length + shift - reach) % length);
            let own = near.flat_map(|phase| all.iter().skip(odd * length + phase).step_by(2 * length));
            mean(own)
        };
        (0..length).map(of).collect()
    };
    let (even, odd) = (usual(0), usual(1));
    let at = |of: &[f64], sign: f64| {
        (0..length).max_by(|a, b| (sign * of[*a]).total_cmp(&(sign * of[*b]))).unwrap_or(0)
    };
    let told = |sign: f64| odd[at(&even, sign)].midpoint(even[at(&odd, sign)]);
    (told(-1.0), told(1.0))
}

/// Least autocorrelation of a period.
const STRONG: f64 = 0.3;

/// Intervals after which a series is coarsened, to bound the work.
const MOST: usize = 4_000;

/// The dominant period of `all`, at least 3 intervals and at most a quarter of the series: the lag whose autocorrelation is
/// a peak, stands out from its neighbourhood's valley, and is significant. Levels and drifts are taken away before, by a
/// running median.
pub fn find_period(all: &[f64]) -> Option<Period> {
    let coarse = all.len().div_ceil(MOST).max(1);
    let series = batch_means(all, coarse);
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
    (wave && lags[first] >= STRONG.max(significant)).then(|| {
        let intervals = first * coarse;
        Period { intervals, strength: lags[first], levels: levels(all, intervals) }
    })
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
            let found = find_period(&all).unwrap_or_else(|| panic!("period {length}"));
            assert!((found.intervals as f64 - length).abs() <= 1.0, "{length}: {found:?}");
        }
        let mut alarms = 0;
        for seed in 0..100 {
            let rho = if seed % 2 == 0 { 0.0 } else { 0.5 };
            alarms += usize::from(find_period(&noise(&mut random(seed), 300, rho)).is_some());
        }
        assert!(alarms <= 5, "{alarms} of 100");
    }
}
