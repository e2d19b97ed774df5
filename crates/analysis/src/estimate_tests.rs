//! Intervals and decisions beside known truth: how often they cover it, and how often they are wrong.
//!
//! `RATES=1 cargo test --release -p dyno-analysis decisions_` prints the tables of docs/reliability.md.

use crate::blocks::{Blocks, LatencyKind, Population};
use crate::estimate::Quantile;
use crate::series::synthetic::{noise, random, told};
use crate::{Condition, PhaseFacts, closed_form, summarise_phase};
use dyno_record::{Buckets, MergedSlot, Scale, Totals};
use dyno_rundir::schema::{Decision, Threshold};
use dyno_types::Outcome;
use dyno_types::rng::Stream;

/// Operations a second of the made runs.
const RATE: f64 = 1_000.0;

/// A run of simulated response times in milliseconds, by the second of their end.
struct SimulatedRun {
    blocks: Blocks,
    all: Totals,
    seconds: usize,
}

fn exponential(random: &mut Stream) -> f64 {
    -(1.0 - random.next_unit()).ln()
}

impl SimulatedRun {
    fn of(seconds: usize, times_ms: impl Fn(usize) -> Vec<f64>) -> Self {
        Self::made(seconds, (0..seconds).map(times_ms))
    }

    fn made(seconds: usize, all_ms: impl Iterator<Item = Vec<f64>>) -> Self {
        let mut run = SimulatedRun {
            blocks: Blocks::new(vec!["READ".into()]),
            all: Totals::new(1, Scale::Ns64),
            seconds,
        };
        for (second, times) in all_ms.enumerate() {
            let mut totals = Totals::new(1, Scale::Ns64);
            let mut buckets = Buckets::new(Scale::Ns64);
            times.iter().for_each(|ms| buckets.record((ms * 1e6) as u64));
            let count = buckets.count();
            (totals.outcomes[0][Outcome::Ok as usize], totals.ended[Outcome::Ok as usize]) = (count, count);
            totals.arrivals = count;
            totals.slots[0] = Some(MergedSlot { service: buckets.clone(), response: buckets });
            run.blocks.add_second(second as u64, &totals);
            run.all.merge(&totals);
        }
        run
    }

    /// Independent exponential times of mean 1 ms.
    fn independent(seconds: usize, seed: u64) -> Self {
        let all = random(seed);
        let all = std::cell::RefCell::new(all);
        SimulatedRun::of(seconds, |_| {
            (0..RATE as usize).map(|_| exponential(&mut all.borrow_mut())).collect()
        })
    }

    /// Exponential times whose mean remembers: its logarithm is an autoregression of deviation 0.3.
    fn modulated(seconds: usize, rho: f64, seed: u64) -> Self {
        let mut all = random(seed);
        let means: Vec<f64> = noise(&mut all, seconds, rho).iter().map(|z| (MODULATION * z).exp()).collect();
        let all = std::cell::RefCell::new(all);
        SimulatedRun::of(seconds, |second| {
            (0..RATE as usize).map(|_| means[second] * exponential(&mut all.borrow_mut())).collect()
        })
    }

    /// Response times of M/M/1 by Lindley's recursion: `RATE` served a second, `load` of it arrives.
    fn mm1(seconds: usize, load: f64, seed: u64) -> Self {
        let mut all = random(seed);
        let (mut now, mut free) = (0.0f64, 0.0f64);
        let mut times: Vec<Vec<f64>> = vec![Vec::new(); seconds];
        // It begins as full as it will be.
        let waiting = (all.next_unit().ln() / load.ln()) as usize;
        (0..waiting).for_each(|_| free += exponential(&mut all) / RATE);
        while now < seconds as f64 {
            now += exponential(&mut all) / (load * RATE);
            free = free.max(now) + exponential(&mut all) / RATE;
            if let Some(own) = times.get_mut(free as usize) {
                own.push((free - now) * 1e3);
            }
        }
        SimulatedRun::made(seconds, times.into_iter())
    }

    fn populations(&self) -> Vec<Population> {
        self.blocks.latency_populations(0, LatencyKind::Response)
    }

    fn decide(&self, text: &str) -> Threshold {
        let facts = PhaseFacts { seconds: self.seconds as f64, ..PhaseFacts::default() };
        let phase = summarise_phase(facts, &["READ".to_owned()], &self.all);
        Condition::parse(text).unwrap().judge_phase(&phase, &self.blocks, &[])
    }
}

