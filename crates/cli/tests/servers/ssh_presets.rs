//! bexhoma's presets on hosts of ssh, at small scale, with Redis in Dragonfly's place.

use dyno_testkit::lab;
use dyno_testkit::{Dyno, skip_because};
use lab::Lab;
use serde_json::Value;
use std::path::PathBuf;
use std::time::Instant;

/// Ten thousand records, loaded by eight workers, and ten thousand operations by one of them; the records of all runs.
fn preset(lab: &Lab, dyno: &Dyno, number: u32, more: &[&str]) -> Vec<(PathBuf, Value)> {
    let out = format!("preset-{number}");
    let name = format!("bexhoma/dragonfly-{number}");
    let config = format!("ssh.config={}", lab.path("ssh_config").display());
    let far = format!("ssh.directory={}", lab.path("far").display());
    let sets = [
        "kubernetes=null",
        "server.kind=redis",
        "ssh.clients=[load1, load2]",
        "ssh.servers=[db]",
        &config,
        &far,
        "client.workers=4",
        "workload.ycsb.records=10000",
        "phases.load.rate=10000",
        "phases.measure.operations=10000",
        "phases.measure.rate=5000",
    ];
    let mut words = vec!["run", &name, "--out", &out, "--quiet"];
    sets.iter().chain(more).for_each(|set| words.extend(["--set", set]));
    // A busy host makes a verdict of its own.
    let begun = Instant::now();
    dyno.assert_ran(&dyno.run(&words));
    let seconds = begun.elapsed().as_secs();
    let text = std::fs::read_to_string(dyno.path(&out).join("journal.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended = lines.filter(|line| line["event"] == "ended");
    ended
        .map(|record| {
            assert_eq!(record["status"], "complete", "{record}");
            let dir = dyno.path(&out).join(record["dir"].as_str().unwrap());
            let run = std::fs::read(dir.join("run.json")).unwrap();
            let summary = dyno.summary(dir.to_str().unwrap());
            let phases = summary["phases"].as_array().unwrap().iter();
            let rates: Vec<String> = phases
                .map(|phase| format!("{} {:.0}/s", phase["name"], phase["throughput"].as_f64().unwrap()))
                .collect();
            say(&format!("preset {number} on hosts: {}; {seconds} s for all runs", rates.join(", ")));
            (dir, serde_json::from_slice(&run).unwrap())
        })
        .collect()
}

#[expect(clippy::print_stderr, reason = "the figures are written down in docs/clusters.md")]
fn say(message: &str) {
    eprintln!("{message}");
}

/// What a phase of a run has done well.
fn ok(dyno: &Dyno, run: &(PathBuf, Value), phase: &str) -> u64 {
    dyno_testkit::outcome(dyno_testkit::phase(&dyno.summary(run.0.to_str().unwrap()), phase), "ok")
}

#[test]
fn all_five_on_hosts() {
    let Some(lab) = Lab::new(&["db", "load1", "load2"]) else {
        return skip_because("presets on hosts of ssh", "no network namespaces, or no sshd");
    };
    let dyno = Dyno::new();
    for number in [1, 2, 3] {
        let runs = preset(&lab, &dyno, number, &[]);
        assert_eq!(runs.len(), 1, "preset {number}");
        assert_eq!(ok(&dyno, &runs[0], "load"), 10_000, "preset {number}: by eight workers");
        assert_eq!(ok(&dyno, &runs[0], "measure"), 10_000, "preset {number}: by one of them");
    }
    let shelf = lab.path("shelf");
    std::fs::create_dir(&shelf).unwrap();
    let path = format!("server.data.path={}", shelf.display());
    for number in [4, 5] {
        let runs = preset(&lab, &dyno, number, &[&path]);
        let facts = |run: usize, name: &str| runs[run].1["facts"][name].clone();
        assert_eq!(runs.len(), 2, "preset {number}");
        assert_eq!(facts(0, "volume.data"), "loaded", "preset {number}");
        assert_eq!(ok(&dyno, &runs[0], "load"), 10_000, "preset {number}");
        assert_eq!(facts(1, "volume.data"), "reused", "preset {number}: {}", facts(1, "volume.why"));
        // The records, and YCSB's index of them.
        assert_eq!(facts(1, "volume.count"), "10001", "preset {number}");
        for run in &runs {
            assert_eq!(ok(&dyno, run, "measure"), 10_000, "preset {number}");
        }
    }
    // Data that were changed behind dyno's back are loaded anew, and the reason is told.
    let volume = std::fs::read_dir(&shelf).unwrap().flatten().map(|entry| entry.path());
    for record in volume.map(|folder| folder.join("record.json")) {
        let text = std::fs::read_to_string(&record).unwrap();
        std::fs::write(&record, text.replace("\"count\": 10001", "\"count\": 10002")).unwrap();
    }
    let runs = preset_again(&lab, &dyno, &path);
    assert_eq!(runs["facts"]["volume.data"], "loaded");
    assert_eq!(runs["facts"]["volume.why"], "count: 10002 were loaded, 10001 are there");
    for host in ["db", "load1", "load2"] {
        assert_eq!(lab.processes(host, "dyno"), Vec::<u32>::new(), "{host}");
        assert_eq!(lab.processes(host, "redis-server"), Vec::<u32>::new(), "{host}");
    }
}

/// The fourth once more, as another experiment that takes what others have loaded.
fn preset_again(lab: &Lab, dyno: &Dyno, path: &str) -> Value {
    std::fs::remove_dir_all(dyno.path("preset-4")).unwrap();
    let sets = [path, "server.data.volume.reuse=matching", "repetitions=1"];
    preset(lab, dyno, 4, &sets).remove(0).1
}
