//! Clusters of Dragonfly. Its nodes do not speak with each other: their manager tells each node which slots are whose
//! (`DFLYCLUSTER CONFIG`, on the port for administration), again after every start, because a node keeps neither that nor its
//! name. Source: cluster-mode.md in Dragonfly's documentation.

use crate::client::Client;
use crate::cluster as redis;
use crate::cluster::password;
use dyno_config::server::ServerSpec;
use dyno_db::cluster::{COMMAND, ClusterError, ProcessGroup, primary_of};
use dyno_db::servers::ServerNode;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// Where a node takes commands for its administration.
pub(super) fn admin_port(port: u16) -> u16 {
    port + 10_000
}

/// Makes a cluster of nodes.
///
/// # Errors
/// A node refuses, or they are not whole in time.
pub fn form_dragonfly_cluster(group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
    let (spec, nodes) = (group.spec, group.nodes);
    redis::each_replica(spec, nodes, |primary, node| redis::make_replica(spec, primary, node))?;
    assign(spec, nodes, false)?;
    group.retry_until_ready(|| redis::check_whole(spec, nodes, false))
}

/// Has node number `i`, which was started again, copy its primary, and tells all nodes its new name.
///
/// # Errors
/// It does not answer, or a node refuses.
pub fn rejoin_node(spec: &ServerSpec, nodes: &[&ServerNode], i: usize) -> Result<(), ClusterError> {
    if let Some(primary) = primary_of(spec, i) {
        redis::make_replica(spec, nodes[primary], nodes[i])?;
    }
    assign(spec, nodes, true)
}

/// The name that a node has since its start; versions before 1.14 tell it elsewhere.
fn name(spec: &ServerSpec, node: &ServerNode, patience: Duration) -> Result<String, ClusterError> {
    let client = |socket| Client::connect(socket, password(spec).as_deref(), patience);
    let told = client(node.socket_address())?.send_command(&["CLUSTER", "MYID"]);
    let told = told.or_else(|_| client(admin_socket(node))?.send_command(&["DFLYCLUSTER", "MYID"]))?;
    match told.as_text() {
        "" => Err(ClusterError::Nameless(node.name.clone())),
        name => Ok(name.to_owned()),
    }
}

fn admin_socket(node: &ServerNode) -> SocketAddr {
    SocketAddr::new(node.address, admin_port(node.port))
}

/// Shards and the slots of each: contiguous ranges for the primaries, each with its replicas.
fn shards(spec: &ServerSpec, nodes: &[&ServerNode], names: &[String]) -> Value {
    let primaries = spec.primaries();
    let node = |i: usize| json!({"id": names[i], "ip": nodes[i].address.to_string(), "port": nodes[i].port});
    let shard = |i: u32| {
        let (start, end) = redis::slots_of_primary(i, primaries);
        let replicas = (0..nodes.len()).filter(|r| primary_of(spec, *r) == Some(i as usize));
        json!({
            "slot_ranges": [{"start": start, "end": end}],
            "master": node(i as usize),
            "replicas": replicas.map(node).collect::<Vec<_>>(),
        })
    };
    (0..primaries).map(shard).collect()
}

/// Tells every node. Where some may be `absent`, those that cannot be reached are told of all the same.
fn assign(spec: &ServerSpec, nodes: &[&ServerNode], absent: bool) -> Result<(), ClusterError> {
    // Nodes that may be absent are not waited for long.
    let patience = if absent { Duration::from_secs(1) } else { COMMAND };
    let mut names = Vec::new();
    let mut there = Vec::new();
    for node in nodes {
        match name(spec, node, patience) {
            Ok(name) => {
                names.push(name);
                there.push(*node);
            }
            // Whatever its name was, it has another one when it comes back.
            Err(_) if absent => names.push(format!("absent-{}", node.port)),
            Err(why) => return Err(why),
        }
    }
    let text = shards(spec, nodes, &names).to_string();
    there.iter().try_for_each(|node| {
        let mut admin = Client::connect(admin_socket(node), password(spec).as_deref(), COMMAND)?;
        admin.send_command(&["DFLYCLUSTER", "CONFIG", &text])?;
        Ok(())
    })
}
