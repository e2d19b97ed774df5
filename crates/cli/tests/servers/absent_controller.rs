//! A controller that stands still in the middle of a phase (a laptop that sleeps): its workers finish the phase, and what they
//! have measured is whole and marked.

use dyno_testkit::lab::Lab;
use dyno_testkit::{Dyno, arrivals, outcome, phase, signal, skip_because, workers};
use serde_json::Value;
use std::process::Child;
use std::time::{Duration, Instant};

/// Requests, and how many of them are due in a second: ten seconds.
const LOAD: (u64, u64) = (20_000, 2_000);
/// Longer than the phase, and than any wait that was hidden in the way: pipes hold seconds, ssh looks every five.
const ASLEEP: Duration = Duration::from_secs(16);

const RUN: &str = "o/runs/cell0001-rep01";

/// Stops these processes once the first second of the measured phase is there, for longer than the phase lasts.
fn sleep_through(dyno: &Dyno, child: &Child, others: &dyn Fn() -> Vec<u32>) {
    dyno.await_phase(RUN, "measure");
    let mut all = others();
    all.insert(0, child.id());
    all.iter().for_each(|pid| signal(*pid, "STOP"));
    std::thread::sleep(ASLEEP);
    all.iter().rev().for_each(|pid| signal(*pid, "CONT"));
}

/// Nothing that was to be sent is missing, and the record says that its controller was away.
fn assert_whole_and_marked(summary: &Value) {
    let measured = phase(summary, "measure");
    assert_eq!((arrivals(measured), outcome(measured, "ok")), (LOAD.0, LOAD.0), "{measured:#}");
    let unheard = measured["hosts"].as_array().unwrap().iter().filter_map(|host| host["unheard_s"].as_f64());
    let unheard = unheard.fold(0.0, f64::max);
    assert!(unheard > 5.0 && unheard < ASLEEP.as_secs_f64() + 5.0, "{unheard}: {measured:#}");
    let verdict = &summary["verdict"];
    let message = verdict["reasons"].to_string();
    assert!(message.contains("heard nothing of their controller"), "{verdict:#}");
    assert!(!message.contains("what it did since its last second is missing"), "{verdict:#}");
}

#[test]
fn workers_beside_a_controller_that_stands_still_finish_the_phase() {
    let dyno = Dyno::new();
    let text = format!(
        "target: 'null:'\nworkload: {{ycsb: {{records: 1000}}}}\nclient: {{workers: 2}}\n\
         phases: {{measure: {{operations: {}, warmup: 0s, rate: '{}'}}}}\n",
        LOAD.0, LOAD.1
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let child = dyno.start(&["run", "x.yaml", "--out", "o", "--quiet"]);
    sleep_through(&dyno, &child, &Vec::new);
    dyno.assert_ran(&dyno_testkit::finish(child));
    assert_whole_and_marked(&dyno.summary(RUN));
}

/// The controller and its ssh stand still together, as on a laptop that sleeps.
#[test]
fn workers_on_other_hosts_finish_the_phase_while_the_controllers_host_sleeps() {
    let Some(lab) = Lab::new(&["db", "load1"]) else {
        return skip_because(
            "ssh",
            "no network namespaces, or no sshd (Debian: apt-get install openssh-server)",
        );
    };
    let dyno = Dyno::new();
    let text = format!(
        "server: {{kind: redis, stop_within: 10s}}\n\
         ssh:\n  config: {}\n  servers: [db]\n  clients: [load1]\n  directory: {}\n\
         workload: {{ycsb: {{workload: c, records: 1000}}}}\n\
         phases: {{measure: {{connections: 4, operations: {}, warmup: 0s, rate: '{}'}}}}\n",
        lab.path("ssh_config").display(),
        lab.path("far").display(),
        LOAD.0,
        LOAD.1
    );
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let child = dyno.start(&["run", "x.yaml", "--out", "o", "--quiet"]);
    let number = child.id();
    sleep_through(&dyno, &child, &|| children(number));
    dyno.assert_ran(&dyno_testkit::finish(child));
    assert_whole_and_marked(&dyno.summary(RUN));
    let end = Instant::now() + Duration::from_secs(60);
    while !lab.processes("db", "redis-server").is_empty() || !lab.processes("load1", "worker").is_empty() {
        assert!(Instant::now() < end, "something is left there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A worker that stands still for longer than that is told of is neither lost nor does it call its controller silent: the stall
/// is the client's own.
#[test]
fn a_worker_that_stands_still_is_not_lost_and_its_stall_is_the_clients() {
    let dyno = Dyno::new();
    let text = "target: 'null:'\nworkload: {ycsb: {records: 1000}}\nclient: {workers: 2}\n\
                phases: {measure: {operations: 40000, warmup: 0s, rate: '2000'}}\n";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let child = dyno.start(&["run", "x.yaml", "--out", "o", "--quiet"]);
    dyno.await_phase(RUN, "measure");
    let worker = workers(child.id())[0];
    signal(worker, "STOP");
    std::thread::sleep(Duration::from_secs(14));
    signal(worker, "CONT");
    let said = dyno_testkit::stderr(&dyno_testkit::finish(child));
    assert!(said.contains("says nothing; it is waited for"), "{said}");
    let summary = dyno.summary(RUN);
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 40_000, "{measured:#}");
    let message = summary["verdict"].to_string();
    assert!(!message.contains("heard nothing of their controller"), "{message}");
    assert!(!message.contains("was lost"), "{message}");
    assert_ne!(summary["verdict"]["trust"], "valid", "a stall of 14 s in 20 is told: {message}");
}

/// Numbers of the processes that a process has started and that are still there.
fn children(of: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default().to_owned();
        rest.split_whitespace().nth(1) == Some(&of.to_string())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}
