//! Sources that can be watched of a target.

use dyno_db::target::OpenTarget;
use dyno_monitor::Source;
use dyno_types::Endpoint;
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{IpAddr, UdpSocket};

/// Every node of the target that says something of itself.
pub fn watch_nodes(opened: &dyn OpenTarget) -> Vec<Box<dyn Source>> {
    sources(&[opened])
}

/// The same of several targets. The only node of all is called `database`, several are called by their address too.
pub fn watch_all(targets: &[Box<dyn OpenTarget>]) -> Vec<Box<dyn Source>> {
    sources(&targets.iter().map(AsRef::as_ref).collect::<Vec<_>>())
}

fn sources(targets: &[&dyn OpenTarget]) -> Vec<Box<dyn Source>> {
    let of: usize = targets.iter().map(|opened| opened.nodes().len()).sum();
    let name = |endpoint: Option<&Endpoint>| match endpoint {
        Some(endpoint) if of > 1 => format!("database-{endpoint}"),
        _ => "database".into(),
    };
    targets.iter().flat_map(|opened| opened.sources(&name)).collect()
}

/// The process of a server that dyno did not start, as the server tells of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredProcess {
    /// Number on its own host.
    pub pid: u32,
    /// Program.
    pub program: String,
    /// Where it was asked; none: a socket of this host.
    pub address: Option<IpAddr>,
}

impl DeclaredProcess {
    /// That of the only server of a target.
    pub fn of_target(opened: &dyn OpenTarget) -> Option<Self> {
        let (pid, program, endpoint) = opened.process()?;
        let address = match endpoint {
            Endpoint::Tcp { address, .. } => Some(address.ip()),
            Endpoint::Unix(_) => None,
        };
        Some(DeclaredProcess { pid, program, address })
    }

    /// Returns whether it was asked at the loopback, or at a socket of the filesystem.
    pub fn is_local(&self) -> bool {
        self.address.is_none_or(|address| address.is_loopback())
    }

    /// Returns whether it runs on this host: the address is the host's own, and the number belongs to a process of
    /// that name. What answers may be a proxy, or in another namespace of processes.
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
pub fn server_process(opened: &dyn OpenTarget) -> Option<u32> {
    DeclaredProcess::of_target(opened).filter(|told| told.is_local() && told.is_here()).map(|told| told.pid)
}
