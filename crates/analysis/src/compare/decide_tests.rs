use super::*;
use crate::compare::drift::estimate_drift;
use crate::series::synthetic::{noise, random};
use dyno_types::rng::{Purpose, Stream};

fn runs(random: &mut Stream, count: usize, mean: f64, noise: f64) -> Vec<f64> {
    let mut normal = || (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
    (0..count).map(|_| mean * (1.0 + noise * normal())).collect()
}

fn shares(rounds: u64, mean: f64) -> (f64, f64) {
    let mut random = Stream::new(5, 0, Purpose::Choice);
    let (mut better, mut worse) = (0, 0);
    for _ in 0..rounds {
        let (a, b) = (runs(&mut random, 10, 1000.0, 0.03), runs(&mut random, 10, mean, 0.03));
        match compare_samples(&a, &b, Margin::THROUGHPUT, 0.0).unwrap().decision.conclusion {
            Conclusion::Better => better += 1,
            Conclusion::Worse => worse += 1,
            Conclusion::Same | Conclusion::Unclear(_) => {}
        }
    }
    (better as f64 / rounds as f64, worse as f64 / rounds as f64)
}

#[test]
fn the_same_is_rarely_called_different() {
    let (better, worse) = shares(1_000, 1000.0);
    assert!(better + worse <= 0.05, "{better} {worse}");
}

/// The interval of the ratio covers what it says, for few runs and for sides that vary differently.
#[test]
fn intervals_of_ratios_cover_about_what_they_say() {
    let mut random = Stream::new(11, 0, Purpose::Choice);
    for (ones, others, noise) in [(4, 4, 0.03), (4, 4, 0.1), (5, 5, 0.05), (4, 10, 0.05), (10, 10, 0.2)] {
        let inside = (0..2_000).filter(|_| {
            let one = runs(&mut random, ones, 1_000.0, noise);
            let other = runs(&mut random, others, 1_200.0, noise / 3.0);
            let found = ratio_of(&one, &other).ratio;
            found.low <= 1.2 && found.high >= 1.2
        });
        let share = inside.count() as f64 / 2_000.0;
        assert!((0.93..=0.97).contains(&share), "{ones} and {others} runs, {noise}: {share}");
    }
}

#[test]
fn a_tenth_less_is_nearly_always_found() {
    let (better, worse) = shares(300, 900.0);
    assert!(worse >= 0.95 && better == 0.0, "{better} {worse}");
}

#[test]
fn the_words() {
    let of = |one: &[f64], other: &[f64]| compare_samples(one, other, Margin::THROUGHPUT, 0.0).unwrap();
    let quiet = [1000.0, 1001.0, 999.0, 1000.5, 999.5];
    assert_eq!(of(&quiet, &quiet.map(|x| x * 1.001)).decision.conclusion, Conclusion::Same);
    assert_eq!(of(&quiet, &quiet.map(|x| x * 1.1)).decision.conclusion, Conclusion::Better);
    assert!(matches!(
        of(&[900.0, 1000.0, 1100.0, 1000.0], &[950.0, 1060.0, 1150.0, 1050.0]).decision.conclusion,
        Conclusion::Unclear(n) if n > 3
    ));
    assert_eq!(of(&[1000.0], &[2000.0]).decision.conclusion, Conclusion::Unclear(3));
    assert_eq!(of(&[1000.0, 1000.1], &[1000.0, 1000.1]).decision.conclusion, Conclusion::Unclear(2));
    // Three against three prove nothing; the difference that is there needs few more, not those that 2 % would.
    let three = of(&[1000.0, 1010.0, 990.0], &[3200.0, 3300.0, 3100.0]);
    assert_eq!((three.decision.conclusion, three.delta), (Conclusion::Unclear(1), 1.0));
    let noisy = of(&[900.0, 1100.0], &[950.0, 1150.0]).decision.conclusion;
    assert!(matches!(noisy, Conclusion::Unclear(n) if n > 50), "{noisy:?}");
    // Beyond the margin, but within what the same thing does from day to day.
    let found = compare_samples(&quiet, &quiet.map(|x| x * 1.05), Margin::THROUGHPUT, 0.08).unwrap();
    assert!(matches!(found.decision.conclusion, Conclusion::Unclear(_)));
    assert!(compare_samples(&[], &[1.0], Margin::THROUGHPUT, 0.0).is_none());
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} instead of {expected}");
}

