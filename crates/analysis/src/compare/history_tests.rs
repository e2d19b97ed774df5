use super::*;
use crate::series::synthetic::{noise, random};

#[test]
fn a_regression_is_dated() {
    let mut all: Vec<f64> =
        noise(&mut random(1), 40, 0.0).iter().map(|x| 1000.0 * (1.0 + 0.03 * x)).collect();
    all[25..].iter_mut().for_each(|x| *x *= 0.9);
    let found = find_level_steps(&all, 0.05, 1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].at.abs_diff(25) <= 1 && found[0].after < found[0].before);
}

#[test]
fn noise_is_no_history() {
    let wrong = (0..100)
        .filter(|seed| {
            let all: Vec<f64> =
                noise(&mut random(*seed), 30, 0.0).iter().map(|x| 1000.0 * (1.0 + 0.08 * x)).collect();
            !find_level_steps(&all, 0.05, *seed).is_empty()
        })
        .count();
    assert!(wrong <= 4, "{wrong} of 100");
    assert!(find_level_steps(&[1.0; 7], 0.05, 1).is_empty());
    assert!(find_level_steps(&[5.0; 30], 0.05, 1).is_empty());
}

#[test]
fn a_history_is_split_where_welchs_t_is_greatest() {
    // Means 2 and 8.6, variances of the means 4 / 3 / 4 and 2.8 / 5; a split later gives 4.39.
    let (t, at) = greatest(&[1.0, 3.0, 1.0, 3.0, 7.0, 9.0, 11.0, 9.0, 7.0]).unwrap();
    assert!(at == 4 && (t - 6.6 / (1.0_f64 / 3.0 + 0.56).sqrt()).abs() < 1e-9, "{t} at {at}");
    // Levels without noise are told by a billionth of the first, or by less where that is 0.
    let levels = |before: f64, after: f64| greatest(&[[before; 4], [after; 4]].concat());
    assert_eq!(levels(2.0, 3.0), Some((1.0 / (1e-9 * 2.0), 4)));
    assert_eq!(levels(-2.0, 3.0), Some((5.0 / (1e-9 * 2.0), 4)));
    assert_eq!(levels(0.0, 3.0), Some((3.0 / 1e-300, 4)));
    assert_eq!((greatest(&[1.0; 7]), greatest(&[])), (None, None));
}

#[test]
fn every_level_of_a_history_is_dated_with_its_means_and_its_chance() {
    let levels = [vec![100.0; 5], vec![110.0; 5], vec![200.0; 4]].concat();
    let found = find_level_steps(&levels, 0.05, 1);
    let told: Vec<_> = found.iter().map(|step| (step.at, step.before, step.after)).collect();
    assert_eq!(told, [(5, 100.0, 110.0), (10, 110.0, 200.0)]);
    assert!(found.iter().all(|step| step.p <= ALPHA), "{found:?}");
    // A step of exactly the share matters, one of less does not, however clear it is.
    let step = |after: f64| find_level_steps(&[vec![100.0; 6], vec![after; 5]].concat(), 0.25, 1);
    assert_eq!((step(125.0).len(), step(75.0).len(), step(124.0).len()), (1, 1, 0));
    // One of the 462 orders of 5 and 6 is as great: with this seed one of 999, and the one that was seen.
    assert_eq!(step(125.0)[0].p, 0.002);
    // Where levels scatter more orders are as great.
    let scattered = [100.0, 104.0, 98.0, 103.0, 99.0, 107.0, 111.0, 106.0, 109.0, 112.0, 105.5];
    assert_eq!(find_level_steps(&scattered, 0.05, 1)[0].p, 0.007);
}

/// Share of histories of `count` runs without a step in which one is found.
fn false_steps(count: usize, rho: f64) -> f64 {
    let rounds: u64 = if std::env::var_os("RATES").is_some() { 1_000 } else { 200 };
    let wrong = (0..rounds)
        .filter(|seed| {
            let noise = noise(&mut random(*seed), count, rho);
            let all: Vec<f64> = noise.iter().map(|x| 1_000.0 * (1.0 + 0.08 * x)).collect();
            !find_level_steps(&all, 0.05, *seed).is_empty()
        })
        .count();
    wrong as f64 / rounds as f64
}

/// Runs of one host are like those before them: a machine's state, its neighbours, the temperature.
#[test]
#[expect(clippy::print_stdout, reason = "the figures are written down in docs/explain.md")]
fn runs_that_are_like_those_before_them_make_no_step() {
    for (count, rho, most) in
        [(30, 0.0, 0.04), (30, 0.5, 0.06), (30, 0.8, 0.12), (60, 0.5, 0.06), (60, 0.8, 0.12)]
    {
        let found = false_steps(count, rho);
        println!("{count} runs, correlation {rho}: {:.1} %", found * 100.0);
        assert!(found <= most, "{count} runs, correlation {rho}: {found}");
    }
}

#[test]
fn a_step_is_found_among_runs_that_are_alike() {
    let found = (0..100u64)
        .filter(|seed| {
            let noise = noise(&mut random(*seed), 40, 0.5);
            let level = |at: usize| if at < 22 { 1_000.0 } else { 900.0 };
            let all: Vec<f64> =
                noise.iter().enumerate().map(|(at, x)| level(at) * (1.0 + 0.02 * x)).collect();
            find_level_steps(&all, 0.05, *seed).iter().any(|step| step.at.abs_diff(22) <= 2)
        })
        .count();
    assert!(found >= 85, "{found}");
}
