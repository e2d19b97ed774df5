//! `dyno bexhoma`: whole runs on this host, what they leave, and what is refused.

use dyno_testkit::{Dyno, assert_exit, skip, stderr, stdout};
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

fn bexhoma(dyno: &Dyno, text: &str) -> std::process::Output {
    let mut all = vec!["bexhoma"];
    all.extend(text.split_whitespace());
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
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("a whole run of dyno bexhoma");
    }
    let dyno = Dyno::new();
    let done = bexhoma(&dyno, &format!("ycsb {SMALL} -nbp 2 -nc 2 run"));
    // 5 is a verdict on this machine, 4 a test of the summary that it missed.
    dyno.assert_bexhoma_ran(&done);
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
    // A row for each pod, and one for each run.
    let pods: Vec<String> =
        [1, 2].iter().flat_map(|run| (1..=4).map(move |pod| format!("Redis-1-{run}-0-1-{pod}"))).collect();
    assert_eq!(column(&loading, "connection"), pods);
    for (name, value) in
        [("threads", "4"), ("target", "250.00"), ("pod_count", "4"), ("[INSERT].Return=OK", "250")]
    {
        assert_eq!(column(&loading, name), [value; 8], "{name}");
    }
    let loading = rows(&summary, &["### Loading", "#### Per Run"]);
    assert_eq!(column(&loading, "DBMS"), ["Redis-1-1", "Redis-1-2", "Redis-1"]);
    assert_eq!(column(&loading, "experiment_run"), ["1", "2", "all 2"]);
    assert_eq!(column(&loading, "threads"), ["16", "16", "16"]);
    assert_eq!(column(&loading, "target"), ["1000.00", "1000.00", "1000.00"]);
    assert_eq!(column(&loading, "[INSERT].Return=OK"), ["1000", "1000", "2000"], "each repetition loads");
    let execution = rows(&summary, &["### Execution", "#### Per Connection"]);
    assert_eq!(
        execution[0][1..13],
        [
            "DBMS",
            "phase",
            "job",
            "configuration",
            "experiment_run",
            "client",
            "benchmark_run",
            "child",
            "threads",
            "target",
            "pod_count",
            "exceptions"
        ]
    );
    assert_eq!(
        execution[2][1..13],
        [
            "Redis-1-1-1-1-1",
            "Redis-1-1-1",
            "Redis-1-1-1-1",
            "Redis-1",
            "1",
            "1",
            "1",
            "1",
            "4",
            "500.00",
            "2",
            "0"
        ]
    );
    assert_eq!(column(&execution, "child"), ["1", "2", "1", "2"]);
    let count = |name: &str| column(&execution, name).iter().map(|n| n.parse::<u64>().unwrap()).sum::<u64>();
    assert_eq!(count("[READ].Return=OK") + count("[UPDATE].Return=OK"), 8000);
    let phases = rows(&summary, &["### Execution", "#### Per Phase"]);
    assert_eq!(column(&phases, "phase"), ["Redis-1-1-1", "Redis-1-2-1", "Redis-1"]);
    assert_eq!(column(&phases, "pod_count"), ["2", "2", "2"]);
    whole_counts(&summary);
    told(&summary);
    check_connections(&summary, &code);
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

/// Two commands for each of 1,000 rows, one for each of 4,000 operations, and the few with which dyno asks: counters are whole,
/// and nothing of a phase is missing.
fn whole_counts(summary: &str) {
    for (phase, least) in [("Loading", 2_000), ("Execution", 4_000)] {
        let heading = format!("#### {phase} phase: SUT deployment");
        let all = rows(summary, &["### Application Metrics", &heading]);
        assert_eq!(
            all[0][1..7],
            [
                "DBMS",
                "Replies Sent [count]",
                "Memory Usage [Gi]",
                "Processed Commands [per second]",
                "Network Input [MB/sec]",
                "Replica Lag [records]"
            ]
        );
        assert_eq!(column(&all, "DBMS"), ["Redis-1-1-1-1", "Redis-1-2-1-1"]);
        for replies in column(&all, "Replies Sent [count]") {
            let replies: u64 = replies.parse().unwrap_or_else(|_| panic!("{replies} is whole"));
            assert!((least..least + 400).contains(&replies), "{phase}: {replies}");
        }
    }
}

