use super::*;
use crate::series::synthetic::told;

/// The lab's sweep of users (`lab-short.csv`).
const LAB: [(f64, f64); 10] = [
    (1.0, 1434.695713),
    (2.0, 2531.434283),
    (3.0, 2957.157611),
    (4.0, 3448.970755),
    (5.0, 4278.538356),
    (10.0, 4507.842419),
    (20.0, 4917.027513),
    (30.0, 4596.075688),
    (50.0, 4467.813873),
    (100.0, 4898.656736),
];

fn lab() -> Vec<Point> {
    LAB.map(|(users, throughput)| Point { users, throughput }).to_vec()
}

fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() < share, "{found} instead of {expected}");
}

#[test]
fn the_labs_vectors() {
    let law = fit_model(Model::Universal, &lab());
    for (found, expected) in law.parameters.iter().zip([1695.77, 0.313_546, 4.415_98e-4]) {
        near(*found, expected, 1e-3);
    }
    near(law.rmse, 264.52, 1e-4);
    near(law.r2, 0.943_122, 1e-5);
    near(law.aicc.unwrap(), 127.56, 1e-4);
    let contention = fit_model(Model::Contention, &lab());
    near(contention.parameters[0], 1776.76, 1e-3);
    near(contention.parameters[1], 0.351_524, 1e-3);
    near(contention.rmse, 289.65, 1e-4);
    near(contention.aicc.unwrap(), 123.37, 1e-4);
    let queue = fit_model(Model::OneQueue, &lab());
    near(queue.parameters[0], 214e-6, 0.02);
    near(queue.r2, 0.963, 0.005);
}

#[test]
fn the_labs_peak_is_refused() {
    let choice = choose_model(&lab(), 1).unwrap();
    assert_ne!(choice.fitted[0].model, Model::Universal, "{:?}", choice.fitted);
    assert_eq!(choice.peak, None);
    let universal = choice.universal.unwrap();
    assert!(universal.peak_users.0 < 39.0 && universal.peak_users.1.is_infinite(), "{universal:?}");
    assert_eq!(choice.reach, 200.0);
    assert!(choose_model(&lab()[..5], 1).is_none());
}

#[test]
fn a_real_peak_is_found_with_its_interval() {
    let mut random = Stream::new(7, 0, Purpose::Choice);
    let truth = [1000.0, 0.02, 5e-4];
    let mut points = Vec::new();
    for users in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0, 128.0] {
        for _ in 0..5 {
            let noise = 1.0 + 0.02 * (random.next_unit() + random.next_unit() + random.next_unit() - 1.5);
            let throughput = Model::Universal.throughput_at(&truth, users) * noise;
            points.push(Point { users, throughput });
        }
    }
    let choice = choose_model(&points, 3).unwrap();
    let (users, _) = choice.peak.expect("a peak");
    assert_eq!((choice.fitted[0].model, choice.reach), (Model::Universal, 256.0));
    near(users, (0.98f64 / 5e-4).sqrt(), 0.1);
    let intervals = choice.universal.unwrap();
    for (truth, (low, high)) in truth.iter().zip(&intervals.parameters) {
        assert!(low * 0.9 <= *truth && *truth <= high * 1.1 && low < high, "{truth}: {low} to {high}");
    }
}

#[test]
fn a_line_is_a_line() {
    let mut random = Stream::new(2, 0, Purpose::Choice);
    let mut points = Vec::new();
    for users in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        for _ in 0..4 {
            points.push(Point { users, throughput: 100.0 * users * (0.99 + 0.02 * random.next_unit()) });
        }
    }
    assert_eq!(choose_model(&points, 1).unwrap().fitted[0].model, Model::Linear);
}

fn points(all: &[(f64, f64)]) -> Vec<Point> {
    all.iter().map(|(users, throughput)| Point { users: *users, throughput: *throughput }).collect()
}

