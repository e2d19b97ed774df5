//! Loaded data that outlive their run: reused where they are what the run would load, and loaded anew, with the reason, where
//! they are not.

use dyno_testkit::{Dyno, assert_exit, skip};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn has_redis(what: &str) -> bool {
    let there = dyno_databases::spawn::find_server(Some("redis")).is_some();
    if !there {
        skip(what);
    }
    there
}

/// An experiment whose data are the volume `v` in `data`.
fn experiment(dyno: &Dyno, name: &str, server: &str, rest: &str) -> Vec<Value> {
    fs::create_dir_all(dyno.path("data")).unwrap();
    let text = format!(
        "server: {{kind: redis, {server}data: {{path: data, volume: {{name: v}}}}}}\nclient: {{threads: 1}}\norder: file\n{rest}"
    );
    let file = format!("{name}.yaml");
    fs::write(dyno.path(&file), text).unwrap();
    let output = dyno.run(&["run", &file, "--out", name, "--quiet"]);
    dyno.assert_ran(&output);
    let journal = fs::read_to_string(dyno.path(name).join("journal.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended: Vec<Value> = lines.filter(|line| line["event"] == "ended").collect();
    ended
        .iter()
        .map(|run| {
            let dir = dyno.path(name).join(run["dir"].as_str().unwrap());
            let read =
                |file: &str| serde_json::from_slice::<Value>(&fs::read(dir.join(file)).unwrap()).unwrap();
            let phases: Vec<Value> = read("summary.json")["phases"]
                .as_array()
                .unwrap()
                .iter()
                .map(|p| p["name"].clone())
                .collect();
            let mut facts = read("run.json")["facts"].clone();
            facts["phases"] = Value::Array(phases);
            facts
        })
        .collect()
}

const PHASES: &str = "phases: {measure: {users: 4, operations: 400, warmup: 0s}}\n";

fn ycsb(message: &str) -> String {
    format!("workload: {{ycsb: {{{message}}}}}\n{PHASES}")
}

fn folders(path: &Path) -> Vec<String> {
    let mut all: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    all.sort();
    all
}

#[test]
fn loaded_once_and_reused_while_they_match() {
    if !has_redis("volumes of loaded data") {
        return;
    }
    let dyno = Dyno::new();
    let base = ycsb("workload: a, records: 1000");
    let first = experiment(&dyno, "one", "", &base);
    assert_eq!((&first[0]["volume.data"], &first[0]["volume.name"]), (&"loaded".into(), &"v".into()));
    assert_eq!(first[0]["volume.why"], "there is no such volume yet");
    // A thousand records and YCSB's index of them.
    assert_eq!(first[0]["volume.count"], "1001");
    assert_eq!(first[0]["phases"], serde_json::json!(["load", "measure"]));
    assert!(first[0]["volume.load_seconds"].as_str().unwrap().parse::<f64>().unwrap() > 0.0);
    // Another experiment, another mix, inserts that the volume does not keep: the same data.
    for (name, letter) in [("two", "d"), ("three", "b")] {
        let again = experiment(&dyno, name, "", &ycsb(&format!("workload: {letter}, records: 1000")));
        assert_eq!(again[0]["volume.data"], "reused", "{again:?}");
        assert_eq!(again[0]["phases"], serde_json::json!(["measure"]), "nothing is loaded");
        for fact in ["volume.loaded", "volume.load_seconds", "volume.count", "volume.loaded_by"] {
            assert_eq!(again[0][fact], first[0][fact], "{fact}");
        }
    }
    // Always loads into an empty server; a full one is what it would have made.
    let always = base.replace("phases: {", "phases: {load: {when: always}, ");
    assert_eq!(experiment(&dyno, "always", "", &always)[0]["volume.data"], "reused");
    let other =
        experiment(&dyno, "other", "", &ycsb("workload: a, records: 1000, properties: {fieldcount: 3}"));
    assert_eq!(other[0]["volume.data"], "loaded");
    assert_eq!(other[0]["volume.why"], "fieldcount: 10 there, 3 asked for");
    let back = experiment(&dyno, "back", "", &base);
    assert_eq!(back[0]["volume.why"], "fieldcount: 3 there, 10 asked for");
    assert_eq!(folders(&dyno.path("data")), ["v.volume"], "nothing but the volume is left");
    let note: Value = serde_json::from_slice(&fs::read(dyno.path("back/volumes/v.json")).unwrap()).unwrap();
    assert_eq!((&note["own"], &note["count"]), (&true.into(), &1001.into()));
}

#[test]
fn data_that_are_not_whole_are_loaded_anew() {
    if !has_redis("volumes that are not whole") {
        return;
    }
    let dyno = Dyno::new();
    let base = ycsb("workload: c, records: 1000");
    experiment(&dyno, "one", "", &base);
    let record = dyno.path("data/v.volume/record.json");
    let change = |from: &str, to: &str| {
        let text = fs::read_to_string(&record).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&record, text.replace(from, to)).unwrap();
    };
    change("\"count\": 1001", "\"count\": 1002");
    let facts = experiment(&dyno, "two", "", &base);
    assert_eq!(facts[0]["volume.why"], "count: 1002 were loaded, 1001 are there");
    assert_eq!(facts[0]["phases"], serde_json::json!(["load", "measure"]));
    // A file that Redis cannot read.
    fs::write(dyno.path("data/v.volume/data-0/dump.rdb"), "REDIS0009 and then nothing").unwrap();
    let facts = experiment(&dyno, "three", "", &base);
    let why = facts[0]["volume.why"].as_str().unwrap();
    assert!(why.starts_with("no server starts with its data: "), "{why}");
    // A load that never came to its end has no record.
    fs::remove_file(&record).unwrap();
    assert_eq!(experiment(&dyno, "four", "", &base)[0]["volume.why"], "no load into it has come to its end");
    change("\"version\": \"", "\"version\": \"not ");
    let why = experiment(&dyno, "five", "", &base)[0]["volume.why"].as_str().unwrap().to_owned();
    assert!(why.starts_with("version: not "), "{why}");
    assert_eq!(experiment(&dyno, "six", "", &base)[0]["volume.data"], "reused");
}

#[test]
fn an_experiments_own_loads_count_or_none() {
    if !has_redis("reuse of an experiment's own loads") {
        return;
    }
    let dyno = Dyno::new();
    let rest = format!("{}repetitions: 2\n", ycsb("workload: a, records: 500"));
    experiment(&dyno, "matching", "", &ycsb("workload: a, records: 500"));
    let with = |name: &str, reuse: &str| {
        let text = format!(
            "server: {{kind: redis, data: {{path: data, volume: {{name: v, reuse: {reuse}}}}}}}\n{rest}"
        );
        fs::write(dyno.path("x.yaml"), text).unwrap();
        dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", name, "--quiet"]));
        [1, 2].map(|repetition| {
            let run = dyno.path(name).join(format!("runs/cell0001-rep{repetition:02}/run.json"));
            let run: Value = serde_json::from_slice(&fs::read(run).unwrap()).unwrap();
            (run["facts"]["volume.data"].clone(), run["facts"]["volume.why"].clone())
        })
    };
    let [first, second] = with("own", "own");
    assert_eq!(first, ("loaded".into(), "another experiment has loaded it (reuse: own)".into()));
    assert_eq!(second, ("reused".into(), Value::Null));
    let [first, second] = with("never", "never");
    assert_eq!(first, ("loaded".into(), "every run loads (reuse: never)".into()));
    assert_eq!(first, second);
}

#[test]
fn clusters_come_back_on_other_ports() {
    if !has_redis("volumes of clusters") {
        return;
    }
    let dyno = Dyno::new();
    let base = ycsb("workload: a, records: 1000");
    let cluster = "topology: cluster, replicas: 1, ";
    let first = experiment(&dyno, "one", cluster, &base);
    assert_eq!(first[0]["volume.data"], "loaded");
    let second = experiment(&dyno, "two", cluster, &base);
    assert_eq!(second[0]["volume.data"], "reused", "{second:?}");
    assert_eq!(second[0]["volume.count"], first[0]["volume.count"]);
    let single = experiment(&dyno, "three", "", &base);
    let why = single[0]["volume.why"].as_str().unwrap();
    assert!(why.contains("topology: cluster there, single asked for"), "{why}");
}

#[test]
fn what_cannot_be_a_volume_is_refused() {
    let dyno = Dyno::new();
    for (text, why) in [
        (
            "ssh: {servers: [h]}\nserver: {kind: redis, data: {volume: {name: v}}}",
            "expected server.data.path, too",
        ),
        ("server: {kind: redis, data: {path: ., volume: {name: V.1}}}", "small letters, digits and dashes"),
        (
            "server: {kind: redis, data: {path: ., snapshot: true, volume: {name: v}}}",
            "remove snapshot and image",
        ),
        (
            "server: {kind: redis, data: {path: ., volume: {name: v}}}\nserver_lifetime: shared",
            "server_lifetime: run",
        ),
        (
            "server: {kind: redis, data: {volume: {name: v}}}\nkubernetes: {}",
            "expected kubernetes.storage, too",
        ),
        (
            "server: {kind: mongod, topology: replica_set, data: {path: ., volume: {name: v}}}",
            "expected server.port",
        ),
    ] {
        fs::write(dyno.path("x.yaml"), text).unwrap();
        let output = dyno.run(&["plan", "x.yaml"]);
        assert_exit(&output, &[2]);
        assert!(dyno_testkit::stderr(&output).contains(why), "{text}: {}", dyno_testkit::stderr(&output));
    }
}