#[test]
fn intervals_of_a_ratio_and_of_a_difference_are_welchs() {
    // Means 100 and 200. Variances of the logarithms 200 / 3 / 100^2 / 4 and 1250 / 200^2 / 5: 5.861976 degrees of freedom,
    // half of the width 0.21896426. Of the means 200 / 3 / 4 and 1250 / 5: 4.524300 degrees, 43.340335.
    let (one, other) = ([90.0, 110.0, 100.0, 100.0], [150.0, 200.0, 250.0, 200.0, 200.0]);
    let found = compare_samples(&one, &other, Margin::THROUGHPUT, 0.0).unwrap();
    assert_eq!(
        (found.runs, found.means, found.decision.ratio.value, found.difference.value),
        ((4, 5), (100.0, 200.0), 2.0, 100.0)
    );
    near(found.decision.ratio.low, 1.606_700_864);
    near(found.decision.ratio.high, 2.489_573_566);
    near(found.difference.low, 56.659_665);
    near(found.difference.high, 143.340_335);
}

/// p and interval are two views of one test: p is below 0.05 exactly where the interval does not hold 1.
#[test]
fn p_says_what_the_interval_says() {
    // t = ln 2 / sqrt(200 / 3 / 100^2 / 4 + 1250 / 200^2 / 5) = 7.790302 with 5.861976 degrees of freedom: twice the tail of
    // Student's density, integrated by Simpson's rule.
    let (one, other) = ([90.0, 110.0, 100.0, 100.0], [150.0, 200.0, 250.0, 200.0, 200.0]);
    let p = compare_samples(&one, &other, Margin::THROUGHPUT, 0.0).unwrap().decision.p.unwrap();
    near(p, 2.641_054_971e-4);
    let mut random = Stream::new(23, 0, Purpose::Choice);
    for round in 0..500 {
        let other = 1_000.0 + f64::from(round % 10) * 12.0;
        let (one, other) = (runs(&mut random, 4, 1_000.0, 0.03), runs(&mut random, 5, other, 0.05));
        let found = compare_samples(&one, &other, Margin::THROUGHPUT, 0.0).unwrap();
        let Decision { ratio, p, conclusion, open } = found.decision;
        let (p, holds) = (p.unwrap(), ratio.low <= 1.0 && ratio.high >= 1.0);
        assert_eq!(p >= ALPHA, holds, "{found:?}");
        // No verdict of a difference beside a p that shows none.
        let claimed = matches!(conclusion, Conclusion::Better | Conclusion::Worse);
        assert!(!claimed || p < ALPHA, "{found:?}");
        assert_eq!(matches!(conclusion, Conclusion::Unclear(_)), open.is_some(), "{found:?}");
        assert_eq!(open == Some(LeftOpen::Spread), p >= ALPHA && conclusion != Conclusion::Same, "{found:?}");
    }
    // Equal means: nothing speaks for a difference.
    let same = [90.0, 110.0, 95.0, 105.0];
    assert_eq!(compare_samples(&same, &same, Margin::THROUGHPUT, 0.0).unwrap().decision.p, Some(1.0));
}

#[test]
fn a_decision_that_a_drift_leaves_open_is_by_the_ratio_without_it() {
    // 2 % a run, first all of the one side, then all of the other; nothing else differs.
    let (first, second) = places(5, false);
    let values = |places: &[f64]| -> Vec<f64> {
        let wobble = [1.0, 1.002, 0.999, 1.001, 0.998];
        places.iter().zip(wobble).map(|(at, by)| 1_000.0 * 1.02_f64.powf(*at) * by).collect()
    };
    let (one, other) = (values(&first), values(&second));
    let drift = estimate_drift((&one, &first), (&other, &second));
    let found = compare_samples(&one, &other, Margin::THROUGHPUT, 0.0).unwrap();
    assert_eq!(found.decision.conclusion, Conclusion::Better);
    let left = found.with_drift(drift, Margin::THROUGHPUT).decision;
    assert_eq!((left.conclusion, left.open), (Conclusion::Unclear(0), Some(LeftOpen::Drift)));
    assert!(left.ratio.low < 1.0 && left.ratio.high > 1.0 && left.p.unwrap() >= ALPHA, "{left:?}");
}

