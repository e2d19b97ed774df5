//! Figures of series that follow from whole numbers, worked out apart from the published methods.

use super::period::find_period;
use super::steady::steady_mean;
use super::synthetic::{noise, persisting, random, wobble};
use super::trend::estimate_trend;
use super::*;

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 1e-6, "{found} instead of {expected}");
}

/// Returns whether something begins to be found at `limit`: half a hundredth below it is not, half a hundredth above it is.
fn begins_at(limit: f64, found: impl Fn(f64) -> bool) -> bool {
    !found(limit * 0.995) && found(limit * 1.005)
}

#[test]
fn means_deviations_and_correlations() {
    assert_eq!((mean([0.0; 0]), mean([1.0, 2.0, 6.0])), (0.0, 3.0));
    assert_eq!((robust_deviation(&[]), robust_deviation(&[1.0, 3.0])), (0.0, 1.4826));
    // About a mean of 2: -1, 0 and 1.
    let three = [1.0, 2.0, 3.0];
    let correlations = [0, 1, 2, 3, 4].map(|lag| autocorrelation(&three, lag));
    assert_eq!(correlations, [1.0, 0.0, -0.5, 0.0, 0.0]);
    assert_eq!(batch_means(&[1.0, 3.0, 5.0], 0), [1.0, 3.0, 5.0]);
}

#[test]
fn trends_have_their_slope_and_chance() {
    // Widened by one correlation of ranks by 1.19, by all together by 1.75 and 2.01, and not at all.
    let rising = |all: Vec<f64>, by: f64| -> Vec<f64> {
        all.into_iter().enumerate().map(|(at, one)| one + by * at as f64).collect()
    };
    for (all, slope, p) in [
        (wobble(12), 0.2, 0.413_774_309),
        (persisting(24), 3.0 / 7.0, 0.144_136_575),
        (rising(persisting(40), 0.1), 0.135_714_286, 0.335_933_021),
        (rising(wobble(20), 1.0), 1.2, 0.002_550_218),
    ] {
        let found = estimate_trend(&all).unwrap();
        near(found.slope, slope);
        near(found.p, p);
        let falling = estimate_trend(&all.iter().map(|one| -one).collect::<Vec<_>>()).unwrap();
        assert!((falling.slope + slope).abs() < 1e-9 && falling.p < 1.0, "{falling:?}");
    }
    // Ranks of a wave of seven correlate up to the other half of the series.
    let wave = rising((0..40).map(|at: usize| (at % 7).min(7 - at % 7) as f64).collect(), 0.031_25);
    near(estimate_trend(&wave).unwrap().p, 0.007112630055641074);
    assert_eq!((estimate_trend(&wobble(9)), estimate_trend(&wobble(10)).is_some()), (None, true));
    // Longer ones are averaged by twos; the slope stays one of single intervals.
    let long = estimate_trend(&rising(vec![0.0; 1_502], 0.5)).unwrap();
    assert!((long.slope - 0.5).abs() < 1e-9 && long.p < 1e-9, "{long:?}");
}

#[test]
fn a_mean_of_what_remembers_has_a_wider_interval() {
    for (all, period, (middle, half, batch, correlation)) in [
        (wobble(20), 1, (111.1, 3.371_328_654, 1, 0.0)),
        (persisting(24), 1, (111.458_333_333, 22.242_807_283, 1, 0.731_665_387)),
        (persisting(250), 1, (111.024, 1.300_846_288, 3, 0.131_088_246)),
        (persisting(130), 3, (110.861_538_462, 1.869_734_821, 3, 0.152_623_148)),
    ] {
        let raised: Vec<f64> = all.iter().map(|one| one + 100.0).collect();
        let found = steady_mean(&raised, period).unwrap();
        near(found.interval.mean, middle);
        near(found.interval.half_width, half);
        assert_eq!(found.batch, batch);
        near(found.correlation, correlation);
    }
    // Whole periods where ten of them fit.
    let batch = |count: usize, period: usize| steady_mean(&wobble(count), period).unwrap().batch;
    assert_eq!([batch(70, 7), batch(69, 7), batch(120, 1), batch(121, 1), batch(200, 0)], [7, 1, 1, 2, 2]);
}

#[test]
fn a_wave_is_a_period_where_it_exceeds_its_noise_and_the_shortest_counts() {
    let waves = |count: usize, length: usize, by: f64| -> Option<usize> {
        let of = |at: usize| {
            by * (at % length).min(length - at % length) as f64 + ((at * at * 7 + at * 13) % 29) as f64
        };
        find_period(&(0..count).map(of).collect::<Vec<_>>()).map(|found| found.intervals)
    };
    assert!(begins_at(8.174_889, |by| waves(48, 6, by) == Some(6)));
    // A wave that is longer than a quarter of the series has no peak within it.
    assert_eq!((waves(200, 53, 50.0), waves(48, 13, 50.0), waves(48, 11, 50.0)), (None, None, Some(11)));
    // Two waves are told until one of them is nearly as strong.
    let of = |count: usize, length: usize, limit: f64| {
        [0.995, 1.005].map(|part| waves(count, length, limit * part))
    };
    assert_eq!(of(100, 6, 13.118_262), [Some(12), Some(6)]);
    assert_eq!(of(200, 6, 12.646_514), [Some(12), Some(6)]);
    let found = find_period(&wobble(40)).unwrap();
    assert_eq!(found.intervals, 5);
    near(found.strength, 0.722_114_939);
    assert_eq!(find_period(&persisting(40)), None);
    let five = |count: usize| find_period(&(0..count).map(|at| (at % 5 * 2) as f64).collect::<Vec<_>>());
    assert_eq!(five(23), None);
    assert_eq!(five(24).map(|found| found.intervals), Some(5));
    near(five(24).unwrap().strength, 0.770_957_588);
    // Half-way of a wave what alternates within it is no period: 36 is the multiple of its four that is next to the wave's 40.
    let alternating =
        |at: usize| 10.0 * (at % 40).min(40 - at % 40) as f64 + if at.is_multiple_of(4) { 40.0 } else { 0.0 };
    let found = find_period(&(0..200).map(alternating).collect::<Vec<_>>());
    assert_eq!(found.map(|found| found.intervals), Some(36));
    // Lone spikes in noise have no valley that is half as deep as they are alike.
    let spikes = |by: f64| {
        let noise = noise(&mut random(1), 400, 0.0);
        let all =
            noise.iter().enumerate().map(|(at, one)| one + if at.is_multiple_of(15) { by } else { 0.0 });
        find_period(&all.collect::<Vec<_>>()).map(|found| found.intervals)
    };
    assert_eq!((spikes(3.6), spikes(6.0)), (None, Some(15)));
    // Of more than 4,000 intervals two and two are one.
    let long: Vec<f64> = (0..4_002).map(|at| f64::from(at % 20 < 10)).collect();
    assert_eq!(find_period(&long).map(|found| found.intervals), Some(20));
}
