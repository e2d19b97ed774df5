//! Presets, end to end on real servers at small scale: the performance lab with its filesystems.

use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, phase, skip, skip_because, stdout};
use serde_json::Value;
use std::process::Output;

/// The runs of an experiment, as its journal ends them.
fn ended(dyno: &Dyno, folder: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dyno.path(folder).join("journal.jsonl")).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|line| line["event"] == "ended").collect()
}

fn run(dyno: &Dyno, preset: &str, folder: &str, sets: &[&str]) -> Output {
    let mut words = vec!["run", preset, "--out", folder, "--quiet"];
    sets.iter().for_each(|set| words.extend(["--set", set]));
    dyno.run(&words)
}

fn without_redis(what: &str) -> bool {
    let absent = dyno_databases::spawn::find_server(Some("redis")).is_none();
    if absent {
        skip(what);
    }
    absent
}

fn has_mongod(what: &str) -> bool {
    let there = std::process::Command::new("mongod").arg("--version").output().is_ok();
    if !there {
        skip_because(what, "mongod is not on PATH");
    }
    there
}

/// A file of a run as it stands in the experiment.
fn of_run(dyno: &Dyno, folder: &str, run: &Value, name: &str) -> Value {
    let path = dyno.path(folder).join(run["dir"].as_str().unwrap()).join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn the_lab_asks_whether_the_laws_hold() {
    // As it is on the server it is made for; where there is none, on Redis.
    let mut small = vec!["duration=1s", "records=1000"];
    if !has_mongod("preset lab/operational-laws on mongod") {
        if without_redis("preset lab/operational-laws") {
            return;
        }
        small.push("server.kind=redis");
    }
    let dyno = Dyno::new();
    let ran = run(&dyno, "lab/operational-laws", "lab", &small);
    dyno.assert_ran(&ran);
    let runs = ended(&dyno, "lab");
    assert_eq!(runs.len(), 20, "{runs:?}");
    assert!(runs.iter().all(|run| run["status"] == "complete"), "{runs:?}");
    // Its levels are numbers of users and rates by turns: the users make a sweep.
    let explained = dyno.run(&["explain", "lab"]);
    assert_exit(&explained, &[0]);
    let output = stdout(&explained);
    assert!(output.contains("Little's law") && output.contains("N*"), "{output}");
    let sheet = dyno.run(&["export", "lab", "--format", "xlsx", "-o", "lab.xlsx"]);
    assert_exit(&sheet, &[0]);
    assert!(std::fs::metadata(dyno.path("lab.xlsx")).unwrap().len() > 5_000);
}

#[test]
fn the_labs_filesystems() {
    if without_redis("presets lab/operational-laws-*") {
        return;
    }
    for filesystem in ["xfs", "ext4", "raid0"] {
        let preset = format!("lab/operational-laws-{filesystem}");
        let dyno = Dyno::new();
        let small = [
            "server.kind=redis",
            "factors.test=[{label: x-max, users: 4}]",
            "duration=1s",
            "records=1000",
            "server.data.image.size=320MiB",
        ];
        let ran = run(&dyno, &preset, "lab", &small);
        let runs = ended(&dyno, "lab");
        let message = runs[0]["words"].as_str().unwrap_or_default().to_owned();
        // Loop devices and filesystems need root, and what the kernel has.
        if runs[0]["status"] == "failed"
            && (message.contains("if_not_permitted") || message.contains("md driver"))
        {
            skip_because(&preset, &message);
            continue;
        }
        dyno.assert_ran(&ran);
        assert_eq!(runs[0]["status"], "complete", "{preset}: {message}");
        let facts = of_run(&dyno, "lab", &runs[0], "run.json")["facts"].to_string();
        let expected = if filesystem == "raid0" { "xfs" } else { filesystem };
        assert!(facts.contains(expected), "{preset}: {facts}");
    }
}

#[test]
fn percona_compares_the_storage_engines_of_mongod() {
    if !has_mongod("preset percona/storage-engines") {
        return;
    }
    let dyno = Dyno::new();
    let small = [
        "engine=[mmapv1,wiredTiger]",
        "memory=[8/16,16/32]",
        "workload.sysbench.NUM_COLLECTIONS=2",
        "workload.sysbench.NUM_DOCUMENTS_PER_COLLECTION=1000",
        "workload.sysbench.NUM_WRITER_THREADS=2",
        "server.if_not_permitted=continue",
        "duration=2s",
        "window={}",
    ];
    let ran = run(&dyno, "percona/storage-engines", "o", &small);
    dyno.assert_ran(&ran);
    let runs = ended(&dyno, "o");
    assert_eq!(runs.len(), 4, "{runs:?}");
    let mut data = std::collections::BTreeMap::<String, Vec<String>>::new();
    for one in &runs {
        let message = one["words"].as_str().unwrap_or_default();
        // mmapv1 has been gone since 4.2.
        if one["status"] == "failed" && message.contains("mmapv1 was removed in mongod 4.2") {
            skip_because("mmapv1 of mongod", "this one does not have it");
            continue;
        }
        assert_eq!(one["status"], "complete", "{one}");
        let facts = of_run(&dyno, "o", one, "run.json")["facts"].clone();
        let engine = facts["engine"].as_str().unwrap();
        assert_eq!(one["cell"].as_u64().unwrap() > 2, engine != "mmapv1", "{one} {engine}");
        let begun = facts["volume.data"].as_str().unwrap().to_owned();
        data.entry(engine.to_owned()).or_default().push(begun);
        // The server is ended and started again for the copy of its data, before and while it is watched.
        let summary = of_run(&dyno, "o", one, "summary.json");
        let reasons = summary["verdict"]["reasons"].to_string();
        assert!(!reasons.contains("fell silent"), "{reasons}");
        let used = &phase(&summary, "measure")["monitor"]["server"];
        assert!(used["cpu_cores"].as_f64().is_some_and(|cores| cores > 0.0), "{used}");
    }
    // One load for each engine, which all its limits of memory begin with, and which goes with the experiment.
    assert!(data.contains_key("wiredTiger"), "{data:?}");
    assert!(data.values().all(|begun| begun == &["loaded", "reused"]), "{data:?}");
    let left: Vec<_> =
        std::fs::read_dir(dyno.path("o/volumes")).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["loaded.json"]);
}

