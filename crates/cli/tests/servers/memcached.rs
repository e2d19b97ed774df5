//! memcached on real servers: records and their counts, YCSB's binding, several servers, logins, TLS, and what goes wrong.

use dyno_testkit::cluster::Certificates;
use dyno_testkit::{
    Dyno, RedisProcess, assert_exit, await_port, free_port, outcome, phase, skip_because, stderr,
};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A memcached on a free port, killed when dropped.
pub struct Memcached {
    child: Child,
    pub port: u16,
}

impl Memcached {
    /// With further options; `None`, and said, where it is not installed.
    pub fn start(what: &str, options: &[&str]) -> Option<Memcached> {
        let port = free_port();
        let started = Command::new("memcached")
            .args(["-l", "127.0.0.1", "-U", "0", "-t", "1", "-u", "root", "-p", &port.to_string()])
            .args(options)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(child) = started else {
            skip_because(what, "memcached is not installed");
            return None;
        };
        await_port(port);
        Some(Memcached { child, port })
    }

    /// What dyno reaches it by.
    pub fn uri(&self) -> String {
        format!("memcached://127.0.0.1:{}", self.port)
    }

    /// The lines of an answer, up to its last one.
    pub fn ask(&self, command: &str) -> Vec<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "{command}\r\n").unwrap();
        let lines = BufReader::new(stream).lines().map(Result::unwrap);
        let mut all = Vec::new();
        for line in lines {
            let last = line == "END" || line == "OK" || line.starts_with("ERROR");
            all.push(line);
            if last {
                break;
            }
        }
        all
    }

    /// A figure of `stats`.
    pub fn stat(&self, name: &str) -> u64 {
        let name = format!("STAT {name} ");
        let lines = self.ask("stats");
        lines.iter().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    }

    /// The value under a key.
    pub fn get(&self, key: &str) -> String {
        self.ask(&format!("get {key}"))[1].clone()
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        // It may have been killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_dyno_counts_is_what_the_server_counts() {
    let Some(server) = Memcached::start("memcached", &[]) else { return };
    let dyno = Dyno::new();
    let uri = server.uri();

    let words =
        ["run", &uri, "--workload", "a", "--records", "2000", "--ops", "6000", "--users", "8", "--out", "d"];
    dyno.assert_ran(&dyno.run(&words));
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!((outcome(measured, "ok"), server.stat("curr_items")), (6000, 2000));
    // An update of some fields reads first. Every read finds its record.
    let metrics = measured["metrics"].as_array().unwrap();
    let of = |name: &str| {
        metrics.iter().find(|one| one["name"] == name).and_then(|one| one["outcomes"]["ok"].as_u64())
    };
    let (reads, updates) = (of("READ").unwrap(), of("UPDATE").unwrap());
    assert_eq!(reads + updates, 6000, "{}", measured["metrics"]);
    let (hits, misses) = (server.stat("get_hits"), server.stat("get_misses"));
    // Before the load it is looked whether some of the records are there.
    assert!(hits >= 6000 && misses < 200, "{hits} hits, {misses} misses");
    assert_eq!(
        summary["target"]["database"].as_str().or(summary["database"].as_str()).map(|n| &n[..9]),
        Some("memcached")
    );
    assert!(measured["monitor"]["database"]["nodes"] == 1, "{}", measured["monitor"]);
}

#[test]
fn a_temporary_server_and_a_look_at_one() {
    let Some(server) = Memcached::start("dyno top of memcached", &[]) else { return };
    let dyno = Dyno::new();
    dyno.assert_ran(&dyno.run(&["run", "spawn:memcached", "--records", "2k", "--duration", "1s", "--quiet"]));
    let top = dyno.run(&["top", &server.uri(), "--count", "1", "--interval", "100ms"]);
    assert_exit(&top, &[0]);
    let told = String::from_utf8_lossy(&top.stdout).into_owned();
    assert!(told.lines().count() == 2 && told.contains("busiest commands"), "{told}");
}

