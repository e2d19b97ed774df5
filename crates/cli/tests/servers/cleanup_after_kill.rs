//! What is left of an experiment that is told to stop at any moment, or whose dyno is killed: nothing, once `dyno stop` or
//! `dyno resume` has looked after it.

use dyno_testkit::signal;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with an experiment file.
struct Fixture(tempfile::TempDir);

impl Fixture {
    fn of(text: &str) -> Self {
        let fixture = Fixture(tempfile::tempdir().unwrap());
        std::fs::write(fixture.path("x.yaml"), text).unwrap();
        fixture
    }

    fn path(&self, below: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn program(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
        std::fs::set_permissions(self.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn dyno(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null()).output().unwrap()
    }

    fn assert_ran(&self, output: &Output) {
        dyno_testkit::assert_ran_in(self.0.path(), output, &[]);
    }

    fn start(&self) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
        command.args(["run", "x.yaml", "--out", "o", "--quiet"]).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn journal(&self) -> String {
        std::fs::read_to_string(self.path("o/journal.jsonl")).unwrap_or_default()
    }

    /// Processes that work in the experiment's directory: its servers.
    fn servers(&self) -> Vec<u32> {
        let home = self.path("o");
        let pids = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| {
            std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&home))
        })
        .collect()
    }

    /// That no server and no data are left.
    fn assert_clear(&self) {
        assert_eq!(self.servers(), Vec::<u32>::new());
        assert_eq!(files(&self.path("o"), ".data"), Vec::<PathBuf>::new());
    }
}

/// Files and folders whose names end so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.to_string_lossy().ends_with(end) {
            found.push(path);
        } else if path.is_dir() {
            found.extend(files(&path, end));
        }
    }
    found
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < end, "{what} did not happen within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn has_redis(what: &str) -> bool {
    let there = dyno_databases::spawn::find_server(Some("redis")).is_some();
    if !there {
        dyno_testkit::skip(what);
    }
    there
}

const RUN: &str = "workload: {ycsb: {records: 1000}}\nphases: {measure: {duration: 2s, warmup: 0s}}\n";

#[test]
fn a_cluster_that_is_being_formed_ends_at_once() {
    if !has_redis("Ctrl-C while a cluster is formed") {
        return;
    }
    // Nodes look for each other at an address without a node: the cluster is never whole.
    let fixture = Fixture::of(&format!(
        "server: {{kind: redis, topology: cluster, replicas: 1, ready_within: 60s, options: {{cluster-announce-ip: \
         192.0.2.1}}}}\n{RUN}"
    ));
    let mut child = fixture.start();
    // Slots are dealt out, and the nodes are made to meet each other.
    let dealt = |data: PathBuf| {
        std::fs::read_to_string(data.join("nodes.conf")).is_ok_and(|text| text.contains(" 0-5460"))
    };
    wait_until("the slots", || files(&fixture.path("o"), ".data").into_iter().any(dealt));
    assert_eq!(fixture.servers().len(), 6);
    let begun = Instant::now();
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    fixture.assert_clear();
    assert!(
        fixture.journal().ends_with("\"event\":\"end\",\"status\":\"interrupted\"}\n"),
        "{}",
        fixture.journal()
    );
}

const WRAPPER: &str =
    "#!/bin/sh\n[ \"$1\" = --version ] && exec redis-server --version\nredis-server \"$@\" &\nwait\n";

#[test]
fn the_server_of_a_wrapper_ends_with_stop_and_with_resume() {
    if !has_redis("a wrapper's server") {
        return;
    }
    for command in ["stop", "resume"] {
        let fixture = Fixture::of(&format!("server: {{kind: redis, program: ./wrapper}}\n{RUN}"));
        fixture.program("wrapper", WRAPPER);
        let mut child = fixture.start();
        wait_until("the load", || files(&fixture.path("o"), "series.csv").len() == 1);
        assert_eq!(fixture.servers().len(), 2, "a shell and its server");
        child.kill().unwrap();
        child.wait().unwrap();
        // The kernel ends what dyno has started, not what that has started.
        wait_until("the wrapper's end", || fixture.servers().len() == 1);
        let done = fixture.dyno(&[command, "o", "--quiet"][..if command == "stop" { 2 } else { 3 }]);
        fixture.assert_ran(&done);
        fixture.assert_clear();
        assert_eq!(fixture.journal().contains("\"complete\""), command == "resume", "{}", fixture.journal());
    }
}

