use super::super::demand::{coefficient_of_variation, fit_line};
use super::super::observe::Use;
use super::*;

fn at(users: f64, throughput: f64, response_s: f64) -> Observed {
    Observed {
        planned_s: None,
        unit: "operations",
        users: Some(users),
        connections: Some(users),
        think_s: 0.0,
        offered: None,
        rate: None,
        grows: false,
        invalid: false,
        even: false,
        due_s: None,
        seconds: 30.0,
        flow: (1, 1),
        throughput,
        response_s,
        client_s: 0.0,
        implied_users: None,
        failed: 0,
        uses: Vec::new(),
        rates: Vec::new(),
    }
}

fn level(users: f64, throughput: f64, half_width: Option<f64>) -> UserLevel {
    UserLevel {
        users,
        runs: 1,
        throughput,
        response_s: 0.0,
        little: None,
        half_width,
        bound: 0.0,
        balanced: (0.0, 0.0),
        above: false,
        model: None,
    }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 1e-6, "{found} instead of {expected}");
}

#[test]
fn the_maximum_is_what_the_levels_and_their_intervals_allow() {
    let of = |best: (f64, Option<f64>),
              beyond: &[(f64, Option<f64>)],
              (limit, peak, plateau): (f64, bool, bool)| {
        let mut all = vec![level(1.0, 10.0, Some(0.0)), level(2.0, best.0, best.1)];
        all.extend(beyond.iter().enumerate().map(|(at, (x, half))| level(3.0 + at as f64, *x, *half)));
        maximum(&all, limit, peak, plateau)
    };
    let (sure, five) = ((100.0, Some(0.0)), (100.0, Some(5.0)));
    let free = (200.0, false, true);
    // Runs of the best level that differ by more than a quarter say nothing.
    assert_eq!(of((100.0, Some(25.0)), &[], free), Maximum::Plateau);
    assert_eq!(of((100.0, Some(26.0)), &[], free), Maximum::Unsure(0.26));
    // A fall is beyond both intervals and by more than a twentieth; the lowest level is told.
    assert_eq!(of(five, &[(80.0, Some(5.0)), (85.0, Some(5.0))], free), Maximum::Fall(3.0, 80.0));
    for low in [(90.0, Some(5.0)), (93.0, Some(5.0)), (91.0, None)] {
        assert_eq!(of(five, &[low], free), Maximum::Plateau, "{low:?}");
    }
    assert_eq!(of((100.0, None), &[(89.0, None)], free), Maximum::Fall(3.0, 89.0));
    assert_eq!(of(sure, &[(95.0, Some(0.0))], free), Maximum::Plateau);
    assert_eq!(of(sure, &[(94.0, Some(0.0))], free), Maximum::Fall(3.0, 94.0));
    // A peak holds unless the best level lies above it for certain.
    let low = [(50.0, Some(0.0))];
    assert_eq!(of(five, &low, (95.0, true, true)), Maximum::Peak);
    assert_eq!(of(five, &low, (94.0, true, true)), Maximum::Fall(3.0, 50.0));
    // The best is the last: it still grows, unless the law and a plateau say it does not.
    assert_eq!(of(sure, &[], (200.0, false, false)), Maximum::Growing);
    assert_eq!(of(sure, &[], (99.0, false, true)), Maximum::Growing);
    assert_eq!(of(sure, &[], (100.0, false, true)), Maximum::Plateau);
    // It is not the last, and nothing falls.
    let same = [(99.0, Some(0.0))];
    assert_eq!(of(sure, &same, (99.0, false, true)), Maximum::Above);
    assert_eq!(
        (of(sure, &same, free), of(sure, &same, (200.0, false, false))),
        (Maximum::Plateau, Maximum::Growing)
    );
    assert_eq!(maximum(&[], 1.0, false, true), Maximum::Growing);
}

