use super::*;

fn segments(medians: &[f64], each: usize) -> Vec<Segment> {
    let of = |(at, median): (usize, &f64)| Segment {
        range: (at * each, (at + 1) * each),
        median: *median,
        mean: *median,
        label: Label::Level,
    };
    medians.iter().enumerate().map(of).collect()
}

#[test]
fn levels_are_labelled_by_what_came_before() {
    use Label::{Collapse, Level, Recovery, WarmUp};
    let of = |medians: &[f64], length: usize| -> Vec<Label> {
        let mut all = segments(medians, 10);
        label(&mut all, length);
        all.iter().map(|one| one.label).collect()
    };
    // By more than a fifth it is a collapse; back above it a recovery, however small.
    assert_eq!(of(&[100.0, 80.0, 79.0], 30), [Level, Level, Level]);
    assert_eq!(of(&[100.0, 79.0, 80.0, 63.0], 40), [Level, Collapse, Recovery, Collapse]);
    assert_eq!(of(&[100.0, 80.0, 90.0], 30), [Level, Level, Level]);
    assert_eq!(of(&[100.0, 79.0, 79.0], 30), [Level, Collapse, Level]);
    // A level that rises within the first third of the run is its warm-up.
    assert_eq!((of(&[50.0, 100.0], 30), of(&[50.0, 100.0], 29)), (vec![WarmUp, Level], vec![Level, Level]));
    assert_eq!((of(&[50.0, 50.0], 60), of(&[50.0], 60)), (vec![Level, Level], vec![Level]));
    let (found, step) = levels(&[[1.0; 4], [4.0; 4], [5.0; 4]].concat(), &[4, 8]);
    let told: Vec<_> = found.iter().map(|one| (one.range, one.median, one.mean, one.label)).collect();
    assert_eq!(told, [((0, 4), 1.0, 1.0, WarmUp), ((4, 8), 4.0, 4.0, Level), ((8, 12), 5.0, 5.0, Level)]);
    assert!((step - 0.6).abs() < 1e-12);
    assert_eq!(levels(&[1.0, 9.0, 2.0], &[]).0[0].median, 2.0);
}

#[test]
fn stalls_are_neighbours_below_the_edge() {
    let found = stalls_below(&[5.0, 1.0, 0.0, 5.0, 2.0, 1.9, 1.5, 5.0, 1.0], 2.0);
    let stall = |at, intervals, least| Stall { at, intervals, least };
    assert_eq!(found, [stall(1, 2, 0.0), stall(5, 2, 1.5), stall(8, 1, 1.0)]);
}

#[test]
fn what_is_low_is_a_stall_by_half_by_its_noise_or_by_nothing() {
    let stalls = |base: &[f64], low: f64| -> Vec<Stall> {
        let mut all = base.repeat(7);
        all.insert(10, low);
        stability(&all).unwrap().stalls
    };
    // Of a constant half; of 90, 100 and 110 four deviations of 14.826 below 100; of more noise a twentieth.
    let found = [(vec![100.0; 3], 50.0), (vec![90.0, 100.0, 110.0], 40.7), (vec![20.0, 100.0, 180.0], 5.0)]
        .map(|(base, edge)| (stalls(&base, edge).len(), stalls(&base, edge * 0.99).len()));
    assert_eq!(found, [(0, 1), (0, 1), (0, 1)]);
}

#[test]
fn a_run_of_one_level_has_its_variation_and_its_mean() {
    let found = stability(&[9.0, 11.0].repeat(10)).unwrap();
    // Deviations of 1 about 10, by n - 1 and by the median distance.
    assert!((found.variation.0 - (20.0_f64 / 19.0).sqrt() / 10.0).abs() < 1e-12);
    assert!((found.variation.1 - 0.148_26).abs() < 1e-12);
    assert_eq!((found.segments.len(), found.headline, found.warm_up, found.alarm), (1, 0, 0, None));
    assert_eq!(found.steady.map(|steady| steady.interval.mean), Some(10.0));
    let five = stability(&[7.0; 5]).unwrap();
    assert_eq!((five.steady, five.variation, five.stands_out, five.trend), (None, (0.0, 0.0), false, None));
    assert_eq!((stability(&[7.0; 4]), stability(&[0.0; 20]).unwrap().variation), (None, (0.0, 0.0)));
    // Of ten intervals on a mean has an interval.
    assert_eq!(
        (stability(&[7.0; 9]).unwrap().steady, stability(&[7.0; 10]).unwrap().steady.is_some()),
        (None, true)
    );
}

