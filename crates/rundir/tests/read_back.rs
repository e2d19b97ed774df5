//! A run directory that is written and read again: everything that was counted is there, and every refusal has its reason.

use dyno_record::{Scale, Stamps, ThreadInterval, Totals};
use dyno_rundir::schema::{self, Environment, Pair, Pause, Planned, Status, VERSION};
use dyno_rundir::{ExperimentDir, IntervalFacts, ReadError, RunDir, RunWriter, describe_progress};
use dyno_types::Outcome;
use fixtures::{BEGIN_S, empty_phase, empty_summary, run};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

#[path = "../src/fixtures.rs"]
mod fixtures;

const SECOND: Duration = Duration::from_secs(1);

/// A second in which so many reads of 1 ms ended well, and one update of 3 ms that was intended 1 ms before it was sent failed.
fn second(reads: u64) -> Totals {
    let mut interval = ThreadInterval::new(2, Scale::Ns64);
    for _ in 0..reads {
        interval.record_ended(0, Outcome::Ok, 1_000_000, 1_000_000);
    }
    interval.record_ended(1, Outcome::TimedOut, 3_000_000, 4_000_000);
    interval.arrivals = reads + 2;
    interval.ended[Outcome::Ok as usize] = reads;
    interval.ended[Outcome::TimedOut as usize] = 1;
    interval.ended[Outcome::Dropped as usize] = 1;
    interval.outcomes[0][Outcome::Dropped as usize] += 1;
    interval.drops = vec![(reads, 1)];
    (interval.carried, interval.carried_arrivals) = (2, 3);
    (interval.late, interval.reconnects, interval.redirects) = (4, 5, 6);
    (interval.backlog, interval.busy_ns) = (reads, 7);
    interval.stamps =
        Stamps { kernel: reads, card: reads / 2, client: 8, shared: 9, shared_most_ns: 10 + reads };
    interval.lag.record(10_000);
    interval.receive_lag.record(20_000);
    interval.ideal.record(30_000);
    interval.turnaround.record(30_000);
    let mut totals = Totals::new(2, Scale::Ns64);
    totals.add_interval(&interval);
    totals
}

/// Two seconds of warm-up and four that are measured, with 10, 20, 30 and 40 reads.
fn written(path: &Path, end: Option<Status>) {
    let mut writer = RunWriter::create_run(path, run(), &Environment::default(), Scale::Ns64).unwrap();
    let names = ["READ".to_owned(), "UPDATE".to_owned()];
    let at = |s: u64| UNIX_EPOCH + Duration::from_secs(BEGIN_S + s);
    let plan = Planned { seconds: Some(4.0), interval_s: 1.0, ..Planned::default() };
    writer.name_metrics("measure", &names, plan, true);
    for (phase, first, reads) in [("warmup", 0, &[5, 5][..]), ("measure", 2, &[10, 20, 30, 40][..])] {
        writer.event_at(at(first), "begin", phase);
        for (number, reads) in reads.iter().enumerate() {
            let start = SECOND * (first as u32 + number as u32);
            let beside = IntervalFacts { steal_pct: Some(0.5), due: Some(25.5) };
            writer.write_interval(phase, start, 1.0, &second(*reads), beside);
        }
        if end.is_some() {
            writer.event_at(at(first + reads.len() as u64), "end", phase);
        }
    }
    let worker = |number, phases: &[serde_json::Value]| -> Pair {
        serde_json::from_value(json!({"number": number, "target": "null:", "phases": phases})).unwrap()
    };
    writer.write_workers(&[worker(1, &[empty_phase("warmup", 2.0)]), worker(2, &[])]);
    writer.write_workers(&[worker(1, &[empty_phase("measure", 4.0)])]);
    if let Some(status) = end {
        writer.finish(&empty_summary(&[empty_phase("warmup", 2.0), empty_phase("measure", 4.5)]), status);
    }
    assert_eq!(writer.first_failure(), None);
}

