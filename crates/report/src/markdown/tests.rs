use crate::html::tests::write_run;
use crate::markdown::*;

fn summary_of(path: &std::path::Path) -> String {
    let run = RunDir::open(path).unwrap();
    let recording = Recording::open(path).unwrap();
    let summary = run.summary.clone().unwrap();
    of_run(&run, &summary, recording.as_ref(), &["a note".into()])
}

const SECTIONS: [&str; 17] = [
    "## Show Summary",
    "### Workload",
    "### Connections",
    "### Workflow",
    "#### Actual",
    "#### Planned",
    "### Loading",
    "### Execution",
    "#### Per Connection",
    "#### Per Phase",
    "### Monitoring",
    "### Loading phase: SUT deployment",
    "### Loading phase: component loader",
    "### Execution phase: SUT deployment",
    "### Execution phase: component benchmarker",
    "### Application Metrics",
    "### Tests",
];

fn test_line<'a>(text: &'a str, message: &str) -> &'a str {
    text.lines()
        .find(|line| line.starts_with("* TEST") && line.contains(message))
        .unwrap_or_else(|| panic!("{message}: {text}"))
}

#[test]
fn a_run_has_bexhomas_sections_and_tests() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &["READ".into(), "UPDATE".into()], 20, 3, false);
    let text = summary_of(folder.path());
    let mut from = 0;
    for section in SECTIONS {
        let line = format!("\n{section}\n");
        let found = format!("\n{text}")[from..].find(&line);
        from += found.unwrap_or_else(|| panic!("{section} after {from}: {text}"));
    }
    assert!(!text.contains("<img") && !text.contains("</script>"), "{text}");
    // 400 operations a second; 200 samples of each a second.
    let row = text.lines().find(|line| line.starts_with("| Redis-1-1-1 ")).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    let expected = ["Redis-1-1-1", "Redis-1-1-1", "1", "8", "-", "1", "1", "0", "400.00", "20000.00", "4000"];
    assert_eq!(&cells[1..12], expected, "{row}");
    // The exact percentile of what was recorded, in the histogram's resolution.
    let mut all: Vec<u64> = Vec::new();
    for second in 0..20u64 {
        all.extend((0..200u64).map(|sample| 50_000 + (sample * 7_919 + second * 104_729) % 900_000));
    }
    all.sort_unstable();
    let exact = all[all.len() * 99 / 100 - 1] as f64 / 1e3;
    let p99: f64 = cells[12].parse().unwrap();
    assert!((p99 / exact - 1.0).abs() < 0.002, "{p99} {exact}");
    assert!(test_line(&text, "Execution Phase: [OVERALL].Throughput").starts_with("* TEST passed"));
    assert!(test_line(&text, "FAILED column").starts_with("* TEST passed"));
    assert!(test_line(&text, "Workflow as planned").starts_with("* TEST passed"));
    assert!(test_line(&text, "SUT process restarts").starts_with("* TEST skipped"));
    assert!(test_line(&text, "Execution phase: SUT deployment").contains("(it was not watched)"));
    assert!(test_line(&text, "Loading Phase: [OVERALL]").contains("(nothing was loaded)"));
}

#[test]
fn failures_fail() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), &["READ".into()], 12, 0, true);
    let text = summary_of(folder.path());
    assert!(text.contains("[READ-FAILED].Operations"), "{text}");
    assert!(test_line(&text, "FAILED column").starts_with("* TEST failed"));
    assert!(test_line(&text, "Execution Phase: [OVERALL].Throughput").starts_with("* TEST failed"));
}

#[test]
fn markup_has_no_effect() {
    assert_eq!(
        escape_markdown("[a](b)|<i>*x*\n[CPU] [OVERALL].Throughput(x)"),
        "[a]&#40;b)&#124;&#60;i&#62;&#42;x&#42; [CPU] [OVERALL].Throughput(x)"
    );
}

/// The journal and the matrix of an experiment around runs.
pub(super) fn experiment(
    folder: &std::path::Path,
    cells: &[(&str, &[(&str, &str)])],
    repetitions: u64,
    seconds: u64,
) -> ExperimentDir {
    let mut journal = String::new();
    let mut described = Vec::new();
    for (number, (label, levels)) in cells.iter().enumerate() {
        described.push(serde_json::json!({"number": number + 1, "label": label, "levels": levels}));
        for repetition in 1..=repetitions {
            let dir = format!("runs/{}-{repetition}", number + 1);
            std::fs::create_dir_all(folder.join("runs")).unwrap();
            write_run(&folder.join(&dir), &["READ".into()], seconds, 0, false);
            std::fs::write(folder.join(&dir).join("report.html"), "x").unwrap();
            let throughput = 200.0 + repetition as f64 + 10.0 * number as f64;
            let line = serde_json::json!({"event": "ended", "cell": number + 1, "repetition": repetition, "point": "", "dir": dir,
                "status": "complete", "words": "</script><img src=x>",
                "trust": "valid", "throughput": throughput, "passed": true});
            journal.push_str(&format!("{line}\n"));
        }
    }
    journal.push_str("{\"event\":\"end\",\"status\":\"complete\"}\n");
    let record = serde_json::json!({"version": 1, "name": "an experiment", "started": "now", "command": ["dyno", "run", "x.yaml"],
        "cells": described, "runs": cells.len() as u64 * repetitions});
    std::fs::write(folder.join("experiment.json"), record.to_string()).unwrap();
    std::fs::write(folder.join("journal.jsonl"), journal).unwrap();
    ExperimentDir::open(folder).unwrap()
}