#[test]
fn a_ratio_without_variance_or_of_nothing_has_no_interval() {
    let flat = |value: f64| IntervalEstimate { value, low: value, high: value };
    assert_eq!(ratio_of(&[2.0, 2.0], &[3.0, 3.0]).ratio, flat(1.5));
    assert_eq!(ratio_of(&[2.0, 3.0], &[5.0]).ratio, flat(2.0));
    assert_eq!(ratio_of(&[1.0, 3.0], &[-1.0, 1.0]).ratio, flat(0.0));
    let (some, none): (&[f64], &[f64]) = (&[1.0], &[]);
    for (one, other) in [(some, none), (none, some), (none, none), (&[-1.0, 1.0], some)] {
        assert_eq!(compare_samples(one, other, Margin::THROUGHPUT, 0.0), None, "{one:?} {other:?}");
    }
}

#[test]
fn a_verdict_needs_four_runs_a_side_and_a_difference_beyond_the_margin_and_the_noise() {
    let more = Margin { share: 0.25, more_is_better: true };
    let less = Margin { more_is_better: false, ..more };
    let of = |runs, (low, value, high), margin, noise| {
        let tested = TestedRatio { ratio: IntervalEstimate { value, low, high }, p: 0.5 };
        decide(runs, tested, margin, noise, || 9).conclusion
    };
    let unclear = Conclusion::Unclear(9);
    let cases = [
        // An interval that ends at the margin is not within it, on either side.
        ((0.875, 1.0, 1.125), 0.0, Conclusion::Same, Conclusion::Same),
        ((0.75, 1.0, 1.125), 0.0, unclear, unclear),
        ((0.875, 1.0, 1.25), 0.0, unclear, unclear),
        // More than nothing, and by the best estimate more than the margin: not as much.
        ((1.125, 1.5, 2.0), 0.0, Conclusion::Better, Conclusion::Worse),
        ((1.125, 1.25, 2.0), 0.0, unclear, unclear),
        ((1.0, 1.5, 2.0), 0.0, unclear, unclear),
        ((0.5, 0.625, 0.875), 0.0, Conclusion::Worse, Conclusion::Better),
        ((0.5, 0.75, 0.875), 0.0, unclear, unclear),
        ((0.25, 0.5, 1.0), 0.0, unclear, unclear),
        // More than what the same thing does from day to day: not as much.
        ((1.125, 1.5, 2.0), 0.5, unclear, unclear),
        ((1.125, 1.5, 2.0), 0.375, Conclusion::Better, Conclusion::Worse),
        ((0.25, 0.5, 0.875), 0.5, unclear, unclear),
        ((0.25, 0.5, 0.875), 0.375, Conclusion::Worse, Conclusion::Better),
    ];
    for (interval, noise, of_more, of_less) in cases {
        let found = (of((4, 4), interval, more, noise), of((4, 4), interval, less, noise));
        assert_eq!(found, (of_more, of_less), "{interval:?}, noise {noise}");
    }
    // Three of one side say nothing: one more at least, or as many as the noise asks for.
    for runs in [(3, 10), (10, 3)] {
        assert_eq!(of(runs, (1.125, 1.5, 2.0), more, 0.0), unclear);
        let twice = IntervalEstimate { value: 2.0, low: 2.0, high: 2.0 };
        let few = decide(runs, TestedRatio { ratio: twice, p: 0.0 }, more, 0.0, || 0);
        let said = (few.conclusion, few.open, few.p);
        assert_eq!(said, (Conclusion::Unclear(1), Some(LeftOpen::FewRuns), None));
    }
}

