use super::*;
use crate::comparison::junit::build_junit;
use crate::comparison::{ComparedFigure, Pairing};
use dyno_analysis::compare::{Comparison, Conclusion, Decision, IntervalEstimate};
use dyno_rundir::ExperimentDir;
use dyno_rundir::schema::{Claim, Reason, Status, Summary, Threshold, Trust, Verdict};
use roxmltree::Node;
use serde_json::{Value, json};
use std::path::Path;

fn summary(verdict: Verdict, thresholds: &[(&str, Option<f64>, bool)]) -> Summary {
    let phase = |name: &str, seconds: f64| {
        json!({
            "name": name, "seconds": seconds, "arrivals": 0, "outcomes": {}, "throughput": 10.0, "metrics": [],
            "late_replies": 0, "reconnects": 0, "redirects": 0, "backlog": 0, "drops": {}, "errors": {},
            "client": {"pipeline": 1, "pinned": true, "steal_share": 0.0},
        })
    };
    let plain = json!({
        "version": 1, "dyno": "0.1.0", "status": "complete", "target": "null:", "database": "null",
        "started": "2026-11-25T00:00:00.5Z", "title": "a title", "thresholds": [],
        "verdict": Verdict::nothing_judged(Trust::Valid),
        "phases": [phase("load", 1.5), phase("measure", 10.0)],
    });
    let thresholds = thresholds.iter().map(|(expression, measured, passed)| Threshold {
        too_close: false,
        interval: None,
        margin: None,
        expression: (*expression).into(),
        measured: *measured,
        passed: *passed,
    });
    let thresholds = thresholds.collect();
    Summary { verdict, thresholds, ..serde_json::from_value(plain).unwrap() }
}

fn reason(check: &str, trust: Trust, affects: &[Claim]) -> Reason {
    Reason { affects: affects.to_vec(), ..Reason::of_all(check, trust, format!("why {check}")) }
}

/// Each case: its name, the element in it that is no output, and the text of its output.
fn cases(xml: &str) -> Vec<(String, String, String)> {
    let document = roxmltree::Document::parse(xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
    let found = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let case = |case: Node<'_, '_>| {
        let end = case.children().find(|node| node.is_element() && !node.has_tag_name("system-out"));
        let output = case.children().find(|node| node.has_tag_name("system-out"));
        let text = output.and_then(|output| output.text()).unwrap_or_default();
        let end = end.map_or("passed", |node| node.tag_name().name());
        (case.attribute("name").unwrap().to_owned(), end.to_owned(), text.to_owned())
    };
    found.map(case).collect()
}

fn ends(xml: &str) -> Vec<(String, String)> {
    cases(xml).into_iter().map(|(name, end, _)| (name, end)).collect()
}

fn expected(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(name, end)| ((*name).to_owned(), (*end).to_owned())).collect()
}

fn document(suite: Suite) -> Document {
    Document { name: "d".into(), suites: vec![suite] }
}

#[test]
fn a_run_without_thresholds_is_judged_by_throughput_and_tail() {
    let reasons = vec![
        reason("others", Trust::Suspect, &[Claim::Throughput]),
        reason("lag", Trust::Invalid, &[Claim::Tail, Claim::Median]),
        reason("cache", Trust::Valid, &[]),
    ];
    let made = document(of_run("r".into(), &summary(Verdict::new(reasons, Vec::new(), &[]), &[]), None));
    let all = [
        ("run", "passed"),
        ("claim throughput", "passed"),
        ("claim median", "skipped"),
        ("claim tail", "failure"),
        ("claim resources", "passed"),
    ];
    let xml = made.xml();
    assert_eq!(ends(&xml), expected(&all));
    assert!(!made.passed());
    let cases = cases(&xml);
    assert_eq!(cases[1].2, "suspect: why others", "what is suspect passes and says why");
    assert_eq!(cases[2].2, "invalid: why lag");
    assert!(!xml.contains("cache"), "a note takes nothing away");
    let parsed = roxmltree::Document::parse(&xml).unwrap();
    let root = parsed.root_element();
    let suite = root.first_element_child().unwrap();
    for node in [root, suite] {
        let count = |name: &str| node.attribute(name).unwrap().parse::<f64>().unwrap();
        assert_eq!(["tests", "failures", "errors", "skipped"].map(count), [5.0, 1.0, 0.0, 1.0]);
        assert_eq!(count("time"), 11.5);
    }
    assert_eq!(suite.attribute("timestamp"), Some("2026-11-25T00:00:00"));
    let failure = parsed.descendants().find(|node| node.has_tag_name("failure")).unwrap();
    assert_eq!((failure.attribute("type"), failure.text()), (Some("invalid"), Some("invalid: why lag")));
}

