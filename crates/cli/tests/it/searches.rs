//! Searches through the command: tuning, repetition until the interval is narrow, what a directory keeps of them, and that
//! what it keeps is what was begun. The server is simulated, in virtual time, so the truth is known.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use serde_json::Value;

fn ended(dyno: &Dyno, out: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dyno.path(&format!("{out}/journal.jsonl"))).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "ended").collect()
}

/// Four users at a server whose service time and capacity are variables.
const TUNED: &str = "\
target: \"sim:?service={s}us&capacity={c}\"
variables: {s: 100, c: 2}
workload: {ycsb: {workload: c, records: 100}}
phases: {load: {when: never}, measure: {operations: 2000, users: 4, warmup: 0s}}
strategy:
  tune: {parameters: {variables.s: [50, 100, 200], variables.c: [1, 2, 4]}, configurations: 9, repetitions: 3}
";

#[test]
fn a_tuning_finds_the_best_values_of_variables() {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("t.yaml"), TUNED).unwrap();
    let done = dyno.run(&["run", "t.yaml", "--out", "t", "--quiet"]);
    assert_exit(&done, &[0]);
    let runs = ended(&dyno, "t");
    let of = |point: &str| -> Vec<f64> {
        let own = runs.iter().filter(|run| run["point"] == point);
        own.map(|run| run["throughput"].as_f64().unwrap()).collect()
    };
    // The defaults serve two at a time in 100 us each.
    assert!(of("defaults").iter().all(|x| (x / 20_000.0 - 1.0).abs() < 0.02), "{:?}", of("defaults"));
    let best = |run: &&Value| run["throughput"].as_f64().unwrap();
    let best = runs.iter().max_by(|a, b| best(a).total_cmp(&best(b))).unwrap();
    let point = best["point"].as_str().unwrap();
    assert!(best["throughput"].as_f64().unwrap() > 25_000.0 && of(point).len() >= 3, "{best}");
    // What a run was made of is in its directory.
    let run = dyno.path(&format!("t/{}/run.json", best["dir"].as_str().unwrap()));
    let run: Value = serde_json::from_str(&std::fs::read_to_string(run).unwrap()).unwrap();
    let target = run["settings"].as_array().unwrap().iter().find(|one| one["key"] == "target").unwrap();
    let word = |name: &str| point.split(' ').find_map(|word| word.strip_prefix(name)).unwrap();
    let expected = format!("sim:?service={}us&capacity={}", word("s="), word("c="));
    assert_eq!(target["value"], expected.as_str(), "{point}");
    let output = stdout(&done);
    assert!(output.contains(&format!("{point} gains")) && output.contains("variables.s: "), "{output}");
    // The conclusion is in the directory, not on the terminal alone; and a search is not so many of so many runs.
    for file in ["summary.md", "report.html"] {
        let text = std::fs::read_to_string(dyno.path(&format!("t/{file}"))).unwrap();
        assert!(text.contains(&format!("{point} gains")) && text.contains("variables.s: "), "{file}: {text}");
    }
    let status = stdout(&dyno.run(&["status", "t"]));
    assert!(status.contains(&format!("t: complete, {} runs of a search ended", runs.len())), "{status}");
    let list = stdout(&dyno.run(&["list", "."]));
    assert!(list.contains("runs of a search ended"), "{list}");
    assert!(stdout(&dyno.run(&["list", "t"])).starts_with("t  complete"), "{list}");
}