#[test]
fn memory_of_a_common_group_counts_once_and_not_at_all_where_it_is_a_sessions() {
    use dyno_rundir::monitor::Kind::{Counter, Gauge};
    let mut recording = Recording::new();
    // Two workers in one group of 3 GiB, a third in one of its own with 1 GiB; dyno and the server share the session's.
    let groups = [
        ("dyno", 1.0, 9.0),
        ("server", 1.0, 9.0),
        ("worker-1", 2.0, 3.0),
        ("worker-2", 2.0, 3.0),
        ("worker-3", 3.0, 1.0),
    ];
    for second in 0..=10u32 {
        let at = f64::from(second);
        for (source, group, gib) in groups {
            let row = [
                ("cpu.user_s", Counter, at),
                ("cpu.system_s", Counter, 0.0),
                ("cgroup.number", Gauge, group),
                ("cgroup.memory_bytes", Gauge, gib * f64::from(1 << 30)),
            ];
            recording.push(source, at * 1e3, row);
        }
    }
    let of = |prefix| entry::read_component(Some(&recording), &[prefix], Some((0.0, 10_000.0)));
    assert_eq!((of("worker").cached, of("server").cached), (Some(4.0), None));
    assert_eq!(of("worker").cpu_s, Some(30.0));
}

#[test]
fn a_kubelet_that_looked_once_in_a_phase_says_nothing_of_it() {
    use dyno_rundir::monitor::Kind::{Counter, Gauge};
    let mut recording = Recording::new();
    for at in [0.0, 12.0, 24.0, 36.0] {
        recording.push("server-d1-s0-0", at * 1e3, [("cgroup.cpu_s", Counter, at)]);
    }
    for at in 0..=36u32 {
        let row = [
            ("cpu.user_s", Counter, f64::from(at) * 0.5),
            ("cpu.system_s", Counter, 0.0),
            ("replication.replicas", Gauge, 0.0),
        ];
        recording.push("database", f64::from(at) * 1e3, row);
    }
    let of = |prefixes: &[&str], from, to| {
        entry::read_component(Some(&recording), prefixes, Some((from, to))).cpu_s
    };
    assert_eq!(of(&["server"], 1_000.0, 30_000.0), Some(29.0));
    assert_eq!(of(&["server"], 1_000.0, 13_000.0), None, "shorter than its period");
    // Figures that the database reports of its own process are known of every second.
    assert_eq!(of(&["server", "database"], 1_000.0, 13_000.0), Some(6.0));
}

#[test]
fn an_experiment_merges_its_repetitions() {
    let folder = tempfile::tempdir().unwrap();
    let cells: [(&str, &[(&str, &str)]); 2] = [("size=1", &[("size", "1")]), ("size=2", &[("size", "2")])];
    let dir = experiment(folder.path(), &cells, 3, 12);
    let text = of_experiment(&dir);
    assert!(text.contains("| Redis-2-3-1 "), "{text}");
    let row = text.lines().find(|line| line.starts_with("| Redis-1 ")).unwrap();
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    assert_eq!((cells[3], cells[11]), ("all 3", "7200"), "counts of all repetitions: {row}");
    assert!(test_line(&text, "Workflow as planned").starts_with("* TEST passed"));
    let page = crate::html::experiment::experiment_page(&dir, None, &[]);
    assert!(
        !page.contains("<img") && page.matches("<script").count() == 2,
        "the journal's words are no markup"
    );
    assert!(page.contains("<a href=\"./runs/2-3/report.html\">"));
    // Three runs at 201, 202 and 203: Student's interval is 4.303 / sqrt(3).
    assert!(page.contains("<td>202</td><td>±2.484</td>"), "{page}");
    assert!(page.contains("class=\"fixed\"") && !page.contains("Lazowska"), "users do not vary here");
}

#[test]
fn a_cell_with_an_invalid_run_is_not_called_the_greatest() {
    let folder = tempfile::tempdir().unwrap();
    let cells: [(&str, &[(&str, &str)]); 3] =
        [("a", &[("size", "1")]), ("b", &[("size", "2")]), ("c", &[("size", "3")])];
    let mut dir = experiment(folder.path(), &cells, 1, 3);
    let page = |dir: &ExperimentDir| crate::html::experiment::experiment_page(dir, None, &[]);
    // One run a cell: 201, 211, 221.
    let text = page(&dir);
    assert!(text.contains("Throughput is greatest at 221/s with size 3."), "{text}");
    dir.runs[2].trust = "invalid".into();
    let text = page(&dir);
    assert!(text.contains("Throughput is greatest at 211/s with size 2."), "{text}");
    assert!(text.contains("1 cell is left out: invalid runs."), "{text}");
    assert!(!text.contains("greatest at 221"), "{text}");
    dir.runs.iter_mut().for_each(|run| run.trust = "invalid".into());
    let text = page(&dir);
    assert!(text.contains("Every cell has invalid runs") && !text.contains("Greatest mean"), "{text}");
}