/// As written, shortened by `--set duration` alone: 1.25 million documents for each engine, all levels of memory.
#[test]
#[ignore = "loads for minutes: scripts/test-presets.sh"]
fn percona_as_written_at_its_smallest_scale() {
    if !has_mongod("percona/storage-engines --scale 512") {
        return;
    }
    let dyno = Dyno::new();
    for (preset, engine) in
        [("percona/storage-engines", "wiredTiger"), ("percona/engines-embedded", "sqlite")]
    {
        let folder = preset.replace('/', "-");
        let words =
            ["run", preset, "--scale", "512", "--set", "duration=10s", "--out", folder.as_str(), "--quiet"];
        let ran = dyno.run(&words);
        dyno.assert_ran(&ran);
        let runs = ended(&dyno, &folder);
        let label = |run: &Value| {
            let record = std::fs::read_to_string(dyno.path(&folder).join("experiment.json")).unwrap();
            let record: Value = serde_json::from_str(&record).unwrap();
            record["cells"][run["cell"].as_u64().unwrap() as usize - 1]["label"].as_str().unwrap().to_owned()
        };
        let own: Vec<&Value> = runs.iter().filter(|run| label(run).contains(engine)).collect();
        assert_eq!(own.len(), 3, "{runs:?}");
        for run in &own {
            assert_eq!(run["status"], "complete", "{run}");
            assert!(run["throughput"].as_f64().unwrap() > 0.0, "{run}");
            // The question is asked: what is asked for does not lie in the cache.
            let summary = of_run(&dyno, &folder, run, "summary.json");
            let collections = phase(&summary, "measure")["collections"]["after"].as_object();
            let documents: u64 = collections.map_or(0, |all| {
                all.values().filter_map(|figures| figures["count"].as_f64()).sum::<f64>() as u64
            });
            assert!(preset.ends_with("embedded") || documents > 1_000_000, "{summary}");
        }
    }
}

