//! The measured phase [0, T) on a virtual clock: loads whose throughput is known without measuring it.

use dyno_analysis::users_by_littles_law;
use dyno_engine::arrivals::{Process, Profile};
use dyno_engine::sim::{ServiceTime, SimOptions};
use dyno_engine::{Control, End, Finished, Job, Pacing, run_blocking, run_virtual};
use dyno_record::Totals;
use dyno_session::oracle::ping_job;
use dyno_types::{Executed, Outcome, Refused, Request, Store, StoreSession};
use std::sync::Arc;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;

fn server(service_ns: u64, capacity: Option<u32>) -> SimOptions {
    SimOptions { service: ServiceTime::Constant(service_ns), capacity, ..SimOptions::default() }
}

fn duration(seconds: u64) -> End {
    End { operations: None, duration_ns: Some(seconds * SECOND_NS) }
}

fn operations(n: u64) -> End {
    End { operations: Some(n), duration_ns: None }
}

fn constant(rate: f64) -> Pacing {
    Pacing::Open { profile: Profile::Constant { rate }, process: Process::Constant }
}

/// A run: its measured totals, its end, and the completions of the warm-up and of each measured second.
struct Run {
    totals: Totals,
    finished: Finished,
    warm: u64,
    seconds: Vec<u64>,
}

fn run(job: Job, server: SimOptions) -> Run {
    let (mut totals, mut warm) = (Totals::new(1, job.scale), 0);
    let first = job.warmup_ns / job.interval_ns;
    let mut seconds: Vec<u64> = Vec::new();
    let finished = run_virtual(job, Arc::new(Control::default()), server, &mut |second| {
        if second.warmup {
            warm += second.totals.count_completed();
            return;
        }
        let at = (second.number - first) as usize;
        seconds.resize(seconds.len().max(at + 1), 0);
        seconds[at] += second.totals.count_completed();
        totals.merge(&second.totals);
    })
    .unwrap();
    Run { totals, finished, warm, seconds }
}

impl Run {
    fn seconds(&self) -> f64 {
        self.finished.measured_ns as f64 / 1e9
    }

    fn throughput(&self) -> f64 {
        self.totals.count_completed() as f64 / self.seconds()
    }
}

#[test]
fn a_duration_is_the_length_wherever_the_last_reply_is() {
    let steps = Profile::Steps { steps: vec![(1_000.0, 2 * SECOND_NS), (0.1, 8 * SECOND_NS)] };
    let steps = Pacing::Open { profile: steps, process: Process::Constant };
    // 2,000 arrivals in the first step; the one after it is due at 12 s.
    for (pacing, expected) in [(steps, 200.0), (constant(1.0), 1.0), (constant(0.3), 0.3)] {
        let found = run(ping_job(pacing.clone(), 64, 1, duration(10)), server(1_000_000, None));
        assert_eq!(found.finished.measured_ns, 10 * SECOND_NS);
        let error = (found.throughput() - expected).abs();
        assert!(error <= 0.1, "{pacing:?}: {}", found.throughput());
    }
}

#[test]
fn users_with_a_service_time_of_a_second() {
    // Every second 100 are done, from the half second after the warm-up on.
    let mut job = ping_job(Pacing::Closed { think_ns: 0 }, 100, 1, duration(5));
    job.warmup_ns = SECOND_NS / 2;
    let found = run(job, server(SECOND_NS, Some(100)));
    assert_eq!((found.totals.count_completed(), found.throughput()), (500, 100.0));
}

/// A server of 1,000/s is asked for more, from the warm-up on: it does 1,000/s all the time, whose arrivals these ever are.
#[test]
fn an_overload_after_a_warm_up_invents_no_stall_and_names_why_arrivals_were_dropped() {
    for rate in [1_500.0, 2_000.0] {
        let mut job = ping_job(constant(rate), 64, 1, duration(10));
        (job.warmup_ns, job.drain_ns) = (5 * SECOND_NS, 10 * SECOND_NS);
        let found = run(job, server(1_000_000, Some(1)));
        assert!((found.throughput() - 1_000.0).abs() < 1.0, "{rate}: {}", found.throughput());
        assert!(found.seconds[..10].iter().all(|ok| ok.abs_diff(1_000) <= 1), "{rate}: {:?}", found.seconds);
        assert_eq!(found.seconds[10..].iter().sum::<u64>(), 0, "the drain is no part of it");
        let dropped = found.totals.ended[Outcome::Dropped as usize];
        assert_eq!(found.totals.undrained, dropped);
        assert_eq!(dropped > 0, rate > 1_600.0, "{rate}: {dropped}");
        // Arrivals are followed through the drain.
        assert_eq!(found.totals.ended_total(), found.totals.arrivals);
    }
}

/// At every moment no more is done than was due since the epoch.
#[test]
fn completions_never_exceed_the_arrivals_due() {
    for (rate, warmup_s) in [(1_500.0, 5), (900.0, 2), (300.0, 0)] {
        let mut job = ping_job(constant(rate), 16, 1, duration(6));
        (job.warmup_ns, job.drain_ns) = (warmup_s * SECOND_NS, 2 * SECOND_NS);
        let found = run(job, server(1_000_000, Some(1)));
        let mut done = found.warm;
        for (second, completed) in found.seconds.iter().enumerate() {
            done += completed;
            let due = rate * (warmup_s + second as u64 + 1) as f64;
            assert!(done as f64 <= due, "{rate}/s, second {second}: {done} done, {due} due");
        }
        assert_eq!(found.seconds.iter().sum::<u64>(), found.totals.count_completed());
    }
}

