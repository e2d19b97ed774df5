use super::*;

#[test]
fn quantiles_interpolate() {
    assert_eq!(interpolate_percentile(&mut [3.0, 1.0, 2.0], 0.5), 2.0);
    assert_eq!(interpolate_percentile(&mut [1.0, 2.0], 0.25), 1.25);
    assert_eq!(interpolate_percentile(&mut [1.0, f64::INFINITY, f64::INFINITY], 0.9), f64::INFINITY);
    assert_eq!(interpolate_percentile(&mut [], 0.5), 0.0);
}

#[test]
fn a_quantile_on_a_value_is_that_value_whatever_comes_after() {
    let mut all = [f64::INFINITY, 1.0];
    assert_eq!(
        (interpolate_percentile(&mut all, 0.0), interpolate_percentile(&mut all, 1.0)),
        (1.0, f64::INFINITY)
    );
    assert_eq!(interpolate_percentile(&mut [4.0, 1.0, 3.0, 2.0], 2.0 / 3.0), 3.0);
}

#[test]
fn samples_are_drawn_anew_with_replacement_and_the_same_from_the_same_seed() {
    let drawn = resample_pairs((3, 5), 7);
    assert_eq!(drawn.len(), REPLICATES);
    assert!(drawn.iter().all(|(one, other)| (one.len(), other.len()) == (3, 5)));
    assert!(drawn == resample_pairs((3, 5), 7) && drawn != resample_pairs((3, 5), 8));
    // Each of three is chosen about 2,000 times, each of five too, and in 2 of 9 draws of three they are all different.
    let times = |at: usize, all: &dyn Fn(usize) -> Vec<usize>| {
        (0..REPLICATES).flat_map(all).filter(|one| *one == at).count()
    };
    for at in 0..5 {
        let (one, other) = (times(at, &|n| drawn[n].0.clone()), times(at, &|n| drawn[n].1.clone()));
        assert!(
            one.abs_diff(if at < 3 { 2_000 } else { 0 }) < 200 && other.abs_diff(2_000) < 200,
            "{at}: {one} {other}"
        );
    }
    let all_different = drawn.iter().filter(|(one, _)| (0..3).all(|at| one.contains(&at))).count();
    assert!(all_different.abs_diff(REPLICATES * 2 / 9) < 100, "{all_different}");
}

#[test]
fn few_runs_widen_an_interval_by_students_quantile_and_by_what_they_hide_of_their_variance() {
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    // t(0.975) of 3, 4 and 9 degrees of freedom, times the root of n / (n - 1); the normal distribution beyond that.
    for (count, reach, tail) in [
        (4, 3.674_772_462, 1.190_307_39e-4),
        (5, 3.104_159_996, 9.541_005_52e-4),
        (10, 2.384_523_020, 8.550_639_02e-3),
    ] {
        near(Small::of_runs(count).interval_reach(0.025), reach);
        near(Small::of_runs(count).corrected_tail(0.025), tail);
    }
    // 10 points about a law of three parameters: t(0.975, 7) times the root of 10 / 7.
    let residuals = Small::of_residuals(10, 3);
    assert_eq!((residuals.shrunk, residuals.freedom), (10.0 / 7.0, 7.0));
    near(residuals.interval_reach(0.025), 2.826_266_556);
    near(residuals.corrected_tail(0.025), 2.354_702_838e-3);
    // One run, or as many parameters as points, tell nothing of the variance: the replicates as they are.
    for small in [Small::of_runs(1), Small::of_runs(0), Small::of_residuals(3, 3), Small::of_residuals(2, 3)]
    {
        assert_eq!((small.shrunk, small.freedom), (1.0, 0.0));
        near(small.interval_reach(0.025), 1.959_963_985);
        near(small.corrected_tail(0.025), 0.025);
    }
}

#[test]
fn an_interval_goes_by_the_side_with_fewer_runs() {
    let replicates = || (0..=2_000).rev().map(f64::from).collect::<Vec<f64>>();
    for runs in [(5, 10), (10, 5), (5, 5)] {
        let found = interval_of(7.0, replicates(), runs, 0.05);
        assert_eq!(found.value, 7.0);
        assert!((found.low - 2_000.0 * 9.541_005_52e-4).abs() < 1e-5, "{found:?}");
        assert!((found.high - 2_000.0 * (1.0 - 9.541_005_52e-4)).abs() < 1e-5, "{found:?}");
    }
}

/// The p-value is below 0.05 exactly where the interval does not hold 1.
#[test]
fn p_of_a_ratio_says_what_its_interval_says() {
    let mut random = Stream::new(3, 0, Purpose::Choice);
    let mut seen = [0, 0];
    for round in 0..400 {
        let counts = [(4, 4), (5, 7), (10, 10), (30, 30)][round % 4];
        let middle = 1.0 + (round % 20) as f64 * 0.01;
        let found: Vec<f64> = (0..400)
            .map(|_| middle + 0.08 * ((0..4).map(|_| random.next_unit()).sum::<f64>() - 2.0))
            .collect();
        let interval = interval_of(middle, found.clone(), counts, ALPHA);
        let p = ratio_p(&mut found.clone(), counts);
        // The other way round is the same question.
        let other = ratio_p(&mut found.iter().map(|one| 2.0 - one).collect::<Vec<_>>(), counts);
        let holds = interval.low <= 1.0 && interval.high >= 1.0;
        assert_eq!(p >= ALPHA, holds, "{counts:?} {middle}: {p} {interval:?}");
        assert_eq!(other >= ALPHA, holds, "{counts:?} {middle}: {other} {interval:?}");
        seen[usize::from(holds)] += 1;
    }
    assert!(seen[0] > 50 && seen[1] > 50, "{seen:?}");
    // Nothing but 1, and nothing but 2.
    assert_eq!((ratio_p(&mut [1.0; 9], (4, 4)), ratio_p(&mut [2.0; 9], (4, 4))), (1.0, 0.0));
    // Half of the replicates on either side: no doubt that there is none.
    let even: Vec<f64> = (0..1_001).map(|at| 0.5 + f64::from(at) / 1_000.0).collect();
    assert_eq!(ratio_p(&mut even.clone(), (10, 10)), 1.0);
}
