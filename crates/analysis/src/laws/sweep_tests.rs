use super::super::observe::Use;
use super::*;

fn at(users: f64, throughput: f64, response_us: f64) -> Observed {
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
        response_s: response_us / 1e6,
        client_s: 0.0,
        implied_users: Some(throughput * response_us / 1e6),
        failed: 0,
        uses: Vec::new(),
        rates: Vec::new(),
    }
}

fn lab() -> Vec<Observed> {
    [
        (1.0, 1434.695713, 688.228439),
        (2.0, 2531.434283, 781.905545),
        (3.0, 2957.157611, 1005.747646),
        (4.0, 3448.970755, 1150.679009),
        (5.0, 4278.538356, 1159.988579),
        (10.0, 4507.842419, 2203.696010),
        (20.0, 4917.027513, 4045.749951),
        (30.0, 4596.075688, 6498.848172),
        (50.0, 4467.813873, 11144.400412),
        (100.0, 4898.656736, 20307.371086),
    ]
    .map(|(users, throughput, response_us)| at(users, throughput, response_us))
    .to_vec()
}

#[test]
fn the_labs_sweep() {
    let found = analyse_sweep(&lab(), 1).unwrap();
    assert!((found.total_s - 688.2e-6).abs() < 1e-7);
    assert!((203e-6..=214e-6).contains(&found.bottleneck_s), "{}", found.bottleneck_s);
    assert!((3.2..=3.4).contains(&found.saturation), "{}", found.saturation);
    assert!(found.plateau && found.peak.is_none());
    assert!(found.peak_interval.unwrap().1.is_infinite());
    assert_eq!(found.reach, 200.0);
    // No point lies above the asymptotes by much.
    assert!(found.levels.iter().all(|level| level.throughput <= level.bound * 1.05), "{:?}", found.levels);
    assert!(found.levels.iter().all(|level| !level.above), "{:?}", found.levels);
    // Balanced job bounds lie within the asymptotes, and meet where there is one user.
    for level in &found.levels {
        let (least, most) = level.balanced;
        assert!(least <= most * (1.0 + 1e-9) && most <= level.bound * (1.0 + 1e-9), "{level:?}");
    }
    let one = found.levels[0].balanced;
    assert!((one.0 / one.1 - 1.0).abs() < 1e-9 && (one.0 * found.total_s - 1.0).abs() < 1e-9, "{one:?}");
    let (low, high) = found.maximum_interval.unwrap();
    assert!(
        low < 1.0 / found.bottleneck_s && 1.0 / found.bottleneck_s < high && high / low < 1.5,
        "{low} {high}"
    );
    let (low, high) = found.saturation_interval.unwrap();
    assert!(low < found.saturation && found.saturation < high && high / low < 2.0, "{low} {high}");
    let best = &found.fits[0];
    assert_eq!(best.intervals.len(), best.parameters.len());
    for ((name, value), (low, high)) in best.parameters.iter().zip(&best.intervals) {
        assert!(low <= value && value <= high, "{name} {value}: {low} to {high}");
    }
    let errors = [-1.26, -1.03, -0.86, -0.78, -0.74, -0.66, -0.53, -0.44, -0.42, -0.52];
    for (level, error) in found.levels.iter().zip(errors) {
        assert!((level.little.unwrap() * 100.0 - error).abs() < 0.006, "{level:?}");
    }
}

#[test]
fn a_peak_is_what_the_bottleneck_can_do() {
    // Retrograde beyond 16 users: the mean of the fall is no bound.
    let law = |users: f64| 1_000.0 * users / (1.0 + 0.02 * (users - 1.0) + 4e-3 * users * (users - 1.0));
    let mut runs = Vec::new();
    for users in [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0, 64.0, 128.0] {
        for noise in [0.995, 1.0, 1.005] {
            let x = law(users) * noise;
            runs.push(at(users, x, users / x * 1e6));
        }
    }
    let found = analyse_sweep(&runs, 1).unwrap();
    assert!(found.peak.is_some(), "{:?}", found.fits);
    assert!((found.bottleneck_s * found.best.0 - 1.0).abs() < 1e-9, "{found:?}");
    assert!(found.levels.iter().all(|level| level.throughput <= level.bound * 1.001 && !level.above));
    let (low, high) = found.maximum_interval.unwrap();
    assert!(low <= found.best.0 && found.best.0 <= high, "{low} {high}");
}

