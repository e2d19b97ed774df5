//! A day's curve: a raised cosine between two rates.

use std::f64::consts::TAU;

const NS: f64 = 1e9;

/// Steps of Newton's method, or halvings, that bring any count to a time within a nanosecond.
const STEPS: usize = 100;

/// A rate that goes from its least to its greatest value and back in each period, as a cosine does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DayCurve {
    /// Least rate, operations per second.
    pub low: f64,
    /// Greatest rate, operations per second.
    pub high: f64,
    /// Length of a period, nanoseconds.
    pub period_ns: u64,
    /// The first time of the greatest rate, nanoseconds.
    pub peak_ns: u64,
}

impl DayCurve {
    fn mean(&self) -> f64 {
        (self.low + self.high) / 2.0
    }

    fn period_s(&self) -> f64 {
        self.period_ns as f64 / NS
    }

    /// Angle at a time in seconds: 0 at the peak.
    fn angle(&self, seconds: f64) -> f64 {
        (seconds - self.peak_ns as f64 / NS) / self.period_s() * TAU
    }

    fn rate(&self, seconds: f64) -> f64 {
        (self.mean() + (self.high - self.low) / 2.0 * self.angle(seconds).cos()).max(0.0)
    }

    /// The integrated rate within one period.
    fn count(&self, seconds: f64) -> f64 {
        let swing = (self.high - self.low) / 2.0 * self.period_s() / TAU;
        (self.mean() * seconds + swing * (self.angle(seconds).sin() - self.angle(0.0).sin())).max(0.0)
    }

    /// As `Profile::time_of`. There is no closed form: Newton's method, within a bracket that is halved where it would leave it.
    pub(super) fn time_of(&self, count: f64) -> f64 {
        let each = self.mean() * self.period_s();
        let rounds = (count / each).floor();
        let left = (count - rounds * each).clamp(0.0, each);
        if left <= 0.0 {
            return rounds * self.period_ns as f64;
        }
        let (mut low, mut high) = (0.0, self.period_s());
        let mut at = left / self.mean();
        for _ in 0..STEPS {
            let miss = self.count(at) - left;
            if miss > 0.0 {
                high = at;
            } else {
                low = at;
            }
            let newton = at - miss / self.rate(at);
            let next = if newton > low && newton < high { newton } else { (low + high) / 2.0 };
            let done = (next - at).abs() * NS < 0.1;
            at = next;
            if done {
                break;
            }
        }
        rounds * self.period_ns as f64 + at * NS
    }

    /// As `Profile::count_at`.
    pub(super) fn count_at(&self, ns: u64) -> f64 {
        let rounds = ns / self.period_ns;
        let within = (ns % self.period_ns) as f64 / NS;
        rounds as f64 * self.mean() * self.period_s() + self.count(within)
    }

    /// As `Profile::rate_at`.
    pub(super) fn rate_at(&self, ns: u64) -> f64 {
        self.rate((ns % self.period_ns) as f64 / NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn a_day_has_its_extremes_its_mean_and_its_inverse() {
        let day = DayCurve { low: 100.0, high: 500.0, period_ns: 24 * HOUR_NS, peak_ns: 20 * HOUR_NS };
        for (hour, rate) in [(20, 500.0), (8, 100.0), (2, 300.0), (14, 300.0), (44, 500.0), (32, 100.0)] {
            assert!((day.rate_at(hour * HOUR_NS) - rate).abs() < 1e-6, "{hour}");
        }
        assert_eq!(day.count_at(48 * HOUR_NS), 2.0 * 300.0 * 86_400.0);
        // From the trough to the middle: 300 * 6 h less 200 * 24 h / 2 pi.
        let quarter = day.count_at(14 * HOUR_NS) - day.count_at(8 * HOUR_NS);
        assert!((quarter - (300.0 * 21_600.0 - 200.0 * 86_400.0 / TAU)).abs() < 1e-3, "{quarter}");
        for minute in (0..4_000).step_by(7) {
            let ns = minute * HOUR_NS / 60;
            assert!((day.time_of(day.count_at(ns)) - ns as f64).abs() < 2.0, "{minute}");
        }
    }

    #[test]
    fn a_day_whose_least_rate_is_0_has_an_inverse_too() {
        let day = DayCurve { low: 0.0, high: 2_000.0, period_ns: HOUR_NS, peak_ns: HOUR_NS / 2 };
        assert_eq!(day.time_of(0.0), 0.0);
        for count in [1e-6, 0.5, 1.0, 1_000.0, 3_599_999.5, 3_600_000.0, 3_600_001.0] {
            let at = day.time_of(count);
            assert!((day.count_at(at as u64) - count).abs() < 1e-5, "{count}");
        }
    }
}
