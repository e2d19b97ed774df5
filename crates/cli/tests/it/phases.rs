//! Phases of an experiment: a warm-up with a load of its own.

use dyno_testkit::{Dyno, assert_exit, phase};
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

/// What `dyno run` says with options and an experiment with keys is one load: in virtual time every figure is the same.
#[test]
fn options_of_dyno_run_are_keys_of_an_experiment() {
    let dyno = Dyno::new();
    let target = "sim:?service=1ms&capacity=1";
    let options =
        ["run", target, "-n", "1000", "-r", "2000", "--connections", "4", "-d", "2s", "--warmup", "0s"];
    let age = ["--queue-age", "50ms", "--wait", "sleep", "--quiet", "--out", "own"];
    // Twice what the server can do is no valid run.
    assert_exit(&dyno.run(&[&options[..], &age].concat()), &[5]);
    let text = format!(
        "target: '{target}'\nworkload: {{ycsb: {{records: 1000}}}}\nclient: {{wait: sleep}}\n\
         phases: {{measure: {{rate: '2000', connections: 4, duration: 2s, warmup: 0s, queue_age: 50ms}}}}\n"
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]), &[5]);
    let (own, experiments) = (dyno.summary("own"), summary(&dyno));
    let (own, experiments) = (phase(&own, "measure"), phase(&experiments, "measure"));
    for key in ["arrivals", "outcomes", "offered", "throughput", "metrics"] {
        assert_eq!(own[key], experiments[key], "{key}");
    }
    // An arrival that has waited 50 ms is dropped; one that has not is served after it, within 4 ms.
    assert!(own["outcomes"]["dropped"].as_u64().unwrap() > 1_900, "{own}");
    let operations = own["metrics"].as_array().unwrap().iter().filter(|metric| metric["name"] != "CLEANUP");
    for metric in operations {
        let longest = metric["response"]["max_us"].as_f64().unwrap();
        assert!((50_000.0..55_000.0).contains(&longest), "{metric}");
    }
}
