use super::*;

/// Seconds with so many successes; failures by second.
fn course(ok: &[u64], failed: &[(usize, u64)]) -> Vec<IntervalOutcomes> {
    let of = |at: usize| failed.iter().find(|(second, _)| *second == at).map_or(0, |(_, count)| *count);
    ok.iter()
        .enumerate()
        .map(|(at, ok)| IntervalOutcomes {
            start_s: at as f64,
            ok: *ok,
            failed: of(at),
            ..IntervalOutcomes::default()
        })
        .collect()
}

fn fault(begin_s: f64, end_s: Option<f64>) -> InjectedFault {
    InjectedFault { number: 1, fault: "pause on server".into(), begin_s, end_s, ..InjectedFault::default() }
}

#[test]
fn a_stall_and_its_recovery() {
    let ok = [1000, 1010, 990, 1000, 1005, 0, 400, 950, 1000, 1000, 1000, 500];
    let found = assess_faults(&course(&ok, &[(6, 7)]), 1.0, &[fault(5.0, Some(6.2))]);
    let one = &found.figures[0];
    assert_eq!((one.before_per_s, one.detect_s, one.worst_per_s), (Some(1000.0), Some(1.0), Some(0.0)));
    assert_eq!((one.depth, one.lost, one.recover_s), (Some(1.0), Some(1600.0), Some(2.0)));
    assert_eq!((one.failed, found.failed, one.note.clone()), (7, 7, None));
    assert!(one.describe_effect().contains("recovered after 2.00 s"), "{}", one.describe_effect());
}

#[test]
fn back_for_two_seconds_is_not_recovered() {
    let ok = [1000, 1000, 1000, 1000, 100, 1000, 1000, 100, 1000, 1000, 1000, 1000];
    let found = assess_faults(&course(&ok, &[]), 1.0, &[fault(4.0, Some(5.0))]);
    assert_eq!(found.figures[0].recover_s, Some(4.0));
    assert_eq!(found.figures[0].lost, Some(1800.0));
}

#[test]
fn what_never_comes_back_owns_all_failures() {
    let ok = [1000, 1000, 1000, 1000, 0, 0, 0, 0];
    let found = assess_faults(&course(&ok, &[(1, 3), (4, 50), (7, 60)]), 1.0, &[fault(4.5, None)]);
    let one = &found.figures[0];
    assert_eq!((one.recover_s, one.failed, found.failed), (None, 110, 110));
    assert!((one.detect_s.unwrap() - 0.5).abs() < 1e-9);
    assert!(one.note.as_ref().unwrap().contains("had not recovered"), "{one:?}");
}

#[test]
fn a_phase_that_ends_right_after_a_fault_cannot_show_a_recovery() {
    let ok = [1000, 1000, 1000, 1000, 0, 0, 1000, 1000, 200];
    let note =
        |ok: &[u64]| assess_faults(&course(ok, &[]), 1.0, &[fault(4.0, Some(6.0))]).figures[0].note.clone();
    let short = "too short to tell whether it recovered: the phase ended less than 3 whole seconds after it was undone";
    assert_eq!(note(&ok).unwrap(), short);
    // Three whole seconds, and a part of a fourth: it could have.
    let down = [1000, 1000, 1000, 1000, 0, 0, 100, 100, 100, 100];
    assert_eq!(note(&down).unwrap(), "had not recovered for 3 s when the phase ended");
    assert_eq!(note(&down[..9]).unwrap(), short);
}

#[test]
fn scatter_is_no_effect_and_other_failures_stay_a_surprise() {
    let ok = [1000, 850, 1100, 900, 1000, 870, 1000, 990, 1000, 1000, 1000, 1000, 1000];
    let found = assess_faults(&course(&ok, &[(11, 5)]), 1.0, &[fault(5.0, Some(6.0))]);
    let one = &found.figures[0];
    assert_eq!((one.detect_s, one.recover_s, one.lost), (None, None, Some(0.0)));
    assert_eq!((one.failed, found.failed), (0, 0), "five seconds later is not of this fault");
    assert!(one.note.as_ref().unwrap().contains("nothing was missing"));
}

