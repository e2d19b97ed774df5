//! Faults of the way to servers that the kernel does: of one process of several, of a primary with copies, and on other hosts.

use dyno_testkit::lab;
use dyno_testkit::{Dyno, skip, skip_because};
use lab::Lab;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

fn figure(fault: &Value, key: &str) -> f64 {
    fault[key].as_f64().unwrap_or_else(|| panic!("no {key} in {fault:#}"))
}

/// What a program of the host, or of one of the lab's, prints; nothing where it is not to be had.
fn told(space: Option<&str>, words: &[&str]) -> String {
    let inside = space.map_or(Vec::new(), |space| vec!["ip", "netns", "exec", space]);
    let all = [&inside[..], words].concat();
    let output = Command::new(all[0]).args(&all[1..]).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What of dyno's is in the kernel of a host: tables, and roots of queues.
fn made(space: Option<&str>) -> Vec<String> {
    let (tables, queues) = (told(space, &["nft", "list", "tables"]), told(space, &["tc", "qdisc", "show"]));
    let tables = tables.lines().filter(|line| line.contains("dyno-"));
    tables.chain(queues.lines().filter(|line| line.contains("qdisc htb 7"))).map(str::to_owned).collect()
}

/// Whether the packet filter and token buckets can be had here; says what is skipped where not.
fn has_kernel(what: &str) -> bool {
    let tried = "nft list tables && tc qdisc add dev lo root handle 1: htb && tc class add dev lo parent 1: classid 1:1 htb rate \
                 1mbit && tc qdisc add dev lo parent 1:1 tbf rate 1mbit burst 10kb latency 1ms";
    let done = Command::new("unshare").args(["--net", "sh", "-c", tried]).output();
    let well = done.is_ok_and(|output| output.status.success());
    if !well {
        skip_because(what, "no nftables, no tc, or a kernel without HTB and TBF");
    }
    well
}

/// The faults of an experiment's only run.
fn faults_of(dyno: &Dyno, text: &str, out: &str) -> Vec<Value> {
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", out, "--quiet"]);
    // A busy host makes a verdict of its own.
    dyno.assert_ran(&output);
    let mut runs =
        std::fs::read_dir(dyno.path(out).join("runs")).unwrap().flatten().map(|entry| entry.path());
    let run = runs.find(|path| path.join("run.json").is_file()).unwrap();
    dyno.summary(run.to_str().unwrap())["faults"].as_array().unwrap().clone()
}

/// One after the other: this host has one loopback.
#[test]
fn servers_of_this_host() {
    if dyno_databases::spawn::find_server(Some("redis")).is_none() {
        return skip("faults of the way on this host");
    }
    if !has_kernel("faults of the way on this host") {
        return;
    }
    // Whatever else runs here is no affair of this test's.
    let before = made(None);
    a_token_bucket();
    one_of_a_cluster();
    a_primary_with_a_copy();
    let left: Vec<String> = made(None).into_iter().filter(|one| !before.contains(one)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Reads bring ten kilobytes: two megabytes a second are some two hundred of them.
fn a_token_bucket() {
    let dyno = Dyno::new();
    let text = "server: {kind: redis, stop_within: 10s}\n\
                workload: {ycsb: {workload: c, records: 1000, properties: {fieldlength: 1000}}}\n\
                phases: {measure: {warmup: 1s, interval: 100ms, connections: 4, rate: '400', duration: 14s, timeout: 8s}}\n\
                faults:\n- {kind: bandwidth, bytes_per_s: 2M, at: 5s, for: 3s}\n";
    let [fault] = faults_of(&dyno, text, "o").try_into().unwrap();
    let means = fault["means"].as_str().unwrap();
    assert!(
        means.starts_with("token bucket filter (tc) of 160000 bytes on lo: packets to and from port"),
        "{means}"
    );
    let worst = figure(&fault, "worst_per_s");
    assert!(worst < 300.0 && figure(&fault, "depth") > 0.2, "{fault:#}");
    assert_eq!(figure(&fault, "failed"), 0.0, "{fault:#}");
}

/// Of three members one is cut off: a third of the keys, and no failure, since it comes back.
fn one_of_a_cluster() {
    let dyno = Dyno::new();
    let text = "server: {kind: redis, topology: cluster, members: 3, stop_within: 10s}\n\
                workload: {ycsb: {workload: c, records: 1000}}\n\
                phases: {measure: {warmup: 1s, interval: 100ms, connections: 4, rate: '400', duration: 14s, timeout: 8s}}\n\
                faults:\n- {kind: partition, on: server 2, at: 5s, for: 1500ms}\n";
    let [fault] = faults_of(&dyno, text, "o").try_into().unwrap();
    let means = fault["means"].as_str().unwrap();
    assert!(means.contains("on the loopback: ") && means.ends_with("packets dropped"), "{means}");
    assert!(figure(&fault, "depth") > 0.2, "{fault:#}");
    assert_eq!(figure(&fault, "failed"), 0.0, "{fault:#}");
}

/// What a primary's copies ask it for goes over its port, too: they feel what its clients feel, and follow again.
fn a_primary_with_a_copy() {
    let dyno = Dyno::new();
    let text = "server: {kind: redis, topology: replication, replicas: 1, stop_within: 10s}\n\
                workload: {ycsb: {workload: a, records: 1000}}\n\
                phases: {measure: {warmup: 1s, interval: 100ms, connections: 4, rate: '400', duration: 12s, timeout: 8s}}\n\
                faults:\n- {kind: partition, on: server 1, at: 4s, for: 1500ms}\n";
    let [fault] = faults_of(&dyno, text, "o").try_into().unwrap();
    let means = fault["means"].as_str().unwrap();
    let counts: Vec<f64> =
        means.rsplit(": ").next().unwrap().split(' ').filter_map(|word| word.parse().ok()).collect();
    let [dropped, seen] = counts[..] else { panic!("no counts: {means}") };
    assert!(dropped > 0.0 && dropped == seen, "nothing passed: {means}");
    assert!(figure(&fault, "depth") > 0.9, "{fault:#}");
    assert_eq!(figure(&fault, "failed"), 0.0, "{fault:#}");
}

fn far(lab: &Lab, duration: &str, faults: &str) -> String {
    format!(
        "server: {{kind: redis, stop_within: 10s}}\n\
         ssh:\n  config: {}\n  servers: [db]\n  clients: [load1]\n  directory: {}\n\
         workload: {{ycsb: {{workload: c, records: 1000, properties: {{fieldlength: 1000}}}}}}\n\
         phases: {{measure: {{connections: 4, rate: '400', duration: {duration}, warmup: 1s, interval: 100ms, timeout: 8s}}}}\n\
         faults:\n{faults}",
        lab.path("ssh_config").display(),
        lab.path("far").display()
    )
}

#[test]
fn the_way_between_two_hosts() {
    let what = "faults of the way between hosts";
    let Some(lab) = Lab::new(&["db", "load1"]) else {
        return skip_because(what, "no network namespaces, or no sshd");
    };
    if !has_kernel(what) {
        return;
    }
    let space = lab.namespace("db");
    let dyno = Dyno::new();
    let faults = "- {kind: partition, at: 4s, for: 1s}\n- {kind: bandwidth, bytes_per_s: 2M, at: 11s, for: 2s}\n\
                  - {kind: loss, percent: 30, at: 19s, for: 2s}\n";
    let found = faults_of(&dyno, &far(&lab, "25s", faults), "far");
    let [partition, bandwidth, loss] = &found[..] else { panic!("{found:#?}") };
    for fault in [partition, bandwidth, loss] {
        let means = fault["means"].as_str().unwrap();
        assert!(means.contains(" on db"), "{means}");
        assert_eq!(figure(fault, "failed"), 0.0, "{fault:#}");
        assert!(figure(fault, "depth") > 0.2, "{fault:#}");
    }
    assert!(partition["means"].as_str().unwrap().contains("on all devices"), "{partition:#}");
    let means = bandwidth["means"].as_str().unwrap();
    assert!(means.contains("on lo and ") && means.contains("nftables' limit"), "{means}");
    assert_eq!(made(Some(&space)), [""; 0]);
    // An agent whose controller is gone puts everything back.
    std::fs::write(
        dyno.path("e.yaml"),
        far(&lab, "90s", "- {kind: bandwidth, bytes_per_s: 2M, at: 1s, for: 60s}\n"),
    )
    .unwrap();
    let mut child = dyno.start(&["run", "e.yaml", "--out", "killed", "--quiet"]);
    let until = |what: &str, is: &dyn Fn() -> bool| {
        let end = Instant::now() + Duration::from_secs(60);
        while !is() {
            assert!(Instant::now() < end, "{what} does not happen");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until("the fault", &|| told(Some(&space), &["tc", "qdisc", "show"]).matches("qdisc htb 7").count() >= 2);
    dyno_testkit::signal(child.id(), "KILL");
    child.wait().unwrap();
    until("its end", &|| made(Some(&space)).is_empty() && lab.processes("db", "redis-server").is_empty());
}