/// Each run of an experiment has servers of its own, which hold what was loaded, and whose end is seen.
#[test]
fn an_experiment_starts_its_servers_and_loses_one() {
    if dyno_databases::spawn::find_server(Some("memcached")).is_none() {
        return dyno_testkit::skip("servers of memcached in experiments");
    }
    let dyno = Dyno::new();
    let text = "server: {kind: memcached, cache: 64MiB, options: {threads: 1}}\n\
        workload: {ycsb: {workload: b, records: 3000}}\n\
        phases: {measure: {duration: 6s, warmup: 1s, users: 4}}\n\
        faults: [{kind: restart, at: 2s, for: 500ms}]\n";
    std::fs::write(dyno.path("experiment.yaml"), text).unwrap();
    let done = dyno.run(&["run", "experiment.yaml", "--out", "o"]);
    assert_exit(&done, &[0, 5]);
    let run = dyno.path("o/runs/cell0001-rep01");
    let read = |name: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(run.join(name)).unwrap()).unwrap()
    };
    let summary = read("summary.json");
    let load = summary["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "load").unwrap();
    assert_eq!(load["completed"], 3000, "{load}");
    // It has lost everything with its process: what is read afterwards is not there, and that is the fault's.
    let fault = &summary["faults"][0];
    assert_eq!(
        (fault["fault"].as_str(), fault["means"].as_str()),
        (Some("restart on server"), Some("SIGKILL"))
    );
    assert!(fault["failed"].as_u64().unwrap() > 100, "{fault}");
    let facts = &read("run.json")["facts"];
    assert!(facts["durability"].as_str().unwrap().starts_with("none"), "{facts}");
}

/// YCSB's keys and values; an update keeps the fields that it does not write, unless YCSB's own way is asked for.
#[test]
fn records_are_those_of_ycsbs_binding() {
    let Some(server) = Memcached::start("YCSB's memcached binding", &[]) else { return };
    let dyno = Dyno::new();
    let hosts = format!("memcached.hosts=127.0.0.1:{}", server.port);
    let base = [
        "-s",
        "-P",
        "workloads/workloada",
        "-p",
        &hosts,
        "-p",
        "recordcount=500",
        "-p",
        "operationcount=3000",
    ];
    let run = |mode: &str, more: &[&str]| {
        let words = [&["ycsb", mode, "memcached"], &base[..], &["-threads", "4"], more].concat();
        dyno.run(&words)
    };
    dyno.assert_ran(&run("load", &[]));
    assert_eq!(server.stat("curr_items"), 500);
    // The first key of YCSB's order, hashed.
    let key = "usertable-user6284781860667377211";
    let whole = server.get(key);
    assert!(whole.starts_with("{\"field") && whole.matches("\":\"").count() == 10, "{whole}");
    let size = server.stat("bytes");
    dyno.assert_ran(&run("run", &[]));
    let kept = server.stat("bytes");
    assert!(kept.abs_diff(size) * 50 < size, "{kept} of {size} bytes");
    // Values that are verified: no read finds another one than was written.
    let verified =
        ["-p", "dataintegrity=true", "-p", "fieldcount=3", "-p", "table=checked", "-p", "fieldlength=50"];
    dyno.assert_ran(&run("load", &verified));
    let checked = run("run", &verified);
    dyno.assert_ran(&checked);
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(told.contains("[VERIFY], Return=OK") && !told.contains("UNEXPECTED_STATE"), "{told}");
    dyno.assert_ran(&run("run", &["-p", "memcached.update=replace"]));
    assert!(server.stat("bytes") < kept, "fields that are not written are gone");
    // Of records that lack fields those that are there are checked.
    let replacing = [&verified[..], &["-p", "memcached.update=replace"]].concat();
    dyno.assert_ran(&run("run", &replacing));
    let partial = run("run", &replacing);
    dyno.assert_ran(&partial);
    let told = String::from_utf8_lossy(&partial.stdout).into_owned();
    assert!(told.contains("[VERIFY], Return=OK") && !told.contains("UNEXPECTED_STATE"), "{told}");
}

#[test]
fn keys_are_spread_over_several_servers() {
    let what = "several memcacheds";
    let (Some(a), Some(b), Some(c)) =
        (Memcached::start(what, &[]), Memcached::start(what, &[]), Memcached::start(what, &[]))
    else {
        return;
    };
    let dyno = Dyno::new();
    let uri = format!("memcached://127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}", a.port, b.port, c.port);
    let words = ["run", &uri, "--workload", "c", "--records", "3000", "--ops", "3000", "--out", "d"];
    dyno.assert_ran(&dyno.run(&words));
    let each = [&a, &b, &c].map(|server| server.stat("curr_items"));
    assert!(each.iter().sum::<u64>() == 3000 && each.iter().all(|count| *count > 500), "{each:?}");
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(outcome(measured, "ok"), 3000);
    assert_eq!(measured["monitor"]["database"]["nodes"], 3, "{}", measured["monitor"]);
}

