//! What whole-run tests share: a server of their own, a folder of their own, and the command under test.
#![allow(missing_docs, reason = "helpers of tests are named for what they do")]

pub mod behind;
pub mod cluster;
pub mod fake_mongo;
pub mod kube;
pub mod lab;
pub mod mongo;
pub mod mongo_player;
pub mod mongo_proxy;
pub mod object_store;
pub mod strange_proxy;

use serde_json::Value;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Says on stderr that a test is skipped; `make test` counts and names these lines.
pub fn skip(what: &str) {
    skip_because(what, "redis-server is not installed");
}

/// Says on stderr that a test is skipped, and why.
#[expect(clippy::print_stderr, reason = "the test script counts these lines")]
pub fn skip_because(what: &str, why: &str) {
    // In one piece: other tests write to the same stream.
    let line = format!("SKIPPED: {what}: {why}\n");
    eprint!("{line}");
}

/// A redis-server on a free loopback port; killed when dropped.
pub struct RedisProcess {
    program: &'static str,
    child: Child,
    pub port: u16,
    folder: tempfile::TempDir,
    options: Vec<String>,
}

pub fn free_port() -> u16 {
    dyno_localhost::port::free_port().unwrap()
}

fn launch(program: &str, port: u16, folder: &Path, options: &[String]) -> Option<Child> {
    Command::new(program)
        .args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
        ])
        .arg(folder)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

impl RedisProcess {
    /// Starts one with further options; `None` where redis-server is not installed.
    pub fn start(options: &[&str]) -> Option<RedisProcess> {
        RedisProcess::start_of("redis-server", options)
    }

