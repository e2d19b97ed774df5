//! Servers of Redis, Valkey and KeyDB: redis.conf, and what they are asked.

use crate::client::{Client, RespError};
use crate::cluster::{self, password};
use crate::protocol::resp::RespReply;
use dyno_config::server::{ServerSpec, Setting, Topology};
use dyno_db::cluster::{ClusterError, ProcessGroup};
use dyno_db::servers::{
    DatabaseServer, LaunchConfig, NotReady, ServerNode, check_answering, join_hosts, join_query,
    refuse_reserved,
};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_types::percent;
use std::time::Duration;

/// A server that serves answers at once.
const ASKING: Duration = Duration::from_secs(2);
/// A server that answers at all says at once how many keys it has.
const COUNTING: Duration = Duration::from_secs(20);
/// Writing all data to disk may take long.
const SAVING: Duration = Duration::from_secs(600);

const RESERVED: [(&str, &str); 14] = [
    ("port", "port"),
    ("bind", "address"),
    ("unixsocket", "address"),
    ("dir", "data.path"),
    ("daemonize", "nothing: dyno must see the process end"),
    ("supervised", "nothing: dyno must see the process end"),
    ("pidfile", "nothing"),
    ("logfile", "nothing: the log is in the run directory"),
    ("cluster-enabled", "topology"),
    ("cluster-config-file", "topology"),
    ("replicaof", "topology"),
    ("slaveof", "topology"),
    ("server_cpulist", "placement"),
    ("server-cpulist", "placement"),
];

fn configure(spec: &ServerSpec, node: &ServerNode) -> Result<LaunchConfig, LocalError> {
    refuse_reserved(spec, &RESERVED)?;
    let on = |on: bool| if on { "yes" } else { "no" }.to_owned();
    let mut lines = vec![
        ("bind", node.address.to_string()),
        ("port", node.port.to_string()),
        ("dir", quoted(&node.data.display().to_string())),
        ("daemonize", on(false)),
        ("logfile", quoted("")),
        ("dbfilename", "dump.rdb".into()),
        ("save", quoted("")),
        ("appendonly", on(spec.journal == Some(true))),
        ("maxclients", "20000".into()),
        ("protected-mode", on(false)),
    ];
    if let Some(cache) = &spec.cache {
        lines.push(("maxmemory", cache.0.to_string()));
    }
    if spec.topology == Topology::Cluster {
        lines.push(("cluster-enabled", on(true)));
        lines.push(("cluster-config-file", "nodes.conf".into()));
        lines.push(("cluster-node-timeout", "5000".into()));
    }
    if let (Some(password), true) = (password(spec), spec.topology != Topology::Single) {
        lines.push(("masterauth", quoted(&password)));
    }
    let mut text = String::from("# Written by dyno for this run.\n");
    for (key, value) in lines.iter().filter(|(key, _)| !spec.options.contains_key(*key)) {
        text += &format!("{key} {value}\n");
    }
    for (key, value) in &spec.options {
        if key.is_empty() || key.contains(char::is_whitespace) {
            return Err(LocalError::refuse(
                format!("options.{key}"),
                format!("options.{key:?}: is no name of a setting"),
            ));
        }
        // As it would stand in redis.conf, where `60 1` is two arguments; a password is one, whatever is in it.
        let word = word_of(value);
        if word.contains(['\n', '\r']) {
            return Err(LocalError::refuse(
                format!("options.{key}"),
                format!("options.{key}: a value is one line"),
            ));
        }
        let whole = word.is_empty() || ["requirepass", "masterauth"].contains(&key.as_str());
        text += &format!("{key} {}\n", if whole { quoted(&word) } else { word });
    }
    let file = node.home.join("redis.conf").display().to_string();
    Ok(LaunchConfig { configuration: Some(("redis.conf", text)), arguments: vec![file] })
}

