//! Redis, Valkey and KeyDB: redis.conf.

use crate::redis::client::Client;
use crate::servers::{Node, NotReady, Told, redis_word, reserved};
use dyno_config::server::{ServerSpec, Topology};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::process;
use std::time::Duration;

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

/// Writes the configuration and the command line of a process.
///
/// # Errors
/// Refuses options that dyno sets itself.
pub fn tell(spec: &ServerSpec, node: &Node) -> Result<Told, LocalError> {
    reserved(spec, &RESERVED)?;
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
            return Err(LocalError::Refused(format!("options.{key:?}: is no name of a setting")));
        }
        // As it would stand in redis.conf, where `60 1` is two arguments; a password is one, whatever is in it.
        let word = redis_word(value);
        if word.contains(['\n', '\r']) {
            return Err(LocalError::Refused(format!("options.{key}: a value is one line")));
        }
        let whole = word.is_empty() || ["requirepass", "masterauth"].contains(&key.as_str());
        text += &format!("{key} {}\n", if whole { quoted(&word) } else { word });
    }
    let file = node.home.join("redis.conf").display().to_string();
    Ok(Told { configuration: Some(("redis.conf", text)), arguments: vec![file] })
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The password of `requirepass`.
pub fn password(spec: &ServerSpec) -> Option<String> {
    spec.options.get("requirepass").map(ToString::to_string).filter(|password| !password.is_empty())
}

/// `:password@` for a URI.
pub fn login(spec: &ServerSpec) -> String {
    let Some(password) = password(spec) else { return String::new() };
    let mut out = String::from(":");
    for byte in password.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte as char),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out + "@"
}

/// Ready is who answers PING, has loaded its data, and is the process that was started, or one that it has started (a
/// wrapper's); its number.
pub fn ready(
    spec: &ServerSpec,
    node: &Node,
    started: Option<(&Machine, u32)>,
) -> Result<Option<u32>, NotReady> {
    let mut client = Client::connect(node.socket(), password(spec).as_deref(), Duration::from_secs(2))?;
    let pong = client.call(&["PING"])?;
    if pong.text() != "PONG" {
        return Err(NotReady::NoPong(pong.text().to_owned()));
    }
    let Some((machine, pid)) = started else { return Ok(None) };
    let info = client.call(&["INFO", "server"])?;
    let own =
        info.text().lines().find_map(|line| line.strip_prefix("process_id:")?.trim().parse::<u32>().ok());
    match own {
        Some(other) if other != pid && process::group(machine, other) != Some(pid) => {
            Err(NotReady::AnotherProcess { other, socket: node.socket(), pid })
        }
        own => Ok(own),
    }
}

/// Asks a server to write its data to disk and end; says whether it took the command.
pub fn save_and_end(spec: &ServerSpec, node: &Node) -> bool {
    let client = Client::connect(node.socket(), password(spec).as_deref(), Duration::from_secs(2));
    // The server closes the connection instead of answering; how it ended shows in its exit.
    client.is_ok_and(|mut client| client.send(&["SHUTDOWN", "SAVE"]).is_ok())
}
