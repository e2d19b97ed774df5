//! `dyno run A --versus B`: runs by turns, and what comes out of their comparison.

use dyno_testkit::{Dyno, assert_exit, finish, signal, stderr, stdout};
use serde_json::Value;

/// Two simulated servers, the second slower by a fifth; time is virtual.
const SIDES: [&str; 4] = [
    "run",
    "sim:?service=1ms&distribution=exponential",
    "--versus",
    "sim:?service=1200us&distribution=exponential",
];

#[test]
fn two_targets_are_run_by_turns_and_compared() {
    let dyno = Dyno::new();
    let load = ["--users", "4", "-d", "20s", "--warmup", "0s", "--turns", "4", "--out", "v"];
    let output = dyno.run(&[&SIDES[..], &load].concat());
    assert_exit(&output, &[0]);
    let (told, turns) = (stdout(&output), stderr(&output));
    assert!(told.contains("worse"), "{told}");
    for line in ["a: sim:?service=1ms", "b: sim:?service=1200us", "turn 4 of 4  a  "] {
        assert!(turns.contains(line), "{line}: {turns}");
    }
    let lines: Vec<&str> = turns.lines().filter(|line| line.starts_with("turn ")).collect();
    let sides: String = lines.iter().map(|line| line.split("  ").nth(1).unwrap()).collect();
    assert_eq!(sides, "abbaabba");
    for (side, rate) in [("a", 1_000.0), ("b", 1_000.0 / 1.2)] {
        for turn in 1..=4 {
            let run = format!("v/{side}/{turn:02}");
            let summary = dyno.summary(&run);
            let found = summary["phases"][0]["throughput"].as_f64().unwrap();
            assert!((found / rate - 1.0).abs() < 0.05, "{run}: {found}");
            // A user who repeats one run by its command repeats that one.
            let text = std::fs::read_to_string(dyno.path(&format!("{run}/run.json"))).unwrap();
            let run: Value = serde_json::from_str(&text).unwrap();
            let command = run["command"].to_string();
            assert!(!command.contains("versus") && !command.contains("turns"), "{command}");
            assert!(command.contains(&format!("\"--seed\",\"{turn}\"")), "{command}");
        }
    }
    // The folders are sides of a comparison like any others.
    assert_exit(&dyno.run(&["compare", "v/a", "v/b", "--fail-on", "worse"]), &[4]);
}

#[test]
fn two_experiments_are_run_by_turns_cell_by_cell() {
    let dyno = Dyno::new();
    for (name, service) in [("one", "1ms"), ("two", "1200us")] {
        let text = format!(
            "target: 'sim:?service={service}&distribution=exponential'\nfactors: {{phases.measure.users: [1, 4]}}\n\
             phases: {{measure: {{duration: 10s, warmup: 0s}}}}\n"
        );
        std::fs::write(dyno.path(&format!("{name}.yaml")), text).unwrap();
    }
    let output =
        dyno.run(&["run", "one.yaml", "--versus", "two.yaml", "--turns", "4", "--out", "v", "--json"]);
    assert_exit(&output, &[0]);
    let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let cells = found.as_array().unwrap();
    assert_eq!(cells.len(), 2, "{found}");
    for cell in cells {
        let throughput = &cell["figures"][0];
        assert_eq!(throughput["conclusion"], "worse", "{cell}");
        assert_eq!(throughput["runs"], serde_json::json!([4, 4]));
    }
}

#[test]
fn what_cannot_be_run_by_turns_is_said_with_its_code() {
    let dyno = Dyno::new();
    for (text, code, said) in [
        ("run --versus sim:", 2, "is missing"),
        ("run sim: --turns 3", 2, "--versus"),
        ("run sim: --versus sim: --turns 0", 2, "0"),
        ("run sim: --versus nowhere: --out x", 2, "b: "),
        ("run sim: --versus redis://127.0.0.1:1 --out y", 3, "b: target unreachable"),
        ("run sim: --versus sim: --no-out", 2, "--no-out"),
    ] {
        let output = dyno.run(&text.split(' ').collect::<Vec<_>>());
        assert_exit(&output, &[code]);
        assert!(stderr(&output).contains(said), "{text}: {}", stderr(&output));
    }
}

