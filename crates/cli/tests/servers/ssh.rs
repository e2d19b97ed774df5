//! Experiments over ssh: hosts are network namespaces with an sshd of their own.

use dyno_testkit::lab;
use dyno_testkit::{Dyno, skip_because, stderr, stdout};
use lab::Lab;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn lab(names: &[&str]) -> Option<Lab> {
    let lab = Lab::new(names);
    if lab.is_none() {
        skip_because("ssh", "no network namespaces, or no sshd (Debian: apt-get install openssh-server)");
    }
    lab
}

fn experiment(lab: &Lab, more: &str) -> String {
    format!(
        "server: {{kind: redis}}\nssh:\n  config: {}\n  servers: [db]\n  clients: [load1, load2]\n  directory: {}\n\
         workload: {{ycsb: {{workload: a, records: 2000}}}}\n{more}",
        lab.path("ssh_config").display(),
        lab.path("far").display()
    )
}

/// Files below a folder in which an address has a password as dyno makes them: 32 hexadecimal digits.
fn passwords(folder: &std::path::Path) -> Vec<String> {
    let has = |text: &str| {
        text.match_indices('@').any(|(at, _)| {
            let before = &text.as_bytes()[at.saturating_sub(33)..at];
            before.len() == 33 && before[0] == b':' && before[1..].iter().all(u8::is_ascii_hexdigit)
        })
    };
    assert!(has(&format!("redis://:{}@10.0.0.1:1", "0a".repeat(16))), "it finds what it looks for");
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if has(&String::from_utf8_lossy(&std::fs::read(&path).unwrap())) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Files that came home, as gzip reads them.
fn kept_files(folder: &std::path::Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let read = |entry: std::fs::DirEntry| {
        let out = std::process::Command::new("gzip").arg("-dc").arg(entry.path()).output().unwrap();
        (entry.file_name().to_string_lossy().into_owned(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    entries.flatten().map(read).collect()
}

/// The only run of an experiment: its folder and its record.
fn only_run(dyno: &Dyno, out: &str) -> (std::path::PathBuf, Value) {
    let text = std::fs::read_to_string(dyno.path(out).join("journal.jsonl")).unwrap();
    let mut ended = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let record = ended.rfind(|line| line["event"] == "ended").unwrap();
    (dyno.path(out).join(record["dir"].as_str().unwrap()), record)
}

#[test]
fn servers_and_load_run_on_other_hosts_and_nothing_is_left_there() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    let dyno = Dyno::new();
    let more = "client: {workers: 2}\n\
                phases: {measure: {connections: 8, rate: 'file:rates.csv', operations: 20000, warmup: 0s}}\n";
    // The file is here alone, beside the experiment.
    std::fs::write(dyno.path("rates.csv"), "0,3000\n2,7000\n").unwrap();
    std::fs::write(dyno.path("e.yaml"), experiment(&lab, more)).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "far", "--quiet"]);
    dyno.assert_ran(&output);
    let (dir, record) = only_run(&dyno, "far");
    assert_eq!(record["status"], "complete", "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    let measured = dyno_testkit::phase(&summary, "measure");
    assert_eq!(dyno_testkit::arrivals(measured), 20_000, "four workers do exactly what one does");
    assert!(measured["monitor"]["server"]["cpu_cores"].as_f64().is_some(), "{measured}");
    assert!(measured["monitor"]["workers"]["cpu_cores"].as_f64().is_some(), "{measured}");
    for file in ["host-db.csv", "host-load1.csv", "host-load2.csv"] {
        assert!(dir.join("monitor").join(file).is_file(), "{file}");
    }
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    assert!(run["target"].as_str().unwrap().contains(&lab.address("db")), "{}", run["target"]);
    let clock = run["facts"]["worker-1.clock"].as_str().unwrap();
    assert!(clock.contains("within"), "{clock}");
    let skew = run["facts"]["workers.start_skew"].as_str().unwrap();
    assert!(skew.ends_with(" ms"), "{skew}");
    assert_eq!(passwords(&dyno.path("far")), Vec::<String>::new(), "the password is not shown");
    // The server's own log and configuration have come home.
    let kept = kept_files(&dir.join("server/db"));
    let log = kept.iter().find(|(name, _)| name.ends_with("log.gz")).unwrap_or_else(|| panic!("{kept:?}"));
    assert!(log.1.contains("Ready to accept connections"), "{kept:?}");
    let configuration = kept.iter().find(|(_, text)| text.contains("requirepass"));
    let configuration = &configuration.unwrap_or_else(|| panic!("{kept:?}")).1;
    let password = configuration.lines().find(|line| line.starts_with("requirepass")).unwrap();
    assert!(!password.bytes().any(|byte| byte.is_ascii_digit()), "32 hexadecimal digits: {password}");
    for host in ["db", "load1", "load2"] {
        assert_eq!(lab.processes(host, "dyno"), Vec::<u32>::new(), "{host}");
        assert_eq!(lab.processes(host, "redis-server"), Vec::<u32>::new(), "{host}");
    }
    let left: Vec<String> = std::fs::read_dir(lab.path("far"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with("dyno-"))
        .collect();
    assert_eq!(left, Vec::<String>::new(), "only the program stays");
}

/// Settings in `host` are those of the servers' host: changed before they start, and put back when they have ended.
#[test]
fn settings_of_the_servers_host_hold_as_long_as_they_run() {
    const SETTING: &str = "/proc/sys/vm/swappiness";
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    let read = || std::fs::read_to_string(SETTING).unwrap().trim().to_owned();
    let before = read();
    if std::fs::write(SETTING, &before).is_err() {
        return skip_because("settings of hosts over ssh", "vm.swappiness cannot be written");
    }
    let other = if before == "59" { "58" } else { "59" };
    let dyno = Dyno::new();
    let more = format!(
        "host: {{swappiness: {other}}}\nphases: {{measure: {{connections: 4, rate: 500, duration: 3s, warmup: 0s}}}}\n"
    );
    std::fs::write(dyno.path("e.yaml"), experiment(&lab, &more)).unwrap();
    let child = dyno.start(&["run", "e.yaml", "--out", "far", "--quiet"]);
    dyno.await_phase("far/runs/cell0001-rep01", "measure");
    let during = read();
    dyno.assert_ran(&child.wait_with_output().unwrap());
    assert_eq!((during.as_str(), read()), (other, before));
}

/// A server that dyno has not started: its host is watched where the file names it, and unknown where it does not.
#[test]
fn the_host_of_a_target_is_watched_where_it_is_named() {
    let Some(lab) = lab(&["db", "load1"]) else { return };
    let (space, address) = (lab.namespace("db"), lab.address("db"));
    let words = ["netns", "exec", &space, "redis-server", "--bind", &address, "--port", "6390", "--save", ""];
    let mut server = std::process::Command::new("ip")
        .args(words)
        .args(["--protected-mode", "no", "--daemonize", "no"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    until("the server", || std::net::TcpStream::connect((address.as_str(), 6390)).is_ok());
    let text = |watched: &str| {
        format!(
            "target: redis://{address}:6390\nssh: {{config: {}, clients: [load1], directory: {}{watched}}}\n\
             workload: {{ycsb: {{workload: a, records: 2000}}}}\n\
             phases: {{measure: {{connections: 4, rate: 2000, duration: 4s, warmup: 0s}}}}\n",
            lab.path("ssh_config").display(),
            lab.path("far").display()
        )
    };
    let dyno = Dyno::new();
    let measure = |name: &str, watched: &str| {
        std::fs::write(dyno.path("e.yaml"), text(watched)).unwrap();
        dyno.assert_ran(&dyno.run(&["run", "e.yaml", "--out", name, "--quiet"]));
        let (dir, record) = only_run(&dyno, name);
        assert_eq!(record["status"], "complete", "{record}");
        let summary = dyno.summary(dir.to_str().unwrap());
        (dir, dyno_testkit::phase(&summary, "measure")["monitor"].clone())
    };
    let (dir, seen) = measure("blind", "");
    assert!(seen["host"].is_null() && seen["server"].is_null(), "no monitor looked there: {seen}");
    assert!(!dir.join("monitor/host-db.csv").exists());
    // The second is no host of the server: its agent says so.
    let (dir, seen) = measure("seen", ", watched: [db, load1]");
    assert_eq!(seen["host"]["elsewhere"], "db", "{seen}");
    assert!(seen["host"]["network_received_bytes_per_s"].as_f64().unwrap() > 10_000.0, "{seen}");
    assert!(seen["server"]["cpu_cores"].as_f64().unwrap() > 0.0, "{seen}");
    for file in ["monitor/host-db.csv", "monitor/server-db-redis-server.csv", "environment-db.json"] {
        assert!(dir.join(file).is_file(), "{file}");
    }
    assert!(!dir.join("monitor/server-load1-redis-server.csv").exists());
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    assert_eq!(events.matches("was not found on this host").count(), 1, "{events}");
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["facts"]["target.hosts"], "db, load1");
    let unknown = text(", watched: [nobody.invalid]");
    std::fs::write(dyno.path("e.yaml"), unknown).unwrap();
    let refused = dyno.run(&["run", "e.yaml", "--out", "unknown", "--quiet"]);
    let said = stdout(&refused) + &stderr(&refused);
    assert!(!refused.status.success() && said.contains("its name is not known"), "{said}");
    for host in ["db", "load1"] {
        assert_eq!(lab.processes(host, "far/dyno"), Vec::<u32>::new(), "{host}");
    }
    assert!(server.try_wait().unwrap().is_none(), "the server is not ours to end");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn hosts_that_cannot_be_used_say_why() {
    let Some(lab) = lab(&["db", "load1"]) else { return };
    let dyno = Dyno::new();
    let text = experiment(&lab, "phases: {measure: {duration: 1s}}\n").replace("load1, load2", "load1");
    let fail = |name: &str, text: String, message: &str| {
        std::fs::write(dyno.path("e.yaml"), text).unwrap();
        let begun = Instant::now();
        let output = dyno.run(&["run", "e.yaml", "--out", name, "--quiet"]);
        let said = stdout(&output) + &stderr(&output);
        assert!(!output.status.success() && said.contains(message), "{name}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{name} took {:?}", begun.elapsed());
    };
    let config = std::fs::read_to_string(lab.path("ssh_config")).unwrap();
    fail("unknown", text.replace("[load1]", "[nobody.invalid]"), "its name is not known");
    std::fs::write(lab.path("inventory"), "[clients]\nload1\n").unwrap();
    let with = format!("ssh:\n  inventory: {}\n", lab.path("inventory").display());
    fail("group", text.replace("ssh:\n", &with), "no host or group \"db\"; there are clients, load1");
    let other = config.replace(&lab.path("user_key").display().to_string(), "/nonexistent");
    std::fs::write(lab.path("ssh_config"), other).unwrap();
    fail("no-key", text.clone(), "no key of yours is accepted");
    std::fs::write(lab.path("ssh_config"), &config).unwrap();
    let known = std::fs::read_to_string(lab.path("known_hosts")).unwrap();
    std::fs::write(lab.path("known_hosts"), "").unwrap();
    fail("unknown-key", text.clone(), "its key is not known here");
    let wrong = std::fs::read_to_string(lab.path("user_key.pub")).unwrap();
    let wrong: Vec<&str> = wrong.split(' ').take(2).collect();
    let changed: String = known
        .lines()
        .map(|line| format!("{} {}\n", line.split(' ').next().unwrap(), wrong.join(" ")))
        .collect();
    std::fs::write(lab.path("known_hosts"), changed).unwrap();
    fail("changed-key", text.clone(), "the host's key is not the one that is known");
    std::fs::write(lab.path("known_hosts"), &known).unwrap();
    fail("no-server", text.replace("kind: redis", "kind: dragonfly"), "dragonfly");
    fail(
        "no-folder",
        text.replace(&format!("directory: {}", lab.path("far").display()), "directory: /proc/x"),
        "load1",
    );
}

/// The name that dyno's program gets there: its version, and what it is made of.
fn deployed_name(dyno: &Dyno) -> (String, String) {
    let version = stdout(&dyno.run(&["--version"])).split_whitespace().nth(1).unwrap().to_owned();
    // Where `make worker` has put a static program beside dyno, that one is sent.
    let own = std::path::Path::new(env!("CARGO_BIN_EXE_dyno"));
    let worker = own.with_file_name(format!("dyno-worker-{}", std::env::consts::ARCH));
    let sent = if worker.is_file() { worker.as_path() } else { own };
    let told = std::process::Command::new("sha256sum").arg(sent).output().unwrap();
    let digest = String::from_utf8_lossy(&told.stdout).split(' ').next().unwrap().to_owned();
    (format!("dyno-{version}-{}", &digest[..16]), digest)
}

#[test]
fn hosts_of_another_sort_are_refused_before_anything_is_copied() {
    let Some(lab) = lab(&["db", "load1"]) else { return };
    let dyno = Dyno::new();
    let text = experiment(&lab, "phases: {measure: {duration: 1s}}\n").replace("load1, load2", "load1");
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let fail = |name: &str, words: &[&str]| {
        let output = dyno.run(&["run", "e.yaml", "--out", name, "--quiet"]);
        let said = stdout(&output) + &stderr(&output);
        assert!(
            !output.status.success() && words.iter().all(|message| said.contains(message)),
            "{name}: {said}"
        );
    };
    lab.program("uname", "case $1 in -m) echo riscv64;; *) echo Linux;; esac");
    fail("machine", &["it is riscv64, this host", "dyno-worker-riscv64"]);
    lab.program("uname", "echo FreeBSD");
    fail("system", &["FreeBSD there: workers run on Linux"]);
    assert!(!lab.path("far").exists(), "nothing was copied");
    std::fs::remove_file(lab.path("bin/uname")).unwrap();
    // What is there under the program's name says that it is an older one.
    let (name, digest) = deployed_name(&dyno);
    lab.program(&name, "echo dyno 0.0.9");
    std::fs::create_dir(lab.path("far")).unwrap();
    std::fs::rename(lab.path("bin").join(&name), lab.path("far").join(&name)).unwrap();
    lab.program("sha256sum", &format!("echo {digest}"));
    fail("version", &["is dyno 0.0.9, not "]);
}

#[test]
fn a_host_that_is_separated_from_its_controller_or_from_the_server() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    for from in ["controller", "server"] {
        let dyno = Dyno::new();
        let mut child = run_for(&lab, &dyno, 8);
        let address = if from == "server" { lab.address("db") } else { lab.own_address() };
        assert!(lab.separate("load2", &address, true));
        let begun = Instant::now();
        let ended = child.wait().unwrap();
        assert_eq!(ended.code(), Some(5), "{from}");
        // The lease, in which it might have come back, and time to end.
        assert!(begun.elapsed() < Duration::from_secs(150), "{from} took {:?}", begun.elapsed());
        let (dir, record) = only_run(&dyno, "far");
        assert_eq!(record["trust"], "invalid", "{from}: {record}");
        let summary = dyno.summary(dir.to_str().unwrap());
        let measured = dyno_testkit::phase(&summary, "measure");
        assert!(measured["arrivals"].as_u64().unwrap() > 100, "{from}: what arrived is kept");
        match from {
            "controller" => {
                assert!(record["words"].as_str().unwrap().contains("on load2"), "{record}");
            }
            // Half of the users hear nothing any more, and that is what the outcomes say.
            _ => assert!(dyno_testkit::outcome(measured, "timed_out") > 0, "{measured}"),
        }
        assert!(lab.separate("load2", &address, false));
        assert_nothing_left(&lab);
    }
}

/// A network that is away for longer than the rest of the phase, and for less than the lease: the worker there finishes, and
/// nothing of it is lost.
#[test]
fn a_host_that_is_separated_for_a_while_hands_over_what_it_has_measured() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    let dyno = Dyno::new();
    let child = run_for(&lab, &dyno, 8);
    assert!(lab.separate("load2", &lab.own_address(), true));
    std::thread::sleep(Duration::from_secs(15));
    assert!(lab.separate("load2", &lab.own_address(), false));
    dyno.assert_ran(&dyno_testkit::finish(child));
    let (dir, _) = only_run(&dyno, "far");
    let summary = dyno.summary(dir.to_str().unwrap());
    let message = summary["verdict"].to_string();
    assert!(message.contains("heard nothing of their controller"), "{message}");
    assert!(!message.contains("since its last second is missing"), "{message}");
    let measured = dyno_testkit::phase(&summary, "measure");
    assert_eq!(dyno_testkit::arrivals(measured), dyno_testkit::outcome(measured, "ok"), "{measured}");
    assert_nothing_left(&lab);
}

/// Waits until `is`, at most for the time after which a worker gives its controller up, twice the lease.
fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(240);
    while !is() {
        assert!(Instant::now() < end, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run_for(lab: &Lab, dyno: &Dyno, seconds: u64) -> std::process::Child {
    let more =
        format!("phases: {{measure: {{connections: 8, rate: 500, duration: {seconds}s, warmup: 0s}}}}\n");
    std::fs::write(dyno.path("e.yaml"), experiment(lab, &more)).unwrap();
    let child = dyno.start(&["run", "e.yaml", "--out", "far", "--quiet"]);
    until("the measured phase", || is_measuring(dyno));
    child
}

fn is_measuring(dyno: &Dyno) -> bool {
    let runs = std::fs::read_dir(dyno.path("far/runs")).into_iter().flatten().flatten();
    let text =
        |path: std::path::PathBuf| std::fs::read_to_string(path.join("intervals.jsonl")).unwrap_or_default();
    runs.map(|entry| text(entry.path())).any(|text| text.contains("\"measure\""))
}

fn assert_nothing_left(lab: &Lab) {
    for host in ["db", "load1", "load2"] {
        until(&format!("the end of all processes on {host}"), || {
            lab.processes(host, "far/dyno").is_empty() && lab.processes(host, "redis-server").is_empty()
        });
    }
}

#[test]
fn a_worker_that_is_killed_and_a_host_that_is_cut_off_make_the_run_invalid() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    for fault in ["kill", "cut"] {
        let dyno = Dyno::new();
        let mut child = run_for(&lab, &dyno, 12);
        match fault {
            "kill" => dyno_testkit::signal(lab.processes("load2", "worker --stdio")[0], "KILL"),
            _ => {
                let down = std::process::Command::new("ip")
                    .args(["link", "set", &lab.link("load2"), "down"])
                    .status();
                assert!(down.unwrap().success());
            }
        }
        let begun = Instant::now();
        let ended = child.wait().unwrap();
        assert_eq!(ended.code(), Some(5), "{fault}");
        // A host that is cut off may come back within the lease; a worker that is killed does not.
        let limit = Duration::from_secs(if fault == "kill" { 30 } else { 150 });
        assert!(begun.elapsed() < limit, "{fault} took {:?}", begun.elapsed());
        let (dir, record) = only_run(&dyno, "far");
        assert_eq!(record["trust"], "invalid", "{fault}: {record}");
        assert!(record["words"].as_str().unwrap().contains("on load2"), "{fault}: {record}");
        let summary = dyno.summary(dir.to_str().unwrap());
        // What was under way on the lost host is not known, so that the sums need not agree.
        let arrived = dyno_testkit::phase(&summary, "measure")["arrivals"].as_u64().unwrap();
        assert!(arrived > 100, "what arrived is kept");
        let up = std::process::Command::new("ip").args(["link", "set", &lab.link("load2"), "up"]).status();
        assert!(up.unwrap().success());
        assert_nothing_left(&lab);
    }
}

#[test]
fn a_controller_that_is_killed_leaves_nothing_on_other_hosts() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    let dyno = Dyno::new();
    let mut child = run_for(&lab, &dyno, 30);
    dyno_testkit::signal(child.id(), "KILL");
    child.wait().unwrap();
    assert_nothing_left(&lab);
}

#[test]
fn a_cluster_with_replicas_is_formed_on_another_host() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    let dyno = Dyno::new();
    let text = experiment(&lab, "phases: {measure: {users: 8, operations: 5000, warmup: 0s}}\n")
        .replace("{kind: redis}", "{kind: redis, topology: cluster, members: 3, replicas: 1}");
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "far", "--quiet"]);
    dyno.assert_ran(&output);
    let (dir, record) = only_run(&dyno, "far");
    assert_eq!(record["status"], "complete", "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    assert_eq!(dyno_testkit::outcome(dyno_testkit::phase(&summary, "measure"), "ok"), 5_000);
    // Hosts and workers log here, on this host's clock.
    let log = std::fs::read_to_string(dir.join("log.jsonl")).unwrap();
    let from = |source: &str, message: &str| {
        let line = log.lines().find(|line| line.contains(&format!("\"{source}\"")) && line.contains(message));
        line.unwrap_or_else(|| panic!("no {message:?} of {source} in {log}"));
    };
    from("host-db", "a server has been started");
    from("worker-1", "its target is open");
    from("controller", "ssh has ended");
    assert!(!log.contains("not known"), "{log}");
    assert_nothing_left(&lab);
}

#[test]
fn two_pairs_of_wsf_on_hosts() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    let dyno = Dyno::new();
    let (config, far) = (lab.path("ssh_config").display().to_string(), lab.path("far").display().to_string());
    let inventory = lab.path("hosts.ini");
    std::fs::write(&inventory, "[worker]\ndb\n[client]\nload1\nload2\n").unwrap();
    let (config_key, far_key) = (format!("config={config}"), format!("directory={far}"));
    let words = [
        [
            "wsf",
            "gated",
            "--backend",
            "ssh",
            "--inventory",
            inventory.to_str().unwrap(),
            "--ssh",
            &config_key,
        ]
        .as_slice(),
        &["--ssh", &far_key, "--server", "redis", "--if-not-permitted", "continue", "--noenv", "--quiet"],
        // Long enough for monitors to have read something.
        &[
            "--set",
            "CLIENT_SERVER_PAIR=2",
            "--set",
            "CLIENT_COUNT=2",
            "--set",
            "TARGET=2500",
            "--out",
            "logs",
        ],
    ]
    .concat();
    let output = dyno.run(&words);
    // A busy host makes a verdict of its own.
    dyno.assert_ran(&output);
    let (dir, run) = only_run(&dyno, "logs/logs-mongodb_ycsb_gated/experiment");
    // An invalid run is a failed one for the framework.
    let invalid = run["trust"] == "invalid";
    assert_eq!(output.status.code(), Some(if invalid { 5 } else { 0 }), "{run:#}");
    for client in ["benchmark-0", "benchmark-1"] {
        let status = dyno.path("logs/logs-mongodb_ycsb_gated/itr-1").join(client).join("status");
        let status = std::fs::read_to_string(status).unwrap();
        assert_eq!(status, if invalid { "1\n" } else { "0\n" }, "{client}");
    }
    // Each client is on a machine of its own, both servers on the first of their group.
    for file in ["host-load1.csv", "host-load2.csv"] {
        assert!(dir.join("monitor").join(file).is_file(), "{file}");
    }
    let few = dyno.run(&[&words[..], &["--set", "CLIENT_COUNT=3"]].concat());
    assert!(
        !few.status.success() && stderr(&few).contains("2 hosts in its group client"),
        "{}",
        stderr(&few)
    );
    for host in ["db", "load1", "load2"] {
        assert_eq!(lab.processes(host, "dyno"), Vec::<u32>::new(), "{host}");
    }
}

