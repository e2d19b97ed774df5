//! Redis, Valkey and KeyDB: clusters and copies of a primary. Dragonfly says the same of replication and of the whole.

use crate::client::{Client, RespError};
use dyno_config::server::{ServerSpec, Topology};
use dyno_db::cluster::{COMMAND, ClusterError, ProcessGroup, primary_of};
use dyno_db::servers::ServerNode;
use std::net::SocketAddr;

/// Hash slots of a cluster.
const SLOTS: u32 = 16_384;

impl From<RespError> for ClusterError {
    fn from(why: RespError) -> Self {
        ClusterError::Database(why.into())
    }
}

/// Makes a cluster of nodes, or has nodes that are one by their data meet again.
///
/// # Errors
/// A node refuses, or they are not whole in time.
pub fn form_cluster(group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
    let (spec, nodes) = (group.spec, group.nodes);
    if group.made {
        meet_again(spec, nodes)?;
    } else {
        slots_and_meeting(spec, nodes)?;
        group.retry_until_ready(|| all_know_all(spec, nodes))?;
        attach(spec, nodes)?;
    }
    // Addresses of before stand in data alone; what nodes are told to announce is their user's affair.
    let announces = spec.options.keys().any(|key| key.starts_with("cluster-announce-"));
    group.retry_until_ready(|| {
        if group.made && !announces {
            check_addresses(spec, nodes)?;
        }
        check_whole(spec, nodes, true)
    })
}

/// Has all nodes but the first copy the first, and waits until they do.
///
/// # Errors
/// A node refuses, or they are not in step in time.
pub fn replicate_first(group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
    make_all_replicas(group.spec, group.nodes)?;
    group.retry_until_ready(|| check_replicas(group.spec, group.nodes))
}

/// Has a copy that was started again, number `i`, copy its primary again.
///
/// # Errors
/// It does not answer or refuses.
pub fn follow_again(spec: &ServerSpec, nodes: &[&ServerNode], i: usize) -> Result<(), ClusterError> {
    let is_copy = spec.topology == Topology::Replication && i > 0;
    if is_copy { make_replica(spec, nodes[0], nodes[i]) } else { Ok(()) }
}

/// The password of `requirepass`.
pub(crate) fn password(spec: &ServerSpec) -> Option<String> {
    spec.options.get("requirepass").map(ToString::to_string).filter(|password| !password.is_empty())
}

fn client(spec: &ServerSpec, node: &ServerNode) -> Result<Client, RespError> {
    Client::connect(node.socket_address(), password(spec).as_deref(), COMMAND)
}

/// First and last slot of primary `i` of `n`.
pub fn slots_of_primary(i: u32, n: u32) -> (u32, u32) {
    (SLOTS * i / n, SLOTS * (i + 1) / n - 1)
}

/// Gives every primary its slots and introduces the nodes to each other.
///
/// # Errors
/// A node does not answer or refuses.
fn slots_and_meeting(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    let primaries = spec.primaries();
    for (i, node) in nodes.iter().enumerate() {
        let mut client = client(spec, node)?;
        // Different epochs from the start: equal ones would be told apart one by one, by gossip.
        client.send_command(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()])?;
        if (i as u32) < primaries {
            let (from, to) = slots_of_primary(i as u32, primaries);
            // One by one, as servers before 7.0 need it.
            let all: Vec<String> = (from..=to).map(|slot| slot.to_string()).collect();
            let mut words = vec!["CLUSTER", "ADDSLOTS"];
            words.extend(all.iter().map(String::as_str));
            client.send_command(&words)?;
        }
    }
    let mut first = client(spec, nodes[0])?;
    for node in &nodes[1..] {
        first.send_command(&["CLUSTER", "MEET", &node.address.to_string(), &node.port.to_string()])?;
    }
    Ok(())
}

/// Nodes that know each other from their data are told where the others are now: ports and addresses may be new.
fn meet_again(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    for node in nodes {
        let mut client = client(spec, node)?;
        for other in nodes.iter().filter(|other| other.socket_address() != node.socket_address()) {
            client.send_command(&["CLUSTER", "MEET", &other.address.to_string(), &other.port.to_string()])?;
        }
    }
    Ok(())
}