#[test]
fn a_number_of_arrivals_ends_when_one_more_would_be_due() {
    for threads in [1, 3] {
        let found = run(ping_job(constant(10.0), 64, threads, operations(50)), server(1_000_000, None));
        assert_eq!(
            (found.finished.measured_ns, found.throughput()),
            (5 * SECOND_NS, 10.0),
            "{threads} threads"
        );
    }
    // Twice as many as can be done: half of them are done by then, the others after it.
    let found = run(ping_job(constant(2_000.0), 64, 1, operations(10_000)), server(1_000_000, Some(1)));
    assert_eq!((found.finished.measured_ns, found.totals.count_ok()), (5 * SECOND_NS, 10_000));
    assert!((found.throughput() - 1_000.0).abs() < 1.0, "{}", found.throughput());
    // Both given: the earlier.
    let both = End { operations: Some(50), duration_ns: Some(2 * SECOND_NS) };
    let found = run(ping_job(constant(10.0), 64, 1, both), server(1_000_000, None));
    assert_eq!((found.finished.measured_ns, found.throughput()), (2 * SECOND_NS, 10.0));
}

#[test]
fn a_number_of_operations_ends_with_the_last_of_them_and_the_rate_before_the_tail_is_told() {
    // 100 users, one operation a second each: 100 in the first second, 50 in the next while 50 users are idle.
    let found =
        run(ping_job(Pacing::Closed { think_ns: 0 }, 100, 1, operations(150)), server(SECOND_NS, Some(100)));
    assert_eq!((found.finished.measured_ns, found.throughput()), (2 * SECOND_NS, 75.0));
    assert_eq!(found.finished.busy_rate.map(|rate| rate.round()), Some(100.0));
    let law = users_by_littles_law(&found.totals, 0, found.seconds(), &["PING"]).unwrap();
    assert!((law - 75.0).abs() < 0.1, "a quarter of their time the users are idle: {law}");
}

/// Users = throughput x (service + turnaround + think), with all times clipped to [0, T), however short T is.
#[test]
fn littles_law_holds_within_half_a_percent_for_any_length() {
    for (users, service_ns, think_ns, capacity) in [
        (100, SECOND_NS, 0, Some(100)),
        (100, SECOND_NS, 0, Some(30)),
        (10, 300_000_000, 900_000_000, None),
        (50, 70_000_000, 5_000_000_000, None),
        (8, 1_000_000, 10_000_000, Some(4)),
    ] {
        for (warmup_ns, length) in [(0, 1), (700_000_000, 3), (2_300_000_000, 7)] {
            let mut job = ping_job(Pacing::Closed { think_ns }, users, 1, duration(length));
            job.warmup_ns = warmup_ns;
            let found = run(job, server(service_ns, capacity));
            let law = users_by_littles_law(&found.totals, think_ns, found.seconds(), &["PING"]).unwrap();
            let error = (law / users as f64 - 1.0).abs();
            assert!(
                error < 0.005,
                "{users} users, service {service_ns}, think {think_ns}, warm-up {warmup_ns}, {length} s: {law}"
            );
        }
    }
}

/// A store whose operations take this long.
struct Slow(Duration);

impl Store for Slow {
    fn engine(&self) -> String {
        "slow".to_owned()
    }

    fn durability(&self) -> String {
        String::new()
    }

    fn session(&self) -> Result<Box<dyn StoreSession>, Refused> {
        Ok(Box::new(Slow(self.0)))
    }
}

impl StoreSession for Slow {
    fn execute(&mut self, _request: &Request) -> Executed {
        std::thread::sleep(self.0);
        Executed::new(Outcome::Ok, 0)
    }
}

/// Users of an embedded store are threads: the same law on the host's clock, whatever it does to them.
#[test]
fn littles_law_holds_for_an_embedded_store_too() {
    for (service_ms, think_ms, warmup_ms) in [(300, 0, 0), (300, 0, 700), (170, 400, 500)] {
        let think_ns = think_ms * 1_000_000;
        let mut job = ping_job(Pacing::Closed { think_ns }, 8, 2, duration(1));
        job.warmup_ns = warmup_ms * 1_000_000;
        let mut totals = Totals::new(1, job.scale);
        let store = Slow(Duration::from_millis(service_ms));
        let finished = run_blocking(job, Arc::new(Control::default()), &store, &mut |second| {
            if !second.warmup {
                totals.merge(&second.totals);
            }
        });
        let seconds = finished.unwrap().measured_ns as f64 / 1e9;
        let law = users_by_littles_law(&totals, think_ns, seconds, &["PING"]).unwrap();
        assert!(
            (law / 8.0 - 1.0).abs() < 0.02,
            "service {service_ms} ms, think {think_ms} ms, warm-up {warmup_ms} ms: {law}"
        );
    }
}
