use super::*;

/// `count` intervals of a quarter of a second, 10 successes each, as `change` changes them.
fn quarters(count: usize, change: impl Fn(usize, &mut IntervalOutcomes)) -> Vec<IntervalOutcomes> {
    let of = |at: usize| {
        let mut one = IntervalOutcomes {
            start_s: at as f64 / 4.0,
            ok: 10,
            response_s: 0.001,
            ..IntervalOutcomes::default()
        };
        change(at, &mut one);
        one
    };
    (0..count).map(of).collect()
}

fn fault(begin_s: f64, end_s: f64) -> InjectedFault {
    InjectedFault { number: 1, begin_s, end_s: Some(end_s), ..InjectedFault::default() }
}

/// Effect of a fault from 10 s to 11 s on these quarters.
fn of(change: impl Fn(usize, &mut IntervalOutcomes)) -> FaultFigures {
    assess_faults(&quarters(81, change), 0.25, &[fault(10.0, 11.0)]).figures.remove(0)
}

#[test]
fn a_fault_is_compared_with_ten_calm_seconds_before_and_needs_three() {
    let seconds = |ok: &[u64]| -> Vec<IntervalOutcomes> {
        let one = |(at, ok): (usize, &u64)| IntervalOutcomes {
            start_s: at as f64,
            ok: *ok,
            ..IntervalOutcomes::default()
        };
        ok.iter().enumerate().map(one).collect()
    };
    let long = [vec![10; 20], vec![100; 6], vec![50; 4], vec![100; 9]].concat();
    let found = assess_faults(&seconds(&long), 1.0, &[fault(30.0, 31.0)]).figures.remove(0);
    assert_eq!((found.before_per_s, found.note.unwrap().contains("nothing failed")), (Some(100.0), true));
    let short = seconds(&[7, 8, 9, 0, 9, 9, 9, 9, 9]);
    let before =
        |begin_s: f64| assess_faults(&short, 1.0, &[fault(begin_s, begin_s + 1.0)]).figures[0].before_per_s;
    assert_eq!((before(3.0), before(2.9)), (Some(8.0), None));
    // Seconds that belong to the warm-up are none of them, but for a microsecond.
    let early = |begin_s: f64| {
        let first = IntervalOutcomes { start_s: begin_s, ok: 1, ..IntervalOutcomes::default() };
        let all = [vec![first], seconds(&[7, 8, 9, 9, 9, 9, 9])].concat();
        assess_faults(&all, 1.0, &[fault(3.0, 4.0)]).figures[0].before_per_s
    };
    assert_eq!((early(-0.5), early(-5e-7), early(-1e-6)), (Some(8.0), Some(7.5), Some(7.5)));
}

#[test]
fn calm_begins_again_when_the_fault_before_is_over() {
    let ok = [1000, 1000, 1000, 1000, 1000, 0, 0, 0, 0, 950, 960, 970, 0, 950, 950, 950, 950];
    let all: Vec<IntervalOutcomes> = (0..17)
        .map(|at| IntervalOutcomes {
            start_s: f64::from(at),
            ok: ok[at as usize],
            ..IntervalOutcomes::default()
        })
        .collect();
    let both = assess_faults(&all, 1.0, &[fault(12.0, 13.0), fault(5.0, 6.0)]).figures;
    let told: Vec<_> = both.iter().map(|one| (one.begin_s, one.before_per_s, one.recover_s)).collect();
    assert_eq!(told, [(5.0, Some(1000.0), Some(4.0)), (12.0, Some(960.0), Some(1.0))]);
    // Without an effect it is over when it was undone, and never if it was not.
    let calm = |end_s: Option<f64>| {
        let first = InjectedFault { end_s, ..fault(5.0, 6.0) };
        assess_faults(&quarters(61, |_, _| ()), 0.25, &[first, fault(9.0, 10.0)])
            .figures
            .remove(1)
            .before_per_s
    };
    assert_eq!((calm(Some(7.5)), calm(Some(7.6)), calm(None)), (Some(40.0), None, None));
}

#[test]
fn what_is_usual_before_is_told_of_the_whole_ten_seconds_and_nothing_after() {
    let slow = of(|at, one| match at {
        39 => one.response_s = 0.005,
        40.. => one.response_s = 0.05,
        _ => (),
    });
    assert!((slow.before_us.unwrap() - 1_100.0).abs() < 1e-6, "{slow:?}");
    // Three parts in a row of nine tenths are usual, less is missing.
    let part = |ok: u64| of(|at, one| one.ok = if (42..45).contains(&at) { ok } else { 10 });
    let (nine, eight) = (part(9), part(8));
    assert_eq!((nine.detect_s, nine.lost, nine.worst_per_s), (None, Some(0.0), Some(37.0)));
    assert!((nine.depth.unwrap() - 3.0 / 40.0).abs() < 1e-9, "{nine:?}");
    assert_eq!((eight.detect_s, eight.lost, eight.recover_s), (Some(0.75), Some(6.0), Some(1.25)));
    // Failures as before are usual, too.
    let failed = |count: u64| {
        of(|at, one| one.failed = [2, count, 0][[10, 41].iter().position(|k| *k == at).unwrap_or(2)])
    };
    assert_eq!((failed(2).detect_s, failed(3).detect_s), (None, Some(0.5)));
}

