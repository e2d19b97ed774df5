//! Servers that run where this process cannot see them, such as in pods: what they are told, and what is made of them.

use crate::registry::server;
use dyno_config::server::{Part, ServerSpec};
use dyno_db::cluster::ProcessGroup;
use dyno_db::servers::ServerNode;
use dyno_engine::Control;
use dyno_localhost::error::LocalError;
use dyno_types::secret::{is_secret, is_user};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The configuration of a server in a container: its file's name and text, and the command line.
pub struct ContainerConfig {
    /// Name and text, if it has a file.
    pub file: Option<(&'static str, String)>,
    /// True if a password or its like is in it.
    pub secret: bool,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// Purpose of a process in a container.
pub struct ContainerRole {
    /// The instance it belongs to, from 0.
    pub instance: usize,
    /// Which of the instance's processes it is, or the first of those that are told the same.
    pub number: usize,
    /// Name and port of the config server, where there is one.
    pub config: Option<String>,
}

fn node(spec: &ServerSpec, role: ContainerRole, socket: SocketAddr, home: &Path) -> ServerNode {
    ServerNode {
        name: format!("{}-{socket}", spec.kind),
        address: socket.ip(),
        port: socket.port(),
        home: home.to_owned(),
        data: PathBuf::from("/data"),
        instance: role.instance,
        number: role.number,
        cores: None,
        config: role.config,
    }
}

/// Configuration of a server that listens on all addresses of its container, with its file in `home` and its data in `/data`.
pub fn container_config(
    spec: &ServerSpec,
    role: ContainerRole,
    port: u16,
    home: &Path,
) -> Result<ContainerConfig, LocalError> {
    let all = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port);
    let node = node(spec, role, all, home);
    let told = server(spec.kind).launch_config(spec, &node, "unknown")?;
    let own = spec.program.clone().unwrap_or_else(|| spec.kind.program_name().into());
    let program = match spec.part(node.number as u32) {
        Part::Router => own.with_file_name("mongos"),
        _ => own,
    };
    let mut command = vec![program.display().to_string()];
    command.extend(told.arguments);
    let secret = server(spec.kind).password(spec).is_some()
        || spec.options.keys().any(|key| is_secret(key) || is_user(key));
    Ok(ContainerConfig { file: told.configuration, secret, command })
}

fn nodes(spec: &ServerSpec, sockets: &[SocketAddr]) -> Vec<ServerNode> {
    let each = (spec.processes_each() as usize).max(1);
    let role = |at: usize| ContainerRole { instance: at / each, number: at % each, config: None };
    sockets.iter().enumerate().map(|(at, socket)| node(spec, role(at), *socket, Path::new("/"))).collect()
}

/// Keys or documents of servers elsewhere.
pub fn count_elsewhere(spec: &ServerSpec, sockets: &[SocketAddr]) -> Result<u64, LocalError> {
    server(spec.kind).count(spec, &nodes(spec, sockets).iter().collect::<Vec<_>>())
}

/// Has servers elsewhere write their data to disk.
pub fn save_elsewhere(spec: &ServerSpec, sockets: &[SocketAddr]) -> Result<(), LocalError> {
    server(spec.kind).save(spec, &nodes(spec, sockets).iter().collect::<Vec<_>>())
}

/// Waits until all answer, makes what the topology says of them, unless their data say that it has been `made`, and returns
/// the URI of each instance. The wait ends once `control` stops.
pub fn form_elsewhere(
    spec: &ServerSpec,
    sockets: &[SocketAddr],
    made: bool,
    control: &Control,
) -> Result<Vec<String>, LocalError> {
    let nodes = nodes(spec, sockets);
    let is_router = |node: &ServerNode| spec.part(node.number as u32) == Part::Router;
    await_all(spec, nodes.iter().filter(|node| !is_router(node)), control)?;
    let instances = nodes.chunks((spec.processes_each() as usize).max(1));
    let instances: Vec<Vec<&ServerNode>> = instances.map(|instance| instance.iter().collect()).collect();
    let kind = server(spec.kind);
    let groups = instances.iter().map(|nodes| ProcessGroup { spec, nodes, made, control: Some(control) });
    groups.clone().try_for_each(|group| group.take_step(|group| kind.form(group)))?;
    if nodes.iter().any(is_router) {
        // They listen once the config server is there.
        await_all(spec, nodes.iter().filter(|node| is_router(node)), control)?;
        groups.clone().try_for_each(|group| group.take_step(|group| kind.join(group)))?;
    }
    Ok(instances.iter().map(|nodes| kind.uri(spec, nodes)).collect())
}

/// Waits until each answers.
fn await_all<'a>(
    spec: &ServerSpec,
    nodes: impl Iterator<Item = &'a ServerNode>,
    control: &Control,
) -> Result<(), LocalError> {
    let end = Instant::now() + Duration::from_nanos(spec.ready_within.0);
    for node in nodes {
        while let Err(why) = server(spec.kind).ready(spec, node, None) {
            if Instant::now() > end || control.is_stopping() {
                return Err(LocalError::failed_step(&node.name, why));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}