#[test]
fn a_line_has_no_intercept_and_no_slope_below_nothing() {
    for (points, expected) in [
        (&[(1.0, 3.0), (2.0, 5.0), (3.0, 7.0)][..], (1.0, 2.0)),
        (&[(1.0, 2.0), (2.0, 4.0)], (0.0, 2.0)),
        (&[(1.0, 5.0), (2.0, 5.0)], (5.0, 0.0)),
        // Through the origin by least squares.
        (&[(1.0, 1.0), (2.0, 4.0)], (0.0, 1.8)),
        (&[(1.0, 5.0), (2.0, 3.0)], (0.0, 2.2)),
        (&[(2.0, 3.0), (2.0, 5.0)], (0.0, 2.0)),
        (&[(0.0, 1.0), (0.0, 2.0)], (0.0, 0.0)),
    ] {
        let (intercept, slope) = fit_line(points);
        assert!((intercept - expected.0).abs() < 1e-12 && (slope - expected.1).abs() < 1e-12, "{points:?}");
    }
    near(coefficient_of_variation(&[9.0, 11.0]), 0.02f64.sqrt());
    near(coefficient_of_variation(&[-9.0, -11.0]), 0.02f64.sqrt());
    assert_eq!(
        (coefficient_of_variation(&[9.0]), coefficient_of_variation(&[-1.0, 1.0]), mean([0.0; 0])),
        (0.0, 0.0, 0.0)
    );
}

#[test]
fn levels_are_means_over_their_runs() {
    let runs = [
        Observed { implied_users: Some(3.9), ..at(4.0, 110.0, 0.03) },
        at(1.0, 50.0, 0.02),
        Observed { implied_users: Some(4.5), ..at(4.0, 90.0, 0.05) },
        Observed { users: None, ..at(0.0, 1.0, 1.0) },
    ];
    let all: Vec<&Observed> = runs.iter().collect();
    let [one, four] = &levels(&all)[..] else { panic!("two numbers of users") };
    assert_eq!((one.users, one.runs, one.throughput, one.half_width, one.little), (1.0, 1, 50.0, None, None));
    assert_eq!((four.users, four.runs, four.throughput), (4.0, 2, 100.0));
    near(four.response_s, 0.04);
    // t(0.975, 1) by the deviation, 200 in all, over the root of 2.
    near(four.half_width.unwrap(), 127.062_05);
    near(four.little.unwrap(), 0.05);
}

#[test]
fn what_was_meant_to_last_four_times_as_long_as_most_is_no_point_of_a_sweep() {
    let long = |planned: &[Option<f64>]| {
        let runs: Vec<[Observed; 2]> = planned
            .iter()
            .map(|planned_s| [at(1.0, 1.0, 1.0), Observed { planned_s: *planned_s, ..at(1.0, 1.0, 1.0) }])
            .collect();
        let groups: Vec<ObservedGroup<'_>> =
            runs.iter().map(|runs| ObservedGroup { levels: &[], runs }).collect();
        for_their_course(&groups)
    };
    let s = Some::<f64>;
    assert_eq!(long(&[s(10.0), s(39.0), s(10.0), s(40.0)]), [false, false, false, true]);
    assert_eq!(
        long(&[s(2.0), s(2.0), s(10.0), s(10.0), s(10.0), s(40.0)]),
        [false, false, false, false, false, true]
    );
    // Of two the shorter is usual; what says no length has none.
    assert_eq!(
        (long(&[s(1.0), None, s(8.0)]), long(&[None, None])),
        (vec![false, false, true], vec![false, false])
    );
}

#[test]
fn a_factor_varies_users_where_all_other_factors_stay() {
    let levels = |engine: &str, users: &str| {
        vec![("engine".to_owned(), engine.to_owned()), ("users".to_owned(), users.to_owned())]
    };
    let of = |all: &[(&str, &str, f64)]| {
        let all: Vec<_> = all
            .iter()
            .map(|(engine, name, users)| {
                (levels(engine, name), [Observed { rate: Some(users * 10.0), ..at(*users, 1.0, 1.0) }])
            })
            .collect();
        let groups: Vec<ObservedGroup<'_>> =
            all.iter().map(|(levels, runs)| ObservedGroup { levels, runs }).collect();
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        (owned(factors_of_users(&groups)), owned(factors_of_rates(&groups)))
    };
    let users = vec!["users".to_owned()];
    let sweep = [("a", "4", 4.0), ("a", "8", 8.0), ("b", "4", 4.0)];
    assert_eq!(of(&sweep), (users.clone(), users));
    // Other users only with another engine, or in one and the same level: no factor is behind them.
    assert_eq!(of(&[("a", "4", 4.0), ("b", "8", 8.0)]), (vec![], vec![]));
    assert_eq!(of(&[("a", "4", 4.0), ("a", "4", 8.0)]), (vec![], vec![]));
    assert_eq!(of(&[("a", "4", 4.0), ("a", "8", 4.0)]), (vec![], vec![]));
}

