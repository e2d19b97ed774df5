//! Servers in pods that stay after the command that has started them.

use crate::kubernetes::error::PodsError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::net::{IpAddr, SocketAddr};

/// Where servers that stay are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentPods {
    /// The label of their run.
    pub selector: String,
    /// The StatefulSets of each instance.
    pub sets: Vec<String>,
    /// Their port.
    pub port: u16,
}

/// Which StatefulSet a server's pod is of, its number in it, and its address: at `port`, if the pod does not only have others.
pub(super) fn socket(
    pod: &Value,
    sets: &[String],
    port: u16,
) -> Result<(usize, usize, SocketAddr), PodsError> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let apart = name
        .rsplit_once('-')
        .and_then(|(set, number)| Some((sets.iter().position(|one| one == set)?, number.parse().ok()?)));
    let unknown = || PodsError::Unknown { pod: name.to_owned(), sets: sets.to_vec() };
    let (set, ordinal) = apart.ok_or_else(unknown)?;
    let address = pod["status"]["podIP"].as_str().and_then(|ip| ip.parse::<IpAddr>().ok());
    let address = address.ok_or_else(|| PodsError::NoAddress(name.to_owned()))?;
    let containers = pod["spec"]["containers"].as_array();
    let server = containers.and_then(|all| all.iter().find(|container| container["name"] == "server"));
    let ports = server.and_then(|server| server["ports"].as_array()).map_or(&[][..], Vec::as_slice);
    let own: Vec<u16> =
        ports.iter().filter_map(|one| u16::try_from(one["containerPort"].as_u64()?).ok()).collect();
    let port = if own.contains(&port) { port } else { own.first().copied().unwrap_or(port) };
    Ok((set, ordinal, SocketAddr::new(address, port)))
}

/// Where the servers are now.
pub(super) fn sockets(pods: &[Value], persistent: &PersistentPods) -> Result<Vec<SocketAddr>, PodsError> {
    let found: Result<Vec<_>, PodsError> =
        pods.iter().map(|pod| socket(pod, &persistent.sets, persistent.port)).collect();
    let mut found = found?;
    found.sort_unstable();
    match found.is_empty() {
        true => Err(PodsError::Gone(persistent.selector.clone())),
        false => Ok(found.into_iter().map(|(_, _, socket)| socket).collect()),
    }
}
