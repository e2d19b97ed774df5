//! `dyno wsf`: what ctest.sh can do beside running a case: windows with tracers and KPIs, test sets, the background, a prepared
//! host; and what is refused.

use dyno_testkit::{Dyno, assert_exit, skip, stderr, stdout};
use std::fs;
use std::time::{Duration, Instant};

fn has_redis() -> bool {
    dyno_databases::spawn::find_server(Some("redis")).is_some()
}

const SMALL: [&str; 5] = ["--server", "redis", "--noenv", "-q", "--if-not-permitted=continue"];

#[test]
fn windows_have_tracers_and_kpis() {
    if !has_redis() {
        return skip("windows_have_tracers_and_kpis");
    }
    let dyno = Dyno::new();
    let sets = [
        "--set=EVENT_TRACE_PARAMS=time,1,2,roi,LOAD PHASE,RUN PHASE,time,60,1",
        "--set=TARGET=1000/MAX_EXECUTION_TIME=4/OPERATION_COUNT=0/RECORD_COUNT=1000/CLIENT_SERVER_PAIR=1",
        "--trace",
        "sleep 600",
    ];
    let output = dyno.run(&[&["wsf", "read"], &SMALL[..], &sets].concat());
    // A machine that is busy elsewhere may lag behind the rate.
    dyno.assert_ran(&output);
    let home = dyno.path("logs-mongodb_ycsb_read");
    let kpis = fs::read_to_string(home.join("itr-1/kpi.txt")).unwrap();
    let figure = |name: &str| -> f64 {
        let line =
            kpis.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {kpis}"));
        line.trim().parse().unwrap()
    };
    let rate = figure("Sum of [RUN PHASE] Throughput in window 1-3 s(ops/sec):");
    assert!((950.0..1_050.0).contains(&rate), "{rate}");
    assert!(figure("P99 of [RUN PHASE] read latency in window 1-3 s(us):") > 0.0);
    assert!(
        kpis.contains("# Sum of [RUN PHASE] Throughput in window 60-61 s: the run phase ended before"),
        "{kpis}"
    );
    let run = fs::read_dir(home.join("experiment/runs")).unwrap().next().unwrap().unwrap().path();
    let events = fs::read_to_string(run.join("events.jsonl")).unwrap();
    let at = |event: &str, message: &str| {
        let line = events.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let mut found =
            line.filter(|line| line["event"] == event && line["text"].as_str().unwrap().starts_with(message));
        let at = found.next().unwrap_or_else(|| panic!("no {event} {message} in {events}"));
        at["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
    };
    let (begin, first, last) = (at("begin", "measure"), at("trace_begin", "1 "), at("trace_end", "1 "));
    assert!((900..1_400).contains(&(first - begin)) && (1_900..2_500).contains(&(last - first)), "{events}");
    assert!(at("trace_begin", "2 ") >= at("begin", "load") && at("trace_end", "2 ") <= begin, "{events}");
    assert!(events.contains("the phase ended before its window"), "{events}");
    let listed = dyno.run(&["wsf", "list-kpi", "--sutinfo", "--recent", "--all", "--filter", "x"]);
    assert_exit(&listed, &[0]);
    assert!(stdout(&listed).contains("\n# cpu."), "{}", stdout(&listed));
    assert!(stdout(&listed).contains("in window 1-3 s(ops/sec): "), "{}", stdout(&listed));
    assert!(stderr(&listed).contains("--filter: without effect"), "{}", stderr(&listed));
    let table = stdout(&dyno.run(&["wsf", "list-kpi", "--svrinfo", "--format=xls-list"]));
    assert!(table.contains("\nkernel."), "{table}");
}

#[test]
fn a_set_of_tests_runs_in_the_background() {
    if !has_redis() {
        return skip("a_set_of_tests_runs_in_the_background");
    }
    let dyno = Dyno::new();
    let text = "\
PLATFORM: ICX
BENCHMARK: Mongo-YCSB
testcase: test_mongodb_ycsb_gated
sync: true
---
testcases: [mongodb_ycsb_read, mongodb_ycsb_write]
run: 2
RECORD_COUNT: 500
OPERATION_COUNT: 2000
CLIENT_SERVER_PAIR: 1
THREADS: [1, 2]
";
    fs::write(dyno.path("set.yaml"), text).unwrap();
    let output = dyno.run(&[&["wsf", "--testset", "set.yaml", "--nohup=out.log"], &SMALL[..]].concat());
    dyno.assert_ran(&output);
    assert!(stderr(&output).contains("goes on in the background, output in out.log"), "{}", stderr(&output));
    let iterations = || -> usize {
        let logs = fs::read_dir(dyno.path("")).unwrap().flatten().map(|entry| entry.path());
        logs.flat_map(|home| fs::read_dir(home).into_iter().flatten().flatten())
            .filter(|entry| entry.path().join("kpi.txt").is_file())
            .count()
    };
    let end = Instant::now() + Duration::from_secs(90);
    // One gated; two cases with two values of THREADS, twice each.
    while iterations() < 9 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = fs::read_to_string(dyno.path("out.log")).unwrap();
    assert_eq!(iterations(), 9, "{log}");
    let wrong = [
        ("testcase: mongodb_ycsb_read\nTHREDS: 1\n", "THREDS"),
        ("testcase: mongodb_ycsb_read\n---\nloops: 1\n", "set.yaml:3:"),
        ("testcase: nope\n", "nope"),
        ("BENCHMARK: Redis\ntestcase: x\n", "set.yaml:1:12: BENCHMARK: expected Mongo-YCSB"),
        ("RUN: 1\n", "names the test"),
        ("---\n", "names no test"),
    ];
    for (text, message) in wrong {
        fs::write(dyno.path("set.yaml"), text).unwrap();
        let output = dyno.run(&["wsf", "--testset", "set.yaml", "--server", "redis", "--noenv"]);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(message), "{text}: {}", stderr(&output));
    }
}