/// Deviation of the logarithm of a modulated mean.
const MODULATION: f64 = 0.3;

/// A percentile of exponential times whose mean is log-normal, by bisection of the integral.
fn modulated_quantile(share: f64) -> f64 {
    let beyond = |x: f64| {
        let steps = (-400..=400).map(|i| f64::from(i) * 0.02);
        let weight = |z: f64| (-z * z / 2.0).exp();
        let (all, own) = steps.fold((0.0, 0.0), |(all, own), z| {
            (all + weight(z), own + weight(z) * (-x * (-MODULATION * z).exp()).exp())
        });
        own / all
    };
    let (mut low, mut high) = (0.0, 1e3);
    (0..100).for_each(|_| {
        let middle = f64::midpoint(low, high);
        if beyond(middle) > 1.0 - share { low = middle } else { high = middle }
    });
    low
}

/// One kind of run: its name, a run by length and seed, and the truth of a percentile.
type SimulationCase = (String, Box<dyn Fn(usize, u64) -> SimulatedRun>, Box<dyn Fn(f64) -> f64>);

fn cases() -> Vec<SimulationCase> {
    let mut all: Vec<SimulationCase> = vec![(
        "independent".into(),
        Box::new(SimulatedRun::independent),
        Box::new(|share: f64| -(1.0 - share).ln()),
    )];
    for rho in [0.0, 0.5, 0.8] {
        all.push((
            format!("modulated, rho {rho}"),
            Box::new(move |seconds, seed| SimulatedRun::modulated(seconds, rho, seed)),
            Box::new(modulated_quantile),
        ));
    }
    for load in [0.5, 0.8, 0.9] {
        all.push((
            format!("M/M/1, load {load}"),
            Box::new(move |seconds, seed| SimulatedRun::mm1(seconds, load, seed)),
            Box::new(move |share| 1e3 * closed_form::mm1_response_quantile(load * RATE, RATE, share)),
        ));
    }
    all
}

fn rounds() -> u64 {
    if std::env::var_os("RATES").is_some() { 400 } else { 20 }
}

fn lengths() -> &'static [usize] {
    if std::env::var_os("RATES").is_some() { &[10, 30, 60, 300] } else { &[30] }
}

/// The same of decisions: longer runs decide as those of a minute, and better.
fn decided_lengths() -> &'static [usize] {
    if std::env::var_os("RATES").is_some() { &[10, 30, 60] } else { &[30] }
}

#[test]
fn decisions_rest_on_intervals_that_cover_the_truth() {
    let (mut of_all, mut within) = (0, 0);
    for (name, run, truth) in cases() {
        for &seconds in lengths() {
            let mut covered = [0u64; 3];
            for seed in 0..rounds() {
                let run = run(seconds, seed);
                let population = &run.populations()[0];
                for (covered, share) in covered.iter_mut().zip([0.5, 0.99, 0.999]) {
                    let truth = truth(share) * 1e3;
                    let found = Quantile::new(population, share).unwrap().confidence_interval().unwrap();
                    *covered += u64::from(found.low <= truth && found.high.is_none_or(|high| truth <= high));
                }
            }
            let row = covered.map(|covered| format!("{:.1} %", covered as f64 * 100.0 / rounds() as f64));
            told(&format!("| {name} | {seconds} s | {} |", row.join(" | ")));
            assert!(
                covered.iter().all(|covered| *covered as f64 > 0.85 * rounds() as f64),
                "{name}: {row:?}"
            );
            (of_all, within) = (of_all + 3 * rounds(), within + covered.iter().sum::<u64>());
        }
    }
    let share = within as f64 / of_all as f64;
    // Where few operations lie beyond, the upper end is open.
    assert!((0.92..=0.995).contains(&share), "{share}");
}

/// Factors between a limit and the truth.
const APART: [f64; 4] = [1.0, 1.1, 1.25, 2.0];