fn read(end: Option<Status>) -> (tempfile::TempDir, RunDir) {
    let folder = tempfile::tempdir().unwrap();
    written(&folder.path().join("d"), end);
    let dir = RunDir::open(&folder.path().join("d")).unwrap();
    (folder, dir)
}

#[test]
fn what_was_counted_is_read_whether_the_run_ended_or_not() {
    for end in [None, Some(Status::Complete)] {
        let (_folder, dir) = read(end);
        assert_eq!(dir.run.status, end.unwrap_or(Status::Running));
        assert_eq!(dir.summary.is_some(), end.is_some());
        assert_eq!(dir.run.plans["measure"].seconds, Some(4.0));
        let names: Vec<(&str, u64)> = dir.phases.iter().map(|p| (p.name.as_str(), p.seconds)).collect();
        assert_eq!(names, [("warmup", 2), ("measure", 6)]);
        let totals = &dir.phases[1].totals;
        let mut expected = Totals::new(2, Scale::Ns64);
        [10, 20, 30, 40].iter().for_each(|reads| expected.merge(&second(*reads)));
        assert_eq!(totals, &expected, "to the last nanosecond");
        // The longest queue, and the sum of what load threads did.
        assert_eq!((totals.arrivals, totals.count_ok(), totals.backlog, totals.busy_ns), (108, 100, 40, 28));
        assert_eq!(totals.drops, [(10, 1), (20, 1), (30, 1), (40, 1)]);
        assert!(totals.slots[1].is_none() && totals.slots[2].is_none(), "nothing of that kind ended");
    }
}

#[test]
fn a_total_that_is_not_what_was_counted_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| folder.path().join(name));
    written(&one, Some(Status::Complete));
    written(&other, Some(Status::Complete));
    // The histograms of a phase without one of its lines.
    let log = std::fs::read_to_string(one.join("totals.hlog")).unwrap();
    let less: Vec<&str> =
        log.lines().filter(|line| !line.starts_with("Tag=measure.READ.ok.service")).collect();
    assert_eq!(less.len() + 1, log.lines().count());
    std::fs::write(one.join("totals.hlog"), less.join("\n") + "\n").unwrap();
    let reads = |dir: &Path| RunDir::open(dir).unwrap().phases[1].totals.ok_slot(0).unwrap().service.count();
    assert_eq!(reads(&one), 100, "the log of all intervals was read instead");
    // Where it is whole, the log of intervals need not be read.
    std::fs::write(other.join("latency.hlog"), "").unwrap();
    assert_eq!(reads(&other), 100);
}

#[test]
fn seconds_count_from_the_end_of_the_warm_up() {
    let (_folder, dir) = read(Some(Status::Complete));
    assert_eq!(dir.successes_by_second().unwrap(), BTreeMap::from([(0, 10), (1, 20), (2, 30), (3, 40)]));
    let history = dir.interval_history().unwrap();
    // The phase lasts for four whole seconds.
    assert_eq!((history.step_s, history.from_s, history.values), (1, 0, vec![10.0, 20.0, 30.0, 40.0]));
    assert_eq!(history.gaps, []);
    // The client stood still in the first second, and caught up in the next one: the others stand for them.
    let (_folder, mut dir) = read(Some(Status::Complete));
    let mut paused = |length_s| {
        let phases = &mut dir.summary.as_mut().unwrap().phases;
        phases.iter_mut().for_each(|phase| phase.pauses = vec![Pause { from_s: 0.5, length_s }]);
        dir.interval_history().unwrap().values
    };
    assert_eq!(paused(0.4), [40.0, 40.0, 30.0, 40.0]);
    // Of less than half nothing is known.
    assert_eq!(paused(1.4), [0.0; 0]);
    let (_folder, dir) = read(None);
    assert_eq!(
        dir.successes_by_second().unwrap().keys().copied().collect::<Vec<_>>(),
        [2, 3, 4, 5],
        "no summary says it"
    );
}

