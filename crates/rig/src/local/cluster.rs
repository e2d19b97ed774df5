//! Redis clusters and replica sets of mongod: made once, awaited at every start.

use super::error::LocalError;
use super::resp::Client;
use super::servers::{Node, password, set_name};
use crate::mongo::{self, MongoAdmin};
use dyno_engine::Control;
use dyno_plan::server::{ServerSpec, Topology};
use dyno_types::bson::{self, kind};
use dyno_wire::mongodb::{Deployment, MongoOptions};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Hash slots of a Redis cluster.
const SLOTS: u32 = 16_384;

/// How long one command may take.
const COMMAND: Duration = Duration::from_secs(10);

/// How often it is looked whether somebody wants the end.
const LOOK: Duration = Duration::from_millis(5);

/// Forms every instance. Once `control` stops, `end` is called, which ends the servers: whatever is being waited for then
/// fails at once.
pub(crate) fn form_all(
    spec: &ServerSpec,
    instances: &[Vec<&Node>],
    made: bool,
    (control, end): (Option<&Control>, &dyn Fn()),
) -> Result<(), LocalError> {
    if spec.topology == Topology::Single {
        return Ok(());
    }
    let stopping = || control.is_some_and(Control::stopping);
    let formed = std::thread::scope(|scope| {
        let forming = scope.spawn(|| instances.iter().try_for_each(|nodes| form(spec, nodes, made, control)));
        while !forming.is_finished() {
            if stopping() {
                end();
            }
            std::thread::sleep(LOOK);
        }
        forming.join().unwrap_or_else(|_| Err(LocalError::Failed("forming the cluster failed".into())))
    });
    match formed {
        Err(_) if stopping() => {
            Err(LocalError::Failed(format!("{}: no longer waited for", instances[0][0].name)))
        }
        formed => formed,
    }
}

/// Makes what the topology says of the processes of one instance, unless their data say that it has been made.
pub(crate) fn form(
    spec: &ServerSpec,
    nodes: &[&Node],
    made: bool,
    control: Option<&Control>,
) -> Result<(), LocalError> {
    let patience = Duration::from_nanos(spec.ready_within.0);
    let failed = |why: String| LocalError::failed(format!("{} {:?}", nodes[0].name, spec.topology), why);
    let until = |step: &mut dyn FnMut() -> Result<(), String>| until(patience, control, step);
    match spec.topology {
        Topology::Single => Ok(()),
        Topology::Cluster => {
            if !made {
                slots_and_meeting(spec, nodes).map_err(failed)?;
                until(&mut || all_know_all(spec, nodes)).map_err(failed)?;
                replicate(spec, nodes).map_err(failed)?;
            } else {
                meet_again(spec, nodes).map_err(failed)?;
            }
            until(&mut || whole(spec, nodes)).map_err(failed)
        }
        Topology::ReplicaSet => {
            if !made {
                initiate(nodes).map_err(failed)?;
            }
            until(&mut || elected(nodes)).map_err(failed)
        }
    }
}

