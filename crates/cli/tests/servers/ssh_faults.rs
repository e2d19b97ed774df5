//! Faults of servers on other hosts, which are network namespaces with an sshd of their own: done and undone by the agent there.

use dyno_testkit::lab;
use dyno_testkit::{Dyno, assert_exit, skip_because, stderr, stdout};
use lab::Lab;
use serde_json::Value;
use std::time::{Duration, Instant};

fn lab(names: &[&str]) -> Option<Lab> {
    let lab = Lab::new(names);
    if lab.is_none() {
        skip_because("ssh", "no network namespaces, or no sshd (Debian: apt-get install openssh-server)");
    }
    lab
}

fn experiment(lab: &Lab, servers: &str, duration: &str, faults: &str) -> String {
    format!(
        "server: {{kind: redis, journal: true, stop_within: 10s}}\n\
         ssh:\n  config: {}\n  servers: [{servers}]\n  clients: [load1]\n  directory: {}\n\
         workload: {{ycsb: {{workload: a, records: 1000}}}}\n\
         phases: {{measure: {{connections: 4, rate: '400', duration: {duration}, warmup: 1s, interval: 100ms, timeout: 8s}}}}\n\
         faults:\n{faults}",
        lab.path("ssh_config").display(),
        lab.path("far").display()
    )
}

/// The folder of an experiment's only run.
fn run_of(dyno: &Dyno, out: &str) -> std::path::PathBuf {
    let mut runs =
        std::fs::read_dir(dyno.path(out).join("runs")).unwrap().flatten().map(|entry| entry.path());
    runs.find(|path| path.join("run.json").is_file()).unwrap()
}

fn figure(fault: &Value, key: &str) -> f64 {
    fault[key].as_f64().unwrap_or_else(|| panic!("no {key} in {fault:#}"))
}

/// Waits until `is`, at most a minute.
fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is() {
        assert!(Instant::now() < end, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_on_another_host_is_paused_and_started_again() {
    let Some(lab) = lab(&["db", "load1"]) else { return };
    let dyno = Dyno::new();
    let faults = "- {kind: pause, at: 4s, for: 1500ms}\n- {kind: restart, at: 11s, for: 1s}\n";
    std::fs::write(dyno.path("e.yaml"), experiment(&lab, "db", "20s", faults)).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "far", "--quiet"]);
    dyno.assert_ran(&output);
    let dir = run_of(&dyno, "far");
    let summary = dyno.summary(dir.to_str().unwrap());
    let [pause, restart] = &summary["faults"].as_array().unwrap()[..] else { panic!("{summary:#}") };
    assert_eq!(pause["means"], "SIGSTOP on db", "{pause:#}");
    assert!(figure(pause, "depth") > 0.9 && figure(pause, "recover_s") > 1.0, "{pause:#}");
    assert_eq!(figure(pause, "failed"), 0.0, "{pause:#}");
    assert_eq!(restart["means"], "SIGKILL on db", "{restart:#}");
    assert!(figure(restart, "failed") > 0.0 && figure(restart, "depth") > 0.5, "{restart:#}");
    assert!(figure(restart, "recover_s") > 0.5, "{restart:#}");
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    assert_eq!(events.matches("\"event\":\"fault_end\"").count(), 2, "{events}");
    let page = std::fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("fault_begin"), "the time axis has them");
    assert_eq!(lab.processes("db", "redis-server"), Vec::<u32>::new());
}

#[test]
fn one_of_two_hosts_loses_its_server_for_good() {
    let Some(lab) = lab(&["db", "db2", "load1"]) else { return };
    let dyno = Dyno::new();
    let faults = "- {kind: kill, on: server 2, at: 6s}\n";
    std::fs::write(dyno.path("e.yaml"), experiment(&lab, "db, db2", "10s", faults)).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "far", "--quiet"]);
    dyno.assert_ran_but(&output, dyno_testkit::OF_A_LOST_SERVER);
    let summary = dyno.summary(run_of(&dyno, "far").to_str().unwrap());
    let fault = &summary["faults"][0];
    assert_eq!(fault["means"], "SIGKILL on db2", "{fault:#}");
    assert!(figure(fault, "failed") > 0.0 && fault["end_s"].is_null(), "{fault:#}");
    let missing = faults.replace("server 2", "server 3");
    std::fs::write(dyno.path("e.yaml"), experiment(&lab, "db, db2", "10s", &missing)).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "none", "--quiet"]);
    let journal = std::fs::read_to_string(dyno.path("none").join("journal.jsonl")).unwrap_or_default();
    let said = stdout(&output) + &stderr(&output) + &journal;
    assert!(!output.status.success() && said.contains("faults.0.on: server 3: there are 2"), "{said}");
}

/// The state of a process: `S`, `T` (stopped), ...
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat[stat.rfind(')')? + 2..].chars().next()
}

#[test]
fn a_controller_that_is_killed_leaves_no_stopped_server_there() {
    let Some(lab) = lab(&["db", "load1"]) else { return };
    let dyno = Dyno::new();
    let faults = "- {kind: pause, at: 1s, for: 60s}\n";
    std::fs::write(dyno.path("e.yaml"), experiment(&lab, "db", "90s", faults)).unwrap();
    let mut child = dyno.start(&["run", "e.yaml", "--out", "far", "--quiet"]);
    let servers = || lab.processes("db", "redis-server");
    until("the pause", || servers().into_iter().any(|pid| state(pid) == Some('T')));
    dyno_testkit::signal(child.id(), "KILL");
    child.wait().unwrap();
    until("the end of the server", || servers().is_empty());
}

#[test]
fn a_worker_on_another_host_stands_still_and_goes_on() {
    let Some(lab) = lab(&["db", "load1"]) else { return };
    let dyno = Dyno::new();
    // Shorter than the lease.
    let faults = "- {kind: pause, on: worker 1, at: 4s, for: 500ms}\n";
    let text = experiment(&lab, "db", "9s", faults) + "monitors: {enabled: false}\n";
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "far", "--quiet"]);
    dyno.assert_ran(&output);
    let summary = dyno.summary(run_of(&dyno, "far").to_str().unwrap());
    let fault = &summary["faults"][0];
    assert_eq!(fault["means"], "SIGSTOP on load1", "{fault:#}");
    assert!(figure(fault, "end_s") - figure(fault, "begin_s") >= 0.4, "{fault:#}");
    let kill = faults.replace("pause", "kill").replace(", for: 500ms", "");
    let text = experiment(&lab, "db", "9s", &kill) + "monitors: {enabled: false}\n";
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "killed", "--quiet"]);
    assert_exit(&output, &[5]);
    let events = std::fs::read_to_string(run_of(&dyno, "killed").join("events.jsonl")).unwrap();
    assert!(events.contains("SIGKILL on load1"), "{events}");
    until("the end of all workers", || lab.processes("load1", "worker").is_empty());
}
