use super::*;
use crate::series::synthetic::{noise, random};
use crate::verdict::{Further, verdict};
use crate::{PhaseFacts, phase};
use dyno_record::{Interval, Scale, Totals};
use dyno_rundir::schema::Client;
use dyno_types::Outcome;

/// Names of the checks that speak against a run with this knowledge.
fn reasons(further: Further) -> Vec<String> {
    let mut interval = Interval::new(1, Scale::Ns64);
    for _ in 0..20_000 {
        interval.arrivals += 1;
        interval.ended[Outcome::Ok as usize] += 1;
        interval.record(0, Outcome::Ok, 100_000, 100_000);
    }
    let mut totals = Totals::new(1, Scale::Ns64);
    totals.add(&interval);
    let facts = PhaseFacts {
        name: "measure".into(),
        seconds: 60.0,
        client: Client { pinned: true, ..Client::default() },
        ..PhaseFacts::default()
    };
    let phase = phase(facts, &["READ".to_owned()], &totals);
    let evidence = Evidence {
        phase: &phase,
        totals: &totals,
        think_ns: None,
        wire: false,
        clock_ns: 20,
        interrupted: false,
        partial: false,
        lost: Vec::new(),
        further,
    };
    verdict(&evidence).reasons.into_iter().map(|reason| reason.check).collect()
}

fn steady(seconds: usize) -> Vec<f64> {
    noise(&mut random(4), seconds, 0.0).iter().map(|one| 1_000.0 * (1.0 + 0.02 * one)).collect()
}

#[test]
fn a_good_run_has_no_reason() {
    let good = Further { series: steady(60), keys: Some((1_300, 100_000)), ..Further::default() };
    assert_eq!(reasons(good), Vec::<String>::new());
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
    for (name, further) in [
        ("level", Further { series: fallen, ..Further::default() }),
        ("drift", Further { series: rising, ..Further::default() }),
        ("stalls", Further { series: stalled, ..Further::default() }),
        ("keys", Further { keys: Some((1, 100_000)), ..Further::default() }),
        ("mix", Further { mix: vec![("READ".into(), 0.5)], ..Further::default() }),
        ("clock_jump", Further { clock_skew_s: -3.0, ..Further::default() }),
        ("monitors", Further { watched: true, series: series.clone(), ..Further::default() }),
        ("monitors", Further { silent: vec!["database".into()], ..Further::default() }),
        ("environment", Further { changed: vec!["cpu: governor".into()], ..Further::default() }),
    ] {
        assert_eq!(reasons(further), [name.to_owned()], "{name}");
    }
}