/// Tries until it works; the last reason if it does not.
fn until(
    patience: Duration,
    control: Option<&Control>,
    step: &mut dyn FnMut() -> Result<(), String>,
) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        match step() {
            Ok(()) => return Ok(()),
            Err(why) if control.is_some_and(Control::stopping) => return Err(why),
            Err(why) if begun.elapsed() > patience => {
                return Err(format!("not ready after {patience:?}: {why}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn client(spec: &ServerSpec, node: &Node) -> Result<Client, String> {
    Client::connect(node.socket(), password(spec).as_deref(), COMMAND)
}

/// First and last slot of primary `i` of `n`.
fn slots(i: u32, n: u32) -> (u32, u32) {
    (SLOTS * i / n, SLOTS * (i + 1) / n - 1)
}

fn slots_and_meeting(spec: &ServerSpec, nodes: &[&Node]) -> Result<(), String> {
    let primaries = spec.primaries();
    for (i, node) in nodes.iter().enumerate() {
        let mut client = client(spec, node)?;
        // Different epochs from the start: equal ones would be told apart one by one, by gossip.
        client.call(&["CLUSTER", "SET-CONFIG-EPOCH", &(i + 1).to_string()])?;
        if (i as u32) < primaries {
            let (from, to) = slots(i as u32, primaries);
            // One by one, as servers before 7.0 need it.
            let all: Vec<String> = (from..=to).map(|slot| slot.to_string()).collect();
            let mut words = vec!["CLUSTER", "ADDSLOTS"];
            words.extend(all.iter().map(String::as_str));
            client.call(&words)?;
        }
    }
    let mut first = client(spec, nodes[0])?;
    for node in &nodes[1..] {
        first.call(&["CLUSTER", "MEET", &node.address.to_string(), &node.port.to_string()])?;
    }
    Ok(())
}

/// Nodes that know each other from their data are told where the others are now: ports and addresses may be new.
fn meet_again(spec: &ServerSpec, nodes: &[&Node]) -> Result<(), String> {
    for node in nodes {
        let mut client = client(spec, node)?;
        for other in nodes.iter().filter(|other| other.socket() != node.socket()) {
            client.call(&["CLUSTER", "MEET", &other.address.to_string(), &other.port.to_string()])?;
        }
    }
    Ok(())
}

fn info(client: &mut Client, section: &[&str], key: &str) -> Result<String, String> {
    let text = client.call(section)?;
    let value = text.text().lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    value.map(|value| value.trim().to_owned()).ok_or_else(|| format!("{} has no {key}", section.join(" ")))
}

fn all_know_all(spec: &ServerSpec, nodes: &[&Node]) -> Result<(), String> {
    for node in nodes {
        let mut client = client(spec, node)?;
        let known = info(&mut client, &["CLUSTER", "INFO"], "cluster_known_nodes")?;
        if known != nodes.len().to_string() {
            return Err(format!("{} knows {known} nodes of {}", node.name, nodes.len()));
        }
        // A node that is still shaking hands is known by a name that it does not have.
        if client.call(&["CLUSTER", "NODES"])?.text().contains("handshake") {
            return Err(format!("{} is still meeting the others", node.name));
        }
    }
    Ok(())
}

/// Replicas come after the primaries, in turn.
fn replicate(spec: &ServerSpec, nodes: &[&Node]) -> Result<(), String> {
    let primaries = spec.primaries() as usize;
    let names = nodes[..primaries].iter().map(|node| {
        let name = client(spec, node)?.call(&["CLUSTER", "MYID"])?;
        Ok(name.text().to_owned())
    });
    let names: Vec<String> = names.collect::<Result<_, String>>()?;
    for (i, node) in nodes.iter().enumerate().skip(primaries) {
        client(spec, node)?.call(&["CLUSTER", "REPLICATE", &names[i % primaries]])?;
    }
    Ok(())
}

/// Every node says that the cluster is whole, and every replica has its primary's data.
fn whole(spec: &ServerSpec, nodes: &[&Node]) -> Result<(), String> {
    let mut replicas = 0;
    for node in nodes {
        let mut client = client(spec, node)?;
        let state = info(&mut client, &["CLUSTER", "INFO"], "cluster_state")?;
        let covered = info(&mut client, &["CLUSTER", "INFO"], "cluster_slots_ok")?;
        if state != "ok" || covered != SLOTS.to_string() {
            return Err(format!("{}: cluster_state:{state}, {covered} slots of {SLOTS}", node.name));
        }
        // After a restart a replica may have become a primary and the other way round: their numbers count.
        if info(&mut client, &["INFO", "replication"], "role")? == "slave" {
            replicas += 1;
            let link = info(&mut client, &["INFO", "replication"], "master_link_status")?;
            if link != "up" {
                return Err(format!("{}: master_link_status:{link}", node.name));
            }
        }
    }
    let wanted = spec.primaries() * spec.replicas;
    if replicas != wanted {
        return Err(format!("{replicas} replicas of {wanted}"));
    }
    Ok(())
}

fn host(node: &Node) -> String {
    node.socket().to_string()
}

/// A direct connection to one member.
fn member(node: &Node) -> Result<MongoAdmin, String> {
    let uri = format!("mongodb://{}/?directConnection=true", host(node));
    let options = Arc::new(MongoOptions::from_uri(&uri).map_err(|refused| refused.0)?);
    let (deployment, _): (Deployment, _) = mongo::probe(&options, None).map_err(|e| e.to_string())?;
    Ok(MongoAdmin::new(&options, None, &deployment))
}

fn initiate(nodes: &[&Node]) -> Result<(), String> {
    let initiated = member(nodes[0])?.run_on("admin", &|out| {
        bson::head(out, kind::DOCUMENT, "replSetInitiate");
        let config = bson::open(out);
        bson::string(out, "_id", &set_name(nodes[0].instance));
        bson::head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        for (number, node) in nodes.iter().enumerate() {
            bson::item(out, kind::DOCUMENT, number as u32);
            let member = bson::open(out);
            bson::int32(out, "_id", number as i32);
            bson::string(out, "host", &host(node));
            bson::close(out, member);
        }
        bson::close(out, list);
        bson::close(out, config);
    });
    initiated.map(drop)
}

/// One member is primary and all others are secondaries.
fn elected(nodes: &[&Node]) -> Result<(), String> {
    let status = member(nodes[0])?.run_on("admin", &|out| bson::int32(out, "replSetGetStatus", 1))?;
    let states: Vec<i64> = (0..nodes.len())
        .filter_map(|i| bson::path(&status, &format!("members.{i}.state")).and_then(|state| state.as_i64()))
        .collect();
    let count = |state: i64| states.iter().filter(|s| **s == state).count();
    // 1 is primary, 2 is secondary.
    if count(1) != 1 || count(1) + count(2) != nodes.len() {
        return Err(format!("the members' states are {states:?}"));
    }
    let hosts: Vec<String> = nodes.iter().map(|node| host(node)).collect();
    let uri = format!("mongodb://{}/?replicaSet={}", hosts.join(","), set_name(nodes[0].instance));
    let options = MongoOptions::from_uri(&uri).map_err(|refused| refused.0)?;
    mongo::probe(&Arc::new(options), None).map(drop).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_contiguous_and_all_of_them() {
        for n in [1, 3, 7, 1000] {
            let ranges: Vec<(u32, u32)> = (0..n).map(|i| slots(i, n)).collect();
            assert_eq!((ranges[0].0, ranges[n as usize - 1].1), (0, SLOTS - 1));
            assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        }
        assert_eq!(slots(1, 3), (5461, 10_921));
    }
}
