//! Real mongods in pods: one, a replica set, and a sharded cluster behind its routers.

use crate::kube::Cluster;
use crate::record;
use dyno_testkit::{self, Dyno, skip_because};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// A short run on mongods as `server` says; the facts of the run, and what its pods are called without numbers of runs.
fn facts(cluster: &Cluster, server: &str, pods: usize) -> (Value, BTreeSet<String>) {
    let dyno = Dyno::new();
    let phases = "connections: 4, rate: 1000, operations: 4000, warmup: 0s";
    let text = cluster.experiment("bench", server, "", phases);
    std::fs::write(dyno.path("e.yaml"), text.replace("localhost/redis:7", "localhost/mongo:test")).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "mongo", "--quiet"]);
    dyno.assert_ran(&output);
    let (dir, record) = record(&dyno, "mongo");
    assert_eq!(record["status"], "complete", "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    assert_eq!(dyno_testkit::outcome(dyno_testkit::phase(&summary, "load"), "ok"), 1_000, "{server}");
    assert_eq!(dyno_testkit::outcome(dyno_testkit::phase(&summary, "measure"), "ok"), 4_000, "{server}");
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    let facts = run["facts"].clone();
    let named = |key: &String| key.strip_prefix("pod.")?.strip_suffix(".node").map(str::to_owned);
    let names: Vec<String> = facts.as_object().unwrap().keys().filter_map(named).collect();
    assert_eq!(names.len(), pods, "{names:?}");
    // dyno-RUN-s0-shard-1-0
    let apart = names.iter().filter_map(|name| Some(name.split_once("-s0")?.1.to_owned())).collect();
    cluster.assert_nothing_left(Duration::from_secs(30));
    (facts, apart)
}

pub fn mongods(cluster: &Cluster) {
    if !cluster.mongo_image() {
        return skip_because("mongod in pods", "mongod and mongos are not on PATH");
    }
    let (one, pods) = facts(cluster, "{kind: mongod, cache: 256MiB}", 2);
    assert_eq!((&one["process"], pods.first().map(String::as_str)), (&"mongod".into(), Some("-0")));
    let set = "{kind: mongod, topology: replica_set, members: 3, cache: 256MiB}";
    let (set, pods) = facts(cluster, set, 4);
    assert!(set.to_string().contains("rs0"), "{set}");
    assert_eq!(pods.iter().map(String::as_str).collect::<Vec<_>>(), ["-0", "-1", "-2"]);
    let sharded = "{kind: mongod, topology: sharded, members: 2, routers: 2, cache: 256MiB}";
    let (sharded, pods) = facts(cluster, sharded, 6);
    assert_eq!(sharded["process"], "mongos", "{sharded}");
    assert_eq!(
        pods.iter().map(String::as_str).collect::<Vec<_>>(),
        ["-config-0", "-router-0", "-router-1", "-shard-0-0", "-shard-1-0"]
    );
}