#[test]
fn a_window_has_the_operations_and_latencies_of_its_seconds() {
    let (_folder, dir) = read(Some(Status::Complete));
    let part = dir.measured_window(1, 3).unwrap();
    assert_eq!((part.seconds, part.operations), (2, 50));
    let names: Vec<&str> = part.latencies.keys().map(String::as_str).collect();
    assert_eq!((names, part.latencies["READ"].count()), (vec!["READ"], 50));
    // It ends with the last whole second of the phase, which took 4.5 s.
    let rest = dir.measured_window(3, 100).unwrap();
    assert_eq!((rest.seconds, rest.operations, rest.latencies["READ"].count()), (1, 40, 40));
    let none = dir.measured_window(4, 100).unwrap();
    assert_eq!((none.seconds, none.operations, none.latencies.len()), (0, 0, 0));
}

#[test]
fn a_phase_has_the_edges_of_its_events() {
    let ms = |s: u64| (BEGIN_S + s) as f64 * 1e3;
    let (_folder, dir) = read(Some(Status::Complete));
    let boundaries =
        |dir: &RunDir| dir.phases.iter().map(|p| dir.phase_boundaries(p).unwrap()).collect::<Vec<_>>();
    assert_eq!(boundaries(&dir), [Some((ms(0), ms(2))), Some((ms(2), ms(6)))]);
    // The warm-up is under way until the measured phase begins.
    let idle = |at: usize| {
        let span = dir.phase_span(&dir.phases[at]).unwrap().unwrap();
        (span.idle_since_ms, span.idle_until_ms)
    };
    assert_eq!([idle(0), idle(1)], [(f64::NEG_INFINITY, ms(2)), (ms(2), f64::INFINITY)]);
    // Without an end it is the last second, which counts from the beginning of the warm-up.
    let (folder, dir) = read(None);
    assert_eq!(boundaries(&dir), [Some((ms(0), ms(2))), Some((ms(2), ms(6)))]);
    std::fs::write(folder.path().join("d/events.jsonl"), "").unwrap();
    assert_eq!(boundaries(&dir), [None, None]);
}

#[test]
fn events_and_workers_are_read_in_order() {
    let (folder, dir) = read(Some(Status::Complete));
    let events: Vec<(String, String)> =
        dir.read_events().unwrap().into_iter().map(|e| (e.event, e.text)).collect();
    let told: Vec<(&str, &str)> =
        events.iter().map(|(event, text)| (event.as_str(), text.as_str())).collect();
    assert_eq!(told, [("begin", "warmup"), ("end", "warmup"), ("begin", "measure"), ("end", "measure")]);
    let phases = |pair: &Pair| pair.phases.iter().map(|p| p.name.clone()).collect::<Vec<_>>();
    let workers: Vec<(usize, Vec<String>)> =
        dir.read_workers().unwrap().iter().map(|w| (w.number, phases(w))).collect();
    assert_eq!(workers, [(1, vec!["warmup".to_owned(), "measure".to_owned()]), (2, vec![])]);
    std::fs::remove_file(folder.path().join("d/workers.json")).unwrap();
    assert_eq!(dir.read_workers().unwrap(), []);
}

#[test]
fn intervals_come_one_by_one_with_their_histograms() {
    let (_folder, dir) = read(Some(Status::Complete));
    let mut seen = Vec::new();
    dir.each_interval(|interval| {
        let read = interval.metrics.iter().find(|metric| metric.name == "READ").unwrap();
        let service = &read.histograms["ok.service"];
        assert_eq!(
            (service.sum_ns(), service.max_ns()),
            (u128::from(service.count()) * 1_000_000, 1_000_000)
        );
        assert_eq!((interval.ended["timed_out"], interval.length_s), (1, Some(1.0)));
        let update = interval.metrics.iter().find(|metric| metric.name == "UPDATE").unwrap();
        assert_eq!((update.outcomes["timed_out"], update.histograms["failed.response"].count()), (1, 1));
        seen.push((interval.phase, interval.start_s, service.count(), interval.backlog));
    })
    .unwrap();
    let warmup = |s| ("warmup".to_owned(), s, 5, 5);
    let measure = |s, n| ("measure".to_owned(), s, n, n);
    let expected =
        [warmup(0.0), warmup(1.0), measure(2.0, 10), measure(3.0, 20), measure(4.0, 30), measure(5.0, 40)];
    assert_eq!(seen, expected);
}

