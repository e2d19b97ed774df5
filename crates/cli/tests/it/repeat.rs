//! `dyno run TARGET --repeat N`: an experiment without a file.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use serde_json::Value;

#[test]
fn a_run_is_made_so_many_times_and_its_mean_has_an_interval() {
    let dyno = Dyno::new();
    let words = ["run", "sim:?service=1ms", "--users", "1", "--records", "100", "--duration", "5s"];
    let more = ["--repeat", "3", "--name", "thrice", "--note", "one user of one server"];
    let output = dyno.run(&[&words[..], &more, &["--out", "o", "--quiet"]].concat());
    assert_exit(&output, &[0]);
    let journal = std::fs::read_to_string(dyno.path("o/journal.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ended: Vec<Value> = lines.filter(|line| line["event"] == "ended").collect();
    assert_eq!(ended.len(), 3, "{journal}");
    for record in &ended {
        // One user of a server that takes 1 ms on the mean, and no queue.
        let rate = record["throughput"].as_f64().unwrap();
        assert!((rate / 1_000.0 - 1.0).abs() < 0.05, "{record}");
    }
    let record: Value =
        serde_json::from_slice(&std::fs::read(dyno.path("o/experiment.json")).unwrap()).unwrap();
    assert_eq!(record["name"], "thrice", "{record}");
    assert!(stdout(&output).contains("±95 %"), "{}", stdout(&output));
    // What was made can be planned, and gone on with.
    assert_exit(&dyno.run(&["plan", "o/experiment.yaml"]), &[0]);
    assert_exit(&dyno.run(&["resume", "o"]), &[0]);
}

#[test]
fn its_directory_is_called_as_that_of_a_single_run() {
    let dyno = Dyno::new();
    let words = ["run", "sim:?service=1ms", "--users", "1", "--records", "10", "--duration", "2s", "--quiet"];
    dyno.run(&words);
    dyno.run(&[&words[..], &["--repeat", "2"]].concat());
    let made = std::fs::read_dir(dyno.path("dyno-runs")).unwrap().flatten();
    let names: Vec<String> = made.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(names.len() == 2 && names.iter().all(|name| name.contains("-workloada")), "{names:?}");
}

#[test]
fn what_does_not_go_together_is_refused() {
    let dyno = Dyno::new();
    std::fs::write(dyno.path("x.yaml"), "target: 'null:'\nphases: {measure: {duration: 1s}}\n").unwrap();
    for (words, said) in [
        (&["run", "x.yaml", "--repeat", "3"][..], "x.yaml says it itself: use --set repetitions=N"),
        (&["run", "null:", "--repeat", "3", "--no-out"], "exclude each other"),
        (&["run", "null:", "--repeat", "0"], "--repeat 0: expected 1 to 999"),
        (&["run", "null:", "--note", "x"], "--repeat"),
    ] {
        let output = dyno.run(words);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(said), "{words:?}: {}", stderr(&output));
    }
}