#[test]
fn a_threshold_fails_where_it_is_missed_or_must_not_be_used() {
    let asked = |expression: &str, of: &[Claim]| (expression.to_owned(), of.to_vec());
    let of = [
        asked("throughput > 5", &[Claim::Throughput]),
        asked("p99(read) < 5ms", &[Claim::Tail]),
        asked("errors < 1%", &[Claim::Throughput]),
    ];
    let reasons = vec![reason("lag", Trust::Invalid, &[Claim::Tail])];
    let verdict = Verdict::new(reasons, Vec::new(), &of);
    let thresholds = [
        ("throughput > 5", Some(4.0), false),
        ("p99(read) < 5ms", Some(1_000.0), true),
        ("errors < 1%", None, false),
    ];
    let summary = summary(verdict, &thresholds);
    let made = document(of_run("r".into(), &summary, None));
    let xml = made.xml();
    let all = [
        ("run", "passed"),
        ("threshold throughput > 5", "failure"),
        ("threshold p99(read) < 5ms", "failure"),
        ("threshold errors < 1%", "failure"),
        ("claim throughput", "passed"),
        ("claim median", "passed"),
        ("claim tail", "skipped"),
        ("claim resources", "passed"),
    ];
    assert_eq!(ends(&xml), expected(&all));
    let parsed = roxmltree::Document::parse(&xml).unwrap();
    let failures: Vec<_> = parsed.descendants().filter(|node| node.has_tag_name("failure")).collect();
    assert_eq!(failures[0].attribute("message"), Some("throughput > 5: measured 4/s"));
    assert_eq!(failures[1].text(), Some("measured 1.00 ms, which must not be used\ninvalid: why lag"));
    assert_eq!(
        failures[2].attribute("message"),
        Some("errors < 1%: not measurable: too few samples, or among arrivals that were never served")
    );
    // A search misses them on purpose.
    let pardoned = document(of_run("r".into(), &summary, Some("on purpose")));
    assert!(pardoned.passed());
    assert_eq!(pardoned.xml().matches("<skipped message=\"on purpose: ").count(), 3);
}

#[test]
fn a_run_that_did_not_end_is_an_error_and_one_judged_as_a_whole_has_a_verdict() {
    let whole = |trust| Verdict { reasons: vec![reason("x", trust, &[])], ..Verdict::nothing_judged(trust) };
    let of = |status, trust| {
        let summary = Summary { status, ..summary(whole(trust), &[("throughput > 5", Some(9.0), true)]) };
        ends(&document(of_run("r".into(), &summary, None)).xml())
    };
    let threshold = "threshold throughput > 5";
    let fine = [("run", "passed"), (threshold, "passed"), ("verdict", "passed")];
    assert_eq!(of(Status::Complete, Trust::Suspect), expected(&fine));
    let bad = [("run", "passed"), (threshold, "failure"), ("verdict", "failure")];
    assert_eq!(of(Status::Complete, Trust::Invalid), expected(&bad));
    let cut = [("run", "error"), (threshold, "passed"), ("verdict", "passed")];
    for status in [Status::Interrupted, Status::Failed, Status::Running] {
        assert_eq!(of(status, Trust::Valid), expected(&cut));
    }
    let made = document(failed_suite("r".into(), "target unreachable: x".into()));
    assert!(!made.passed());
    assert_eq!(ends(&made.xml()), expected(&[("run", "error")]));
}

