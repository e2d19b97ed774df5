use super::*;

/// Quarters of a second with so many successes each.
fn quarters(ok: &[u64]) -> Vec<IntervalOutcomes> {
    let of = |(at, ok): (usize, &u64)| IntervalOutcomes {
        start_s: at as f64 / 4.0,
        ok: *ok,
        ..IntervalOutcomes::default()
    };
    ok.iter().enumerate().map(of).collect()
}

/// `count` intervals with so many successes, and some of another number in front of them.
fn calm(count: usize, ok: u64, first: &[u64]) -> Vec<IntervalOutcomes> {
    let mut all = first.to_vec();
    all.resize(count, ok);
    quarters(&all)
}

#[test]
fn rates_are_told_by_the_second_whatever_the_interval() {
    let all = quarters(&[10, 20, 30, 40, 50, 60, 1]);
    let history = ThroughputHistory::new(&all, 0.25);
    // The last interval may be a part: it begins no second, and is in none.
    assert_eq!((history.each, &history.seconds), (4, &vec![100.0, 140.0, 180.0]));
    let worst = [
        (0..6, 2, Some(60.0)),
        (1..6, 1, Some(80.0)),
        (4..9, 2, Some(220.0)),
        (5..6, 2, None),
        (0..6, 4, Some(100.0)),
        (1..1, 1, None),
    ];
    for (begins, width, rate) in worst {
        assert_eq!(history.worst(begins.clone(), width), rate, "{begins:?}, {width}");
    }
    assert_eq!(ThroughputHistory::new(&all, 2.0).each, 1);
    assert_eq!(ThroughputHistory::new(&[], 0.25).worst(0..1, 1), None);
}

#[test]
fn a_time_lies_in_its_interval_with_a_microsecond_of_slack() {
    let all = quarters(&[10; 7]);
    let history = ThroughputHistory::new(&all, 0.25);
    let at = [(0.0, 0), (0.249_998, 0), (0.249_999_5, 1), (0.25, 1), (1.3, 5), (1.74, 6), (9.0, 7)];
    for (time_s, interval) in at {
        assert_eq!(history.at(time_s), interval, "{time_s} s");
    }
    let between = [
        ((0.0, 1.5), vec![0, 1, 2]),
        ((0.25, 1.25), vec![1]),
        ((0.250_000_5, 1.249_999_5), vec![1]),
        ((0.250_002, 1.5), vec![2]),
        ((0.0, 1.249_998), vec![0]),
        ((2.0, 9.0), vec![]),
    ];
    for ((from_s, to_s), seconds) in between {
        assert_eq!(history.between(from_s, to_s), seconds, "{from_s} s to {to_s} s");
    }
}

#[test]
fn failures_just_before_a_fault_are_its_own_if_they_are_the_first() {
    let of = |failed: [u64; 3]| -> Vec<IntervalOutcomes> {
        let one = |(at, failed): (usize, u64)| IntervalOutcomes {
            start_s: at as f64 - 2.0,
            failed,
            ..IntervalOutcomes::default()
        };
        failed.into_iter().enumerate().map(one).collect()
    };
    let (late, early, none) = (of([0, 8, 0]), of([1, 8, 0]), of([0, 0, 0]));
    let edge = |all: &[IntervalOutcomes], begin: usize, begin_s: f64| {
        ThroughputHistory::new(all, 1.0).edge(begin, begin_s)
    };
    assert_eq!(
        (edge(&late, 2, 0.0), edge(&late, 2, EDGE_S), edge(&late, 2, EDGE_S + 1e-9)),
        (Some(1), Some(1), None)
    );
    assert_eq!((edge(&early, 2, 0.0), edge(&none, 2, 0.0)), (None, None));
    // Before the first interval there is none.
    assert_eq!((edge(&early, 1, -1.0), edge(&early, 0, -2.0), edge(&[], 1, 0.0)), (Some(0), None, None));
}

#[test]
fn recovered_is_what_holds_for_three_seconds_and_has_not_caught_up_within_one() {
    let of = |ok: &[u64], length_s: f64, from: usize, limit: usize, back: f64, least: f64| {
        ThroughputHistory::new(&quarters(ok), length_s).recovered(from, limit, back, least)
    };
    let ok = [0, 100, 90, 80, 90, 90, 90, 0];
    assert_eq!(of(&ok, 1.0, 0, 8, 90.0, 0.0), Some(4));
    assert_eq!(of(&ok, 1.0, 0, 8, 80.0, 0.0), Some(1));
    assert_eq!((of(&ok, 1.0, 2, 8, 80.0, 0.0), of(&ok, 1.0, 2, 8, 80.0, 95.0)), (Some(2), None));
    assert_eq!((of(&ok, 1.0, 2, 3, 80.0, 90.0), of(&ok, 1.0, 2, 2, 80.0, 0.0)), (Some(2), None));
    assert_eq!(of(&ok, 1.0, 5, 8, 80.0, 0.0), None, "two seconds are not three");
    // Halves of a second: three whole seconds from the same half on, and no second that begins nearly empty.
    let halves = [100, 100, 20, 180, 100, 100, 100, 100, 100, 100, 0];
    assert_eq!(of(&halves, 0.5, 0, 11, 200.0, 0.0), Some(0));
    assert_eq!(of(&halves, 0.5, 1, 11, 200.0, 0.0), Some(2));
    assert_eq!(of(&halves, 0.5, 1, 11, 200.0, 50.0), Some(3));
    assert_eq!(of(&halves, 0.5, 5, 11, 200.0, 50.0), None);
}