/// What each connection has under way is no user: a pipeline that is varied besides makes sweeps of its own.
#[test]
fn a_pipeline_does_not_vary_users() {
    let of = |connections: f64, pipeline: f64| {
        [Observed { connections: Some(connections), ..at(connections * pipeline, 1.0, 1.0) }]
    };
    let levels = |users: &str, pipeline: &str| {
        vec![("users".to_owned(), users.to_owned()), ("pipeline".to_owned(), pipeline.to_owned())]
    };
    let all = [
        (levels("1", "1"), of(1.0, 1.0)),
        (levels("8", "1"), of(8.0, 1.0)),
        (levels("1", "4"), of(1.0, 4.0)),
        (levels("8", "4"), of(8.0, 4.0)),
    ];
    let groups: Vec<ObservedGroup<'_>> =
        all.iter().map(|(levels, runs)| ObservedGroup { levels, runs }).collect();
    assert_eq!(factors_of_users(&groups), ["users"]);
}

fn used(name: &str, busy: f64, servers: Option<f64>) -> Use {
    Use { name: name.into(), busy, servers, grows: name == "host CPU" }
}

#[test]
fn demands_and_visits_are_of_the_runs_that_tell_of_them() {
    let runs: Vec<Observed> = [100.0, 200.0, 300.0]
        .map(|x| Observed {
            uses: vec![used("host CPU", 0.5 + x * 0.01, Some(4.0)), used("locks", x * 0.02, None)],
            rates: vec![("reads".into(), if x == 100.0 { 300.0 } else { x })],
            ..at(x / 100.0, x, 0.01)
        })
        .to_vec();
    let with = |extra: Use| {
        let mut all = runs.clone();
        all[0].uses.push(extra);
        all
    };
    let all = with(used("disk vda", 0.9, Some(1.0)));
    let all: Vec<&Observed> = all.iter().collect();
    // One run tells nothing of a disk's demand.
    let [host, locks] = &estimate_demands(&all)[..] else { panic!("{:?}", estimate_demands(&all)) };
    assert_eq!((host.name.as_str(), host.servers, host.grows), ("host CPU", Some(4.0), true));
    near(host.demand_s, 0.01);
    near(host.background, 0.5);
    near(host.utilisation.unwrap(), 3.5 / 4.0);
    // 0.015, 0.0125 and 0.011667 a run.
    near(host.variation, 0.132_872_3);
    assert_eq!((locks.name.as_str(), locks.servers, locks.utilisation), ("locks", None, None));
    near(locks.demand_s, 0.02);
    assert!(locks.background.abs() < 1e-9 && locks.variation < 1e-9, "{locks:?}");
    // 3, 1 and 1 for each operation.
    let [reads] = &estimate_visits(&all)[..] else { panic!("one activity") };
    near(reads.visits, 5.0 / 3.0);
    near(reads.variation, f64::sqrt(4.0 / 3.0) / (5.0 / 3.0));
    // Without servers there is no utilisation, and the most used stands first.
    let more: Vec<Observed> = [100.0, 200.0]
        .map(|x| Observed {
            uses: vec![
                used("a", x * 0.001, Some(1.0)),
                used("b", x * 0.004, Some(1.0)),
                used("c", x, Some(0.0)),
            ],
            ..at(1.0, x, 0.01)
        })
        .to_vec();
    let told: Vec<_> = estimate_demands(&more.iter().collect::<Vec<_>>())
        .into_iter()
        .map(|one| (one.name, one.utilisation))
        .collect();
    assert_eq!(told, [("b".into(), Some(0.8)), ("a".into(), Some(0.2)), ("c".into(), None)]);
}