/// Checks that no node knows another by an address that it had before: clients would be sent there, where nothing is any more, or
/// a server of another cluster.
///
/// # Errors
/// A node does not answer, or knows an address that is none of the nodes'.
fn check_addresses(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    let known: Vec<SocketAddr> = nodes.iter().map(|node| node.socket_address()).collect();
    for node in nodes {
        let told = client(spec, node)?.send_command(&["CLUSTER", "NODES"])?;
        if let Some(address) = unknown_address(told.as_text(), &known) {
            return Err(ClusterError::OldAddress { node: node.name.clone(), address: address.to_owned() });
        }
    }
    Ok(())
}

/// An address in the answer to `CLUSTER NODES` that is none of these. A node that has met no other says none of its own.
fn unknown_address<'a>(told: &'a str, known: &[SocketAddr]) -> Option<&'a str> {
    let addresses = told.lines().filter_map(|line| line.split(' ').nth(1)?.split(['@', ',']).next());
    let mut given = addresses.filter(|address| !address.starts_with(':'));
    given.find(|address| !known.iter().any(|socket| is_same(address, *socket)))
}

/// Redis writes addresses of version 6 without brackets.
fn is_same(address: &str, socket: SocketAddr) -> bool {
    let (ip, port) = (socket.ip(), socket.port());
    // Who listens everywhere is known by the address that it was met at.
    match ip.is_unspecified() {
        true => address.ends_with(&format!(":{port}")),
        false => address == format!("{ip}:{port}"),
    }
}

fn info(client: &mut Client, section: &[&str], key: &'static str) -> Result<String, ClusterError> {
    let text = client.send_command(section)?;
    let value = text.as_text().lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let lacking = || ClusterError::Lacking { command: section.join(" "), key };
    value.map(|value| value.trim().to_owned()).ok_or_else(lacking)
}

/// Checks that every node knows all others.
///
/// # Errors
/// A node does not answer, or knows too few.
fn all_know_all(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    for node in nodes {
        let mut client = client(spec, node)?;
        let known = info(&mut client, &["CLUSTER", "INFO"], "cluster_known_nodes")?;
        if known != nodes.len().to_string() {
            let (node, all) = (node.name.clone(), nodes.len());
            return Err(ClusterError::Unacquainted { node, known, what: "nodes", all });
        }
        // A node that is still shaking hands is known by a name that it does not have.
        if client.send_command(&["CLUSTER", "NODES"])?.as_text().contains("handshake") {
            return Err(ClusterError::Meeting(node.name.clone()));
        }
    }
    Ok(())
}

/// Takes a step with every replica of a cluster: primary first.
///
/// # Errors
/// As `step`.
pub fn each_replica(
    spec: &ServerSpec,
    nodes: &[&ServerNode],
    mut step: impl FnMut(&ServerNode, &ServerNode) -> Result<(), ClusterError>,
) -> Result<(), ClusterError> {
    let mut replicas = nodes.iter().enumerate().filter_map(|(i, node)| Some((primary_of(spec, i)?, node)));
    replicas.try_for_each(|(primary, node)| step(nodes[primary], node))
}

/// Has the replicas of a Redis cluster copy their primaries.
fn attach(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    each_replica(spec, nodes, |primary, node| {
        let name = client(spec, primary)?.send_command(&["CLUSTER", "MYID"])?;
        client(spec, node)?.send_command(&["CLUSTER", "REPLICATE", name.as_text()])?;
        Ok(())
    })
}

/// Has a node copy another one.
pub fn make_replica(spec: &ServerSpec, primary: &ServerNode, node: &ServerNode) -> Result<(), ClusterError> {
    let (address, port) = (primary.address.to_string(), primary.port.to_string());
    client(spec, node)?.send_command(&["REPLICAOF", &address, &port])?;
    Ok(())
}

/// Has all nodes but the first copy the first.
pub fn make_all_replicas(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    nodes[1..].iter().try_for_each(|node| make_replica(spec, nodes[0], node))
}

/// Every copy has its primary's data, and the primary counts them all.
pub fn check_replicas(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    for node in &nodes[1..] {
        let link = info(&mut client(spec, node)?, &["INFO", "replication"], "master_link_status")?;
        if link != "up" {
            return Err(ClusterError::Link { node: node.name.clone(), status: link });
        }
    }
    let (counted, all) = (copies_in_step(&mut client(spec, nodes[0])?)?, nodes.len() - 1);
    if counted == all {
        return Ok(());
    }
    Err(ClusterError::Behind { primary: nodes[0].name.clone(), counted, all })
}

