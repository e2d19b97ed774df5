//! Faults of the client and of the server, and who is named for them. An ordinary run tries some on one load each;
//! `FAULT_ROUNDS=1` all of them on all loads, and prints the rows of docs/reliability.md.

use dyno_testkit::strange_proxy::{Strange, before};
use dyno_testkit::{Dyno, Server, finish, program, signal, skip, stderr};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Client,
    Server,
}

/// What is done, after 1.5 s of 5.
#[derive(Clone, Copy)]
enum Fault {
    /// The process is stopped so many times for so many milliseconds, each half a second apart.
    Stops(u64, u64),
    /// The load runs only when nothing else wants a CPU, and something does.
    Starved,
    /// A limit of the shell that starts dyno, and the words that tell it.
    Limit(&'static str, &'static str),
    /// A command to the server while it is under load.
    Says(&'static [&'static str]),
    /// The same before the run.
    Set(&'static [&'static str]),
    /// The server is killed.
    Killed,
    /// A proxy before the server sends every fiftieth reply twice, or closes behind it.
    Proxy(Strange),
}

const FAULTS: [(Side, &str, Fault); 16] = [
    (Side::Client, "stopped for 300 ms", Fault::Stops(1, 300)),
    (Side::Client, "stopped for 1.2 s", Fault::Stops(1, 1_200)),
    (Side::Client, "stopped for 150 ms, five times", Fault::Stops(5, 150)),
    (Side::Client, "starved of CPU time", Fault::Starved),
    (Side::Client, "out of descriptors", Fault::Limit("ulimit -n 20", "ulimit -n")),
    (Side::Client, "may write no more", Fault::Limit("ulimit -f 4", "ulimit -f")),
    (Side::Server, "stopped for 400 ms", Fault::Stops(1, 400)),
    (Side::Server, "stopped for 1.2 s", Fault::Stops(1, 1_200)),
    (Side::Server, "stopped for 200 ms, five times", Fault::Stops(5, 200)),
    (Side::Server, "DEBUG SLEEP 0.8", Fault::Says(&["DEBUG", "SLEEP", "0.8"])),
    (Side::Server, "CLIENT PAUSE 900", Fault::Says(&["CLIENT", "PAUSE", "900"])),
    (Side::Server, "maxclients 6", Fault::Set(&["CONFIG", "SET", "maxclients", "6"])),
    (Side::Server, "maxmemory 1", Fault::Says(&["CONFIG", "SET", "maxmemory", "1"])),
    (Side::Server, "killed", Fault::Killed),
    (Side::Server, "replies twice", Fault::Proxy(Strange::Twice)),
    (Side::Server, "connections closed", Fault::Proxy(Strange::Closes)),
];

/// Faults of an ordinary run.
const ORDINARY: [&str; 7] = [
    "stopped for 300 ms",
    "starved of CPU time",
    "out of descriptors",
    "stopped for 400 ms",
    "DEBUG SLEEP 0.8",
    "killed",
    "replies twice",
];

const LOADS: [&[&str]; 3] = [
    &["--users", "8", "--think", "2ms"],
    &["--rate", "500", "--connections", "16"],
    &["--rate", "2000", "--connections", "32"],
];

/// Checks that say that the server was slow, or not there.
const OF_THE_SERVER: [&str; 7] = ["gone", "stalls", "level", "drift", "period", "response_level", "overload"];
/// Those that say so of something on the way to it, too.
const BESIDE: [&str; 6] = ["errors", "connections", "drops", "offered_rate", "protocol", "reconnects"];
/// Checks that say that it was the client, or its host.
const OF_THE_CLIENT: [&str; 6] =
    ["client_share", "receive_lag", "client_cpu", "pinning", "neighbours", "steal"];

fn start(dyno: &Dyno, uri: &str, load: &[&str], fault: Fault) -> Child {
    let common = ["--workload", "a", "--records", "500", "--duration", "5s", "--warmup", "0s", "--out", "r"];
    let words = [&["run", uri][..], &common, load, &["--quiet"]].concat();
    let wrapped = match fault {
        Fault::Limit(limit, _) => format!("{limit}; exec \"$0\" \"$@\""),
        Fault::Starved => "exec chrt --idle 0 \"$0\" \"$@\"".to_owned(),
        _ => return dyno.start(&words),
    };
    let mut command = Command::new("sh");
    command.args(["-c", &wrapped]).arg(program()).args(words).current_dir(dyno.folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Ends with the test.
struct Busy(Vec<Child>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|child| {
            let _ = child.kill();
            let _ = child.wait();
        });
    }
}