#[test]
fn an_interval_whose_histogram_is_broken_is_named_by_its_line() {
    let (folder, dir) = read(Some(Status::Complete));
    let path = folder.path().join("d/latency.hlog");
    let log = std::fs::read_to_string(&path).unwrap();
    let (at, line) = log.lines().enumerate().find(|(_, line)| line.starts_with("Tag=measure.READ")).unwrap();
    let broken = format!("{},@@@", line.rsplit_once(',').unwrap().0);
    std::fs::write(&path, log.replacen(line, &broken, 1)).unwrap();
    let mut seen = Vec::new();
    let error = dir.each_interval(|interval| seen.push(interval.start_s)).unwrap_err().to_string();
    assert!(error.contains(&format!("latency.hlog:{}: ", at + 1)), "{error}");
    assert_eq!(seen, [0.0, 1.0], "those before it");
}

#[test]
fn intervals_of_parts_of_a_second_have_their_own_histograms() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer =
        RunWriter::create_run(folder.path(), run(), &Environment::default(), Scale::Ns64).unwrap();
    writer.name_metrics("measure", &["READ".to_owned(), "UPDATE".to_owned()], Planned::default(), false);
    for (part, reads) in [3, 4, 5].into_iter().enumerate() {
        writer.write_interval(
            "measure",
            Duration::from_millis(1_250 * part as u64),
            1.25,
            &second(reads),
            IntervalFacts::default(),
        );
    }
    writer.finish(&empty_summary(&[empty_phase("measure", 3.75)]), Status::Complete);
    let dir = RunDir::open(folder.path()).unwrap();
    let mut seen = Vec::new();
    dir.each_interval(|interval| {
        seen.push((interval.start_s, interval.metrics[0].histograms["ok.service"].count()))
    })
    .unwrap();
    assert_eq!(seen, [(0.0, 3), (1.25, 4), (2.5, 5)]);
    assert_eq!(dir.successes_by_second().unwrap(), BTreeMap::from([(0, 3), (1, 4), (2, 5)]));
}

#[test]
fn an_interval_is_as_long_as_what_of_it_lies_in_its_phase() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer =
        RunWriter::create_run(folder.path(), run(), &Environment::default(), Scale::Ns64).unwrap();
    let names = ["READ".to_owned(), "UPDATE".to_owned()];
    let plan = Planned { operations: Some(9), warmup_s: 0.3, interval_s: 0.2, ..Planned::default() };
    writer.name_metrics("measure", &names, plan, true);
    let parts =
        [("warmup", 0), ("warmup", 1), ("measure", 1), ("measure", 2), ("measure", 3), ("measure", 4)];
    for (phase, part) in parts {
        let start = Duration::from_millis(200 * part);
        writer.write_interval(phase, start, 0.2, &second(1), IntervalFacts::default());
    }
    let lengths = |dir: &RunDir| {
        let mut seen = Vec::new();
        dir.each_interval(|interval| seen.push(interval.length_s)).unwrap();
        seen
    };
    // Operations may have ended a phase whose end is not recorded.
    assert_eq!(lengths(&RunDir::open(folder.path()).unwrap()), [None; 6]);
    // The warm-up ends within the second interval, the last operation 0.45 s later within the fourth one. Of the fifth, with
    // replies that came later, nothing lies in the phase.
    let phases = [empty_phase("warmup", 0.3), empty_phase("measure", 0.45)];
    writer.finish(&empty_summary(&phases), Status::Complete);
    let expected = [0.2, 0.1, 0.1, 0.2, 0.15, 0.0].map(Some);
    assert_eq!(lengths(&RunDir::open(folder.path()).unwrap()), expected);
}

/// Opens the directory after `change` has been done to it.
fn broken(change: impl FnOnce(&Path)) -> (Result<RunDir, ReadError>, Result<Vec<String>, ReadError>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d");
    written(&path, Some(Status::Complete));
    change(&path);
    (RunDir::open(&path), RunDir::salvage_run(&path).map(|(_, lost)| lost))
}