#[test]
fn the_next_fault_ends_the_time_of_the_one_before() {
    let ok = [1000, 1000, 1000, 1000, 0, 500, 0, 500, 1000, 1000, 1000, 1000, 1000];
    let both = [fault(4.0, Some(4.5)), InjectedFault { number: 2, ..fault(6.0, Some(6.5)) }];
    let found = assess_faults(&course(&ok, &[(4, 1), (6, 2)]), 1.0, &both);
    assert!(found.figures[0].note.as_ref().unwrap().contains("next fault"));
    assert_eq!((found.figures[0].lost, found.figures[0].failed), (Some(1500.0), 1));
    // Nothing calm lies between them.
    assert_eq!(found.figures[1].before_per_s, None);
    assert_eq!((found.figures[1].failed, found.failed), (2, 3));
}

#[test]
fn two_faults_at_once_do_not_count_failures_twice() {
    let ok = [1000, 1000, 1000, 1000, 0, 1000, 1000, 1000, 1000];
    let found = assess_faults(&course(&ok, &[(4, 9)]), 1.0, &[fault(4.1, Some(4.5)), fault(4.2, Some(4.6))]);
    assert_eq!(found.figures.iter().map(|one| one.failed).collect::<Vec<_>>(), [9, 9]);
    assert_eq!(found.failed, 9);
}

#[test]
fn short_intervals_see_it_sooner() {
    let mut all: Vec<IntervalOutcomes> = (0..120)
        .map(|k| IntervalOutcomes {
            start_s: f64::from(k) / 10.0,
            ok: 100,
            failed: 0,
            ..IntervalOutcomes::default()
        })
        .collect();
    for one in &mut all[52..58] {
        one.ok = 0;
    }
    let found = assess_faults(&all, 0.1, &[fault(5.2, Some(5.8))]);
    let one = &found.figures[0];
    assert!((one.detect_s.unwrap() - 0.1).abs() < 1e-9, "{one:?}");
    assert!((one.recover_s.unwrap() - 0.5).abs() < 0.11, "{one:?}");
    // Of the part that it lasted, not of a second.
    assert_eq!((one.worst_per_s, one.before_per_s), (Some(0.0), Some(1000.0)));
    assert!((one.lost.unwrap() - 500.0).abs() < 101.0, "{one:?}");
}

/// Sixteen seconds in intervals of 10 ms.
fn hundredths(ok: impl Fn(usize) -> u64) -> Vec<IntervalOutcomes> {
    (0..1600)
        .map(|k| IntervalOutcomes {
            start_s: k as f64 / 100.0,
            ok: ok(k),
            failed: 0,
            ..IntervalOutcomes::default()
        })
        .collect()
}

/// A fault from the tenth second to the eleventh.
fn hundredths_with_fault(ok: impl Fn(usize) -> u64) -> FaultFigures {
    assess_faults(&hundredths(ok), 0.01, &[fault(10.0, Some(11.0))]).figures.remove(0)
}

/// One interval in a hundred has nothing: the server syncs.
fn stalling(k: usize) -> u64 {
    if k % 100 == 37 { 0 } else { 10 }
}

#[test]
fn stalls_as_before_are_no_effect() {
    let one = hundredths_with_fault(stalling);
    assert_eq!((one.detect_s, one.recover_s, one.lost), (None, None, Some(0.0)), "{one:?}");
    assert!(one.note.as_ref().unwrap().contains("nothing was missing"));
    // One that lies across two intervals is none either.
    let one = hundredths_with_fault(|k| if k == 1038 { 0 } else { stalling(k) });
    assert_eq!(one.detect_s, None, "{one:?}");
}

#[test]
fn an_interval_below_the_scatter_is_no_effect() {
    let scattered = |k: usize| 9 + k as u64 % 3;
    for before in [None, Some(500)] {
        let one = hundredths_with_fault(|k| if k == 1050 || before == Some(k) { 7 } else { scattered(k) });
        assert_eq!((one.detect_s, one.lost), (None, Some(0.0)), "{before:?}: {one:?}");
    }
    // Nothing at all is one, where that has not been before.
    let one = hundredths_with_fault(|k| if k == 1050 { 0 } else { scattered(k) });
    assert!((one.detect_s.unwrap() - 0.51).abs() < 1e-6, "{one:?}");
}

