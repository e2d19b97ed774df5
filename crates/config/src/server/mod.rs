//! The part of an experiment file that describes servers started on this host: what, where, how large, on which storage.
//!
//! Here are only the words and what can be told wrong without looking at a machine ([`ServerSpec::check`]); `dyno-hosts`
//! compares them with the host and starts the servers.

pub mod check;
pub mod data;
pub mod invalid;
pub mod kind;
pub mod placement;
pub mod tuning;

#[cfg(test)]
mod tests;

use crate::server::data::DataSpec;
pub use crate::server::kind::{Election, ServerKind};
use crate::server::placement::{Limits, Placement};
use crate::values::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::path::PathBuf;

/// Topology of the processes of one instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topology {
    /// One process.
    #[default]
    Single,
    /// One primary and `replicas` copies of it, at least one (Redis, Valkey, KeyDB, Dragonfly).
    Replication,
    /// A replica set of `members` (mongod).
    ReplicaSet,
    /// A cluster of `members` primaries with `replicas` replicas each (Redis, Valkey, KeyDB, Dragonfly).
    Cluster,
    /// A sharded cluster (mongod): `members` shards, each a replica set of one and `replicas` further members, behind
    /// `routers` (mongos), with a config server.
    Sharded,
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Topology::Single => "single",
            Topology::Replication => "replication",
            Topology::ReplicaSet => "replica_set",
            Topology::Cluster => "cluster",
            Topology::Sharded => "sharded",
        })
    }
}

/// Where clients read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Where they write.
    #[default]
    Primary,
    /// From copies.
    Replica,
    /// From primaries and copies.
    Any,
}

/// Purpose of a process of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// It holds data; of a sharded cluster those of a shard, from 0.
    Data {
        /// Which shard.
        shard: u32,
    },
    /// It knows what shards hold.
    Config,
    /// It passes on to shards.
    Router,
}

/// Reaction where cgroups, mounts or host settings are not permitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IfNotPermitted {
    /// Stop and say what is lost.
    #[default]
    Fail,
    /// Go on without; the loss is recorded with the run.
    Continue,
}

/// The value of one of a server's own settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Setting {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// A text.
    Text(String),
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Switch(on) => on.fmt(f),
            Setting::Whole(n) => n.fmt(f),
            Setting::Number(n) => n.fmt(f),
            Setting::Text(text) => f.write_str(text),
        }
    }
}

/// A server started on this host for the run: one or several instances of one kind, each a process, a replica set or a
/// cluster. Everything about it ends with the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerSpec {
    /// Kind of server.
    pub kind: ServerKind,
    /// The program; default: the kind's usual name (redis-server, mongod, ...), looked for on PATH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<PathBuf>,
    /// The server's own settings: lines of redis.conf, dotted keys of mongod.conf, flags of Dragonfly and FerretDB. They
    /// override what dyno writes. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, Setting>,
    /// Further arguments of the command line, as they are. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Independent instances, for as many clients. Default: 1.
    #[serde(default = "one")]
    pub instances: u32,
    /// Port of the first process; the others follow one by one. Default: a free range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Address that the servers listen on and that clients and members use. A Redis or Dragonfly that is not on the loopback
    /// gets a password, if the options name none. Default: 127.0.0.1; on hosts of `ssh.servers` the address that ssh uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Topology of the processes of an instance. Default: single.
    #[serde(default)]
    pub topology: Topology,
    /// Members of each replica set, primaries of each cluster, or shards. Default: 3; 2 shards; of `single` and
    /// `replication`: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub members: Option<u32>,
    /// Replicas of each primary of a cluster or of the one of `replication`, or further members of each shard. Default: 0.
    #[serde(default)]
    pub replicas: u32,
    /// Routers (mongos) of a sharded cluster. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routers: Option<u32>,
    /// Where clients read: primary, replica (the copies in turn; of mongod any secondary) or any. Default: primary.
    #[serde(default, skip_serializing_if = "is_primary")]
    pub reads: Reads,
    /// Which cores and memory nodes each process gets. Default: no policy.
    #[serde(default)]
    pub placement: Placement,
    /// Limits of each process, by a cgroup in which it is started. Default: none.
    #[serde(default)]
    pub limits: Limits,
    /// Cache of each process: `maxmemory` of Redis and its kin and of Dragonfly, WiredTiger's cache of mongod (below
    /// 256MiB by its configString, since mongod's own setting ends there). Default: the server's own, which for mongod is half
    /// of the memory, for every instance anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Bytes>,
    /// True if writes are journaled: Redis' append-only file, mongod's journal (mandatory from 6.1). Default: not for
    /// Redis and its kin, the server's own for mongod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<bool>,
    /// mongod: compressor of collections: none, snappy, zlib or zstd. Default: the server's own (snappy).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compressor: Option<String>,
    /// mongod: compressor of the journal: none, snappy, zlib or zstd. Default: the server's own (snappy).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_compressor: Option<String>,
    /// mongod: time between checkpoints, whole seconds. Default: the server's own (60s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_delay: Option<Span>,
    /// mongod: storage engine, such as wiredTiger, inMemory, or mmapv1 and rocksdb of old versions. Default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Where data lie. Default: in the run directory; removed at the end, unless they are a volume's.
    #[serde(default)]
    pub data: DataSpec,
    /// True if the kernel's page cache is dropped before each start (needs root). Default: false.
    #[serde(default)]
    pub drop_caches: bool,
    /// Reaction where something asked for here is not permitted. Default: fail.
    #[serde(default)]
    pub if_not_permitted: IfNotPermitted,
    /// Longest time a process may take until it answers. Default: 60s.
    #[serde(default = "a_minute")]
    pub ready_within: Span,
    /// Longest time a process may take to end when asked to, before it is killed. Default: 60s.
    #[serde(default = "a_minute")]
    pub stop_within: Span,
}

