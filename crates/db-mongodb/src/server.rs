//! Servers of MongoDB: mongod.conf, in YAML, and what they are asked.

use crate::admin::MongoAdmin;
use crate::cluster::{self, set_name};
use crate::command_error::CommandError;
use crate::probe::probe_seeds;
use crate::protocol::MongoOptions;
use dyno_config::server::kind::mongod::{cache_key, has_small_cache};
use dyno_config::server::{Part, ServerSpec, Setting, Topology};
use dyno_db::cluster::{ClusterError, ProcessGroup};
use dyno_db::probe::NEVER;
use dyno_db::servers::{
    DatabaseServer, LaunchConfig, NotReady, ServerNode, join_hosts, join_query, refuse_reserved,
};
use dyno_db::target_error::TargetError;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_types::bson;
use dyno_types::mongod::MongodVersion;
use std::collections::BTreeMap;
use std::sync::Arc;

const RESERVED: [(&str, &str); 14] = [
    ("net.port", "port"),
    ("net.bindIp", "address"),
    ("net.bindIpAll", "address"),
    ("storage.dbPath", "data.path"),
    ("storage.engine", "engine"),
    ("storage.journal.enabled", "journal"),
    ("storage.syncPeriodSecs", "sync_delay"),
    ("storage.wiredTiger.engineConfig.cacheSizeGB", "cache"),
    ("storage.wiredTiger.engineConfig.journalCompressor", "journal_compressor"),
    ("storage.wiredTiger.collectionConfig.blockCompressor", "compressor"),
    ("replication.replSetName", "topology"),
    ("sharding.clusterRole", "topology"),
    ("sharding.configDB", "topology"),
    ("processManagement.fork", "nothing: dyno must see the process end"),
];

/// WiredTiger's own words, which it reads after mongod's.
const CONFIG_STRING: &str = "storage.wiredTiger.engineConfig.configString";

/// The text of `mongod.conf` or `mongos.conf`: dotted keys become mappings.
fn configure(spec: &ServerSpec, node: &ServerNode, version: &str) -> Result<LaunchConfig, LocalError> {
    refuse_reserved(spec, &RESERVED)?;
    if let Some(absence) = spec.kind.server_rules().absences(spec, version).into_iter().next() {
        return Err(LocalError::refuse("server.kind", absence.to_string()));
    }
    if let part @ (Part::Config | Part::Router) = spec.part(node.number as u32) {
        return beside(spec, node, part);
    }
    let mut keys = listening(node);
    let mut add = |key: &str, value: Setting| keys.insert(key.to_owned(), value);
    add("storage.dbPath", text(&node.data.display().to_string()));
    add("storage.directoryPerDB", Setting::Switch(false));
    if let Some(engine) = &spec.engine {
        add("storage.engine", text(engine));
    }
    match (&spec.cache, cache_key(spec)) {
        (Some(cache), _) if has_small_cache(spec) => {
            if spec.options.contains_key(CONFIG_STRING) {
                let message =
                    "cache: sizes below 256MiB are set by it; say cache_size there, or leave it out";
                return Err(LocalError::refuse(
                    format!("options.{CONFIG_STRING}"),
                    format!("options.{CONFIG_STRING}: {message}"),
                ));
            }
            add(CONFIG_STRING, text(&format!("cache_size={}", cache.0)));
        }
        (Some(cache), Some(key)) => {
            add(key, Setting::Number(cache.0 as f64 / f64::from(1 << 30)));
        }
        _ => {}
    }
    // Where the journal is mandatory the key is gone: a server that is given it does not start.
    let mandatory = MongodVersion::parse(version).is_some_and(MongodVersion::always_journals);
    if let Some(journal) = spec.journal.filter(|_| !mandatory) {
        add("storage.journal.enabled", Setting::Switch(journal));
    }
    if let Some(name) = &spec.journal_compressor {
        add("storage.wiredTiger.engineConfig.journalCompressor", text(name));
    }
    if let Some(name) = &spec.compressor {
        add("storage.wiredTiger.collectionConfig.blockCompressor", text(name));
    }
    if let Some(delay) = &spec.sync_delay {
        add("storage.syncPeriodSecs", Setting::Whole((delay.0 / 1_000_000_000) as i64));
    }
    if spec.topology == Topology::ReplicaSet {
        add("replication.replSetName", text(&set_name(spec, node)));
    }
    if spec.topology == Topology::Sharded {
        add("replication.replSetName", text(&set_name(spec, node)));
        add("sharding.clusterRole", text("shardsvr"));
    }
    keys.extend(spec.options.iter().map(|(key, value)| (key.clone(), value.clone())));
    in_file("mongod.conf", &keys, node)
}

