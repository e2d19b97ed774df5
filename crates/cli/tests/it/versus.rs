//! `dyno run A --versus B`: runs by turns, and what comes out of their comparison.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
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
            // Whoever repeats one run repeats that one.
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
    for (words, code, said) in [
        ("run --versus sim:", 2, "required"),
        ("run sim: --turns 3", 2, "--versus"),
        ("run sim: --versus sim: --turns 0", 2, "0"),
        ("run sim: --versus nowhere: --out x", 2, "b: "),
        ("run sim: --versus redis://127.0.0.1:1 --out y", 3, "b: target unreachable"),
        ("run sim: --versus sim: --no-out", 2, "--no-out"),
    ] {
        let output = dyno.run(&words.split(' ').collect::<Vec<_>>());
        assert_exit(&output, &[code]);
        assert!(stderr(&output).contains(said), "{words}: {}", stderr(&output));
    }
}
