//! Dragonfly: a file of flags.

use crate::cluster::password;
use crate::dragonfly::cluster::{self, admin_port};
use crate::server::RedisServer;
use dyno_config::server::{ServerSpec, Topology};
use dyno_db::cluster::{ClusterError, ProcessGroup};
use dyno_db::servers::{DatabaseServer, LaunchConfig, NotReady, ServerNode, launch_flags, refuse_reserved};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;

const RESERVED: [(&str, &str); 7] = [
    ("port", "port"),
    ("bind", "address"),
    ("dir", "data.path"),
    ("flagfile", "options"),
    ("pidfile", "nothing"),
    ("maxmemory", "cache"),
    ("replicaof", "topology"),
];

/// Of clusters.
const OF_CLUSTERS: [(&str, &str); 2] =
    [("cluster_mode", "topology"), ("admin_port", "nothing: it is 10,000 above port")];

/// Memory that Dragonfly demands for each of its threads, bytes.
const EACH_THREAD: u64 = 256 << 20;

fn configure(spec: &ServerSpec, node: &ServerNode) -> Result<LaunchConfig, LocalError> {
    refuse_reserved(spec, &RESERVED)?;
    let keeps = spec.data.snapshot || spec.data.volume.is_some();
    let mut own = vec![
        ("bind", node.address.to_string()),
        ("port", node.port.to_string()),
        ("dir", node.data.display().to_string()),
        // With a name it writes all data at its end, which only copies and volumes need.
        ("dbfilename", if keeps { "dump".into() } else { String::new() }),
        ("logtostderr", "true".into()),
    ];
    if spec.topology == Topology::Cluster {
        refuse_reserved(spec, &OF_CLUSTERS)?;
        own.push(("cluster_mode", "yes".into()));
        own.push(("admin_port", admin_port(node.port).to_string()));
        own.push(("admin_bind", node.address.to_string()));
    }
    if let (Some(password), true) = (password(spec), spec.topology != Topology::Single) {
        own.push(("masterauth", password));
    }
    let threads = match spec.options.get("proactor_threads").map(ToString::to_string) {
        Some(text) => text.parse().ok(),
        None => node.cores,
    };
    if let Some(threads) = threads {
        own.push(("proactor_threads", threads.to_string()));
        let limit = [&spec.cache, &spec.limits.memory].into_iter().flatten().map(|bytes| bytes.0).min();
        if let Some(limit) = limit.filter(|limit| *limit < threads as u64 * EACH_THREAD) {
            return Err(LocalError::refuse(
                "limits.memory",
                format!(
                    "cache, limits.memory: {} MiB are less than the 256 MiB that Dragonfly wants for each of {threads} threads",
                    limit >> 20
                ),
            ));
        }
    }
    // By itself it takes four fifths of what it finds free on the host: of its limit, where that is known here.
    let within = spec.limits.memory.as_ref().map(|limit| {
        let least = threads.unwrap_or(0) as u64 * EACH_THREAD;
        (limit.0 / 5 * 4).max(least.min(limit.0))
    });
    if let Some(most) = spec.cache.as_ref().map(|cache| cache.0).or(within) {
        own.push(("maxmemory", most.to_string()));
    }
    let text = launch_flags(&own, spec).join("\n") + "\n";
    let file = node.home.join("dragonfly.flags");
    let arguments = vec![format!("--flagfile={}", file.display())];
    Ok(LaunchConfig { configuration: Some(("dragonfly.flags", text)), arguments })
}

/// Dragonfly. Clients speak with it as with Redis.
pub struct DragonflyServer;

impl DatabaseServer for DragonflyServer {
    fn configure(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        _version: &str,
    ) -> Result<LaunchConfig, LocalError> {
        configure(spec, node)
    }

    /// Ignores which process answers: Dragonfly does not tell its process number.
    fn ready(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        _started: Option<(&Machine, u32)>,
    ) -> Result<Option<u32>, NotReady> {
        RedisServer.ready(spec, node, None)
    }

    fn uri(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> String {
        RedisServer.uri(spec, nodes)
    }

    fn password(&self, spec: &ServerSpec) -> Option<String> {
        password(spec)
    }

    fn count(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<u64, LocalError> {
        RedisServer.count(spec, nodes)
    }

    fn save(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), LocalError> {
        RedisServer.save(spec, nodes)
    }

    fn save_and_end(&self, spec: &ServerSpec, node: &ServerNode) -> bool {
        RedisServer.save_and_end(spec, node)
    }

    fn form(&self, group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
        match group.spec.topology {
            Topology::Cluster => cluster::form_dragonfly_cluster(group),
            _ => RedisServer.form(group),
        }
    }

    fn rejoin(&self, spec: &ServerSpec, nodes: &[&ServerNode], i: usize) -> Result<(), ClusterError> {
        match spec.topology {
            Topology::Cluster => cluster::rejoin_node(spec, nodes, i),
            _ => RedisServer.rejoin(spec, nodes, i),
        }
    }
}