#[test]
fn what_is_broken_is_named_by_file_and_line() {
    let put = |name: &'static str, text: &'static str| {
        move |path: &Path| std::fs::write(path.join(name), text).unwrap()
    };
    let told = |name, text| {
        let (open, salvage) = broken(put(name, text));
        (open.unwrap_err().to_string(), salvage)
    };
    let (error, salvage) = told("summary.json", "{\n\"version\": ");
    assert!(
        error.ends_with("summary.json:2: ends in the middle: it was cut off, or is being written"),
        "{error}"
    );
    assert_eq!(salvage.unwrap(), [error]);
    let (error, _) = told("summary.json", "{]");
    assert!(error.contains("summary.json:1: is no JSON (") && error.ends_with(", column 2)"), "{error}");
    let (error, salvage) = told("environment.json", "[]");
    assert!(error.contains("environment.json:1: "), "{error}");
    assert_eq!(salvage.unwrap(), [error]);
    // Without run.json nothing is known.
    let (error, salvage) = told("run.json", "{}");
    assert!(error.contains("run.json:1: missing field"), "{error}");
    assert!(salvage.is_err());
    let (open, _) = broken(|path| std::fs::remove_file(path.join("run.json")).unwrap());
    assert!(open.unwrap_err().to_string().contains("No such file"));
    let (open, salvage) = broken(|path| std::fs::remove_file(path.join("intervals.jsonl")).unwrap());
    assert!(open.unwrap_err().to_string().contains("intervals.jsonl: No such file"));
    assert_eq!(salvage.unwrap().len(), 1);
    let (folder, _) = read(Some(Status::Complete));
    let path = folder.path().join("d");
    std::fs::write(path.join("intervals.jsonl"), "{}\n").unwrap();
    let (rest, lost) = RunDir::salvage_run(&path).unwrap();
    assert!(lost[0].contains("intervals.jsonl:1: missing field"), "{lost:?}");
    assert_eq!(
        rest.successes_by_second().unwrap_err().to_string(),
        lost[0],
        "asked again, it fails for the same reason"
    );
}

#[test]
fn what_is_broken_in_a_log_is_told_with_what_stood_before_it() {
    let (folder, _) = read(None);
    let path = folder.path().join("d");
    let log = std::fs::read_to_string(path.join("latency.hlog")).unwrap();
    std::fs::write(path.join("latency.hlog"), format!("{log}Tag=a,0,1,0,@@@\n{log}")).unwrap();
    let line = log.lines().count() + 1;
    let error = RunDir::open(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("latency.hlog:{line}: ")) && !error.contains("left out"), "{error}");
    let (dir, lost) = RunDir::salvage_run(&path).unwrap();
    assert_eq!(lost.len(), 1);
    assert!(lost[0].ends_with("; later lines are left out"), "{lost:?}");
    assert_eq!(dir.phases[1].totals.ok_slot(0).unwrap().service.count(), 100);
    std::fs::remove_file(path.join("latency.hlog")).unwrap();
    assert!(RunDir::open(&path).unwrap_err().to_string().contains("latency.hlog: No such file"));
    let (dir, lost) = RunDir::salvage_run(&path).unwrap();
    assert_eq!(
        (dir.phases[1].totals.count_ok(), dir.phases[1].totals.slots.iter().flatten().count(), lost.len()),
        (100, 0, 1)
    );
}

#[test]
fn a_later_version_is_refused() {
    let of = |version: u32| {
        broken(move |path| {
            let text = std::fs::read_to_string(path.join("run.json")).unwrap();
            let old = format!("\"version\": {VERSION}");
            assert!(text.contains(&old));
            std::fs::write(path.join("run.json"), text.replace(&old, &format!("\"version\": {version}")))
                .unwrap();
        })
    };
    assert!(of(VERSION).0.is_ok() && of(VERSION - 1).0.is_ok());
    let (open, salvage) = of(VERSION + 1);
    assert!(open.unwrap_err().to_string().contains(&format!("format {} is newer", VERSION + 1)));
    assert!(salvage.is_err(), "not in parts, either");
}

