//! Servers that speak MongoDB's protocol: FerretDB and mongo-java-server from the user's cache (see
//! `scripts/need mongo`), and `mongod` where it is on PATH.

use super::free_port;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn cache() -> PathBuf {
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    base.unwrap_or_else(home).join("dyno-mongo")
}

/// Returns whether a process has a listening socket on a port.
fn listens(pid: u32, port: u16) -> bool {
    let mut sockets = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        // Number, local address, remote address, state (0A: listening), five others, the socket's number.
        sockets.extend(text.lines().skip(1).filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let local = words.get(1)?.rsplit_once(':')?.1;
            let here = u16::from_str_radix(local, 16) == Ok(port) && words.get(3) == Some(&"0A");
            here.then(|| format!("socket:[{}]", words[9]))
        }));
    }
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let links = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.into_iter().any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

/// A server on a free loopback port; killed when dropped.
pub struct Mongo {
    child: Child,
    pub port: u16,
    /// Where it listens: an address of loopback, or of its namespace.
    pub address: String,
    folder: tempfile::TempDir,
}

impl Mongo {
    fn start(make: impl Fn(u16, &tempfile::TempDir) -> Option<Command>) -> Option<Mongo> {
        Mongo::start_at("127.0.0.1", make)
    }

    fn start_at(address: &str, make: impl Fn(u16, &tempfile::TempDir) -> Option<Command>) -> Option<Mongo> {
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let port = free_port();
            let mut command = make(port, &folder)?;
            command
                .current_dir(folder.path())
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut child = command.spawn().ok()?;
            let begun = std::time::Instant::now();
            while child.try_wait().unwrap().is_none() && begun.elapsed().as_secs() < 20 {
                // Another process may listen there while this one comes up.
                if listens(child.id(), port) && std::net::TcpStream::connect((address, port)).is_ok() {
                    return Some(Mongo { child, port, address: address.to_owned(), folder });
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            // Leaves behind a port that another process took, or a server that never came up.
            let _ = child.kill();
            let _ = child.wait();
        }
        panic!("the server does not start");
    }

    /// FerretDB, with further options; `None` where it has not been built.
    pub fn ferretdb(options: &[&str]) -> Option<Mongo> {
        let program = cache().join("ferretdb-1.24.2");
        program.is_file().then_some(())?;
        Mongo::start(|port, folder| {
            let (data, state) = (folder.path().join("data"), folder.path().join("state"));
            std::fs::create_dir_all(&data).unwrap();
            std::fs::create_dir_all(&state).unwrap();
            let mut command = Command::new(&program);
            command
                .args(["--handler=sqlite", "--debug-addr=-", "--telemetry=disable", "--log-level=ERROR"])
                .arg(format!("--sqlite-url=file:{}/", data.display()))
                .arg(format!("--state-dir={}", state.display()))
                .arg(format!("--listen-addr=127.0.0.1:{port}"))
                .args(options);
            Some(command)
        })
    }

    /// mongo-java-server in memory; `None` where it or Java is missing.
    pub fn java() -> Option<Mongo> {
        let folder = cache().join("mongo-java-server-1.47.0");
        folder.is_dir().then_some(())?;
        Mongo::start(|port, _| {
            let mut command = Command::new("java");
            let path = format!("{0}:{0}/*", folder.display());
            command.args(["-Xmx256m", "-cp", &path, "Serve", &port.to_string()]);
            Some(command)
        })
    }

    /// `mongod` from PATH.
    pub fn mongod() -> Option<Mongo> {
        Mongo::from_path("mongod", &[])
    }

    /// A member of the replica set `dyno`, not initiated yet: `mongod` from PATH.
    pub fn member() -> Option<Mongo> {
        Mongo::from_path("mongod", &["--replSet", "dyno"])
    }

    /// `mongod` or `mongos` from PATH with further options; `None` where there is none.
    pub fn from_path(program: &str, options: &[&str]) -> Option<Mongo> {
        Mongo::started(Command::new(program), program, "127.0.0.1", options)
    }

    /// The same in a network namespace with this address.
    pub fn from_path_in(program: &str, namespace: &str, address: &str, options: &[&str]) -> Option<Mongo> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", namespace, program]);
        Mongo::started(command, program, address, options)
    }

    fn started(start: Command, program: &str, address: &str, options: &[&str]) -> Option<Mongo> {
        Command::new(program).arg("--version").stdout(Stdio::null()).status().ok()?;
        Mongo::start_at(address, |port, folder| {
            let mut command = Command::new(start.get_program());
            command.args(start.get_args());
            // One that is killed would leave its socket in the folder for all.
            command
                .args(["--nounixsocket", "--bind_ip", address, "--port", &port.to_string(), "--logpath"])
                .arg(folder.path().join("log"))
                .args(options);
            if program == "mongod" {
                // Several share a small host.
                command.args(["--wiredTigerCacheSizeGB", "0.25", "--dbpath"]).arg(folder.path());
            }
            Some(command)
        })
    }

    /// The target in a database of its own.
    pub fn uri(&self, database: &str) -> String {
        format!("mongodb://127.0.0.1:{}/{database}", self.port)
    }

    /// `host:port`.
    pub fn host(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What a `mongod` or `mongos` has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Mongo {
    fn drop(&mut self) {
        // One that has ended needs nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
