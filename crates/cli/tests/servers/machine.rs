//! What this machine does not have is told before anything is started: cores, memory, programs.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn dyno(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn of(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.yaml"), text).unwrap();
    folder
}

/// The plan is printed and exit code 2 follows; a run refuses in the same words and leaves nothing.
fn refused(text: &str, message: &str) {
    let folder = of(text);
    let plan = dyno(folder.path(), &["plan", "x.yaml"]);
    assert_eq!(plan.status.code(), Some(2), "{}", err(&plan));
    assert!(out(&plan).contains(" run") && out(&plan).contains("duration:"), "{}", out(&plan));
    assert!(err(&plan).contains(message), "{message:?} is not in {}", err(&plan));
    let json = dyno(folder.path(), &["plan", "x.yaml", "--json"]);
    assert_eq!(json.status.code(), Some(2));
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let found = &json["beyond_this_machine"][0];
    let told = format!(
        "{}: {}: {}",
        found["place"].as_str().unwrap(),
        found["key"].as_str().unwrap(),
        found["text"].as_str().unwrap()
    );
    assert!(told.contains(message), "{message:?} is not in {told}");
    let run = dyno(folder.path(), &["run", "x.yaml", "--out", "o"]);
    assert_eq!(run.status.code(), Some(2), "{}", err(&run));
    assert!(err(&run).contains(message), "{}", err(&run));
    assert!(!folder.path().join("o").exists());
}

const SHORT: &str = "phases: {measure: {operations: 100}}\n";

#[test]
fn cores_beyond_the_machine_are_refused_with_their_place() {
    let server = "server: {kind: redis, program: /bin/true, placement: {cores: \"0,4000\"}}\n";
    refused(
        &format!("{server}{SHORT}"),
        "x.yaml:1:62: server.placement.cores: core 4000 is not there; this machine has 0",
    );
    refused(
        &format!("target: \"null:\"\nclient: {{cores: 4001}}\n{SHORT}"),
        "x.yaml:2:17: client.cores: core 4001 is not there",
    );
    refused(
        &format!("target: \"null:\"\nclient:\n  placement: {{numactl: \"--physcpubind=4002\"}}\n{SHORT}"),
        "x.yaml:3:24: client.placement.numactl: --physcpubind: 4002 is not there",
    );
    // A factor's level is named where it was written, with its cell.
    refused(
        &format!("target: \"null:\"\nfactors:\n  client.cores: [\"0\", \"4003\"]\n{SHORT}"),
        "x.yaml:3:23: client.cores: core 4003 is not there",
    );
    refused(
        &format!(
            "server: {{kind: redis, program: /bin/true, instances: 20, placement: {{policy: cores_each, \
             cores_each: 400}}}}\n{SHORT}"
        ),
        "server.placement.cores_each: 20 processes of 400 physical cores each need 8000, there are",
    );
}

#[test]
fn parties_that_would_share_cores_are_refused() {
    let server = "server: {kind: redis, program: /bin/true, placement: {cores: 0}}\n";
    refused(
        &format!("{server}client: {{placement: {{cores: 0}}}}\n{SHORT}"),
        "x.yaml:2:9: client: server and client share the cores 0",
    );
}

#[test]
fn memory_beyond_the_machine_is_refused_with_its_place() {
    refused(
        &format!(
            "server: {{kind: redis, program: /bin/true, instances: 2, limits: {{memory: 900000GiB}}}}\n{SHORT}"
        ),
        "x.yaml:1:74: server.limits.memory: the limits of the servers add up to 1757.8 TiB, this host has ",
    );
    // A cache is a ceiling, not a reservation.
    let folder =
        of(&format!("server: {{kind: redis, program: /bin/true, instances: 2, cache: 900000GiB}}\n{SHORT}"));
    let plan = dyno(folder.path(), &["plan", "x.yaml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", err(&plan));
    let message =
        "warning: x.yaml:1:64: server.cache: the caches of the servers may grow to 1757.8 TiB together";
    assert!(err(&plan).contains(message), "{}", err(&plan));
    refused(
        &format!(
            "target: \"sqlite:{{dir}}/x.db?cache=64MiB\"\nclient: {{limits: {{memory: 32MiB}}}}\n{SHORT}"
        ),
        "x.yaml:2:27: client.limits.memory: 32MiB is less than the cache of the store in the worker (64 MiB)",
    );
    // Told by the file alone.
    let folder = of(&format!("server: {{kind: redis, cache: 64MiB, limits: {{memory: 32MiB}}}}\n{SHORT}"));
    let plan = dyno(folder.path(), &["plan", "x.yaml"]);
    assert_eq!(plan.status.code(), Some(2));
    let message = "x.yaml:1:54: server.limits.memory: 32MiB is less than redis with a cache of 64MiB needs, at least 72MiB";
    assert!(err(&plan).contains(message), "{}", err(&plan));
}

#[test]
fn a_program_that_is_missing_for_every_cell_is_exit_code_2() {
    let folder = of(&format!("server: {{kind: mongod, program: no-such-mongod}}\n{SHORT}"));
    let plan = dyno(folder.path(), &["plan", "x.yaml"]);
    assert_eq!(plan.status.code(), Some(0), "{}", err(&plan));
    assert!(err(&plan).contains("no-such-mongod is not on PATH"), "{}", err(&plan));
    let run = dyno(folder.path(), &["run", "x.yaml", "--out", "o"]);
    assert_eq!(run.status.code(), Some(2), "{}", err(&run));
    for message in ["no-such-mongod is not on PATH", "mongodb.com", "--set server.program=PATH"] {
        assert!(err(&run).contains(message), "{message:?} is not in {}", err(&run));
    }
    assert!(!folder.path().join("o").exists());
}

#[test]
fn a_program_that_is_missing_for_some_cells_is_said_before_they_are_run() {
    let folder = of(&format!(
        "target: \"null:\"\n{SHORT}factors:\n  what:\n    - {{label: there, target: \"null:\"}}\n    \
         - {{label: gone, target: null, server: {{kind: redis, program: /no/such/redis}}}}\n"
    ));
    let run = dyno(folder.path(), &["run", "x.yaml", "--out", "o"]);
    let told = err(&run);
    assert_eq!(run.status.code(), Some(5), "{told}");
    let warned = told.find("cell 2: redis: /no/such/redis is no program").expect(&told);
    assert!(warned < told.find("run 1 of 2").expect(&told), "{told}");
    let ended = std::fs::read_to_string(folder.path().join("o/journal.jsonl")).unwrap();
    assert_eq!(ended.lines().filter(|line| line.contains("\"ended\"")).count(), 2, "{ended}");
    assert_eq!(ended.matches("\"complete\"").count(), 2, "one run and the end: {ended}");
}
