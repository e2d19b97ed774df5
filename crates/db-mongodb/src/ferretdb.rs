//! FerretDB 1.x with SQLite: flags alone.

use crate::server::MongodServer;
use dyno_config::server::ServerSpec;
use dyno_db::servers::{DatabaseServer, LaunchConfig, NotReady, ServerNode, launch_flags, refuse_reserved};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;

const RESERVED: [(&str, &str); 4] = [
    ("listen-addr", "port"),
    ("handler", "nothing: the data are in SQLite"),
    ("sqlite-url", "data.path"),
    ("state-dir", "nothing"),
];

/// FerretDB. Clients speak with it as with MongoDB.
pub struct FerretDbServer;

impl DatabaseServer for FerretDbServer {
    fn configure(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        _version: &str,
    ) -> Result<LaunchConfig, LocalError> {
        refuse_reserved(spec, &RESERVED)?;
        let own = [
            ("handler", "sqlite".to_owned()),
            ("sqlite-url", format!("file:{}/", node.data.display())),
            ("listen-addr", node.socket_address().to_string()),
            ("debug-addr", "-".into()),
            ("telemetry", "disable".into()),
            ("state-dir", node.data.display().to_string()),
            ("log-level", "WARN".into()),
        ];
        Ok(LaunchConfig { configuration: None, arguments: launch_flags(&own, spec) })
    }

    fn ready(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        started: Option<(&Machine, u32)>,
    ) -> Result<Option<u32>, NotReady> {
        MongodServer.ready(spec, node, started)
    }

    fn uri(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> String {
        MongodServer.uri(spec, nodes)
    }

    fn count(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<u64, LocalError> {
        MongodServer.count(spec, nodes)
    }
}