#[test]
fn a_step_a_fall_and_a_stop_are_told_with_their_figures() {
    let noise = |at: usize| (at * 37 % 23) as f64;
    let level = |low: f64, from: usize, to: usize| -> Stability {
        let of = |at: usize| if (from..to).contains(&at) { low + noise(at) } else { 1_000.0 + noise(at) };
        stability(&(0..120).map(of).collect::<Vec<_>>()).unwrap()
    };
    let fall = level(700.0, 60, 120);
    let labels: Vec<_> = fall.segments.iter().map(|one| (one.range, one.label)).collect();
    assert_eq!(labels, [((0, 60), Label::Level), ((60, 120), Label::Collapse)]);
    assert_eq!((fall.alarm, fall.headline, fall.warm_up, fall.stands_out), (Some(1), 1, 0, true));
    assert_eq!((fall.steady, fall.drift, fall.stalls.len()), (None, None, 0));
    // A step of less than a tenth of the greatest level is no alarm, but a level.
    let small = level(930.0, 60, 120);
    assert_eq!((small.segments.len(), small.alarm, small.stands_out), (2, None, true));
    // A level of the warm-up is no alarm, and is told.
    let warm = level(500.0, 0, 30);
    assert_eq!((warm.warm_up, warm.alarm, warm.segments[0].label), (30, None, Label::WarmUp));
    // Where hardly anything is done it is a stop, where two fifths are it is a part that stands out, however short.
    let (slow, stopped) = (level(400.0, 60, 70), level(200.0, 60, 70));
    assert_eq!((slow.stands_out, slow.stalls.len()), (true, 1));
    assert_eq!((stopped.stands_out, stopped.stalls.len(), stopped.segments.len()), (false, 1, 1));
    // A stop of up to twelve intervals is a stall and no level; one more is both.
    let (short, long) = (level(-30.0, 60, 72), level(-30.0, 60, 73));
    assert_eq!((short.segments.len(), short.stalls[0].intervals), (1, 12));
    assert_eq!((long.segments.len(), long.stalls[0].intervals), (3, 13));
}

#[test]
fn a_line_is_a_drift_where_it_fits_better_than_the_levels() {
    let of = |line: f64| -> Vec<f64> {
        let step = |at: usize| if at >= 10 { (1.0 - line) * 10.0 } else { 0.0 };
        (0..20).map(|at| 100.0 + line * at as f64 + step(at) + (at * 37 % 5) as f64).collect()
    };
    let drifts = |line: f64| {
        let all = of(line);
        drift(&all, &levels(&all, &[10]).0)
    };
    assert!(drifts(0.3048 * 0.995).is_none() && drifts(0.3049 * 1.005).is_some());
    assert!((drifts(0.304_856_913_2).unwrap() - 0.150_355_692).abs() < 1e-6);
    // Against three levels of their own a step of one is a drift, too.
    let all = of(0.0);
    assert!((drift(&all, &levels(&all, &[6, 13]).0).unwrap() - 0.138_851_802).abs() < 1e-6);
    // Three levels are worth five parameters.
    let stairs = |line: f64| {
        let stair = |at: usize| (at / 7) as f64 * 10.0 * (1.0 - line);
        let all: Vec<f64> =
            (0..21).map(|at| 100.0 + line * at as f64 + stair(at) + (at * 37 % 5) as f64).collect();
        drift(&all, &levels(&all, &[7, 14]).0).is_some()
    };
    assert_eq!((stairs(0.513_237 * 0.995), stairs(0.513_237 * 1.005)), (false, true));
    // A line without noise is one, and one level has no steps to be a drift of.
    let line: Vec<f64> = (1..=12).map(f64::from).collect();
    assert!((drift(&line, &levels(&line, &[6]).0).unwrap() - 11.0 / 6.5).abs() < 1e-12);
    assert_eq!(drift(&line, &levels(&line, &[]).0), None);
    let step = [[1.0; 6], [2.0; 6]].concat();
    assert_eq!(drift(&step, &levels(&step, &[6]).0), None);
}

#[test]
fn a_part_too_short_for_a_level_of_its_own_has_one_where_it_is_an_alarm() {
    let of = |low: f64| {
        let one = |at: usize| if (4..8).contains(&at) { low } else { 1_000.0 } + (at * 37 % 5) as f64;
        let found = stability(&(0..12).map(one).collect::<Vec<_>>()).unwrap();
        (found.segments.iter().map(|one| one.range).collect::<Vec<_>>(), found.alarm, found.stands_out)
    };
    assert_eq!(of(600.0), (vec![(0, 4), (4, 8), (8, 12)], Some(1), true));
    assert_eq!(of(950.0), (vec![(0, 12)], None, true));
    assert_eq!(of(1_000.0), (vec![(0, 12)], None, false));
}
