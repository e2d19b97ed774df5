//! Kinds of servers that dyno starts: how one is configured, asked whether it is ready, made a cluster of, and ended. Each
//! kind is in its database's folder; the registry finds it.

pub use crate::node::ServerNode;

use crate::cluster::{ClusterError, ProcessGroup};
use crate::target_error::TargetError;
use dyno_config::server::{Part, Reads, ServerSpec, Topology};
use dyno_localhost::error::{Cause, LocalError};
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use std::net::SocketAddr;

/// Start of a process: its configuration file and its command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// Name and text of its configuration file, if it has one.
    pub configuration: Option<(&'static str, String)>,
    /// Arguments of its command line, without the program.
    pub arguments: Vec<String>,
}

/// Why a process is not ready.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// There is no answer, or a refusal.
    #[error(transparent)]
    NoAnswer(#[from] Cause),
    /// It answers something else than PONG.
    #[error("it answers {0:?} to PING")]
    NoPong(String),
    /// Another process has its port.
    #[error("process {other} answers on {socket}, not process {pid}")]
    AnotherProcess {
        /// Number of the process that answers.
        other: u32,
        /// Where.
        socket: SocketAddr,
        /// Number of the process that was started.
        pid: u32,
    },
}

impl From<TargetError> for NotReady {
    fn from(why: TargetError) -> Self {
        NotReady::NoAnswer(why.into())
    }
}

/// A kind of server: one implementation in each database's folder.
pub trait DatabaseServer: Sync {
    /// Writes the configuration and the command line of a process; `version` is as its program tells it.
    ///
    /// # Errors
    /// Refuses options that dyno sets itself, and what this version does not take.
    fn configure(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        version: &str,
    ) -> Result<LaunchConfig, LocalError>;

    /// Asks a process whether it serves. Where `started` names a process of this host, it must be the one that answers, or one
    /// that it has started (a wrapper's). Returns the process number of who answers, where it tells.
    ///
    /// # Errors
    /// Says what it answers instead.
    fn ready(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        started: Option<(&Machine, u32)>,
    ) -> Result<Option<u32>, NotReady>;

    /// The target URI of an instance, whose first node comes first.
    fn uri(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> String;

    /// The password that clients need, if any.
    fn password(&self, _spec: &ServerSpec) -> Option<String> {
        None
    }

    /// Counts the keys or documents of all instances; copies on replicas do not count.
    ///
    /// # Errors
    /// A process does not answer, or answers no number.
    fn count(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<u64, LocalError>;

    /// Has processes write to disk what they hold in memory alone. Those that have their data on disk, or in a journal there,
    /// do nothing.
    ///
    /// # Errors
    /// A process does not answer or refuses.
    fn save(&self, _spec: &ServerSpec, _nodes: &[&ServerNode]) -> Result<(), LocalError> {
        Ok(())
    }

    /// Has a process write its data to disk and end, where that takes more than SIGTERM; false if SIGTERM is enough.
    fn save_and_end(&self, _spec: &ServerSpec, _node: &ServerNode) -> bool {
        false
    }

    /// Makes what the topology says of the processes of one instance, all but what routers take part in.
    ///
    /// # Errors
    /// A process refuses, or they are not together in time.
    fn form(&self, _group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Makes known to routers what they route to.
    ///
    /// # Errors
    /// As [`DatabaseServer::form`].
    fn join(&self, _group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Tells process number `i` of its instance, which was started again, what its data do not: whom it copies, and which slots
    /// are whose.
    ///
    /// # Errors
    /// A process refuses or does not answer.
    fn rejoin(&self, _spec: &ServerSpec, _nodes: &[&ServerNode], _i: usize) -> Result<(), ClusterError> {
        Ok(())
    }

    /// Cache of a process that holds no data of the load, bytes.
    fn cache_beside(&self, _part: Part) -> u64 {
        0
    }
}

impl dyn DatabaseServer {
    /// Configuration and command line of a process, with the arguments that the experiment gives to servers of data: config
    /// servers and routers need not know them.
    ///
    /// # Errors
    /// As [`DatabaseServer::configure`].
    pub fn launch_config(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        version: &str,
    ) -> Result<LaunchConfig, LocalError> {
        let mut config = self.configure(spec, node, version)?;
        if matches!(spec.part(node.number as u32), Part::Data { .. }) {
            config.arguments.extend(spec.arguments.iter().cloned());
        }
        Ok(config)
    }
}

/// Checks that the process that answers at a node, where it tells its number, is the one that was started, or one that this has
/// started (a wrapper's).
///
/// # Errors
/// Another process has the port.
pub fn check_answering(
    own: Option<u32>,
    node: &ServerNode,
    (machine, pid): (&Machine, u32),
) -> Result<Option<u32>, NotReady> {
    match own {
        Some(other) if other != pid && process::process_group_of(machine, other) != Some(pid) => {
            Err(NotReady::AnotherProcess { other, socket: node.socket_address(), pid })
        }
        own => Ok(own),
    }
}

/// Hosts and ports of those that clients are told of, separated by commas.
pub fn join_hosts(spec: &ServerSpec, nodes: &[&ServerNode]) -> String {
    let asked = |node: &&&ServerNode| match (spec.topology, spec.part(node.number as u32)) {
        // The primary knows the copies.
        (Topology::Replication, _) => node.number == 0,
        (Topology::Sharded, part) => part == Part::Router,
        _ => true,
    };
    nodes.iter().filter(asked).map(|node| node.socket_address().to_string()).collect::<Vec<_>>().join(",")
}

/// `?a&b` of the options that are there; `reads` are its words for reading from replicas alone and from all.
pub fn join_query(spec: &ServerSpec, formed: Option<String>, reads: (&str, &str)) -> String {
    let reads = match spec.reads {
        Reads::Primary => None,
        Reads::Replica => Some(reads.0.to_owned()),
        Reads::Any => Some(reads.1.to_owned()),
    };
    let all: Vec<String> = formed.into_iter().chain(reads).collect();
    if all.is_empty() { String::new() } else { format!("?{}", all.join("&")) }
}

/// Refuses own settings of a server that dyno decides: they have keys of the experiment file, or would lead dyno astray.
///
/// # Errors
/// Names the setting and what to use instead.
pub fn refuse_reserved(spec: &ServerSpec, keys: &[(&str, &str)]) -> Result<(), LocalError> {
    let found = keys.iter().find(|(key, _)| spec.options.contains_key(*key));
    match found {
        Some((key, instead)) => Err(LocalError::refuse(
            format!("options.{key}"),
            format!("options.{key}: dyno sets it; use {instead}"),
        )),
        None => Ok(()),
    }
}

/// Flags `--name=value`, the options' after the others, which they replace.
pub fn launch_flags(own: &[(&str, String)], spec: &ServerSpec) -> Vec<String> {
    let kept = own.iter().filter(|(name, _)| !spec.options.contains_key(*name));
    let mut flags: Vec<String> = kept.map(|(name, value)| format!("--{name}={value}")).collect();
    flags.extend(spec.options.iter().map(|(name, value)| format!("--{name}={value}")));
    flags
}