/// The workload's bullets and the workflow, in bexhoma's words.
fn told(summary: &str) {
    for line in [
        "YCSB SF=0.001",
        "* Type: ycsb",
        "  * Workload is 'A'.",
        "  * Number of rows to insert is 1000.",
        "  * Number of operations is 4000.",
        "  * Target is based on multiples of '500'.",
        "  * Factors for loading are [2].",
        "  * Experiment is limited to DBMS ['Redis'].",
        "  * Import is handled by 4 processes (pods).",
        "  * Loading is tested with [16] threads, split into [4] pods.",
        "  * Benchmarking is tested with [8] threads, split into [2] pods.",
        "  * Experiment is run 2 times.",
        "* TEST passed: Workflow as planned",
    ] {
        assert!(summary.lines().any(|found| found == line), "no {line:?}:\n{summary}");
    }
    let line = "* DBMS Redis-1 - Experiment 2 Client 1: ycsb (2 pods)\n";
    assert_eq!(summary.matches(line).count(), 2, "actual and planned: {summary}");
}

/// Lines of the connection of each repetition, with bexhoma's names and order.
fn check_connections(summary: &str, code: &str) {
    let section = summary.split("### Connections\n").nth(1).unwrap().split("\n### ").next().unwrap();
    let names = section.lines().filter_map(|line| line.strip_prefix("* ")?.split(' ').next());
    assert_eq!(names.collect::<Vec<_>>(), ["Redis-1-1-1-1", "Redis-1-2-1-1"]);
    let lines: Vec<&str> = section.lines().collect();
    for at in (0..lines.len()).filter(|at| lines[*at].starts_with("* ")) {
        let found = ["RAM", "CPU", "Cores", "host", "node", "disk", "cpu_list"];
        for (key, line) in found.iter().zip(&lines[at + 1..]) {
            assert!(line.starts_with(&format!("  * {key}:")), "{key}: {section}");
        }
        assert_eq!(
            lines[at + 8..at + 10],
            ["  * eval_parameters", format!("    * code:{code}").as_str()],
            "{section}"
        );
    }
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
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("rounds of dyno bexhoma");
    }
    let dyno = Dyno::new();
    dyno.assert_bexhoma_ran(&bexhoma(&dyno, &format!("ycsb {SMALL} -nbp 1,4 -xmet 1 run")));
    let summary = fs::read_to_string(only(&dyno).1.join("summary.md")).unwrap();
    assert!(summary.contains("* DBMS Redis-1 - Experiment 1 Client 2: ycsb (4 pods)\n"), "{summary}");
    let execution = rows(&summary, &["### Execution", "#### Per Phase"]);
    assert_eq!(column(&execution, "phase"), ["Redis-1-1-1", "Redis-1-1-2"], "bexhoma's names of phases");
    let execution = rows(&summary, &["### Execution", "#### Per Connection"]);
    assert_eq!(column(&execution, "client"), ["1", "2", "2", "2", "2"]);
    // Each round loads anew, and no name of a load stands twice.
    let loading = rows(&summary, &["### Loading", "#### Per Connection"]);
    let loads: Vec<String> = [1, 2]
        .iter()
        .flat_map(|client| (1..=4).map(move |pod| format!("Redis-1-1-0-1-{pod} Client {client}")))
        .collect();
    assert_eq!(column(&loading, "connection"), loads);
    let loading = rows(&summary, &["### Loading", "#### Per Run"]);
    assert_eq!(column(&loading, "DBMS"), ["Redis-1-1 Client 1", "Redis-1-1 Client 2"]);
    // Where one pod measures after four have loaded, nothing began together.
    let skew = |cell: &str| {
        let path = only(&dyno).1.join("runs").join(cell).join("run.json");
        let run: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        run["facts"].get("workers.start_skew").cloned()
    };
    assert_eq!(skew("cell0001-rep01"), None);
    assert!(skew("cell0002-rep01").is_some());
    // Workers in the control group of the whole session have no memory of their own group.
    let all = rows(&summary, &["### Execution phase: component benchmarker"]);
    assert_eq!(column(&all, "Max RAM Cached [Gb]"), ["-", "-"]);
}