/// Shares of the runs whose threshold on p99 is decided rightly and wrongly, by how far its limit lies from the truth.
#[test]
fn decisions_are_seldom_wrong() {
    let (mut kinds, mut all) = (0, [(0.0, 0.0); APART.len()]);
    for (name, run, truth) in cases() {
        for &seconds in decided_lengths() {
            let mut found = [(0u64, 0u64); APART.len()];
            for seed in 0..rounds() {
                let run = run(seconds, seed);
                for ((right, wrong), apart) in found.iter_mut().zip(APART) {
                    let limits = [truth(0.99) * apart, truth(0.99) / apart];
                    let answers =
                        limits.map(|ms| run.decide(&format!("p99(read) < {ms:.6}ms")).threshold_answer());
                    *right +=
                        u64::from(answers[0] == Decision::Pass) + u64::from(answers[1] == Decision::Fail);
                    *wrong +=
                        u64::from(answers[0] == Decision::Fail) + u64::from(answers[1] == Decision::Pass);
                }
            }
            let share = |count: u64| count as f64 * 50.0 / rounds() as f64;
            let row = found.map(|(right, wrong)| format!("{:.1} %, {:.1} %", share(right), share(wrong)));
            for (all, (right, wrong)) in all.iter_mut().zip(found) {
                *all = (all.0 + share(right), all.1 + share(wrong));
            }
            kinds += 1;
            told(&format!("| {name} | {seconds} s | {} |", row.join(" | ")));
        }
    }
    // At the truth either answer is wrong.
    let all = all.map(|(right, wrong)| (right / f64::from(kinds), wrong / f64::from(kinds)));
    assert!(all[0].1 <= 5.0 && all[1].1 <= 2.0 && all[2].1 <= 1.0 && all[3].1 <= 0.2, "{all:?}");
    assert!(all[3].0 > 75.0, "{all:?}");
}

/// 1 ms each, of which `failed` in a second fail.
fn with_failures(seconds: usize, per_second: u64, failed: impl Fn(usize) -> u64) -> SimulatedRun {
    let mut run = SimulatedRun::made(0, std::iter::empty());
    run.seconds = seconds;
    for second in 0..seconds {
        let mut totals = Totals::new(1, Scale::Ns64);
        for (outcome, count) in
            [(Outcome::Ok, per_second - failed(second)), (Outcome::TimedOut, failed(second))]
        {
            let mut buckets = Buckets::new(Scale::Ns64);
            (0..count).for_each(|_| buckets.record(1_000_000));
            (totals.outcomes[0][outcome as usize], totals.ended[outcome as usize]) = (count, count);
            totals.arrivals += count;
            let slot = Some(MergedSlot { service: buckets.clone(), response: buckets });
            totals.slots[usize::from(outcome != Outcome::Ok)] = slot.filter(|_| count > 0);
        }
        run.blocks.add_second(second as u64, &totals);
        run.all.merge(&totals);
    }
    run
}

#[test]
fn few_operations_decide_nothing() {
    let decide = |run: &SimulatedRun, text: &str| run.decide(text).threshold_answer();
    let three = with_failures(1, 3, |_| 0);
    assert_eq!(decide(&three, "errors < 0.1%"), Decision::TooClose);
    assert_eq!(decide(&three, "p99(read) < 5ms"), Decision::TooClose);
    // That not one may fail, and what the slowest took, are statements about this run.
    assert_eq!(decide(&three, "errors <= 0%"), Decision::Pass);
    assert_eq!(decide(&three, "max(read) < 5ms"), Decision::Pass);
    // 3.84 in 5,000 are less than 0.1 %, in 3,000 more (Wilson, of none).
    assert_eq!(decide(&with_failures(5, 1_000, |_| 0), "errors < 0.1%"), Decision::Pass);
    assert_eq!(decide(&with_failures(3, 1_000, |_| 0), "errors < 0.1%"), Decision::TooClose);
    // No share is above all of them.
    assert_eq!(decide(&with_failures(30, 1_000, |_| 0), "errors < 200%"), Decision::Pass);
    let none = with_failures(30, 1_000, |_| 0).decide("errors < 0.1%");
    let high = none.interval.unwrap().high.unwrap();
    assert!(
        none.threshold_answer() == Decision::Pass && (high - 100.0 * 3.8416 / 30_003.8).abs() < 1e-4,
        "{none:?}"
    );
    // One in a hundred, evenly or in one second of thirty: the latter might as well not have come.
    assert_eq!(decide(&with_failures(30, 1_000, |_| 10), "errors < 0.5%"), Decision::Fail);
    let burst = with_failures(30, 1_000, |second| if second == 7 { 300 } else { 0 });
    assert_eq!(decide(&burst, "errors < 0.5%"), Decision::TooClose);
}

