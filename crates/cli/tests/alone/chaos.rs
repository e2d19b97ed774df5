//! dyno under fault: every fault on every component that can have it, at moments drawn at random, and after each the same
//! questions: did it end, can its record be read, was an operation lost or invented, is the verdict true, is anything left?
//!
//! Records are inserted into a real Redis, whose own count says what was done: no fewer than dyno calls done, no more than it had
//! sent. `make reliability PART=chaos` runs many rounds and writes the table of docs/reliability.md; `make test` one of each.

use dyno_testkit::{Dyno, RedisProcess, signal, skip, skip_because};
use dyno_types::rng::{Purpose, Stream};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Records that are there before the measured phase.
const LOADED: u64 = 200;
/// Longest that a run of five seconds may take, whatever is done to it.
const PATIENCE: Duration = Duration::from_secs(90);
const RUN: &str = "o/runs/cell0001-rep01";

/// redis-server is not installed.
struct NoServer;

/// What dyno must make of a fault.
#[derive(Clone, Copy, PartialEq)]
enum Must {
    /// Go on, whatever its verdict.
    Hold,
    /// Not call the run valid.
    Doubt,
    /// Say it by this check. What the check affects may be nothing that the run claims: then the run stays valid.
    Tell(&'static str),
    /// End with Ctrl-C's exit code and keep what it had.
    Stop,
    /// It is gone itself: others read what it left.
    Vanish,
}

struct Fixture {
    dyno: Dyno,
    server: RedisProcess,
    exporter: Arc<AtomicU8>,
    child: Child,
}

type Act = fn(&mut Fixture);

/// Component, fault, what is done, and what dyno must make of it.
const MATRIX: [(&str, &str, Act, Must); 17] = [
    ("controller", "SIGINT", |fixture| signal(fixture.child.id(), "INT"), Must::Stop),
    ("controller", "SIGTERM", |fixture| signal(fixture.child.id(), "TERM"), Must::Stop),
    ("controller", "SIGKILL", |fixture| signal(fixture.child.id(), "KILL"), Must::Vanish),
    (
        "controller",
        "stands still for 3 s",
        |fixture| still(fixture.child.id(), 3_000),
        Must::Tell("controller"),
    ),
    ("controller", "no more descriptors", |fixture| limited(fixture.child.id(), "--nofile=3:3"), Must::Hold),
    ("controller", "no more processes", |fixture| limited(fixture.child.id(), "--nproc=1:1"), Must::Hold),
    (
        "worker",
        "SIGKILL",
        |fixture| fixture.workers().first().into_iter().for_each(|pid| signal(*pid, "KILL")),
        Must::Doubt,
    ),
    (
        "worker",
        "SIGTERM",
        |fixture| fixture.workers().first().into_iter().for_each(|pid| signal(*pid, "TERM")),
        Must::Doubt,
    ),
    (
        "worker",
        "stands still for 3 s",
        |fixture| fixture.workers().first().into_iter().for_each(|pid| still(*pid, 3_000)),
        Must::Doubt,
    ),
    (
        "worker",
        "no more descriptors",
        |fixture| fixture.workers().iter().for_each(|pid| limited(*pid, "--nofile=3:3")),
        Must::Hold,
    ),
    ("server", "SIGKILL", |fixture| fixture.server.kill(), Must::Doubt),
    ("server", "stands still for 2 s", |fixture| still(fixture.server.pid(), 2_000), Must::Doubt),
    (
        "server",
        "closes all connections",
        |fixture| drop(fixture.server.cli(&["CLIENT", "KILL", "TYPE", "normal"])),
        Must::Hold,
    ),
    (
        "server",
        "refuses writes",
        |fixture| drop(fixture.server.cli(&["CONFIG", "SET", "maxmemory", "1"])),
        Must::Doubt,
    ),
    (
        "monitor",
        "the exporter answers no more",
        |fixture| fixture.exporter.store(1, Ordering::Relaxed),
        Must::Hold,
    ),
    (
        "monitor",
        "the exporter answers nonsense",
        |fixture| fixture.exporter.store(2, Ordering::Relaxed),
        Must::Hold,
    ),
    (
        "run directory",
        "is removed",
        |fixture| drop(std::fs::remove_dir_all(fixture.dyno.path(RUN))),
        Must::Hold,
    ),
];

fn still(pid: u32, ms: u64) {
    signal(pid, "STOP");
    std::thread::sleep(Duration::from_millis(ms));
    signal(pid, "CONT");
}

fn limited(pid: u32, limit: &str) {
    let done = Command::new("prlimit").args(["--pid", &pid.to_string(), limit]).status();
    assert!(done.is_ok_and(|status| status.success()), "prlimit");
}

/// Answers as an exporter does, then not at all, or with what is no metric.
fn exporter() -> (u16, Arc<AtomicU8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, mood) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU8::new(0)));
    let of = mood.clone();
    std::thread::spawn(move || {
        let mut silent: Vec<TcpStream> = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1_024]);
            let body = match of.load(Ordering::Relaxed) {
                0 => "# TYPE up gauge\nup 1\n",
                1 => {
                    silent.push(stream);
                    continue;
                }
                _ => "\u{0}{{{ not a metric \"\n",
            };
            let length = body.len();
            let text =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
            let _ = stream.write_all(text.as_bytes());
        }
    });
    (port, mood)
}

