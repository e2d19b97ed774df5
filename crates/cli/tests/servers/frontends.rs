//! What the drop-in commands share with `dyno run`: monitors beside the load; and what experiments share with them.

use dyno_rundir::monitor::Recording;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, phase, skip, skip_because, stderr, stdout};
use std::sync::{Mutex, PoisonError};

/// One Java server at a time: two that start together on a small machine keep their first clients waiting.
static JAVA: Mutex<()> = Mutex::new(());

/// Valid, or invalid for want of a quiet machine.
/// Runs a command with and without monitors: what is watched, and that standard output has the same lines.
fn watched(command: &[&str], database: bool) {
    let dyno = Dyno::new();
    let seen = dyno.run(&[command, &["--out", "d"]].concat());
    dyno.assert_ran(&seen);
    let recording = Recording::open(&dyno.path("d")).unwrap().expect("a recording");
    let sources: Vec<&str> = recording.source_names().collect();
    for name in ["dyno", "host", "monitor"] {
        assert!(sources.contains(&name), "{name} is not in {sources:?}");
    }
    let events = std::fs::read_to_string(dyno.path("d/events.jsonl")).unwrap();
    let said = sources.contains(&"database") || events.contains("\"database: ");
    assert_eq!(said, database, "{sources:?} {events}");
    let summary = dyno.summary("d");
    let of_phase = summary["phases"].as_array().unwrap().last().unwrap();
    let cost = of_phase["monitor"]["cost_share"].as_f64().unwrap();
    assert!(cost > 0.0 && cost < 0.01, "the monitors cost {cost} of a core");
    let alone = dyno.run(&[command, &["--out", "e", "--no-monitor"]].concat());
    // A front end that loads meets the documents of the first time: then the load makes it invalid.
    dyno.assert_ran_but(&alone, &["load"]);
    assert!(Recording::open(&dyno.path("e")).unwrap().is_none());
    for folder in ["d", "e"] {
        let made = |name: &str| std::fs::read_to_string(dyno.path(folder).join(name)).expect(name);
        assert!(made("report.html").starts_with("<!DOCTYPE html>"), "as dyno run leaves one");
        assert!(made("summary.md").contains("TEST passed: Workflow as planned"), "{}", made("summary.md"));
    }
    let begins = |text: String| -> Vec<String> {
        let first = |line: &str| line.split([',', ':', ' ']).next().unwrap_or_default().to_owned();
        let mut all: Vec<String> = text.lines().map(first).collect();
        all.sort();
        all.dedup();
        all.retain(|word| word.starts_with('['));
        all
    };
    assert_eq!(begins(stdout(&seen)), begins(stdout(&alone)));
}

#[test]
fn ycsb_is_watched() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("monitors of ycsb") };
    let port = format!("redis.port={}", server.uri().rsplit(':').next().unwrap());
    let common =
        ["-P", "workloads/workloada", "-p", "redis.host=127.0.0.1", "-p", &port, "-p", "recordcount=500"];
    let dyno = Dyno::new();
    dyno.assert_ran(&dyno.run(&[&["ycsb", "load", "redis"], &common[..]].concat()));
    let time = ["-p", "operationcount=6000", "-target", "2000"];
    watched(&[&["ycsb", "run", "redis"], &common[..], &time].concat(), true);
    watched(
        &[
            "ycsb",
            "run",
            "basic",
            "-P",
            "workloads/workloada",
            "-p",
            "operationcount=2000",
            "-target",
            "1000",
        ],
        false,
    );
}

#[test]
fn sysbench_and_pocdriver_are_watched() {
    let _alone = JAVA.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = Mongo::java() else {
        return skip_because(
            "monitors of sysbench",
            "mongo-java-server is not there (see scripts/need mongo)",
        );
    };
    let uri = server.uri("sb");
    let small = [
        "NUM_COLLECTIONS=1",
        "NUM_DOCUMENTS_PER_COLLECTION=1000",
        "NUM_LOADER_THREADS=1",
        "NUM_WRITER_THREADS=2",
        "RUN_TIME_SECONDS=3",
    ];
    watched(&[&["sysbench-mongodb", "--faithful", "--target", &uri], &small[..]].concat(), true);
    watched(
        &["pocdriver", "-c", &server.uri(""), "-n", "poc.c", "-e", "-d", "3", "-t", "2", "-b", "16"],
        true,
    );
}

#[test]
fn an_experiment_sends_what_pocdriver_has_queued() {
    let _alone = JAVA.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = Mongo::java() else {
        return skip_because("pocdriver's queues", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    // A thread whose bulk is on its way at the end has nothing queued: with many queries and threads that is never so for all.
    let text = format!(
        "target: {}\nworkload: {{pocdriver: '-n poc.c -b 37 -t 8 -f 3 -k 80 --opsratio'}}\nclient: {{workers: 2}}\n\
         phases: {{measure: {{duration: 2s}}}}\n",
        server.uri("")
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let run = dyno.run(&["run", "x.yaml", "--out", "o"]);
    // A find of what is still queued finds nothing: on a busy host that is more than one in twenty.
    dyno.assert_ran_but(&run, &["errors"]);
    let folder = "o/runs/cell0001-rep01";
    let events = std::fs::read_to_string(dyno.path(folder).join("events.jsonl")).unwrap();
    let message = events.lines().find(|line| line.contains("\"rest\"")).expect(&events);
    assert!(message.contains(" 0 were not") && !message.contains(" 0 requests"), "{message}");
    // More is there than requests were measured: each holds many.
    let summary = dyno.summary(folder);
    let bulks: u64 = phase(&summary, "measure")["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|metric| metric["name"].as_str().unwrap().to_lowercase().contains("insert"))
        .map(|metric| metric["outcomes"]["ok"].as_u64().unwrap())
        .sum();
    let look = dyno.run(&[
        "pocdriver",
        "-c",
        &server.uri(""),
        "-n",
        "poc.c",
        "-i",
        "0",
        "-r",
        "1",
        "-d",
        "1",
        "-t",
        "1",
    ]);
    let line = stdout(&look);
    let there = line.lines().rfind(|line| line.contains("collection has ")).expect(&line);
    let there: u64 = there
        .split("collection has ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .replace(',', "")
        .parse()
        .unwrap();
    assert!(there > bulks, "{there} documents, {bulks} inserts: {}", stderr(&run));
}

#[test]
fn a_load_that_is_kept_has_a_run_directory() {
    let dyno = Dyno::new();
    let text = "\
target: 'sqlite:{dir}/x.db'
workload: {ycsb: {records: 3000}}
phases: {load: {keep: true}, measure: {operations: 500}}
repetitions: 2
traces: [{command: [sleep, '60'], phase: load}]
";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let run = dyno.run(&["run", "x.yaml", "--out", "o"]);
    dyno.assert_ran(&run);
    let load = "o/runs/cell0001-rep01.load";
    let summary = dyno.summary(load);
    let loaded = phase(&summary, "load");
    assert_eq!(loaded["outcomes"]["ok"], 3_000);
    assert!(loaded["monitor"]["host"].is_object(), "{loaded}");
    assert!(!dyno.path("o/runs/cell0001-rep02.load").exists(), "the second run begins with the copy");
    assert!(phase(&dyno.summary("o/runs/cell0001-rep02"), "measure")["monitor"].is_object());
    let events = std::fs::read_to_string(dyno.path(load).join("events.jsonl")).unwrap();
    assert!(events.contains("trace_begin") && events.contains("trace_end"), "{events}");
    assert_exit(&dyno.run(&["report", load]), &[0]);
}
