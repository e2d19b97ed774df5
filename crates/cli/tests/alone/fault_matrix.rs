//! Faults of the client and of the server, and who is named for them. An ordinary run tries some on one load each;
//! `FAULT_ROUNDS=1` all of them on all loads, and prints the rows of docs/reliability.md.

use dyno_testkit::behind::Behind;
use dyno_testkit::strange_proxy::{Strange, before};
use dyno_testkit::{Dyno, RedisProcess, finish, program, signal, skip_because, stderr};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
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
    /// The load gets idle priority; for 2 s programs take all CPUs.
    Starved,
    /// A control group gives the process so many hundredths of a CPU.
    Group(u64),
    /// Other programs want all CPUs as the load does.
    Crowd,
    /// A limit of the shell that starts dyno, and the words that tell it.
    Limit(&'static str, &'static str),
    /// The disk for results is full after so many bytes.
    Full(&'static str),
    /// The device that packets leave by is shaped.
    Way(&'static str),
    /// A command to the server while it is under load.
    Says(&'static [&'static str]),
    /// The same before the run.
    Set(&'static [&'static str]),
    /// The server is killed.
    Killed,
    /// A proxy before the server sends every fiftieth reply twice, or closes behind it.
    Proxy(Strange),
}

const BUSY: &str =
    "local t = redis.call('TIME')[1] + 1; while tonumber(redis.call('TIME')[1]) < t + 1 do end";

const FAULTS: [(Side, &str, Fault); 29] = [
    (Side::Client, "stopped for 300 ms", Fault::Stops(1, 300)),
    (Side::Client, "stopped for 1.2 s", Fault::Stops(1, 1_200)),
    (Side::Client, "stopped for 3 s", Fault::Stops(1, 3_000)),
    (Side::Client, "stopped for 150 ms, five times", Fault::Stops(5, 150)),
    (Side::Client, "stopped for 60 ms, six times", Fault::Stops(6, 60)),
    (Side::Client, "starved of CPU time", Fault::Starved),
    (Side::Client, "3 % of a CPU (control group)", Fault::Group(3)),
    (Side::Client, "other programs on all CPUs", Fault::Crowd),
    (Side::Client, "out of descriptors", Fault::Limit("ulimit -n 20", "ulimit -n")),
    (Side::Client, "may write no more", Fault::Limit("ulimit -f 4", "ulimit -f")),
    (Side::Client, "its disk is full", Fault::Full("100k")),
    (Side::Client, "its network is slow (netem)", Fault::Way("netem delay 8ms")),
    (Side::Client, "its network is narrow (tbf)", Fault::Way("tbf rate 4mbit burst 32kbit latency 400ms")),
    (Side::Server, "stopped for 400 ms", Fault::Stops(1, 400)),
    (Side::Server, "stopped for 1.2 s", Fault::Stops(1, 1_200)),
    (Side::Server, "stopped for 3 s", Fault::Stops(1, 3_000)),
    (Side::Server, "stopped for 200 ms, five times", Fault::Stops(5, 200)),
    (Side::Server, "3 % of a CPU (control group)", Fault::Group(3)),
    (Side::Server, "DEBUG SLEEP 0.8", Fault::Says(&["DEBUG", "SLEEP", "0.8"])),
    (Side::Server, "CLIENT PAUSE 900", Fault::Says(&["CLIENT", "PAUSE", "900"])),
    (Side::Server, "a script for 1 to 2 s", Fault::Says(&["EVAL", BUSY, "0"])),
    (Side::Server, "becomes a replica", Fault::Says(&["REPLICAOF", "127.0.0.1", "1"])),
    (Side::Server, "maxclients 6", Fault::Set(&["CONFIG", "SET", "maxclients", "6"])),
    (Side::Server, "maxmemory 1", Fault::Says(&["CONFIG", "SET", "maxmemory", "1"])),
    (Side::Server, "killed", Fault::Killed),
    (Side::Server, "replies twice", Fault::Proxy(Strange::Twice)),
    (Side::Server, "connections closed", Fault::Proxy(Strange::Closes)),
    (Side::Server, "its network is slow (netem)", Fault::Way("netem delay 8ms")),
    (Side::Server, "its network is narrow (tbf)", Fault::Way("tbf rate 12mbit burst 32kbit latency 400ms")),
];

/// Faults of an ordinary run.
const ORDINARY: [(Side, &str); 9] = [
    (Side::Client, "stopped for 300 ms"),
    (Side::Client, "starved of CPU time"),
    (Side::Client, "out of descriptors"),
    (Side::Client, "its disk is full"),
    (Side::Client, "its network is narrow (tbf)"),
    (Side::Server, "stopped for 400 ms"),
    (Side::Server, "DEBUG SLEEP 0.8"),
    (Side::Server, "killed"),
    (Side::Server, "its network is narrow (tbf)"),
];

