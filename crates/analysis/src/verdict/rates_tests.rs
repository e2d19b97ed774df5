//! Rates at which runs that are not steady are told, and steady ones accused: those of docs/reliability.md.
//! `RATES=1 cargo test --release -p dyno-analysis observations::rates` prints them.

use super::tests::{failing_check_names, overload_of};
use crate::series::synthetic::{noise, random, told};
use crate::verdict::RunObservations;

/// Series of each kind: as many as docs/reliability.md says where its table is asked for.
fn rounds() -> u64 {
    if std::env::var_os("RATES").is_some() { 400 } else { 200 }
}

/// Noise of `deviation` (a share of the level) about 1,000/s.
fn around(seed: u64, seconds: usize, deviation: f64, rho: f64) -> Vec<f64> {
    noise(&mut random(seed), seconds, rho).iter().map(|one| 1_000.0 * (1.0 + deviation * one)).collect()
}

/// Share of series against which anything is said.
fn accused(make: impl Fn(u64) -> Vec<f64>) -> f64 {
    let accuses = |seed: &u64| {
        !failing_check_names(RunObservations { series: make(*seed), ..RunObservations::default() }).is_empty()
    };
    (0..rounds()).filter(accuses).count() as f64 / rounds() as f64
}

#[test]
fn steady_runs_are_seldom_accused() {
    for (rho, most) in [(0.0, 0.05), (0.5, 0.05), (0.8, 0.10)] {
        for deviation in [0.03, 0.05, 0.1, 0.2] {
            for seconds in [5, 10, 20, 30, 60, 120] {
                let share = accused(|seed| around(seed, seconds, deviation, rho));
                told(&format!(
                    "| rho {rho} | {:.0} % | {seconds} s | {:.1} % |",
                    deviation * 100.0,
                    share * 100.0
                ));
                assert!(share < most, "{seconds} s, {deviation}, rho {rho}: {share}");
            }
        }
    }
}

/// Change of a run: its length, and the share of the level that is left from one second to another, which the seed moves
/// within the run where `moved`.
struct Seeded {
    what: &'static str,
    seconds: usize,
    from: usize,
    to: usize,
    left: f64,
    moved: bool,
}

#[test]
fn runs_that_are_not_steady_are_told() {
    let all = [
        Seeded { what: "half speed for 19 of 60 s", seconds: 60, from: 0, to: 19, left: 0.5, moved: false },
        Seeded { what: "stall of 5 s at 8 of 60 s", seconds: 60, from: 8, to: 13, left: 0.0, moved: false },
        Seeded { what: "stall of 5 s at 40 of 60 s", seconds: 60, from: 40, to: 45, left: 0.0, moved: false },
        Seeded { what: "stall of 4 s in 10 s", seconds: 10, from: 0, to: 4, left: 0.0, moved: true },
        Seeded { what: "stall of 3 s in 10 s", seconds: 10, from: 0, to: 3, left: 0.0, moved: true },
        Seeded { what: "stall of 10 s in 29 s", seconds: 29, from: 0, to: 10, left: 0.0, moved: true },
        Seeded {
            what: "stall in the first second of 5 s",
            seconds: 5,
            from: 0,
            to: 1,
            left: 0.0,
            moved: false,
        },
        Seeded {
            what: "stall in the last second of 30 s",
            seconds: 30,
            from: 29,
            to: 30,
            left: 0.0,
            moved: false,
        },
        Seeded {
            what: "a third of the speed from 10 s to 24 s of 29 s",
            seconds: 29,
            from: 10,
            to: 24,
            left: 1.0 / 3.0,
            moved: false,
        },
        Seeded {
            what: "a third of the speed for the last 10 of 29 s",
            seconds: 29,
            from: 19,
            to: 29,
            left: 1.0 / 3.0,
            moved: false,
        },
        Seeded { what: "70 % for 12 of 60 s", seconds: 60, from: 0, to: 12, left: 0.7, moved: true },
        Seeded { what: "70 % for 15 of 60 s", seconds: 60, from: 0, to: 15, left: 0.7, moved: true },
        Seeded { what: "70 % from 5 s on of 10 s", seconds: 10, from: 5, to: 10, left: 0.7, moved: false },
    ];
    for one in &all {
        for rho in [0.0, 0.5, 0.8] {
            let share = accused(|seed| {
                let mut series = around(seed, one.seconds, 0.03, rho);
                let room = if one.moved { one.seconds - one.to } else { 0 };
                let later = (random(seed + 7).next_unit() * room as f64).round() as usize;
                series[one.from + later..one.to + later].iter_mut().for_each(|second| *second *= one.left);
                series
            });
            told(&format!("| {} | rho {rho} | {:.1} % |", one.what, share * 100.0));
            assert!(share >= 0.95, "{}, rho {rho}: {share}", one.what);
        }
    }
}

/// A server of one thread with exponential service times of 1 ms and Poisson arrivals: what an open loop records of it.
fn queue(seed: u64, rate: f64, seconds: usize) -> RunObservations {
    let mut random = random(seed);
    let mut exponential = |mean: f64| -mean * (1.0 - random.next_unit()).ln();
    let (mut due, mut free, mut departures) = (0.0, 0.0, std::collections::VecDeque::new());
    let mut sums = vec![(0.0, 0.0, 0.0); seconds];
    loop {
        due += exponential(1.0 / rate);
        if due >= seconds as f64 {
            break;
        }
        free = f64::max(due, free) + exponential(0.001);
        departures.push_back(free);
        while departures.front().is_some_and(|at| *at <= due) {
            departures.pop_front();
        }
        let queued = &mut sums[due as usize].1;
        *queued = f64::max(*queued, departures.len() as f64);
        if let Some((done, _, waited)) = sums.get_mut(free as usize) {
            *done += 1.0;
            *waited += free - due;
        }
    }
    let response = sums.iter().map(|(done, _, waited)| waited / f64::max(*done, 1.0)).collect();
    RunObservations {
        series: sums.iter().map(|second| second.0).collect(),
        backlog: sums.iter().map(|second| second.1).collect(),
        response_s: response,
        ..RunObservations::default()
    }
}

#[test]
fn an_overload_is_told_and_a_full_server_is_none() {
    let share_of = |rate: f64, seconds: usize| {
        let overloaded = |seed: &u64| overload_of(queue(*seed, rate, seconds), rate);
        (0..200).filter(overloaded).count() as f64 / 200.0
    };
    for (rate, seconds) in [(500.0, 30), (800.0, 60), (900.0, 120)] {
        let share = share_of(rate, seconds);
        told(&format!("| {rate:.0}/s, {seconds} s | {:.1} % |", share * 100.0));
        assert!(share < 0.05, "{rate}/s for {seconds} s: {share}");
    }
    // In half a minute the queue of a server that is 0.8 % short grows by as much as chance moves it.
    for (rate, seconds, goal) in [
        (1_008.0, 30, 0.0),
        (1_008.0, 120, 0.0),
        (1_008.0, 600, 0.95),
        (1_050.0, 60, 0.95),
        (1_100.0, 30, 0.95),
    ] {
        let share = share_of(rate, seconds);
        told(&format!("| {rate:.0}/s, {seconds} s | {:.1} % |", share * 100.0));
        assert!(share >= goal, "{rate}/s for {seconds} s: {share}");
    }
}