/// Cache of a config server, bytes: the least that WiredTiger takes.
const CONFIG_CACHE: u64 = 256 << 20;

/// A config server or a router: what is said of storage is meant for the shards.
fn beside(spec: &ServerSpec, node: &ServerNode, part: Part) -> Result<LaunchConfig, LocalError> {
    let mut keys = listening(node);
    let mut add = |key: &str, value: Setting| keys.insert(key.to_owned(), value);
    if part == Part::Config {
        add("storage.dbPath", text(&node.data.display().to_string()));
        let gib = CONFIG_CACHE as f64 / (1u64 << 30) as f64;
        add("storage.wiredTiger.engineConfig.cacheSizeGB", Setting::Number(gib));
        add("replication.replSetName", text(&set_name(spec, node)));
        add("sharding.clusterRole", text("configsvr"));
    } else {
        // Processes of an instance have their ports one after the other, the config server the first.
        let config =
            ServerNode { number: 0, port: node.port.saturating_sub(node.number as u16), ..node.clone() };
        let place = node.config.clone().unwrap_or_else(|| config.socket_address().to_string());
        add("sharding.configDB", text(&format!("{}/{place}", set_name(spec, &config))));
    }
    // A router ends at once when it is given a parameter that mongod alone knows.
    let meant = |key: &String| {
        key.starts_with("net.")
            || key.starts_with("security.")
            || part == Part::Config && key.starts_with("setParameter.")
    };
    let own = spec.options.iter().filter(|(key, _)| meant(key));
    keys.extend(own.map(|(key, value)| (key.clone(), value.clone())));
    in_file(if part == Part::Config { "mongod.conf" } else { "mongos.conf" }, &keys, node)
}

/// Where it listens.
fn listening(node: &ServerNode) -> BTreeMap<String, Setting> {
    BTreeMap::from([
        ("net.bindIp".to_owned(), text(&node.address.to_string())),
        ("net.port".to_owned(), Setting::Whole(node.port.into())),
        ("net.unixDomainSocket.enabled".to_owned(), Setting::Switch(false)),
    ])
}

fn text(text: &str) -> Setting {
    Setting::Text(text.to_owned())
}

fn in_file(
    name: &'static str,
    keys: &BTreeMap<String, Setting>,
    node: &ServerNode,
) -> Result<LaunchConfig, LocalError> {
    let arguments = vec!["--config".to_owned(), node.home.join(name).display().to_string()];
    Ok(LaunchConfig { configuration: Some((name, yaml(keys)?)), arguments })
}

enum ConfigNode {
    Value(Setting),
    Map(BTreeMap<String, ConfigNode>),
}

fn yaml(keys: &BTreeMap<String, Setting>) -> Result<String, LocalError> {
    let mut root = BTreeMap::new();
    for (key, value) in keys {
        let clash = || {
            LocalError::refuse(
                format!("options.{key}"),
                format!("options.{key}: another key is above or below it"),
            )
        };
        let mut map = &mut root;
        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            match map.entry(part.to_owned()).or_insert_with(|| ConfigNode::Map(BTreeMap::new())) {
                ConfigNode::Map(below) => map = below,
                ConfigNode::Value(_) => return Err(clash()),
            }
        }
        if map.insert(last.to_owned(), ConfigNode::Value(value.clone())).is_some() {
            return Err(clash());
        }
    }
    let mut text = String::from("# Written by dyno for this run.\n");
    write(&root, 0, &mut text);
    Ok(text)
}

fn write(map: &BTreeMap<String, ConfigNode>, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    for (key, value) in map {
        match value {
            ConfigNode::Map(below) => {
                out.push_str(&format!("{indent}{key}:\n"));
                write(below, depth + 1, out);
            }
            // A text in JSON's quotes is one in YAML's.
            ConfigNode::Value(Setting::Text(text)) => {
                out.push_str(&format!("{indent}{key}: {}\n", serde_json::Value::from(text.as_str())));
            }
            ConfigNode::Value(other) => out.push_str(&format!("{indent}{key}: {other}\n")),
        }
    }
}