/// `yes` and `no`, as Redis writes switches.
fn word_of(setting: &Setting) -> String {
    match setting {
        Setting::Switch(true) => "yes".into(),
        Setting::Switch(false) => "no".into(),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// `:password@` for a URI.
fn login(spec: &ServerSpec) -> String {
    password(spec).map_or(String::new(), |password| {
        format!(":{}@", percent::percent_encode(&password, percent::RESERVED))
    })
}

impl From<RespError> for NotReady {
    fn from(why: RespError) -> Self {
        NotReady::NoAnswer(why.into())
    }
}

/// Why a server cannot say how many keys it has.
#[derive(Debug, thiserror::Error)]
enum KeyCountError {
    #[error(transparent)]
    Redis(#[from] RespError),
    #[error("DBSIZE: {0:?} is no number")]
    Keys(String),
}

fn keys(spec: &ServerSpec, node: &ServerNode) -> Result<u64, KeyCountError> {
    let mut client = Client::connect(node.socket_address(), password(spec).as_deref(), COUNTING)?;
    let role = client.send_command(&["ROLE"])?;
    match &role {
        RespReply::List(words) if words.first().is_some_and(|word| word.as_text() == "master") => {
            let size = client.send_command(&["DBSIZE"])?;
            size.as_text().parse().map_err(|_| KeyCountError::Keys(size.as_text().to_owned()))
        }
        _ => Ok(0),
    }
}

/// redis-server, valkey-server and keydb-server.
pub struct RedisServer;

impl DatabaseServer for RedisServer {
    fn configure(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        _version: &str,
    ) -> Result<LaunchConfig, LocalError> {
        configure(spec, node)
    }

    fn ready(
        &self,
        spec: &ServerSpec,
        node: &ServerNode,
        started: Option<(&Machine, u32)>,
    ) -> Result<Option<u32>, NotReady> {
        let mut client = Client::connect(node.socket_address(), password(spec).as_deref(), ASKING)?;
        let pong = client.send_command(&["PING"])?;
        if pong.as_text() != "PONG" {
            return Err(NotReady::NoPong(pong.as_text().to_owned()));
        }
        let Some(started) = started else { return Ok(None) };
        let info = client.send_command(&["INFO", "server"])?;
        let own = info
            .as_text()
            .lines()
            .find_map(|line| line.strip_prefix("process_id:")?.trim().parse::<u32>().ok());
        check_answering(own, node, started)
    }

    fn uri(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> String {
        let formed = (spec.topology == Topology::Cluster).then(|| "cluster=true".to_owned());
        let query = join_query(spec, formed, ("reads=replica", "reads=any"));
        format!("redis://{}{}{query}", login(spec), join_hosts(spec, nodes))
    }

    fn password(&self, spec: &ServerSpec) -> Option<String> {
        password(spec)
    }

    fn count(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<u64, LocalError> {
        let each =
            |node: &&ServerNode| keys(spec, node).map_err(|why| LocalError::failed_step(&node.name, why));
        nodes.iter().map(each).sum()
    }

    fn save(&self, spec: &ServerSpec, nodes: &[&ServerNode]) -> Result<(), LocalError> {
        nodes.iter().try_for_each(|node| {
            let client = Client::connect(node.socket_address(), password(spec).as_deref(), SAVING);
            let saved = client.and_then(|mut client| client.send_command(&["SAVE"]));
            saved.map(drop).map_err(|why| LocalError::failed_step(&node.name, why))
        })
    }

    fn save_and_end(&self, spec: &ServerSpec, node: &ServerNode) -> bool {
        let client = Client::connect(node.socket_address(), password(spec).as_deref(), ASKING);
        // The server closes the connection instead of answering; how it ended shows in its exit.
        client.is_ok_and(|mut client| client.send(&["SHUTDOWN", "SAVE"]).is_ok())
    }

    fn form(&self, group: &ProcessGroup<'_>) -> Result<(), ClusterError> {
        match group.spec.topology {
            Topology::Cluster => cluster::form_cluster(group),
            _ => cluster::replicate_first(group),
        }
    }

    fn rejoin(&self, spec: &ServerSpec, nodes: &[&ServerNode], i: usize) -> Result<(), ClusterError> {
        // Nodes of a cluster keep in their data whom they copy.
        cluster::follow_again(spec, nodes, i)
    }
}
