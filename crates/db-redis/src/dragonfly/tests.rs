//! Tests of what no server at hand speaks, by scripted servers that answer as its documents say.

use crate::cluster as redis;
use crate::dragonfly::server::DragonflyServer;
use dyno_config::server::ServerSpec;
use dyno_db::cluster::{ClusterError, ProcessGroup};
use dyno_db::servers::{DatabaseServer, ServerNode};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

#[test]
fn slots_are_contiguous_and_all_of_them() {
    for n in [1, 3, 7, 1000] {
        let ranges: Vec<(u32, u32)> = (0..n).map(|i| redis::slots_of_primary(i, n)).collect();
        assert_eq!((ranges[0].0, ranges[n as usize - 1].1), (0, 16_383));
        assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
    }
    assert_eq!(redis::slots_of_primary(1, 3), (5461, 10_921));
}

/// Commands that the nodes of a scripted cluster have received, by port.
pub type ReceivedCommands = Arc<Mutex<BTreeMap<u16, Vec<Vec<String>>>>>;

/// A node of Dragonfly in cluster mode: until it is told a configuration its state is "fail", and only the port for
/// administration takes one.
struct Dragonfly {
    node: ServerNode,
}

fn words(reader: &mut BufReader<TcpStream>) -> Option<Vec<String>> {
    let mut line = String::new();
    let mut number = |reader: &mut BufReader<TcpStream>| {
        line.clear();
        reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
        line[1..].trim().parse::<usize>().ok()
    };
    let count = number(reader)?;
    (0..count)
        .map(|_| {
            let mut text = vec![0; number(reader)? + 2];
            reader.read_exact(&mut text).ok()?;
            text.truncate(text.len() - 2);
            String::from_utf8(text).ok()
        })
        .collect()
}

fn answer(told: &ReceivedCommands, port: u16, is_admin: bool, words: &[String]) -> String {
    let mut told = told.lock().unwrap();
    let all = told.entry(port).or_default();
    let has = |what: &str| all.iter().any(|words| words[0] == what);
    let text = |text: String| format!("${}\r\n{text}\r\n", text.len());
    match (words[0].as_str(), words.get(1).map(String::as_str)) {
        ("CLUSTER", Some("MYID")) => text(format!("id-{port}")),
        ("CLUSTER", Some("INFO")) => {
            let (state, slots) = if has("DFLYCLUSTER") { ("ok", 16_384) } else { ("fail", 0) };
            text(format!(
                "cluster_state:{state}\r\ncluster_slots_assigned:{slots}\r\ncluster_slots_ok:{slots}\r\n"
            ))
        }
        ("INFO", _) if has("REPLICAOF") => text("role:replica\r\nmaster_link_status:up\r\n".into()),
        ("INFO", _) => text("role:master\r\nconnected_slaves:0\r\n".into()),
        ("DFLYCLUSTER", _) if !is_admin => {
            "-ERR DflyCluster command allowed only under admin port\r\n".to_owned()
        }
        ("DFLYCLUSTER" | "REPLICAOF", _) => {
            all.push(words.to_vec());
            "+OK\r\n".to_owned()
        }
        _ => "-ERR unknown command\r\n".to_owned(),
    }
}

impl Dragonfly {
    /// Listens on two ports that are 10,000 apart, until the test ends.
    fn start(told: &ReceivedCommands, number: usize) -> Dragonfly {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let pair = (0..1_000).find_map(|_| {
            let port = dyno_localhost::port::free_port().ok().filter(|port| *port < 55_000)?;
            Some((
                port,
                TcpListener::bind((here, port)).ok()?,
                TcpListener::bind((here, port + 10_000)).ok()?,
            ))
        });
        let (port, own, admin) = pair.unwrap();
        for (listener, is_admin) in [(own, false), (admin, true)] {
            let told = told.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let mut reader = BufReader::new(stream);
                    while let Some(words) = words(&mut reader) {
                        let answer = answer(&told, port, is_admin, &words);
                        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
                            break;
                        }
                    }
                }
            });
        }
        let home = std::path::PathBuf::from("/nowhere");
        let node = ServerNode {
            name: format!("dragonfly-{port}"),
            address: here,
            port,
            home: home.clone(),
            data: home,
            instance: 0,
            number,
            cores: None,
            config: None,
        };
        Dragonfly { node }
    }
}

