//! Names that would be markup, in every text field of the pages beside that of a run; and clocks that jump.

use crate::comparison::markdown::render_markdown;
use crate::comparison::text::render_comparisons;
use crate::comparison::{ComparedFigure, Pairing, ReportLink, Responses};
use crate::html::comparison::comparison_page;
use crate::html::served::Listed;
use crate::html::served::ListedKind;
use crate::html::served::list_page;
use crate::html::served::list_rows;
use crate::html::served::live_page;
use crate::html::served::message_page;
use crate::html::tests::{HOSTILE, assert_self_contained, page_data, render_test_page, write_run};
use dyno_analysis::ArrivalLatency;
use dyno_analysis::compare::{Margin, Quantiles, compare_samples};
use dyno_record::Scale;

fn pairing(runs: usize) -> Pairing {
    let throughput = |level: f64| (0..runs).map(|n| level + n as f64).collect::<Vec<f64>>();
    let (one, other) = (throughput(100.0), throughput(150.0));
    let histogram = |base: u64| {
        let mut arrivals = ArrivalLatency::new(Scale::Ns64);
        (0..5_000).for_each(|n| arrivals.ok.record(base + n * 97));
        arrivals
    };
    let times = ([histogram(200_000), histogram(201_000)], [histogram(100_000), histogram(101_000)]);
    let times = (&times.0[..runs.min(2)], &times.1[..runs.min(2)]);
    let drawn = Quantiles::draw_replicates(times.0, times.1, &[50.0, 95.0], 1).unwrap();
    let found = compare_samples(&one, &other, Margin::THROUGHPUT, 0.0).unwrap();
    let figure = |name: &str, found, each| ComparedFigure {
        name: name.into(),
        unit: "ops/s",
        found,
        noise: 0.01,
        each,
    };
    let p50 = drawn.compare_percentile(50.0, Margin::LATENCY, 0.0).unwrap();
    let nothing = (Vec::new(), Vec::new());
    let rows = vec![(HOSTILE.to_owned(), HOSTILE.to_owned(), HOSTILE.to_owned())];
    Pairing {
        experiment: None,
        cell: HOSTILE.into(),
        first: HOSTILE.into(),
        second: format!("two {HOSTILE}"),
        figures: vec![figure(HOSTILE, found, (one, other)), figure(HOSTILE, p50, nothing)],
        responses: vec![Responses {
            metric: HOSTILE.into(),
            shifts: drawn.percentile_shifts(),
            merged: (histogram(200_000), ArrivalLatency { unsent: 10, ..histogram(100_000) }),
        }],
        replays: None,
        settings: rows.clone(),
        environment: rows,
        warnings: vec![HOSTILE.into()],
        about: vec![(HOSTILE.to_owned(), HOSTILE.to_owned(), HOSTILE.to_owned())],
        reports: (vec![ReportLink { name: HOSTILE.into(), address: HOSTILE.into() }], Vec::new()),
    }
}

#[test]
fn nothing_gets_out_of_a_comparison() {
    for runs in [1, 5] {
        let page = comparison_page(&[pairing(runs), pairing(runs)], &[HOSTILE.into()]);
        assert_self_contained(&page);
        assert!(page.contains(if runs == 1 { "UNCLEAR" } else { "BETTER" }), "{page}");
        let found = page_data(&page);
        assert_eq!(found["distributions"].as_array().unwrap().len(), 4);
    }
    let text = render_markdown(&[pairing(5)]);
    assert!(!text.contains("<img") && !text.contains("</script>"), "{text}");
    let nothing = Pairing { figures: Vec::new(), responses: Vec::new(), ..pairing(5) };
    assert!(text_of(&nothing).contains("nothing that both have"));
    let page = comparison_page(&[nothing], &[]);
    assert_self_contained(&page);
    assert!(
        page.contains("Nothing can be compared") && page.contains("Quantiles are not compared"),
        "{page}"
    );
    assert!(comparison_page(&[], &[]).contains("there is nothing to compare"));
}

fn text_of(one: &Pairing) -> String {
    render_comparisons(std::slice::from_ref(one))
}

#[test]
fn nothing_gets_out_of_the_pages_of_a_server() {
    let hostile = || HOSTILE.to_owned();
    let entry = |kind, state: &str| Listed {
        name: hostile(),
        kind,
        title: hostile(),
        started: hostile(),
        target: hostile(),
        throughput: Some(1.0),
        p99_us: Some(4_570.0),
        verdict: hostile(),
        state: state.into(),
        runs: Some((1, 2)),
        message: hostile(),
    };
    let all = [
        entry(ListedKind::Run, "running"),
        entry(ListedKind::Experiment, "running"),
        entry(ListedKind::Run, HOSTILE),
    ];
    for page in [
        list_page(HOSTILE, &all, 3, true),
        live_page(HOSTILE, ListedKind::Experiment, true),
        message_page(HOSTILE, HOSTILE),
    ] {
        assert!(!page.contains("<img") && !page.contains("onerror=alert(1)>'"), "markup from data");
        let scripts = page.matches("<script").count();
        assert_eq!(scripts, page.matches("</script>").count());
        assert!(page.contains("default-src 'none'") && !page.contains("-inline"));
    }
    let rows = list_rows(&all, false);
    assert!(!rows.contains("<form"), "read-only");
    assert!(list_rows(&all, true).matches("<form").count() == 1, "experiments alone are stopped");
    assert!(rows.contains("/dir/%3C/script%3E%3Cimg%20src"), "{rows}");
}

/// A run of 30 s whose events were dated by a clock that jumped by so many seconds before a phase's end.
fn jumped(by_s: i64) -> String {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &["READ".to_owned()], 30, 3, false);
    let path = folder.path().join("events.jsonl");
    let mut lines: Vec<serde_json::Value> = Vec::new();
    for line in std::fs::read_to_string(&path).unwrap().lines() {
        let mut event: serde_json::Value = serde_json::from_str(line).unwrap();
        if event["event"] == "end" {
            let at: jiff::Timestamp = event["at"].as_str().unwrap().parse().unwrap();
            event["at"] = (at + jiff::SignedDuration::from_secs(by_s)).to_string().into();
        }
        lines.push(event);
    }
    std::fs::write(&path, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    render_test_page(folder.path())
}

#[test]
fn a_clock_that_jumps_is_told_of_and_the_seconds_are_drawn() {
    for (by_s, message) in [
        (-3_600, "the clock was set back"),
        (-20, "the clock was set back"),
        (3_600, "set forward, or nothing"),
    ] {
        let page = jumped(by_s);
        assert_self_contained(&page);
        assert!(page.contains(message), "{by_s}");
        let found = page_data(&page);
        let values = found["charts"][0]["choices"][0]["s"][0]["t"].as_array().unwrap();
        assert!(!values.is_empty(), "{by_s}");
        let (from, to) = (found["span"][0].as_f64().unwrap(), found["span"][1].as_f64().unwrap());
        assert!(from == 0.0 && to >= 30.0, "{by_s}: {from} {to}");
    }
    let page = jumped(0);
    assert!(!page.contains("the clock was set"), "{page}");
}
