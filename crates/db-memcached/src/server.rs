//! Servers of memcached: flags alone.

use crate::protocol::{MemcachedFacts, MemcachedOptions};
use crate::target::probe;
use dyno_config::server::ServerSpec;
use dyno_db::probe::{NEVER, ProbeFailure};
use dyno_db::servers::{
    DatabaseServer, LaunchConfig, NotReady, ServerNode, check_answering, join_hosts, launch_flags,
    refuse_reserved,
};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_types::{Endpoint, Refused};

const RESERVED: [(&str, &str); 7] = [
    ("port", "port"),
    ("listen", "address"),
    ("unix-socket", "address"),
    ("memory-limit", "cache"),
    ("daemon", "nothing: dyno must see the process end"),
    ("pidfile", "nothing"),
    ("user", "nothing"),
];

/// Why a server does not say what it holds.
#[derive(Debug, thiserror::Error)]
enum StatsError {
    #[error(transparent)]
    Uri(#[from] Refused),
    #[error(transparent)]
    Asking(#[from] ProbeFailure),
    #[error("stats has no {0}, or no number there")]
    Missing(&'static str),
}

/// Answers of one server to `version` and `stats`.
fn stats(node: &ServerNode) -> Result<MemcachedFacts, StatsError> {
    let options = MemcachedOptions::from_uri(&format!("memcached://{}", node.socket_address()))?;
    let endpoint = Endpoint::Tcp { host: node.address.to_string(), address: node.socket_address() };
    Ok(probe(&options, (None, NEVER), &endpoint)?)
}

fn number(facts: &MemcachedFacts, key: &'static str) -> Result<u64, StatsError> {
    facts.get(key).and_then(|text| text.parse().ok()).ok_or(StatsError::Missing(key))
}

/// memcached.
pub struct MemcachedServer;

impl DatabaseServer for MemcachedServer {
    fn configure(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        _version: &str,
    ) -> Result<LaunchConfig, LocalError> {
        refuse_reserved(spec, &RESERVED)?;
        let mut own = vec![
            ("listen", node.address.to_string()),
            ("port", node.port.to_string()),
            ("udp-port", "0".to_owned()),
            ("conn-limit", "20000".to_owned()),
            // As root it wants to be told so; as another user it ignores this option.
            ("user", "root".to_owned()),
        ];
        if let Some(cache) = &spec.cache {
            own.push(("memory-limit", (cache.0 >> 20).to_string()));
        }
        if let Some(cores) = node.cores {
            own.push(("threads", cores.to_string()));
        }
        Ok(LaunchConfig { configuration: None, arguments: launch_flags(&own, spec) })
    }

    fn ready(
        &self,
        _spec: &ServerSpec,
        node: &ServerNode,
        started: Option<(&Machine, u32)>,
    ) -> Result<Option<u32>, NotReady> {
        let facts = stats(node).map_err(|why| NotReady::NoAnswer(why.into()))?;
        let Some(started) = started else { return Ok(None) };
        let own = number(&facts, "pid").ok().and_then(|pid| u32::try_from(pid).ok());
        check_answering(own, node, started)
    }

    fn uri(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> String {
        format!("memcached://{}", join_hosts(spec, nodes))
    }

    fn count(&self, _spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<u64, LocalError> {
        let each = |node: &&ServerNode| {
            let items = stats(node).and_then(|facts| number(&facts, "curr_items"));
            items.map_err(|why| LocalError::failed_step(&node.name, why))
        };
        nodes.iter().map(each).sum()
    }
}