#[test]
fn longer_and_more_frequent_stalls_are_an_effect() {
    let out = hundredths_with_fault(|k| if (1000..1010).contains(&k) { 0 } else { stalling(k) });
    assert!((out.detect_s.unwrap() - 0.01).abs() < 1e-6, "{out:?}");
    assert!((out.recover_s.unwrap() - 0.1).abs() < 1e-6, "{out:?}");
    let slower = hundredths_with_fault(|k| if (1010..1100).contains(&k) { 7 } else { stalling(k) });
    assert!((slower.detect_s.unwrap() - 0.11).abs() < 1e-6, "{slower:?}");
    let often =
        hundredths_with_fault(
            |k| {
                if (1000..1100).contains(&k) && k.is_multiple_of(4) { 0 } else { stalling(k) }
            },
        );
    assert!((often.detect_s.unwrap() - 0.01).abs() < 1e-6, "{often:?}");
}

#[test]
fn what_is_caught_up_is_no_recovery() {
    let mut all: Vec<IntervalOutcomes> = (0..120)
        .map(|k| IntervalOutcomes {
            start_s: f64::from(k) / 10.0,
            ok: 100,
            failed: 0,
            ..IntervalOutcomes::default()
        })
        .collect();
    for one in &mut all[50..60] {
        one.ok = 0;
    }
    // An open loop sends at once what was due meanwhile.
    all[60].ok = 1100;
    let found = assess_faults(&all, 0.1, &[fault(5.0, Some(6.0))]);
    let one = &found.figures[0];
    assert!((one.recover_s.unwrap() - 1.0).abs() < 1e-6, "{one:?}");
    assert!((one.lost.unwrap() - 1000.0).abs() < 1e-6 && one.worst_per_s == Some(0.0), "{one:?}");
}

/// A stop shorter than a second whose operations are caught up is as deep as one that lasts.
#[test]
fn what_is_caught_up_within_a_second_has_its_depth() {
    let mut all: Vec<IntervalOutcomes> = (0..120)
        .map(|k| IntervalOutcomes {
            start_s: f64::from(k) / 10.0,
            ok: 100,
            failed: 0,
            ..IntervalOutcomes::default()
        })
        .collect();
    for one in &mut all[50..57] {
        one.ok = 0;
    }
    all[57].ok = 800;
    let one = &assess_faults(&all, 0.1, &[fault(5.0, Some(5.7))]).figures[0];
    assert_eq!((one.depth, one.worst_per_s), (Some(1.0), Some(0.0)), "{one:?}");
    assert!(
        (one.lost.unwrap() - 700.0).abs() < 1e-6 && (one.recover_s.unwrap() - 0.7).abs() < 1e-6,
        "{one:?}"
    );
    assert!(one.describe_effect().contains("at worst 0/s, 100 % below 1,000/s"), "{}", one.describe_effect());
}

/// Checks that a stop shorter than an interval has no depth that the interval could tell.
#[test]
fn a_stop_shorter_than_an_interval_has_no_depth() {
    let whole = &assess_faults(&course(&[1000; 12], &[]), 1.0, &[fault(5.1, Some(5.8))]).figures[0];
    assert_eq!((whole.depth, whole.worst_per_s, whole.lost), (None, None, None), "{whole:?}");
    assert!(
        whole.describe_effect().contains("shorter than an interval of 1.00 s"),
        "{}",
        whole.describe_effect()
    );
    // Across an edge it is seen, and its second says how much was missing there.
    let mut across = course(&[1000; 12], &[]);
    (across[5].ok, across[6].ok) = (600, 1400);
    let one = &assess_faults(&across, 1.0, &[fault(5.6, Some(6.3))]).figures[0];
    assert_eq!((one.depth, one.worst_per_s, one.lost), (None, Some(600.0), Some(400.0)), "{one:?}");
    assert!(!one.describe_effect().contains('%'), "{}", one.describe_effect());
}

