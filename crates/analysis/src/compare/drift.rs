//! Runs in the order in which they were made: a host that drifts makes a difference between sides that were not made by turns.

use super::bootstrap::{ALPHA, IntervalEstimate};
use crate::series::mean;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Factor by which the order of the runs may widen the interval of a difference before it has a say.
const WIDER: f64 = 1.25;

/// A drift along the order of all runs, beside the difference of the sides: the analysis of covariance (Fisher, 1932) of the
/// logarithms, with one slope for both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Drift {
    /// Relative change from one run to the next.
    pub per_run: f64,
    /// Two-sided p-value of it.
    pub p: f64,
    /// Ratio of the sides without it, with its 95 % interval.
    pub ratio: IntervalEstimate,
    /// Two-sided p-value of that ratio.
    pub ratio_p: f64,
    /// Factor by which the order widens the interval: 1 where the sides were made by turns.
    pub wider: f64,
}

/// Finds the drift of two sides whose runs were made at these places of a common order; `None` for fewer than four runs in all,
/// for sides without an order of their own, and for figures that have no logarithm.
pub fn estimate_drift((one, first): (&[f64], &[f64]), (other, second): (&[f64], &[f64])) -> Option<Drift> {
    let usable = |values: &[f64], places: &[f64]| {
        !values.is_empty() && values.len() == places.len() && values.iter().all(|v| v.is_finite() && *v > 0.0)
    };
    let freedom = (one.len() + other.len()).checked_sub(3).filter(|freedom| *freedom > 0)? as f64;
    if !usable(one, first) || !usable(other, second) {
        return None;
    }
    let side = |values: &[f64], places: &[f64]| {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let (level, place) = (mean(&logs), mean(places));
        let each: Vec<(f64, f64)> =
            logs.iter().zip(places).map(|(log, at)| (at - place, log - level)).collect();
        (level, place, each)
    };
    let (a, b) = (side(one, first), side(other, second));
    let all = || a.2.iter().chain(&b.2);
    let spread: f64 = all().map(|(at, _)| at * at).sum();
    if spread <= 0.0 {
        return None;
    }
    let slope = all().map(|(at, log)| at * log).sum::<f64>() / spread;
    let variance = all().map(|(at, log)| (log - slope * at).powi(2)).sum::<f64>() / freedom;
    let apart = b.1 - a.1;
    let inverse = 1.0 / one.len() as f64 + 1.0 / other.len() as f64;
    let value = b.0 - a.0 - slope * apart;
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let error = (variance * (inverse + apart * apart / spread)).sqrt();
    let half = student.inverse_cdf(1.0 - ALPHA / 2.0) * error;
    let ratio_p =
        if value == 0.0 { 1.0 } else { 2.0 * student.cdf(-value.abs() / error.max(f64::MIN_POSITIVE)) };
    let t = slope.abs() / (variance / spread).sqrt().max(f64::MIN_POSITIVE);
    Some(Drift {
        per_run: slope.exp_m1(),
        p: if slope == 0.0 { 1.0 } else { 2.0 * student.cdf(-t) },
        ratio: IntervalEstimate { value: value.exp(), low: (value - half).exp(), high: (value + half).exp() },
        ratio_p,
        wider: (1.0 + apart * apart / (spread * inverse)).sqrt(),
    })
}

impl Drift {
    /// Returns whether the sides were made in an order that a drift can be taken for a difference of.
    pub fn is_confounded(&self) -> bool {
        self.wider > WIDER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::synthetic::{noise, random};

    /// Places of sides of `count` runs each, one after the other or by turns.
    fn places(count: usize, by_turns: bool) -> (Vec<f64>, Vec<f64>) {
        match by_turns {
            false => {
                ((0..count).map(|at| at as f64).collect(), (count..2 * count).map(|at| at as f64).collect())
            }
            // A B B A A B B A.
            true => (0..2 * count).map(|at| at as f64).partition(|at| [0, 3].contains(&(*at as usize % 4))),
        }
    }

    #[test]
    fn intervals_without_the_drift_hold() {
        let (first, second) = places(5, false);
        let mut random = random(3);
        let inside = (0..1_000).filter(|_| {
            let mut side = |places: &[f64], level: f64| -> Vec<f64> {
                let noise = noise(&mut random, places.len(), 0.0);
                places
                    .iter()
                    .zip(noise)
                    .map(|(at, e)| level * 1.01_f64.powf(*at) * (0.02 * e).exp())
                    .collect()
            };
            let found = estimate_drift((&side(&first, 1.0), &first), (&side(&second, 1.2), &second)).unwrap();
            found.ratio.low <= 1.2 && found.ratio.high >= 1.2
        });
        let share = inside.count() as f64 / 1_000.0;
        assert!((0.93..=0.97).contains(&share), "{share}");
    }

    #[test]
    fn sides_by_turns_are_not_confounded() {
        let of = |by_turns| {
            let (first, second) = places(4, by_turns);
            let values =
                |places: &[f64]| places.iter().map(|at| 100.0 + (at * 7.0) % 3.0).collect::<Vec<f64>>();
            estimate_drift((&values(&first), &first), (&values(&second), &second)).unwrap()
        };
        assert!(!of(true).is_confounded() && of(false).is_confounded());
        // 4 and 4 in a row: sqrt(1 + 16 / (10 x 0.5)).
        assert!((of(false).wider - (1.0_f64 + 16.0 / 5.0).sqrt()).abs() < 1e-12);
        assert_eq!(estimate_drift((&[1.0], &[0.0]), (&[1.0, 2.0], &[1.0, 2.0])), None);
        assert_eq!(estimate_drift((&[1.0, 0.0], &[0.0, 1.0]), (&[1.0, 2.0], &[2.0, 3.0])), None);
    }
}
