//! Clusters, copies of a primary, replica sets and shards.

use super::common::{Home, failure, open, redis, start};
use dyno_databases::registry;
use dyno_hosts::servers::server::faults::ServerFault;
use std::collections::BTreeSet;

#[test]
fn a_cluster_of_three_primaries_with_replicas() {
    let home = Home::new();
    let json = r#"{"kind": "redis", "topology": "cluster", "replicas": 1, "data": {"snapshot": true}}"#;
    let Some(mut server) = start(&home, json) else { return };
    let ports = home.ports(&server);
    assert_eq!((ports.len(), server.client_uris().len()), (6, 1));
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
    let opened = open(&server.client_uris()[0]);
    assert_eq!(opened.facts()["cluster_primaries"], "3");

    // One key on each primary outlives a restore, which starts the cluster from its data.
    let set = |key: &str, value: &str| redis_follow(ports[0], &["SET", key, value]);
    ["a", "b", "c", "d"].iter().for_each(|key| set(key, "loaded"));
    server.take_snapshot().unwrap();
    ["a", "b", "c", "d"].iter().for_each(|key| set(key, "changed"));
    server.restore_snapshot().unwrap();
    for key in ["a", "b", "c", "d"] {
        let words = ["-c", "-p", &ports[1].to_string(), "GET", key];
        let output = std::process::Command::new("redis-cli").args(words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "loaded", "{key}");
    }
    let pids: Vec<u32> = server.running_processes().iter().map(|(_, pid)| *pid).collect();
    let data = server.data_folders();
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
    let uris = server.client_uris();
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
    let uri = server.client_uris()[0].clone();
    super::common::insert(&uri, 3);
    server.take_snapshot().unwrap();
    super::common::insert(&uri, 2);
    server.restore_snapshot().unwrap();
    assert_eq!(super::common::count(&uri), 3);
    server.stop().unwrap();
    home.assert_clear(&[], &[]);
}

#[test]
fn copies_of_one_primary_and_reads_from_them() {
    let home = Home::new();
    let json = r#"{"kind": "redis", "topology": "replication", "replicas": 2, "reads": "replica",
        "data": {"snapshot": true}, "options": {"requirepass": "pw"}}"#;
    let Some(mut server) = start(&home, json) else { return };
    let ports = home.ports(&server);
    let uri = server.client_uris()[0].clone();
    assert_eq!(uri, format!("redis://:pw@127.0.0.1:{}?reads=replica", ports[0]));
    assert_eq!(open(&uri).facts()["copies_read"], "2");
    let ask = |port: u16, words: &[&str]| redis(port, &[&["-a", "pw", "--no-auth-warning"], words].concat());
    ask(ports[0], &["SET", "key", "loaded"]);
    server.take_snapshot().unwrap();
    ask(ports[0], &["SET", "key", "changed"]);
    // It is started from its data, and copies again.
    server.restore_snapshot().unwrap();
    for port in &ports[1..] {
        let info = ask(*port, &["INFO", "replication"]);
        assert!(info.contains("role:slave") && info.contains("master_link_status:up"), "{info}");
        assert_eq!(ask(*port, &["GET", "key"]).trim(), "loaded");
    }
    // Who asks a copy is told whose it is.
    let why = registry::parse(&uri.replace(&ports[0].to_string(), &ports[1].to_string())).unwrap();
    let why = why.open_for_look(&|| false).err().unwrap().to_string();
    assert!(why.contains(&format!("it is a slave of 127.0.0.1:{}", ports[0])), "{why}");
    // One that was killed and started again copies again.
    let killed = server.inject_fault(2..3, &ServerFault::Restart);
    assert_eq!((killed.failed, killed.processes), (None, vec![2]));
    server.heal_fault(&[2], &ServerFault::Restart, &[]).unwrap();
    assert!(ask(ports[2], &["INFO", "replication"]).contains("role:slave"));
    let pids: Vec<u32> = server.running_processes().iter().map(|(_, pid)| *pid).collect();
    let data = server.data_folders();
    server.stop().unwrap();
    home.assert_clear(&pids, &data);
}

#[test]
fn a_sharded_cluster_of_mongod() {
    let home = Home::new();
    let json = r#"{"kind": "mongod", "topology": "sharded", "routers": 2, "cache": "256MiB",
        "data": {"snapshot": true}, "ready_within": "4m"}"#;
    let Some(mut server) = start(&home, json) else { return };
    let names: Vec<String> = server.running_processes().into_iter().map(|(name, _)| name).collect();
    let routers: Vec<&String> = names.iter().filter(|name| name.starts_with("mongos-")).collect();
    assert_eq!((names.len(), routers.len()), (1 + 2 + 2, 2), "{names:?}");
    let uri = server.client_uris()[0].clone();
    let hosts: Vec<String> = routers.iter().map(|name| name.replace("mongos-", "127.0.0.1:")).collect();
    assert_eq!(uri, format!("mongodb://{}/", hosts.join(",")));
    assert_eq!(super::common::shards(&uri), ["rs0-0", "rs0-1"]);
    super::common::insert(&uri, 3);
    server.take_snapshot().unwrap();
    super::common::insert(&uri, 2);
    server.restore_snapshot().unwrap();
    assert_eq!((super::common::count(&uri), super::common::shards(&uri).len()), (3, 2));
    let pids: Vec<u32> = server.running_processes().iter().map(|(_, pid)| *pid).collect();
    server.stop().unwrap();
    home.assert_clear(&pids, &[]);
}

#[test]
fn shards_with_a_second_member() {
    let home = Home::new();
    let json = r#"{"kind": "mongod", "topology": "sharded", "members": 1, "replicas": 1, "reads": "any",
        "cache": "256MiB", "ready_within": "4m"}"#;
    let Some(server) = start(&home, json) else { return };
    let uri = server.client_uris()[0].clone();
    assert!(uri.ends_with("/?readPreference=nearest"), "{uri}");
    assert_eq!(
        (server.running_processes().len(), super::common::shards(&uri)),
        (4, vec!["rs0-0".to_owned()])
    );
    server.stop().unwrap();
    home.assert_clear(&[], &[]);
}