/// A line of counters with a change.
fn counters(change: &str) -> Result<RunDir, ReadError> {
    let line = r#"{"phase": "measure", "second": 0, "arrivals": 1, "ended": {"ok": 1}, "outcomes": {}, "exact": {},
        "carried": [0, 0], "links": [0, 0, 0], "backlog": 0, "busy_ns": 0, "drops": []}"#;
    let line = line.replace('\n', " ") + "\n";
    let (from, to) = change.split_once(" => ").unwrap_or(("", ""));
    assert!(line.contains(from));
    broken(|path| std::fs::write(path.join("intervals.jsonl"), line.replacen(from, to, 1)).unwrap()).0
}

#[test]
fn implausible_counts_are_refused() {
    assert!(counters("").is_ok());
    let most = 100_000_000_000_000_u64;
    for (name, key, rest) in [
        ("second", "\"second\": ", "0"),
        ("arrivals", "\"arrivals\": ", "1"),
        ("carried", "\"carried\": [", "0"),
        ("links", "\"links\": [", "0"),
        ("backlog", "\"backlog\": ", "0"),
        ("busy_ns", "\"busy_ns\": ", "0"),
        ("ok", "\"ok\": ", "1"),
    ] {
        let change = |to: u64| counters(&format!("{key}{rest} => {key}{to}"));
        let why = change(most + 1).unwrap_err().to_string();
        assert!(why.contains(&format!(":1: {name}: {} cannot have been counted", most + 1)), "{why}");
        if name != "second" {
            assert!(change(most).is_ok(), "{name}");
        }
    }
    assert!(counters("\"second\": 0 => \"second\": 0, \"ms\": 999").is_ok());
    let why = counters("\"second\": 0 => \"second\": 0, \"ms\": 1000").unwrap_err().to_string();
    assert!(why.ends_with(":1: ms: 1000 is more than a second"), "{why}");
}

#[test]
fn what_is_known_of_several_seconds_is_spread_over_them() {
    let dir = |change: &str| counters(change).unwrap();
    // Ten operations in three seconds: 3, 3 and 4.
    let spread = dir("\"second\": 0, \"arrivals\": 1, \"ended\": {\"ok\": 1} => \
                      \"second\": 2, \"length_ms\": 2500, \"arrivals\": 10, \"ended\": {\"ok\": 10}");
    assert_eq!(spread.successes_by_second().unwrap(), BTreeMap::from([(0, 3), (1, 3), (2, 4)]));
    assert_eq!(spread.phases[0].seconds, 5);
    let short = dir("\"second\": 0 => \"second\": 3, \"ms\": 250");
    assert_eq!(
        (short.phases[0].seconds, short.successes_by_second().unwrap()),
        (4, BTreeMap::from([(1, 1)]))
    );
    // Steps are as long as most intervals are: here three of five.
    let line = |second: u64, length_ms: u64, ok: u64| {
        let line = json!({
            "phase": "measure", "second": second, "length_ms": length_ms, "arrivals": ok, "ended": {"ok": ok}, "outcomes": {},
            "exact": {}, "carried": [0, 0], "links": [0, 0, 0], "backlog": 0, "busy_ns": 0, "drops": [],
        });
        format!("{line}\n")
    };
    let lines =
        [line(2, 1_000, 7), line(3, 1_000, 9), line(4, 2_000, 20), line(6, 2_000, 22), line(8, 1_500, 30)];
    let (uneven, _) = broken(|path| std::fs::write(path.join("intervals.jsonl"), lines.concat()).unwrap());
    let history = uneven.unwrap().interval_history().unwrap();
    // The last ends after a second and a half: what it has is no rate of two.
    assert_eq!((history.step_s, history.values), (2, vec![8.0, 10.0, 11.0]));
    // One that is far away costs nothing.
    let far = dir("\"second\": 0 => \"second\": 99999999999, \"ms\": 1");
    assert_eq!(far.successes_by_second().unwrap().len(), 1);
}