#[test]
fn a_hook_of_a_killed_dyno_is_ended() {
    let fixture =
        Fixture::of(&format!("target: 'null:'\nhooks: {{before_run: [[sleep, '4716.25']]}}\n{RUN}"));
    let runs = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| line == b"sleep\x004716.25\0")
    };
    let mut child = fixture.start();
    wait_until("the hook", || runs() && files(&fixture.path("o"), "undo.jsonl").len() == 1);
    wait_until("its note", || {
        std::fs::read_to_string(&files(&fixture.path("o"), "undo.jsonl")[0]).unwrap().contains("\"process\"")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(runs());
    let stopped = fixture.dyno(&["stop", "o"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", err(&stopped));
    assert!(!runs() && err(&stopped).contains("1 things put back"), "{}", err(&stopped));
}

#[test]
fn ctrl_c_at_any_point_leaves_nothing_and_loses_nothing() {
    if !has_redis("Ctrl-C at any point") {
        return;
    }
    let text = "\
server: {kind: redis, instances: 2, data: {snapshot: true}}
server_lifetime: shared
workload: {ycsb: {records: 5000}}
phases: {measure: {duration: 400ms, warmup: 100ms}}
hooks: {before_run: [[sleep, '0.1']], after_run: [[sleep, '0.05']]}
repetitions: 3
";
    for point in 0..9u64 {
        let fixture = Fixture::of(text);
        let mut child = fixture.start();
        std::thread::sleep(Duration::from_millis(20 + point * 260));
        let begun = Instant::now();
        signal(child.id(), "INT");
        let status = child.wait().unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(30), "at point {point}: {took:?}");
        fixture.assert_clear();
        let before = fixture.journal();
        if before.is_empty() {
            // It came before the first signal was listened for, or before anything was made.
            assert!(status.code().is_none_or(|code| code == 130), "{status:?}");
            continue;
        }
        // The run may have ended before the signal came.
        if status.code() != Some(130) {
            fixture.assert_ran(&Output { status, stdout: Vec::new(), stderr: Vec::new() });
        }
        let resumed = fixture.dyno(&["resume", "o", "--quiet"]);
        fixture.assert_ran(&resumed);
        fixture.assert_clear();
        // What had ended was not made again.
        let journal = fixture.journal();
        let lines = journal.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let ended: Vec<_> = lines.filter(|line| line["event"] == "ended").collect();
        let whole: Vec<u64> = ended
            .iter()
            .filter(|run| run["status"] == "complete")
            .map(|run| run["repetition"].as_u64().unwrap())
            .collect();
        let mut once = whole.clone();
        once.sort_unstable();
        assert_eq!(once, [1, 2, 3], "at point {point}: {ended:?}");
        assert!(ended.iter().all(|run| run["status"] != "failed"), "at point {point}: {ended:?}");
    }
}

#[test]
fn what_is_resumed_must_still_be_there() {
    if !has_redis("a program that has gone") {
        return;
    }
    let fixture = Fixture::of(&format!("server: {{kind: redis, program: ./server}}\n{RUN}repetitions: 2\n"));
    let wrapper = "#!/bin/sh\nexec redis-server \"$@\"\n";
    fixture.program("server", wrapper);
    let mut child = fixture.start();
    wait_until("the load", || files(&fixture.path("o"), "series.csv").len() == 1);
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    std::fs::remove_file(fixture.path("server")).unwrap();
    let resumed = fixture.dyno(&["resume", "o"]);
    assert_eq!(resumed.status.code(), Some(2), "{}", err(&resumed));
    assert!(err(&resumed).contains("./server is no program"), "{}", err(&resumed));
    let status = fixture.dyno(&["status", "o"]);
    let told = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(told.contains("interrupted, 0 of 2 runs ended"), "{told}");
    fixture.program("server", wrapper);
    fixture.assert_ran(&fixture.dyno(&["resume", "o", "--quiet"]));
    // Nothing is to be made any more, and nothing asked for.
    std::fs::remove_file(fixture.path("server")).unwrap();
    fixture.assert_ran(&fixture.dyno(&["resume", "o", "--quiet"]));
    fixture.assert_clear();
}

/// Returns whether a process runs; one that has ended and that its parent has not waited for has no command line.
fn is_running(pid: u32) -> bool {
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty())
}

/// Kills a `dyno run spawn:redis` whose server the kernel does not end with it; its folder, and the server's process.
fn killed_with_a_server(fixture: &Fixture, command: &dyn Fn(&[&str]) -> Command) -> (PathBuf, u32) {
    let mut child = command(&["run", "spawn:redis", "--no-out", "--records", "10", "--duration", "60s"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let found = || {
        let folder = std::fs::read_dir(fixture.path("tmp")).ok()?.flatten().next()?.path();
        let journal = std::fs::read_to_string(folder.join("undo.jsonl")).ok()?;
        let lines = journal.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let pid = lines.filter_map(|line| line["pid"].as_u64()).next()?;
        Some((folder, pid as u32))
    };
    wait_until("a server", || found().is_some());
    let (folder, pid) = found().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(is_running(pid), "the server ended with its dyno");
    (folder, pid)
}

#[test]
fn a_temporary_server_of_a_killed_dyno_goes_with_the_next_run_and_with_stop() {
    let Some((_, program)) = dyno_databases::spawn::find_server(Some("redis")) else {
        return dyno_testkit::skip("temporary servers of killed dynos");
    };
    let fixture = Fixture::of("");
    std::fs::create_dir(fixture.path("tmp")).unwrap();
    // Nothing but the server is on PATH: what has the kernel end it is not.
    std::fs::create_dir(fixture.path("bin")).unwrap();
    std::os::unix::fs::symlink(program, fixture.path("bin/redis-server")).unwrap();
    let command = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
        command.args(words).current_dir(fixture.0.path()).stdin(Stdio::null());
        command.env("TMPDIR", fixture.path("tmp")).env("PATH", fixture.path("bin"));
        command
    };
    let next = ["run", "spawn:redis", "--no-out", "--records", "10", "--ops", "10", "--warmup", "0s"];
    // Ten operations are too few to be late.
    for (words, code) in [(&next[..], 0), (&["stop", "nothing-here"], 2)] {
        let (folder, pid) = killed_with_a_server(&fixture, &command);
        let output = command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", err(&output));
        assert!(err(&output).contains(&format!("{}: removed", folder.display())), "{}", err(&output));
        assert!(!is_running(pid), "the server runs on");
        assert_eq!(std::fs::read_dir(fixture.path("tmp")).unwrap().count(), 0);
    }
}