fn stop(pid: u32, times: u64, length_ms: u64) {
    for _ in 0..times {
        signal(pid, "STOP");
        std::thread::sleep(Duration::from_millis(length_ms));
        signal(pid, "CONT");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Who is named: checks that leave less than full trust, with those that make a claim invalid first; or what dyno says itself.
fn tried(side: Side, fault: Fault, load: &[&str]) -> Option<(bool, String)> {
    let server = Server::start(&["--enable-debug-command", "local"]).or_else(|| Server::start(&[]))?;
    let dyno = Dyno::new();
    let mut uri = server.uri();
    let port = uri.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    match fault {
        Fault::Set(words) => drop(server.cli(words)),
        Fault::Proxy(strange) => uri = format!("redis://127.0.0.1:{}", before(port, strange)),
        _ => {}
    }
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let run = start(&dyno, &uri, load, fault);
    let busy = match fault {
        Fault::Starved => {
            let loops = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
            Busy((0..cores * 2).map(|_| loops()).collect())
        }
        _ => Busy(Vec::new()),
    };
    if !matches!(fault, Fault::Limit(..) | Fault::Set(_) | Fault::Proxy(_)) {
        dyno.await_phase("r", "measure");
        std::thread::sleep(Duration::from_millis(1_500));
        match fault {
            Fault::Stops(times, length_ms) => {
                stop(if side == Side::Client { run.id() } else { server.pid() }, times, length_ms);
            }
            Fault::Says(words) => drop(server.cli(words)),
            Fault::Killed => signal(server.pid(), "KILL"),
            _ => {}
        }
    }
    let output = finish(run);
    drop(busy);
    let said = stderr(&output);
    if let Fault::Limit(_, words) = fault {
        return Some((said.contains(words), said.lines().last().unwrap_or_default().to_owned()));
    }
    if output.status.code() == Some(3) {
        return Some((side == Side::Server, "target unreachable".into()));
    }
    let summary = dyno.summary("r");
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let of = |reason: &Value| (reason["check"].as_str().unwrap().to_owned(), reason["trust"] == "invalid");
    let against = reasons.iter().filter(|reason| reason["trust"] != "valid").map(of);
    let against: Vec<(String, bool)> = against.collect();
    let has = |names: &[&str]| against.iter().any(|(check, _)| names.contains(&check.as_str()));
    let client_to_blame = against.iter().any(|(check, invalid)| check == "client_share" && *invalid);
    // On a busy host the client is late by itself, beside the server's fault.
    let right = match side {
        Side::Client => has(&OF_THE_CLIENT) && !has(&OF_THE_SERVER),
        // A server that is only slow now and then has slow response times, and a valid run.
        Side::Server => {
            let slow = matches!(fault, Fault::Stops(_, ..300));
            ((slow && !has(&OF_THE_CLIENT))
                || has(&OF_THE_SERVER)
                || has(&BESIDE)
                || has(&["neighbours", "steal"]))
                && (!client_to_blame || has(&["neighbours", "steal"]))
        }
    };
    let mut names: Vec<String> = against.into_iter().map(|(check, _)| check).collect();
    names.dedup();
    Some((right, names.join(", ")))
}

#[test]
#[expect(clippy::print_stdout, reason = "scripts/reliability.py makes a table of these lines")]
fn the_one_with_the_fault_is_named() {
    let rounds: usize = std::env::var("FAULT_ROUNDS").map_or(0, |rounds| rounds.parse().unwrap());
    let mut wrong = Vec::new();
    for (number, (side, name, fault)) in FAULTS.into_iter().enumerate() {
        if rounds == 0 && !ORDINARY.contains(&name) {
            continue;
        }
        let loads: Vec<usize> = match rounds {
            0 => vec![number % LOADS.len()],
            rounds => (0..rounds * LOADS.len()).map(|at| at % LOADS.len()).collect(),
        };
        let (mut right, mut named, tries) = (0, Vec::new(), loads.len());
        for load in loads {
            let Some((is_right, words)) = tried(side, fault, LOADS[load]) else {
                return skip("fault_matrix");
            };
            right += usize::from(is_right);
            if !is_right {
                wrong.push(format!("{side:?}, {name}, {:?}: {words}", LOADS[load]));
            }
            if !named.contains(&words) {
                named.push(words);
            }
        }
        println!("FAULT | {side:?} | {name} | {right} of {tries} | {} |", named.join("; "));
    }
    assert!(wrong.is_empty() || rounds > 0, "{wrong:#?}");
}