#[test]
fn engines_by_memory_are_laid_over_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let cells: [(&str, &[(&str, &str)]); 4] = [
        ("a", &[("engine", "one"), ("memory", "1g")]),
        ("b", &[("engine", "two"), ("memory", "1g")]),
        ("c", &[("engine", "one"), ("memory", "2g")]),
        ("d", &[("engine", "two"), ("memory", "2g")]),
    ];
    let page = crate::html::experiment::experiment_page(&experiment(folder.path(), &cells, 2, 35), None, &[]);
    assert!(
        page.contains("memory 1g: throughput of ten seconds")
            && page.contains("memory 2g: throughput of ten seconds")
    );
    // Three whole tens of 200 operations a second, one line for each engine.
    let begin = page.find("id=\"data\">").unwrap() + 10;
    let data: serde_json::Value =
        serde_json::from_str(&page[begin..begin + page[begin..].find("</script>").unwrap()]).unwrap();
    let series = data["charts"][0]["choices"][0]["s"].as_array().unwrap();
    assert_eq!((series.len(), series[1]["n"].as_str()), (2, Some("two")));
    assert_eq!(series[0]["v"], serde_json::json!([200.0, 200.0]), "a level is its ends");
    assert_eq!(series[0]["t"], serde_json::json!([500, 2000]));
    // 201 and 202: 201.5 ± 12.706 x 0.5.
    assert!(page.contains("<td class=\"word\">1g</td><td>201.5 ±6.353</td><td>211.5 ±6.353</td>"), "{page}");
}

#[test]
fn any_two_factors_with_repetitions_are_laid_over_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = "<img src=x onerror=alert(1)>";
    let cells: [(&str, &[(&str, &str)]); 4] = [
        ("a", &[("size", "1"), ("policy", hostile)]),
        ("b", &[("size", "1"), ("policy", "lru")]),
        ("c", &[("size", "2"), ("policy", hostile)]),
        ("d", &[("size", "2"), ("policy", "lru")]),
    ];
    let page = crate::html::experiment::experiment_page(&experiment(folder.path(), &cells, 2, 21), None, &[]);
    assert!(!page.contains("<img"), "{page}");
    // Levels that are words are laid over each other, those that are numbers have a chart each.
    assert!(page.contains("policy by size") && page.contains("size 1: throughput of ten seconds"), "{page}");
    assert!(page.contains("<td class=\"word\">1</td><td>201.5 ±6.353</td><td>211.5 ±6.353</td>"), "{page}");
    // One repetition, or three factors: no such section.
    for (repetitions, more) in [(1, ""), (2, "third")] {
        let folder = tempfile::tempdir().unwrap();
        let levels: Vec<(&str, &str)> = match more {
            "" => vec![("size", "1"), ("policy", "lru")],
            more => vec![("size", "1"), ("policy", "lru"), (more, "x")],
        };
        let page = crate::html::experiment::experiment_page(
            &experiment(folder.path(), &[("a", &levels)], repetitions, 21),
            None,
            &[],
        );
        assert!(!page.contains("policy by size"), "{repetitions} {more}");
        assert!(repetitions > 1 || page.contains("one run: none"), "{page}");
    }
}

#[test]
fn the_same_experiment_again_has_what_was_set_beside_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut dir = experiment(folder.path(), &[("a", &[("size", "1")])], 1, 3);
    let place = folder.path().display();
    let page = |dir: &ExperimentDir| crate::html::experiment::experiment_page(dir, None, &[]);
    assert!(page(&dir).contains(&format!("<pre>dyno run {place}/experiment.yaml</pre>")));
    dir.sets = ["users=8", "server.options.save=a b"].map(str::to_owned).to_vec();
    let sets = "--set users=8 --set 'server.options.save=a b'";
    let again = format!("<pre>dyno run {place}/experiment.yaml {sets}</pre>");
    assert!(page(&dir).contains(&again), "{again}: {}", page(&dir));
}

#[test]
fn a_terminal_shows_characters_and_not_their_escapes() {
    let text = "redis://:***@h | <b> `x` \\ & [a](b)";
    assert_ne!(escape_markdown(text), text);
    assert_eq!(unescape_markdown(&escape_markdown(text)), text);
    // What no escape has made stays, also one of a control character.
    for text in ["&#", "&#;", "&#x41;", "&#27;", "&#65;", "a & b", "&#42"] {
        assert_eq!(unescape_markdown(text), text);
    }
}
