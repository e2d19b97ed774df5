//! A temporary server for one run: started on a free loopback port in a directory of its own, removed afterwards.

use crate::registry::ALL;
use crate::target::TempServer;
use dyno_engine::{Control, affinity};
use dyno_localhost::port::free_port;
use dyno_localhost::process;
use dyno_localhost::temporary::Temporary;
use dyno_types::bounded;
use dyno_types::limits::LOG_END_BYTES;
use dyno_types::secret::mask_arguments;
use dyno_types::shell::quoted;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpStream};
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
    server: &'static TempServer,
    /// Loopback port of the server.
    pub port: u16,
    /// The core it was pinned to, if there is more than one.
    pub core: Option<usize>,
}

impl Spawned {
    /// `redis`, `valkey`, ...
    pub fn kind(&self) -> &'static str {
        self.server.kind
    }

    /// The URI of a target that it is.
    pub fn uri(&self) -> String {
        (self.server.uri)(self.port)
    }

    /// Process number of the server.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Words on its end, with the last lines of its log, if it has ended.
    pub fn died(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok()??;
        Some(format!("{} ended ({status}): {}", self.server.kind, self.last_words()))
    }

    fn last_words(&self) -> String {
        let log = bounded::end_of(self.home.data().join("log"), LOG_END_BYTES).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(3).collect();
        last.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        tracing::info!(kind = self.server.kind, pid = self.child.id(), "a temporary server is stopped");
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

/// Servers that can be started, in the order in which one is looked for.
pub fn servers() -> impl Iterator<Item = &'static TempServer> {
    ALL.iter().flat_map(|database| database.servers())
}

/// The server of `kind` with its program, if it is installed; without a kind the first of those that may stand for any.
pub fn find_server(kind: Option<&str>) -> Option<(&'static TempServer, PathBuf)> {
    servers()
        .filter(|server| kind.map_or(server.stands_for_any, |kind| kind == server.kind))
        .find_map(|server| on_path(server.program).map(|path| (server, path)))
}

/// Starts a server and waits until it accepts connections. Where there are two cores or more it gets the first, and
/// load threads keep off it.
pub fn spawn(server: &'static TempServer, program: &Path) -> io::Result<Spawned> {
    spawn_under(server, program, None)
}

/// The same; it is not waited for any longer when `control` stops.
pub fn spawn_under(
    server: &'static TempServer,
    program: &Path,
    control: Option<&Control>,
) -> io::Result<Spawned> {
    let mut home = Temporary::server().map_err(io::Error::other)?;
    let port = free_port()?;
    let log = File::create(home.data().join("log"))?;
    let mut command = process::ending_with_dyno(program);
    command.args((server.arguments)(port, home.data())).current_dir(home.data());
    // A group of its own: Ctrl-C in a terminal goes to every process of the foreground group, and the server must
    // outlive the replies that are still awaited.
    command.process_group(0);
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let cores = affinity::allowed_cores();
    let core = if cores.len() > 1 { Some(cores[0]) } else { None };
    let child = on_core(core, || command.spawn())?;
    let line: Vec<String> =
        std::iter::once(command.get_program()).chain(command.get_args()).map(lossy).collect();
    let line = quoted(&mask_arguments(&line));
    tracing::info!(
        kind = server.kind,
        port,
        pid = child.id(),
        core,
        command = line,
        "a temporary server has been started"
    );
    let noted = home.notes(child.id());
    let mut server = Spawned { child, home, server, port, core };
    noted.map_err(io::Error::other)?;
    await_listening(&mut server, control).inspect_err(|error| {
        tracing::error!(kind = server.kind(), port, %error, "a temporary server does not listen");
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

fn await_listening(server: &mut Spawned, control: Option<&Control>) -> io::Result<()> {
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let begun = Instant::now();
    loop {
        if TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_ok() {
            return Ok(());
        }
        if let Some(status) = server.child.try_wait()? {
            let words = server.last_words();
            return Err(io::Error::other(format!(
                "{} ended at once ({status}): {words}",
                server.server.program
            )));
        }
        if control.is_some_and(Control::stopping) {
            return Err(io::Error::other(format!("{}: no longer waited for", server.server.kind)));
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::Error::other(format!(
                "{} does not listen after {PATIENCE:?}",
                server.server.kind
            )));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