impl Fixture {
    fn start() -> Option<Fixture> {
        let server = RedisProcess::start(&[])?;
        let dyno = Dyno::new();
        let (port, exporter) = exporter();
        let text = format!(
            "target: {}\nworkload: {{ycsb: {{workload: a, records: {LOADED}, properties: {{insertproportion: 1, \
             readproportion: 0, updateproportion: 0}}}}}}\nclient: {{workers: 2}}\n\
             phases: {{measure: {{duration: 5s, warmup: 0s, connections: 8, rate: '1000', timeout: 1s}}}}\n\
             monitors: {{interval: 200ms, prometheus: {{x: 'http://127.0.0.1:{port}/metrics'}}}}\n",
            server.uri()
        );
        std::fs::write(dyno.path("x.yaml"), text).unwrap();
        let child = dyno.start(&["run", "x.yaml", "--out", "o", "--quiet"]);
        Some(Fixture { dyno, server, exporter, child })
    }

    fn begun(&self) -> bool {
        let events = std::fs::read_to_string(self.dyno.path(RUN).join("events.jsonl")).unwrap_or_default();
        events.contains(r#""event":"begin","text":"measure""#)
    }

    /// Processes whose parent is dyno.
    fn workers(&self) -> Vec<u32> {
        dyno_testkit::workers(self.child.id())
    }

    /// Waits for dyno's end; its exit code.
    fn ended(&mut self) -> Option<i32> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status.code(),
                None if Instant::now() > end => {
                    let _ = self.child.kill();
                    panic!("dyno hangs");
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

/// A fault at a share of the measured phase, and all questions; operations that were done.
fn round(case: &(&str, &str, Act, Must), share: f64) -> Option<u64> {
    // On a host that stands still for seconds the load may be over before anything is done to it.
    (0..5).find_map(|_| disturbed(case, share).transpose()).expect("the load was over five times").ok()
}

/// The same; nothing if the load was over first, an error if there is no server.
fn disturbed(case: &(&str, &str, Act, Must), share: f64) -> Result<Option<u64>, NoServer> {
    let (component, fault, act, must) = case;
    let name = format!("{component}: {fault}, after {share:.2} of the phase");
    let mut fixture = Fixture::start().ok_or(NoServer)?;
    let end = Instant::now() + PATIENCE;
    while !fixture.begun() {
        let early = fixture.child.try_wait().unwrap();
        assert!(early.is_none() && Instant::now() < end, "{name}: the load does not begin: {early:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs_f64(0.2 + 2.0 * share));
    let workers = fixture.workers();
    if workers.len() != 2 {
        fixture.ended();
        return Ok(None);
    }
    act(&mut fixture);
    let code = fixture.ended();
    match must {
        Must::Stop => assert_eq!(code, Some(130), "{name}"),
        Must::Vanish => assert_eq!(code, None, "{name}"),
        Must::Hold | Must::Doubt | Must::Tell(_) => {
            assert!(matches!(code, Some(0 | 1 | 3 | 4 | 5)), "{name}: exit code {code:?}");
        }
    }
    // Workers notice that their controller is gone.
    let gone = |pid: &u32| {
        let message = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !message.contains("worker")
    };
    while !workers.iter().all(gone) {
        assert!(Instant::now() < end + PATIENCE, "{name}: a worker is left");
        std::thread::sleep(Duration::from_millis(20));
    }
    if fixture.dyno.path(RUN).join("run.json").is_file() {
        Ok(Some(counted(&mut fixture, &name, *must)))
    } else {
        assert!(*component == "run directory", "{name}: there is no record");
        Ok(Some(0))
    }
}

/// Whether the record can be read, and its counts are those of the server.
fn counted(fixture: &mut Fixture, name: &str, must: Must) -> u64 {
    let report = fixture.dyno.run(&["report", RUN, "--format", "json"]);
    // Whatever was killed decides; the counts are compared below in any case.
    assert!(matches!(report.status.code(), Some(0 | 5 | 130)), "{name}: {report:?}");
    let found: Value = serde_json::from_slice(&report.stdout).unwrap_or_else(|e| panic!("{name}: {e}"));
    let verdict = &found["verdict"];
    match must {
        Must::Doubt => assert_ne!(verdict["trust"], "valid", "{name}: {verdict}"),
        Must::Tell(check) => {
            let reasons = verdict["reasons"].as_array().unwrap();
            let told = |reason: &Value| reason["check"] == check && reason["trust"] != "valid";
            assert!(reasons.iter().any(told), "{name}: {verdict}");
        }
        Must::Hold | Must::Stop | Must::Vanish => {}
    }
    let phases = found["phases"].as_array().unwrap();
    let Some(measured) = phases.iter().find(|phase| phase["name"] == "measure") else { return 0 };
    let ok = dyno_testkit::outcome(measured, "ok");
    assert!(ok <= dyno_testkit::arrivals(measured), "{name}: {measured}");
    // A server that was killed has forgotten everything: this one keeps nothing on disk.
    if fixture.server.cli(&["PING"]).trim() == "PONG" {
        let there: u64 = fixture.server.cli(&["ZCARD", "_indices"]).trim().parse().unwrap();
        let done = there - LOADED;
        assert!(ok <= done, "{name}: {ok} are called done, {done} are there");
        // What a killed worker or controller had sent in its last second is not known.
        let known = dyno_testkit::arrivals(measured)
            + if matches!(must, Must::Vanish | Must::Doubt) { 2_000 } else { 0 };
        assert!(done <= known, "{name}: {done} are there, {known} were sent");
    }
    ok
}

#[expect(clippy::print_stdout, reason = "scripts/reliability.py makes a table of these lines")]
fn report(line: &str) {
    println!("{line}");
}

#[test]
fn every_fault_on_every_component() {
    if Command::new("prlimit").arg("--version").output().is_err() {
        return skip_because("chaos", "prlimit is not on PATH");
    }
    let rounds = std::env::var("CHAOS_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1u64);
    let mut moments = Stream::new(rounds, 7, Purpose::Key);
    for case in &MATRIX {
        let begun = Instant::now();
        let mut done = 0;
        for _ in 0..rounds {
            match round(case, moments.next_unit()) {
                Some(operations) => done += operations,
                None => return skip("chaos"),
            }
        }
        let seconds = begun.elapsed().as_secs();
        report(&format!("CHAOS | {} | {} | {rounds} of {rounds} | {done} | {seconds} s |", case.0, case.1));
    }
}