/// Every character up to U+FFFF and one beyond, in every place that takes a text.
#[test]
fn any_text_is_well_formed_and_comes_back() {
    let hostile: String = (0..=0xffff).filter_map(char::from_u32).chain(['\u{1f600}']).collect();
    let hostile = format!("]]>{hostile}\"<!--&amp;\r\n\t");
    let case = |end| Case { output: hostile.clone(), ..Case::new(hostile.clone(), end) };
    let cases = vec![
        case(End::Passed),
        case(End::Failure("k", hostile.clone())),
        case(End::Error("k", hostile.clone())),
        case(End::Skipped(hostile.clone())),
    ];
    let suite = Suite {
        name: hostile.clone(),
        started: hostile.clone(),
        properties: vec![("p", hostile.clone())],
        cases,
    };
    let xml = Document { name: hostile.clone(), suites: vec![suite] }.xml();
    let parsed = roxmltree::Document::parse(&xml).unwrap();
    let refused =
        |c: char| c.is_control() && !['\t', '\n', '\r'].contains(&c) || ['\u{fffe}', '\u{ffff}'].contains(&c);
    let back: String = hostile.chars().map(|c| if refused(c) { '\u{fffd}' } else { c }).collect();
    let root = parsed.root_element();
    assert_eq!(root.attribute("name"), Some(back.as_str()));
    let skipped = parsed.descendants().find(|node| node.has_tag_name("skipped")).unwrap();
    assert_eq!(skipped.attribute("message"), Some(back.as_str()));
    let property = parsed.descendants().find(|node| node.has_tag_name("property")).unwrap();
    assert_eq!(property.attribute("value"), Some(back.as_str()));
    for name in ["system-out", "failure", "error"] {
        let node = parsed.descendants().find(|node| node.has_tag_name(name)).unwrap();
        assert_eq!(node.text(), Some(back.as_str()), "{name}");
    }
}

fn run_directory(folder: &Path, summary: &Summary) {
    std::fs::create_dir_all(folder).unwrap();
    let run = json!({
        "version": 1, "dyno": "0.1.0", "command": ["dyno", "run"], "started": "2026-11-25T00:00:00Z",
        "status": "complete", "target": "null:", "database": "null", "facts": {}, "settings": [], "metrics": {},
        "unit_ns": 64,
    });
    std::fs::write(folder.join("run.json"), run.to_string()).unwrap();
    std::fs::write(
        folder.join("environment.json"),
        json!({
            "host": "h", "kernel": "k", "cpu": "c", "cores": [0], "tuning": {},
        })
        .to_string(),
    )
    .unwrap();
    for name in ["intervals.jsonl", "events.jsonl", "series.csv"] {
        std::fs::write(folder.join(name), "").unwrap();
    }
    std::fs::write(folder.join("summary.json"), serde_json::to_string(summary).unwrap()).unwrap();
}

/// An experiment of one cell: each run is a name of a directory, a status and a point.
fn experiment(folder: &Path, runs: &[(&str, &str, &str)], planned: usize, complete: bool) -> ExperimentDir {
    let record = json!({
        "version": 1, "name": "e", "started": "now", "command": ["dyno"], "runs": planned,
        "cells": [{"number": 1, "label": "users=8", "levels": [["users", "8"]]}],
    });
    std::fs::write(folder.join("experiment.json"), record.to_string()).unwrap();
    let mut journal: Vec<Value> = Vec::new();
    for (at, (dir, status, point)) in runs.iter().enumerate() {
        journal.push(json!({
            "event": "ended", "cell": 1, "repetition": at + 1, "point": point, "dir": dir, "status": status,
            "words": "connection refused", "trust": "valid", "throughput": 1.0, "passed": true,
        }));
    }
    journal.push(json!({"event": "end", "status": if complete { "complete" } else { "interrupted" }}));
    let lines: String = journal.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.join("journal.jsonl"), lines).unwrap();
    ExperimentDir::open(folder).unwrap()
}