/// The same busy loop is found whether servers and load are here or there.
#[test]
fn programs_that_take_the_processor_are_named_on_other_hosts() {
    let Some(lab) = lab(&["db", "load1"]) else { return };
    let dyno = Dyno::new();
    let text = format!(
        "server: {{kind: redis}}\nssh: {{config: {}, servers: [db], clients: [load1], directory: {}}}\n\
         workload: {{ycsb: {{workload: c, records: 2000}}}}\n\
         phases: {{measure: {{users: 1, duration: 4s, warmup: 0s}}}}\n",
        lab.path("ssh_config").display(),
        lab.path("far").display()
    );
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let space = lab.namespace("db");
    let spin = ["netns", "exec", &space, "sh", "-c", "while :; do :; done"];
    let mut busy: Vec<_> =
        (0..2).map(|_| std::process::Command::new("ip").args(spin).spawn().unwrap()).collect();
    let output = dyno.run(&["run", "e.yaml", "--out", "noisy", "--quiet"]);
    for one in &mut busy {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    dyno.assert_ran(&output);
    let (dir, _) = only_run(&dyno, "noisy");
    let summary = dyno.summary(dir.to_str().unwrap());
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let told = |check: &str| {
        let found = reasons.iter().find(|reason| reason["check"] == check);
        found.unwrap_or_else(|| panic!("{check}: {reasons:?}"))["text"].as_str().unwrap().to_owned()
    };
    // Two namespaces of one kernel are one host under two names, and its servers have no cores of their own.
    let neighbours = told("neighbours");
    assert!(neighbours.contains("of load1 = db's CPU time (") && neighbours.contains("sh "), "{neighbours}");
    assert!(told("shared_cores").contains(" of load1 = db, "), "{reasons:?}");
    let hosts = dyno_testkit::phase(&summary, "measure")["hosts"].clone();
    let [host] = hosts.as_array().unwrap().as_slice() else { panic!("{hosts}") };
    assert_eq!(
        (&host["role"], host["local"].is_null()),
        (&"both".into(), true),
        "this host only conducts: {host}"
    );
    assert!(host["others"]["cpu_cores"].as_f64().unwrap() > 0.1, "{host}");
    assert!(
        host["clock_ns"].as_u64().unwrap() > 0 && host["cpu_busy_share"].as_f64().unwrap() > 0.3,
        "{host}"
    );
}

/// The key is no longer taken while the first run measures: that run keeps its connections, the next one waits until the key is
/// taken again.
#[test]
fn a_key_that_is_withdrawn_for_a_while_loses_no_run() {
    let Some(lab) = lab(&["db", "load1", "load2"]) else { return };
    let dyno = Dyno::new();
    let more = "repetitions: 2\nphases: {measure: {connections: 8, rate: 500, duration: 5s, warmup: 0s}}\n";
    std::fs::write(dyno.path("e.yaml"), experiment(&lab, more)).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dyno"))
        .args(["run", "e.yaml", "--out", "far", "--quiet"])
        .current_dir(dyno.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the measured phase", || is_measuring(&dyno));
    let (key, withdrawn) = (lab.path("user_key.pub"), lab.path("withdrawn"));
    std::fs::rename(&key, &withdrawn).unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        said += &(line.unwrap() + "\n");
        if withdrawn.exists() && said.contains("s (outage)") {
            std::fs::rename(&withdrawn, &key).unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(said.contains("no key of yours is accepted") && key.exists(), "{said}");
    assert!(matches!(status.code(), Some(0 | 5)), "{status}: {said}");
    let text = std::fs::read_to_string(dyno.path("far/journal.jsonl")).unwrap();
    let ended = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let whole = ended.filter(|line| line["event"] == "ended" && line["status"] == "complete").count();
    assert_eq!(whole, 2, "{text}");
    assert_nothing_left(&lab);
}
