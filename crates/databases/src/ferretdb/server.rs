//! FerretDB 1.x with SQLite: flags alone.

use crate::servers::{Node, Told, flags, reserved};
use dyno_config::server::ServerSpec;
use dyno_localhost::error::LocalError;

const RESERVED: [(&str, &str); 4] = [
    ("listen-addr", "port"),
    ("handler", "nothing: the data are in SQLite"),
    ("sqlite-url", "data.path"),
    ("state-dir", "nothing"),
];

/// Writes the configuration and the command line of a process.
///
/// # Errors
/// Refuses options that dyno sets itself.
pub fn tell(spec: &ServerSpec, node: &Node) -> Result<Told, LocalError> {
    reserved(spec, &RESERVED)?;
    let own = [
        ("handler", "sqlite".to_owned()),
        ("sqlite-url", format!("file:{}/", node.data.display())),
        ("listen-addr", node.socket().to_string()),
        ("debug-addr", "-".into()),
        ("telemetry", "disable".into()),
        ("state-dir", node.data.display().to_string()),
        ("log-level", "WARN".into()),
    ];
    Ok(Told { configuration: None, arguments: flags(&own, spec) })
}
