//! `dyno explain` on runs whose truth is known. The long proof of the diagnosis is in `diagnosis.rs`.

mod common;

use common::{Dyno, Server, assert_exit, skip, stderr, stdout};
use serde_json::Value;

fn json(dyno: &Dyno, dir: &str) -> Value {
    let output = dyno.run(&["explain", dir, "--json"]);
    assert_exit(&output, &[0]);
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
fn a_sweep_on_a_simulated_server_obeys_the_laws() {
    let dyno = Dyno::new();
    let text = "target: \"sim:?service=100us&distribution=exponential&capacity=4\"\n\
                workload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {operations: 20000, think: 300us}}\n\
                factors: {users: [1, 2, 4, 8, 16, 32, 64]}\nrepetitions: 2\n";
    std::fs::write(dyno.path("sweep.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "sweep.yaml", "--out", "sweep", "--quiet"]), &[0]);
    let found = json(&dyno, "sweep");
    let sweep = &found["sweeps"][0]["sweep"];
    let levels = sweep["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 7, "{found}");
    for level in levels {
        assert!(level["little"].as_f64().unwrap().abs() < 0.005, "{level}");
    }
    // Four servers of 100 us: 40,000 a second; 16 users saturate them with 300 us of thought.
    let limit = 1.0 / sweep["bottleneck_s"].as_f64().unwrap();
    assert!((limit / 40_000.0 - 1.0).abs() < 0.03, "{limit}");
    assert!((14.0..18.0).contains(&sweep["saturation"].as_f64().unwrap()), "{sweep}");
    assert_eq!(sweep["plateau"], true);
    assert!(sweep["peak"].is_null(), "{sweep}");
    let words = stdout(&dyno.run(&["explain", "sweep"]));
    assert!(words.contains("Lazowska is right") && words.contains("the data show no fall"), "{words}");
}

#[test]
fn a_quota_is_found_and_its_command_runs() {
    let Some(_server) = Server::start(&[]) else { return skip("a quota explained") };
    let dyno = Dyno::new();
    let text = "server: {kind: redis, limits: {cpus: 0.2}}\nworkload: {ycsb: {workload: a, records: 1000}}\n\
                phases: {measure: {users: 16, duration: 3s, warmup: 0s}}\n";
    std::fs::write(dyno.path("quota.yaml"), text).unwrap();
    let output = dyno.run(&["run", "quota.yaml", "--out", "quota", "--quiet"]);
    if stderr(&output).contains("control group") && !output.status.success() {
        return skip("a quota explained: control groups are not permitted");
    }
    let found = json(&dyno, "quota");
    let finding = &found["runs"][0]["findings"][0];
    assert_eq!(finding["rule"], "cpu_quota", "{found}");
    assert!(
        finding["confidence"].as_f64().unwrap() > 0.8 && !finding["evidence"].as_array().unwrap().is_empty()
    );
    let command: Vec<&str> =
        finding["command"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    assert_eq!(command[0], "dyno");
    assert!(command.contains(&"phases.measure.users=8"), "{command:?}");
    assert_exit(&dyno.run(&command[1..]), &[0]);
}

#[test]
fn an_unloaded_server_has_no_finding() {
    let Some(server) = Server::start(&[]) else { return skip("an unloaded server explained") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let run = [
        "run",
        &uri,
        "--records",
        "500",
        "--rate",
        "200",
        "--duration",
        "3s",
        "--warmup",
        "0s",
        "--out",
        "d",
    ];
    // Whether such a run is valid on a busy host is not the question here.
    assert_exit(&dyno.run(&run), &[0, 5]);
    let found = json(&dyno, "d");
    assert_eq!(found["runs"][0]["findings"], Value::Array(Vec::new()), "{found}");
    assert_eq!(found["runs"][0]["laws"][1]["holds"], "not_testable");
    let words = stdout(&dyno.run(&["explain", "d"]));
    assert!(words.contains("near a limit") && words.contains("not known: "), "{words}");
}

#[test]
fn what_cannot_be_said_is_said() {
    let dyno = Dyno::new();
    // As fast as it goes, the client itself would be a finding.
    let run = ["run", "null:", "--rate", "200", "--duration", "1s", "--no-monitor", "--out", "d"];
    assert_exit(&dyno.run(&run), &[0, 5]);
    let words = stdout(&dyno.run(&["explain", "d"]));
    assert!(words.contains("cannot be said: nothing was watched"), "{words}");
    let missing = dyno.run(&["explain", "nothing"]);
    assert_exit(&missing, &[2]);
    std::fs::write(dyno.path("d/run.json"), "{").unwrap();
    let broken = dyno.run(&["explain", "d"]);
    assert_exit(&broken, &[2]);
    assert!(stderr(&broken).contains("run.json:1"), "{}", stderr(&broken));
}
