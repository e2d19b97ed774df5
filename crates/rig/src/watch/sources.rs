//! What there is to watch of a target.

use super::ask;
use crate::target::Opened;
use dyno_monitor::Source;
use dyno_monitor::database::{MongoSource, RedisSource};
use dyno_monitor::prometheus::{PrometheusSource, Url};
use dyno_types::{Endpoint, bson};
use dyno_wire::redis::ReadFrom;
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{IpAddr, UdpSocket};

/// Nodes of a cluster that are asked; each has a thread and a connection.
const NODES: usize = 64;

/// Every node of the target that says something of itself: `INFO` (and `/metrics` of Dragonfly), `serverStatus`.
pub fn watch(opened: &Opened) -> Vec<Box<dyn Source>> {
    watch_all(&[opened])
}

/// The same of several targets. The only node of all is called `database`, several are called by their address too.
pub fn watch_all(targets: &[&Opened]) -> Vec<Box<dyn Source>> {
    let of = targets.iter().map(|opened| nodes(opened)).sum();
    targets.iter().flat_map(|opened| sources(opened, of)).collect()
}

/// How many nodes of a target are asked.
fn nodes(opened: &Opened) -> usize {
    match opened {
        Opened::Redis { options, topology, .. } => {
            topology.serving(options.reads != ReadFrom::Primary).len().min(NODES)
        }
        Opened::Mongo { deployment, .. } => deployment.endpoints.len().min(NODES),
        Opened::Official(_) => 1,
        Opened::Store(_) | Opened::Null | Opened::Sim(_) => 0,
    }
}

fn sources(opened: &Opened, of: usize) -> Vec<Box<dyn Source>> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    match opened {
        Opened::Redis { options, tls, topology, facts, .. } => {
            let all = topology.endpoints();
            let serving = topology.serving(options.reads != ReadFrom::Primary);
            for endpoint in serving.iter().filter_map(|n| all.get(usize::from(*n))).take(NODES) {
                let ask = ask::redis(options, tls.clone(), endpoint);
                sources.push(Box::new(RedisSource::new(&name(endpoint, of), ask)));
            }
            // Every node has its own: what is asked of all of them is summed.
            let metrics = tls.is_none() && facts.product().starts_with("Dragonfly");
            for endpoint in all.iter().filter(|_| metrics).take(NODES) {
                let Endpoint::Tcp { address, .. } = endpoint else { continue };
                let Ok(url) = Url::parse(&format!("http://{address}/metrics")) else { continue };
                let name = if all.len() == 1 { "dragonfly".into() } else { format!("dragonfly-{address}") };
                sources.push(Box::new(PrometheusSource::new(&name, url)));
            }
        }
        Opened::Mongo { options, tls, deployment, .. } => {
            for endpoint in deployment.endpoints.iter().take(NODES) {
                let ask = ask::mongo(options, tls.clone(), endpoint);
                sources.push(Box::new(MongoSource::new(&name(endpoint, of), ask)));
            }
        }
        Opened::Official(_) => {
            let ask = opened.mongo_admin().map(ask::official);
            sources.extend(ask.map(|ask| Box::new(MongoSource::new("database", ask)) as Box<dyn Source>));
        }
        Opened::Store(_) | Opened::Null | Opened::Sim(_) => {}
    }
    sources
}

fn name(endpoint: &Endpoint, of: usize) -> String {
    if of == 1 { "database".into() } else { format!("database-{endpoint}") }
}

/// The process of a server that dyno did not start, as the server tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldProcess {
    /// Its number on its own host.
    pub pid: u32,
    /// Its program.
    pub program: String,
    /// Where it was asked; none: a socket of this host.
    pub address: Option<IpAddr>,
}

impl ToldProcess {
    /// That of the only server of a target.
    pub fn of(opened: &Opened) -> Option<Self> {
        let ((pid, program), endpoint) = told(opened)?;
        let address = match endpoint {
            Endpoint::Tcp { address, .. } => Some(address.ip()),
            Endpoint::Unix(_) => None,
        };
        Some(ToldProcess { pid, program, address })
    }

    /// Whether it was asked at the loopback, or at a socket of the filesystem.
    pub fn is_local(&self) -> bool {
        self.address.is_none_or(|address| address.is_loopback())
    }

    /// Whether it runs on this host: the address is the host's own, and the number belongs to a process of that name. What
    /// answers may be a proxy, or in another namespace of processes.
    pub fn is_here(&self) -> bool {
        // An address that can be bound is this host's own.
        let own = self.address.is_none_or(|address| UdpSocket::bind((address, 0)).is_ok());
        let comm = fs::read_to_string(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        // The kernel keeps 15 characters.
        let kept: String = self.program.chars().take(15).collect();
        own && comm.trim_end() == kept && self.pid != std::process::id()
    }
}

/// The process of a server on this host that dyno did not start.
pub fn server_process(opened: &Opened) -> Option<u32> {
    ToldProcess::of(opened).filter(|told| told.is_local() && told.is_here()).map(|told| told.pid)
}

/// Number and program, and who told them.
fn told(opened: &Opened) -> Option<((u32, String), &Endpoint)> {
    match opened {
        Opened::Redis { topology, facts, .. } => {
            let [endpoint] = topology.endpoints() else { return None };
            let program = facts.get("executable").and_then(|path| path.rsplit('/').next());
            let program = program.unwrap_or("redis-server").to_owned();
            Some(((facts.get("process_id")?.parse().ok()?, program), endpoint))
        }
        Opened::Mongo { deployment, .. } => {
            let [endpoint] = deployment.endpoints.as_slice() else { return None };
            let status =
                opened.mongo_admin()?.run_on("admin", &|out| bson::int32(out, "serverStatus", 1)).ok()?;
            let pid = bson::find(&status, "pid")?.as_i64()?;
            let process = bson::find(&status, "process")?.as_str()?.to_owned();
            Some(((u32::try_from(pid).ok()?, process.rsplit('/').next()?.to_owned()), endpoint))
        }
        _ => None,
    }
}
