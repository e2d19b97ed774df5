//! Clusters of Dragonfly. Its nodes do not speak with each other: whoever manages them tells each node which slots are whose
//! (`DFLYCLUSTER CONFIG`, on the port for administration), again after every start, because a node keeps neither that nor its
//! name. Source: docs/cluster-mode.md of Dragonfly.

use crate::cluster::{COMMAND, ClusterError, primary_of};
use crate::redis::client::Client;
use crate::redis::cluster as redis;
use crate::servers::{Node, admin_port, password};
use dyno_config::server::ServerSpec;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// The name that a node has since its start; versions before 1.14 tell it elsewhere.
fn name(spec: &ServerSpec, node: &Node, patience: Duration) -> Result<String, ClusterError> {
    let client = |socket| Client::connect(socket, password(spec).as_deref(), patience);
    let told = client(node.socket())?.call(&["CLUSTER", "MYID"]);
    let told = told.or_else(|_| client(admin_socket(node))?.call(&["DFLYCLUSTER", "MYID"]))?;
    match told.text() {
        "" => Err(ClusterError::Nameless(node.name.clone())),
        name => Ok(name.to_owned()),
    }
}

fn admin_socket(node: &Node) -> SocketAddr {
    SocketAddr::new(node.address, admin_port(node.port))
}

/// Whose which slots are: contiguous ranges for the primaries, each with its replicas.
fn shards(spec: &ServerSpec, nodes: &[&Node], names: &[String]) -> Value {
    let primaries = spec.primaries();
    let node = |i: usize| json!({"id": names[i], "ip": nodes[i].address.to_string(), "port": nodes[i].port});
    let shard = |i: u32| {
        let (start, end) = redis::slots(i, primaries);
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
pub fn assign(spec: &ServerSpec, nodes: &[&Node], absent: bool) -> Result<(), ClusterError> {
    // Who may be absent is not waited for long.
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
        admin.call(&["DFLYCLUSTER", "CONFIG", &text])?;
        Ok(())
    })
}
