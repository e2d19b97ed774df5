//! Replica sets of mongod, and the shards, the config server and the routers of a sharded cluster.

use crate::admin::MongoAdmin;
use crate::command_error::CommandError;
use crate::probe::probe_seeds;
use crate::protocol::{Deployment, MongoOptions};
use dyno_config::server::{Part, ServerSpec, Topology};
use dyno_db::cluster::{ClusterError, ProcessGroup};
use dyno_db::probe::NEVER;
use dyno_db::servers::ServerNode;
use dyno_db::target_error::TargetError;
use dyno_types::bson::{self, kind};
use std::sync::Arc;

impl From<CommandError> for ClusterError {
    fn from(why: CommandError) -> Self {
        ClusterError::Database(why.into())
    }
}

/// Makes the replica sets of an instance, and waits until each has elected its primary.
///
/// # Errors
/// A member refuses, or a set has no primary in time.
pub(super) fn form(group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
    let (spec, sets) = (group.spec, sets(group.spec, group.nodes));
    if !group.made {
        sets.iter().try_for_each(|set| group.retry_until_ready(|| initiate(spec, set)))?;
    }
    group.retry_until_ready(|| sets.iter().try_for_each(|set| elected(spec, set)))
}

/// Tells routers of the shards, unless that has been made, and waits until they know them all.
///
/// # Errors
/// A router refuses, or does not know all in time.
pub(super) fn join(group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
    let (spec, nodes) = (group.spec, group.nodes);
    if !group.made {
        group.retry_until_ready(|| add_shards(spec, nodes))?;
    }
    group.retry_until_ready(|| know_shards(spec, nodes))
}

/// The name of the replica set that a process belongs to.
pub(super) fn set_name(spec: &ServerSpec, node: &ServerNode) -> String {
    match spec.part(node.number as u32) {
        Part::Config => format!("cfg{}", node.instance),
        Part::Data { shard } if spec.topology == Topology::Sharded => format!("rs{}-{shard}", node.instance),
        _ => format!("rs{}", node.instance),
    }
}

fn host(node: &ServerNode) -> String {
    node.socket_address().to_string()
}

/// A direct connection to one process.
fn member(node: &ServerNode) -> Result<MongoAdmin, ClusterError> {
    let uri = format!("mongodb://{}/?directConnection=true", host(node));
    let options = Arc::new(MongoOptions::from_uri(&uri).map_err(TargetError::from)?);
    let (deployment, _): (Deployment, _) = probe_seeds(&options, None, NEVER)?;
    Ok(MongoAdmin::new(&options, None, &deployment))
}

fn part(spec: &ServerSpec, node: &ServerNode) -> Part {
    spec.part(node.number as u32)
}

fn routers<'a>(spec: &ServerSpec, nodes: &[&'a ServerNode]) -> Vec<&'a ServerNode> {
    nodes.iter().copied().filter(|node| part(spec, node) == Part::Router).collect()
}

/// The replica sets of an instance: its only one, or the config server's and each shard's.
fn sets<'a>(spec: &ServerSpec, nodes: &[&'a ServerNode]) -> Vec<Vec<&'a ServerNode>> {
    let mut sets: Vec<Vec<&ServerNode>> = Vec::new();
    for node in nodes.iter().copied().filter(|node| part(spec, node) != Part::Router) {
        match sets.last_mut().filter(|set| part(spec, set[0]) == part(spec, node)) {
            Some(set) => set.push(node),
            None => sets.push(vec![node]),
        }
    }
    sets
}

/// Makes a replica set of them; one that has been made stays as it is.
fn initiate(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    let initiated = member(nodes[0])?.initialize(&|out| {
        bson::put_head(out, kind::DOCUMENT, "replSetInitiate");
        let config = bson::open(out);
        bson::put_string(out, "_id", &set_name(spec, nodes[0]));
        if part(spec, nodes[0]) == Part::Config {
            bson::put_boolean(out, "configsvr", true);
        }
        bson::put_head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        for (number, node) in nodes.iter().enumerate() {
            bson::put_item_head(out, kind::DOCUMENT, number as u32);
            let member = bson::open(out);
            bson::put_int32(out, "_id", number as i32);
            bson::put_string(out, "host", &host(node));
            bson::close(out, member);
        }
        bson::close(out, list);
        bson::close(out, config);
    });
    Ok(initiated?)
}

/// One member is primary and all others are secondaries.
fn elected(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    let set = set_name(spec, nodes[0]);
    let status = member(nodes[0])?.run_on("admin", &|out| bson::put_int32(out, "replSetGetStatus", 1))?;
    let states: Vec<i64> = (0..nodes.len())
        .filter_map(|i| {
            bson::element_at_path(&status, &format!("members.{i}.state")).and_then(|state| state.as_i64())
        })
        .collect();
    let count = |state: i64| states.iter().filter(|s| **s == state).count();
    // 1 is primary, 2 is secondary.
    if count(1) != 1 || count(1) + count(2) != nodes.len() {
        return Err(ClusterError::States { set, states });
    }
    let hosts: Vec<String> = nodes.iter().map(|node| host(node)).collect();
    let uri = format!("mongodb://{}/?replicaSet={set}", hosts.join(","));
    let options = MongoOptions::from_uri(&uri).map_err(TargetError::from)?;
    probe_seeds(&Arc::new(options), None, NEVER)?;
    Ok(())
}

/// Tells a router of every shard; of one that it knows, too.
fn add_shards(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    let router = member(routers(spec, nodes).first().ok_or(ClusterError::NoRouter)?)?;
    for set in sets(spec, nodes).iter().filter(|set| part(spec, set[0]) != Part::Config) {
        let hosts: Vec<String> = set.iter().map(|node| host(node)).collect();
        let place = format!("{}/{}", set_name(spec, set[0]), hosts.join(","));
        router.run_on("admin", &|out| bson::put_string(out, "addShard", &place))?;
    }
    Ok(())
}

/// Every router knows every shard.
fn know_shards(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), ClusterError> {
    for node in routers(spec, nodes) {
        let listed = member(node)?.run_on("admin", &|out| bson::put_int32(out, "listShards", 1))?;
        let shards =
            bson::element_at_path(&listed, "shards").and_then(|e| e.as_document()).unwrap_or_default();
        let known = bson::read_elements(shards).into_iter().flatten().flatten().count();
        let all = spec.primaries() as usize;
        if known != all {
            let (node, known) = (node.name.clone(), known.to_string());
            return Err(ClusterError::Unacquainted { node, known, what: "shards", all });
        }
    }
    Ok(())
}
