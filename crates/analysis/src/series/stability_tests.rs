use super::super::synthetic::{heavy, lab, noise, random, told};
use super::*;

/// Noise of `deviation` (a share of the level) about 1,000.
fn around(seed: u64, count: usize, deviation: f64, rho: f64) -> Vec<f64> {
    noise(&mut random(seed), count, rho).iter().map(|one| 1_000.0 * (1.0 + deviation * one)).collect()
}

fn ranges(found: &Stability) -> Vec<(usize, usize)> {
    found.segments.iter().map(|segment| segment.range).collect()
}

fn labels(found: &Stability) -> Vec<SegmentLabel> {
    found.segments.iter().map(|segment| segment.label).collect()
}

#[test]
fn the_labs_collapse_is_dated_and_its_array_raises_no_alarm() {
    let (burst, array) = (lab(1), lab(2));
    let found = judge_stability(&burst).unwrap();
    // The sheet: 28 intervals of warm-up, the collapse at 164, 5,519.6 before and 169.3 after by medians.
    assert_eq!(found.answer, StabilityAnswer::NotSteady);
    let collapse = found.segments.iter().position(|one| one.label == SegmentLabel::Collapse).unwrap();
    assert!(found.segments[collapse].range.0.abs_diff(164) <= 1, "{found:?}");
    assert!((found.segments[collapse].mean - 169.3).abs() < 20.0, "{found:?}");
    let found = judge_stability(&array).unwrap();
    assert_eq!((found.alarm, found.drift.filter(|share| share.abs() >= ALARMING)), (None, None), "{found:?}");
}

#[test]
fn two_dips_are_two_parts_with_their_edges() {
    let mut all = around(1, 60, 0.03, 0.3);
    for dip in [10..20, 35..45] {
        all[dip].iter_mut().for_each(|one| *one *= 0.6);
    }
    let found = judge_stability(&all).unwrap();
    assert_eq!(ranges(&found), [(0, 10), (10, 20), (20, 35), (35, 45), (45, 60)]);
    use SegmentLabel::{Collapse, Level, Recovery};
    assert_eq!(labels(&found), [Level, Collapse, Recovery, Collapse, Recovery]);
    assert_eq!((found.answer, found.alarm, found.steady), (StabilityAnswer::NotSteady, Some(1), None));
    let (usual, others) = found.usual_level();
    assert!((usual - 1_000.0).abs() < 15.0 && others.len() == 2, "{usual} {others:?}");
}

#[test]
fn a_dip_of_nine_seconds_has_its_edges() {
    for seed in 0..40 {
        let mut all = around(seed, 75, 0.03, 0.0);
        all[33..42].iter_mut().for_each(|one| *one *= 0.65);
        assert_eq!(ranges(&judge_stability(&all).unwrap()), [(0, 33), (33, 42), (42, 75)], "{seed}");
    }
}

#[test]
fn a_straight_line_is_a_drift_and_a_step_is_none() {
    let level = around(6, 120, 0.02, 0.2);
    let falling: Vec<f64> =
        level.iter().enumerate().map(|(at, one)| one * (1.0 - 0.3 * at as f64 / 119.0)).collect();
    let found = judge_stability(&falling).unwrap();
    // 30 % of the beginning, of a mean of 85 % of it.
    assert!(found.drift.is_some_and(|share| (share + 0.3 / 0.85).abs() < 0.02), "{found:?}");
    assert_eq!((found.alarm, found.answer), (None, StabilityAnswer::NotSteady));
    let mut stepped = level.clone();
    stepped[60..].iter_mut().for_each(|one| *one *= 0.7);
    let found = judge_stability(&stepped).unwrap();
    assert_eq!((found.drift, found.alarm), (None, Some(1)));
}

#[test]
fn a_warm_up_is_the_first_level_and_lower() {
    let of = |from: usize, to: usize, left: f64| {
        let mut all = around(3, 90, 0.03, 0.2);
        all[from..to].iter_mut().for_each(|one| *one *= left);
        let found = judge_stability(&all).unwrap();
        (found.warm_up, labels(&found)[0], found.alarm)
    };
    assert_eq!(of(0, 20, 0.7), (20, SegmentLabel::WarmUp, None));
    // Beyond a third of the run it is a level, and what stops at once is no warm-up.
    assert_eq!(of(0, 40, 0.7), (0, SegmentLabel::Level, Some(1)));
    assert_eq!(of(0, 20, 0.1), (0, SegmentLabel::Level, Some(1)));
    // A run that begins well has not warmed up.
    assert_eq!(of(1, 9, 0.7).0, 0);
}