const LOADS: [&[&str]; 4] = [
    &["--users", "8", "--think", "2ms"],
    &["--rate", "500", "--connections", "16"],
    &["--rate", "2000", "--connections", "32"],
    &["--users", "8"],
];

/// Checks that say that the server was slow, or not there.
const OF_THE_SERVER: [&str; 7] = ["gone", "stalls", "level", "drift", "period", "response_level", "overload"];
/// Those that say so of something on the way to it, too.
const BESIDE: [&str; 6] = ["errors", "connections", "drops", "offered_rate", "protocol", "reconnects"];
/// Checks that say that it was the client, or its host.
const OF_THE_CLIENT: [&str; 7] =
    ["client_share", "receive_lag", "client_cpu", "pinning", "neighbours", "steal", "shaping"];

/// Those of them that no host makes by waking threads late.
const NOT_THE_HOST: [&str; 3] = ["client_cpu", "pinning", "shaping"];

/// So many of them are read from what the load threads did.
const OWN_FIGURES: usize = 3;

fn start(dyno: &Dyno, uri: &str, load: &[&str], fault: Fault, group: Option<&Group>) -> Child {
    let out = if matches!(fault, Fault::Full(_)) { "full/r" } else { "r" };
    let common = ["--workload", "a", "--records", "500", "--duration", "5s", "--warmup", "0s", "--out", out];
    let words = [&["run", uri][..], &common, load, &["--quiet"]].concat();
    let wrapped = match (fault, group) {
        (Fault::Limit(limit, _), _) => format!("{limit}; exec \"$0\" \"$@\""),
        (_, Some(Group(folder))) => {
            format!("echo $$ > {}/cgroup.procs; exec \"$0\" \"$@\"", folder.display())
        }
        _ => return dyno.start(&words),
    };
    let mut command = Command::new("sh");
    command.args(["-c", &wrapped]).arg(program()).args(words).current_dir(dyno.folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// A control group with a part of a CPU.
struct Group(PathBuf);

impl Group {
    /// Makes it, in either version of the kernel's interface; `None` where it may not be made.
    fn with(hundredths: u64) -> Option<Group> {
        let name = format!("dyno-test-{}", std::process::id());
        let group = |tree: &str| {
            let folder = PathBuf::from(tree).join(&name);
            fs::create_dir(&folder).ok().map(|()| Group(folder))
        };
        let quota = hundredths * 1_000;
        if let Some(group) = group("/sys/fs/cgroup/cpu") {
            let limit = fs::write(group.0.join("cpu.cfs_quota_us"), quota.to_string());
            return limit.is_ok().then_some(group);
        }
        let group = group("/sys/fs/cgroup")?;
        fs::write(group.0.join("cpu.max"), format!("{quota} 100000")).is_ok().then_some(group)
    }

    fn take(&self, pid: u32) {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).unwrap();
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to forget a process that has ended.
        let gone = |_: &u32| {
            std::thread::sleep(Duration::from_millis(20));
            fs::remove_dir(&self.0).is_ok()
        };
        let _ = (0..100).find(gone);
    }
}

/// A filesystem of its own, which is soon full.
struct Disk(PathBuf);

impl Disk {
    fn at(folder: PathBuf, size: &str) -> Option<Disk> {
        fs::create_dir(&folder).unwrap();
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Disk(folder))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
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

/// So many programs that want a CPU each.
fn crowd(programs: usize) -> Busy {
    let busy = || Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    Busy((0..programs).map(|_| busy()).collect())
}

/// The threads of a process run only when nothing else wants a CPU, while so many programs do.
fn starve(pid: u32, programs: usize) {
    let idle = ["--all-tasks", "--idle", "--pid", "0", &pid.to_string()].map(str::to_owned);
    assert!(Command::new("chrt").args(idle).status().unwrap().success(), "chrt");
    let busy = crowd(programs);
    std::thread::sleep(Duration::from_secs(2));
    drop(busy);
}

/// The server of a fault, the group that it or the load is in, and the disk for results; `None` where they cannot be had.
struct Place {
    server: Option<RedisProcess>,
    behind: Option<Behind>,
    group: Option<Group>,
    _disk: Option<Disk>,
}

impl Place {
    fn of(side: Side, fault: Fault, dyno: &Dyno) -> Option<Place> {
        let mut place = Place { server: None, behind: None, group: None, _disk: None };
        match fault {
            Fault::Way(shape) if side == Side::Client => place.behind = Some(Behind::start(shape, "")?),
            Fault::Way(shape) => place.behind = Some(Behind::start("", shape)?),
            _ => {
                let server = RedisProcess::start(&["--enable-debug-command", "local"]);
                place.server = Some(server.or_else(|| RedisProcess::start(&[]))?);
            }
        }
        match fault {
            Fault::Group(hundredths) => place.group = Some(Group::with(hundredths)?),
            Fault::Full(size) => place._disk = Some(Disk::at(dyno.path("full"), size)?),
            _ => {}
        }
        Some(place)
    }

    fn uri(&self, fault: Fault) -> String {
        match (&self.server, &self.behind, fault) {
            (Some(server), _, Fault::Proxy(strange)) => {
                format!("redis://127.0.0.1:{}", before(server.port, strange))
            }
            (Some(server), ..) => server.uri(),
            (None, Some(behind), _) => behind.uri(),
            (None, None, _) => unreachable!("a place has a server"),
        }
    }
}

/// Who is named: checks that leave less than full trust, with those that make a claim invalid first; or what dyno says itself.
fn tried(side: Side, fault: Fault, load: &[&str]) -> Option<(bool, String)> {
    let dyno = Dyno::new();
    let place = Place::of(side, fault, &dyno)?;
    let server = place.server.as_ref();
    if let (Fault::Set(words), Some(server)) = (fault, server) {
        server.cli(words);
    }
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let own_group = place.group.as_ref().filter(|_| side == Side::Client);
    let run = start(&dyno, &place.uri(fault), load, fault, own_group);
    let busy = match fault {
        Fault::Crowd => crowd(cores * 2),
        _ => Busy(Vec::new()),
    };
    let during =
        matches!(fault, Fault::Stops(..) | Fault::Starved | Fault::Says(_) | Fault::Killed | Fault::Group(_));
    if let Some(server) = server.filter(|_| during && own_group.is_none()) {
        dyno.await_phase("r", "measure");
        std::thread::sleep(Duration::from_millis(1_500));
        match (fault, &place.group) {
            (Fault::Stops(times, length_ms), _) => {
                stop(if side == Side::Client { run.id() } else { server.pid() }, times, length_ms);
            }
            (Fault::Starved, _) => starve(run.id(), cores * 2),
            (Fault::Says(words), _) => drop(server.cli(words)),
            (Fault::Killed, _) => signal(server.pid(), "KILL"),
            (_, Some(group)) => group.take(server.pid()),
            _ => {}
        }
    }
    let output = finish(run);
    drop(busy);
    let said = stderr(&output);
    let own_words = match fault {
        Fault::Limit(_, message) => Some(message),
        Fault::Full(_) => Some("No space left on device"),
        _ => None,
    };
    if let Some(message) = own_words {
        return Some((said.contains(message), said.lines().last().unwrap_or_default().to_owned()));
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
    // Programs that take the CPUs are neighbours of any run: of one that starves more is to be said.
    let of_the_client =
        if matches!(fault, Fault::Starved) { &OF_THE_CLIENT[..OWN_FIGURES] } else { &OF_THE_CLIENT[..] };
    let client_to_blame = against.iter().any(|(check, invalid)| check == "client_share" && *invalid);
    // On a busy host the client is late by itself, beside the server's fault.
    let right = match side {
        Side::Client => has(of_the_client) && !has(&OF_THE_SERVER),
        // A server that is only slow now and then has slow response times, and a valid run but for what the host is late.
        Side::Server => {
            let slow = matches!(fault, Fault::Stops(_, ..300) | Fault::Way(_));
            ((slow && !has(&NOT_THE_HOST))
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
        if rounds == 0 && !ORDINARY.contains(&(side, name)) {
            continue;
        }
        let loads: Vec<usize> = match rounds {
            0 => vec![number % LOADS.len()],
            rounds => (0..rounds * LOADS.len()).map(|at| at % LOADS.len()).collect(),
        };
        let (mut right, mut named, mut tries) = (0, Vec::new(), 0);
        for load in loads {
            let Some((is_right, message)) = tried(side, fault, LOADS[load]) else {
                skip_because(&format!("{side:?}, {name}"), "no redis-server, or the kernel does not let us");
                break;
            };
            (right, tries) = (right + usize::from(is_right), tries + 1);
            if !is_right {
                wrong.push(format!("{side:?}, {name}, {:?}: {message}", LOADS[load]));
            }
            if !named.contains(&message) {
                named.push(message);
            }
        }
        if named.is_empty() {
            continue;
        }
        println!("FAULT | {side:?} | {name} | {right} of {tries} | {} |", named.join("; "));
    }
    assert!(wrong.is_empty() || rounds > 0, "{wrong:#?}");
}