#[test]
fn the_host_is_prepared_reused_and_cleaned_up() {
    if !has_redis() {
        return skip("the_host_is_prepared_reused_and_cleaned_up");
    }
    let dyno = Dyno::new();
    let with = |option: &str| dyno.run(&[&["wsf", "gated", option], &SMALL[..]].concat());
    let early = with("--reuse-sut");
    assert_exit(&early, &[2]);
    assert!(stderr(&early).contains("was not prepared"), "{}", stderr(&early));
    dyno.assert_ran(&with("--prepare-sut"));
    let facts = dyno.path("sut-logs-mongodb_ycsb_gated/sutinfo.json");
    let text = fs::read_to_string(&facts).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["system"]["facts"]["vm"]["swappiness"] = "never seen".into();
    fs::write(&facts, value.to_string()).unwrap();
    let reused = with("--reuse-sut");
    dyno.assert_ran(&reused);
    assert!(stderr(&reused).contains("vm.swappiness has changed since"), "{}", stderr(&reused));
    assert!(dyno.path("logs-mongodb_ycsb_gated/itr-1/kpi.txt").is_file());
    let burst = dyno.run(&[&["wsf", "gated", "--reuse-sut", "--burst=2"], &SMALL[..]].concat());
    assert_exit(&burst, &[2]);
    assert_exit(&with("--cleanup-sut"), &[0]);
    assert!(!dyno.path("sut-logs-mongodb_ycsb_gated").exists());
}

#[test]
fn what_needs_more_than_one_host_is_refused_or_said() {
    let dyno = Dyno::new();
    for (option, message) in [
        ("--check-docker-image", "there are no images"),
        ("--push-docker-image=x", "there are no images"),
        ("--attach=x", "logs are a folder"),
        ("--timeout=5", "MAX_EXECUTION_TIME"),
        ("--rerun-failed", "--continue"),
        ("--options=--emon", "--perf"),
        ("--trace=", "expected a command"),
    ] {
        let output = dyno.run(&["wsf", "gated", "--noenv", "--dry-run", option]);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(message), "{option}: {}", stderr(&output));
    }
    let arguments = ["wsf", "gated", "--noenv", "--dry-run", "--burst-align", "-j", "4", "--novalidate"];
    let output = dyno.run(&[&arguments[..], &["--options=--sar --iostat"]].concat());
    assert_exit(&output, &[0]);
    for message in ["--burst-align: without effect", "-j: without effect", "--novalidate: without effect"] {
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
    assert!(stdout(&output).contains("\"command\":[\"sar\",\"-A\",\"5\"]"), "{}", stdout(&output));
    let published = dyno.run(&["wsf", "list-kpi", "--intel_publish"]);
    assert_exit(&published, &[2]);
    assert!(stderr(&published).contains("needs the framework's own service"), "{}", stderr(&published));
}