#[test]
fn a_stop_is_no_level_and_no_warm_up() {
    for from in [0, 30, 55] {
        let mut all = around(4, 60, 0.03, 0.2);
        all[from..from + 5].fill(0.0);
        let found = judge_stability(&all).unwrap();
        assert_eq!(
            (found.segments.len(), found.warm_up, found.answer),
            (1, 0, StabilityAnswer::NotSteady),
            "{found:?}"
        );
        assert_eq!(found.stalls, [Stall { at: from, intervals: 5, least: 0.0 }]);
    }
    // Of more than twelve intervals it is a level as well.
    let mut all = around(4, 60, 0.03, 0.2);
    all[20..33].fill(0.0);
    assert_eq!(ranges(&judge_stability(&all).unwrap()), [(0, 20), (20, 33), (33, 60)]);
}

/// `DEBUG SLEEP 3` on a host that is busy with other things.
#[test]
fn a_stop_is_a_stop_however_noisy_the_rest() {
    let all = [26e3, 9e3, 31e3, 14e3, 0.0, 0.0, 8e3, 29e3, 12e3, 27e3];
    let found = judge_stability(&all).unwrap();
    assert_eq!((found.stalls.len(), found.stalls[0].at, found.stalls[0].intervals), (1, 4, 2), "{found:?}");
    assert!(found.steady.is_none());
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
        judge_stability(&all).unwrap().stalls
    };
    // Of a constant half; of 90, 100 and 110 four deviations of 14.826 below 100; of more noise a twentieth.
    let found = [(vec![100.0; 3], 50.0), (vec![90.0, 100.0, 110.0], 40.7), (vec![20.0, 100.0, 180.0], 5.0)]
        .map(|(base, edge)| (stalls(&base, edge).len(), stalls(&base, edge * 0.99).len()));
    assert_eq!(found, [(0, 1), (0, 1), (0, 1)]);
}

#[test]
fn constants_and_short_series() {
    assert!(judge_stability(&[1.0; 4]).is_none());
    let five = judge_stability(&[7.0; 5]).unwrap();
    assert_eq!((five.answer, five.steady, five.variation), (StabilityAnswer::Steady, None, (0.0, 0.0)));
    assert_eq!(judge_stability(&[0.0; 20]).unwrap().variation.0, 0.0);
    // Of ten intervals on a mean has an interval.
    assert_eq!(
        (judge_stability(&[7.0; 9]).unwrap().steady, judge_stability(&[7.0; 10]).unwrap().steady.is_some()),
        (None, true)
    );
    let step = judge_stability(&[[5.0; 10], [9.0; 10]].concat()).unwrap();
    assert_eq!(ranges(&step), [(0, 10), (10, 20)]);
    // Deviations of 1 about 10, by n - 1.
    let found = judge_stability(&[9.0, 11.0].repeat(10)).unwrap();
    assert!((found.variation.0 - (20.0_f64 / 19.0).sqrt() / 10.0).abs() < 1e-12);
}

#[test]
fn a_run_too_short_or_too_noisy_is_not_called_steady() {
    let found = judge_stability(&around(1, 10, 0.1, 0.0)).unwrap();
    assert_eq!(found.answer, StabilityAnswer::CannotTell);
    assert!(found.detectable > 0.3, "{found:?}");
    let words = |detectable: f64| Stability { detectable, ..found.clone() }.describe_unseen_steps();
    assert_eq!(words(0.153), "a step below 15 % would not be seen");
    assert_eq!((words(1.08), words(f64::INFINITY)), (words(1.0), "hardly any step would be seen".to_owned()));
    let found = judge_stability(&around(1, 120, 0.03, 0.0)).unwrap();
    // 2 x 3 % / sqrt(120) is 0.55 %, times the limit's t of about 4.5 and 1.645 more.
    assert!(
        found.answer == StabilityAnswer::Steady && (0.02..0.045).contains(&found.detectable),
        "{found:?}"
    );
}

#[test]
fn response_times_are_judged_by_their_ratio() {
    let base = around(8, 60, 0.05, 0.2);
    let times = |of: &dyn Fn(usize) -> f64| -> Vec<f64> {
        base.iter().enumerate().map(|(at, one)| one * 1e-6 * of(at)).collect()
    };
    assert_eq!(stability_of_responses(&times(&|_| 1.0)).unwrap().answer, StabilityAnswer::Steady);
    let doubled =
        stability_of_responses(&times(&|at| if (20..30).contains(&at) { 2.0 } else { 1.0 })).unwrap();
    assert_eq!((ranges(&doubled), doubled.alarm), (vec![(0, 20), (20, 30), (30, 60)], Some(1)));
    assert_eq!(labels(&doubled), [SegmentLabel::Level; 3]);
    let grows = stability_of_responses(&times(&|at| (at as f64 / 59.0).exp())).unwrap();
    assert!(grows.drift.is_some_and(|share| (share - 1.718).abs() < 0.2), "{grows:?}");
    // Slow at first is a warm-up; seconds without an operation have no time.
    let mut warm = times(&|at| if at < 10 { 3.0 } else { 1.0 });
    (warm[30], warm[31]) = (0.0, 0.0);
    assert_eq!(stability_of_responses(&warm).unwrap().warm_up, 10);
}