#[test]
#[ignore = "loads three million records: scripts/test-presets.sh"]
fn the_lab_as_written() {
    if !has_mongod("lab/operational-laws") {
        return;
    }
    let dyno = Dyno::new();
    let ran = run(&dyno, "lab/operational-laws", "lab", &["duration=5s"]);
    dyno.assert_ran(&ran);
    let runs = ended(&dyno, "lab");
    assert_eq!(runs.len(), 20, "{runs:?}");
    assert!(runs.iter().all(|run| run["status"] == "complete"), "{runs:?}");
    let explained = stdout(&dyno.run(&["explain", "lab"]));
    assert!(explained.contains("Little's law") && explained.contains("N*"), "{explained}");
}

#[test]
#[ignore = "sixteen mongods at once, four times: scripts/test-presets.sh"]
fn best_known_configurations() {
    if !has_mongod("presets wsf/bkm-*") {
        return;
    }
    for (name, pairs) in [("icx", 16), ("spr", 16), ("m6i.32xlarge", 16), ("m6i.16xlarge", 8)] {
        let (preset, dyno) = (format!("wsf/bkm-{name}"), Dyno::new());
        let ran = run(&dyno, &preset, "bkm", &["records=200", "duration=3s"]);
        dyno.assert_ran(&ran);
        let runs = ended(&dyno, "bkm");
        assert!(runs.len() == 1 && runs[0]["status"] == "complete", "{preset}: {runs:?}");
        let summary = of_run(&dyno, "bkm", &runs[0], "summary.json");
        assert_eq!(dyno_testkit::outcome(phase(&summary, "load"), "ok"), 200 * pairs, "{preset}");
        let measured = &phase(&summary, "measure")["outcomes"];
        assert!(measured["ok"].as_u64().unwrap() > 1000, "{preset}: {measured}");
    }
}

#[test]
fn an_engine_that_mongod_does_not_have_is_told_before_anything_is_loaded() {
    if !has_mongod("engines of mongod") {
        return;
    }
    let dyno = Dyno::new();
    let refused = dyno.run(&[
        "run",
        "percona/storage-engines",
        "--scale",
        "8",
        "--set",
        "engine=[rocksdb]",
        "--out",
        "o",
    ]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    if refused.status.code() != Some(2) {
        return skip_because("an engine that is missing", "this mongod has rocksdb");
    }
    assert!(message.contains("has no storage engine rocksdb: server.program names another"), "{message}");
    assert!(!dyno.path("o").exists(), "nothing is begun");
}

#[test]
fn proofs_of_an_ingest_rate() {
    let Some(server) = Mongo::java() else { return skip("presets ingest/*") };
    // Documents vary in length: the mean of those that are in comes near the mean of all.
    for (size, kb, documents) in [("small", 1.003, 400), ("medium", 10.03, 200), ("large", 50.01, 40)] {
        let (preset, dyno) = (format!("ingest/{size}"), Dyno::new());
        let printed = stdout(&dyno.run(&["presets", &preset]));
        let flags = printed.lines().find_map(|line| line.trim().strip_prefix("pocdriver: ")).unwrap();
        let flags = format!("workload.pocdriver={} -b 10 -q {documents}", flags.trim_matches('"'));
        let target = format!("target={}", server.uri(size));
        let run = |out: &str, claim: &str| {
            run(
                &dyno,
                &preset,
                out,
                &[&target, &flags, "duration=2s", &format!("require=[throughput > {claim}]")],
            )
        };
        let ran = run("kept", "1");
        dyno.assert_ran(&ran);
        let runs = ended(&dyno, "kept");
        assert_eq!(runs[0]["status"], "complete", "{preset}: {runs:?}");
        let summary = dyno.summary(&format!("kept/{}", runs[0]["dir"].as_str().unwrap()));
        let collections = phase(&summary, "measure")["collections"]["after"].as_object().unwrap();
        let size = collections.values().find_map(|figures| figures["avgObjSize"].as_f64()).unwrap() / 1024.0;
        assert!((size / kb - 1.0).abs() < 0.005, "{preset}: documents of {size} KB");
        // A claim that is not met: everything is there, and the code says so.
        assert_exit(&run("missed", "1000000"), &[4]);
        assert_eq!(ended(&dyno, "missed")[0]["status"], "complete");
    }
}