#[test]
fn what_lies_above_the_bound_is_marked() {
    // A group commit: more users make an operation cheaper, so that the demand of one user alone bounds nothing.
    let levels = [(2.0, 1_000.0), (3.0, 1_580.0), (4.0, 2_600.0)];
    let mut runs = Vec::new();
    for (users, x) in levels {
        for noise in [0.999, 1.0, 1.001] {
            runs.push(Observed { response_s: 1.9e-3, ..at(users, x * noise, 0.0) });
        }
    }
    let found = analyse_sweep(&runs, 1).unwrap();
    let above: Vec<bool> = found.levels.iter().map(|level| level.above).collect();
    assert_eq!(above, [false, false, true], "{:?}", found.levels);
}

#[test]
fn demands_come_from_the_slope_and_predict_other_machines() {
    let runs: Vec<Observed> = [(1.0, 1_000.0), (2.0, 1_900.0), (4.0, 3_000.0), (8.0, 3_300.0)]
        .map(|(users, x)| Observed {
            uses: vec![
                Use { name: "server CPU".into(), busy: 0.05 + x * 300e-6, servers: Some(1.0), grows: false },
                Use { name: "client CPU".into(), busy: x * 100e-6, servers: Some(2.0), grows: false },
            ],
            rates: vec![("database commands".into(), 2.0 * x)],
            ..at(users, x, users / x * 1e6)
        })
        .to_vec();
    let found = analyse_sweep(&runs, 1).unwrap();
    let server = found.demands.iter().find(|demand| demand.name == "server CPU").unwrap();
    assert!((server.demand_s - 300e-6).abs() < 1e-9 && (server.background - 0.05).abs() < 1e-9, "{server:?}");
    assert!(server.utilisation.unwrap() > 0.99);
    assert_eq!((found.visits[0].visits, found.visits[0].variation), (2.0, 0.0));
    let limits: Vec<(&str, f64, &str)> =
        found.what_if.iter().map(|w| (w.change.as_str(), w.limit.round(), w.bottleneck.as_str())).collect();
    assert_eq!(limits[0], ("as it is", 3333.0, "server CPU"));
    assert!(limits.contains(&("twice the server CPU", 6667.0, "server CPU")), "{limits:?}");
    assert!(limits.contains(&("twice the client CPU", 3333.0, "server CPU")), "{limits:?}");
}

#[test]
fn too_little_is_no_sweep() {
    assert!(analyse_sweep(&lab()[..1], 1).is_none());
    let mixed = [at(1.0, 10.0, 1e5), Observed { think_s: 1.0, ..at(2.0, 20.0, 1e5) }];
    assert!(analyse_sweep(&mixed, 1).is_none());
    assert!(analyse_sweep(&[], 1).is_none());
    let two = analyse_sweep(&[at(1.0, 1_000.0, 1_000.0), at(2.0, 2_000.0, 1_000.0)], 1).unwrap();
    assert!(!two.plateau && two.fits.is_empty());
}

fn ladder(levels: &[(f64, f64)]) -> Sweep {
    let runs: Vec<Observed> = levels.iter().map(|(users, x)| at(*users, *x, users / x * 1e6)).collect();
    analyse_sweep(&runs, 1).unwrap()
}

/// Levels that contradict a plateau: the best one is the maximum, and the fall is said.
#[test]
fn a_fall_is_no_plateau() {
    let five = ladder(&[(1.0, 100.0), (4.0, 380.0), (16.0, 892.0), (64.0, 601.0), (128.0, 302.0)]);
    assert_eq!((five.maximum, five.best), (Maximum::Fall(128.0, 302.0), (892.0, 16.0)));
    // A measured throughput is no breach of a bound that is the mean of a fall.
    assert!(
        (five.bottleneck_s * 892.0 - 1.0).abs() < 1e-9 && five.levels.iter().all(|level| !level.above),
        "{five:?}"
    );
    let real = ladder(&[
        (1.0, 210.0),
        (2.0, 395.0),
        (4.0, 640.0),
        (8.0, 850.0),
        (16.0, 930.0),
        (32.0, 947.0),
        (64.0, 720.0),
        (128.0, 587.0),
    ]);
    assert!(real.best == (947.0, 32.0) && real.maximum != Maximum::Plateau, "{:?}", real.maximum);
    assert!(matches!(real.maximum, Maximum::Fall(128.0, _) | Maximum::Peak), "{:?}", real.maximum);
    assert_eq!(analyse_sweep(&lab(), 1).unwrap().maximum, Maximum::Plateau);
    assert_eq!(ladder(&[(1.0, 100.0), (2.0, 198.0), (4.0, 390.0)]).maximum, Maximum::Growing);
}

