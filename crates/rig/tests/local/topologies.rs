//! Clusters and replica sets.

use super::common::{Home, failure, open, redis, start};
use std::collections::BTreeSet;

#[test]
fn a_cluster_of_three_primaries_with_replicas() {
    let home = Home::new();
    let json = r#"{"kind": "redis", "topology": "cluster", "replicas": 1, "data": {"snapshot": true}}"#;
    let Some(mut server) = start(&home, json) else { return };
    let ports = home.ports(&server);
    assert_eq!((ports.len(), server.uris().len()), (6, 1));
    for port in &ports {
        let info = redis(*port, &["CLUSTER", "INFO"]);
        assert!(info.contains("cluster_state:ok") && info.contains("cluster_size:3"), "{info}");
    }
    // Contiguous ranges, three of them.
    let nodes = redis(ports[0], &["CLUSTER", "NODES"]);
    let ranges: BTreeSet<&str> =
        nodes.lines().filter(|l| l.contains("master")).map(|l| l.rsplit(' ').next().unwrap()).collect();
    assert_eq!(ranges, ["0-5460", "10922-16383", "5461-10921"].into());
    assert_eq!(nodes.lines().filter(|l| l.contains("slave")).count(), 3);
    let opened = open(&server.uris()[0]);
    assert_eq!(opened.facts()["cluster_primaries"], "3");

    // One key on each primary outlives a restore, which starts the cluster from its data.
    let set = |key: &str, value: &str| redis_follow(ports[0], &["SET", key, value]);
    ["a", "b", "c", "d"].iter().for_each(|key| set(key, "loaded"));
    server.snapshot().unwrap();
    ["a", "b", "c", "d"].iter().for_each(|key| set(key, "changed"));
    server.restore().unwrap();
    for key in ["a", "b", "c", "d"] {
        let words = ["-c", "-p", &ports[1].to_string(), "GET", key];
        let output = std::process::Command::new("redis-cli").args(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "loaded", "{key}");
    }
    let pids: Vec<u32> = server.processes().iter().map(|(_, pid)| *pid).collect();
    let data = server.data();
    server.stop().unwrap();
    home.assert_clear(&pids, &data);
}

fn redis_follow(port: u16, words: &[&str]) {
    let port = port.to_string();
    let output =
        std::process::Command::new("redis-cli").args(["-c", "-p", &port]).args(words).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "OK");
}

#[test]
fn two_clusters_with_a_password_are_apart() {
    let home = Home::new();
    let json =
        r#"{"kind": "redis", "topology": "cluster", "instances": 2, "options": {"requirepass": "pw"}}"#;
    let Some(server) = start(&home, json) else { return };
    let uris = server.uris();
    assert_eq!(uris.len(), 2);
    for uri in &uris {
        assert!(uri.starts_with("redis://:pw@127.0.0.1:") && uri.ends_with("?cluster=true"), "{uri}");
        assert_eq!(open(uri).facts()["cluster_primaries"], "3");
    }
    drop(server);
    home.assert_clear(&[], &[]);
}

#[test]
fn a_cluster_that_cannot_be_made_leaves_nothing() {
    let home = Home::new();
    // Nodes that do not know the commands of a cluster.
    let json = r#"{"kind": "redis", "topology": "cluster", "options": {"rename-command": "CLUSTER \"\""}}"#;
    if start(&home, r#"{"kind": "redis"}"#).is_none() {
        return;
    }
    let error = failure(&home, json);
    assert!(error.contains("Cluster") && error.contains("unknown command"), "{error}");
    home.assert_clear(&[], &[]);
}

#[test]
fn a_replica_set_of_mongod() {
    let home = Home::new();
    let json =
        r#"{"kind": "mongod", "topology": "replica_set", "cache": "256MiB", "data": {"snapshot": true}}"#;
    let Some(mut server) = start(&home, json) else { return };
    let uri = server.uris()[0].clone();
    super::common::insert(&uri, 3);
    server.snapshot().unwrap();
    super::common::insert(&uri, 2);
    server.restore().unwrap();
    assert_eq!(super::common::count(&uri), 3);
    server.stop().unwrap();
    home.assert_clear(&[], &[]);
}