/// Processes of an experiment's server, by the folder that they work in.
fn server_below(folder: &std::path::Path) -> Option<u32> {
    let folder = folder.canonicalize().ok()?;
    let pids =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let mut found = pids.filter(|pid| {
        let link = |name: &str| fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default();
        link("cwd").starts_with(&folder) && link("exe").to_string_lossy().contains("redis")
    });
    found.next()
}

#[test]
fn a_run_that_failed_is_shown_with_what_it_did_and_its_tests_fail() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("a server of dyno bexhoma that dies");
    }
    let dyno = Dyno::new();
    let text = format!("ycsb {SMALL} -xmet 10 --set phases.measure.operations=60000 run");
    let mut all = vec!["bexhoma"];
    all.extend(text.split_whitespace());
    let (out, told) =
        (fs::File::create(dyno.path("out")).unwrap(), fs::File::create(dyno.path("told")).unwrap());
    let mut child = dyno.command(&all).stdout(out).stderr(told).spawn().unwrap();
    let measures = || {
        let home = fs::read_dir(dyno.path("results")).ok()?.flatten().next()?.path();
        let run = home.join("runs/cell0001-rep01");
        let intervals = fs::read_to_string(run.join("intervals.jsonl")).ok()?;
        intervals.contains("\"measure\"").then(|| server_below(&dyno.path("results"))).flatten()
    };
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let server = loop {
        if let Some(server) = measures() {
            break server;
        }
        assert!(std::time::Instant::now() < end, "nothing is measured");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    dyno_testkit::signal(server, "KILL");
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let summary = fs::read_to_string(dyno.path("out")).unwrap();
    assert!(summary.contains("  * Redis-1-1: failed: redis-"), "{summary}");
    assert!(summary.contains("Experiment 1 Client 1: ycsb (1 pods) (failed)\n"), "{summary}");
    assert!(!summary.contains("Nothing was loaded"), "{summary}");
    assert_eq!(column(&rows(&summary, &["### Loading", "#### Per Run"]), "[INSERT].Return=OK"), ["1000"]);
    let phases = rows(&summary, &["### Execution", "#### Per Phase"]);
    assert!(column(&phases, "exceptions")[0].parse::<u64>().unwrap() > 0, "{summary}");
    for line in [
        "* TEST failed: SUT process ended or was replaced: Redis-1-1",
        "* TEST failed: Workflow not as planned: 0 of 1 runs are complete, not made: DBMS Redis-1 - Experiment 1 Client 1: \
         ycsb (1 pods)",
        "* TEST failed: Every run has a verdict that is not invalid: Redis-1-1 (failed)",
        "* TEST passed: Loading Phase: as many records as planned",
    ] {
        assert!(summary.lines().any(|found| found == line), "no {line:?}:\n{summary}");
    }
}

#[test]
fn the_seeds_first_command_without_a_cluster() {
    let dyno = Dyno::new();
    let message = "ycsb -dbms Dragonfly -sf 1 -xwl a -xtb 16384 -xnbf 4 -xnlf 12 -nc 1 -ne 1 -nlp 8 -nlt 64 -nbp 1 -nbt 128 \
                 -xop 10 -m -ma -mc -tr -lr 64Gi -rr 64Gi -rnn a -rnl b -rnb b run --dry-run";
    let output = bexhoma(&dyno, message);
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
    // Pods have no image of dyno by themselves: that is said before anything is made.
    for mode in ["run", "load", "start"] {
        let output = bexhoma(&dyno, &message.replace("run --dry-run", mode));
        assert_exit(&output, &[2]);
        assert!(
            stderr(&output).contains("--image: expected the image of dyno for the pods"),
            "{}",
            stderr(&output)
        );
        assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 0);
    }
    let output = bexhoma(&dyno, &message.replace("run --dry-run", "-ms 1 run --dry-run"));
    assert!(
        stderr(&output).contains(
            "-ms: runs of this experiment follow each other, one server at a time; servers of other"
        )
    );
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
    for (message, why) in refused {
        let output = bexhoma(&dyno, message);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(why), "{message}: {}", stderr(&output));
    }
    let help = bexhoma(&dyno, "--help");
    assert_exit(&help, &[0]);
    assert!(stdout(&help).contains("-xnlf, --xnum-loading-target-factors"), "{}", stdout(&help));
    assert_eq!(fs::read_dir(dyno.path("")).unwrap().count(), 0);
}
