//! Trace windows of experiments on the built command: real commands on the phases' exact times.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn run(folder: &Path, text: &str) -> Output {
    std::fs::write(folder.join("x.yaml"), text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(["run", "x.yaml", "--out", "o", "--quiet"]).current_dir(folder).output().unwrap()
}

const RUN: &str = "o/runs/cell0001-rep01";

/// (Kind, text, seconds since the epoch of the calendar).
fn events(folder: &Path) -> Vec<(String, String, f64)> {
    let text = std::fs::read_to_string(folder.join(RUN).join("events.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let seconds = |line: &Value| {
        let at: jiff::Timestamp = line["at"].as_str().unwrap().parse().unwrap();
        at.as_nanosecond() as f64 / 1e9
    };
    let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    lines.map(|line| (word(&line, "event"), word(&line, "text"), seconds(&line))).collect()
}

fn at(events: &[(String, String, f64)], kind: &str, text: &str) -> f64 {
    let found = events.iter().find(|(k, t, _)| k == kind && t.starts_with(text));
    found.unwrap_or_else(|| panic!("no {kind} {text} in {events:#?}")).2
}

fn event_text(events: &[(String, String, f64)], kind: &str, text: &str) -> String {
    events.iter().find(|(k, t, _)| k == kind && t.starts_with(text)).map_or(String::new(), |e| e.1.clone())
}

#[test]
fn commands_run_in_their_windows() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let done = run(
        here,
        "target: 'null:'\nworkload: {ycsb: {records: 1000}}\n\
         phases: {measure: {rate: '1000', duration: 3s, warmup: 1s}}\n\
         traces:\n\
         - {command: [sleep, '60'], from: 500ms, length: 1s}\n\
         - {command: [sh, -c, 'trap \"echo told; exit 7\" INT; while :; do sleep 0.05; done'], phase: warmup, length: 500ms}\n\
         - {command: [sh, -c, 'echo in $DYNO_RUN_DIR'], from: 1s}\n\
         - {command: [sleep, '60'], from: 2s}\n\
         - {command: [sleep, '60'], from: 20s}\n",
    );
    dyno_testkit::assert_ran_in(here, &done, &[]);
    let events = events(here);
    let (warmup, measure, end) =
        (at(&events, "begin", "warmup"), at(&events, "begin", "measure"), at(&events, "end", "measure"));
    // Never early (the events' times have microseconds). How late depends on the host: the bound only
    // tells a window from the 60 s that its command would last.
    let near = |found: f64, expected: f64, what: &str| {
        let late = found - expected;
        assert!((-0.001..20.0).contains(&late), "{what}: {found} instead of {expected}");
    };
    near(at(&events, "trace_begin", "1 sleep"), measure + 0.5, "begin 1");
    near(at(&events, "trace_end", "1 sleep"), measure + 1.5, "end 1");
    near(at(&events, "trace_begin", "2 sh"), warmup, "begin 2");
    near(at(&events, "trace_end", "2 sh"), warmup + 0.5, "end 2");
    near(at(&events, "trace_begin", "3 sh"), measure + 1.0, "begin 3");
    near(at(&events, "trace_begin", "4 sleep"), measure + 2.0, "begin 4");
    near(at(&events, "trace_end", "4 sleep"), end, "the phase ends it");
    assert!(event_text(&events, "trace_end", "1 ").contains("signal: 2"));
    assert!(event_text(&events, "trace_end", "2 ").contains("exit status: 7"));
    assert!(event_text(&events, "trace_end", "3 ").contains("ended by itself, exit status: 0"));
    assert!(event_text(&events, "trace_failed", "5 ").contains("ended before its window"));
    let log = |number: u32| std::fs::read_to_string(here.join(format!("{RUN}/traces/{number}.log"))).unwrap();
    assert_eq!(log(2), "told\n");
    assert!(log(3).starts_with("in ") && log(3).contains(RUN), "{}", log(3));
}

#[test]
fn what_a_killed_dyno_was_tracing_is_ended_by_stop() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let text = "target: 'null:'\nworkload: {ycsb: {records: 1000}}\nphases: {measure: {rate: '100', duration: 60s}}\n\
                traces: [{command: [sh, -c, 'echo $$ > $DYNO_RUN_DIR/number; exec sleep 600']}]\n";
    std::fs::write(here.join("x.yaml"), text).unwrap();
    let dyno = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
        command.args(arguments).current_dir(here).stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let mut child = dyno(&["run", "x.yaml", "--out", "o", "--quiet"]).stderr(Stdio::null()).spawn().unwrap();
    let file = here.join(RUN).join("number");
    let end = Instant::now() + Duration::from_secs(60);
    let number = loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let noted = std::fs::read_to_string(here.join(RUN).join("traces/1/undo.jsonl")).unwrap_or_default();
        if text.ends_with('\n') && noted.contains("\"process\"") {
            break text.trim().to_owned();
        }
        assert!(Instant::now() < end, "the trace did not begin");
        std::thread::sleep(Duration::from_millis(10));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = || {
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).starts_with("sleep")
    };
    assert!(runs(), "the kernel does not end it: that is what the journal is for");
    let stopped = dyno(&["stop", "o"]).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(!runs(), "{stopped:?}");
}

#[test]
fn a_program_that_is_missing_is_found_before_anything_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let text = "target: 'null:'\nworkload: {ycsb: {records: 1000}}\n\
                phases: {measure: {operations: 1000}}\ntraces: [{command: [no-such-program-here]}]\n";
    let output = run(folder.path(), text);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("no-such-program-here is not installed: traces need it"), "{said}");
    assert!(!folder.path().join("o/journal.jsonl").exists(), "nothing was begun");
}

/// perf says what it has counted when SIGINT comes.
#[test]
fn perf_stat_says_what_it_counted() {
    let works = Command::new("perf").args(["stat", "-e", "task-clock", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = "target: 'null:'\nworkload: {ycsb: {records: 1000}}\n\
                phases: {measure: {rate: '1000', duration: 2s, warmup: 0s}}\n\
                traces: [{command: [perf, stat, -e, task-clock, sleep, '60'], from: 200ms, length: 1s}]\n";
    let done = run(folder.path(), text);
    dyno_testkit::assert_ran_in(folder.path(), &done, &[]);
    let log = std::fs::read_to_string(folder.path().join(RUN).join("traces/1.log")).unwrap();
    assert!(log.contains("task-clock"), "{log}");
}
