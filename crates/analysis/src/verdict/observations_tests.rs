use super::*;
use crate::series::synthetic::{noise, random};
use crate::verdict::{RunObservations, judge_run};
use crate::{PhaseFacts, summarise_phase};
use dyno_record::{Scale, ThreadInterval, Totals};
use dyno_rundir::faults::FaultFigures;
use dyno_rundir::schema::{Client, Phase, Reason};
use dyno_types::Outcome;

/// Names of the checks that speak against a run with this knowledge.
pub(super) fn failing_check_names(observations: RunObservations) -> Vec<String> {
    judged(observations, 0)
        .into_iter()
        .filter(|reason| reason.trust != Trust::Valid)
        .map(|reason| reason.check)
        .collect()
}

/// The same in full, of a run with so many failed operations.
fn judged(observations: RunObservations, failed: u64) -> Vec<Reason> {
    let mut interval = ThreadInterval::new(1, Scale::Ns64);
    for _ in 0..20_000 {
        interval.arrivals += 1;
        interval.ended[Outcome::Ok as usize] += 1;
        interval.record_ended(0, Outcome::Ok, 100_000, 100_000);
    }
    for _ in 0..failed {
        interval.arrivals += 1;
        interval.ended[Outcome::TimedOut as usize] += 1;
        interval.record_ended(0, Outcome::TimedOut, 100_000, 100_000);
    }
    let mut totals = Totals::new(1, Scale::Ns64);
    totals.add_interval(&interval);
    let facts = PhaseFacts {
        name: "measure".into(),
        seconds: 60.0,
        client: Client { pinned: true, ..Client::default() },
        ..PhaseFacts::default()
    };
    let phase = summarise_phase(facts, &["READ".to_owned()], &totals);
    judgement(&phase, &totals, observations)
}

/// Returns whether an open loop at this rate is called overloaded.
pub(super) fn overload_of(observations: RunObservations, rate: f64) -> bool {
    let facts = PhaseFacts { offered: Some(rate), ..PhaseFacts::default() };
    let totals = Totals::new(1, Scale::Ns64);
    let phase = summarise_phase(facts, &["READ".to_owned()], &totals);
    judgement(&phase, &totals, observations).iter().any(|reason| reason.check == "overload")
}

fn judgement(phase: &Phase, totals: &Totals, observations: RunObservations) -> Vec<Reason> {
    let evidence = Evidence {
        phase,
        totals,
        think_ns: None,
        wire: false,
        interrupted: false,
        partial: false,
        lost: Vec::new(),
        asked: Vec::new(),
        responses: Vec::new(),
        observations,
    };
    judge_run(&evidence).reasons
}

fn steady(seconds: usize) -> Vec<f64> {
    noise(&mut random(4), seconds, 0.0).iter().map(|one| 1_000.0 * (1.0 + 0.02 * one)).collect()
}

#[test]
fn a_good_run_has_no_reason() {
    let good =
        RunObservations { series: steady(60), keys: Some((1_300, 100_000)), ..RunObservations::default() };
    assert_eq!(failing_check_names(good), Vec::<String>::new());
}

#[test]
fn users_who_have_done_their_share_are_not_missed() {
    // Ten thousand operations of 1 ms are ten seconds of one user.
    let law_fails = |counted: bool, users: usize, seconds: f64| {
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        for _ in 0..10_000 {
            interval.arrivals += 1;
            interval.ended[Outcome::Ok as usize] += 1;
            interval.record_ended(0, Outcome::Ok, 1_000_000, 1_000_000);
        }
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.add_interval(&interval);
        let client = Client { users, pipeline: 1, batch: 1, pinned: true, ..Client::default() };
        let facts = PhaseFacts { name: "measure".into(), seconds, client, ..PhaseFacts::default() };
        let phase = summarise_phase(facts, &["READ".to_owned()], &totals);
        let evidence = Evidence {
            phase: &phase,
            totals: &totals,
            think_ns: Some(0),
            wire: true,
            interrupted: false,
            partial: false,
            lost: Vec::new(),
            asked: Vec::new(),
            responses: Vec::new(),
            observations: RunObservations {
                counted,
                busy_rate: counted.then_some(2_000.0),
                ..RunObservations::default()
            },
        };
        judge_run(&evidence).reasons.iter().any(|reason| reason.check == "littles_law")
    };
    // One of the two ended half a second before the other.
    assert!(law_fails(false, 2, 5.25));
    assert!(!law_fails(true, 2, 5.25));
    // There cannot be too much.
    assert!(law_fails(true, 1, 6.0));
}

#[test]
fn each_seeded_fault_has_its_own_reason() {
    let mut fallen = steady(60);
    fallen[30..].iter_mut().for_each(|one| *one *= 0.6);
    let rising: Vec<f64> =
        steady(60).iter().enumerate().map(|(at, one)| one * (1.0 + 0.003 * at as f64)).collect();
    let mut stalled = steady(60);
    (stalled[20], stalled[21]) = (10.0, 0.0);
    let series = steady(60);
    for (name, observations) in [
        ("level", RunObservations { series: fallen, ..RunObservations::default() }),
        ("drift", RunObservations { series: rising, ..RunObservations::default() }),
        ("stalls", RunObservations { series: stalled, ..RunObservations::default() }),
        ("keys", RunObservations { keys: Some((1, 100_000)), ..RunObservations::default() }),
        ("mix", RunObservations { mix: vec![("READ".into(), 0.5)], ..RunObservations::default() }),
        ("clock_jump", RunObservations { clock_skew_s: -3.0, ..RunObservations::default() }),
        ("monitors", RunObservations { watched: true, series: series.clone(), ..RunObservations::default() }),
        ("monitors", RunObservations { silent: vec!["database".into()], ..RunObservations::default() }),
        (
            "environment",
            RunObservations { changed: vec!["cpu: governor".into()], ..RunObservations::default() },
        ),
        (
            "target",
            RunObservations { missing: Some("b:1: connection refused".into()), ..RunObservations::default() },
        ),
    ] {
        assert_eq!(failing_check_names(observations), [name.to_owned()], "{name}");
    }
}

