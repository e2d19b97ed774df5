use super::super::synthetic::{mild, persisting, random, wobble};
use super::*;

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= expected.abs() * 1e-6, "{found} instead of {expected}");
}

/// Slow steps that wobble, so that much of them is remembered.
fn slow(count: usize) -> Vec<f64> {
    (0..count).map(|at| (at / 6 * 5 % 11 * 2 + at * 37 % 3) as f64).collect()
}

#[test]
fn noise_is_the_greatest_of_its_three_scales() {
    let squares = |of: fn(usize, f64) -> f64| -> Vec<f64> {
        (0..80).map(|at: usize| of(at, (at * at * 3 % 31) as f64)).collect()
    };
    // From one to the next 39.8, over seven 36.7 and about the running median 30.4.
    near(noise(&squares(|at, one| if at % 2 == 1 { one } else { -one }), 7), 39.837_547_524);
    // 8.4, 192.9 and 23.4.
    near(noise(&squares(|at, one| if at / 13 % 2 == 1 { one + 200.0 } else { one }), 7), 192.897_598_537);
    // 4.2 twice and 5.6; 5.2, nothing and 7.4.
    near(noise(&mild(80), 7), 5.559_75);
    near(noise(&persisting(80), 13), 7.413);
    assert_eq!(noise(&[5.0; 40], 13), 0.0);
}

#[test]
fn memory_is_what_widens_a_mean() {
    near(memory(&persisting(40)), 2.152_386_751);
    let mut outlier = persisting(40);
    outlier[7] = 500.0;
    near(memory(&outlier), 1.878_880_504);
    assert_eq!((memory(&wobble(40)), memory(&[1.0, -1.0].repeat(20)), memory(&[])), (1.0, 1.0, 1.0));
    for (count, expected) in [(60, 3.183_444_593), (99, 2.975_566_593), (150, 2.954_472_427)] {
        near(memory(&slow(count)), expected);
    }
}

#[test]
fn a_short_segment_remembers_no_less_than_the_longer_one_beside_it() {
    let of = |parts: &[Vec<f64>]| -> Vec<f64> {
        let edges: Vec<usize> = parts[..parts.len() - 1]
            .iter()
            .scan(0, |at, part| {
                Some({
                    *at += part.len();
                    *at
                })
            })
            .collect();
        let all = weights(&parts.concat(), &edges, 2.0);
        assert_eq!(all.len(), parts.concat().len());
        let begins = std::iter::once(0).chain(edges);
        // 1 / (scale squared by memory): back to what is remembered.
        begins.map(|at| 1.0 / (4.0 * all[at])).collect()
    };
    let same = |found: Vec<f64>, expected: &[f64]| {
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).for_each(|(found, expected)| near(*found, *expected));
    };
    same(of(&[wobble(20), persisting(40)]), &[2.152_386_751, 2.152_386_751]);
    same(of(&[persisting(40), wobble(20)]), &[2.152_386_751, 2.152_386_751]);
    same(of(&[wobble(40), persisting(40)]), &[1.0, 2.152_386_751]);
    same(of(&[persisting(40), wobble(20), slow(60)]), &[2.152_386_751, 2.152_386_751, 3.183_444_593]);
    // A hundred intervals tell by themselves, one less does not.
    same(of(&[wobble(100), slow(150)]), &[1.0, 2.954_472_427]);
    same(of(&[wobble(99), slow(150)]), &[2.954_472_427, 2.954_472_427]);
    same(of(&[slow(60)]), &[3.183_444_593]);
}

#[test]
fn a_segmentation_pays_its_changes_with_the_error_that_it_takes_away() {
    let sums = Sums::of(&[1.0, 2.0, 4.0], &[1.0, 2.0, 1.0]);
    near(sums.cost(0, 3), 25.0 - 81.0 / 4.0);
    near(sums.cost(1, 3), 24.0 - 64.0 / 3.0);
    // Two levels take away 150 of squared error, by half of the weight 75.
    let two = [0.0, 0.0, 0.0, 10.0, 10.0, 10.0];
    let of = |weight: f64, penalty: f64, shortest: usize| pelt(&two, &[weight; 6], penalty, shortest);
    assert_eq!((of(1.0, 149.0, 1), of(1.0, 151.0, 1)), (vec![3], vec![]));
    assert_eq!((of(0.5, 74.0, 2), of(0.5, 76.0, 2)), (vec![3], vec![]));
    assert_eq!((of(1.0, 1.0, 3), of(1.0, 1.0, 4), of(1.0, 1.0, 0)), (vec![3], vec![], vec![3]));
    // A spell of one is no segment of two: its neighbour goes with it, or nothing does.
    let spell = [0.0, 0.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0];
    assert_eq!(pelt(&spell, &[1.0; 8], 1.0, 1), [3, 4]);
    assert_eq!(pelt(&spell, &[1.0; 8], 30.0, 2), Vec::<usize>::new());
    let three = [[1.0; 4], [5.0; 4], [2.0; 4]].concat();
    assert_eq!(pelt(&three, &[1.0; 12], 3.0, 2), [4, 8]);
    assert_eq!(pelt(&three, &[1.0; 12], 3.0, 4), [4, 8]);
    assert_eq!(pelt(&three, &[1.0; 12], 3.0, 5).len(), 1);
    assert_eq!((pelt(&[], &[], 1.0, 1), pelt(&[1.0], &[1.0], 1.0, 1)), (vec![], vec![]));
    assert_eq!(pelt(&[0.0, 10.0], &[1.0; 2], 1.0, 1), [1]);
}