#[test]
fn an_experiment_has_a_suite_for_each_run_that_was_planned() {
    let folder = tempfile::tempdir().unwrap();
    let missed = summary(Verdict::new(Vec::new(), Vec::new(), &[]), &[("throughput > 50", Some(1.0), false)]);
    run_directory(&folder.path().join("one"), &missed);
    let suites = |dir: &ExperimentDir| {
        let made = of_experiment(dir);
        roxmltree::Document::parse(&made.xml()).unwrap();
        made.suites.into_iter().map(|suite| (suite.name.clone(), suite)).collect::<Vec<_>>()
    };
    let dir = experiment(folder.path(), &[("one", "complete", ""), ("two", "failed", "")], 3, false);
    let made = suites(&dir);
    let names: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["e: users=8, repetition 1", "e: users=8, repetition 2", "e: run 3 of 3", "e"]);
    let end = |suite: usize, case: usize| made[suite].1.cases[case].end.clone();
    assert!(matches!(end(0, 1), End::Failure("threshold", _)));
    assert_eq!(end(1, 0), End::Error("failed", "failed: connection refused".into()));
    assert_eq!(end(2, 0), End::Skipped("the run was not made".into()));
    assert!(matches!(end(3, 0), End::Error(..)));
    // A search, and a run whose directory is gone.
    let dir = experiment(folder.path(), &[("one", "complete", "users=8"), ("gone", "complete", "")], 2, true);
    let made = suites(&dir);
    assert_eq!(made.len(), 2);
    assert_eq!(made[0].0, "e: users=8 users=8, repetition 1");
    assert!(matches!(&made[0].1.cases[1].end, End::Skipped(why) if why.contains("on purpose")));
    assert!(matches!(&made[1].1.cases[0].end, End::Error(..)));
}

fn figure(name: &str, conclusion: Conclusion) -> ComparedFigure {
    let flat = IntervalEstimate { value: 0.9, low: 0.8, high: 1.0 };
    let found = Comparison {
        runs: (5, 5),
        means: (100.0, 90.0),
        decision: Decision { conclusion, open: None, ratio: flat, p: Some(0.5) },
        difference: flat,
        shift: 0.0,
        rank_p: 0.5,
        delta: 0.0,
        drift: None,
    };
    ComparedFigure { name: name.into(), unit: "1/s", found, noise: 0.0, each: (Vec::new(), Vec::new()) }
}

#[test]
fn a_comparison_fails_where_the_command_does() {
    let pairing = |figures| Pairing {
        experiment: None,
        cell: String::new(),
        first: "a".into(),
        second: "b".into(),
        figures,
        responses: Vec::new(),
        replays: None,
        settings: Vec::new(),
        environment: Vec::new(),
        warnings: vec!["hosts differ".into()],
        about: Vec::new(),
        reports: (Vec::new(), Vec::new()),
    };
    let figures = vec![
        figure("throughput", Conclusion::Worse),
        figure("READ p99", Conclusion::Unclear(3)),
        figure("READ p50", Conclusion::Better),
        figure("READ p90", Conclusion::Same),
    ];
    let all = [pairing(figures), pairing(Vec::new())];
    let none = build_junit(&all, |_| false);
    assert!(none.passed());
    let expected = |worse: &str, unclear: &str| {
        expected(&[
            ("throughput", worse),
            ("READ p99", unclear),
            ("READ p50", "passed"),
            ("READ p90", "passed"),
            ("figures", "skipped"),
        ])
    };
    assert_eq!(ends(&none.xml()), expected("passed", "skipped"));
    assert_eq!(
        cases(&none.xml())[0].2,
        "worse by 10.0 % (-20.0 to +0.0 %)\nfirst 100.0, second 90.00 1/s\nnote: hosts differ"
    );
    let worse = build_junit(&all, |conclusion| conclusion == Conclusion::Worse);
    assert_eq!(ends(&worse.xml()), expected("failure", "skipped"));
    let unclear =
        build_junit(&all, |conclusion| matches!(conclusion, Conclusion::Worse | Conclusion::Unclear(_)));
    assert_eq!(ends(&unclear.xml()), expected("failure", "failure"));
    let nothing = build_junit(&all[1..], |_| false);
    assert_eq!(ends(&nothing.xml())[0].1, "error", "the command ends with code 5");
}
