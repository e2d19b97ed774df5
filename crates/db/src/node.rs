//! A process of a server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// One process to be started.
#[derive(Clone, Debug)]
pub struct ServerNode {
    /// `redis-17001`.
    pub name: String,
    /// Where it listens.
    pub address: IpAddr,
    /// The port it listens on.
    pub port: u16,
    /// Folder of the process's configuration and log.
    pub home: PathBuf,
    /// Folder of the process's data.
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

impl ServerNode {
    /// Where it is reached.
    pub fn socket_address(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Where it says what happens.
    pub fn log_path(&self) -> PathBuf {
        self.home.join("log")
    }
}