/// The least that a segmentation of `y` costs, whichever it is: every end is tried with every beginning.
fn least_cost(y: &[f64], penalty: f64, shortest: usize) -> f64 {
    let sums = Sums::of(y, &vec![1.0; y.len()]);
    let mut best = vec![f64::INFINITY; y.len() + 1];
    best[0] = -penalty;
    for to in shortest..=y.len() {
        best[to] = (0..=to - shortest)
            .map(|from| best[from] + sums.cost(from, to) + penalty)
            .fold(f64::INFINITY, f64::min);
    }
    best[y.len()]
}

#[test]
fn no_segmentation_costs_less_than_the_one_that_is_found() {
    let mut random = random(9);
    // Here a change at 2 looks better than none up to the fifth value, and none is better in the end.
    let mut all = vec![vec![4.0, 2.0, 4.0, 8.0, 1.0], vec![0.0, 8.0, 7.0, 4.0, 0.0, 7.0]];
    all.extend((0..400).map(|at| (0..4 + at % 9).map(|_| random.next_below(10) as f64).collect()));
    for y in &all {
        for (shortest, penalty) in [(1, 1.5), (2, 4.0), (2, 20.0), (3, 8.0)] {
            for scale in [1.0, 0.25] {
                let y: Vec<f64> = y.iter().map(|one| one * scale).collect();
                if y.len() < 2 * shortest {
                    continue;
                }
                let found = pelt(&y, &vec![1.0; y.len()], penalty, shortest);
                let edges = [&[0], &found[..], &[y.len()]].concat();
                let sums = Sums::of(&y, &vec![1.0; y.len()]);
                let cost: f64 = edges.windows(2).map(|pair| sums.cost(pair[0], pair[1])).sum();
                let (cost, least) = (cost + penalty * found.len() as f64, least_cost(&y, penalty, shortest));
                assert!(
                    (cost - least).abs() < 1e-9,
                    "{y:?}, {shortest}, {penalty}: {found:?} costs {cost}, not {least}"
                );
            }
        }
    }
}

#[test]
fn the_smallest_step_that_does_not_matter_is_taken_back_first() {
    let all = [[100.0; 10], [102.0; 10], [120.0; 10]].concat();
    let level = |from: usize, to: usize| median(&all[from..to]).unwrap();
    let of = |found: &[usize], share: f64| material(all.len(), level, found.to_vec(), share);
    let change = |at, before, after| Change { at, before, after };
    // Steps of 2 and 18 of 120; without the first 19.
    assert_eq!(of(&[10, 20], 0.05), [change(20, 101.0, 120.0)]);
    assert_eq!(of(&[10, 20], 0.01), [change(10, 100.0, 102.0), change(20, 102.0, 120.0)]);
    assert_eq!(of(&[10, 20], 0.16), []);
    assert_eq!(
        (of(&[10, 20], 0.15).len(), of(&[20], 0.15), of(&[], 0.15).len()),
        (1, vec![change(20, 101.0, 120.0)], 0)
    );
    // Exactly the share matters.
    let exact = |after: f64| {
        let all = [[128.0; 4], [after; 4]].concat();
        material(8, |from, to| median(&all[from..to]).unwrap(), vec![4], 0.25).len()
    };
    assert_eq!((exact(96.0), exact(97.0)), (1, 0));
}

#[test]
fn every_step_of_constants_is_a_change_that_matters_from_the_share_on() {
    let of = |parts: &[(f64, usize)], share: f64| {
        let all: Vec<f64> = parts.iter().flat_map(|(level, count)| vec![*level; *count]).collect();
        changes(&all, share)
    };
    let change = |at, before, after| Change { at, before, after };
    assert_eq!(of(&[(100.0, 20), (110.0, 20)], 0.05), [change(20, 100.0, 110.0)]);
    assert_eq!(of(&[(128.0, 20), (120.0, 20), (60.0, 20)], 0.1), [change(40, 124.0, 60.0)]);
    assert_eq!(
        (of(&[(128.0, 20), (120.0, 20)], 0.0625).len(), of(&[(128.0, 20), (121.0, 20)], 0.0625).len()),
        (1, 0)
    );
    // Values count as often as they were held.
    let parts = |of: &[(f64, usize)]| -> Vec<f64> {
        of.iter().flat_map(|(level, count)| vec![*level; *count]).collect()
    };
    let three = parts(&[(128.0, 20), (120.0, 20), (60.0, 20)]);
    assert_eq!(steps_of_constants(&three, 0.1), [change(40, 124.0, 60.0)]);
    let two = parts(&[(60.0, 20), (120.0, 25), (128.0, 15)]);
    assert_eq!(steps_of_constants(&two, 0.1), [change(20, 60.0, 120.0)]);
    // The first thirteen intervals are the shortest level.
    assert_eq!(
        (of(&[(1.0, 12), (9.0, 20)], 0.05), of(&[(1.0, 13), (9.0, 20)], 0.05)),
        (vec![], vec![change(13, 1.0, 9.0)])
    );
    // A series that changes in more than a quarter of its intervals has no levels.
    let often = |count: usize| {
        let all: Vec<f64> = (0..64)
            .map(|at| if at >= 20 && at < 20 + count { (at % 2 * 50 + 50) as f64 } else { 100.0 })
            .collect();
        steps_of_constants(&all, 0.0).len()
    };
    assert_eq!((often(15), often(17)), (16, 0));
    assert_eq!(
        (changes(&[], 0.05), changes(&[7.0; 3], 0.05), changes(&[0.0; 40], 0.05)),
        (vec![], vec![], vec![])
    );
}

