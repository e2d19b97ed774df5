//! Hosts that are reached by ssh.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hosts that are reached by ssh: servers and load run there, and this host only conducts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ssh {
    /// An inventory of Ansible, INI or YAML, with hosts and groups. Default: none; then names are what ssh is given, and the
    /// user's own ssh configuration knows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<String>,
    /// A configuration file of ssh (`ssh -F`). Default: the user's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// Hosts or groups that workers run on; each runs `client.workers` of them. Default: workers run on this host.
    pub clients: Vec<String>,
    /// Hosts or groups that servers are started on, each as `server` describes them. Default: on this host.
    pub servers: Vec<String>,
    /// Hosts or groups that the servers of `target` run on: they are only watched, nothing is started there. Figures of the
    /// database's host are those of the first. Default: none; then nothing is known of the host of a `target` elsewhere.
    pub watched: Vec<String>,
    /// Directory on those hosts for dyno's program, configurations, logs and data. Default: `dyno` below
    /// `$XDG_CACHE_HOME` or `~/.cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
}

impl Ssh {
    /// Returns whether nothing is elsewhere.
    pub fn is_nothing(&self) -> bool {
        self.clients.is_empty() && self.servers.is_empty() && self.watched.is_empty()
    }
}
