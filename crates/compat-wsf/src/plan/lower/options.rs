//! Options of a case, beside its variables.

use dyno_config::server::{IfNotPermitted, ServerKind};
use serde_json::Value;
use std::path::PathBuf;

/// Options of a case, beside its variables.
#[derive(Clone, Debug)]
pub struct LowerOptions {
    /// Name of the experiment; default: reading and case.
    pub name: Option<String>,
    /// Kind of servers that are started.
    pub server: ServerKind,
    /// Program; default: the kind's usual name.
    pub program: Option<PathBuf>,
    /// Version of the program, where it is known beforehand.
    pub version: Option<String>,
    /// A server that exists instead.
    pub target: Option<String>,
    /// Port of the first server; default: 27017 for mongod, free ports for others.
    pub port: Option<u16>,
    /// Number of repetitions of the case (`--run`).
    pub runs: u32,
    /// True if settings of the host are changed for the run.
    pub tune_host: bool,
    /// Unmeasured time at the beginning of the run phase, seconds.
    pub warmup_s: u64,
    /// Time between the phases, seconds; default: none, with `faithful` the original's 30.
    pub pause_s: Option<u64>,
    /// Reaction where placement, limits or host settings are not permitted.
    pub if_not_permitted: IfNotPermitted,
    /// Keep the original's defects where they change what is done.
    pub faithful: bool,
    /// Take shares that do not sum to 1 as weights.
    pub faithful_weights: bool,
    /// Commands that are started in every window of EVENT_TRACE_PARAMS.
    pub tracers: Vec<Vec<String>>,
    /// Place of servers and clients.
    pub deployment: Deployment,
}

impl Default for LowerOptions {
    fn default() -> Self {
        LowerOptions {
            name: None,
            server: ServerKind::Mongod,
            program: None,
            version: None,
            target: None,
            port: None,
            runs: 1,
            tune_host: false,
            warmup_s: 0,
            pause_s: None,
            if_not_permitted: IfNotPermitted::Fail,
            faithful: false,
            faithful_weights: false,
            tracers: Vec::new(),
            deployment: Deployment::Local,
        }
    }
}

/// The key below `kubernetes` by which servers choose cores and folders of their node.
pub const PRIVILEGED: &str = "servers.privileged";

/// Place of servers and clients.
#[derive(Clone, Debug, Default)]
pub enum Deployment {
    /// On this host.
    #[default]
    Local,
    /// On hosts that are reached by ssh.
    Ssh(SshDeployment),
    /// In pods: keys below `kubernetes` and their values.
    Kubernetes(Vec<(String, Value)>),
}

/// Hosts that are reached by ssh.
#[derive(Clone, Debug, Default)]
pub struct SshDeployment {
    /// The inventory.
    pub inventory: String,
    /// Further keys below `ssh` and their values.
    pub more: Vec<(String, Value)>,
    /// Hosts of the inventory's group `worker`.
    pub servers: Vec<String>,
    /// Hosts of its group `client`.
    pub clients: Vec<String>,
}
