use super::super::synthetic::{heavy, lab, noise, random};
use super::*;

fn places(x: &[f64], share: f64) -> Vec<usize> {
    changes(x, share).iter().map(|change| change.at).collect()
}

#[test]
fn the_labs_collapse_is_dated_and_its_array_raises_no_alarm() {
    let (Some(burst), Some(array)) = (lab(1), lab(2)) else { return };
    assert_eq!(places(&burst, ALARMING), [28, 164]);
    assert_eq!(places(&burst, MATERIAL), [28, 150, 164]);
    assert_eq!(places(&array, ALARMING), Vec::<usize>::new());
    let found = changes(&burst, ALARMING);
    assert!((found[1].before - 5519.6).abs() < 0.1 && (found[1].after - 169.3).abs() < 0.1, "{found:?}");
}

#[test]
fn the_labs_series_alone_have_the_sheets_changes() {
    let (Some(burst), Some(array)) = (lab(1), lab(2)) else { return };
    let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
    let varies = |all: &[f64]| {
        let squares: f64 = all.iter().map(|one| (one - mean(all)).powi(2)).sum();
        (squares / (all.len() - 1) as f64).sqrt() / mean(all)
    };
    for (all, expected) in [(&burst, (2_439.1, 1.034)), (&array, (3_467.8, 0.055))] {
        assert!((mean(all) - expected.0).abs() < 0.05 && (varies(all) - expected.1).abs() < 6e-4);
    }
    // A robust scale of the noise by first differences, and a penalty of 3 ln n.
    let steps: Vec<f64> = array.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let middle = |all: &[f64]| dyno_types::stats::median(all).unwrap();
    let apart: Vec<f64> = steps.iter().map(|step| (step - middle(&steps)).abs()).collect();
    let sigma = 1.4826 * middle(&apart) / 2f64.sqrt();
    let weights = vec![1.0 / (sigma * sigma); array.len()];
    assert_eq!(pelt(&array, &weights, 3.0 * (array.len() as f64).ln(), 6), [104]);
    // One change alone: so dear that a second one does not pay.
    let squares: f64 = burst.iter().map(|one| (one - mean(&burst)).powi(2)).sum();
    assert_eq!(pelt(&burst, &vec![1.0; burst.len()], 0.4 * squares, 1), [163]);
}

const LENGTHS: [usize; 6] = [60, 120, 300, 1_000, 3_000, 10_000];

/// Fewer of the long ones; ten times as many were tried when the method was made.
fn rounds_of(length: usize) -> u64 {
    (60_000 / length as u64).clamp(40, 100)
}

/// Share of series without a change in which one is claimed, by kind of noise and length.
fn alarms(make: impl Fn(u64, usize) -> Vec<f64>, what: &str) {
    for length in LENGTHS {
        let rounds = rounds_of(length);
        let wrong = (0..rounds).filter(|seed| !changes(&make(*seed, length), MATERIAL).is_empty()).count();
        let share = wrong as f64 / rounds as f64;
        assert!(share < 0.05, "{what}, {length} intervals: {wrong} of {rounds}");
    }
}

fn level(noise: &[f64], deviation: f64) -> Vec<f64> {
    noise.iter().map(|one| 1000.0 * (1.0 + deviation * one)).collect()
}

// A test for each kind of noise: they take long, and run beside each other.

#[test]
fn independent_noise_raises_no_alarm() {
    alarms(|seed, n| level(&noise(&mut random(seed), n, 0.0), 0.03), "independent noise");
}

#[test]
fn noise_that_remembers_raises_no_alarm() {
    alarms(|seed, n| level(&noise(&mut random(seed), n, 0.5), 0.03), "noise that remembers");
}

#[test]
fn heavy_tails_raise_no_alarm() {
    alarms(|seed, n| level(&heavy(&mut random(seed), n), 0.03), "heavy tails");
}

#[test]
fn a_wave_raises_no_alarm() {
    alarms(
        |seed, n| {
            let wave = |at: usize| 0.05 * (at as f64 * std::f64::consts::TAU / 12.0 + seed as f64).sin();
            let noise = noise(&mut random(seed), n, 0.0);
            noise.iter().enumerate().map(|(at, one)| 1000.0 * (1.0 + wave(at) + 0.03 * one)).collect()
        },
        "a wave",
    );
}

