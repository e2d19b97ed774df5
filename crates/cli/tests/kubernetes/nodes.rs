//! What takes several nodes: WSF as its document types it, room that is not there, a node that is lost.

use crate::{record, records};
use dyno_testkit::kube::Cluster;
use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

/// A namespace that admits privileged pods.
const PRIVILEGED: &str = "privileged";

/// `dyno wsf` in pods of a namespace.
fn wsf(cluster: &Cluster, dyno: &Dyno, namespace: &str, image: &str, words: &[&str]) -> Output {
    let keys = [
        format!("kubectl={}", cluster.lab.join("k").display()),
        format!("namespace={namespace}"),
        format!("server_image={image}"),
        "image=localhost/dyno:test".to_owned(),
        "pull=Never".to_owned(),
        "servers.requests.cpu=10m".to_owned(),
    ];
    let mut all = vec!["wsf", words[0], "--backend", "kubernetes", "--noenv", "--quiet", "--reading", "23.3"];
    all.extend(keys.iter().flat_map(|key| ["--kubernetes", key]));
    all.extend(&words[1..]);
    dyno.run(&all)
}

/// Facts about pods, by pod and key.
fn facts_of_pods(dyno: &Dyno, out: &str, key: &str) -> Vec<(String, String)> {
    let (dir, _) = record(dyno, out);
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    let facts = run["facts"].as_object().unwrap().iter();
    let of = |(name, value): (&String, &Value)| {
        let pod = name.strip_prefix("pod.")?.strip_suffix(key)?.strip_suffix('.')?;
        Some((pod.to_owned(), value.as_str()?.to_owned()))
    };
    facts.filter_map(of).collect()
}

/// Nodes of the pods of servers, and of those of workers.
fn nodes_of(dyno: &Dyno, out: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let all = facts_of_pods(dyno, out, "node");
    let of = |worker: bool| {
        let own = all.iter().filter(|(pod, _)| pod.contains("-w-") == worker);
        own.map(|(_, node)| node.clone()).collect()
    };
    (of(false), of(true))
}

/// Cores of this host, as the kernel writes them.
fn all_cores() -> String {
    std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap().trim().to_owned()
}

/// Pairs on their node's network, with cores and folders of it. What a server's log says of the kernel's view is compared with
/// what was asked for.
pub fn wsf_with_privileges(cluster: &Cluster) {
    cluster.namespace(PRIVILEGED);
    let policy = "pod-security.kubernetes.io/enforce=privileged";
    assert!(cluster.k(&["label", "--overwrite", "namespace", PRIVILEGED, policy]).0);
    let dyno = Dyno::new();
    let (one, two) = (dyno.path("one").display().to_string(), dyno.path("two").display().to_string());
    let paths = format!("DB_HOSTPATH={one}%20{two}");
    let small = ["--set", "RECORD_COUNT=200", "--set", "OPERATION_COUNT=2000"];
    let run = |out: &str, words: &[&str]| {
        let out = ["--out", out];
        let all = [&["gated", "--server", "redis", "--privileged"], &small[..], &out, words].concat();
        let output = wsf(cluster, &dyno, PRIVILEGED, "localhost/redis:7", &all);
        assert_exit(&output, &[0, 5]);
        assert!(stdout(&output).contains("Operations of [RUN PHASE] that failed: 0"), "{}", stdout(&output));
    };
    run(
        "folders",
        &[
            "--set",
            "CLIENT_SERVER_PAIR=2",
            "--set",
            "NUMACTL_OPTION=2",
            "--set",
            "CORES=0",
            "--set",
            "YCSB_CORES=0",
            "--set",
            &paths,
        ],
    );
    let out = "folders/logs-mongodb_ycsb_gated/experiment";
    let cores = facts_of_pods(&dyno, out, "cpus_allowed");
    assert!(
        cores.len() == 4 && cores.iter().all(|(_, cores)| cores == "0"),
        "servers and clients: {cores:?}"
    );
    let (servers, clients) = nodes_of(&dyno, out);
    assert_eq!((servers.len(), clients.len()), (1, 1), "{servers:?} {clients:?}");
    assert!(servers.is_disjoint(&clients));
    for folder in [&one, &two] {
        let left = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(left, 0, "{folder}: the data are removed");
    }
    // By the port: with one memory node that is all of its cores.
    run(
        "by_port",
        &["--set", "CLIENT_SERVER_PAIR=3", "--set", "CLIENT_COUNT=2", "--set", "NUMACTL_OPTION=1"],
    );
    let out = "by_port/logs-mongodb_ycsb_gated/experiment";
    let cores = facts_of_pods(&dyno, out, "cpus_allowed");
    assert_eq!(cores.len(), 3, "clients have no privileges: {cores:?}");
    let nodes = std::fs::read_to_string("/sys/devices/system/node/online").unwrap();
    assert!(nodes.trim() != "0" || cores.iter().all(|(_, own)| *own == all_cores()), "{cores:?}");
    let (servers, clients) = nodes_of(&dyno, out);
    assert!(servers.is_disjoint(&clients) && clients.len() == 2, "{servers:?} {clients:?}");
    // A core that no node has is said by the container that looks for it.
    let words =
        ["gated", "--server", "redis", "--privileged", "--out", "beyond", "--set", "NUMACTL_OPTION=2"];
    let beyond = wsf(
        cluster,
        &dyno,
        PRIVILEGED,
        "localhost/redis:7",
        &[&words[..], &["--set", "CORES=4095"]].concat(),
    );
    let said = stdout(&beyond) + &stderr(&beyond);
    assert!(said.contains("core 4095 is not there"), "{said}");
    cluster.assert_nothing_left(Duration::from_secs(60));
    // A namespace that admits no such pods says so, with nothing left.
    let refused = wsf(
        cluster,
        &dyno,
        "bench",
        "localhost/redis:7",
        &["gated", "--server", "redis", "--privileged", "--out", "refused", "--set", "NUMACTL_OPTION=1"],
    );
    let said = stdout(&refused) + &stderr(&refused);
    assert!(said.contains("violates PodSecurity"), "{said}");
    cluster.assert_nothing_left(Duration::from_secs(60));
}

