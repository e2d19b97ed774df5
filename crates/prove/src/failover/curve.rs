//! Effect of a failover on the writers: the time without acknowledgements, and how they came back.

use crate::drive::BatchHistory;
use dyno_types::stats::median;
use serde::Serialize;
use std::time::Duration;

/// Time that a window of a curve is, seconds.
const WINDOW_S: f64 = 0.5;
/// Windows before the fault.
const BEFORE: usize = 4;
/// Windows after the servers have settled.
const AFTER: usize = 4;
/// Most windows of a curve.
const MOST: usize = 400;
/// Share of the level before that counts as recovered.
const RECOVERED: f64 = 0.9;

/// Acknowledged records around a fault, window by window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Where the first window begins, seconds since the fault (before it: negative).
    pub from_s: f64,
    /// The length of each window.
    pub window_s: f64,
    /// Acknowledged records of each window.
    pub acknowledged: Vec<u64>,
    /// Acknowledged records a second before the fault, by the median window, if there was one.
    pub before_per_s: Option<f64>,
    /// When, after the longest time without an acknowledgement, nine tenths of that were acknowledged again, seconds since
    /// the fault; `None` if they were not within the curve.
    pub recovered_s: Option<f64>,
}

/// The longest time without an acknowledgement that ends after `at_s` and begins before `until_s`: begin and length.
pub(super) fn longest_gap(history: &BatchHistory, at_s: f64, until_s: f64) -> (f64, f64) {
    let near = |(begin, length): &(f64, f64)| begin + length >= at_s && *begin <= until_s;
    let gaps = history.stalls(Duration::ZERO).into_iter().filter(near);
    gaps.fold((at_s, 0.0), |longest, gap| if gap.1 > longest.1 { gap } else { longest })
}

/// The curve around a fault at `at_s` after which the servers had settled at `settled_s`.
pub(super) fn curve(history: &BatchHistory, at_s: f64, settled_s: f64) -> Curve {
    let before = BEFORE.min((at_s / WINDOW_S) as usize);
    let end_s = history.seconds().max(history.end_ns as f64 / 1e9);
    let after = ((settled_s - at_s) / WINDOW_S).ceil().max(0.0) as usize + AFTER;
    let there = ((end_s - at_s) / WINDOW_S).max(0.0) as usize;
    let count = (before + after.min(there)).min(MOST);
    let first_s = at_s - before as f64 * WINDOW_S;
    let mut acknowledged = vec![0; count];
    for (at, records) in &history.batches {
        let window = ((*at as f64 / 1e9 - first_s) / WINDOW_S).floor();
        if window >= 0.0
            && let Some(one) = acknowledged.get_mut(window as usize)
        {
            *one += records;
        }
    }
    // Not the mean: writers that have just caught up with what was due are no level.
    let level = median(&acknowledged[..before.min(count)].iter().map(|one| *one as f64).collect::<Vec<_>>());
    let before_per_s = level.map(|level| level / WINDOW_S);
    let (begin, length) = longest_gap(history, at_s, settled_s);
    let begins = |window: usize| (window as f64 - before as f64) * WINDOW_S;
    let back = (begin + length - at_s).max(0.0);
    let enough = |records: u64| level.is_some_and(|level| level > 0.0 && records as f64 >= RECOVERED * level);
    let again = |window: &usize| begins(*window) + WINDOW_S > back && enough(acknowledged[*window]);
    let recovered_s = (before..count).find(again).map(|window| begins(window) + WINDOW_S);
    Curve { from_s: begins(0), window_s: WINDOW_S, acknowledged, before_per_s, recovered_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A batch of 10 each 100 ms, none from 3 s to 5 s.
    fn history() -> BatchHistory {
        let at = (1..=100u64).map(|tenth| tenth * 100_000_000);
        let mut history = BatchHistory::default();
        history.end_ns = 10_000_000_000;
        let batches = at.filter(|at| !(3_000_000_000..5_000_000_000).contains(at));
        batches.for_each(|at| history.add_batch(at, 10, 1));
        history
    }

    #[test]
    fn a_gap_is_found_where_it_is() {
        let (begin, length) = longest_gap(&history(), 3.2, 6.0);
        assert!((begin - 2.9).abs() < 1e-9 && (length - 2.1).abs() < 1e-9, "{begin} {length}");
        assert!(longest_gap(&history(), 6.0, 7.0).1 < 0.2);
    }

    #[test]
    fn the_curve_falls_and_rises() {
        let found = curve(&history(), 3.0, 5.0);
        assert_eq!((found.from_s, found.window_s), (-2.0, 0.5));
        assert_eq!(found.acknowledged.len(), 4 + 4 + 4);
        assert!(found.acknowledged[..4].iter().all(|n| (40..=50).contains(n)), "{found:?}");
        assert_eq!(found.acknowledged[4..8], [0, 0, 0, 0]);
        assert!(found.acknowledged[9] >= 40, "{found:?}");
        assert!(found.recovered_s.is_some_and(|s| (2.5..=3.0).contains(&s)), "{found:?}");
        assert!(found.before_per_s.is_some_and(|level| (level - 100.0).abs() < 10.0), "{found:?}");
    }

    #[test]
    fn writers_that_catch_up_are_no_level() {
        let mut all = history();
        all.batches[14].1 = 32_000;
        let level = curve(&all, 3.0, 5.0).before_per_s.unwrap();
        assert!((level - 100.0).abs() < 10.0, "{level}");
    }

    #[test]
    fn what_does_not_come_back_has_not_recovered() {
        let mut history = history();
        history.batches.retain(|(at, ..)| *at < 3_000_000_000);
        assert_eq!(curve(&history, 3.0, 5.0).recovered_s, None);
        // A fault right at the beginning has no level before it.
        assert_eq!(curve(&history, 0.1, 1.0).before_per_s, None);
    }
}