#[test]
fn asymptotes_cross_where_they_should_and_bounds_meet_them() {
    let means = [(1.0, 100.0, 0.01), (4.0, 380.0, 0.0105), (32.0, 820.0, 0.039), (64.0, 700.0, 0.09)];
    // Well beyond the crossing of (0.01 + 0.002) 820 = 9.84 users lie two levels, with a mean of 760.
    let flat = Asymptotes::from_levels(&means, 0.002, false);
    assert!(flat.plateau);
    near(flat.total_s, 0.01);
    near(1.0 / flat.bottleneck_s, 760.0);
    near(flat.saturation_users(), 0.012 * 760.0);
    // Of a fall the best level is what the bottleneck can do.
    let falling = Asymptotes::from_levels(&means, 0.002, true);
    near(1.0 / falling.bottleneck_s, 820.0);
    // Exactly three times the crossing is well beyond it: 1 / 128 by 1,024 is 8 users; a little less is not.
    let at_edge = |users: f64, think_s: f64| {
        Asymptotes::from_levels(&[(1.0, 125.0, 0.007_812_5), (users, 1_024.0, 0.05)], think_s, false).plateau
    };
    assert_eq!((at_edge(24.0, 0.0), at_edge(23.9, 0.0)), (true, false));
    // Users who think as long as that are twice as many.
    assert_eq!((at_edge(48.0, 0.007_812_5), at_edge(47.9, 0.007_812_5)), (true, false));
    for (users, bound, least, most) in BOUNDS {
        let (found, (low, high)) = flat.throughput_bounds(users);
        near(found, bound);
        near(low, least);
        near(high, most);
    }
    // A bottleneck that takes longer than the quickest operation leaves nothing of the rest.
    let odd = Asymptotes::from_levels(&[(1.0, 500.0, 0.001), (2.0, 500.0, 0.001)], 0.0, false);
    near(odd.saturation_users(), 1.0);
    near(odd.throughput_bounds(4.0).1.0, 500.0);
    let mut levels = [
        level(1.0, 1_000.0, None),
        level(1.0, 87.0, None),
        level(1.0, 88.5, None),
        level(1.0, 90.0, Some(6.0)),
    ];
    bound(&mut levels, &flat, None);
    // One user does 83.33 at most; by a hundredth more and the twentieth that one run may be off it is above.
    near(levels[0].bound, 1.0 / 0.012);
    assert_eq!(
        levels.map(|level| (level.above, level.model)),
        [true, false, true, false].map(|above| (above, None))
    );
}

/// Users, the asymptotic bound of throughput, and the balanced job bounds.
const BOUNDS: [(f64, f64, f64, f64); 4] = [
    (1.0, 83.333_333, 83.333_333, 83.333_333),
    (4.0, 333.333_333, 253.816_794, 321.728_959),
    (16.0, 760.0, 508.046_546, 760.0),
    (64.0, 760.0, 676.271_856, 760.0),
];

#[test]
fn a_short_sweep_has_its_figures() {
    let run = |users: f64, x: f64, response_s: f64, client_s: f64| Observed {
        think_s: 0.001,
        client_s,
        implied_users: Some(users * 1.01),
        ..at(users, x, response_s)
    };
    let mut runs = Vec::new();
    for (users, x, response_s, client_s) in [
        (1.0, 100.0, 0.008, 0.001),
        (2.0, 190.0, 0.009, 0.5),
        (8.0, 500.0, 0.014, 0.5),
        (64.0, 480.0, 0.13, 0.5),
    ] {
        runs.extend([0.99, 1.0, 1.01].map(|part| run(users, x * part, response_s, client_s)));
    }
    runs.push(Observed { users: None, ..at(0.0, 9_999.0, 0.0) });
    let found = analyse_sweep(&runs, 1).unwrap();
    assert_eq!((found.levels.len(), found.best, found.reach, found.plateau), (4, (500.0, 8.0), 128.0, true));
    assert_eq!((found.misfit, found.peak, found.peak_interval, found.fits.len()), (None, None, None, 0));
    // One user's 8 ms, thinking for 1 ms and 1 ms of the client's own; 64 users are beyond three times the crossing.
    near(found.total_s, 0.008);
    near(1.0 / found.bottleneck_s, 480.0);
    near(found.saturation, 0.010 * 480.0);
    near(found.levels[3].little.unwrap(), 0.01);
    assert_eq!((found.maximum, found.knees.1), (Maximum::Plateau, Some(8.0)));
    // Three runs with a deviation of a hundredth: t(0.975, 2) / root of 3 of it to either side, as far as replicates tell.
    let (low, high) = found.maximum_interval.unwrap();
    near((low * high).sqrt(), 480.0);
    let half = (high / low).ln() / 2.0;
    assert!((half / (4.302_653 * 0.01 / 3f64.sqrt()) - 1.0).abs() < 0.05, "{half}");
    let (low, high) = found.saturation_interval.unwrap();
    near((low * high).sqrt(), found.saturation);
    // The time of one user varies by 1.25 hundredths of 8 ms: both parts together have 3.816 degrees of freedom.
    let half = (high / low).ln() / 2.0;
    assert!((half / 0.023_106_95 - 1.0).abs() < 0.05, "{half}");
    // Two runs a level stand for nothing where no law says what they differ by.
    let few: Vec<Observed> = runs.chunks(3).flat_map(|level| level[..level.len().min(2)].to_vec()).collect();
    let found = analyse_sweep(&few, 1).unwrap();
    assert_eq!((found.levels[3].runs, found.maximum_interval, found.saturation_interval), (2, None, None));
    // Two levels of three runs each beyond the crossing have four degrees of freedom: t(0.975, 4) / root of 6.
    let mut two = runs.clone();
    two.extend([0.99, 1.0, 1.01].map(|part| run(128.0, 480.0 * part, 0.26, 0.5)));
    let (low, high) = analyse_sweep(&two, 1).unwrap().maximum_interval.unwrap();
    let half = (high / low).ln() / 2.0;
    assert!((half / (2.776_445 * 0.01 / 6f64.sqrt()) - 1.0).abs() < 0.05, "{half}");
    // Throughput falls: the best level is the maximum, with the interval of its runs.
    runs.retain(|run| run.users != Some(64.0));
    runs.extend([0.99, 1.0, 1.01].map(|part| run(64.0, 300.0 * part, 0.21, 0.5)));
    let found = analyse_sweep(&runs, 1).unwrap();
    assert_eq!(found.maximum, Maximum::Fall(64.0, 300.0));
    near(1.0 / found.bottleneck_s, 500.0);
    let half = 4.302_653 * 5.0 / 3f64.sqrt();
    let (low, high) = found.maximum_interval.unwrap();
    near(low, 500.0 - half);
    near(high, 500.0 + half);
    near(found.saturation, 0.010 * 500.0);
}