/// A second that is slow long after a fault without effect is not of it.
#[test]
fn what_comes_later_is_no_depth_of_a_fault_without_effect() {
    let mut all = course(&[1000; 20], &[]);
    all[17].ok = 100;
    let one = &assess_faults(&all, 1.0, &[fault(5.0, Some(6.0))]).figures[0];
    assert_eq!((one.depth, one.lost, one.detect_s), (Some(0.0), Some(0.0), None), "{one:?}");
}

#[test]
fn nothing_before_and_nothing_at_all() {
    let found =
        assess_faults(&course(&[1000, 0, 1000, 1000, 1000], &[(1, 4)]), 1.0, &[fault(1.0, Some(1.5))]);
    assert!(found.figures[0].note.as_ref().unwrap().contains("nothing to compare"));
    assert_eq!(found.figures[0].failed, 4);
    let found = assess_faults(&[], 1.0, &[fault(1.0, None)]);
    assert_eq!((found.figures.len(), found.failed), (1, 0));
    // The part of an interval that belongs to the warm-up is no second of the phase.
    let warm = [
        vec![IntervalOutcomes { start_s: -0.5, ok: 3, failed: 0, ..IntervalOutcomes::default() }],
        course(&[9; 9], &[]),
    ]
    .concat();
    assert_eq!(assess_faults(&warm, 1.0, &[fault(5.0, Some(6.0))]).figures[0].before_per_s, Some(9.0));
}

#[test]
fn failures_that_a_late_thread_counts_before_the_edge_are_of_the_fault() {
    let ok = [1000, 1000, 1000, 1000, 990, 0, 1000, 1000, 1000, 1000, 1000, 1000];
    let found = assess_faults(&course(&ok, &[(4, 8), (5, 900)]), 1.0, &[fault(5.01, Some(6.0))]);
    assert_eq!((found.figures[0].failed, found.failed), (908, 908));
    // Operations that fail now and then anyway have failed by themselves.
    let found = assess_faults(&course(&ok, &[(2, 1), (4, 8), (5, 900)]), 1.0, &[fault(5.01, Some(6.0))]);
    assert_eq!(found.failed, 900);
    let found = assess_faults(&course(&ok, &[(4, 8), (5, 900)]), 1.0, &[fault(5.3, Some(6.0))]);
    assert_eq!(found.failed, 900);
}

/// A second in which nothing ended is not recorded: it is empty all the same.
#[test]
fn a_second_that_is_missing_is_a_second_without_operations() {
    let mut all = course(&[1000; 12], &[]);
    all.retain(|one| one.start_s != 5.0);
    let one = &assess_faults(&all, 1.0, &[fault(5.0, Some(6.0))]).figures[0];
    assert_eq!((one.depth, one.worst_per_s, one.lost), (Some(1.0), Some(0.0), Some(1000.0)), "{one:?}");
    assert_eq!(one.recover_s, Some(1.0));
}

#[test]
fn a_delay_shows_in_response_times() {
    let of = |at: u32| if (60..80).contains(&at) { 0.02 } else { 0.001 };
    let intervals: Vec<IntervalOutcomes> = (0..120)
        .map(|at| IntervalOutcomes { start_s: f64::from(at) / 10.0, ok: 100, failed: 0, response_s: of(at) })
        .collect();
    let delay = InjectedFault { number: 1, begin_s: 6.0, end_s: Some(8.0), ..InjectedFault::default() };
    let found = assess_faults(&intervals, 0.1, &[delay]).figures.remove(0);
    assert!((found.before_us.unwrap() - 1_000.0).abs() < 1e-6, "{found:?}");
    assert!((found.worst_us.unwrap() - 20_000.0).abs() < 1e-6, "{found:?}");
    assert!(
        found.describe_effect().contains("mean response time 20.0 ms at most, 1.00 ms before"),
        "{}",
        found.describe_effect()
    );
}
