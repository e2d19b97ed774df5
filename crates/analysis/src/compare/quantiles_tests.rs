use super::*;
use crate::compare::{Conclusion, Decision};
use dyno_record::Scale;

fn run(slow: u64) -> ArrivalLatency {
    let mut arrivals = ArrivalLatency::new(Scale::Ns64);
    (0..1_000u64).for_each(|i| arrivals.ok.record(if i < 980 { 100_000 + i } else { slow }));
    arrivals
}

#[test]
fn what_was_timed_out_or_never_sent_is_no_improvement() {
    let one: Vec<ArrivalLatency> = (0..5).map(|n| run(1_000_000 + n * 1_000)).collect();
    let failing = |n: u64| {
        let mut arrivals = run(1_000_000 + n * 1_000);
        (0..25).for_each(|_| arrivals.failed.record(50_000_000));
        arrivals
    };
    let other: Vec<ArrivalLatency> = (0..5).map(failing).collect();
    let drawn = Quantiles::draw_replicates(&one, &other, &[50.0, 99.0], 1).unwrap();
    let found = drawn.compare_percentile(99.0, Margin::LATENCY, 0.0).unwrap();
    assert!(
        found.decision.conclusion == Conclusion::Worse && (found.means.1 / 5e7 - 1.0).abs() < 0.01,
        "{found:?}"
    );
    assert_eq!(
        drawn.compare_percentile(50.0, Margin::LATENCY, 0.0).unwrap().decision.conclusion,
        Conclusion::Same
    );
    let dropped: Vec<ArrivalLatency> =
        one.iter().map(|run| ArrivalLatency { unsent: 50, ..run.clone() }).collect();
    let drawn = Quantiles::draw_replicates(&one, &dropped, &[50.0, 99.0], 1).unwrap();
    assert_eq!(drawn.compare_percentile(99.0, Margin::LATENCY, 0.0), None);
    assert_eq!(
        (drawn.percentile_values(99.0).unwrap().1, drawn.percentile_shifts().len()),
        (f64::INFINITY, 1)
    );
}

#[test]
fn quantiles_come_from_merged_histograms() {
    let one: Vec<ArrivalLatency> = (0..5).map(|n| run(1_000_000 + n * 1_000)).collect();
    let other: Vec<ArrivalLatency> = (0..5).map(|n| run(2_000_000 + n * 1_000)).collect();
    let drawn = Quantiles::draw_replicates(&one, &other, &[50.0, 99.0], 1).unwrap();
    let found = drawn.compare_percentile(99.0, Margin::LATENCY, 0.0).unwrap();
    assert_eq!(found.decision.conclusion, Conclusion::Worse);
    assert!((found.decision.ratio.value - 2.0).abs() < 0.01, "{found:?}");
    let median = drawn.compare_percentile(50.0, Margin::LATENCY, 0.0).unwrap();
    assert_eq!(median.decision.conclusion, Conclusion::Same);
    assert!(drawn.compare_percentile(98.0, Margin::LATENCY, 0.0).is_none());
    let mut merged = one[0].clone();
    one[1..].iter().for_each(|run| merged.merge(run));
    assert_eq!(found.means.0, merged.percentile_ns(99.0));
    let shifts = drawn.percentile_shifts();
    assert_eq!(shifts.len(), 2);
    let (low, high) = shifts[1].interval.unwrap();
    assert!(low <= shifts[1].ratio && shifts[1].ratio <= high && high - low < 0.02, "{shifts:?}");
}

#[test]
fn one_run_has_no_interval_and_nothing_has_no_quantile() {
    let (one, other) = ([run(1_000_000)], [run(2_000_000)]);
    let drawn = Quantiles::draw_replicates(&one, &other, &[99.0], 1).unwrap();
    assert_eq!(drawn.percentile_shifts()[0].interval, None);
    assert_eq!(
        drawn.compare_percentile(99.0, Margin::LATENCY, 0.0).unwrap().decision.conclusion,
        Conclusion::Unclear(3)
    );
    let empty = [ArrivalLatency::new(Scale::Ns64)];
    assert!(Quantiles::draw_replicates(&one, &empty, &[50.0], 1).is_none());
    assert!(Quantiles::draw_replicates(&[], &one, &[50.0], 1).is_none());
}

/// A run with these times in units of 64 ns, and with failures and arrivals that were never sent.
fn small(ok: &[u64], failed: &[u64], unsent: u64) -> ArrivalLatency {
    let mut arrivals = ArrivalLatency { unsent, ..ArrivalLatency::new(Scale::Ns64) };
    ok.iter().for_each(|units| arrivals.ok.record(units * 64));
    failed.iter().for_each(|units| arrivals.failed.record(units * 64));
    arrivals
}

