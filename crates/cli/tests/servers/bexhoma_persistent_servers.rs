//! `dyno bexhoma ycsb ... load` and `start`: servers that outlive their command, what `status` says of them, runs that use them,
//! and `stop`.

use dyno_testkit::{Dyno, assert_exit, skip, stderr, stdout};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

const FLAGS: &str = "-dbms Redis -sf 1 -xwl a -xop 1 -xtb 500 -xnlf 4 -xnbf 2 -nlp 2 -nlt 4 -nbt 4 -m --local --scale 1000 \
                     --set client.threads=1 --resultfolder results -q";

fn bexhoma(dyno: &Dyno, text: &str) -> Output {
    let mut all = vec!["bexhoma"];
    all.extend(text.split_whitespace());
    dyno.run(&all)
}

fn has_redis(what: &str) -> bool {
    let there = dyno_databases::spawn::find_server(Some("redis")).is_some();
    if !there {
        skip(what);
    }
    there
}

/// Codes of all experiments, the oldest first.
fn codes(dyno: &Dyno) -> Vec<String> {
    let found = fs::read_dir(dyno.path("results")).into_iter().flatten().flatten();
    let mut all: Vec<String> = found.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    all.retain(|name| name.bytes().all(|c| c.is_ascii_digit()));
    all.sort();
    all
}

/// Processes that work below the folder: servers.
fn servers(dyno: &Dyno) -> Vec<u32> {
    let home = dyno.path("").canonicalize().unwrap();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&home)))
        .collect()
}

fn facts(dyno: &Dyno, code: &str) -> Value {
    let run = dyno.path("results").join(code).join("runs/cell0001-rep01/run.json");
    serde_json::from_slice::<Value>(&fs::read(run).unwrap()).unwrap()["facts"].clone()
}

/// Ends what a test that fails would leave.
struct Ends<'a>(&'a Dyno);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        bexhoma(self.0, "stop --resultfolder results");
    }
}

#[test]
fn loaded_used_and_stopped() {
    if !has_redis("dyno bexhoma load") {
        return;
    }
    let dyno = Dyno::new();
    let _ends = Ends(&dyno);
    let loaded = bexhoma(&dyno, &format!("ycsb {FLAGS} load"));
    assert_exit(&loaded, &[0]);
    let text = stdout(&loaded);
    let [code] = codes(&dyno).try_into().unwrap();
    for message in ["### Services", "* Redis-1: redis://127.0.0.1:", &format!("dyno bexhoma stop -e {code}")]
    {
        assert!(text.contains(message), "no {message:?} in\n{text}");
    }
    assert!(
        text.contains("TEST passed: Loading Phase: as many records as planned")
            && !text.contains("TEST failed"),
        "{text}"
    );
    assert_eq!(servers(&dyno).len(), 1, "the server, and nothing else, outlives the command");
    let status = stdout(&bexhoma(&dyno, "status --resultfolder results"));
    for line in [
        "Dashboard: absent",
        "Cluster Prometheus: absent",
        "Message Queue: absent",
        "Result directory: Running",
    ] {
        assert!(status.lines().any(|found| found.starts_with(line)), "no {line:?} in\n{status}");
    }
    let row = status.lines().find(|line| line.starts_with("| Redis-1")).unwrap_or_else(|| panic!("{status}"));
    let row: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    assert_eq!((row[1], row[3]), ("(1. Running)", "ycsb"));
    // A thousand records at two thousand a second.
    let seconds: f64 = row[2].parse().unwrap();
    assert!((0.4..5.0).contains(&seconds), "loaded [s]: {row:?}");
    assert!(status.contains(&format!("| {code}")), "{status}");
    uses(&dyno, &code);
    let refused = bexhoma(&dyno, &format!("ycsb {FLAGS} -sf 2 -e {code} run"));
    assert_exit(&refused, &[2]);
    let why = "other data are loaded: insertcount: 1000 there, 2000 asked for";
    assert!((stdout(&refused) + &stderr(&refused)).contains(why), "{}", stderr(&refused));
    let other = bexhoma(&dyno, &format!("ycsb {FLAGS} --set server.cache=64MiB -e {code} run"));
    assert!(
        (stdout(&other) + &stderr(&other)).contains("server.cache was another one"),
        "{}",
        stderr(&other)
    );
    let resumed = dyno.run(&["resume", &format!("results/{code}")]);
    assert_exit(&resumed, &[2]);
    assert!(stderr(&resumed).contains("its servers stand"), "{}", stderr(&resumed));
    let stopped = bexhoma(&dyno, &format!("stop -e {code} --resultfolder results"));
    assert_exit(&stopped, &[0]);
    assert_eq!(servers(&dyno), Vec::<u32>::new());
    let gone = bexhoma(&dyno, &format!("ycsb {FLAGS} -e {code} run"));
    assert_exit(&gone, &[2]);
    assert!(stderr(&gone).contains("no servers stand"), "{}", stderr(&gone));
    assert!(stderr(&bexhoma(&dyno, "stop --resultfolder results")).contains("nothing runs"));
}

