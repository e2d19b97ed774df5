//! What each kind of server is told, and how it says that it is ready. Each kind is in its database's folder.

#[cfg(test)]
mod tests;

use crate::dragonfly::server as dragonfly;
use crate::ferretdb::server as ferretdb;
use crate::mongodb::server as mongod;
use crate::redis::client::RespError;
use crate::redis::server as redis;
use crate::target::TargetError;
use dyno_config::server::{Part, Reads, ServerKind, ServerSpec, Setting, Topology};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// One process to be started.
#[derive(Clone, Debug)]
pub struct Node {
    /// `redis-17001`.
    pub name: String,
    /// Where it listens.
    pub address: IpAddr,
    /// Its port.
    pub port: u16,
    /// Its configuration and log.
    pub home: PathBuf,
    /// Its data.
    pub data: PathBuf,
    /// The instance it belongs to.
    pub instance: usize,
    /// Which of the instance's processes it is, from 0.
    pub number: usize,
    /// Cores it has, where they are limited.
    pub cores: Option<usize>,
    /// Name and port of the config server, where a router does not find it by its number.
    pub config: Option<String>,
}

impl Node {
    /// Where it is reached.
    pub fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Where it says what happens.
    pub fn log(&self) -> PathBuf {
        self.home.join("log")
    }
}

/// What a server is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Name and text of its configuration file, if it has one.
    pub configuration: Option<(&'static str, String)>,
    /// Its command line without the program.
    pub arguments: Vec<String>,
}

/// The name of the replica set that a process belongs to.
pub(crate) fn set_name(spec: &ServerSpec, node: &Node) -> String {
    match spec.part(node.number as u32) {
        Part::Config => format!("cfg{}", node.instance),
        Part::Data { shard } if spec.topology == Topology::Sharded => format!("rs{}-{shard}", node.instance),
        _ => format!("rs{}", node.instance),
    }
}

/// Where a node of a Dragonfly cluster takes commands for its administration.
pub(crate) fn admin_port(port: u16) -> u16 {
    port + 10_000
}

/// Configuration and command line of a process.
pub fn tell(spec: &ServerSpec, node: &Node, version: &str) -> Result<Told, LocalError> {
    let mut told = match spec.kind {
        ServerKind::Redis | ServerKind::Valkey | ServerKind::KeyDb => redis::tell(spec, node),
        ServerKind::Dragonfly => dragonfly::tell(spec, node),
        ServerKind::Mongod => mongod::tell(spec, node, version),
        ServerKind::FerretDb => ferretdb::tell(spec, node),
    }?;
    // What is meant for the servers of data, config servers and routers need not know.
    if matches!(spec.part(node.number as u32), Part::Data { .. }) {
        told.arguments.extend(spec.arguments.iter().cloned());
    }
    Ok(told)
}

/// Why a process is not ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// Redis and its kin: there is no answer, or a refusal.
    #[error(transparent)]
    Redis(#[from] RespError),
    /// MongoDB: it does not answer, or not as it should.
    #[error(transparent)]
    MongoDb(#[from] TargetError),
    /// It answers something else than PONG.
    #[error("it answers {0:?} to PING")]
    NoPong(String),
    /// Another process has its port.
    #[error("process {other} answers on {socket}, not process {pid}")]
    AnotherProcess {
        /// Who answers.
        other: u32,
        /// Where.
        socket: SocketAddr,
        /// Who was started.
        pid: u32,
    },
}

/// Whether a process is ready; otherwise what it answers. The number of the process that answers, where it tells: a wrapper
/// is not the server itself.
pub fn ready(spec: &ServerSpec, node: &Node, machine: &Machine, pid: u32) -> Result<Option<u32>, NotReady> {
    match spec.kind {
        kind if kind.is_redis_like() => redis::ready(spec, node, Some((machine, pid))),
        ServerKind::Dragonfly => redis::ready(spec, node, None),
        _ => Ok(mongod::ready(node).map(|()| None)?),
    }
}

/// Whether a server elsewhere answers; otherwise what it says.
pub(crate) fn answers(spec: &ServerSpec, node: &Node) -> Result<(), NotReady> {
    match spec.kind.speaks_redis() {
        true => redis::ready(spec, node, None).map(drop),
        false => Ok(mongod::ready(node)?),
    }
}

/// Has a server write its data to disk and end, where that takes more than SIGTERM; false if SIGTERM is enough.
pub fn save_and_end(spec: &ServerSpec, node: &Node) -> bool {
    spec.kind.speaks_redis() && redis::save_and_end(spec, node)
}

/// The URI of an instance whose first node comes first.
pub fn uri(spec: &ServerSpec, nodes: &[&Node]) -> String {
    let asked = |node: &&&Node| match (spec.topology, spec.part(node.number as u32)) {
        // Its primary knows the copies.
        (Topology::Replication, _) => node.number == 0,
        (Topology::Sharded, part) => part == Part::Router,
        _ => true,
    };
    let hosts: Vec<String> = nodes.iter().filter(asked).map(|node| node.socket().to_string()).collect();
    let hosts = hosts.join(",");
    let mut query = Vec::new();
    match spec.topology {
        Topology::Cluster => query.push("cluster=true".to_owned()),
        Topology::ReplicaSet => query.push(format!("replicaSet={}", set_name(spec, nodes[0]))),
        _ => {}
    }
    query.extend(match (spec.reads, spec.kind.speaks_redis()) {
        (Reads::Primary, _) => None,
        (Reads::Replica, true) => Some("reads=replica".to_owned()),
        (Reads::Any, true) => Some("reads=any".to_owned()),
        (Reads::Replica, false) => Some("readPreference=secondary".to_owned()),
        (Reads::Any, false) => Some("readPreference=nearest".to_owned()),
    });
    let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
    match spec.kind.speaks_redis() {
        true => format!("redis://{}{hosts}{query}", redis::login(spec)),
        false => format!("mongodb://{hosts}/{query}"),
    }
}

/// The password that clients need, if any.
pub(crate) fn password(spec: &ServerSpec) -> Option<String> {
    redis::password(spec)
}

/// Own settings of a server that dyno decides: they have keys of the experiment file, or would lead dyno astray.
pub fn reserved(spec: &ServerSpec, keys: &[(&str, &str)]) -> Result<(), LocalError> {
    let found = keys.iter().find(|(key, _)| spec.options.contains_key(*key));
    match found {
        Some((key, instead)) => {
            Err(LocalError::Refused(format!("options.{key}: dyno sets it; use {instead}")))
        }
        None => Ok(()),
    }
}

/// `yes` and `no`, as Redis writes switches.
pub fn redis_word(setting: &Setting) -> String {
    match setting {
        Setting::Switch(true) => "yes".into(),
        Setting::Switch(false) => "no".into(),
        other => other.to_string(),
    }
}

/// Flags `--name=value`, the options' after the others, which they replace.
pub fn flags(own: &[(&str, String)], spec: &ServerSpec) -> Vec<String> {
    let kept = own.iter().filter(|(name, _)| !spec.options.contains_key(*name));
    let mut flags: Vec<String> = kept.map(|(name, value)| format!("--{name}={value}")).collect();
    flags.extend(spec.options.iter().map(|(name, value)| format!("--{name}={value}")));
    flags
}
