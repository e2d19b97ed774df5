//! Faults of servers and workers in pods.

use crate::kube::Cluster;
use crate::record;
use dyno_testkit::{self, Dyno, assert_exit};
use serde_json::Value;
use std::time::Duration;

fn figure(fault: &Value, name: &str) -> f64 {
    fault[name].as_f64().unwrap_or_else(|| panic!("{name}: {fault:#}"))
}

/// A server that stands still, and one that is killed and that the cluster starts again; a worker that stands still, and one that
/// is killed.
pub fn servers_and_workers_have_faults(cluster: &Cluster) {
    let dyno = Dyno::new();
    let more = "faults:\n- {kind: pause, at: 4s, for: 2s}\n- {kind: restart, at: 11s}\n\
                - {kind: pause, on: worker 1, at: 21s, for: 600ms}\n";
    let phases = "connections: 4, rate: 500, duration: 25s, warmup: 0s";
    let text = cluster.experiment("bench", "{kind: redis, journal: true}", "", phases) + more;
    std::fs::write(dyno.path("e.yaml"), &text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "faults", "--quiet"]);
    dyno.assert_ran_but(&output, dyno_testkit::OF_A_LOST_SERVER);
    let (dir, record) = record(&dyno, "faults");
    assert_eq!(record["status"], "complete", "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    let [paused, restarted, stood] = summary["faults"].as_array().unwrap().as_slice() else {
        panic!("{:#}", summary["faults"])
    };
    let means = |fault: &Value| fault["means"].as_str().unwrap_or_default().to_owned();
    assert!(means(paused).starts_with("SIGSTOP: dyno-"), "{paused:#}");
    assert!(figure(paused, "end_s") - figure(paused, "begin_s") >= 2.0, "{paused:#}");
    assert!(figure(paused, "worst_per_s") < 250.0, "nothing of a second or two is answered: {paused:#}");
    assert!(means(restarted).starts_with("SIGKILL, the cluster starts it again: dyno-"), "{restarted:#}");
    assert!(figure(restarted, "end_s") < 25.0, "it is back: {restarted:#}");
    assert!(figure(restarted, "failed") >= 1.0, "connections are lost: {restarted:#}");
    assert!(means(stood).starts_with("SIGSTOP on dyno-"), "{stood:#}");
    let measured = dyno_testkit::phase(&summary, "measure");
    assert_eq!(dyno_testkit::outcome(measured, "not_found"), 0, "the log has kept all records: {measured:#}");
    crate::say(&format!(
        "server pod: {:.1} s without it after SIGKILL",
        figure(restarted, "end_s") - figure(restarted, "begin_s")
    ));
    let lost = text.replace(more, "faults: [{kind: kill, on: worker 2, at: 3s}]\n");
    let lost = lost.replace("kubernetes:\n", "kubernetes:\n  worker_pods: 2\n").replace("25s", "10s");
    std::fs::write(dyno.path("e.yaml"), lost).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "killed", "--quiet"]);
    assert_exit(&output, &[5]);
    let (dir, _) = crate::record(&dyno, "killed");
    let events = std::fs::read_to_string(dir.join("events.jsonl")).unwrap();
    assert!(events.contains("SIGKILL on dyno-"), "{events}");
    assert_eq!(dyno.summary(dir.to_str().unwrap())["verdict"]["trust"], "invalid");
    cluster.assert_nothing_left(Duration::from_secs(20));
}