#[test]
fn runs_that_differ_too_much_say_nothing_of_the_maximum() {
    let mut runs = Vec::new();
    for (users, x) in [(1.0, 1_000.0), (4.0, 3_600.0), (16.0, 7_000.0), (64.0, 7_100.0)] {
        for factor in [0.85, 1.15] {
            runs.push(at(users, x * factor, users / (x * factor) * 1e6));
        }
    }
    // Two runs that differ by 30 % have an interval of ±190 %.
    let found = analyse_sweep(&runs, 1).unwrap();
    assert!(matches!(found.maximum, Maximum::Unsure(share) if share > 1.0), "{:?}", found.maximum);
}

/// Runs that do not differ at all have intervals without width: levels that agree but for a trifle are a plateau all the same.
#[test]
fn a_plateau_without_noise_is_one() {
    let mut runs = Vec::new();
    for (at_level, users) in [1.0, 2.0, 4.0, 6.0, 8.0, 16.0, 32.0, 64.0].into_iter().enumerate() {
        let x = (1_000.0f64 * users).min(4_000.0) * (1.0 + 1e-6 * at_level as f64);
        runs.extend((0..3).map(|_| at(users, x, users / x * 1e6)));
    }
    let found = analyse_sweep(&runs, 1).unwrap();
    assert_eq!(found.maximum, Maximum::Plateau, "{found:?}");
}

/// Normal noise of deviation 1.
fn normal(random: &mut dyno_types::rng::Stream) -> f64 {
    (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0
}

/// Three runs a level: the interval of the maximum holds the true one about as often as it says, and that of the crossing, too.
#[test]
fn intervals_of_few_runs_cover_the_truth() {
    let mut random = dyno_types::rng::Stream::new(21, 0, dyno_types::rng::Purpose::Choice);
    // One operation alone takes 4 ms, the bottleneck 1 ms of it.
    let law = |users: f64| (250.0 * users).min(1_000.0);
    let (mut maximum, mut crossing) = (0, 0);
    for _ in 0..400 {
        let mut runs = Vec::new();
        for users in [1.0, 2.0, 16.0, 32.0, 64.0] {
            for _ in 0..3 {
                let x = law(users) * (1.0 + 0.03 * normal(&mut random));
                runs.push(at(users, x, users / x * 1e6));
            }
        }
        let found = analyse_sweep(&runs, 1).unwrap();
        let holds = |interval: Option<(f64, f64)>, truth: f64| {
            interval.is_some_and(|(a, b)| a <= truth && truth <= b)
        };
        maximum += u32::from(holds(found.maximum_interval, 1_000.0));
        crossing += u32::from(holds(found.saturation_interval, 4.0));
    }
    crate::series::synthetic::told(&format!(
        "| maximum, three runs a level | {:.1} % |",
        f64::from(maximum) / 4.0
    ));
    crate::series::synthetic::told(&format!(
        "| N*, three runs a level | {:.1} % |",
        f64::from(crossing) / 4.0
    ));
    assert!((372..=390).contains(&maximum), "{maximum} of 400");
    assert!((364..=396).contains(&crossing), "{crossing} of 400");
}

/// A peak of 926/s with an interval from 893 to 909 was none.
#[test]
fn the_interval_of_a_peak_holds_the_peak() {
    let law = |users: f64| 60.0 * users / (1.0 + 0.02 * (users - 1.0) + 8e-4 * users * (users - 1.0));
    for seed in 0..10 {
        let mut random = dyno_types::rng::Stream::new(seed, 0, dyno_types::rng::Purpose::Choice);
        let mut runs = Vec::new();
        for users in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0] {
            for _ in 0..3 {
                let x = law(users) * (1.0 + 0.03 * normal(&mut random));
                runs.push(at(users, x, users / x * 1e6));
            }
        }
        let found = analyse_sweep(&runs, 1).unwrap();
        let (_, peak) = found.peak.unwrap();
        let (low, high) = found.maximum_interval.unwrap();
        assert!(low <= peak && peak <= high && high / low < 1.2, "{peak}: {low} to {high}");
    }
}