    /// The same of another program that takes its options.
    pub fn start_of(program: &'static str, options: &[&str]) -> Option<RedisProcess> {
        let options: Vec<String> = options.iter().map(|o| (*o).to_owned()).collect();
        // Another process may take a port between the look and the start: then another one is tried.
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let port = free_port();
            let child = launch(program, port, folder.path(), &options)?;
            let mut server = RedisProcess { program, child, port, folder, options: options.clone() };
            if server.answers() {
                return Some(server);
            }
        }
        panic!("{program} does not start");
    }

    /// Waits, at most 10 s, until this very process answers; false if it has ended.
    fn answers(&mut self) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(10) {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            let reply = self.cli(&["INFO", "server"]);
            // A server with a password says so; another server that listens there has another process number.
            let ours = format!("process_id:{}\r", self.child.id());
            if reply.contains(&ours) || reply.contains("NOAUTH") {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    pub fn uri(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port.
    pub fn restart(&mut self) {
        self.child = launch(self.program, self.port, self.folder.path(), &self.options).unwrap();
        assert!(self.answers(), "redis-server does not start again");
    }

    /// What redis-cli prints for a command.
    pub fn cli(&self, arguments: &[&str]) -> String {
        let output = Command::new("timeout")
            .args(["-k", "1", "30", "redis-cli", "-p", &self.port.to_string()])
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for RedisProcess {
    fn drop(&mut self) {
        // A stopped process must go on to be killed; one that has ended needs nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something listens, at most 10 s.
pub fn await_port(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "nothing listens on port {port}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The workers of a dyno: processes whose parent it is.
pub fn workers(dyno: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rfind(')').and_then(|at| stat[at + 2..].split(' ').nth(1)?.parse::<u32>().ok());
        let message = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        parent == Some(dyno) && message.contains("worker")
    };
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(child).collect()
}

/// Sends a signal.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("/bin/sh").args(["-c", &format!("kill -{name} {pid}")]).status().unwrap();
    assert!(sent.success());
}

/// The program under test: cargo builds it beside the folder of the test programs.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("dyno");
    assert!(program.is_file(), "{} is not there", program.display());
    program
}

/// The command, in a folder of its own.
pub struct Dyno {
    pub folder: tempfile::TempDir,
    /// Where it keeps what it knows of its own between commands.
    state: tempfile::TempDir,
}

impl Default for Dyno {
    fn default() -> Self {
        Dyno { folder: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
    }
}

impl Dyno {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.folder.path()).env("NO_COLOR", "1").stdin(Stdio::null());
        command.env("DYNO_STATE", self.state.path());
        command
    }

    /// Runs to the end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        finish(self.start(arguments))
    }

    /// Starts without waiting.
    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits, at most a minute, until a second of a phase of a run is recorded.
    pub fn await_phase(&self, directory: &str, phase: &str) {
        let word = format!("\"{phase}\"");
        let intervals = self.path(directory).join("intervals.jsonl");
        let begun = Instant::now();
        while !std::fs::read_to_string(&intervals).is_ok_and(|text| text.contains(&word)) {
            assert!(begun.elapsed() < Duration::from_secs(60), "no second of the phase {phase}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that a timed run on a host that others use went well: it is invalid for nothing but what a busy host does to a
    /// client. Whatever cannot be late (virtual time, few operations, no network) must end with 0: `assert_exit`.
    #[track_caller]
    pub fn assert_ran(&self, output: &Output) {
        self.assert_ran_but(output, &[]);
    }

    /// The same of a run to which something is done on purpose: it may be invalid by the checks in `open`, too.
    #[track_caller]
    pub fn assert_ran_but(&self, output: &Output, open: &[&str]) {
        assert_ran_in(self.folder.path(), output, open);
    }

    /// [`Dyno::assert_ran`] of `dyno bexhoma`, which exits with 4 where a test of its summary failed. Runs of a second or two
    /// may show no CPU of a component that had little to do; no other test may fail.
    #[track_caller]
    pub fn assert_bexhoma_ran(&self, output: &Output) {
        let code = output.status.code();
        let told = stdout(output);
        let failed: Vec<&str> = told.lines().filter(|line| line.starts_with("* TEST failed")).collect();
        let allowed = |line: &str| {
            line.contains("contains no 0 or NaN in CPU [CPUs]")
                // How fast this host is.
                || line.contains("target missed")
                || code == Some(5) && line.contains("Every run has a verdict that is not invalid")
        };
        let other = failed.iter().find(|line| !allowed(line));
        assert!(other.is_none(), "{failed:#?}\n{}", stderr(output));
        match code {
            Some(4) => assert!(!failed.is_empty(), "{told}"),
            _ => self.assert_ran(output),
        }
    }

    /// A run's summary, read from its directory.
    pub fn summary(&self, directory: &str) -> Value {
        let path = self.path(directory).join("summary.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_str(&text).unwrap()
    }
}

/// [`Dyno::assert_ran_but`] of a command that ran in `folder`.
#[track_caller]
pub fn assert_ran_in(folder: &Path, output: &Output, open: &[&str]) {
    if output.status.code() != Some(5) {
        return assert_exit(output, &[0]);
    }
    let mut found = invalid_by(&stdout(output));
    // Drop-ins print the originals' reports, and a warning for each reason.
    let warned = stderr(output);
    let warned = warned.lines().filter_map(|line| line.split_once(" is invalid (")?.1.split_once("): "));
    found.extend(warned.map(|(check, why)| (check.to_owned(), why.to_owned())));
    if found.is_empty() {
        found = invalid_below(folder);
    }
    let allowed = |check: &str| OF_A_BUSY_HOST.contains(&check) || open.contains(&check);
    let other = found.iter().find(|(check, _)| !allowed(check));
    let told = format!("{}\n{}", stdout(output), stderr(output));
    assert!(!found.is_empty() && other.is_none(), "invalid by {found:#?}\n{told}");
}

/// Checks by which a run is invalid where other programs take the host's CPU: the client is late, or what is due waits so long
/// for it that the queue overflows.
const OF_A_BUSY_HOST: [&str; 3] = ["client_share", "receive_lag", "drops"];

/// Checks by which a run is invalid whose server is killed, cut off or stopped: what it did not answer has failed.
pub const OF_A_LOST_SERVER: &[&str] = &["errors", "gone", "connections"];

/// The checks by which a summary that was printed, as text or as JSON, is invalid, and why.
fn invalid_by(printed: &str) -> Vec<(String, String)> {
    let pair = |check: &str, why: &str| (check.to_owned(), why.to_owned());
    if let Ok(summary) = serde_json::from_str::<Value>(printed) {
        let reasons = summary["verdict"]["reasons"].as_array().cloned().unwrap_or_default();
        let invalid = reasons.iter().filter(|reason| reason["trust"] == "invalid");
        return invalid
            .filter_map(|reason| Some(pair(reason["check"].as_str()?, reason["text"].as_str()?)))
            .collect();
    }
    let lines = printed.lines().filter_map(|line| line.strip_prefix("  invalid ")?.split_once(": "));
    lines.map(|(check, why)| pair(check, why)).collect()
}

/// The same of all runs that are recorded below a folder.
fn invalid_below(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let each = entries.flat_map(|entry| match entry.file_type().unwrap().is_dir() {
        true => invalid_below(&entry.path()),
        false if entry.file_name() == "summary.json" => {
            invalid_by(&std::fs::read_to_string(entry.path()).unwrap())
        }
        false => Vec::new(),
    });
    each.collect()
}

/// No command of a test takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits for a command that was started with [`Dyno::start`]. One that hangs is told with what it has said and where it
/// stands, and is killed; so is one whose pipes another process keeps open.
pub fn finish(mut child: Child) -> Output {
    drop(child.stdin.take());
    let (out, err) = (PipeReader::of(child.stdout.take()), PipeReader::of(child.stderr.take()));
    let begun = Instant::now();
    let status = loop {
        let status = child.try_wait().unwrap();
        if let Some(status) = status.filter(|_| out.has_ended() && err.has_ended()) {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            let stands = Command::new("ps").args(["-eLo", "pid,ppid,stat,wchan:24,args"]).output();
            let _ = child.kill();
            let stands = stands.map_or(String::new(), |told| lossy(&told.stdout));
            let said = lossy(&out.text()) + "\n" + &lossy(&err.text());
            panic!("process {} hangs ({status:?})\n{said}\n{stands}", child.id());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Output { status, stdout: out.text(), stderr: err.text() }
}

/// What comes through a pipe, read beside.
struct PipeReader {
    text: Arc<Mutex<Vec<u8>>>,
    ended: Arc<AtomicBool>,
}

impl PipeReader {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let reading = PipeReader { text: Arc::default(), ended: Arc::new(AtomicBool::new(pipe.is_none())) };
        let (text, ended) = (reading.text.clone(), reading.ended.clone());
        if let Some(mut pipe) = pipe {
            std::thread::spawn(move || {
                let mut part = [0; 65_536];
                while let Ok(n @ 1..) = pipe.read(&mut part) {
                    text.lock().unwrap().extend_from_slice(&part[..n]);
                }
                ended.store(true, Ordering::Release);
            });
        }
        reading
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn text(&self) -> Vec<u8> {
        self.text.lock().unwrap().clone()
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts the exit code, showing what was printed.
pub fn assert_exit(output: &Output, accepted: &[i32]) {
    let code = output.status.code().unwrap_or(-1);
    assert!(
        accepted.contains(&code),
        "exit {code}, expected {accepted:?}\n{}\n{}",
        stdout(output),
        stderr(output)
    );
}

/// The phase of a name.
pub fn phase<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let phases = summary["phases"].as_array().unwrap();
    phases.iter().find(|p| p["name"] == name).unwrap_or_else(|| panic!("no phase {name}"))
}

/// Arrivals of a phase, after asserting that each has one outcome.
pub fn arrivals(phase: &Value) -> u64 {
    let arrivals = phase["arrivals"].as_u64().unwrap();
    let outcomes: u64 = phase["outcomes"].as_object().unwrap().values().map(|v| v.as_u64().unwrap()).sum();
    assert_eq!(outcomes, arrivals, "arrivals and outcomes differ: {}", phase["outcomes"]);
    arrivals
}

/// Arrivals of a phase that ended as `outcome`.
pub fn outcome(phase: &Value, outcome: &str) -> u64 {
    phase["outcomes"][outcome].as_u64().unwrap_or(0)
}
