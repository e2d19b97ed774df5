//! Phases of an experiment: a warm-up with a load of its own.

use dyno_testkit::{Dyno, phase};
use serde_json::Value;

fn summary(dyno: &Dyno) -> Value {
    let path = dyno.path("o/runs/cell0001-rep01/summary.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Operations that began in a phase; one that began in the warm-up may end after it.
fn counted(phase: &Value) -> u64 {
    phase["arrivals"].as_u64().unwrap()
}

fn run(text: &str) -> Value {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]));
    summary(&dyno)
}

/// In virtual time: what is counted is exact.
#[test]
fn a_warm_up_has_users_or_a_rate_of_its_own() {
    let text = |warmup: &str, measure: &str| {
        format!(
            "target: 'sim:?service=1ms&capacity=64'\nworkload: {{ycsb: {{workload: c, records: 100}}}}\n\
             phases: {{load: {{when: never}}, warmup: {{duration: 2s, {warmup}}}, measure: {{duration: 3s, {measure}}}}}\n"
        )
    };
    let users = run(&text("users: 2", "users: 8"));
    let (warm, measured) = (counted(phase(&users, "warmup")), counted(phase(&users, "measure")));
    assert!((3_980..=4_002).contains(&warm) && (23_900..=24_008).contains(&measured), "{warm}, {measured}");
    let rate = run(&text("rate: 100", "rate: 1000, arrivals: constant"));
    assert_eq!((counted(phase(&rate, "warmup")), counted(phase(&rate, "measure"))), (200, 3_000));
    let offered = phase(&rate, "measure")["offered"].as_f64().unwrap();
    assert!((offered - 1_000.0).abs() < 1.0, "{offered}");
}

/// Where every user has a thread, too: one who pauses 20 ms makes some fifty operations in a second,
/// four make two hundred.
#[test]
fn threads_of_embedded_stores_wait_for_the_warm_up_to_end() {
    let text = "target: 'sqlite:{dir}/s.db'\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {warmup: {duration: 1s, users: 1}, measure: {duration: 1s, users: 4, think: 20ms}}\n";
    let summary = run(text);
    let (warm, measured) = (counted(phase(&summary, "warmup")), counted(phase(&summary, "measure")));
    assert!((1..120).contains(&warm) && measured > 0, "{warm}, {measured}");
}
