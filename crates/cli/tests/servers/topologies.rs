//! Servers that belong together, started by an experiment: copies of a primary that are read from, shards behind routers.

use dyno_testkit::{Dyno, outcome, phase, skip, skip_because};
use serde_json::Value;

/// The only run of an experiment: its summary and its facts.
fn ran(dyno: &Dyno, text: &str) -> (Value, Value) {
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "e.yaml", "--out", "o", "--quiet"]));
    let runs = std::fs::read_dir(dyno.path("o/runs")).unwrap().flatten();
    let run = runs.map(|entry| entry.path()).find(|path| path.join("summary.json").is_file()).unwrap();
    let read = |name: &str| serde_json::from_str::<Value>(&std::fs::read_to_string(run.join(name)).unwrap());
    (read("summary.json").unwrap(), read("run.json").unwrap()["facts"].clone())
}

/// Every node was asked to the end, and none of its operations failed for want of a primary.
fn assert_whole(summary: &Value, nodes: u64) {
    let reasons = summary["verdict"]["reasons"].to_string();
    assert!(!reasons.contains("fell silent"), "{reasons}");
    let measured = phase(summary, "measure");
    assert_eq!(measured["monitor"]["database"]["nodes"], nodes, "{}", measured["monitor"]);
    let all: u64 = measured["outcomes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    // A copy may be behind; nothing else may go wrong.
    assert_eq!(outcome(measured, "ok") + outcome(measured, "not_found"), all, "{}", measured["outcomes"]);
    assert!(outcome(measured, "ok") > 100, "{}", measured["outcomes"]);
}

#[test]
fn copies_of_a_primary_are_read_from_and_watched() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("copies of a primary");
    }
    let dyno = Dyno::new();
    let (summary, facts) = ran(
        &dyno,
        "server: {kind: redis, topology: replication, replicas: 2, reads: replica}\n\
         workload: {ycsb: {workload: b, records: 2000}}\n\
         phases: {measure: {users: 4, duration: 2s, warmup: 1s}}\n",
    );
    assert_eq!(facts["copies_read"], "2");
    assert_whole(&summary, 3);
}

/// Documents are written where they can be.
#[test]
fn documents_are_read_from_copies_and_written_to_their_primary() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("documents of a primary with copies");
    }
    let dyno = Dyno::new();
    std::fs::write(
        dyno.path("d.yaml"),
        "collections: {things: {count: 500, document: {name: {$string: [8, 24]}}}}\n\
         operations:\n  look: {weight: 1, findOne: things, filter: {_id: {$key: things}}}\n  \
         add: {weight: 1, insert: things}\n",
    )
    .unwrap();
    let (summary, _) = ran(
        &dyno,
        "server: {kind: redis, topology: replication, replicas: 2, reads: replica}\n\
         workload: {documents: d.yaml}\n\
         phases: {measure: {users: 4, duration: 2s}}\n",
    );
    assert_whole(&summary, 3);
    let metrics = phase(&summary, "measure")["metrics"].to_string();
    assert!(metrics.contains("\"look\"") && metrics.contains("\"add\""), "{metrics}");
}

#[test]
fn shards_behind_two_routers() {
    let there = |program: &str| std::process::Command::new(program).arg("--version").output().is_ok();
    if !(there("mongod") && there("mongos")) {
        return skip_because("shards behind routers", "mongod or mongos is not on PATH");
    }
    let dyno = Dyno::new();
    let (summary, facts) = ran(
        &dyno,
        "server: {kind: mongod, topology: sharded, routers: 2, cache: 256MiB}\n\
         workload: {ycsb: {workload: a, records: 1000}}\n\
         phases: {measure: {users: 4, duration: 2s, warmup: 1s}}\n",
    );
    assert_eq!(facts["process"], "mongos");
    let names: Vec<&String> = facts.as_object().unwrap().keys().collect();
    assert!(names.iter().any(|name| name.starts_with("server.mongos-")), "{names:?}");
    assert_whole(&summary, 2);
}
