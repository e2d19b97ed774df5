//! `dyno resume --failed` and `--invalid`: runs that have ended are made again, once.

use dyno_testkit::{Dyno, assert_exit, stderr};
use std::fs;

/// Rows of the table of an experiment in `o`: cell, repetition and status.
fn results(dyno: &Dyno) -> Vec<String> {
    let text = fs::read_to_string(dyno.path("o/results.csv")).unwrap();
    // No label here has a comma.
    let cells = |row: &str| row.split(',').map(str::to_owned).collect::<Vec<_>>();
    text.lines().skip(1).map(cells).map(|row| format!("{},{},{}", row[0], row[1], row[4])).collect()
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
    assert_eq!(results(&dyno), ["1,1,complete", "2,1,complete"]);
}

/// A pod of a controller's Job that is killed is followed by one with the same command line.
#[test]
fn a_job_makes_runs_again_once_however_many_pods_it_has() {
    let dyno = Dyno::new();
    let text = "target: 'sqlite:later/a.db'\nworkload: {ycsb: {records: 10}}\nfactors: {users: [1, 2]}\n\
                phases: {measure: {operations: 100, warmup: 0s}}\n";
    fs::write(dyno.path("x.yaml"), text).unwrap();
    dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]);
    let pod_of = |job: &str| stderr(&dyno.run(&["resume", "o", "--failed", "--again-once", job]));
    // They fail anew, and the next pod does not make them for ever.
    assert!(pod_of("first").contains("2 runs made again"));
    assert!(pod_of("first").contains("0 runs made again"));
    assert!(pod_of("second").contains("2 runs made again"));
    assert_eq!(results(&dyno), ["1,1,failed", "2,1,failed"]);
    // One that was killed when it had noted the first of two, and not that it was done.
    let journal = fs::read_to_string(dyno.path("o/journal.jsonl")).unwrap();
    let again = journal.lines().find(|line| line.contains("\"event\":\"again\"")).unwrap();
    fs::write(dyno.path("o/journal.jsonl"), format!("{journal}{again}\n")).unwrap();
    assert!(pod_of("third").contains("1 run made again"));
    assert_eq!(results(&dyno), ["1,1,failed", "2,1,failed"]);
}

#[test]
fn what_follows_from_a_run_is_made_again_with_it() {
    let dyno = Dyno::new();
    // Two ladders, which go on where throughput grows: simulated servers without a limit, twice as many users each.
    let text = "target: 'sim:?service=1ms&capacity=unbounded'\nrepetitions: 2\n\
                strategy: {ladder: {from: 1, to: 4}}\n\
                phases: {measure: {duration: 300ms, warmup: 0s}}\n";
    fs::write(dyno.path("x.yaml"), text).unwrap();
    let first = dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]);
    assert!(first.status.code().is_some_and(|code| code != 2), "{}", stderr(&first));
    let all = results(&dyno);
    let of = |repetition: &str| all.iter().filter(|row| row.starts_with(&format!("1,{repetition}"))).count();
    assert!(of("1") >= 3 && of("2") >= 3, "{all:?}");
    // The second run of the first ladder is said to have failed, as if its server had died.
    let journal = fs::read_to_string(dyno.path("o/journal.jsonl")).unwrap();
    let mut ended = 0;
    let changed = journal.lines().map(|line| {
        ended += usize::from(line.contains("\"event\":\"ended\""));
        let second = line.contains("\"event\":\"ended\"") && ended == 2;
        if second { line.replace("\"complete\"", "\"failed\"") + "\n" } else { line.to_owned() + "\n" }
    });
    let changed: String = changed.collect();
    assert_ne!(changed, journal);
    fs::write(dyno.path("o/journal.jsonl"), changed).unwrap();
    let again = dyno.run(&["resume", "o", "--failed", "--quiet"]);
    assert!(again.status.code().is_some_and(|code| code != 2), "{}", stderr(&again));
    // The first of it stays, and so does the whole second ladder.
    let made = of("1") - 1;
    assert!(stderr(&again).contains(&format!("{made} runs made again")), "{}", stderr(&again));
    let journal = fs::read_to_string(dyno.path("o/journal.jsonl")).unwrap();
    let noted: Vec<&str> = journal.lines().filter(|line| line.contains("\"event\":\"again\"")).collect();
    assert_eq!(noted.len(), made, "{journal}");
    assert!(noted.iter().all(|line| line.contains("\"repetition\":1")), "{noted:?}");
    // The last one is noted first: a dyno that is killed in between leaves none that follows from one that is gone.
    assert!(noted.last().is_some_and(|line| line.contains("users=2")), "{noted:?}");
    let mut sorted = results(&dyno);
    sorted.sort();
    let mut before = all.clone();
    before.sort();
    assert_eq!(sorted, before);
}

#[test]
fn what_cannot_be_gone_on_with_is_as_it_was() {
    let dyno = Dyno::new();
    let text = "target: 'sqlite:later/a.db'\nworkload: {ycsb: {records: 10}}\n\
                phases: {measure: {operations: 100, warmup: 0s}}\n";
    fs::write(dyno.path("x.yaml"), text).unwrap();
    dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]);
    let refused = dyno.run(&["resume", "o", "--failed", "--set", "seed=2"]);
    assert_exit(&refused, &[2]);
    let journal = fs::read_to_string(dyno.path("o/journal.jsonl")).unwrap();
    assert!(!journal.contains("\"event\":\"again\""), "{journal}");
    assert_eq!(results(&dyno), ["1,1,failed"]);
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
