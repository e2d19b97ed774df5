//! Experiments that are told to stop while something else is awaited, programs that do not answer, and what is kept of words
//! that hold secrets.

use dyno_testkit::signal;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn dyno(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn of(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.yaml"), text).unwrap();
    folder
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn journal(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("o/journal.jsonl")).unwrap_or_default()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process with this very command line is there.
fn runs(line: &str) -> bool {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|found| String::from_utf8_lossy(&found).trim_end_matches('\0').replace('\0', " ") == line)
}

/// Runs, and sends SIGINT when a process with `line` is there: it ends soon, with code 130, and so does the process.
fn interrupted(folder: &Path, line: &str) {
    let mut child = dyno(folder, &["run", "x.yaml", "--out", "o"]).stderr(Stdio::null()).spawn().unwrap();
    wait_until(line, || runs(line));
    let begun = Instant::now();
    signal(child.id(), "INT");
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(!runs(line), "{line} is left");
    assert!(
        journal(folder).ends_with("\"event\":\"end\",\"status\":\"interrupted\"}\n"),
        "{}",
        journal(folder)
    );
}

const SHORT: &str = "phases: {measure: {operations: 100}}\n";

#[test]
fn a_server_that_is_awaited_is_not_awaited_any_longer() {
    // Ready is never said; its wrapper has a child of its own, which ends with it.
    let folder = of(&format!("server: {{kind: redis, program: ./slow, ready_within: 60s}}\n{SHORT}"));
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exit 0\nsleep 4711.25\n";
    std::fs::write(folder.path().join("slow"), script).unwrap();
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("slow"), mode).unwrap();
    interrupted(folder.path(), "sleep 4711.25");
}

#[test]
fn a_host_that_never_greets_is_not_awaited_any_longer() {
    // The way to the host is open, and the host does not speak.
    let folder = of(&format!(
        "target: 'null:'\nssh: {{clients: [silent], config: config}}\nclient: {{workers: 1}}\n{SHORT}"
    ));
    std::fs::write(folder.path().join("config"), "Host silent\n  ProxyCommand sleep 4725.25\n").unwrap();
    interrupted(folder.path(), "sleep 4725.25");
}

#[test]
fn commands_that_come_before_something_end_with_ctrl_c() {
    for (hook, number) in
        [("before_experiment", "4712.25"), ("before_run", "4713.25"), ("before_measure", "4714.25")]
    {
        let folder = of(&format!("target: 'null:'\nhooks: {{{hook}: [[sh, nap.sh]]}}\n{SHORT}"));
        let nap = |seconds: &str| {
            std::fs::write(folder.path().join("nap.sh"), format!("exec sleep {seconds}\n")).unwrap();
        };
        nap(number);
        interrupted(folder.path(), &format!("sleep {number}"));
        let run = folder.path().join("o/runs/cell0001-rep01/run.json");
        assert!(!run.exists() || !std::fs::read_to_string(run).unwrap().contains("\"running\""), "{hook}");
        // What was interrupted is made again.
        nap("0");
        let resumed = dyno(folder.path(), &["resume", "o"]).output().unwrap();
        dyno_testkit::assert_ran_in(folder.path(), &resumed, &[]);
        assert!(journal(folder.path()).ends_with("\"complete\"}\n"), "{}", journal(folder.path()));
    }
}

#[test]
fn a_program_that_does_not_tell_its_version_is_no_trap() {
    let folder = of(&format!("server: {{kind: redis, program: ./slow, ready_within: 1s}}\n{SHORT}"));
    std::fs::write(folder.path().join("slow"), "#!/bin/sh\necho waits for ever\nsleep 4715.25\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(folder.path().join("slow"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let begun = Instant::now();
    let run = dyno(folder.path(), &["run", "x.yaml", "--out", "o"]).output().unwrap();
    assert_eq!(run.status.code(), Some(2), "{}", err(&run));
    assert!(
        err(&run).contains("is not ready after 1s") && err(&run).contains("waits for ever"),
        "{}",
        err(&run)
    );
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(!runs("sleep 4715.25"));
}

#[test]
fn words_of_hooks_and_traces_are_kept_without_their_secrets() {
    let folder = of(
        "target: 'null:'\nhooks: {before_run: [[echo, '--password', pl4nted]], after_run: [[sh, -c, exit 3, \
         'redis://:pl4nted@h']]}\ntraces: [{command: [sleep, '5', '--token=pl4nted']}]\n\
         phases: {measure: {operations: 1000}}\n",
    );
    let run = dyno(folder.path(), &["run", "x.yaml", "--out", "o"]).output().unwrap();
    assert_eq!(run.status.code(), Some(5), "{}", err(&run));
    assert!(err(&run).contains("hooks.after_run: sh -c exit 3 redis://:***@h"), "{}", err(&run));
    let text = |path: &str| std::fs::read_to_string(folder.path().join(path)).unwrap();
    let log = text("o/runs/cell0001-rep01/server/hooks.log");
    // What a command prints is its own affair.
    assert!(log.contains("$ echo --password ***\n"), "{log}");
    for kept in [journal(folder.path()), text("o/runs/cell0001-rep01/events.jsonl")] {
        assert!(!kept.contains("pl4nted"), "{kept}");
    }
}

#[test]
fn a_target_that_cannot_be_meant_is_refused_by_the_plan() {
    let folder = of(&format!("target: 'mongo://u:pl4nted@h'\n{SHORT}"));
    for command in ["plan", "run"] {
        let output = dyno(folder.path(), &[command, "x.yaml"]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let told = err(&output);
        assert!(
            told.contains("target: unknown target \"mongo://u:***@h\"") && !told.contains("pl4nted"),
            "{told}"
        );
    }
}

/// What was interrupted names the command of its own front end, which goes on with it.
#[test]
fn an_interrupted_wsf_goes_on_by_its_own_option() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return dyno_testkit::skip("an interrupted wsf");
    }
    let folder = tempfile::tempdir().unwrap();
    let small = ["--set", "RECORD_COUNT=1000", "--set", "CLIENT_COUNT=1"];
    let words = [&["wsf", "write", "--server", "redis", "--noenv", "-q"][..], &small].concat();
    let child = dyno(folder.path(), &words).stderr(Stdio::piped()).spawn().unwrap();
    let events = folder.path().join("logs-mongodb_ycsb_write/experiment/runs/cell0001-rep01/events.jsonl");
    wait_until("a phase", || std::fs::read_to_string(&events).is_ok_and(|text| text.contains("measure")));
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert!(err(&output).contains("`dyno wsf --continue` goes on"), "{}", err(&output));
}