#[test]
fn an_effect_begins_at_most_three_seconds_after_its_fault_was_undone() {
    let failed = |k: usize| of(|at, one| one.failed = u64::from(at == k) * 3);
    let detected = |k: usize| failed(k).detect_s;
    assert_eq!((detected(40), detected(56), detected(57)), (Some(0.25), Some(4.25), None));
    // Where only something failed and nothing is missing it is back at once, and nothing deep.
    let at_once = failed(40);
    assert_eq!((at_once.recover_s, at_once.worst_per_s, at_once.depth), (Some(0.0), Some(40.0), Some(0.0)));
    let missing = |k: usize| of(|at, one| one.ok = if at == k { 1 } else { 10 }).detect_s;
    assert_eq!((missing(40), missing(56), missing(57)), (Some(0.25), Some(4.25), None));
    // Waits are told up to the interval after that.
    let slow = |k: usize| of(|at, one| one.response_s = if at == k { 0.02 } else { 0.001 }).worst_us.unwrap();
    assert_eq!((slow(39), slow(40), slow(57), slow(58)), (1_000.0, 20_000.0, 20_000.0, 1_000.0));
}

#[test]
fn failures_of_a_fault_go_on_for_three_seconds_at_most() {
    // One failure in each interval from the fault on; throughput is back after one second, and it is undone then.
    let lasting = of(|at, one| {
        (one.failed, one.ok) = (u64::from(at >= 40), if (40..44).contains(&at) { 0 } else { 10 })
    });
    // From 40 to 44, to the end of the interval in which it was undone, and for three seconds of four intervals.
    assert_eq!((lasting.recover_s, lasting.failed, lasting.lost), (Some(1.0), 4 + 1 + 12, Some(40.0)));
    let paused =
        of(|at, one| (one.failed, one.ok) = (u64::from(at >= 40 && at != 47), if at == 40 { 0 } else { 10 }));
    assert_eq!((paused.recover_s, paused.failed), (Some(0.25), 7));
    // Before it is undone a pause is none, and before it has recovered neither.
    let undone =
        of(|at, one| (one.failed, one.ok) = (u64::from(at == 40 || at == 44), if at == 40 { 0 } else { 10 }));
    assert_eq!((undone.recover_s, undone.failed), (Some(0.25), 2));
    let never =
        of(|at, one| (one.failed, one.ok) = (u64::from(at == 41 || at == 80), if at >= 40 { 0 } else { 10 }));
    assert_eq!((never.recover_s, never.failed, never.lost), (None, 2, Some(400.0)));
}

#[test]
fn failures_at_an_edge_belong_to_the_first_fault_that_has_them() {
    let all = quarters(81, |at, one| one.failed = u64::from(at == 39) * 8);
    let found = assess_faults(&all, 0.25, &[fault(9.75, 9.9), fault(10.01, 11.0)]);
    assert_eq!(found.figures.iter().map(|one| one.failed).collect::<Vec<_>>(), [8, 0]);
    assert_eq!(found.failed, 8);
    let found = assess_faults(&all, 0.25, &[fault(10.01, 11.0)]);
    assert_eq!((found.figures[0].failed, found.failed), (8, 8));
    // Failures of the warm-up are none of the phase, and hide nothing.
    let warm = IntervalOutcomes { start_s: -0.25, failed: 3, ..IntervalOutcomes::default() };
    let found = assess_faults(&[vec![warm], all].concat(), 0.25, &[fault(10.01, 11.0)]);
    assert_eq!((found.figures[0].failed, found.failed), (8, 8));
    // The fault stands beside its effect.
    let told =
        InjectedFault { number: 3, fault: "pause".into(), means: "SIGSTOP".into(), ..fault(10.01, 11.0) };
    let one = &assess_faults(&[], 0.25, &[told]).figures[0];
    let own = (one.number, one.fault.as_str(), one.means.as_str(), one.begin_s, one.end_s);
    assert_eq!(own, (3, "pause", "SIGSTOP", 10.01, Some(11.0)));
}

#[test]
fn the_depth_is_of_parts_as_long_as_the_fault_up_to_a_second() {
    // Nothing for half a second: half of a second, all of what lasts as long as that.
    let stopped = |end_s: f64| {
        let all = quarters(81, |at, one| one.ok = if (40..42).contains(&at) { 0 } else { 10 });
        let one = assess_faults(&all, 0.25, &[fault(10.0, end_s)]).figures.remove(0);
        (one.worst_per_s, one.depth)
    };
    assert_eq!(stopped(10.5), (Some(0.0), Some(1.0)));
    let (worst, depth) = stopped(10.75);
    assert_eq!((worst.map(f64::round), depth.map(|depth| (depth * 3.0).round())), (Some(13.0), Some(2.0)));
    assert_eq!((stopped(11.0), stopped(12.0)), ((Some(20.0), Some(0.5)), (Some(20.0), Some(0.5))));
    // Shorter than an interval it is no share of anything.
    assert_eq!(stopped(10.2), (Some(0.0), None));
    let hidden =
        assess_faults(&quarters(81, |_, _| ()), 0.25, &[fault(10.0, 10.2)]).figures.remove(0).note.unwrap();
    assert!(hidden.starts_with("shorter than an interval of 250 ms"), "{hidden}");
    // Tenths of a second are no whole numbers, and three of them are three.
    let tenths: Vec<IntervalOutcomes> = (0..121)
        .map(|at| IntervalOutcomes {
            start_s: f64::from(at) / 10.0,
            ok: if (50..53).contains(&at) { 0 } else { 10 },
            ..IntervalOutcomes::default()
        })
        .collect();
    let one = assess_faults(&tenths, 0.1, &[fault(5.0, 5.3)]).figures.remove(0);
    assert_eq!((one.worst_per_s, one.depth, one.lost), (Some(0.0), Some(1.0), Some(30.0)));
    // Where nothing was done before, nothing is less.
    let idle = quarters(81, |_, one| one.ok = 0);
    let one = assess_faults(&idle, 0.25, &[fault(10.0, 11.0)]).figures.remove(0);
    assert_eq!(
        (one.before_per_s, one.worst_per_s, one.depth, one.lost),
        (Some(0.0), Some(0.0), None, Some(0.0))
    );
}
