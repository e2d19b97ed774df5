//! `dyno bexhoma jupyter`: what it starts, and what it says where there is nothing to start.

use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

/// Says what it was given, then waits.
const JUPYTER: &str = "#!/bin/sh
{ echo \"$@\"; echo \"$DYNO_EXPERIMENT\"; echo \"$JUPYTER_TOKEN\"; } > told
echo $$ > pid.new; mv pid.new pid
exec sleep 600
";

/// An experiment that has ended.
fn with_results() -> Dyno {
    let dyno = Dyno::new();
    let text = "target: 'null:'\nworkload: {ycsb: {records: 100}}\nphases: {measure: {operations: 100, warmup: 0s}}\n";
    fs::write(dyno.path("x.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "results/1700000000", "--quiet"]));
    dyno
}

#[test]
fn the_notebook_is_served_on_the_loopback_with_a_token() {
    let dyno = with_results();
    fs::create_dir(dyno.path("bin")).unwrap();
    let program = dyno.path("bin/jupyter");
    fs::write(&program, JUPYTER).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = dyno.command(&["bexhoma", "jupyter", "--resultfolder", "results"]);
    let path = format!("{}:{}", dyno.path("bin").display(), std::env::var("PATH").unwrap());
    let mut child = command.env("PATH", path).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !dyno.path("pid").exists() {
        assert!(std::time::Instant::now() < end, "jupyter is not started");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let told = fs::read_to_string(dyno.path("told")).unwrap();
    let [arguments, experiment, token] = told.lines().collect::<Vec<_>>().try_into().unwrap();
    assert!(arguments.starts_with("notebook --no-browser --ip=127.0.0.1 --port="), "{arguments}");
    assert!(!arguments.contains(token), "every user can read a command line");
    assert!(experiment.ends_with("results/1700000000"), "{experiment}");
    assert!(token.len() == 48 && url.trim_end().ends_with(&format!("?token={token}")), "{url}");
    assert!(fs::read_to_string(dyno.path("results/experiment.ipynb")).unwrap().contains("DYNO_EXPERIMENT"));
    let jupyter: u32 = fs::read_to_string(dyno.path("pid")).unwrap().trim().parse().unwrap();
    dyno_testkit::signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let state = fs::read_to_string(format!("/proc/{jupyter}/stat")).unwrap_or_default();
    assert!(state.is_empty() || state.contains(") Z "), "it ends with the command: {state}");
}

#[test]
fn what_is_missing_is_said() {
    let dyno = with_results();
    let run = |words: &[&str]| dyno.command(words).env("PATH", dyno.path("none")).output().unwrap();
    let output = run(&["bexhoma", "jupyter", "--resultfolder", "results"]);
    assert_exit(&output, &[2]);
    assert!(
        stderr(&output).contains("jupyter: is not on PATH; `pip install ./python/dyno-results[notebook]`"),
        "{}",
        stderr(&output)
    );
    assert!(!dyno.path("results/experiment.ipynb").exists());
    let empty = run(&["bexhoma", "jupyter", "--resultfolder", "other"]);
    assert_exit(&empty, &[2]);
    assert!((stderr(&empty) + &stdout(&empty)).contains("no experiments in other"));
}