#[test]
fn medians_of_values_that_hold_for_a_while() {
    let of = |held: &[(f64, usize)]| median_of_held(&mut held.to_vec());
    assert_eq!(of(&[(5.0, 1), (1.0, 2), (9.0, 3)]), 7.0);
    assert_eq!((of(&[(9.0, 1), (1.0, 2)]), of(&[(1.0, 1), (9.0, 2)]), of(&[(3.0, 1)])), (1.0, 9.0, 3.0));
    assert_eq!((of(&[(2.0, 2), (4.0, 2)]), of(&[(4.0, 1), (2.0, 1)]), of(&[])), (3.0, 3.0, 0.0));
}

#[test]
fn a_step_in_noise_is_a_change_where_it_pays() {
    let of = |by: f64| -> Vec<usize> {
        let step = |at: usize| if at >= 30 { by } else { 0.0 };
        let all: Vec<f64> = wobble(60).iter().enumerate().map(|(at, one)| 100.0 + one + step(at)).collect();
        changes(&all, 0.001).iter().map(|change| change.at).collect()
    };
    // There it takes away 3 ln 60 of squared error in units of the noise.
    assert_eq!((of(7.161 * 0.995), of(7.161 * 1.005)), (vec![], vec![31]));
}

#[test]
fn a_level_lasts_two_periods_at_least_but_no_more_than_a_quarter_of_the_run() {
    let of = |count: usize, period: usize, low: std::ops::Range<usize>| -> Vec<usize> {
        let wave = |at: usize| (at % period).min(period - at % period) as f64 * 100.0 / period as f64;
        let level = |at: usize| if low.contains(&at) { 0.6 } else { 1.0 };
        let all: Vec<f64> =
            (0..count).map(|at| (100.0 + wave(at) + (at * 37 % 5) as f64) * level(at)).collect();
        changes(&all, MATERIAL).iter().map(|change| change.at).collect()
    };
    // Two periods of 10, and of 20 no more than 30 of 120: what is shorter takes some of its neighbours with it.
    assert_eq!((of(200, 10, 178..200), of(200, 10, 184..200)), (vec![178], vec![180]));
    assert_eq!((of(120, 20, 88..120), of(120, 20, 92..120)), (vec![88], vec![90]));
}

#[test]
fn a_change_in_a_series_that_is_averaged_first_has_its_interval() {
    // Two more than the longest that is looked at as it is: means of two neighbours.
    let all: Vec<f64> = (0..MOST + 2)
        .map(|at| (1_000.0 + (at * 37 % 23) as f64) * if at >= 6_000 { 1.5 } else { 1.0 })
        .collect();
    let found: Vec<usize> = changes(&all, MATERIAL).iter().map(|change| change.at).collect();
    assert_eq!(found, [6_000]);
}

#[test]
fn a_step_is_held_against_the_noise_over_a_period_or_over_the_shortest_level() {
    let of = |all: Vec<f64>| -> Vec<usize> { changes(&all, 0.001).iter().map(|change| change.at).collect() };
    // From one wave to the next there is less noise than from an interval to the thirteenth after it.
    let wave = |length: usize, count: usize, by: f64| {
        let of =
            |at: usize| 100.0 + (at % length).min(length - at % length) as f64 * 2.0 + (at * 37 % 5) as f64;
        (0..count).map(|at| of(at) + if at >= count / 2 { by } else { 0.0 }).collect()
    };
    assert_eq!((of(wave(10, 120, 5.0)), of(wave(10, 120, 6.0))), (vec![], vec![61]));
    assert_eq!((of(wave(26, 240, 9.0)), of(wave(26, 240, 10.0))), (vec![], vec![112]));
    // Without a period: levels that change every thirteen intervals by themselves.
    let slow = |by: f64| {
        let of = |at: usize| 100.0 + (at / 13 * 7 % 11 * 2 + at * 37 % 3) as f64;
        (0..130).map(|at| of(at) + if at >= 65 { by } else { 0.0 }).collect()
    };
    assert_eq!((of(slow(12.0)), of(slow(14.0)), of(slow(16.0))), (vec![], vec![], vec![65]));
}