fn spec(text: &str) -> ServerSpec {
    serde_json::from_str(text).unwrap()
}

#[test]
fn nodes_of_dragonfly_are_told_whose_which_slots_are() {
    let told = ReceivedCommands::default();
    let spec = spec(r#"{"kind": "dragonfly", "topology": "cluster", "members": 3, "replicas": 1}"#);
    spec.check().unwrap();
    let all: Vec<Dragonfly> = (0..6).map(|number| Dragonfly::start(&told, number)).collect();
    let nodes: Vec<&ServerNode> = all.iter().map(|one| &one.node).collect();
    DragonflyServer.form(&ProcessGroup { spec: &spec, nodes: &nodes, made: false, control: None }).unwrap();
    let told_before = told.lock().unwrap().clone();
    let ports: Vec<u16> = nodes.iter().map(|node| node.port).collect();
    let shard = |i: usize, start: u32, end: u32| {
        let node = |i: usize| serde_json::json!({"id": format!("id-{}", ports[i]), "ip": "127.0.0.1", "port": ports[i]});
        serde_json::json!({
            "slot_ranges": [{"start": start, "end": end}], "master": node(i), "replicas": [node(i + 3)],
        })
    };
    let expected =
        serde_json::Value::from(vec![shard(0, 0, 5460), shard(1, 5461, 10_921), shard(2, 10_922, 16_383)]);
    for (i, port) in ports.iter().enumerate() {
        let commands = &told_before[port];
        let config = commands.last().unwrap();
        assert_eq!((config[0].as_str(), config[1].as_str()), ("DFLYCLUSTER", "CONFIG"));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&config[2]).unwrap(), expected);
        let copies = commands.iter().find(|words| words[0] == "REPLICAOF");
        let primary = (i >= 3).then(|| ports[i - 3].to_string());
        assert_eq!(copies.map(|words| words[2].clone()), primary, "node {i}");
    }
    // One that was started again knows nothing any more: all are told, and it copies whom it copied.
    told.lock().unwrap().remove(&ports[4]);
    DragonflyServer.rejoin(&spec, &nodes, 4).unwrap();
    let after = told.lock().unwrap().clone();
    assert_eq!(after[&ports[4]][0][..2], ["REPLICAOF".to_owned(), "127.0.0.1".to_owned()]);
    assert!(ports.iter().all(|port| after[port].len() > told_before[port].len() || *port == ports[4]));
}

#[test]
fn copies_of_one_primary_are_told_whose_they_are() {
    let told = ReceivedCommands::default();
    let spec = spec(r#"{"kind": "dragonfly", "topology": "replication", "replicas": 2}"#);
    spec.check().unwrap();
    assert_eq!((spec.primaries(), spec.processes()), (1, 3));
    let all: Vec<Dragonfly> = (0..3).map(|number| Dragonfly::start(&told, number)).collect();
    let nodes: Vec<&ServerNode> = all.iter().map(|one| &one.node).collect();
    redis::make_all_replicas(&spec, &nodes).unwrap();
    // The scripted primary does not count them.
    let why = redis::check_replicas(&spec, &nodes).unwrap_err();
    assert!(matches!(why, ClusterError::Behind { counted: 0, all: 2, .. }), "{why}");
    let told = told.lock().unwrap();
    assert!(told.get(&nodes[0].port).is_none_or(Vec::is_empty));
    for node in &nodes[1..] {
        assert_eq!(
            told[&node.port],
            [["REPLICAOF", "127.0.0.1", &nodes[0].port.to_string()].map(str::to_owned)]
        );
    }
}
