use super::*;

fn at(rate: f64, done: f64, due_s: Option<f64>) -> Observed {
    Observed {
        planned_s: None,
        unit: "operations",
        users: None,
        connections: None,
        think_s: 0.0,
        offered: Some(rate),
        rate: Some(rate),
        grows: false,
        invalid: false,
        even: false,
        due_s,
        seconds: 10.0,
        flow: (0, 0),
        throughput: done,
        response_s: 0.001,
        client_s: 0.0,
        implied_users: None,
        failed: 0,
        uses: Vec::new(),
        rates: Vec::new(),
    }
}

fn fitted() -> OpenFit {
    OpenFit {
        service_s: 0.002,
        servers: 1,
        arrivals: 1.0,
        services: 1.0,
        capacity: 500.0,
        interval: (490.0, 510.0),
        worst: (100.0, 0.15),
        error: 0.0,
        utilisation: 0.9,
    }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 1e-6, "{found} instead of {expected}");
}

#[test]
fn a_rate_is_kept_where_nearly_all_is_done_and_no_queue_grows() {
    let runs = [
        at(100.0, 98.0, Some(0.1)),
        Observed { grows: true, ..at(200.0, 198.0, Some(0.2)) },
        Observed { offered: Some(202.0), ..at(200.0, 202.0, Some(0.4)) },
        at(300.0, 290.0, None),
        Observed { grows: true, ..at(400.0, 400.0, Some(1.0)) },
        Observed { rate: None, ..at(500.0, 500.0, Some(1.0)) },
        Observed { offered: None, ..at(600.0, 600.0, Some(1.0)) },
    ];
    let found = analyse_rates(&runs).unwrap();
    let told: Vec<_> =
        found.levels.iter().map(|one| (one.rate, one.runs, one.grows, one.is_kept())).collect();
    // Of two runs one alone that grows is not most; 98 % are nearly all, 97 % are not.
    let expected =
        [(100.0, 1, false, true), (200.0, 2, false, true), (300.0, 1, false, false), (400.0, 1, true, false)];
    assert_eq!(told, expected);
    let two = &found.levels[1];
    assert_eq!(
        (two.throughput, two.response_s.map(|s| (s * 1e6).round()), two.model_s),
        (200.0, Some(3e5), None)
    );
    near(two.ratio, 400.0 / 402.0);
    near(two.half_width.unwrap(), 12.706_205 * 2.0);
    assert_eq!((found.levels[2].response_s, found.levels[2].half_width), (None, None));
    assert_eq!((found.kept, found.missed, found.disturbed), (Some(200.0), Some((300.0, 290.0)), vec![]));
    assert_eq!(found.why.as_deref(), Some("2 rates were kept: a model of response times takes 4"));
    assert!(analyse_rates(&runs[..1]).is_none() && analyse_rates(&[]).is_none());
    assert_eq!(analyse_rates(&runs[..2]).map(|found| found.levels.len()), Some(2));
    // Rates below the greatest that was kept were disturbed; beyond it the least is told.
    let runs =
        [(100.0, 50.0), (200.0, 200.0), (300.0, 250.0), (400.0, 250.0)].map(|(rate, x)| at(rate, x, None));
    let found = analyse_rates(&runs).unwrap();
    assert_eq!((found.kept, found.missed), (Some(200.0), Some((300.0, 250.0))));
    assert_eq!(found.disturbed, [(100.0, 50.0)]);
    assert_eq!([100.0, 200.0, 250.0].map(|rate| found.is_rate_kept(rate)), [false, true, false]);
    let none = analyse_rates(&runs.map(|run| Observed { throughput: 1.0, ..run })).unwrap();
    assert_eq!((none.kept, none.missed, none.disturbed), (None, Some((100.0, 1.0)), vec![]));
}