#[test]
fn what_was_not_recorded_is_filled_with_nothing_up_to_a_week_of_intervals() {
    let recorded = |starts: &[f64]| -> Vec<IntervalOutcomes> {
        starts
            .iter()
            .map(|start_s| IntervalOutcomes { start_s: *start_s, ok: 5, ..IntervalOutcomes::default() })
            .collect()
    };
    let all = filled(&recorded(&[0.5, 1.0, 2.5, 3.5]), 0.5);
    let told: Vec<_> = all.iter().map(|one| (one.start_s, one.ok)).collect();
    assert_eq!(told, [(0.5, 5), (1.0, 5), (1.5, 0), (2.0, 0), (2.5, 5), (3.0, 0), (3.5, 5)]);
    assert_eq!(filled(&recorded(&[1.0, 0.5]), 0.5).len(), 2);
    let far = recorded(&[0.0, 1.0 + 600_000.0, 2.0 + 610_000.0, 1e9]);
    assert_eq!(filled(&far, 1.0).len(), far.len() + 604_800);
}

#[test]
fn the_scatter_of_calm_intervals_and_what_is_below_all_of_them() {
    let of = |first: &[u64]| (scatter(&calm(40, 100, first)), depth(&calm(40, 100, first)));
    assert_eq!(quantiles(&calm(40, 100, &[90, 10, 80])), [10.0, 90.0, 100.0]);
    assert_eq!(quantiles(&calm(39, 100, &[90, 10, 80])), [10.0, 80.0, 100.0]);
    assert_eq!(quantiles(&[]), [0.0; 3]);
    // A single stall is no scatter; of 40 the third is what the twentieth part does not reach.
    assert_eq!(of(&[10, 80, 90]), (80.0, 10.0));
    assert_eq!(of(&[70, 80, 90]), (80.0, 50.0));
    assert_eq!(of(&[80, 82, 85]), (80.0, 40.0));
    assert_eq!(of(&[1, 40, 40]), (1.0, 1.0));
    assert_eq!(of(&[0, 40, 40]), (0.0, -140.0));
    assert_eq!(of(&[0, 100, 100]), (100.0, 0.0));
}

#[test]
fn only_what_is_longer_or_lower_or_more_frequent_than_before_is_an_effect() {
    let of = |before: &[IntervalOutcomes], window: &[u64]| effect(before, &quarters(window), 9.0);
    let (few, many) = (calm(SCATTER - 1, 10, &[]), calm(SCATTER, 10, &[]));
    // Fewer than twenty cannot tell how often: all that is low counts.
    assert_eq!((of(&few, &[10, 8, 10]), of(&many, &[10, 8, 10]), of(&few, &[10, 9])), (Some(1), None, None));
    // Below half of what is usual; longer than two, or than twice the longest before.
    assert_eq!((of(&many, &[10, 5]), of(&many, &[10, 4])), (None, Some(1)));
    assert_eq!((of(&many, &[10, 8, 8, 10]), of(&many, &[8, 10, 8, 8, 8])), (None, Some(2)));
    let stalling = calm(SCATTER, 10, &[8, 8]);
    assert_eq!((of(&stalling, &[8; 4]), of(&stalling, &[8; 5])), (None, Some(0)));
    let longer = calm(SCATTER, 10, &[8, 8, 8]);
    assert_eq!((of(&longer, &[8; 6]), of(&longer, &[8; 7])), (None, Some(0)));
    // None before and ten in as long a time: 1 in 1,024; nine: 1 in 512.
    let alternating = |count: usize| -> Vec<u64> {
        (0..20).map(|at| if at % 2 == 0 && at < 2 * count { 8 } else { 10 }).collect()
    };
    assert_eq!((of(&many, &alternating(9)), of(&many, &alternating(10))), (None, Some(0)));
    assert_eq!((of(&many, &[]), of(&[], &[10])), (None, None));
}

#[test]
fn stalls_are_counted_by_their_runs_and_their_chance() {
    assert_eq!(runs(&quarters(&[8, 8, 9, 8, 10, 7]), 9.0), [0..2, 3..4, 5..6]);
    // Three or more of five that are in a quarter of the time: 10 a^3 b^2 + 5 a^4 b + a^5.
    assert!((by_chance((2, 30), (3, 10)) - 0.103_515_625).abs() < 1e-12);
    assert!((by_chance((0, 10), (1, 30)) - 0.75).abs() < 1e-12);
    assert_eq!((by_chance((3, 30), (0, 10)), by_chance((0, 0), (0, 0))), (1.0, 1.0));
}

#[test]
fn response_times_are_means_of_what_ended_well() {
    let of = |ok: u64, response_s: f64| IntervalOutcomes { ok, response_s, ..IntervalOutcomes::default() };
    assert_eq!(mean_response_us(&[of(1, 0.5), of(3, 0.25), of(0, 9.0)]), Some(312_500.0));
    assert_eq!((mean_response_us(&[of(0, 9.0)]), mean_response_us(&[])), (None, None));
    assert_eq!((until_or(None, 4, 9), until_or(Some(6), 4, 9), until_or(Some(6), 4, 5)), (4, 6, 5));
}