/// Share of series with a step of so much in which a change of a share that matters is found near it.
fn found(rho: f64, step: f64, share: f64) {
    for length in LENGTHS {
        let rounds = rounds_of(length);
        let mut hits = 0;
        for seed in 0..rounds {
            let mut source = random(1_000 + seed);
            let at = (length as f64 * (0.2 + 0.6 * source.next_unit())) as usize;
            let up = if seed % 2 == 0 { 1.0 + step } else { 1.0 - step };
            let mut all = level(&noise(&mut source, length, rho), 0.03);
            all[at..].iter_mut().for_each(|one| *one *= up);
            let near = |place: usize| place.abs_diff(at) <= (length / 20).max(6);
            hits += usize::from(places(&all, share).into_iter().any(near));
        }
        let hit = hits as f64 / rounds as f64;
        assert!(hit >= 0.95, "rho {rho}, a step of {step}, {length} intervals: {hits} of {rounds}");
    }
}

#[test]
fn a_step_of_a_tenth_is_found() {
    for rho in [0.0, 0.25, 0.5] {
        found(rho, 0.1, MATERIAL);
    }
}

#[test]
fn a_step_of_a_fifth_raises_the_alarm() {
    for rho in [0.0, 0.25, 0.5] {
        found(rho, 0.2, ALARMING);
    }
}

#[test]
fn an_outlier_is_no_change() {
    let mut all = level(&noise(&mut random(5), 300, 0.0), 0.02);
    all[100] = 5.0;
    all[200] = 9_000.0;
    assert_eq!(places(&all, MATERIAL), Vec::<usize>::new());
}

#[test]
fn edges() {
    assert!(changes(&[], MATERIAL).is_empty());
    assert!(changes(&[1.0; 12], MATERIAL).is_empty());
    assert!(changes(&[0.0; 100], MATERIAL).is_empty());
    let mut steps = vec![100.0; 40];
    steps.extend([200.0; 40]);
    assert_eq!(places(&steps, MATERIAL), [40]);
    // PELT alone, against all segmentations of a short series.
    let y = [0.0, 0.1, -0.1, 0.0, 5.0, 5.1, 4.9, 5.0, 0.1, 0.0];
    assert_eq!(pelt(&y, &[1.0; 10], 1.0, 1), [4, 8]);
    assert_eq!(pelt(&y, &[1.0; 10], 1.0, 3), [4, 7]);
}

/// A year that one interval of an imported result spreads evenly, after many short steps.
#[test]
fn a_long_constant_costs_no_more_than_its_length() {
    let begun = std::time::Instant::now();
    let steps = (0..2_400).map(|at| 1_000.0 + f64::from(at % 7));
    let all: Vec<f64> = steps.chain(std::iter::repeat_n(1_004.0, 3_000_000)).collect();
    assert!(places(&all, MATERIAL).is_empty());
    let (mut fallen, at) = (all, 2_000_000);
    fallen[at..].fill(500.0);
    assert_eq!(places(&fallen, MATERIAL), [at]);
    assert!(begun.elapsed() < std::time::Duration::from_secs(60), "{:?}", begun.elapsed());
}

#[test]
fn medians_of_held_values_are_those_of_the_series() {
    let mut random = random(5);
    for _ in 0..200 {
        let count = 1 + (random.next_unit() * 6.0) as usize;
        let mut held: Vec<(f64, usize)> = (0..count)
            .map(|_| ((random.next_unit() * 5.0).floor(), 1 + (random.next_unit() * 4.0) as usize))
            .collect();
        let all: Vec<f64> =
            held.iter().flat_map(|(value, times)| std::iter::repeat_n(*value, *times)).collect();
        let mut sorted = all.clone();
        sorted.sort_by(f64::total_cmp);
        let half = sorted.len() / 2;
        let plain =
            if sorted.len() % 2 == 1 { sorted[half] } else { sorted[half - 1].midpoint(sorted[half]) };
        assert_eq!((median_of_held(&mut held), median(&all)), (plain, Some(plain)));
    }
}
