//! Tests of what becomes of another program's results, file by file.

use super::*;
use crate::fixtures::{BEGIN_S, empty_phase, empty_summary, run};
use crate::{RunDir, hlog::to_hdr};
use dyno_record::Buckets;

fn counts(list: &[(&str, u64)]) -> BTreeMap<String, u64> {
    list.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

fn latency(mean_us: f64, max_us: Option<f64>, percentiles: &[(&str, Option<f64>)]) -> Latency {
    let percentiles_us = percentiles.iter().map(|(name, us)| ((*name).to_owned(), *us)).collect();
    Latency { count: 7, mean_us, min_us: None, max_us, percentiles_us, intervals_us: BTreeMap::new() }
}

/// Ten seconds of which two operations are known in full, and a quarter of a second of which little is.
fn imported(unit_ns: u64) -> Imported {
    let known = |kind: &str, latency: Latency| (kind.to_owned(), latency);
    let service =
        latency(250.04, Some(900.0), &[("p50", Some(200.0)), ("p99", Some(800.0)), ("p99.9", None)]);
    let response = latency(1.0, None, &[("p50", Some(300.25)), ("p99.9", Some(950.0))]);
    let read = ImportedMetric {
        name: "READ".into(),
        outcomes: counts(&[("ok", 7), ("timed_out", 2), ("busy", 1)]),
        known: [known("service", service), known("response", response)].into(),
    };
    let update =
        ImportedMetric { name: "UPDATE".into(), outcomes: counts(&[("busy", 4)]), ..Default::default() };
    let first = ImportedInterval {
        start_ms: 3_000,
        length_ms: 10_000,
        ended: counts(&[("ok", 7), ("timed_out", 2), ("busy", 5)]),
        metrics: vec![read, update],
    };
    let last =
        ImportedInterval { start_ms: 13_250, length_ms: 250, ended: counts(&[("ok", 1)]), metrics: vec![] };
    let mut run = run();
    run.unit_ns = unit_ns;
    run.metrics = [("measure".to_owned(), vec!["READ".to_owned(), "UPDATE".to_owned()])].into();
    let mut buckets = Buckets::new(if unit_ns == 64 { Scale::Ns64 } else { Scale::Micros });
    buckets.record(2_000_000);
    Imported {
        run,
        environment: Environment::default(),
        summary: empty_summary(&[empty_phase("measure", 13.5)]),
        phase: "measure".into(),
        intervals: vec![first, last],
        log: hlog::log_line(Some("measure.READ.ok.service"), 3.0, 10.0, &to_hdr(&buckets)),
    }
}

#[test]
fn results_of_another_program_are_written_and_what_they_do_not_say_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    write(folder.path(), &imported(1_000)).unwrap();
    let rows = [
        "3,measure,READ,7,3,,250.0,200.0,800.0,,900.0,300.2,,950.0,,,,",
        "3,measure,UPDATE,0,4,,,,,,,,,,,,,",
        "3,measure,TOTAL,7,7,,,,,,,,,,,,,",
        "13.250,measure,TOTAL,1,0,,,,,,,,,,,,,",
    ];
    assert_eq!(text("series.csv"), format!("{}{}\n", crate::series::HEADER, rows.join("\n")));
    let (read, bad) = crate::series::read(&text("series.csv"));
    assert_eq!((read.len(), bad, read[0].failed, read[3].start_s), (4, 0, 3, 13.25));
    let lines: Vec<IntervalLine> = RunDir::lines(&folder.path().join("intervals.jsonl"), u64::MAX).unwrap();
    let metrics = imported(1_000).intervals[0].metrics.clone();
    let expected = IntervalLine {
        phase: "measure".into(),
        second: 3,
        length_ms: 10_000,
        arrivals: 14,
        ended: counts(&[("ok", 7), ("timed_out", 2), ("busy", 5)]),
        outcomes: [
            ("READ".to_owned(), metrics[0].outcomes.clone()),
            ("UPDATE".to_owned(), metrics[1].outcomes.clone()),
        ]
        .into(),
        known: [
            ("READ.ok.service".to_owned(), metrics[0].known["service"].clone()),
            ("READ.ok.response".to_owned(), metrics[0].known["response"].clone()),
        ]
        .into(),
        ..IntervalLine::default()
    };
    assert_eq!(lines[0], expected);
    let last = &lines[1];
    assert_eq!((last.second, last.ms, last.length_ms, last.arrivals), (13, 250, 250, 1));
    let dir = RunDir::open(folder.path()).unwrap();
    assert_eq!((dir.run.status, &dir.summary), (Status::Complete, &Some(imported(1_000).summary)));
    let mut seen = Vec::new();
    dir.each_interval(|interval| seen.push(interval)).unwrap();
    let read = &seen[0].metrics[0];
    assert_eq!((read.name.as_str(), &read.outcomes), ("READ", &metrics[0].outcomes));
    let known = &metrics[0].known;
    assert_eq!(
        read.known,
        [("ok.service", "service"), ("ok.response", "response")]
            .map(|(kind, of)| (kind.to_owned(), known[of].clone()))
            .into()
    );
    // One sample of 2 ms, in microseconds.
    assert_eq!((read.histograms.len(), read.histograms["ok.service"].percentile_ns(50.0)), (1, 2_000_999));
    let times: Vec<_> = seen.iter().map(|interval| (interval.start_s, interval.length_s)).collect();
    assert_eq!(times, [(3.0, Some(10.0)), (13.25, Some(0.25))]);
    let part = dir.measured_window(3, 100).unwrap();
    assert_eq!(
        (part.seconds, part.operations, part.latencies["READ"].percentile_ns(50.0)),
        (10, 7, 2_000_999)
    );
    let events = dir.read_events().unwrap();
    let told: Vec<_> = events.iter().map(|e| format!("{} {} {}", e.at, e.event, e.text)).collect();
    assert_eq!(told, ["2026-11-25T00:00:00Z begin measure", "2026-11-25T00:00:13.5Z end measure"]);
}

#[test]
fn histograms_of_another_program_keep_their_unit() {
    for (unit_ns, message) in [(1_000, "microseconds"), (64, "nanoseconds")] {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &imported(unit_ns)).unwrap();
        let log = std::fs::read_to_string(folder.path().join("latency.hlog")).unwrap();
        assert!(log.starts_with(&format!("#[Values in {message}; ")), "{log}");
        assert!(log.contains(&format!("#[StartTime: {BEGIN_S}.000 (seconds since epoch)]\n")), "{log}");
        assert!(log.ends_with(&imported(unit_ns).log), "{log}");
        let totals = &RunDir::open(folder.path()).unwrap().phases[0].totals;
        let service = &totals.ok_slot(0).unwrap().service;
        // 2 ms, to the bucket.
        assert_eq!((service.count(), service.percentile_ns(50.0).abs_diff(2_000_000) < 2_000), (1, true));
    }
}

#[test]
fn results_of_another_program_are_not_written_over_a_run() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &imported(64)).unwrap();
    let refused = write(folder.path(), &imported(64)).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
}