#[test]
fn equations_are_solved_with_pivots_or_are_singular() {
    let a = vec![vec![0.0, 2.0, 1.0], vec![1.0, 1.0, 1.0], vec![2.0, 0.0, 3.0]];
    let x = solve(a, vec![7.0, 6.0, 11.0]).unwrap();
    assert!(x.iter().zip([1.0, 2.0, 3.0]).all(|(found, expected)| (found - expected).abs() < 1e-12), "{x:?}");
    assert_eq!(solve(vec![vec![1.0, 2.0], vec![2.0, 4.0]], vec![1.0, 2.0]), None);
    assert_eq!(solve(vec![vec![-4.0]], vec![2.0]), Some(vec![-0.5]));
    assert_eq!(solve(vec![vec![1e-300]], vec![1e-300]), Some(vec![1.0]));
}

#[test]
fn a_fit_has_its_error_and_akaikes_criterion() {
    // lambda = 61 / 30; residuals -1/30, -16/15, 9/10 and -2/15; k = 2.
    let four = points(&[(1.0, 2.0), (2.0, 3.0), (3.0, 7.0), (4.0, 8.0)]);
    let law = fit_model(Model::Linear, &four);
    let cost = 59.0 / 30.0;
    near(law.parameters[0], 61.0 / 30.0, 1e-6);
    near(law.rmse, f64::sqrt(cost / 4.0), 1e-9);
    near(law.worst, 16.0 / 45.0, 1e-5);
    near(law.r2, 1.0 - cost / 26.0, 1e-9);
    near(law.aicc.unwrap(), 4.0 * f64::ln(cost / 4.0) + 4.0 + 12.0, 1e-9);
    // Three points are too few for it, and what fits exactly has no likelihood.
    assert_eq!(fit_model(Model::Linear, &four[..3]).aicc, None);
    let exact = fit_model(Model::Linear, &points(&[(1.0, 2.0), (2.0, 4.0), (4.0, 8.0), (8.0, 16.0)]));
    assert_eq!((exact.parameters[0], exact.rmse, exact.r2, exact.aicc), (2.0, 0.0, 1.0, None));
    assert_eq!(fit_model(Model::Linear, &points(&[(2.0, 8.0), (2.0, 8.0)])).r2, 0.0);
}

#[test]
fn laws_without_noise_are_found_again() {
    for (model, truth) in [
        (Model::Linear, vec![70.0]),
        (Model::Contention, vec![500.0, 0.05]),
        (Model::OneQueue, vec![0.002, 0.03]),
        (Model::Universal, vec![1_000.0, 0.02, 5e-4]),
    ] {
        let of = |users: f64| Point { users, throughput: model.throughput_at(&truth, users) };
        let all = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0].map(of);
        let law = fit_model(model, &all);
        law.parameters.iter().zip(&truth).for_each(|(found, expected)| near(*found, *expected, 1e-5));
        assert!(law.worst < 1e-6 && law.r2 > 1.0 - 1e-9, "{law:?}");
    }
}

#[test]
fn descents_start_from_the_best_rate_and_the_greatest_throughput() {
    let two = points(&[(2.0, 100.0), (10.0, 200.0)]);
    assert_eq!(starts(Model::Linear, &two), [[50.0]]);
    assert_eq!(starts(Model::Contention, &two), [[50.0, 0.01], [50.0, 0.1], [50.0, 0.5]]);
    assert_eq!(
        starts(Model::OneQueue, &two),
        [[0.005, 0.1 / 50.0], [0.005, 0.5 / 50.0], [0.005, 1.0 / 50.0]]
    );
    assert!(starts(Model::Universal, &two).iter().all(|start| start.len() == 3 && start[0] == 50.0));
}