/// Counts the copies of a primary that have all it has.
///
/// Redis calls a copy `online` when the copy has its first data, but may send it what follows up to a second later
/// (`repl-diskless-sync`, the default since 7.0). So a key is written and removed, and acknowledgements of that are counted.
/// Dragonfly knows neither and tells apart the two states itself.
fn copies_in_step(primary: &mut Client) -> Result<usize, ClusterError> {
    let told = primary.send_command(&["INFO", "replication"])?;
    let copies = || told.as_text().lines().filter(|line| line.starts_with("slave"));
    let online = copies().filter(|copy| copy.contains("state=online")).count();
    if online == 0 {
        return Ok(copies().filter(|copy| copy.contains("state=stable_sync")).count());
    }
    let written = (0..KEYS).any(|number| {
        // In a cluster a node takes the keys of its own slots alone.
        let key = format!("dyno in step {number}");
        primary
            .send_command(&["SET", &key, "1", "PX", "1000"])
            .and_then(|_| primary.send_command(&["DEL", &key]))
            .is_ok()
    });
    if !written {
        return Err(ClusterError::NothingWritten);
    }
    let acknowledged = primary.send_command(&["WAIT", &online.to_string(), "100"])?;
    acknowledged.as_text().parse().map_err(|_| ClusterError::Wait(acknowledged.as_text().to_owned()))
}

/// Keys that are tried: one of them is in the slots of a node that has a thousandth of all.
const KEYS: u32 = 10_000;

/// Checks that every node says that the cluster is whole, that every replica has its primary's data, and, where primaries say
/// whether replicas are `in_step`, that they are.
///
/// # Errors
/// Says what is not yet so.
pub fn check_whole(spec: &ServerSpec, nodes: &[&ServerNode], in_step: bool) -> Result<(), ClusterError> {
    let (mut replicas, mut counted) = (0, 0);
    for node in nodes {
        let mut client = client(spec, node)?;
        let state = info(&mut client, &["CLUSTER", "INFO"], "cluster_state")?;
        let covered = info(&mut client, &["CLUSTER", "INFO"], "cluster_slots_ok")?;
        if state != "ok" || covered != SLOTS.to_string() {
            let node = node.name.clone();
            return Err(ClusterError::NotWhole { node, state, covered, all: SLOTS });
        }
        // After a restart a replica may have become a primary and the other way round: their numbers count.
        if info(&mut client, &["INFO", "replication"], "role")? == "master" {
            counted += copies_in_step(&mut client)?;
        } else {
            replicas += 1;
            let link = info(&mut client, &["INFO", "replication"], "master_link_status")?;
            if link != "up" {
                return Err(ClusterError::Link { node: node.name.clone(), status: link });
            }
        }
    }
    let all = spec.primaries() * spec.replicas;
    if replicas != all {
        return Err(ClusterError::Replicas { found: replicas, all });
    }
    if in_step && counted != all as usize {
        return Err(ClusterError::ReplicasBehind { counted, all });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a node of Redis 7.0 says it that was started again elsewhere: it has met one of the others so far.
    const NODES: &str = "\
07c37df 10.244.1.9:6379@16379,,tls-port=0 master - 0 1426238317239 4 connected 5461-10922
67ed2db 10.244.2.20:6379@16379 master - 1426238317741 1426238316232 3 connected 10923-16383
e7d1eec :6379@16379 myself,master - 0 0 1 connected 0-5460
";

    #[test]
    fn an_address_of_before_is_found() {
        let known =
            |all: &[&str]| -> Vec<SocketAddr> { all.iter().map(|one| one.parse().unwrap()).collect() };
        let now = known(&["10.244.0.7:6379", "10.244.1.9:6379", "10.244.2.31:6379"]);
        assert_eq!(unknown_address(NODES, &now), Some("10.244.2.20:6379"));
        assert_eq!(unknown_address(&NODES.replace("2.20", "2.31"), &now), None);
        // On one host ports are new.
        assert_eq!(
            unknown_address(NODES, &known(&["10.244.1.9:7000", "10.244.2.20:6379"])),
            Some("10.244.1.9:6379")
        );
        assert_eq!(unknown_address("a 127.0.0.1:7000@17000 master\n", &known(&["0.0.0.0:7000"])), None);
        assert_eq!(unknown_address("a fd00::1:6379@16379 master\n", &known(&["[fd00::1]:6379"])), None);
    }
}