/// Two runs with other flags of benchmarking, on the loaded data.
fn uses(dyno: &Dyno, code: &str) {
    let [before] = servers(dyno).try_into().unwrap();
    for (number, flags) in ["-nbt 2", "-nbp 2 -nc 2"].iter().enumerate() {
        let run = bexhoma(dyno, &format!("ycsb {FLAGS} {flags} -e {code} run"));
        dyno.assert_bexhoma_ran(&run);
        assert!(stderr(&run).contains(&format!("on the servers of {code}")), "{}", stderr(&run));
        assert!(stdout(&run).contains("Nothing was loaded"), "{}", stdout(&run));
        let code = &codes(dyno)[number + 1];
        let facts = facts(dyno, code);
        assert!(facts["server.standing"].as_str().unwrap().starts_with("since "), "{facts}");
        assert!(facts["server.load_seconds"].as_str().unwrap().parse::<f64>().unwrap() > 0.0, "{facts}");
        // Its CPU is watched as that of a server that was started for the run.
        let path = dyno.path("results").join(code).join("runs/cell0001-rep01/summary.json");
        let summary: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        let cores = &dyno_testkit::phase(&summary, "measure")["monitor"]["server"]["cpu_cores"];
        assert!(cores.as_f64().is_some_and(|cores| cores >= 0.0), "{summary}");
    }
    assert_eq!(servers(dyno), [before], "the same server, and no other");
}

#[test]
fn started_and_loaded_by_the_first_run() {
    if !has_redis("dyno bexhoma start") {
        return;
    }
    let dyno = Dyno::new();
    let _ends = Ends(&dyno);
    assert_exit(&bexhoma(&dyno, &format!("ycsb {FLAGS} -nw 3 start")), &[0]);
    let code = codes(&dyno)[0].clone();
    assert_eq!(servers(&dyno).len(), 3);
    let status = stdout(&bexhoma(&dyno, "status --resultfolder results"));
    let row = status
        .lines()
        .find(|line| line.starts_with("| RedisCluster-1"))
        .unwrap_or_else(|| panic!("{status}"));
    assert!(row.contains("not loaded") && row.contains("(3 Running)"), "{status}");
    let first = bexhoma(&dyno, &format!("ycsb {FLAGS} -nw 3 -e {code} run"));
    dyno.assert_bexhoma_ran(&first);
    assert!(stdout(&first).contains("[INSERT].Return=OK"), "it loads what is not there: {}", stdout(&first));
    let second = bexhoma(&dyno, &format!("ycsb {FLAGS} -nw 3 -e {code} run"));
    assert!(stdout(&second).contains("Nothing was loaded"), "{}", stdout(&second));
    // A server that dies is not replaced in silence.
    dyno_testkit::signal(servers(&dyno)[0], "KILL");
    let third = bexhoma(&dyno, &format!("ycsb {FLAGS} -nw 3 -e {code} run"));
    assert_exit(&third, &[3, 5]);
    assert!((stdout(&third) + &stderr(&third)).contains("no longer runs"), "{}", stderr(&third));
    assert_exit(&bexhoma(&dyno, "stop --resultfolder results"), &[0]);
    assert_eq!(servers(&dyno), Vec::<u32>::new());
}

