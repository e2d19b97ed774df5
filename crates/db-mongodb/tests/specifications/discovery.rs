//! Server discovery and monitoring: replies to hello and errors of applications in, descriptions of servers out.

use crate::documents::{document, object_id};
use crate::harness::{Checked, Mismatch, Suite, expect};
use dyno_db_mongodb::protocol::{
    ApplicationError, Handshake, MongoOptions, ServerType, Topology, TopologyServer, TopologyType,
    TopologyVersion,
};
use dyno_types::address::Address;
use serde_json::{Value, json};

#[test]
fn discovery_and_errors() {
    Suite::named("server-discovery-and-monitoring").run();
}

/// A case has a URI, and phases with the topology that they lead to.
pub fn check(case: &Value, _data: &Value) -> Checked {
    let uri = case["uri"].as_str().unwrap();
    let options = MongoOptions::from_uri(uri).map_err(|refused| Mismatch(refused.to_string()))?;
    let mut topology = start(&options);
    for (number, phase) in case["phases"].as_array().unwrap().iter().enumerate() {
        for reply in phase["replies"].as_array().into_iter().flatten() {
            let Some(node) = node(&topology, reply[0].as_str().unwrap()) else { continue };
            match reply[1].as_object().unwrap().is_empty() {
                true => topology.check_failed(node, "no answer"),
                false => topology.update_from_hello(node, &document(&reply[1]), Some(0)),
            }
        }
        for error in phase["errors"].as_array().into_iter().flatten() {
            apply(&mut topology, error);
        }
        compare(&topology, &phase["outcome"])
            .map_err(|Mismatch(why)| Mismatch(format!("phase {number}: {why}")))?;
    }
    Ok(())
}

fn start(options: &MongoOptions) -> Topology {
    let kind = match () {
        () if options.load_balanced => TopologyType::LoadBalanced,
        () if options.is_direct() => TopologyType::Single,
        () if options.replica_set.is_some() => TopologyType::ReplicaSetNoPrimary,
        () => TopologyType::Unknown,
    };
    let address = |address: &Address| match address {
        Address::Tcp(host, port) if host.contains(':') => format!("[{host}]:{port}"),
        Address::Tcp(host, port) => format!("{host}:{port}"),
        Address::Unix(path) => path.display().to_string(),
    };
    let addresses: Vec<String> = options.addresses.iter().map(address).collect();
    Topology::new(kind, options.replica_set.clone(), &addresses)
}

/// Number of the server of an address that was not removed.
fn node(topology: &Topology, address: &str) -> Option<u16> {
    let address = address.to_ascii_lowercase();
    let found = topology.all_servers().iter().position(|server| !server.removed && server.address == address);
    found.map(|at| at as u16)
}

fn apply(topology: &mut Topology, error: &Value) {
    let Some(node) = node(topology, error["address"].as_str().unwrap()) else { return };
    let current = topology.all_servers()[usize::from(node)].generation;
    let generation = error["generation"].as_u64().map_or(current, |number| number as u32);
    let complete = error["when"] == "afterHandshakeCompletes";
    let step = if complete { Handshake::Complete } else { Handshake::Hello };
    let reply = error["response"].is_object().then(|| document(&error["response"]));
    let error = match (error["type"].as_str().unwrap(), &reply) {
        ("network", _) => ApplicationError::Network(step),
        ("timeout", _) => ApplicationError::Timeout(step),
        (_, Some(reply)) if complete => ApplicationError::Reply(reply),
        (_, Some(reply)) => ApplicationError::HandshakeReply(reply),
        (other, None) => panic!("{other}"),
    };
    topology.note_failure(node, generation, error);
}

fn compare(topology: &Topology, expected: &Value) -> Checked {
    let kind = kind_of(topology.topology_type());
    expect(kind == expected["topologyType"], || format!("topology type {kind}"))?;
    let name = topology.set_name();
    expect(json!(name) == expected["setName"], || format!("set name {name:?}"))?;
    let minutes = topology.session_minutes();
    expect(json!(minutes) == expected["logicalSessionTimeoutMinutes"], || format!("sessions {minutes:?}"))?;
    if let Some(compatible) = expected["compatible"].as_bool() {
        let why = topology.describe_incompatibility();
        expect(why.is_none() == compatible, || format!("compatible: {why:?}"))?;
    }
    let (version, election) = topology.newest_election();
    if let Some(most) = expected.get("maxSetVersion") {
        expect(json!(version) == *most, || format!("largest version {version:?}"))?;
    }
    if let Some(most) = expected.get("maxElectionId") {
        let most = (!most.is_null()).then(|| object_id(&most["$oid"]));
        expect(election == most, || format!("largest election {election:?}"))?;
    }
    let servers = expected["servers"].as_object().unwrap();
    let present = topology.all_servers().iter().filter(|server| !server.removed).count();
    expect(present == servers.len(), || format!("{present} servers"))?;
    for (address, server) in servers {
        let found = node(topology, address).ok_or_else(|| Mismatch(format!("{address} is missing")))?;
        compare_server(&topology.all_servers()[usize::from(found)], server)
            .map_err(|Mismatch(why)| Mismatch(format!("{address}: {why}")))?;
    }
    Ok(())
}

fn compare_server(server: &TopologyServer, expected: &Value) -> Checked {
    let description = &server.description;
    let kind = server_kind(description.kind);
    expect(kind == expected["type"], || format!("type {kind}"))?;
    if let Some(name) = expected.get("setName") {
        expect(json!(description.set_name) == *name, || format!("set name {:?}", description.set_name))?;
    }
    if let Some(version) = expected.get("setVersion") {
        expect(json!(description.set_version) == *version, || {
            format!("version {:?}", description.set_version)
        })?;
    }
    if let Some(id) = expected.get("electionId") {
        let id = (!id.is_null()).then(|| object_id(&id["$oid"]));
        expect(description.election_id == id, || format!("election {:?}", description.election_id))?;
    }
    if let Some(version) = expected.get("topologyVersion") {
        let reply = document(&json!({ "topologyVersion": version }));
        let found = description.topology_version;
        expect(found == TopologyVersion::from_reply(&reply), || format!("topology version {found:?}"))?;
    }
    if let Some(error) = expected.get("error").and_then(Value::as_str) {
        let found = description.error.as_deref().unwrap_or_default();
        expect(found.contains(error), || format!("error {found:?}"))?;
    }
    if let Some(generation) = expected["pool"]["generation"].as_u64() {
        expect(u64::from(server.generation) == generation, || format!("generation {}", server.generation))?;
    }
    Ok(())
}

fn kind_of(kind: TopologyType) -> &'static str {
    match kind {
        TopologyType::Unknown => "Unknown",
        TopologyType::Single => "Single",
        TopologyType::Sharded => "Sharded",
        TopologyType::ReplicaSetNoPrimary => "ReplicaSetNoPrimary",
        TopologyType::ReplicaSetWithPrimary => "ReplicaSetWithPrimary",
        TopologyType::LoadBalanced => "LoadBalanced",
    }
}

fn server_kind(kind: ServerType) -> &'static str {
    match kind {
        ServerType::Unknown => "Unknown",
        ServerType::PossiblePrimary => "PossiblePrimary",
        ServerType::Standalone => "Standalone",
        ServerType::Mongos => "Mongos",
        ServerType::RsPrimary => "RSPrimary",
        ServerType::RsSecondary => "RSSecondary",
        ServerType::RsArbiter => "RSArbiter",
        ServerType::RsOther => "RSOther",
        ServerType::RsGhost => "RSGhost",
        ServerType::LoadBalancer => "LoadBalancer",
    }
}
