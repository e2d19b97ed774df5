//! A temporary server for one run: started on a free loopback port in a directory of its own, removed afterwards.

use crate::registry;
use dyno_config::server::{ServerKind, ServerSpec};
use dyno_db::node::ServerNode;
use dyno_engine::{Control, affinity};
use dyno_localhost::error::LocalError;
use dyno_localhost::machine::Machine;
use dyno_localhost::port::free_port;
use dyno_localhost::process;
use dyno_localhost::temporary::Temporary;
use dyno_types::bounded;
use dyno_types::limits::LOG_END_BYTES;
use dyno_types::secret::mask_arguments;
use dyno_types::shell::quoted;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Time that a server may take until it listens.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Spawned {
    child: Child,
    /// Holds its data and its log; removed on drop.
    home: Temporary,
    spec: ServerSpec,
    node: ServerNode,
    /// Loopback port of the server.
    pub port: u16,
    /// The core it was pinned to, if there is more than one.
    pub core: Option<usize>,
}

impl Spawned {
    /// `redis`, `valkey`, ...
    pub fn kind(&self) -> &'static str {
        self.spec.kind.server_rules().name()
    }

    /// The URI of a target that it is.
    pub fn uri(&self) -> String {
        registry::server(self.spec.kind).uri(&self.spec, &[&self.node])
    }

    /// Process number of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Words on its end, with the last lines of its log, if it has ended.
    pub fn died(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(format!("{} ended ({status}): {}", self.kind(), self.last_words()))
    }

    fn last_words(&self) -> String {
        let log = bounded::end_of(self.home.data_folder().join("log"), LOG_END_BYTES).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(3).collect();
        last.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        tracing::info!(kind = self.kind(), pid = self.child.id(), "a temporary server is stopped");
        // It may have died already; then there is nothing to stop. A program on PATH may be a wrapper: its group ends with it.
        if matches!(self.child.try_wait(), Ok(None)) {
            dyno_localhost::process::end_group(self.child.id());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program of a name on PATH.
fn on_path(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(program)).find(|p| p.is_file())
}

/// Kinds that `kind` may mean: itself, or without a name those that may stand for any.
pub fn meant(kind: Option<&str>) -> impl Iterator<Item = ServerKind> {
    let fits = move |one: &ServerKind| {
        kind.map_or(one.server_rules().stands_for_any(), |kind| kind == one.server_rules().name())
    };
    ServerKind::ALL.into_iter().filter(fits)
}

/// The server of `kind` with its program, if it is installed; without a kind the first of those that may stand for any.
pub fn find_server(kind: Option<&str>) -> Option<(ServerKind, PathBuf)> {
    meant(kind).find_map(|one| on_path(one.program_name()).map(|path| (one, path)))
}

/// Starts a server and waits until it serves. Where there are two cores or more it gets the first, and load threads keep off
/// it.
///
/// # Errors
/// Says why it is not there, with the end of its log.
pub fn spawn(kind: ServerKind, program: &Path) -> Result<Spawned, LocalError> {
    spawn_under(kind, program, None)
}

/// The same; it is not waited for any longer when `control` stops.
///
/// # Errors
/// As [`spawn`].
pub fn spawn_under(
    kind: ServerKind,
    program: &Path,
    control: Option<&Control>,
) -> Result<Spawned, LocalError> {
    let failed = |why: io::Error| LocalError::failed_step(kind, why);
    let mut home = Temporary::for_server()?;
    let port = free_port().map_err(failed)?;
    let spec = ServerSpec { cache: kind.server_rules().temporary_cache(), ..ServerSpec::of(kind) };
    let node = ServerNode {
        name: format!("{kind}-{port}"),
        address: spec.listens(),
        port,
        home: home.data_folder().to_owned(),
        data: home.data_folder().join("data"),
        instance: 0,
        number: 0,
        cores: Some(1),
        config: None,
    };
    fs::create_dir(&node.data).map_err(failed)?;
    // Nothing that depends on the version is asked for.
    let launch = registry::server(kind).launch_config(&spec, &node, "unknown")?;
    if let Some((name, text)) = &launch.configuration {
        fs::write(node.home.join(name), text).map_err(failed)?;
    }
    let log = File::create(node.log_path()).map_err(failed)?;
    let mut command = process::ending_with_dyno(program);
    command.args(&launch.arguments).current_dir(home.data_folder());
    // A group of its own: Ctrl-C in a terminal goes to every process of the foreground group, and the server must
    // outlive the replies that are still awaited.
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(log.try_clone().map_err(failed)?).stderr(log);
    let cores = affinity::allowed_cores();
    let core = if cores.len() > 1 { Some(cores[0]) } else { None };
    let child = on_core(core, || command.spawn()).map_err(failed)?;
    let line: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(lossy).collect();
    let line = quoted(&mask_arguments(&line));
    tracing::info!(
        kind = kind.server_rules().name(),
        port,
        pid = child.id(),
        core,
        command = line,
        "a temporary server has been started"
    );
    let noted = home.note_process(child.id());
    let mut server = Spawned { child, home, spec, node, port, core };
    noted?;
    await_ready(&mut server, control).inspect_err(|error| {
        tracing::error!(kind = server.kind(), port, %error, "a temporary server does not serve");
    })?;
    Ok(server)
}

fn lossy(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

/// Runs `start` with this thread on `core`, so that a child inherits it.
fn on_core<T>(core: Option<usize>, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(core) = core else { return start() };
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only)?;
    let started = start();
    sched_setaffinity(None, &before)?;
    started
}

fn await_ready(server: &mut Spawned, control: Option<&Control>) -> Result<(), LocalError> {
    let failed = |why: String| LocalError::failed_step(server.spec.kind, why);
    let (begun, machine, kind) = (Instant::now(), Machine::default(), registry::server(server.spec.kind));
    loop {
        // What listens there without answering yet is asked again; a connection that is refused costs nothing.
        let address = server.node.socket_address();
        let not_ready = match TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
            Ok(_) => match kind.ready(&server.spec, &server.node, Some((&machine, server.child.id()))) {
                Ok(_) => return Ok(()),
                Err(why) => why.to_string(),
            },
            Err(why) => why.to_string(),
        };
        if let Some(status) = server.child.try_wait().map_err(|why| failed(why.to_string()))? {
            let message = server.last_words();
            return Err(failed(format!("it ended at once ({status}): {message}")));
        }
        if control.is_some_and(Control::is_stopping) {
            return Err(failed("no longer waited for".into()));
        }
        if begun.elapsed() > PATIENCE {
            return Err(failed(format!("it does not serve after {PATIENCE:?}: {not_ready}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
