//! `dyno bexhoma`: whole runs on this host, what they leave, and what is refused.

mod common;

use common::{Dyno, assert_exit, skip, stderr, stdout};
use std::fs;
use std::path::PathBuf;

/// A thousandth of the rows and operations of the first of bexhoma's examples, at targets that any machine reaches.
const SMALL: &str = "-dbms Redis -sf 1 -xwl a -xop 4 -xtb 500 -xnlf 2 -xnbf 2 -nlp 4 -nlt 16 -nbt 8 -m -mc -ma -tr \
                     --local --scale 1000 --set client.threads=1 --resultfolder results -q";

/// The sections of bexhoma's summary.
const SECTIONS: [&str; 14] = [
    "## Show Summary",
    "### Workload",
    "### Connections",
    "### Workflow",
    "### Loading",
    "#### Per Connection",
    "#### Per Run",
    "### Execution",
    "#### Per Phase",
    "### Monitoring",
    "### Loading phase: SUT deployment",
    "### Execution phase: component benchmarker",
    "### Application Metrics",
    "### Tests",
];

fn bexhoma(dyno: &Dyno, words: &str) -> std::process::Output {
    let mut all = vec!["bexhoma"];
    all.extend(words.split_whitespace());
    dyno.run(&all)
}

/// The only experiment in the folder of results.
fn only(dyno: &Dyno) -> (String, PathBuf) {
    let found: Vec<PathBuf> =
        fs::read_dir(dyno.path("results")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    (found[0].file_name().unwrap().to_string_lossy().into_owned(), found[0].clone())
}

/// Cells of a Markdown table's rows below a heading, up to the next one.
fn rows(summary: &str, headings: &[&str]) -> Vec<Vec<String>> {
    let mut rest = summary;
    for heading in headings {
        rest = &rest
            [rest.find(&format!("{heading}\n")).unwrap_or_else(|| panic!("{heading}")) + heading.len()..];
    }
    let lines = rest.lines().take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with('|'));
    lines.map(|line| line.split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

fn column(rows: &[Vec<String>], name: &str) -> Vec<String> {
    let at = rows[0].iter().position(|head| head == name).unwrap_or_else(|| panic!("{name}: {:?}", rows[0]));
    rows[2..].iter().map(|row| row[at].clone()).collect()
}

#[test]
fn a_whole_run_and_its_summary() {
    if dyno_rig::find_server(Some("redis")).is_none() {
        return skip("a whole run of dyno bexhoma");
    }
    let dyno = Dyno::new();
    let done = bexhoma(&dyno, &format!("ycsb {SMALL} -nbp 2 -nc 2 run"));
    // 5 is a verdict on this machine, 4 a test of the summary that it missed.
    assert_exit(&done, &[0, 4, 5]);
    let (code, home) = only(&dyno);
    let summary = fs::read_to_string(home.join("summary.md")).unwrap();
    assert!(stdout(&done).contains(&summary), "the summary is printed");
    let mut rest = summary.as_str();
    for section in SECTIONS {
        let at = rest.find(&format!("{section}\n")).unwrap_or_else(|| panic!("no {section}:\n{summary}"));
        rest = &rest[at..];
    }
    assert!(summary.contains(&format!("* Code: {code}\n")), "{summary}");
    let loading = rows(&summary, &["### Loading", "#### Per Connection"]);
    assert_eq!(column(&loading, "DBMS"), ["Redis-1-1", "Redis-1-2"]);
    assert_eq!(column(&loading, "threads"), ["16", "16"]);
    assert_eq!(column(&loading, "target"), ["1000.00", "1000.00"]);
    assert_eq!(column(&loading, "[INSERT].Return=OK"), ["1000", "1000"], "each repetition loads");
    let execution = rows(&summary, &["### Execution", "#### Per Connection"]);
    assert_eq!(column(&execution, "threads"), ["8", "8"]);
    let count = |name: &str| column(&execution, name).iter().map(|n| n.parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(count("[READ].Return=OK") + count("[UPDATE].Return=OK"), 8000);
    // The loader's CPU is measured, however short its phase.
    let loader = column(&rows(&summary, &["### Loading phase: component loader"]), "CPU [CPUs]");
    // A thousand rows may take less than the half of a hundredth that would show.
    assert!(loader.iter().all(|cpu| cpu.parse::<f64>().is_ok_and(|cpu| cpu >= 0.0)), "{loader:?}");
    // Four workers load, two of them benchmark.
    for run in ["cell0001-rep01", "cell0001-rep02"] {
        let text = fs::read_to_string(home.join("runs").join(run).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        let threads = |name: &str| {
            let phases = summary["phases"].as_array().unwrap();
            let phase = phases.iter().find(|phase| phase["name"] == name).unwrap();
            phase["client"]["threads"].as_u64().unwrap()
        };
        assert_eq!(threads("load"), 2 * threads("measure"), "{run}");
    }
    let workflow = fs::read_to_string(home.join("workflow.txt")).unwrap();
    assert!(workflow.contains("  * Redis-1-2-0-1-4: threads 4, target 250.00, rows 250\n"), "{workflow}");
    managed(&dyno, &code, &summary, done.status.code());
}

/// What the other commands say of an experiment that has ended.
fn managed(dyno: &Dyno, code: &str, summary: &str, ended: Option<i32>) {
    let again = bexhoma(dyno, &format!("summary -e {code} --resultfolder results"));
    assert_eq!(stdout(&again), summary);
    assert_eq!(again.status.code() == Some(4), summary.contains("* TEST failed"));
    assert!(ended != Some(0) || again.status.code() == Some(0));
    assert_eq!(stdout(&bexhoma(dyno, &format!("ycsb summary -e {code} --resultfolder results"))), summary);
    let status = bexhoma(dyno, "status --resultfolder results");
    assert!(stdout(&status).contains("complete, 2 of 2 runs ended"), "{}", stdout(&status));
    let listed = bexhoma(dyno, "localresults --resultfolder results");
    assert!(stdout(&listed).contains(code), "{}", stdout(&listed));
    assert!(stderr(&bexhoma(dyno, "stop --resultfolder results")).contains("nothing runs"));
    let other = bexhoma(dyno, "summary -e 17 --resultfolder results");
    assert_exit(&other, &[2]);
    assert!(stderr(&other).contains("-e 17: no experiment of that code"), "{}", stderr(&other));
}

#[test]
fn rounds_are_clients() {
    if dyno_rig::find_server(Some("redis")).is_none() {
        return skip("rounds of dyno bexhoma");
    }
    let dyno = Dyno::new();
    assert_exit(&bexhoma(&dyno, &format!("ycsb {SMALL} -nbp 1,4 -xmet 1 run")), &[0, 4, 5]);
    let summary = fs::read_to_string(only(&dyno).1.join("summary.md")).unwrap();
    assert!(summary.contains("* DBMS Redis-1 - Experiment 1 Client 2: load, measure\n"), "{summary}");
    let execution = rows(&summary, &["### Execution", "#### Per Connection"]);
    assert_eq!(column(&execution, "DBMS"), ["Redis-1-1-1", "Redis-1-1-2"], "bexhoma's names of phases");
}

#[test]
fn the_seeds_first_command_without_a_cluster() {
    let dyno = Dyno::new();
    let words = "ycsb -dbms Dragonfly -sf 1 -xwl a -xtb 16384 -xnbf 4 -xnlf 12 -nc 1 -ne 1 -nlp 8 -nlt 64 -nbp 1 -nbt 128 \
                 -xop 10 -m -ma -mc -tr -lr 64Gi -rr 64Gi -rnn a -rnl b -rnb b run --dry-run";
    let output = bexhoma(&dyno, words);
    assert_exit(&output, &[0]);
    let text = stdout(&output);
    for line in [
        "* DBMS Dragonfly-1 - Experiment 1 Client 1: ycsb (1 pods)",
        "  * Dragonfly-1-1-0-1-8: threads 8, target 24576.00, rows 125000",
        "  * Dragonfly-1-1-1-1-1: threads 128, target 65536.00, operations 10000000",
        "  worker_pods: 8  # -nlp, -nbp, -ne",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line:?} in\n{text}");
    }
    assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 0, "a dry run leaves nothing");
}

#[test]
fn what_is_not_offered_is_refused_with_words() {
    let dyno = Dyno::new();
    let refused = [
        ("ycsb -dbms Redis -xwl a", "expected a mode"),
        ("ycsb -dbms MySQL -xwl a run", "is no key-value store"),
        ("tpch run", "tpch: is not offered"),
        ("summary", "expected -e CODE"),
        ("stop -nc 3", "stop: expected no more than -e CODE"),
        ("nonsense", "is no command of bexhoma"),
    ];
    for (words, why) in refused {
        let output = bexhoma(&dyno, words);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(why), "{words}: {}", stderr(&output));
    }
    let help = bexhoma(&dyno, "--help");
    assert_exit(&help, &[0]);
    assert!(stdout(&help).contains("-xnlf, --xnum-loading-target-factors"), "{}", stdout(&help));
    assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 0);
}