/// The best-known command of Ice Lake, in pods: sixteen mongods on one node's network.
pub fn sixteen_mongods(cluster: &Cluster) {
    if !cluster.mongo_image() {
        return dyno_testkit::skip_because("sixteen mongods in pods", "mongod is not on PATH");
    }
    let dyno = Dyno::new();
    let output = wsf(
        cluster,
        &dyno,
        PRIVILEGED,
        "localhost/mongo:test",
        &[
            "90read10update",
            "--privileged",
            "--out",
            "logs",
            "--set",
            "CLIENT_SERVER_PAIR=16",
            "--set",
            "CLIENT_COUNT=2",
            "--set",
            "NUMACTL_OPTION=1",
            "--set",
            "THREADS=2",
            "--set",
            "RECORD_COUNT=200",
            "--set",
            "OPERATION_COUNT=500",
            "--set",
            "CACHE_SIZE_GB=0.25",
        ],
    );
    assert_exit(&output, &[0, 5]);
    assert!(stdout(&output).contains("Operations of [RUN PHASE] that failed: 0"), "{}", stdout(&output));
    let out = "logs/logs-mongodb_ycsb_90read10update/experiment";
    assert_eq!(facts_of_pods(&dyno, out, "cpus_allowed").len(), 16);
    let (servers, clients) = nodes_of(&dyno, out);
    assert!(servers.is_disjoint(&clients), "{servers:?} {clients:?}");
    let ended = records(&dyno, out);
    assert!(ended.iter().all(|(_, record)| record["status"] == "complete"), "{ended:?}");
    cluster.assert_nothing_left(Duration::from_secs(60));
}

/// Three clients' nodes beside the servers' are four: said before anything is made.
pub fn more_than_there_are(cluster: &Cluster) {
    let dyno = Dyno::new();
    let many = wsf(
        cluster,
        &dyno,
        "bench",
        "localhost/redis:7",
        &[
            "gated",
            "--server",
            "redis",
            "--out",
            "many",
            "--set",
            "CLIENT_SERVER_PAIR=16",
            "--set",
            "CLIENT_COUNT=3",
        ],
    );
    let said = stdout(&many) + &stderr(&many);
    assert!(said.contains("expected 3 nodes beside theirs, there are 2"), "{said}");
    assert_eq!(cluster.left().trim(), "", "nothing was made");
}

/// Workers go where no server is, without a word of the user's; all are there although the cluster has room for more.
pub fn workers_keep_off_servers(cluster: &Cluster) {
    let dyno = Dyno::new();
    let text = cluster.experiment("bench", "{kind: redis}", "  worker_pods: 2\n", "operations: 2000");
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    // Three workers in each pod: a group.
    let words = ["run", "e.yaml", "--out", "apart", "--quiet", "--set", "client.workers=3"];
    dyno.assert_ran(&dyno.run(&words));
    let (dir, _) = record(&dyno, "apart");
    let text = std::fs::read_to_string(dir.join("workers.json")).unwrap();
    let workers: Vec<Value> = serde_json::from_str(&text).unwrap();
    let own = workers.iter().map(|worker| dyno_testkit::arrivals(dyno_testkit::phase(worker, "measure")));
    assert_eq!((workers.len(), own.sum::<u64>()), (6, 2_000), "{text}");
    let (servers, clients) = nodes_of(&dyno, "apart");
    assert!(
        servers.len() == 1 && clients.len() == 2 && servers.is_disjoint(&clients),
        "{servers:?} {clients:?}"
    );
    cluster.assert_nothing_left(Duration::from_secs(30));
}