#[test]
fn what_fails_by_a_fault_that_was_asked_for_is_no_surprise() {
    let fault = FaultFigures {
        number: 1,
        fault: "pause on server".into(),
        end_s: Some(1.0),
        ..FaultFigures::default()
    };
    let mut stalled = steady(60);
    (stalled[20], stalled[21]) = (10.0, 0.0);
    let asked = |failed_in_faults: u64| RunObservations {
        series: stalled.clone(),
        silent: vec!["database".into()],
        faults: vec![fault.clone()],
        failed_in_faults,
        ..RunObservations::default()
    };
    let told = judged(asked(700), 700);
    assert!(told.iter().all(|reason| reason.trust == Trust::Valid), "{told:?}");
    let named = told.iter().find(|reason| reason.check == "faults").unwrap();
    assert!(named.text.contains("pause on server at 0.00 s for 1.00 s"), "{named:?}");
    assert!(named.text.contains("700 operations failed"), "{named:?}");
    // Others are.
    let told = judged(asked(700), 750);
    let errors = told.iter().find(|reason| reason.check == "errors").unwrap();
    assert!(errors.trust == Trust::Suspect && errors.text.starts_with("50 operations"), "{errors:?}");
    assert!(errors.text.contains("apart from those of the faults"), "{errors:?}");
    let missed = RunObservations {
        not_carried_out: vec!["1 kill on server: too late".into()],
        ..RunObservations::default()
    };
    let told = judged(missed, 0);
    assert_eq!((told[0].check.as_str(), told[0].trust), ("faults_carried_out", Trust::Suspect));
}

#[test]
fn late_arrivals_are_blamed_on_who_made_them_late() {
    let advice = |busy: f64| {
        let mut interval = ThreadInterval::new(1, Scale::Ns64);
        for _ in 0..10_000 {
            interval.arrivals += 1;
            interval.ended[Outcome::Ok as usize] += 1;
            interval.record_ended(0, Outcome::Ok, 1_000_000, 1_000_000);
            interval.lag.record(900_000);
        }
        let mut totals = Totals::new(1, Scale::Ns64);
        totals.add_interval(&interval);
        let client = Client { pinned: true, busy_share: Some(busy), ..Client::default() };
        let facts = PhaseFacts { name: "measure".into(), seconds: 60.0, client, ..PhaseFacts::default() };
        let phase = summarise_phase(facts, &["READ".to_owned()], &totals);
        let reasons = judgement(&phase, &totals, RunObservations::default());
        reasons.into_iter().find(|reason| reason.check == "client_share").expect("0.9 of 1 ms is late").text
    };
    assert!(advice(0.8).ends_with("use fewer operations per second or more load threads"), "{}", advice(0.8));
    assert!(advice(0.05).contains("idle 95 % of the time, so it is the host"), "{}", advice(0.05));
}

/// Scans of 100 ms hide no lag from reads of 1 ms; a metric with few operations is not what a lag is held against.
#[test]
fn a_lag_is_judged_beside_the_operations_that_it_delays_most() {
    let lag = |reads: u64, scans: u64| {
        let mut interval = ThreadInterval::new(2, Scale::Ns64);
        for (metric, count, ns) in [(0, reads, 1_000_000), (1, scans, 100_000_000)] {
            for _ in 0..count {
                interval.arrivals += 1;
                interval.ended[Outcome::Ok as usize] += 1;
                interval.record_ended(metric, Outcome::Ok, ns, ns);
                interval.lag.record(600_000);
            }
        }
        let mut totals = Totals::new(2, Scale::Ns64);
        totals.add_interval(&interval);
        let client = Client { pinned: true, busy_share: Some(0.1), ..Client::default() };
        let facts = PhaseFacts { name: "measure".into(), seconds: 60.0, client, ..PhaseFacts::default() };
        let phase = summarise_phase(facts, &["READ".to_owned(), "SCAN".to_owned()], &totals);
        let reasons = judgement(&phase, &totals, RunObservations::default());
        reasons.into_iter().find(|reason| reason.check == "client_share").map(|reason| reason.trust)
    };
    assert_eq!(lag(9_500, 500), Some(Trust::Invalid));
    assert_eq!(lag(100, 9_900), None);
}

#[test]
fn a_warm_up_counts_from_a_hundredth_of_the_mean() {
    let slow = |left: f64| {
        let mut series = steady(300);
        series[..15].iter_mut().for_each(|second| *second *= left);
        failing_check_names(RunObservations { series, ..RunObservations::default() })
    };
    assert_eq!(slow(0.5), ["warm_up"], "2.5 % of the mean");
    assert_eq!(slow(0.87), Vec::<String>::new(), "0.7 % of it");
}
