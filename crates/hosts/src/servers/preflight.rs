//! Needs of a server before anything is made: its program, its ports, its share of memory, its folders.

use dyno_config::server::{Part, ServerKind, ServerSpec, Topology as Shape};
use dyno_databases::registry::server;
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::{Machine, is_program};
use dyno_localhost::port::free_port;
use dyno_localhost::process;
use dyno_monitor::topology::Topology;
use dyno_types::child;
use dyno_types::limits::LINE_BYTES;
use std::io::{BufRead, BufReader, Read as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The folder of a path, which must be there.
pub(super) fn absolute(path: &Path) -> Result<PathBuf, LocalError> {
    match path.canonicalize() {
        Ok(path) if path.is_dir() => Ok(path),
        Ok(_) => Err(LocalError::refuse("data.path", format!("data.path: {}: is no folder", path.display()))),
        Err(e) => Err(LocalError::refuse("data.path", format!("data.path: {}: {e}", path.display()))),
    }
}

/// The program: on PATH by its usual or given name, or at a path.
pub fn find_program(spec: &ServerSpec, machine: &Machine) -> Result<PathBuf, LocalError> {
    let name = spec.program.clone().unwrap_or_else(|| spec.kind.program_name().into());
    let found = match name.components().count() {
        1 => machine.find_program(&name.display().to_string()),
        _ => name.canonicalize().ok().filter(|path| is_program(path)),
    };
    let place = if name.components().count() == 1 { "is not on PATH" } else { "is no program" };
    found.ok_or_else(|| {
        LocalError::Absent(format!("{}: {} {place} (program: names one)", spec.kind, name.display()))
    })
}

/// The program of routers, where there are some: mongos, beside mongod or on PATH.
pub fn find_router(spec: &ServerSpec, machine: &Machine) -> Result<Option<PathBuf>, LocalError> {
    if spec.topology != Shape::Sharded {
        return Ok(None);
    }
    let own = find_program(spec, machine)?;
    let beside = Some(own.with_file_name("mongos")).filter(|path| is_program(path));
    let absent = || LocalError::Absent(format!("mongos is neither beside {} nor on PATH", own.display()));
    beside.or_else(|| machine.find_program("mongos")).ok_or_else(absent).map(Some)
}

/// Returns the version that a kind's program, by its usual name or another, reports on this host; absent where it is not there or
/// says nothing.
pub fn program_version(kind: ServerKind, other: Option<&Path>, machine: &Machine) -> Option<String> {
    let name = other.unwrap_or(Path::new(kind.program_name()));
    let found = match name.components().count() {
        1 => machine.find_program(&name.display().to_string()),
        _ => Some(name.to_owned()).filter(|path| is_program(path)),
    };
    found.map(|path| version(&path)).filter(|version| version != "unknown")
}

/// Returns the version that the program of a server reports.
pub fn version_of(spec: &ServerSpec, machine: &Machine) -> Result<String, LocalError> {
    Ok(version(&find_program(spec, machine)?))
}

/// The first line of `--version`; a program that does not answer within five seconds has none.
pub(super) fn version(program: &Path) -> String {
    let mut command = child::clean_command(program);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0);
    let Ok(mut child) = command.spawn() else { return "unknown".into() };
    let begun = Instant::now();
    while matches!(child.try_wait(), Ok(None)) && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(2));
    }
    // A process that it has forked holds the pipe open; one that has gone its own way is not waited for.
    process::end_group(child.id());
    let (tell, told) = std::sync::mpsc::channel();
    if let Some(pipe) = child.stdout.take() {
        std::thread::spawn(move || {
            // Told as soon as it is there: the end of the pipe may never come. Words that are no text are no version.
            let lines = BufReader::new(pipe.take(LINE_BYTES as u64)).lines().map_while(Result::ok);
            let mut words = lines.map(|line| plain(line.trim())).filter(|line| !line.is_empty());
            let _ = tell.send(words.next());
        });
    }
    let line = told.recv_timeout(Duration::from_secs(1)).ok().flatten();
    let _ = child.wait();
    line.unwrap_or_else(|| "unknown".into())
}

/// A line without the colours that some programs print even where no terminal is.
fn plain(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let rest = part
            .strip_prefix('[')
            .and_then(|part| Some(part.split_once(|c: char| c.is_ascii_alphabetic())?.1));
        text + rest.unwrap_or(part)
    })
}

/// Distance of a cluster's bus from the port of a process (Redis Cluster specification).
const BUS: u16 = 10_000;