fn experiment(path: &Path, version: u32, journal: &str) -> Result<ExperimentDir, ReadError> {
    std::fs::create_dir_all(path).unwrap();
    let record = json!({
        "version": version, "name": "e", "started": "", "command": [], "runs": 2,
        "cells": [
            {"number": 1, "label": "users=1", "levels": [["users", "1"]]},
            {"number": 2, "label": "users=2", "levels": [["users", "2"]]},
        ],
    });
    std::fs::write(path.join("experiment.json"), record.to_string()).unwrap();
    std::fs::write(path.join("journal.jsonl"), journal).unwrap();
    ExperimentDir::open(path)
}

fn ended(cell: usize, repetition: u32, point: &str, dir: &str) -> String {
    let run = json!({
        "event": "ended", "cell": cell, "repetition": repetition, "point": point, "dir": dir, "status": "complete",
        "words": "", "trust": "valid", "throughput": 1.0, "passed": true,
    });
    format!("{run}\n")
}

#[test]
fn an_experiments_last_runs_count_and_lie_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e");
    let all = [ended(1, 1, "", "runs/a"), ended(2, 1, "", "runs/b"), ended(1, 1, "", "runs/c")].concat();
    let more = [ended(1, 2, "", "runs/d"), ended(1, 1, "users=8", "./runs/e")].concat();
    let torn = ended(9, 9, "", "runs/torn");
    let dir = experiment(&path, 1, &(all.clone() + &more + torn.trim_end())).unwrap();
    let runs: Vec<&str> = dir.runs.iter().map(|run| run.dir.as_str()).collect();
    assert_eq!(runs, ["runs/b", "runs/c", "runs/d", "./runs/e"], "made again: there once, the last time");
    assert_eq!((dir.planned, dir.complete, dir.standing), (2, false, false));
    assert_eq!(dir.find_cell(2).unwrap().label, "users=2");
    assert!(dir.find_cell(3).is_none());
    let end = |status: &str| format!("{{\"event\": \"end\", \"status\": \"{status}\"}}\n");
    let of = |status: &str| {
        let dir = experiment(&path, 1, &(all.clone() + &end(status))).unwrap();
        (dir.complete, dir.standing)
    };
    assert_eq!(
        [of("complete"), of("standing"), of("interrupted")],
        [(true, false), (false, true), (false, false)]
    );
    for outside in ["../x", "/etc", "runs/../../x"] {
        let why = experiment(&path, 1, &(all.clone() + &ended(1, 1, "", outside))).unwrap_err().to_string();
        assert!(
            why.ends_with(&format!("journal.jsonl:4: {outside}: a run lies below its experiment")),
            "{why}"
        );
    }
    let why = experiment(&path, 1, &(all.clone() + "{\n")).unwrap_err().to_string();
    assert!(why.contains("journal.jsonl:4: "), "{why}");
    assert!(experiment(&path, 2, "").unwrap_err().to_string().contains("format 2 is newer"));
    assert!(experiment(&path, 0, "").is_ok());
}

#[test]
fn a_run_in_an_experiment_has_the_levels_of_its_cell() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("e");
    experiment(&path, 1, "").unwrap();
    let levels = |run: &str, cell: &str| ExperimentDir::levels_around(&path.join(run), cell);
    assert_eq!(levels("runs/one", "users=2"), Some(vec![("users".to_owned(), "2".to_owned())]));
    assert_eq!(levels("one", "users=1"), Some(vec![("users".to_owned(), "1".to_owned())]));
    assert_eq!(levels("runs/one", "users=3"), None);
    assert_eq!(levels("runs/far/one", "users=2"), None, "too deep");
    assert!(ExperimentDir::is_one(&path) && !ExperimentDir::is_one(folder.path()));
}

#[test]
fn progress_is_said_of_runs_and_of_searches() {
    assert_eq!(describe_progress(3, 8, false), "3 of 8 runs");
    assert_eq!(describe_progress(3, 1, true), "3 runs of a search");
    assert_eq!(describe_progress(3, 2, true), "3 runs of 2 searches");
}