/// The node of both workers, and so of the hub, is cut off for 20 s, less than the lease: the workers go on, hand over all they
/// have measured, and the run says what happened: their server was out of reach, and so was their controller.
pub fn a_node_that_is_cut_off(cluster: &Cluster) {
    let dyno = Dyno::new();
    let on = |node: &str| format!("{{node_selector: {{kubernetes.io/hostname: {node}}}}}");
    let keys = format!("  worker_pods: 2\n  servers: {}\n  workers: {}\n", on("node0"), on("node1"));
    let (output, dir, record) = cut(cluster, &dyno, &keys, |_| 1);
    let message = record["words"].as_str().unwrap();
    assert!(message.contains("nothing succeeded for"), "{message}");
    let summary = dyno.summary(dir.to_str().unwrap());
    let verdict = summary["verdict"].to_string();
    assert!(verdict.contains("heard nothing of their controller"), "{verdict}");
    assert!(!verdict.contains("was lost"), "{verdict}");
    let measured = dyno_testkit::phase(&summary, "measure");
    let ended = measured["outcomes"].as_object().unwrap().values();
    let ended: u64 = ended.filter_map(Value::as_u64).sum();
    assert_eq!(dyno_testkit::arrivals(measured), ended, "each arrival has an end: {measured:#}");
    let seconds = measured["seconds"].as_f64().unwrap();
    assert!((seconds - 60.0).abs() < 0.5, "the whole phase: {seconds}, {}", stderr(&output));
    let home = std::fs::read_dir(dir.join("server")).unwrap().flatten();
    let names: Vec<String> = home.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let log = names.iter().find(|name| name.ends_with("-s0-0.server.log.gz"));
    let path = dir.join("server").join(log.unwrap_or_else(|| panic!("{names:?}")));
    let read = std::process::Command::new("gzip").arg("-dc").arg(path).output().unwrap();
    assert!(String::from_utf8_lossy(&read.stdout).contains("Ready to accept connections"), "{names:?}");
    cluster.assert_nothing_left(Duration::from_secs(60));
}

/// The node of the second worker is cut off from the hub, which is in the first one's pod: pods do not sleep, and it is given up
/// after ten seconds. What was recorded until then is there.
pub fn a_worker_that_the_hub_has_lost(cluster: &Cluster) {
    let dyno = Dyno::new();
    let keys = "  worker_pods: 2\n  workers: {one_per_node: true}\n";
    let (_, dir, record) = cut(cluster, &dyno, keys, |cluster| {
        let second = "batch.kubernetes.io/job-completion-index=1,app.kubernetes.io/component=worker";
        let path = "jsonpath={.items[0].spec.nodeName}";
        let (found, node) = cluster.k(&["-n", "bench", "get", "pods", "-l", second, "-o", path]);
        assert!(found, "{node}");
        node.trim().strip_prefix("node").unwrap().parse().unwrap()
    });
    let message = record["words"].as_str().unwrap();
    assert!(message.contains("silent for 10 s"), "{message}");
    assert_eq!(message.matches("was lost").count(), 1, "{message}");
    assert!(std::fs::metadata(dir.join("intervals.jsonl")).unwrap().len() > 0, "what was recorded is kept");
    cluster.assert_nothing_left(Duration::from_secs(60));
}

/// A run of a minute, a node of which is cut off for 20 s once it measures: what was printed, its folder and its record.
fn cut(
    cluster: &Cluster,
    dyno: &Dyno,
    keys: &str,
    node: impl Fn(&Cluster) -> usize,
) -> (std::process::Output, PathBuf, Value) {
    let phases = "connections: 8, rate: 500, duration: 60s, warmup: 0s";
    std::fs::write(dyno.path("e.yaml"), cluster.experiment("bench", "{kind: redis}", keys, phases)).unwrap();
    let child = dyno.start(&["run", "e.yaml", "--out", "cut", "--quiet", "--set", "client.workers=2"]);
    dyno.await_phase("cut/runs/cell0001-rep01", "measure");
    let node = node(cluster);
    cluster.node("cut", node);
    std::thread::sleep(Duration::from_secs(20));
    cluster.node("mend", node);
    let output = child.wait_with_output().unwrap();
    assert_exit(&output, &[5]);
    let (dir, record) = record(dyno, "cut");
    (output, dir, record)
}