#[test]
fn the_runs_that_are_needed_follow_from_variance_difference_and_a_power_of_80_percent() {
    let needed = |one: &[f64], other: &[f64]| runs_needed(one, other, Margin::THROUGHPUT);
    // (1.959964 + 0.841621)^2 (200 + 392) / 10^2 = 46.5 a side, of which there are two.
    assert_eq!(needed(&[90.0, 110.0], &[96.0, 124.0]), 45);
    // Of 124, 110 and 96 the variance is 196: 31.1.
    assert_eq!(needed(&[90.0, 110.0], &[96.0, 110.0, 124.0]), 30);
    // Of equal means a difference of 2 %: 7.84888 (200 + 200) / 2^2 = 784.9.
    assert_eq!(needed(&[90.0, 110.0], &[90.0, 110.0]), 783);
    // As many as there are, or fewer: one more. A noise without end: 10,000.
    assert_eq!(needed(&[100.0, 100.0], &[200.0, 200.0]), 1);
    assert_eq!(needed(&[1.0, 199.0], &[1.0, 199.0]), 10_000);
    // Nothing can be said of one run, nor where neither mean nor difference is more than nothing.
    assert_eq!((needed(&[1.0], &[1.0, 2.0]), needed(&[1.0, 2.0], &[1.0])), (0, 0));
    assert_eq!(needed(&[-1.0, 1.0], &[-1.0, 1.0]), 0);
}

/// Places of sides of `count` runs each, one after the other or by turns.
fn places(count: usize, by_turns: bool) -> (Vec<f64>, Vec<f64>) {
    match by_turns {
        false => ((0..count).map(|at| at as f64).collect(), (count..2 * count).map(|at| at as f64).collect()),
        // A B B A A B B A.
        true => (0..2 * count).map(|at| at as f64).partition(|at| [0, 3].contains(&(*at as usize % 4))),
    }
}

/// Share of 400 comparisons that call the second worse; and those that call it anything.
fn claims(count: usize, by_turns: bool, drift_per_run: f64, difference: f64, cv: f64) -> (f64, f64) {
    let (first, second) = places(count, by_turns);
    let mut random = random(7);
    let rounds = 400;
    let (mut worse, mut claimed) = (0, 0);
    for _ in 0..rounds {
        let mut side = |places: &[f64], level: f64| -> Vec<f64> {
            let noise = noise(&mut random, places.len(), 0.0);
            places
                .iter()
                .zip(noise)
                .map(|(at, e)| 1_000.0 * level * (1.0 + drift_per_run * at) * (1.0 + cv * e))
                .collect()
        };
        let (one, other) = (side(&first, 1.0), side(&second, 1.0 + difference));
        let found = compare_samples(&one, &other, Margin::THROUGHPUT, 0.0).unwrap();
        let drift = estimate_drift((&one, &first), (&other, &second));
        let left = found.with_drift(drift, Margin::THROUGHPUT).decision.conclusion;
        worse += usize::from(left == Conclusion::Worse);
        claimed += usize::from(matches!(left, Conclusion::Worse | Conclusion::Better));
    }
    (worse as f64 / rounds as f64, claimed as f64 / rounds as f64)
}

/// The host slows down by 1 % a run, and the sides are the same thing.
#[test]
fn a_host_that_drifts_is_no_difference() {
    for count in [4, 5, 10] {
        for cv in [0.003, 0.01, 0.03] {
            let (worse, claimed) = claims(count, false, -0.01, 0.0, cv);
            assert!(worse <= 0.08 && claimed <= 0.08, "{count} runs, CV {cv}: {worse}, {claimed}");
        }
    }
    // One that turns a true difference round: the second is better, and looks worse.
    assert_eq!(claims(5, false, -0.05, 0.05, 0.003).0, 0.0);
    // By turns it is noise alone.
    assert!(claims(8, true, -0.01, 0.0, 0.01).1 <= 0.05);
}

#[test]
fn a_difference_is_found_all_the_same() {
    for (count, by_turns, difference, cv) in
        [(5, false, -0.1, 0.02), (10, false, -0.1, 0.03), (8, true, -0.05, 0.02), (10, true, -0.05, 0.02)]
    {
        let (worse, _) = claims(count, by_turns, 0.0, difference, cv);
        assert!(worse >= 0.9, "{count} runs, by turns {by_turns}, {difference} at CV {cv}: {worse}");
    }
}
