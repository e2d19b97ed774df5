//! Server selection with maximum staleness, and the moving average of round trips.

use crate::harness::{Checked, Mismatch, Suite, expect};
use dyno_db_mongodb::protocol::{
    MongoOptions, ServerDescription, ServerType, Topology, TopologyServer, TopologyType, nearest_servers,
    suitable_servers,
};
use serde_json::Value;

#[test]
fn servers_are_selected() {
    Suite::named("server-selection").run();
}

/// A case has servers and a read preference, or a round trip after others.
pub fn check(case: &Value, _data: &Value) -> Checked {
    if case["sample_ms"].is_number() {
        return check_average(case);
    }
    let options = match (options(case), case["error"] == true) {
        (Ok(options), false) => options,
        (Err(_), true) => return Ok(()),
        (Ok(_), true) => return expect(false, || "is accepted".into()),
        (Err(why), false) => return Err(Mismatch(why)),
    };
    let servers: Vec<TopologyServer> = case["servers"].as_array().unwrap().iter().map(server).collect();
    let topology = Topology::of_servers(topology_type(case["type"].as_str().unwrap()), servers);
    let address_of = |at: &u16| topology.all_servers()[usize::from(*at)].address.as_str();
    let deprioritized: Vec<u16> = (0..topology.all_servers().len() as u16)
        .filter(|at| case["deprioritized"].as_array().into_iter().flatten().any(|one| one == address_of(at)))
        .collect();
    let (mode, selection) = (options.read_preference, &options.selection);
    let found = suitable_servers(&topology, case["write"] == true, mode, selection, &deprioritized);
    let near = nearest_servers(&topology, found.clone(), selection);
    for (name, found) in [("suitable", found), ("nearest", near)] {
        let mut found: Vec<&str> = found.iter().map(address_of).collect();
        let mut expected: Vec<&str> =
            case[name].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
        found.sort_unstable();
        expected.sort_unstable();
        expect(found == expected, || format!("{name}: {found:?}"))?;
    }
    Ok(())
}

/// The options of a URI that asks for the case's read preference.
fn options(case: &Value) -> Result<MongoOptions, String> {
    let preference = &case["preference"];
    let mut query = Vec::new();
    if let Some(mode) = preference["mode"].as_str() {
        query.push(format!("readPreference={mode}"));
    }
    for tags in preference["tag_sets"].as_array().into_iter().flatten() {
        let pair = |(name, value): (&String, &Value)| format!("{name}:{}", value.as_str().unwrap());
        let tags: Vec<String> = tags.as_object().unwrap().iter().map(pair).collect();
        query.push(format!("readPreferenceTags={}", tags.join(",")));
    }
    if let Some(seconds) = preference["maxStalenessSeconds"].as_i64() {
        query.push(format!("maxStalenessSeconds={seconds}"));
    }
    if let Some(ms) = case["heartbeat_ms"].as_i64() {
        query.push(format!("heartbeatFrequencyMS={ms}"));
    }
    MongoOptions::from_uri(&format!("mongodb://h/?{}", query.join("&")))
        .map_err(|refused| refused.to_string())
}

fn server(case: &Value) -> TopologyServer {
    let kind = match case["type"].as_str().unwrap() {
        "Standalone" => ServerType::Standalone,
        "Mongos" => ServerType::Mongos,
        "RSPrimary" => ServerType::RsPrimary,
        "RSSecondary" => ServerType::RsSecondary,
        "RSOther" => ServerType::RsOther,
        "RSGhost" => ServerType::RsGhost,
        "RSArbiter" => ServerType::RsArbiter,
        "PossiblePrimary" => ServerType::PossiblePrimary,
        "LoadBalancer" => ServerType::LoadBalancer,
        "Unknown" => ServerType::Unknown,
        other => panic!("{other}"),
    };
    let tags = case["tags"].as_object().into_iter().flatten();
    let wrote =
        case["lastWrite"]["lastWriteDate"]["$numberLong"].as_str().map_or(0, |ms| ms.parse().unwrap());
    TopologyServer {
        address: case["address"].as_str().unwrap().to_owned(),
        description: ServerDescription {
            kind,
            tags: tags.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned())).collect(),
            wrote_ms: wrote,
            asked_ms: case["lastUpdateTime"].as_i64().unwrap_or(0),
            rtt_us: case["avg_rtt_ms"].as_f64().map(|ms| (ms * 1e3) as u64),
            ..ServerDescription::default()
        },
        ..TopologyServer::default()
    }
}

fn topology_type(name: &str) -> TopologyType {
    match name {
        "Unknown" => TopologyType::Unknown,
        "Single" => TopologyType::Single,
        "Sharded" => TopologyType::Sharded,
        "ReplicaSetNoPrimary" => TopologyType::ReplicaSetNoPrimary,
        "ReplicaSetWithPrimary" => TopologyType::ReplicaSetWithPrimary,
        "LoadBalanced" => TopologyType::LoadBalanced,
        other => panic!("{other}"),
    }
}

fn check_average(case: &Value) -> Checked {
    let us = |value: &Value| value.as_f64().map(|ms| (ms * 1e3).round() as u64);
    let server = TopologyServer {
        description: ServerDescription {
            kind: ServerType::Standalone,
            rtt_us: us(&case["before_ms"]),
            ..ServerDescription::default()
        },
        ..TopologyServer::default()
    };
    let mut topology = Topology::of_servers(TopologyType::Single, vec![server]);
    topology.note_round_trip(0, us(&case["sample_ms"]).unwrap());
    let found = topology.all_servers()[0].description.rtt_us.unwrap();
    let expected = us(&case["after_ms"]).unwrap();
    // Whole microseconds.
    expect(found.abs_diff(expected) <= 1, || format!("{found} us"))
}