#[test]
fn points_are_drawn_from_runs_of_their_users_or_by_the_residuals_of_the_law() {
    let mut random = Stream::new(1, 0, Purpose::Choice);
    let law =
        Fitted { model: Model::Linear, parameters: vec![10.0], rmse: 0.0, worst: 0.0, r2: 0.0, aicc: None };
    let found = |law: Option<&Fitted>, points: &[Point], random: &mut Stream| {
        let mut seen: Vec<Vec<i64>> = vec![Vec::new(); points.len()];
        for _ in 0..200 {
            let drawn = resample_points(law, points, random);
            for (at, (new, old)) in drawn.iter().zip(points).enumerate() {
                assert_eq!(new.users, old.users);
                seen[at].push((new.throughput * 1e3).round() as i64);
            }
        }
        seen.iter_mut().for_each(|all| {
            all.sort_unstable();
            all.dedup();
        });
        seen
    };
    // Three runs of one user stand for each other; a level of two does not, and stays as it is without a law.
    let three = points(&[(1.0, 10.0), (1.0, 20.0), (1.0, 30.0), (2.0, 5.0), (2.0, 6.0)]);
    let each = vec![10_000, 20_000, 30_000];
    let without = vec![each.clone(), each.clone(), each.clone(), vec![5_000], vec![6_000]];
    assert_eq!(found(None, &three, &mut random), without);
    // Residuals 1.2, 1.2 and 0.9 of 10, 20 and 40, about their mean of 1.1.
    let levels = points(&[(1.0, 12.0), (2.0, 24.0), (4.0, 36.0)]);
    let of = |value: f64| -> Vec<i64> {
        [0.9, 1.2].map(|part| (value * part / 1.1 * 1e3).round() as i64).to_vec()
    };
    assert_eq!(found(Some(&law), &levels, &mut random), [of(10.0), of(20.0), of(40.0)]);
    assert_eq!(found(Some(&law), &three, &mut random)[..3], [each.clone(), each.clone(), each]);
    // Where every level has three runs the fewest of a level tell what is hidden, else the residuals.
    let hidden_of = |law: Option<&Fitted>, counts: &[usize]| {
        let level = |(at, count): (usize, &usize)| vec![(at as f64 + 1.0, 1.0); *count];
        let all: Vec<(f64, f64)> = counts.iter().enumerate().flat_map(level).collect();
        let small = hidden_variance(law, &points(&all));
        (small.shrunk, small.freedom)
    };
    assert_eq!(hidden_of(Some(&law), &[3, 4]), (3.0 / 2.0, 6.0));
    assert_eq!(hidden_of(Some(&law), &[2, 4]), (6.0 / 5.0, 5.0));
    let two = Fitted { parameters: vec![1.0, 0.1], ..law };
    assert_eq!(
        (hidden_of(Some(&two), &[2, 4]), hidden_of(None, &[2, 4])),
        ((6.0 / 4.0, 4.0), (6.0 / 5.0, 5.0))
    );
}

#[test]
fn intervals_of_points_without_noise_are_the_law_itself() {
    let users = [1.0, 2.0, 4.0, 8.0];
    let of = |model: Model, truth: &[f64]| {
        let all = users.map(|users| Point { users, throughput: model.throughput_at(truth, users) });
        let law = Fitted { parameters: truth.to_vec(), ..fit_model(model, &all) };
        intervals(&law, &all, &users, 1)
    };
    let line = of(Model::Linear, &[100.0]);
    let infinite = f64::INFINITY;
    assert_eq!((line.peak_users, line.peak_throughput), ((infinite, infinite), (800.0, 800.0)));
    assert_eq!(line.parameters, [(100.0, 100.0)]);
    let truth = [100.0, 0.1, 0.025];
    let falling = of(Model::Universal, &truth);
    for ((low, high), expected) in falling.parameters.iter().zip(truth) {
        near(*low, expected, 1e-6);
        near(*high, expected, 1e-6);
    }
    near(falling.peak_users.0, 6.0, 1e-6);
    near(falling.peak_throughput.1, 600.0 / (1.5 + 0.75), 1e-6);
}

#[test]
fn five_numbers_of_users_choose_no_law_however_many_runs_there_are() {
    let five = points(&[(1.0, 10.0), (2.0, 20.0), (3.0, 29.0), (4.0, 38.0), (5.0, 46.0), (5.0, 47.0)]);
    assert_eq!((choose_model(&five, 1), choose_model(&[], 1)), (None, None));
    let six = [five, points(&[(6.0, 54.0)])].concat();
    assert!(choose_model(&six, 1).is_some());
}

