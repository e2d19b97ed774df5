//! Servers that run where this process cannot see them, such as in pods: what they are told, and what is made of them.

use super::cluster;
use super::count;
use super::error::LocalError;
use super::servers::{self, Node};
use dyno_plan::server::ServerSpec;
use dyno_rundir::mask;
use dyno_types::secret::is_user;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The configuration of a server in a container: its file's name and text, and the command line.
pub struct Contained {
    /// Name and text, if it has a file.
    pub file: Option<(&'static str, String)>,
    /// Whether a password or its like is in it.
    pub secret: bool,
    /// The program and its arguments.
    pub command: Vec<String>,
}

fn node(spec: &ServerSpec, number: usize, socket: SocketAddr, home: &Path) -> Node {
    Node {
        name: format!("{}-{socket}", spec.kind),
        address: socket.ip(),
        port: socket.port(),
        home: home.to_owned(),
        data: PathBuf::from("/data"),
        instance: number / (spec.processes_each() as usize).max(1),
        number: number % (spec.processes_each() as usize).max(1),
        cores: None,
    }
}

/// What a server is told that listens on all addresses of its container, with its file in `home` and its data in `/data`.
pub fn contained(
    spec: &ServerSpec,
    instance: usize,
    port: u16,
    home: &Path,
) -> Result<Contained, LocalError> {
    let all = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    let node = node(spec, instance * spec.processes_each() as usize, all, home);
    let told = servers::tell(spec, &node, "unknown")?;
    let program = spec.program.as_ref().map_or(spec.kind.program().to_owned(), |p| p.display().to_string());
    let mut command = vec![program];
    command.extend(told.arguments);
    let secret = servers::password(spec).is_some()
        || spec.options.keys().any(|key| mask::is_secret(key) || is_user(key));
    Ok(Contained { file: told.configuration, secret, command })
}

fn nodes(spec: &ServerSpec, sockets: &[SocketAddr]) -> Vec<Node> {
    sockets.iter().enumerate().map(|(at, socket)| node(spec, at, *socket, Path::new("/"))).collect()
}

/// Keys or documents of servers elsewhere.
pub(crate) fn count_elsewhere(spec: &ServerSpec, sockets: &[SocketAddr]) -> Result<u64, LocalError> {
    count::count(spec, &nodes(spec, sockets).iter().collect::<Vec<_>>())
}

/// Has servers elsewhere write their data to disk.
pub(crate) fn save_elsewhere(spec: &ServerSpec, sockets: &[SocketAddr]) -> Result<(), LocalError> {
    count::save(spec, &nodes(spec, sockets).iter().collect::<Vec<_>>())
}

/// Waits until all answer, makes what the topology says of them, unless their data say that it has been `made`, and returns
/// the URI of each instance.
pub(crate) fn form_elsewhere(
    spec: &ServerSpec,
    sockets: &[SocketAddr],
    made: bool,
) -> Result<Vec<String>, LocalError> {
    let nodes = nodes(spec, sockets);
    let end = Instant::now() + Duration::from_nanos(spec.ready_within.0);
    for node in &nodes {
        while let Err(why) = servers::answers(spec, node) {
            if Instant::now() > end {
                return Err(LocalError::failed(&node.name, why));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    let mut uris = Vec::new();
    for instance in nodes.chunks((spec.processes_each() as usize).max(1)) {
        let all: Vec<&Node> = instance.iter().collect();
        cluster::form(spec, &all, made, None)?;
        uris.push(servers::uri(spec, &all));
    }
    Ok(uris)
}