#[test]
fn histograms_are_laid_out_from_the_first_bucket_that_any_has() {
    let runs = [small(&[5, 7, 7], &[], 0), small(&[6], &[], 0), small(&[], &[], 0)];
    let rows = BucketMatrix::of(runs.iter().map(|run| &run.ok).collect());
    assert_eq!((rows.first, &rows.rows), (5, &vec![vec![1, 0, 2], vec![0, 1], vec![]]));
    let mut sums = vec![9];
    // A bucket of one unit ends 63 ns after its beginning; the greatest value was recorded exactly.
    let whole = rows.percentiles(&[0, 1, 2], &[25.0, 50.0, 75.0, 100.0], 0, &mut sums);
    assert_eq!((whole, &sums), (vec![383.0, 447.0, 448.0, 448.0], &vec![1, 1, 2]));
    assert_eq!(rows.percentiles(&[1, 1, 0], &[40.0, 80.0], 0, &mut sums), [447.0, 448.0]);
    // One of the four timed in five was never sent: 80 % is the last that has a time, more has none.
    let [last, beyond] = rows.percentiles(&[0, 1], &[80.0, 80.1], 1, &mut sums)[..] else { panic!() };
    assert_eq!((last, beyond), (448.0, f64::INFINITY));
    assert_eq!(BucketMatrix::of(Vec::new()).percentiles(&[], &[50.0, 99.0], 0, &mut sums), [0.0, 0.0]);
}

#[test]
fn a_side_with_failures_counts_them_and_is_no_quicker_for_them() {
    let mut sums = Vec::new();
    let mut of = |runs: &[ArrivalLatency]| {
        let all: Vec<Buckets> = runs.iter().map(ArrivalLatency::timed_buckets).collect();
        let which: Vec<usize> = (0..runs.len()).collect();
        RunHistograms::of(runs, &all).percentiles(&which, &[50.0, 100.0], &mut sums)
    };
    assert_eq!(of(&[small(&[10; 3], &[], 0)]), [640.0, 640.0]);
    assert_eq!(of(&[small(&[10; 3], &[20], 0), small(&[10], &[], 0)]), [703.0, 1280.0]);
    assert_eq!(of(&[small(&[10; 3], &[1; 9], 0)]), [640.0, 640.0]);
    assert_eq!(of(&[small(&[10; 3], &[], 0), small(&[10; 3], &[], 1)]), [640.0, f64::INFINITY]);
}

#[test]
fn what_was_drawn_is_compared_exactly_and_what_was_not_has_no_figure() {
    let (one, other) = (vec![small(&[100], &[], 0); 4], vec![small(&[200], &[], 0); 5]);
    let drawn = Quantiles::draw_replicates(&one, &other, &[50.0, 100.0], 3).unwrap();
    let flat = |value: f64| IntervalEstimate { value, low: value, high: value };
    for percentile in [50.0, 100.0] {
        let expected = Comparison {
            runs: (4, 5),
            means: (6_400.0, 12_800.0),
            // Nothing scatters: there is no doubt.
            decision: Decision { conclusion: Conclusion::Worse, open: None, ratio: flat(2.0), p: Some(0.0) },
            difference: flat(6_400.0),
            shift: 6_400.0,
            rank_p: mann_whitney(&[1.0; 4], &[2.0; 5]),
            delta: 1.0,
            drift: None,
        };
        assert_eq!(drawn.compare_percentile(percentile, Margin::LATENCY, 0.0), Some(expected));
        assert_eq!(drawn.percentile_values(percentile), Some((6_400.0, 12_800.0)));
    }
    let shift = |percentile: f64| Shift {
        percentile,
        values: (6_400.0, 12_800.0),
        ratio: 2.0,
        interval: Some((2.0, 2.0)),
    };
    assert_eq!(drawn.percentile_shifts(), [shift(50.0), shift(100.0)]);
    assert_eq!(
        (drawn.percentile_values(99.0), drawn.compare_percentile(99.0, Margin::LATENCY, 0.0)),
        (None, None)
    );
    // The same is the same, of four runs a side on; two have an interval already.
    for (runs, conclusion) in [(4, Conclusion::Same), (2, Conclusion::Unclear(2))] {
        let drawn = Quantiles::draw_replicates(&one[..runs], &one[..runs], &[50.0], 3).unwrap();
        let found = drawn.compare_percentile(50.0, Margin::LATENCY, 0.0).unwrap();
        assert_eq!(
            (found.decision.ratio, found.difference, found.decision.conclusion),
            (flat(1.0), flat(0.0), conclusion)
        );
        assert_eq!(drawn.percentile_shifts()[0].interval, Some((1.0, 1.0)));
    }
}

#[test]
fn a_quantile_that_is_nothing_or_without_end_on_a_side_is_not_compared() {
    let (none, some, unsent) = (small(&[0], &[], 0), small(&[100], &[], 0), small(&[100], &[], 1));
    let infinite = f64::INFINITY;
    for (one, other, values) in [
        (&none, &some, (0.0, 6_400.0)),
        (&unsent, &some, (infinite, 6_400.0)),
        (&some, &unsent, (6_400.0, infinite)),
        (&unsent, &unsent, (infinite, infinite)),
    ] {
        let (one, other) = ([one.clone()], [other.clone()]);
        let drawn = Quantiles::draw_replicates(&one, &other, &[99.0], 3).unwrap();
        assert_eq!(drawn.percentile_values(99.0), Some(values));
        assert_eq!(
            (drawn.compare_percentile(99.0, Margin::LATENCY, 0.0), drawn.percentile_shifts()),
            (None, Vec::new())
        );
    }
    assert_eq!((ratio(infinite, infinite), ratio(0.0, 0.0), ratio(4.0, 10.0)), (1.0, 1.0, 2.5));
    // All times of the second side are nothing: that can be said.
    let drawn =
        Quantiles::draw_replicates(std::slice::from_ref(&some), std::slice::from_ref(&none), &[99.0], 3)
            .unwrap();
    assert_eq!((drawn.percentile_shifts()[0].ratio, drawn.percentile_shifts().len()), (0.0, 1));
}