#[test]
fn a_run_leaves_its_servers_and_another_loads_nothing() {
    if !has_redis("dyno bexhoma -ss, -sl") {
        return;
    }
    let dyno = Dyno::new();
    let _ends = Ends(&dyno);
    let empty = bexhoma(&dyno, &format!("ycsb {FLAGS} -sl run"));
    assert_exit(&empty, &[2]);
    assert!(stderr(&empty).contains("-sl: a server of its own begins with nothing"), "{}", stderr(&empty));
    let several = bexhoma(&dyno, &format!("ycsb {FLAGS} -nbt 2,4 -ss run"));
    assert_exit(&several, &[2]);
    assert!(stderr(&several).contains("-ss: leaves one configuration's servers"), "{}", stderr(&several));
    assert_eq!(codes(&dyno), Vec::<String>::new(), "nothing was begun");
    let run = bexhoma(&dyno, &format!("ycsb {FLAGS} -ss run"));
    dyno.assert_bexhoma_ran(&run);
    let [loaded, ran] = codes(&dyno).try_into().unwrap();
    let [server] = servers(&dyno).try_into().unwrap();
    assert!(stdout(&run).contains(&format!("dyno bexhoma stop -e {loaded}")), "{}", stdout(&run));
    assert!(facts(&dyno, &ran)["server.standing"].is_string(), "it ran on them");
    let next = bexhoma(&dyno, &format!("ycsb {FLAGS} -sl -e {loaded} run"));
    dyno.assert_bexhoma_ran(&next);
    let code = codes(&dyno)[2].clone();
    assert!(facts(&dyno, &code)["server.standing"].is_string() && servers(&dyno) == [server]);
    assert!(stdout(&next).contains("Nothing was loaded"), "{}", stdout(&next));
    assert_exit(&bexhoma(&dyno, "stop --resultfolder results"), &[0]);
    assert_eq!(servers(&dyno), Vec::<u32>::new());
}

#[test]
fn a_load_that_is_interrupted_leaves_nothing() {
    if !has_redis("an interrupted dyno bexhoma load") {
        return;
    }
    let dyno = Dyno::new();
    let _ends = Ends(&dyno);
    let text = format!("bexhoma ycsb {FLAGS} -xtb 10 load");
    let mut child = dyno.start(&text.split_whitespace().collect::<Vec<_>>());
    let loading = || {
        let found: Vec<PathBuf> =
            codes(&dyno).iter().map(|code| dyno.path("results").join(code).join("runs")).collect();
        let runs = found.iter().filter_map(|runs| fs::read_dir(runs).ok()).flatten().flatten();
        runs.into_iter().any(|run| run.path().join("intervals.jsonl").is_file())
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !loading() {
        assert!(std::time::Instant::now() < end, "the load does not begin");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let status = stdout(&bexhoma(&dyno, "status --resultfolder results"));
    assert!(status.contains("(1. Running)"), "{status}");
    dyno_testkit::signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(servers(&dyno), Vec::<u32>::new());
    assert!(!dyno.path("results").join(&codes(&dyno)[0]).join("standing.json").exists());
}

#[test]
fn volumes_are_loaded_once() {
    if !has_redis("-rst of dyno bexhoma") {
        return;
    }
    let dyno = Dyno::new();
    let run = |more: &str| {
        dyno.assert_bexhoma_ran(&bexhoma(&dyno, &format!("ycsb {FLAGS} -rst shared {more} run")));
        let code = codes(&dyno).pop().unwrap();
        let of = |repetition: u32| {
            let run =
                dyno.path("results").join(&code).join(format!("runs/cell0001-rep{repetition:02}/run.json"));
            let run: Value = serde_json::from_slice(&fs::read(run).unwrap()).unwrap();
            run["facts"]["volume.data"].as_str().unwrap().to_owned()
        };
        [of(1), of(2)]
    };
    assert_eq!(run("-nc 2"), ["loaded", "reused"]);
    assert_eq!(run("-nc 2"), ["reused", "reused"]);
    assert_eq!(run("-nc 2 -rsr"), ["loaded", "reused"], "-rsr begins with an empty volume, once");
    let status = stdout(&bexhoma(&dyno, "status --resultfolder results"));
    let line = |start: &str| {
        status.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{status}"))
    };
    assert!(line("| Volumes").contains("| storage_class_name "), "{status}");
    let row: Vec<&str> = line("| redis-ycsb-1-of-1000").trim_matches('|').split('|').map(str::trim).collect();
    assert_eq!((row[1], row[5]), ("redis", "redis"));
    assert!(row[3].parse::<f64>().is_ok_and(|seconds| seconds > 0.0), "loaded [s] is seconds: {row:?}");
    assert_eq!(servers(&dyno), Vec::<u32>::new());
}

#[test]
fn what_cannot_be_left_is_refused() {
    let dyno = Dyno::new();
    for (message, why) in [
        ("ycsb -dbms Redis -xwl a --local -nbt 2,4 start", "start: leaves one configuration's servers"),
        ("ycsb -dbms Redis -xwl a --local -e 7 load", "-e: load begins an experiment of its own"),
        ("ycsb -dbms Redis -xwl a --local -e 7 run", "-e 7: no experiment of that code"),
    ] {
        let output = bexhoma(&dyno, message);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(why), "{message}: {}", stderr(&output));
    }
}