#[test]
fn long_series_are_searched_where_means_differ_most() {
    for length in [1_000, 3_600] {
        let mut all = around(11, length, 0.03, 0.3);
        for dip in [200..205, 700..710] {
            all[dip].iter_mut().for_each(|one| *one *= 0.8);
        }
        assert_eq!(
            ranges(&judge_stability(&all).unwrap()),
            [(0, 200), (200, 205), (205, 700), (700, 710), (710, length)]
        );
    }
    let mut all = around(12, 20_000, 0.03, 0.0);
    all[12_000..].iter_mut().for_each(|one| *one *= 0.7);
    assert_eq!(ranges(&judge_stability(&all).unwrap()), [(0, 12_000), (12_000, 20_000)]);
}

/// Series of each kind: as many as docs/reliability.md says where its tables are asked for.
fn rounds(length: usize) -> u64 {
    let whole = std::env::var_os("RATES").is_some();
    (if whole { 60_000 } else { 6_000 } / length as u64).clamp(20, 1_000)
}

/// Share of series, in percent, of which something holds.
fn share(length: usize, of: impl Fn(u64) -> bool) -> f64 {
    let rounds = rounds(length);
    (0..rounds).filter(|seed| of(*seed)).count() as f64 / rounds as f64 * 100.0
}

const RHOS: [(f64, f64); 4] = [(0.0, 5.0), (0.5, 5.0), (0.7, 7.0), (0.8, 10.0)];

fn accused(all: &[f64]) -> bool {
    judge_stability(all)
        .is_some_and(|found| found.answer == StabilityAnswer::NotSteady && found.stalls.is_empty())
}

#[test]
fn rates_of_false_alarms() {
    for deviation in [0.03, 0.1] {
        for length in [10, 30, 60, 120, 300, 1_000] {
            let mut row = format!("| {:.0} % | {length} s |", deviation * 100.0);
            for (rho, most) in RHOS {
                let found = share(length, |seed| accused(&around(seed, length, deviation, rho)));
                row += &format!(" {found:.1} % |");
                assert!(found <= most + 3.0, "{length} s, {deviation}, rho {rho}: {found} %");
            }
            told(&row);
        }
    }
}

#[test]
fn heavy_tails_are_seldom_levels() {
    for length in [30, 60, 120, 300, 1_000] {
        let found = share(length, |seed| {
            let noise = heavy(&mut random(seed), length);
            accused(&noise.iter().map(|one| 1_000.0 * (1.0 + 0.03 * one)).collect::<Vec<_>>())
        });
        told(&format!("| heavy tails, {length} s | {found:.1} % |"));
        assert!(found <= 5.0, "{length}: {found} %");
    }
}

/// A run with dips: its length, how many dips of how many seconds, and their depth in deviations of a second.
const DIPS: [(usize, usize, usize, f64); 13] = [
    (30, 1, 5, 8.0),
    (30, 2, 5, 8.0),
    (60, 1, 5, 6.5),
    (60, 2, 5, 6.5),
    (60, 2, 10, 6.5),
    (60, 3, 6, 6.5),
    (60, 4, 5, 6.5),
    (60, 4, 5, 8.0),
    (120, 1, 30, 5.0),
    (120, 3, 10, 5.0),
    (120, 4, 5, 5.0),
    (300, 1, 5, 3.5),
    (300, 4, 10, 3.5),
];

/// The parts of a run with `dips` dips of `long` seconds: places are drawn, five seconds apart at least.
fn places(seed: u64, length: usize, dips: usize, long: usize) -> Vec<(usize, usize)> {
    let mut source = random(seed ^ 0xd1b5);
    let spare = length - dips * (long + 4) - 4;
    let mut cuts: Vec<usize> = (0..dips).map(|_| source.next_below(spare as u64 + 1) as usize).collect();
    cuts.sort_unstable();
    cuts.iter()
        .enumerate()
        .map(|(at, cut)| (4 + cut + at * (long + 4), 4 + cut + at * (long + 4) + long))
        .collect()
}