#[test]
fn the_simpler_of_two_laws_that_are_as_good_is_chosen() {
    // One of three runs at the greatest number of users is no lower: the universal law is better by 1 in 150.
    let run = |users: f64, off: f64| Point {
        users,
        throughput: Model::Contention.throughput_at(&[100.0, 0.05], users) * off,
    };
    let mut all: Vec<Point> = [1.0, 2.0, 4.0, 8.0, 16.0]
        .iter()
        .flat_map(|users| [0.99, 1.0, 1.01].map(|off| run(*users, off)))
        .collect();
    all.extend([0.792, 0.8, 1.0].map(|off| run(32.0, off)));
    let fitted = choose_model(&all, 1).unwrap().fitted;
    let (first, second) = (&fitted[0], &fitted[1]);
    assert_eq!((first.model, second.model), (Model::Contention, Model::Universal));
    assert!((0.0..INDIFFERENT).contains(&(first.aicc.unwrap() - second.aicc.unwrap())), "{fitted:?}");
}

#[test]
fn a_peak_is_told_only_where_kappa_is_surely_above_0() {
    // Sixteen runs of one law with up to 5 % of noise, which fits best in both.
    let of = |seed: u64| {
        let mut random = Stream::new(seed, 0, Purpose::Choice);
        let run = |users: u32| {
            let (users, noise) = (f64::from(users), 0.95 + 0.1 * random.next_unit());
            Point { users, throughput: Model::Universal.throughput_at(&[100.0, 0.05, 1e-4], users) * noise }
        };
        let choice = choose_model(&(1..=16).map(run).collect::<Vec<_>>(), 1).unwrap();
        let least = choice.universal.unwrap().parameters[2].0;
        assert_eq!((choice.fitted[0].model, choice.fitted[1].model), (Model::Universal, Model::Contention));
        (least > 0.0, choice.peak.is_some())
    };
    assert_eq!((of(36), of(51)), ((true, true), (false, false)));
}

/// Rounds of each kind of sweep: `RATES=1 cargo test --release -p dyno-analysis peaks_` prints the table.
fn rounds() -> u64 {
    if std::env::var_os("RATES").is_some() { 600 } else { 40 }
}

/// Sweeps whose peak is known, with runs that differ by chance: how often the intervals of its place and of its height hold it.
#[test]
fn peaks_lie_within_their_intervals() {
    let levels = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 96.0, 128.0];
    let truth = [1000.0, 0.02, 5e-4];
    let (users, most) = Model::Universal.find_peak(&truth).unwrap();
    let (mut of_all, mut within) = (0, 0);
    // Of fewer than 32 users, and of more.
    for (few, many) in [(0.01, 0.01), (0.03, 0.03), (0.06, 0.06), (0.01, 0.06)] {
        for repetitions in [1, 2, 3, 5, 10] {
            let (mut claimed, mut place, mut height) = (0, 0, 0);
            for round in 0..rounds() {
                let mut random = Stream::new(round, repetitions, Purpose::Choice);
                let mut normal = || (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
                let mut points = Vec::new();
                for users in levels {
                    let deviation = if users < 32.0 { few } else { many };
                    for _ in 0..repetitions {
                        let chance = (deviation * normal()).exp();
                        points.push(Point {
                            users,
                            throughput: Model::Universal.throughput_at(&truth, users) * chance,
                        });
                    }
                }
                let choice = choose_model(&points, round).unwrap();
                let Some(found) = choice.chosen.filter(|_| choice.peak.is_some()) else { continue };
                let holds = |(low, high): (f64, f64), truth: f64| u64::from(low <= truth && truth <= high);
                claimed += 1;
                place += holds(found.peak_users, users);
                height += holds(found.peak_throughput, most);
            }
            let share = |count: u64| count as f64 * 100.0 / f64::max(claimed as f64, 1.0);
            told(&format!(
                "| {:.0} %, {:.0} % | {repetitions} | {:.1} % | {:.1} % | {:.1} % |",
                few * 100.0,
                many * 100.0,
                claimed as f64 * 100.0 / rounds() as f64,
                share(place),
                share(height)
            ));
            // Runs that differ six times as much at many users are beyond what these intervals hold.
            if few == many {
                (of_all, within) = (of_all + 2 * claimed, within + place + height);
            }
        }
    }
    let share = within as f64 / of_all as f64;
    assert!((0.92..=0.985).contains(&share), "{share}");
}