#[test]
fn a_station_is_contradicted_by_what_lies_beyond_its_interval() {
    let fit = fitted();
    // 490 by 0.98 is 480.2, 510 by 0.98 is 520.4.
    let contradicted = [480.0, 480.3, 520.0, 521.0].map(|done| fit.is_contradicted_by(done));
    assert_eq!(contradicted, [true, false, false, true]);
    // Just these are within.
    let exact = OpenFit { interval: (490.0, 521.0 * KEPT), ..fit.clone() };
    assert!(!exact.is_contradicted_by(490.0 * KEPT) && !exact.is_contradicted_by(521.0));
    assert_eq!(
        (fit.kendall_notation(), OpenFit { arrivals: 0.0, servers: 3, ..fit.clone() }.kendall_notation()),
        ("M/M/1".into(), "D/M/3".into())
    );
    // 2 ms at half of the capacity become 4 ms; of even arrivals 3 ms. From the capacity on there is no time.
    near(fit.response_s(250.0).unwrap(), 0.004);
    near(OpenFit { arrivals: 0.0, ..fit.clone() }.response_s(250.0).unwrap(), 0.003);
    assert_eq!(fit.response_s(500.0), None);
    let doubts = |worst, missed| {
        let fit = Some(OpenFit { worst, ..fitted() });
        Rates { levels: Vec::new(), kept: None, missed, disturbed: Vec::new(), fit, why: None }
            .describe_doubts()
    };
    assert_eq!(doubts((100.0, 0.15), Some((600.0, 500.0))), Vec::<String>::new());
    assert_eq!(doubts((100.0, 0.15), None), Vec::<String>::new());
    let words = doubts((100.0, 0.2), Some((600.0, 300.0)));
    assert_eq!(
        words,
        [
            "the station misses the time at 100/s by 20 %: trust the times, not the station",
            "of 600/s 300/s are done, which contradicts that capacity: something else limits the server"
        ]
    );
}

#[test]
fn the_least_of_a_function_and_the_error_of_a_station() {
    near(least(0.0, 10.0, |x| (x - 3.0).powi(2)), 3.0);
    assert!(least(0.0, 10.0, |x| x) < 1e-6);
    near(least(2.0, 10.0, |x| -x), 10.0);
    // Times of e and 1 / e of the model's: a root mean square of 1.
    let e = std::f64::consts::E;
    near(error(&[(250.0, 0.004 * e), (400.0, 0.010 / e)], 0.002, 1, 1.0), 1.0);
    near(error(&[(250.0, 0.003 * e * e), (250.0, 0.003)], 0.002, 1, 0.5), 2f64.sqrt());
    // One server of 2 ms explains its own times best of up to two.
    let own = [100.0, 250.0, 400.0].map(|rate| (rate, 0.002 / (1.0 - rate * 0.002)));
    let (servers, service, off) = super::station(&own, 1.0, 1..=2);
    assert_eq!(servers, 1);
    near(service, 0.002);
    assert!(off < 1e-6, "{off}");
}

#[test]
fn a_model_is_refused_with_its_reason() {
    let level = |rate: f64, response_s: Option<f64>| RateLevel {
        rate,
        runs: 1,
        throughput: rate,
        half_width: None,
        ratio: 1.0,
        grows: false,
        response_s,
        model_s: None,
    };
    let of = |times: [Option<f64>; 4]| {
        let all: Vec<RateLevel> =
            [100.0, 200.0, 300.0, 400.0].into_iter().zip(times).map(|(rate, s)| level(rate, s)).collect();
        fit(&all.iter().collect::<Vec<_>>(), 1.0)
    };
    let timed = |s: [f64; 4]| of(s.map(Some));
    let unknown = of([Some(0.1), Some(0.1), Some(0.1), None]).unwrap_err().to_string();
    assert!(unknown.starts_with("when operations were due was not recorded"), "{unknown}");
    let flat = timed([0.001; 4]).unwrap_err().to_string();
    assert!(flat.contains("try higher rates"), "{flat}");
    let odd = timed([0.1, 0.001, 0.1, 0.001]).unwrap_err().to_string();
    assert!(odd.starts_with("no station with one queue explains"), "{odd}");
    // Of its own times: one server of 2 ms, used to 80 % at 400/s.
    let found = timed([100.0, 200.0, 300.0, 400.0].map(|rate| 0.002 / (1.0 - rate * 0.002))).unwrap();
    assert_eq!((found.servers, found.arrivals), (1, 1.0));
    for (found, expected) in [
        (found.capacity, 500.0),
        (found.interval.0, 500.0),
        (found.interval.1, 500.0),
        (found.service_s, 0.002),
        (found.utilisation, 0.8),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-4, "{found} instead of {expected}");
    }
    assert!(found.worst.1 < 1e-4 && found.error < 1e-4, "{found:?}");
    // The time at 200/s is 10 % longer than any station's: that rate is told as the worst.
    let off = [(100.0, 1.0), (200.0, 1.1), (300.0, 1.0), (400.0, 1.0)];
    let found = timed(off.map(|(rate, by)| by * 0.002 / (1.0 - rate * 0.002))).unwrap();
    assert!(found.worst.0 == 200.0 && (0.05..0.1).contains(&found.worst.1), "{found:?}");
}