#[test]
fn a_plateau_is_reached_beyond_the_crossing_or_where_throughput_grows_no_more() {
    let of = |levels: &[(f64, f64)]| {
        let runs: Vec<Observed> = levels.iter().map(|(users, x)| at(*users, *x, users / x)).collect();
        let found = analyse_sweep(&runs, 1).unwrap();
        (found.plateau, found.maximum)
    };
    // Three times the crossing of 4.8 users is 14.4.
    assert_eq!(of(&[(1.0, 100.0), (64.0, 475.0), (128.0, 480.0)]), (true, Maximum::Plateau));
    assert_eq!(of(&[(1.0, 100.0), (8.0, 480.0), (14.0, 475.0)]), (true, Maximum::Plateau));
    assert_eq!(of(&[(1.0, 100.0), (8.0, 475.0), (14.0, 480.0)]), (false, Maximum::Growing));
    // One run of 1,000/s is known to a twentieth: 950 is not beyond the mean of 945.25 and its hundredth, but beyond 940's.
    assert_eq!(of(&[(1.0, 100.0), (64.0, 890.5), (128.0, 1_000.0)]), (true, Maximum::Plateau));
    assert_eq!(of(&[(1.0, 100.0), (64.0, 880.0), (128.0, 1_000.0)]), (true, Maximum::Growing));
}

#[test]
fn a_level_may_be_above_its_bound_by_twice_the_error_of_the_law() {
    let linear =
        Fitted { model: Model::Linear, parameters: vec![100.0], rmse: 3.0, worst: 0.0, r2: 1.0, aicc: None };
    let choice =
        ModelChoice { fitted: vec![linear], universal: None, chosen: None, peak: None, reach: f64::INFINITY };
    let flat = Asymptotes::from_levels(&[(1.0, 100.0, 0.01), (64.0, 760.0, 0.09)], 0.002, false);
    let mut levels = [90.0, 90.3].map(|throughput| level(1.0, throughput, None));
    bound(&mut levels, &flat, Some(&choice));
    // One user does 83.33 at most; a hundredth more is 84.17.
    assert_eq!(
        levels.map(|level| (level.above, level.model)),
        [false, true].map(|above| (above, Some(100.0)))
    );
}

#[test]
fn a_law_that_explains_every_level_misses_none() {
    let run = |users: f64| {
        let throughput = 100.0 * users / (1.0 + 0.05 * (users - 1.0));
        at(users, throughput, users / throughput)
    };
    let found = analyse_sweep(&[1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(run), 1).unwrap();
    assert!(found.misfit.is_some_and(|misfit| misfit < 1e-6), "{:?}", found.misfit);
    // The chosen law and the universal one have intervals.
    for (at, fit) in found.fits.iter().enumerate() {
        let has = at == 0 || fit.model == Model::Universal.name();
        assert_eq!(fit.intervals.len(), if has { fit.parameters.len() } else { 0 }, "{fit:?}");
    }
    assert_ne!(found.fits[0].model, Model::Universal.name());
}