#[test]
fn short_runs_are_decided_where_every_block_agrees() {
    // 5 s of 0.1 ms for a limit of 5 ms.
    let quick = SimulatedRun::of(5, |_| vec![0.1; 1_000]);
    assert_eq!(quick.decide("p99(read) < 5ms").threshold_answer(), Decision::Pass);
    assert_eq!(quick.decide("p99(read) > 5ms").threshold_answer(), Decision::Fail);
    assert_eq!(quick.decide("mean(read) < 5ms").threshold_answer(), Decision::Pass);
    assert_eq!(quick.decide("p99(all) < 50us").threshold_answer(), Decision::Fail);
    // One second of five is slow: 0.9 % of the operations are not below 1 %, nor 1.1 % above it.
    let mixed = |slow: usize| {
        SimulatedRun::of(5, move |at| {
            vec![if at == 2 { 9.0 } else { 0.1 }; if at == 2 { slow } else { 1_000 }]
        })
    };
    for slow in [36, 45] {
        assert_eq!(mixed(slow).decide("p99(read) < 5ms").threshold_answer(), Decision::TooClose);
    }
    assert!(quick.decide("p99(read) < 5ms").interval.is_none());
}

/// A queue that is nearly full is slow in few long periods, and still far beyond its limit.
#[test]
fn few_long_periods_beyond_a_limit_are_enough_to_fail() {
    for seed in 0..10 {
        let run = SimulatedRun::mm1(60, 0.95, seed);
        assert_eq!(run.decide("p99(read) < 10ms").threshold_answer(), Decision::Fail, "{seed}");
    }
    // One slow second of thirty is luck.
    let burst = SimulatedRun::of(30, |at| vec![if at == 7 { 50.0 } else { 1.0 }; 1_000]);
    assert_eq!(burst.decide("p99(read) < 10ms").threshold_answer(), Decision::TooClose);
}

#[test]
fn throughput_is_decided_by_its_seconds() {
    let phase = |seconds: f64, ok: u64| {
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.ended[Outcome::Ok as usize] = ok;
        summarise_phase(PhaseFacts { seconds, ..PhaseFacts::default() }, &["READ".to_owned()], &totals)
    };
    let decide = |text: &str, series: &[f64]| {
        let phase = phase(series.len() as f64, series.iter().sum::<f64>() as u64);
        Condition::parse(text).unwrap().judge_phase(&phase, &Blocks::new(Vec::new()), series)
    };
    let even: Vec<f64> = (0..30).map(|at| if at % 2 == 0 { 900.0 } else { 1_100.0 }).collect();
    assert_eq!(decide("throughput > 900", &even).threshold_answer(), Decision::Pass);
    assert_eq!(decide("throughput > 990", &even).threshold_answer(), Decision::TooClose);
    assert_eq!(decide("throughput > 1100", &even).threshold_answer(), Decision::Fail);
    let found = decide("throughput > 990", &even).interval.unwrap();
    assert!(found.low < 1_000.0 && found.low > 940.0 && found.high.unwrap() > 1_000.0, "{found:?}");
    // Seconds without spread decide by the figure.
    assert_eq!(decide("throughput >= 1000", &[1_000.0; 30]).threshold_answer(), Decision::Pass);
    assert_eq!(decide("throughput > 1000", &[1_000.0; 30]).threshold_answer(), Decision::Fail);
    // Fewer than a second: one block, with the error of as many independent arrivals.
    let short = |text: &str| {
        Condition::parse(text)
            .unwrap()
            .judge_phase(&phase(0.1, 100), &Blocks::new(Vec::new()), &[])
            .threshold_answer()
    };
    assert_eq!((short("throughput > 700"), short("throughput > 900")), (Decision::Pass, Decision::TooClose));
}

#[test]
fn blocks_of_a_long_run_are_wider_and_hold_the_same() {
    let run = SimulatedRun::of(1_000, |second| vec![1.0 + (second % 7) as f64; 10]);
    let (step_s, all) = run.blocks.responses_by_block();
    assert_eq!((step_s, all.len()), (4, 250));
    assert_eq!(all.values().map(Buckets::count).sum::<u64>(), 10_000);
    let mut whole = Buckets::new(Scale::Ns64);
    all.values().for_each(|block| whole.merge(block));
    assert_eq!(Some(&whole), run.all.ok_slot(0).map(|slot| &slot.response));
}