/// The ports of all processes, none of them in use.
pub(super) fn ports(spec: &ServerSpec) -> Result<Vec<u16>, LocalError> {
    let count = spec.processes() as u16;
    let bus = spec.topology == Shape::Cluster;
    let taken = |port: u16| {
        let busy = |port: &u16| TcpListener::bind((spec.listens(), *port)).is_err();
        [Some(port), port.checked_add(BUS).filter(|_| bus)].into_iter().flatten().find(busy)
    };
    if let Some(first) = spec.port {
        let all = (first..=u16::MAX).take(usize::from(count));
        if bus && all.clone().next_back().is_some_and(|last| last.checked_add(BUS).is_none()) {
            return Err(LocalError::refuse(
                "server.port",
                format!(
                    "server.port: the bus of a cluster has the ports {BUS} above: {first} is too high for {count} processes"
                ),
            ));
        }
        return match all.clone().find_map(taken) {
            Some(port) => Err(LocalError::refuse("server.port", format!("server.port: {port} is in use"))),
            None if all.len() < usize::from(count) => Err(LocalError::refuse(
                "server.port",
                format!("server.port: {count} processes have no room from {first} on"),
            )),
            None => Ok(all.collect()),
        };
    }
    for _ in 0..1_000 {
        let first = free_port().map_err(|e| LocalError::failed_step("ports", e))?;
        if first < u16::MAX - BUS - count && (first..first + count).find_map(taken).is_none() {
            return Ok((first..first + count).collect());
        }
    }
    Err(LocalError::Failed(format!("no {count} free ports one after the other")))
}

/// Memory that each process is meant to take at most, as far as that is known.
pub(crate) fn budgets(spec: &ServerSpec, topology: &Topology) -> Vec<u64> {
    let asked = spec.limits.memory.as_ref().or(spec.cache.as_ref()).map(|bytes| bytes.0);
    let own = topology.memory().map_or(0, |total| spec.kind.server_rules().own_cache(total));
    let of = |number: u32| match spec.part(number % spec.processes_each()) {
        part @ (Part::Config | Part::Router) if spec.limits.memory.is_none() => {
            server(spec.kind).cache_beside(part)
        }
        _ => asked.unwrap_or(own),
    };
    (0..spec.processes()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn spec(json: &str) -> ServerSpec {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn colours_are_no_part_of_a_version() {
        assert_eq!(plain("dragonfly \u{1b}[0;32mv1.37.0\u{1b}[m"), "dragonfly v1.37.0");
        assert_eq!(plain("db version v3.6.8"), "db version v3.6.8");
    }

    #[test]
    fn only_servers_of_data_have_the_cache() {
        let topology = Machine::default().machine_topology().unwrap();
        let sharded = r#"{"kind": "mongod", "topology": "sharded", "cache": "8GiB""#;
        let gib = |spec: &ServerSpec| {
            budgets(spec, &topology).iter().map(|one| *one as f64 / (1u64 << 30) as f64).collect::<Vec<_>>()
        };
        assert_eq!(gib(&spec(&format!("{sharded}}}"))), [0.25, 8.0, 8.0, 0.0]);
        // Every part has the same limit.
        assert_eq!(gib(&spec(&format!(r#"{sharded}, "limits": {{"memory": "9GiB"}}}}"#))), [9.0; 4]);
    }

    #[test]
    fn the_last_port_is_one() {
        let at = |port: u16, instances: u32| {
            ports(&spec(&format!(r#"{{"kind": "redis", "port": {port}, "instances": {instances}}}"#)))
        };
        match at(65535, 1) {
            Ok(all) => assert_eq!(all, [65535]),
            Err(error) => assert!(error.to_string().contains("65535 is in use"), "{error}"),
        }
        assert!(at(65535, 2).is_err());
        let cluster = r#"{"kind": "redis", "topology": "cluster", "replicas": 2, "port": 55534}"#;
        let why = ports(&spec(cluster)).unwrap_err().to_string();
        assert!(why.contains("55534 is too high for 9 processes"), "{why}");
    }

    #[test]
    fn a_version_is_heard_though_the_pipe_stays_open() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("daemon");
        let text = "#!/bin/sh\necho\necho ' v 1.2'\nsetsid sleep 4 &\nsleep 0.3\n";
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        // Whatever another test is about to start may still have the file open: it cannot be run that moment.
        let again = |n: u64| {
            std::thread::sleep(Duration::from_millis(50 * n.min(1)));
            version(&program)
        };
        let found = (0..40).map(again).find(|found| found != "unknown");
        assert_eq!(found.as_deref(), Some("v 1.2"));
    }
}