/// The interval of the capacity of a server of 2 ms, from runs at 100/s to 450/s whose times are off by these factors.
fn capacity_of(off: [&[f64]; 4]) -> (f64, f64) {
    let runs: Vec<Observed> = [100.0, 250.0, 400.0, 450.0]
        .into_iter()
        .zip(off)
        .flat_map(|(rate, off)| {
            off.iter().map(move |by| at(rate, rate, Some(by * 0.002 / (1.0 - rate * 0.002))))
        })
        .collect();
    analyse_rates(&runs).unwrap().fit.unwrap().interval
}

#[test]
fn the_capacity_is_as_sure_as_its_runs_or_its_misses() {
    let one: &[f64] = &[1.0];
    for exact in [[one; 4], [&[0.99, 1.0, 1.01], one, &[0.99, 1.01], one]] {
        let (low, high) = capacity_of(exact);
        near(low, 500.0);
        near(high, 500.0);
    }
    // Half of the interval of what lies beyond 450/s, on the logarithm. By least squares a share that a time is off by moves
    // it by a 1.1426th: the root of the sum of (50 / (500 - rate))^2.
    let half = |off: [&[f64]; 4]| {
        let (low, high) = capacity_of(off);
        (((high / 450.0 - 1.0) / (low / 450.0 - 1.0)).ln() / 2.0, low < 500.0 && 500.0 < high)
    };
    // Misses of a hundredth, one run each: t(0.975, 2) by the root of 4 / 2.
    let (found, holds) = half([&[1.01], &[0.99], &[0.99], &[1.01]]);
    let expected = 4.302_653 * 2f64.sqrt() * 0.01 / 1.142_6;
    assert!(holds && (found / expected - 1.0).abs() < 0.08, "{found} instead of {expected}");
    // Three runs each, a hundredth apart: t(0.975, 4) by a hundredth over the root of 3.
    let (found, holds) = half([&[0.99, 1.0, 1.01]; 4]);
    let expected = 2.776_445 * 0.01 / 3f64.sqrt() / 1.142_6;
    assert!(holds && (found / expected - 1.0).abs() < 0.08, "{found} instead of {expected}");
    let (found, holds) = half([&[0.97, 0.98, 0.99, 1.0, 1.0, 1.01, 1.02, 1.03]; 4]);
    // Eight runs each with a deviation of two hundredths: t(0.975, 14) over the root of 8.
    let expected = 2.144_787 * 0.02 / 8f64.sqrt() / 1.142_6;
    assert!(holds && (found / expected - 1.0).abs() < 0.03, "{found} instead of {expected}");
}

/// Four servers of 8 ms. Stations of 3, 5 and 6 servers miss their times by 0.1738, 0.1387 and 0.2499 at best.
#[test]
fn stations_that_miss_twice_as_much_and_2_percent_more_are_near() {
    let servers = 4;
    let time = |rate: f64| (rate, response(&OpenStation { rate, service: 0.008, servers }, 1.0));
    let levels = [100.0, 250.0, 400.0, 450.0].map(time);
    let fit = |error: f64| OpenFit { service_s: 0.008, servers, error, ..fitted() };
    for (error, expected) in [
        (0.0, 4..=4),
        (0.058, 4..=4),
        (0.060, 4..=5),
        (0.076, 4..=5),
        (0.078, 3..=5),
        (0.114, 3..=5),
        (0.116, 3..=6),
    ] {
        assert_eq!(plausible_servers(&levels, &fit(error)), expected, "{error}");
    }
}

#[test]
fn a_time_is_missed_by_the_factor_of_another() {
    assert_eq!([missed_by(0.01, 2.0), missed_by(0.01, 0.5), missed_by(4.0, 1.0)], [0.02, 0.005, 4.0]);
}

/// Poisson arrivals at one server: response times of M/D/1 by Pollaczek and Khinchine, `s + r s^2 / (2 (1 - r s))`.
#[test]
fn constant_service_times_have_the_capacity_of_their_station() {
    let of = |variation: f64| {
        let time = |rate: f64| 0.001 + rate * 1e-6 * (1.0 + variation) / (2.0 * (1.0 - rate * 0.001));
        let runs: Vec<Observed> = [300.0, 500.0, 700.0, 800.0, 900.0]
            .iter()
            .map(|rate| at(*rate, *rate, Some(time(*rate))))
            .collect();
        analyse_rates(&runs).unwrap().fit.unwrap()
    };
    for (variation, name) in [(0.0, "M/D/1"), (1.0, "M/M/1"), (2.0, "M/G/1")] {
        let fit = of(variation);
        assert_eq!(fit.kendall_notation(), name);
        assert!((fit.capacity / 1_000.0 - 1.0).abs() < 0.01, "{name}: {fit:?}");
    }
}