#[test]
fn a_simulated_run_is_not_suspect_for_want_of_monitors() {
    let dyno = Dyno::new();
    let text = "target: \"sim:?service=1ms\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {duration: 20s, users: 1, warmup: 0s}}\n\
                strategy: {repeat_until: {half_width: 0.05, at_least: 4, at_most: 6}}\n";
    std::fs::write(dyno.path("r.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "r.yaml", "--out", "r", "--quiet"]), &[0]);
    let runs = ended(&dyno, "r");
    // A server without any variation: as few runs as are asked for.
    assert_eq!(runs.len(), 4, "{runs:?}");
    for run in &runs {
        assert_eq!((run["trust"].as_str(), run["words"].as_str()), (Some("valid"), Some("")), "{run}");
        assert!(!dyno.path(&format!("r/{}/monitor", run["dir"].as_str().unwrap())).exists());
    }
    let summary = std::fs::read_to_string(dyno.path("r/summary.md")).unwrap();
    assert!(!summary.contains("TEST failed"), "{summary}");
}

#[test]
fn runs_of_a_noisy_server_are_repeated_until_the_interval_is_narrow() {
    let dyno = Dyno::new();
    // In real time no two runs are alike.
    let text = "target: \"null:\"\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {load: {when: never}, measure: {operations: 2000, users: 1, warmup: 0s}}\n\
                strategy: {repeat_until: {half_width: 0.000001, at_least: 2, at_most: 5}}\n";
    std::fs::write(dyno.path("r.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "r.yaml", "--out", "r", "--quiet"]));
    let runs = ended(&dyno, "r");
    let figures: Vec<f64> = runs.iter().map(|run| run["throughput"].as_f64().unwrap()).collect();
    // Runs that differ never become that narrow.
    assert_eq!(figures.len(), 5, "{figures:?}");
}

#[test]
fn a_directory_whose_file_was_changed_is_not_gone_on_with() {
    let dyno = Dyno::new();
    std::fs::write(
        dyno.path("r.yaml"),
        "target: \"sim:?service=1ms\"\nphases: {measure: {operations: 50}}\n",
    )
    .unwrap();
    assert_exit(&dyno.run(&["run", "r.yaml", "--out", "r", "--quiet"]), &[0]);
    assert_exit(&dyno.run(&["resume", "r", "--quiet"]), &[0]);
    let copy = dyno.path("r/experiment.yaml");
    let text = std::fs::read_to_string(&copy).unwrap();
    std::fs::write(&copy, text.replace("50", "60")).unwrap();
    let refused = dyno.run(&["resume", "r", "--quiet"]);
    assert_exit(&refused, &[2]);
    assert!(
        stderr(&refused).contains("experiment.yaml: was changed since the experiment began"),
        "{}",
        stderr(&refused)
    );
    // As it was, it is taken again.
    std::fs::write(&copy, text).unwrap();
    assert_exit(&dyno.run(&["resume", "r", "--quiet"]), &[0]);
}

#[test]
fn a_wrong_objective_is_told_at_its_place() {
    let dyno = Dyno::new();
    let text = "target: \"null:\"\nstrategy:\n  highest_rate:\n    objectives: [\"p98(read) < 1ms\"]\n";
    std::fs::write(dyno.path("bs.yaml"), text).unwrap();
    let refused = dyno.run(&["plan", "bs.yaml"]);
    assert_exit(&refused, &[2]);
    let output = stderr(&refused);
    assert!(
        output.contains("bs.yaml:4:17: strategy.highest_rate.objectives: ") && !output.contains("require"),
        "{output}"
    );
}

/// A server that does 1,000/s and no more, in virtual time.
#[test]
fn a_search_for_the_highest_rate_ends_with_its_answer() {
    let dyno = Dyno::new();
    let text = |from: u32| {
        format!(
            "target: \"sim:?service=1ms&capacity=1\"\nworkload: {{ycsb: {{workload: c, records: 100}}}}\n\
             phases: {{load: {{when: never}}, measure: {{duration: 10s, connections: 16, warmup: 0s}}}}\n\
             strategy: {{highest_rate: {{objectives: [\"p99(read) < 100ms\"], from: {from}, to: 8000, precision: 0.1}}}}\n"
        )
    };
    for (name, from) in [("found", 300), ("none", 4_000)] {
        std::fs::write(dyno.path(&format!("{name}.yaml")), text(from)).unwrap();
        let done = dyno.run(&["run", &format!("{name}.yaml"), "--out", name, "--quiet"]);
        let output = stdout(&done);
        let told =
            output.lines().find_map(|line| line.split_once("highest rate that meets the objectives: "));
        let told = told.unwrap_or_else(|| panic!("{output}")).1;
        let page = std::fs::read_to_string(dyno.path(name).join("report.html")).unwrap();
        // The answer stands first, not the greatest figure of a rate that was tried.
        assert!(
            output.lines().next().unwrap().contains("highest rate that meets the objectives"),
            "{output}"
        );
        assert!(!page.contains("Greatest mean throughput"), "{page}");
        let report = stdout(&dyno.run(&["report", name]));
        assert!(
            report.lines().next().unwrap().contains(" meets the objectives") || name == "none",
            "{report}"
        );
        assert!(report.starts_with("No rate meets the objectives.\n") || name == "found", "{report}");
        if name == "none" {
            assert_eq!(told, "none was kept");
            assert!(page.contains("<strong>No rate meets the objectives.</strong>"), "{page}");
            continue;
        }
        // The page opens with the same answer.
        let (rate, sureness) = told.split_once("/s").unwrap();
        let answer = format!("<strong>{rate}/s is the highest rate that meets the objectives{sureness}.");
        assert!(page.contains(&answer), "{answer}: {page}");
        assert!(sureness.starts_with(" (2 runs; interval ") && sureness.ends_with("/s)"), "{sureness}");
        let rate: f64 = rate.replace(',', "").parse().unwrap();
        assert!((900.0..=1_000.0).contains(&rate), "{output}");
    }
}