fn one() -> u32 {
    1
}

fn is_primary(reads: &Reads) -> bool {
    *reads == Reads::Primary
}

fn a_minute() -> Span {
    Span(60_000_000_000)
}

impl ServerSpec {
    /// Where its processes listen.
    pub fn listens(&self) -> IpAddr {
        self.address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }

    /// Returns the option that should be set to a password: any client that reaches its address could come in without one. It
    /// listens beyond this host, could ask for a password, and has none.
    pub fn lacks_password(&self) -> Option<&'static str> {
        let option = self.kind.server_rules().password_option()?;
        (!self.listens().is_loopback() && !self.options.contains_key(option)).then_some(option)
    }

    /// A single instance with nothing but defaults.
    pub fn of(kind: ServerKind) -> Self {
        ServerSpec {
            kind,
            program: None,
            options: BTreeMap::new(),
            arguments: Vec::new(),
            instances: 1,
            port: None,
            address: None,
            topology: Topology::Single,
            members: None,
            replicas: 0,
            routers: None,
            reads: Reads::Primary,
            placement: Placement::default(),
            limits: Limits::default(),
            cache: None,
            journal: None,
            compressor: None,
            journal_compressor: None,
            sync_delay: None,
            engine: None,
            data: DataSpec::default(),
            drop_caches: false,
            if_not_permitted: IfNotPermitted::Fail,
            ready_within: a_minute(),
            stop_within: a_minute(),
        }
    }

    /// Members of a replica set, primaries of a cluster or shards; 1 for a single process and its copies.
    pub fn primaries(&self) -> u32 {
        match self.topology {
            Topology::Single | Topology::Replication => 1,
            Topology::Sharded => self.members.unwrap_or(2),
            _ => self.members.unwrap_or(3),
        }
    }

    /// Purpose of process `number` of an instance: the config server comes first, then shard by shard, then routers.
    pub fn part(&self, number: u32) -> Part {
        match (self.topology, number) {
            (Topology::Sharded, 0) => Part::Config,
            (Topology::Sharded, number) => match (number - 1) / self.replicas.saturating_add(1) {
                shard if shard < self.primaries() => Part::Data { shard },
                _ => Part::Router,
            },
            _ => Part::Data { shard: 0 },
        }
    }

    /// Processes of an instance that are there for the same, one after the other, with their numbers.
    pub fn parts(&self) -> Vec<(Part, Range<u32>)> {
        let mut parts: Vec<(Part, Range<u32>)> = Vec::new();
        for number in 0..self.processes_each() {
            match parts.last_mut().filter(|(part, _)| *part == self.part(number)) {
                Some((_, numbers)) => numbers.end = number + 1,
                None => parts.push((self.part(number), number..number + 1)),
            }
        }
        parts
    }

    /// Processes of one instance.
    pub fn processes_each(&self) -> u32 {
        let beside = match self.topology {
            Topology::Sharded => self.routers.unwrap_or(1).saturating_add(1),
            _ => 0,
        };
        self.primaries().saturating_mul(self.replicas.saturating_add(1)).saturating_add(beside)
    }

    /// Processes of all instances.
    pub fn processes(&self) -> u32 {
        self.processes_each().saturating_mul(self.instances)
    }
}