/// A signal that reaches one process alone ends the turn under way, too.
#[test]
fn a_signal_ends_the_turn_under_way() {
    let dyno = Dyno::new();
    let words =
        ["run", "null:", "--versus", "null:", "-u", "1", "-d", "120s", "--warmup", "0s", "--out", "v"];
    let run = dyno.start(&words);
    dyno.await_phase("v/a/01", "measure");
    signal(run.id(), "TERM");
    assert_exit(&finish(run), &[130]);
    assert_eq!(dyno.summary("v/a/01")["status"], "interrupted");
    assert!(!dyno.path("v/b/01").exists());
}

/// Speaks against the tail of a run, and against nothing else of it.
fn spoil_tail(dyno: &Dyno, run: &str) {
    let path = dyno.path(&format!("{run}/summary.json"));
    let mut summary: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let reason = serde_json::json!({
        "check": "client_share", "trust": "invalid", "affects": ["tail"], "text": "the client was late"
    });
    summary["verdict"]["reasons"].as_array_mut().unwrap().push(reason);
    std::fs::write(&path, summary.to_string()).unwrap();
}

#[test]
fn a_run_is_left_out_of_the_figures_that_are_invalid_alone() {
    let dyno = Dyno::new();
    let load = ["--users", "4", "-d", "20s", "--warmup", "0s", "--turns", "3", "--out", "v", "--quiet"];
    assert_exit(&dyno.run(&[&SIDES[..], &load].concat()), &[0]);
    let compared = |words: &[&str]| {
        let output = dyno.run(&[&["compare", "v/a", "v/b", "--json"], words].concat());
        assert_exit(&output, &[0]);
        let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let figures = found[0]["figures"].as_array().unwrap().iter();
        let runs: Vec<(String, String)> =
            figures.map(|one| (one["name"].as_str().unwrap().to_owned(), one["runs"].to_string())).collect();
        (runs, found[0]["warnings"].to_string(), stderr(&output))
    };
    let of = |runs: &[(String, String)], name: &str| {
        runs.iter().find(|(own, _)| own == name).map(|(_, runs)| runs.clone())
    };
    let all = Some("[3,3]".to_owned());
    let (runs, _, _) = compared(&[]);
    assert_eq!(
        [of(&runs, "throughput"), of(&runs, "READ p50"), of(&runs, "READ p99")],
        [&all; 3].map(Clone::clone)
    );
    spoil_tail(&dyno, "v/a/02");
    let (runs, _, told) = compared(&[]);
    assert_eq!([of(&runs, "throughput"), of(&runs, "READ p50")], [all.clone(), all.clone()]);
    assert_eq!(of(&runs, "READ p99").as_deref(), Some("[2,3]"));
    assert!(told.contains("v/a/02: its tail is left out: the client was late"), "{told}");
    let history = |figure: &str| {
        let output = dyno.run(&["history", "v/a", "--figure", figure, "--json"]);
        assert_exit(&output, &[0]);
        let found: Value = serde_json::from_str(&stdout(&output)).unwrap();
        found[0]["points"].as_array().unwrap().len()
    };
    assert_eq!([history("throughput"), history("p50(read)"), history("p99(read)")], [3, 3, 2]);
    // Where no run is left, there is no such figure.
    ["v/a/01", "v/a/03"].iter().for_each(|run| spoil_tail(&dyno, run));
    let (runs, warnings, _) = compared(&[]);
    assert_eq!(
        [of(&runs, "throughput"), of(&runs, "READ p50"), of(&runs, "READ p99")],
        [all.clone(), all, None]
    );
    assert!(warnings.contains("no run of v/a has a tail that can be used: it is not compared"), "{warnings}");
}
