//! Dragonfly itself, where `dragonfly` is on PATH: what it does otherwise than Redis, through the commands that a person types.

use dyno_testkit::{Dyno, assert_exit, finish, free_port, outcome, phase, skip_because, stderr, stdout};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server on a port of its own; ends with this.
struct Dragonfly {
    child: Child,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Dragonfly {
    fn start(more: &[&str]) -> Option<Self> {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let own = [format!("--port={port}"), "--dbfilename=".into(), "--proactor_threads=1".into()];
        let child = Command::new("dragonfly")
            .args(own)
            .args(["--bind=127.0.0.1", "--logtostderr"])
            .args(more)
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let server = Dragonfly { child: child.ok()?, port, _folder: folder };
        let end = Instant::now() + Duration::from_secs(30);
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "dragonfly does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    fn uri(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn cli(&self, words: &[&str]) -> String {
        let told =
            Command::new("redis-cli").args(["-p", &self.port.to_string()]).args(words).output().unwrap();
        String::from_utf8_lossy(&told.stdout).trim().to_owned()
    }
}

impl Drop for Dragonfly {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_there(what: &str) -> bool {
    let there = dyno_databases::spawn::find_server(Some("dragonfly")).is_some();
    if !there {
        skip_because(what, "dragonfly is not on PATH");
    }
    there
}

fn measured(dyno: &Dyno, name: &str) -> Value {
    phase(&dyno.summary(name), "measure").clone()
}

/// Single, a cluster of `DFLYCLUSTER`, a primary with copies, a cluster with copies: loaded, stopped, copied, started again from
/// their own snapshots, and measured without a failure. Its data take no more than its limit.
#[test]
fn all_topologies_and_their_snapshots() {
    if !is_there("topologies of Dragonfly") {
        return;
    }
    for (name, topology, nodes) in [
        ("single", "", 1),
        ("cluster", "topology: cluster, members: 3, ", 3),
        ("copies", "topology: replication, replicas: 2, ", 1),
        ("copied-cluster", "topology: cluster, members: 3, replicas: 1, ", 3),
    ] {
        let dyno = Dyno::new();
        // Only clusters without copies and single servers come back from their data.
        let snapshot = if name.contains("cop") { "" } else { "data: {snapshot: true}, " };
        let text = format!(
            "server: {{kind: dragonfly, {topology}{snapshot}options: {{proactor_threads: 1}}, limits: {{memory: 512MiB}}, \
             if_not_permitted: continue}}\n\
             server_lifetime: {}\nworkload: {{ycsb: {{workload: a, records: 3000}}}}\n\
             phases: {{load: {{keep: true}}, measure: {{duration: 2s}}}}\nfactors: {{phases.measure.users: [2, 4]}}\n",
            if snapshot.is_empty() { "run" } else { "shared" }
        );
        std::fs::write(dyno.path("e.yaml"), text).unwrap();
        dyno.assert_ran(&dyno.run(&["run", "e.yaml", "--out", "o", "--quiet"]));
        for cell in ["cell0001-rep01", "cell0002-rep01"] {
            let folder = format!("o/runs/{cell}");
            let found = measured(&dyno, &folder);
            let all: u64 = found["outcomes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
            assert_eq!(outcome(&found, "ok"), all, "{name}: {}", found["outcomes"]);
            assert!(all > 100, "{name}: {all}");
            let database = &found["monitor"]["database"];
            assert_eq!(database["nodes"], nodes, "{name}: {database}");
            let done = database["operations_per_s"].as_f64().unwrap() / found["throughput"].as_f64().unwrap();
            assert!((0.8..1.3).contains(&done), "{name}: {done} commands for an operation");
            let run: Value =
                serde_json::from_slice(&std::fs::read(dyno.path(&folder).join("run.json")).unwrap()).unwrap();
            let facts = &run["facts"];
            assert!(run["database"].as_str().unwrap().starts_with("Dragonfly "), "{run}");
            let version = facts["server.version"].as_str().unwrap();
            assert!(version.starts_with("dragonfly") && !version.contains('\u{1b}'), "{version:?}");
            assert_eq!(facts["maxmemory_human"], "409.60MiB", "{name}");
        }
    }
}

/// Names, protocols and permissions as those who use it have them.
#[test]
fn protocols_and_users() {
    if !is_there("protocols of Dragonfly") {
        return;
    }
    let dyno = Dyno::new();
    let server = Dragonfly::start(&["--cluster_mode=emulated"]).unwrap();
    let run = |uri: &str, out: &str, more: &[&str]| {
        let base = ["run", uri, "-n", "1000", "--ops", "3000", "--users", "4", "--quiet", "--out", out];
        dyno.run(&[&base[..], more].concat())
    };
    let uri = server.uri();
    for (out, more, options) in [
        ("plain", "", &[][..]),
        ("cluster", "?cluster=true", &[]),
        ("resp3", "?protocol=3", &[]),
        ("pipeline", "", &["--pipeline", "16"]),
    ] {
        let output = run(&format!("{uri}{more}"), out, options);
        dyno.assert_ran(&output);
        assert_eq!(outcome(&measured(&dyno, out), "ok"), 3_000, "{out}: {}", stderr(&output));
    }
    assert_eq!(server.cli(&["ACL", "SETUSER", "joe", "on", ">secret", "+@all", "~*"]), "OK");
    assert_eq!(
        server.cli(&["ACL", "SETUSER", "reader", "on", ">secret", "+@read", "+@connection", "+info", "~*"]),
        "OK"
    );
    let host = format!("127.0.0.1:{}", server.port);
    dyno.assert_ran(&run(&format!("redis://joe:secret@{host}"), "joe", &[]));
    assert_eq!(outcome(&measured(&dyno, "joe"), "ok"), 3_000);
    assert_exit(&run(&format!("redis://reader:secret@{host}"), "reader", &[]), &[5]);
    let found = measured(&dyno, "reader");
    assert!(outcome(&found, "forbidden") > 1_000 && outcome(&found, "ok") > 1_000, "{}", found["outcomes"]);
    let refused = run(&format!("redis://joe:wrong@{host}"), "wrong", &[]);
    assert_exit(&refused, &[3]);
    assert!(stderr(&refused).contains("WRONGPASS"), "{}", stderr(&refused));
}

/// It says `ERR Out of memory` where Redis has a code, and evicts in its cache mode: neither is a run that counts.
#[test]
fn a_full_memory_is_told() {
    if !is_there("the memory of Dragonfly") {
        return;
    }
    let dyno = Dyno::new();
    let server = Dragonfly::start(&["--maxmemory=256M"]).unwrap();
    let uri = server.uri();
    let words = ["run", &uri, "-n", "400k", "--ops", "20000", "--quiet", "--out", "full"];
    assert_exit(&dyno.run(&words), &[5]);
    let summary = dyno.summary("full");
    let load = phase(&summary, "load");
    assert!(outcome(load, "out_of_memory") > 10_000, "{}", load["outcomes"]);
    assert_eq!(outcome(load, "server_error"), 0, "{}", load["outcomes"]);
}

/// It has no `WAIT`: two copies cannot be claimed, and one can.
#[test]
fn a_proof_of_copies_is_refused() {
    if !is_there("proofs on Dragonfly") {
        return;
    }
    let (primary, copy) = (Dragonfly::start(&[]).unwrap(), Dragonfly::start(&[]).unwrap());
    assert_eq!(copy.cli(&["REPLICAOF", "127.0.0.1", &primary.port.to_string()]), "OK");
    let end = Instant::now() + Duration::from_secs(30);
    while !primary.cli(&["INFO", "replication"]).contains("state=online") {
        assert!(Instant::now() < end, "the copy does not come online");
        std::thread::sleep(Duration::from_millis(50));
    }
    let dyno = Dyno::new();
    let uri = primary.uri();
    let base = ["prove", "ingest", &uri, "-n", "2000", "--least", "0s", "--require-rate", "1", "--quiet"];
    let refused = dyno.run(&base);
    assert_exit(&refused, &[2]);
    let said = stderr(&refused);
    assert!(said.contains("WAIT: WAIT: ERR unknown command") && said.contains("--copies 1"), "{said}");
    assert_eq!(primary.cli(&["DBSIZE"]), "0");
    let proven = dyno.run(&[&base[..], &["--copies", "1", "--out", "p"]].concat());
    assert_exit(&proven, &[0]);
    assert!(stdout(&proven).contains("2 whole copies of 2"), "{}", stdout(&proven));
}

/// A server that stands still, and one that dies: told with their time, and nothing is said that is not so.
#[test]
fn a_server_that_stands_still_or_dies() {
    if !is_there("faults of Dragonfly") {
        return;
    }
    let dyno = Dyno::new();
    let text = "server: {kind: dragonfly, options: {proactor_threads: 1}, data: {snapshot: true}}\n\
                server_lifetime: shared\nworkload: {ycsb: {workload: a, records: 2000}}\n\
                phases: {load: {keep: true}, measure: {duration: 16s, rate: 500, timeout: 500ms}}\n\
                faults:\n- {kind: pause, at: 5s, for: 2s}\n- {kind: restart, at: 11s, for: 1s}\n";
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "e.yaml", "--out", "o", "--quiet"]));
    let told = stdout(&dyno.run(&["report", "o/runs/cell0001-rep01"]));
    assert!(
        told.contains("pause on server at 5.00 s") && told.contains("restart on server at 11.00 s"),
        "{told}"
    );
    assert!(told.matches("100 % below").count() >= 1, "{told}");
    let server = Dragonfly::start(&[]).unwrap();
    let uri = server.uri();
    let running = dyno.start(&["run", &uri, "-n", "1000", "-d", "8s", "--quiet", "--out", "dies"]);
    let end = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(dyno.path("dies/intervals.jsonl"))
        .unwrap_or_default()
        .contains("\"measure\"")
    {
        assert!(Instant::now() < end, "nothing is measured");
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(server);
    let ended = finish(running);
    assert_exit(&ended, &[5]);
    assert!(stderr(&ended).contains("invalid"), "{}", stderr(&ended));
}
