//! `dyno run --in-cluster` and what looks after it: a pod conducts, is killed and goes on; results come home.

use crate::inside::{a_volume, controller_of};
use crate::kube::Cluster;
use dyno_testkit::{Dyno, assert_exit, signal, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "stays";

/// An experiment of two cells, in the namespace of a test.
pub fn experiment(cluster: &Cluster, namespace: &str) -> String {
    format!(
        "name: night\nserver: {{kind: redis}}\nkubernetes:\n  kubectl: {}\n  namespace: {namespace}\n  \
         image: localhost/dyno:test\n  server_image: localhost/redis:7\n  pull: Never\n  \
         workers: {{requests: {{cpu: 50m}}}}\n  servers: {{requests: {{cpu: 50m}}}}\n  \
         controller: {{image: 'dyno-controller:0.1.0', requests: {{cpu: 50m}}}}\n\
         workload: {{ycsb: {{workload: c, records: 1000}}}}\nfactors: {{connections: [2, 4]}}\n\
         phases: {{measure: {{operations: 2000, warmup: 0s, rate: '500'}}}}\n",
        cluster.lab.join("k").display()
    )
}

pub fn a_pod_conducts(cluster: &Cluster) {
    cluster.images_of_deploy();
    cluster.namespace(NAMESPACE);
    let dyno = Dyno::new();
    let k = |words: &[&str]| {
        let (well, said) = cluster.k(&[&["--namespace", NAMESPACE][..], words].concat());
        assert!(well, "{words:?}: {said}");
        said
    };
    what_cannot_begin(cluster, &dyno);
    let roles = crate::kube::deploy().join("rbac.yaml").display().to_string();
    k(&["apply", "--filename", &roles]);
    let kept = dyno.path("volume");
    let volume = a_volume(cluster, &kept);
    std::fs::write(dyno.path("night.yaml"), experiment(cluster, NAMESPACE)).unwrap();
    let begun = dyno.run(&["run", "night.yaml", "--in-cluster", "--out", "night"]);
    assert_exit(&begun, &[0]);
    let record: Value =
        serde_json::from_slice(&std::fs::read(dyno.path("night/controller.json")).unwrap()).unwrap();
    let name = record["name"].as_str().unwrap().to_owned();
    assert!(stdout(&begun).contains(&format!("{name} conducts night in the cluster")), "{}", stdout(&begun));
    let out = kept.join(&name);
    await_measuring(&out, 1);
    let status = dyno.run(&["status", "night"]);
    assert_exit(&status, &[0]);
    assert!(
        stdout(&status).contains("runs in pod") && stdout(&status).contains("0 of 2"),
        "{}",
        stdout(&status)
    );
    assert_exit(&dyno.run(&["fetch", "night", "--remove"]), &[2]);
    // Its pod is killed: the next one makes the cell again, and the other one.
    let work = format!("/work/{name}");
    signal(controller_of(&work).unwrap(), "KILL");
    let ended = dyno.run(&["status", "night", "--wait"]);
    dyno_testkit::assert_ran_in(&out, &ended, &[]);
    let status = dyno.run(&["status", "night"]);
    assert!(stdout(&status).contains("ended (exit code "), "{}", stdout(&status));
    // Its Job says how each run has ended.
    let of_job = ["get", "events", "--field-selector", "involvedObject.kind=Job", "--output"];
    let path = "jsonpath={range .items[?(@.source.component==\"dyno\")]}{.involvedObject.name} {.reason} {.message}{'\\n'}{end}";
    let events = k(&[&of_job[..], &[path]].concat());
    let of_runs = events.lines().filter(|line| line.starts_with(&format!("{name} Run")));
    assert_eq!(of_runs.count(), 2, "{events}");
    assert!(events.contains("2 of 2, runs/cell000"), "{events}");
    let log = dyno.run(&["logs", "night"]);
    assert!(stdout(&log).contains("of 2: connections=4"), "{}", stdout(&log));
    goes_on_inside(&dyno, &out);
    let fetched = dyno.run(&["fetch", "night", "--remove"]);
    assert_exit(&fetched, &[0]);
    let journal = std::fs::read_to_string(dyno.path("night/journal.jsonl")).unwrap();
    let lines = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let complete: Vec<Value> = lines.filter(|line| line["event"] == "ended").collect();
    let count = |event: &str| journal.matches(&format!("\"event\":\"{event}\"")).count();
    let again = count("again");
    assert_eq!(complete.len() - again, 2, "each cell has ended once: {journal}");
    let begun = (count("begin"), count("run") - again);
    assert_eq!(begun, (3, 3), "it was begun again twice, and one cell with it: {journal}");
    for record in &complete {
        let summary = dyno.summary(&format!("night/{}", record["dir"].as_str().unwrap()));
        // All that was asked for, once.
        let measured = dyno_testkit::phase(&summary, "measure");
        assert_eq!(dyno_testkit::arrivals(measured), 2_000, "{measured:#}");
    }
    // What is here is a directory like any other.
    assert_exit(&dyno.run(&["report", "night"]), &[0]);
    assert_exit(&dyno.run(&["status", "night"]), &[0]);
    cluster.assert_nothing_left(Duration::from_secs(30));
    let left = k(&["get", "persistentvolumeclaims,secrets,jobs", "--output", "name"]);
    assert_eq!(left.trim().replace("No resources found in stays namespace.", ""), "");
    let (gone, said) = cluster.k(&["delete", "persistentvolume", &volume, "--timeout=60s"]);
    assert!(gone, "{said}");
    one_that_is_stopped(cluster, &dyno);
    let (gone, said) = cluster.k(&["delete", "namespace", NAMESPACE]);
    assert!(gone, "{said}");
}

/// A controller that has ended goes on in another pod, and makes its invalid runs again, each once.
fn goes_on_inside(dyno: &Dyno, out: &Path) {
    let journal = || std::fs::read_to_string(out.join("journal.jsonl")).unwrap();
    let count = |text: &str| journal().lines().filter(|line| line.contains(text)).count();
    let invalid = count("\"trust\":\"invalid\"");
    assert_exit(&dyno.run(&["resume", "night", "--invalid", "--json"]), &[2]);
    let resumed = dyno.run(&["resume", "night", "--invalid"]);
    assert_exit(&resumed, &[0]);
    assert!(stdout(&resumed).contains("goes on in the cluster"), "{}", stdout(&resumed));
    let ended = dyno.run(&["status", "night", "--wait"]);
    dyno_testkit::assert_ran_in(out, &ended, &[]);
    assert_eq!(count("\"event\":\"again\""), invalid, "{}", journal());
    assert_eq!(count("\"event\":\"ended\"") - invalid, 2, "{}", journal());
}

/// Without its account it says so, and leaves nothing.
fn what_cannot_begin(cluster: &Cluster, dyno: &Dyno) {
    std::fs::write(dyno.path("early.yaml"), experiment(cluster, NAMESPACE)).unwrap();
    let output = dyno.run(&["run", "early.yaml", "--in-cluster", "--out", "early"]);
    assert_exit(&output, &[3]);
    assert!(stderr(&output).contains("serviceaccount \"dyno\" not found"), "{}", stderr(&output));
    assert!(!dyno.path("early").exists());
    cluster.assert_nothing_left(Duration::from_secs(20));
}

/// `dyno stop` under load: the run ends as by Ctrl-C, and its results stay until they are fetched.
fn one_that_is_stopped(cluster: &Cluster, dyno: &Dyno) {
    let kept = dyno.path("second");
    let volume = a_volume(cluster, &kept);
    let text = experiment(cluster, NAMESPACE).replace("operations: 2000", "duration: 120s");
    std::fs::write(dyno.path("long.yaml"), text).unwrap();
    assert_exit(&dyno.run(&["run", "long.yaml", "--in-cluster", "--out", "long"]), &[0]);
    let record: Value =
        serde_json::from_slice(&std::fs::read(dyno.path("long/controller.json")).unwrap()).unwrap();
    let out = kept.join(record["name"].as_str().unwrap());
    await_measuring(&out, 1);
    // A pod that is deleted by hand ends as by Ctrl-C, and is made again like one that was killed.
    let path = "jsonpath={.items[0].metadata.name}";
    let own = "app.kubernetes.io/component=controller";
    let (found, pod) = cluster.k(&["-n", NAMESPACE, "get", "pods", "-l", own, "-o", path]);
    assert!(found, "{pod}");
    let (gone, said) = cluster.k(&["-n", NAMESPACE, "delete", "pod", pod.trim()]);
    assert!(gone, "{said}");
    await_measuring(&out, 2);
    let stopped = dyno.run(&["stop", "long"]);
    assert_exit(&stopped, &[0]);
    let left = cluster.left();
    let claim = format!("persistentvolumeclaim/{}", record["claim"].as_str().unwrap());
    assert_eq!(left.split_whitespace().collect::<Vec<_>>(), [claim], "its results stay, and nothing else");
    assert_exit(&dyno.run(&["status", "long"]), &[3]);
    assert_exit(&dyno.run(&["fetch", "long", "--remove"]), &[0]);
    let journal = std::fs::read_to_string(dyno.path("long/journal.jsonl")).unwrap();
    assert!(journal.lines().last().unwrap().contains("interrupted"), "{journal}");
    cluster.assert_nothing_left(Duration::from_secs(20));
    let (gone, said) = cluster.k(&["delete", "persistentvolume", &volume, "--timeout=60s"]);
    assert!(gone, "{said}");
}

/// Waits until so many runs in a directory of the volume have begun to measure.
fn await_measuring(out: &Path, count: usize) {
    let end = Instant::now() + Duration::from_secs(120);
    let measures = |run: &PathBuf| {
        std::fs::read_to_string(run.join("intervals.jsonl")).is_ok_and(|text| text.contains("\"measure\""))
    };
    let runs = || std::fs::read_dir(out.join("runs")).into_iter().flatten().flatten().map(|run| run.path());
    while runs().filter(measures).count() < count {
        assert!(Instant::now() < end, "{}: the measured phase does not begin", out.display());
        std::thread::sleep(Duration::from_millis(100));
    }
}