/// The target URI of an instance.
fn uri(spec: &ServerSpec, nodes: &[&ServerNode]) -> String {
    let formed = spec.topology == Topology::ReplicaSet;
    let formed = formed.then(|| format!("replicaSet={}", set_name(spec, nodes[0])));
    let query = join_query(spec, formed, ("readPreference=secondary", "readPreference=nearest"));
    format!("mongodb://{}/{query}", join_hosts(spec, nodes))
}

/// Databases of MongoDB's own.
const OWN: [&str; 3] = ["admin", "local", "config"];

/// Why a server cannot say how many documents it has.
#[derive(Debug, thiserror::Error)]
enum CountError {
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("{database}.{collection}: the count is no number")]
    Documents { database: String, collection: String },
}

fn documents(spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<u64, CountError> {
    let options = Arc::new(MongoOptions::from_uri(&uri(spec, nodes)).map_err(TargetError::from)?);
    let (deployment, _) = probe_seeds(&options, None, NEVER)?;
    let admin = MongoAdmin::new(&options, None, &deployment);
    let names = |reply: &[u8], path: &str| -> Vec<String> {
        let list = bson::element_at_path(reply, path).and_then(|e| e.as_document()).unwrap_or_default();
        let documents =
            bson::read_elements(list).into_iter().flatten().flatten().filter_map(|e| e.as_document());
        documents
            .filter_map(|one| bson::find_element(one, "name").and_then(|e| e.as_str()))
            .map(str::to_owned)
            .collect()
    };
    let listed = admin.run_on("admin", &|out| {
        bson::put_int32(out, "listDatabases", 1);
        bson::put_boolean(out, "nameOnly", true);
    })?;
    let mut sum = 0;
    for database in names(&listed, "databases").iter().filter(|name| !OWN.contains(&name.as_str())) {
        let listed = admin.run_on(database, &|out| {
            bson::put_int32(out, "listCollections", 1);
            bson::put_boolean(out, "nameOnly", true);
            // Whatever there is, in one answer.
            bson::put_head(out, bson::kind::DOCUMENT, "cursor");
            let cursor = bson::open(out);
            bson::put_int32(out, "batchSize", i32::MAX);
            bson::close(out, cursor);
        })?;
        for collection in names(&listed, "cursor.firstBatch") {
            let reply = admin.run_on(database, &|out| bson::put_string(out, "count", &collection))?;
            let n =
                bson::find_element(&reply, "n").and_then(|e| e.as_i64()).and_then(|n| u64::try_from(n).ok());
            let database = database.clone();
            sum += n.ok_or(CountError::Documents { database, collection })?;
        }
    }
    Ok(sum)
}

/// mongod, and mongos beside it.
pub struct MongodServer;

impl DatabaseServer for MongodServer {
    fn configure(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        version: &str,
    ) -> Result<LaunchConfig, LocalError> {
        configure(spec, node, version)
    }

    fn ready(
        &self,
        _spec: &ServerSpec,
        node: &ServerNode,
        _started: Option<(&Machine, u32)>,
    ) -> Result<Option<u32>, NotReady> {
        let uri = format!("mongodb://{}/?directConnection=true", node.socket_address());
        let options = MongoOptions::from_uri(&uri).map_err(TargetError::from)?;
        probe_seeds(&Arc::new(options), None, NEVER)?;
        Ok(None)
    }

    fn uri(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> String {
        uri(spec, nodes)
    }

    fn count(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<u64, LocalError> {
        let instances = nodes.chunks((spec.processes_each() as usize).max(1));
        let each = |nodes: &[&ServerNode]| {
            documents(spec, nodes).map_err(|why| LocalError::failed_step(&nodes[0].name, why))
        };
        instances.map(each).sum()
    }

    fn form(&self, group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
        cluster::form(group)
    }

    fn join(&self, group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
        cluster::join(group)
    }

    fn cache_beside(&self, part: Part) -> u64 {
        if part == Part::Config { CONFIG_CACHE } else { 0 }
    }
}