#[test]
fn logins_and_tls() {
    let folder = tempfile::tempdir().unwrap();
    let logins = folder.path().join("logins");
    std::fs::write(&logins, "ann:right\n").unwrap();
    let Some(server) = Memcached::start("logins of memcached", &["-Y", logins.to_str().unwrap()]) else {
        return;
    };
    let dyno = Dyno::new();
    let run = |uri: &str| dyno.run(&["run", uri, "--records", "100", "--ops", "200", "--quiet"]);
    dyno.assert_ran(&run(&format!("memcached://ann:right@127.0.0.1:{}", server.port)));
    let wrong = run(&format!("memcached://ann:wrong@127.0.0.1:{}", server.port));
    assert_exit(&wrong, &[3]);
    assert!(stderr(&wrong).contains("does not accept this user name and password"), "{}", stderr(&wrong));
    assert!(!stderr(&wrong).contains(":wrong"), "{}", stderr(&wrong));
    assert_exit(&run(&server.uri()), &[3]);

    let Some(certificates) = Certificates::make() else {
        return skip_because("memcached by TLS", "openssl is not installed");
    };
    let path = |name: &str| certificates.path(name).display().to_string();
    let (cert, key) =
        (format!("ssl_chain_cert={}", path("server.pem")), format!("ssl_key={}", path("server.key")));
    let Some(server) = Memcached::start("memcached by TLS", &["-Z", "-o", &cert, "-o", &key]) else { return };
    let secure = |query: String| run(&format!("memcacheds://127.0.0.1:{}{query}", server.port));
    dyno.assert_ran(&secure(format!("?ca={}", path("ca.pem"))));
    let deep = dyno.run(&[
        "run",
        &format!("memcacheds://127.0.0.1:{}?insecure=true", server.port),
        "--pipeline",
        "4",
        "--ops",
        "9",
    ]);
    assert_exit(&deep, &[2]);
    assert!(stderr(&deep).contains("one request at a time"), "{}", stderr(&deep));
    let other = secure(format!("?ca={}", path("other.pem")));
    assert_exit(&other, &[2, 3]);
    assert!(stderr(&other).contains("UnknownIssuer"), "{}", stderr(&other));
    let plain = run(&server.uri());
    assert_exit(&plain, &[3]);
    assert!(stderr(&plain).contains("does it expect TLS?"), "{}", stderr(&plain));
}

#[test]
fn what_goes_wrong_is_said() {
    let Some(mut server) = Memcached::start("faults of memcached", &[]) else { return };
    let dyno = Dyno::new();
    let uri = server.uri();
    let scans = dyno.run(&["run", &uri, "--workload", "e", "--records", "100", "--ops", "100"]);
    assert_exit(&scans, &[2]);
    assert!(stderr(&scans).contains("memcached has no scans"), "{}", stderr(&scans));
    let option = dyno.run(&["run", &format!("{uri}?hsah=modulo"), "--ops", "1"]);
    assert_exit(&option, &[2]);
    assert!(stderr(&option).contains("did you mean hash"), "{}", stderr(&option));
    let absent = dyno.run(&["run", &format!("memcached://127.0.0.1:{}", free_port()), "--ops", "1"]);
    assert_exit(&absent, &[3]);
    assert!(stderr(&absent).contains("connection refused"), "{}", stderr(&absent));
    if let Some(redis) = RedisProcess::start(&[]) {
        let mistaken = dyno.run(&["run", &format!("memcached://127.0.0.1:{}", redis.port), "--ops", "1"]);
        assert_exit(&mistaken, &[3]);
        assert!(stderr(&mistaken).contains("not a memcached server"), "{}", stderr(&mistaken));
    }
    // One that is killed during the run.
    let words = [
        "run",
        &uri,
        "--workload",
        "b",
        "--records",
        "1000",
        "--users",
        "4",
        "--duration",
        "4s",
        "--out",
        "d",
    ];
    let run = dyno.start(&words);
    dyno.await_phase("d", "measure");
    server.child.kill().unwrap();
    let output = dyno_testkit::finish(run);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("d");
    let failed = outcome(phase(&summary, "measure"), "unreachable")
        + outcome(phase(&summary, "measure"), "disconnected");
    assert!(failed > 0, "{}", phase(&summary, "measure")["outcomes"]);
}

#[test]
fn a_socket_of_this_host_is_a_target() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memcached.sock");
    let started =
        Command::new("memcached").args(["-u", "root", "-s"]).arg(&path).stderr(Stdio::null()).spawn();
    let Ok(child) = started else { return skip_because("sockets", "memcached is not installed") };
    let listens = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::os::unix::net::UnixStream::connect(&path).is_ok()
    };
    let began = (0..500).find(listens);
    let mut child = Memcached { child, port: 0 };
    assert!(began.is_some(), "{:?}", child.child.try_wait());
    let (dyno, path) = (Dyno::new(), path.display().to_string());
    for uri in [format!("memcached://{path}"), format!("memcached://{}", path.replace('/', "%2F"))] {
        let output = dyno.run(&["run", &uri, "--records", "100", "--reload", "--ops", "1000", "--out", "r"]);
        dyno.assert_ran(&output);
        assert_eq!(outcome(phase(&dyno.summary("r"), "measure"), "ok"), 1_000);
        std::fs::remove_dir_all(dyno.path("r")).unwrap();
    }
}