#[test]
fn rates_of_dips_that_are_found() {
    let deviation = 0.04;
    for (length, dips, long, depth) in DIPS {
        let mut row = format!("| {length} s | {dips} of {long} s | {depth} |");
        for (rho, _) in RHOS {
            let made = |seed: u64| {
                let parts = places(seed, length, dips, long);
                let mut all = around(seed, length, deviation, rho);
                for (from, to) in &parts {
                    all[*from..*to].iter_mut().for_each(|one| *one -= 1_000.0 * depth * deviation);
                }
                (parts, judge_stability(&all).unwrap())
            };
            let found = share(length, |seed| made(seed).1.answer == StabilityAnswer::NotSteady);
            let placed = share(length, |seed| {
                let (parts, found) = made(seed);
                let edges: Vec<usize> =
                    found.segments.iter().skip(1).map(|segment| segment.range.0).collect();
                let near = |edge: usize| edges.iter().any(|own| own.abs_diff(edge) <= 1);
                parts.iter().all(|(from, to)| near(*from) && (near(*to) || *to == length))
            });
            row += &format!(" {found:.1} %, {placed:.1} % |");
            // A dip as short and shallow as the last but one hardly moves the mean of so long a run.
            let least = match (length, dips) {
                (300, 1) => 60.0,
                (300, _) => 80.0,
                _ => 95.0,
            };
            assert!(found >= least, "{dips} of {long} s in {length} s, rho {rho}: {found} %");
        }
        told(&row);
    }
}

#[test]
fn rates_of_drifts_that_are_found() {
    for length in [30, 60, 120, 300] {
        let mut row = format!("| {length} s |");
        for (rho, _) in RHOS {
            // share sqrt(n) sqrt((1 - rho) / (1 + rho)) / (3.46 CV) = 5
            let deviation = 0.03;
            let by = 5.0 * 3.46 * deviation / (length as f64).sqrt() * ((1.0 + rho) / (1.0 - rho)).sqrt();
            let found = share(length, |seed| {
                let line = |at: usize| 1.0 + by * (at as f64 / (length - 1) as f64 - 0.5);
                let all = around(seed, length, deviation, rho);
                let all: Vec<f64> =
                    all.iter().enumerate().map(|(at, one)| one + 1_000.0 * (line(at) - 1.0)).collect();
                let found = judge_stability(&all).unwrap();
                found.drift.is_some() || found.segments.len() > 1
            });
            row += &format!(" {:.0} %: {found:.1} % |", by * 100.0);
            // A few series of each kind tell less.
            let least = if length == 30 || rounds(length) < 200 { 70.0 } else { 85.0 };
            assert!(found >= least, "{length} s, rho {rho}: {found} %");
        }
        told(&row);
    }
}

#[test]
fn rates_of_periods() {
    for (length, every) in [(60, 5.0), (120, 7.0), (120, 13.3), (300, 30.0), (300, 60.0), (600, 60.0)] {
        let mut row = format!("| {length} s, every {every} s |");
        for (rho, most) in RHOS {
            // A fifth of each period is 15 % lower.
            let made = |seed: u64| -> Vec<f64> {
                let low =
                    |at: usize| if ((at as f64 + seed as f64) / every).fract() < 0.2 { 0.85 } else { 1.0 };
                around(seed, length, 0.03, rho).iter().enumerate().map(|(at, one)| one * low(at)).collect()
            };
            let found = share(length, |seed| judge_stability(&made(seed)).unwrap().period.is_some());
            let parts = share(length, |seed| judge_stability(&made(seed)).unwrap().alarm.is_some());
            row += &format!(" {found:.1} %, {parts:.1} % |");
            assert!(parts <= most + 5.0, "{length} s, every {every} s, rho {rho}: {parts} % have parts");
        }
        told(&row);
    }
}

#[test]
fn small_steps_add_up_to_an_alarm() {
    let mut all = Vec::new();
    for (at, level) in [1.0, 0.93, 0.86, 0.93].into_iter().enumerate() {
        all.extend(around(20 + at as u64, 30, 0.01, 0.0).iter().map(|one| one * level));
    }
    let found = judge_stability(&all).unwrap();
    assert_eq!((found.alarm, found.answer), (Some(2), StabilityAnswer::NotSteady), "{found:?}");
}

#[test]
fn figures_that_are_none_are_left_out() {
    let mut all = around(1, 60, 0.03, 0.0);
    (all[7], all[8], all[9], all[40]) = (f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::NAN);
    assert_eq!(stability_of_responses(&all).unwrap().segments.len(), 1);
    assert!(judge_stability(&[f64::NAN; 20]).is_none());
}
