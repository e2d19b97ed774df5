//! `dyno resume --failed` and `--invalid`: runs that have ended are made again, once.

use dyno_testkit::{Dyno, assert_exit, stderr};
use std::fs;

/// The runs of a directory by its journal: folder and state, as `dyno report --json` has them.
fn runs(dyno: &Dyno, directory: &str) -> Vec<String> {
    let output = dyno.run(&["report", directory, "--json"]);
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = rows.as_array().unwrap().iter();
    rows.map(|row| format!("{} {} {}", row["runs"], row["failed"], row["invalid"])).collect()
}

#[test]
fn runs_that_failed_are_made_again() {
    let dyno = Dyno::new();
    let text = "target: 'sqlite:later/a.db'\nworkload: {ycsb: {records: 10}}\nfactors: {users: [1, 2]}\n\
                phases: {measure: {operations: 100, warmup: 0s}}\n";
    fs::write(dyno.path("x.yaml"), text).unwrap();
    let first = dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]);
    assert_ne!(first.status.code(), Some(0), "{}", stderr(&first));
    let status = || stderr(&dyno.run(&["resume", "o"]));
    assert!(status().contains("2 of 2 runs have ended already"), "{}", status());
    assert!(status().contains("2 runs failed: `dyno resume --failed"), "{}", status());
    fs::create_dir(dyno.path("later")).unwrap();
    let again = dyno.run(&["resume", "o", "--failed"]);
    dyno_testkit::assert_ran_in(dyno.folder.path(), &again, &[]);
    assert!(stderr(&again).contains("2 runs made again"), "{}", stderr(&again));
    let made = || {
        let folders = fs::read_dir(dyno.path("o/runs")).unwrap().flatten();
        folders.filter(|folder| folder.path().join("summary.json").is_file()).count()
    };
    assert_eq!(made(), 2);
    // Once: there is nothing left that has failed.
    let over = dyno.run(&["resume", "o", "--failed"]);
    assert!(stderr(&over).contains("0 runs made again"), "{}", stderr(&over));
    assert!(!stderr(&over).contains("runs failed"), "{}", stderr(&over));
    assert_eq!(made(), 2);
    assert!(!runs(&dyno, "o").is_empty());
}

#[test]
fn runs_that_are_invalid_are_made_again() {
    let dyno = Dyno::new();
    // Half of what is due is dropped.
    let text = "target: 'sim:?service=1ms'\nrepetitions: 2\n\
                phases: {measure: {duration: 2s, warmup: 0s, rate: 2000, queue: 10}}\n";
    fs::write(dyno.path("x.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]), &[5]);
    let again = dyno.run(&["resume", "o", "--invalid"]);
    assert_exit(&again, &[5]);
    assert!(stderr(&again).contains("2 runs made again"), "{}", stderr(&again));
    let journal = fs::read_to_string(dyno.path("o/journal.jsonl")).unwrap();
    assert_eq!(journal.matches("\"event\":\"again\"").count(), 2, "{journal}");
    assert_eq!(journal.matches("\"event\":\"ended\"").count(), 4, "{journal}");
    // Each run counts once, as it was made last.
    let status = dyno.run(&["status", "o"]);
    let told = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(told.contains("2 of 2 runs ended"), "{told}");
}
