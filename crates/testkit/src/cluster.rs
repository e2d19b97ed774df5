//! A cluster of three masters and three replicas on loopback, plain or with TLS and an ACL user; removed when dropped.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub const USER: &str = "bench";
pub const PASSWORD: &str = "cluster-pw";

/// A certificate authority and a server certificate for 127.0.0.1, made by the openssl command.
pub struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    pub fn make() -> Option<Self> {
        let certificates = Certificates { folder: tempfile::tempdir().unwrap() };
        std::fs::write(certificates.path("ext"), "subjectAltName=IP:127.0.0.1,DNS:localhost\n").unwrap();
        for (name, subject) in [("ca", "/CN=dyno test CA"), ("other", "/CN=another CA")] {
            let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
            let made = certificates.openssl(&[
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", &key, "-out", &pem, "-days", "2",
                "-subj", subject,
            ]);
            if !made {
                return None;
            }
        }
        for name in ["server", "client"] {
            let (key, csr, pem) = (format!("{name}.key"), format!("{name}.csr"), format!("{name}.pem"));
            let asked = certificates.openssl(&[
                "req",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                &key,
                "-out",
                &csr,
                "-subj",
                "/CN=localhost",
            ]);
            let signed = certificates.openssl(&[
                "x509",
                "-req",
                "-in",
                &csr,
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-out",
                &pem,
                "-days",
                "2",
                "-extfile",
                "ext",
            ]);
            assert!(asked && signed);
        }
        Some(certificates)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn openssl(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new("openssl");
        command.args(arguments).current_dir(self.folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    }

    /// What a server's configuration says about TLS on this port.
    pub fn settings(&self, port: u16, clients: &str) -> String {
        format!(
            "port 0\ntls-port {port}\ntls-cert-file {}\ntls-key-file {}\ntls-ca-cert-file {}\ntls-auth-clients {clients}\n",
            self.path("server.pem").display(),
            self.path("server.key").display(),
            self.path("ca.pem").display()
        )
    }
}

/// A server; killed when dropped.
pub struct ClusterProcess(Child);

impl ClusterProcess {
    /// Waits until this very process (or the one that it is) listens; false if it has ended instead.
    pub fn listens(&mut self, port: u16) -> bool {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if self.0.try_wait().unwrap().is_some() || begun.elapsed() > Duration::from_secs(30) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for ClusterProcess {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server from a configuration text; `None` where redis-server is not installed.
pub fn launch(folder: &Path, configuration: &str) -> Option<ClusterProcess> {
    let path = folder.join("redis.conf");
    std::fs::write(&path, configuration).unwrap();
    let log = std::fs::File::create(folder.join("log")).unwrap();
    Command::new("redis-server")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(Stdio::null())
        .spawn()
        .ok()
        .map(ClusterProcess)
}

pub struct RedisCluster {
    nodes: Vec<(u16, ClusterProcess)>,
    /// With TLS there is an ACL user too.
    certificates: Option<Certificates>,
    folder: tempfile::TempDir,
}

/// A port whose cluster bus port is free too.
fn port_pair() -> u16 {
    dyno_localhost::port::free_port().unwrap()
}

impl RedisCluster {
    /// With certificates there are TLS and an ACL user; `None` where redis-server is not installed.
    pub fn start(certificates: Option<Certificates>) -> Option<Self> {
        Self::start_with(certificates, None)
    }

    /// As `start`, but every node is known by a port at which it does not listen itself: `front` is told that port and
    /// the node's own, which takes plain connections, and must listen at the first.
    pub fn behind(certificates: Certificates, front: &mut dyn FnMut(u16, u16)) -> Option<Self> {
        Self::start_with(Some(certificates), Some(front))
    }

    fn start_with(
        certificates: Option<Certificates>,
        mut front: Option<&mut dyn FnMut(u16, u16)>,
    ) -> Option<Self> {
        let mut cluster =
            RedisCluster { nodes: Vec::new(), certificates, folder: tempfile::tempdir().unwrap() };
        // A port may be taken by another process between the look and the server's start: then with other ports once more.
        let mut attempts = 0;
        while cluster.nodes.len() < 6 {
            attempts += 1;
            let port = port_pair();
            let home = cluster.folder.path().join(port.to_string());
            std::fs::create_dir(&home).unwrap();
            let mut configuration = format!(
                "bind 127.0.0.1\n{}cluster-enabled yes\ncluster-node-timeout 2000\ndir {}\nsave \"\"\nappendonly no\n",
                cluster.access(port),
                home.display()
            );
            let mut listens = port;
            if let Some(front) = &mut front {
                let own = port_pair();
                listens = own;
                // What comes later in a configuration counts.
                configuration += &format!(
                    "port {own}\ntls-port 0\ncluster-port {}\ncluster-announce-port {port}\n\
                     cluster-announce-tls-port {port}\n",
                    port + 10_000
                );
                front(port, own);
            }
            let mut process = launch(&home, &configuration)?;
            // Not the front: that one listens already, with no server behind it.
            if process.listens(listens) {
                cluster.nodes.push((port, process));
                continue;
            }
            let log = std::fs::read_to_string(home.join("log")).unwrap_or_default();
            assert!(attempts < 20, "a node does not start: {log}");
        }
        let addresses: Vec<String> =
            cluster.nodes.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        let mut arguments = vec!["--cluster", "create"];
        arguments.extend(addresses.iter().map(String::as_str));
        arguments.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        let made = cluster.cli(0, &arguments);
        let said = [made.stdout, made.stderr].concat();
        assert!(made.status.success(), "{}: {}", made.status, String::from_utf8_lossy(&said));
        cluster.await_whole();
        Some(cluster)
    }

    /// What a node's configuration says about its port and who may come in.
    fn access(&self, port: u16) -> String {
        match &self.certificates {
            None => format!("port {port}\n"),
            Some(certificates) => format!(
                "{}tls-replication yes\ntls-cluster yes\nmasteruser {USER}\nmasterauth {PASSWORD}\n\
                 user {USER} on >{PASSWORD} ~* &* +@all\nuser default off\n",
                certificates.settings(port, "optional")
            ),
        }
    }

    /// redis-cli on one node, for at most a minute.
    pub fn cli(&self, node: usize, arguments: &[&str]) -> Output {
        let mut command = Command::new("timeout");
        command.args(["-k", "5", "60", "redis-cli", "-p", &self.nodes[node].0.to_string()]);
        if let Some(certificates) = &self.certificates {
            command.args(["--tls", "--cacert"]).arg(certificates.path("ca.pem"));
            command.args(["--user", USER, "-a", PASSWORD, "--no-auth-warning"]);
        }
        command.args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// What redis-cli prints.
    pub fn ask(&self, node: usize, arguments: &[&str]) -> String {
        String::from_utf8_lossy(&self.cli(node, arguments).stdout).trim().to_owned()
    }

    /// Waits until every node says that all slots are served and every replica follows.
    fn await_whole(&self) {
        let begun = Instant::now();
        let whole = |node| {
            self.ask(node, &["CLUSTER", "INFO"]).contains("cluster_state:ok")
                && !self.ask(node, &["INFO", "replication"]).contains("master_link_status:down")
        };
        while !(0..6).all(whole) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the cluster does not come up");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Waits until the replicas have confirmed everything that was written to the masters so far.
    pub fn await_replicas(&self) {
        let number = |text: &str, name: &str| -> Option<u64> {
            let tail = text.split(name).nth(1)?;
            tail.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        for node in 0..3 {
            let replication = || self.ask(node, &["INFO", "replication"]);
            let goal = number(&replication(), "master_repl_offset:").unwrap();
            let begun = Instant::now();
            while number(&replication(), ",offset=").is_none_or(|confirmed| confirmed < goal) {
                assert!(begun.elapsed() < Duration::from_secs(10), "node {node}'s replica stays behind");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    pub fn uri(&self, options: &str) -> String {
        let port = self.nodes[0].0;
        match &self.certificates {
            None => format!("redis://127.0.0.1:{port}?cluster=true{options}"),
            Some(certificates) => format!(
                "rediss://{USER}:{PASSWORD}@127.0.0.1:{port}?cluster=true&ca={}{options}",
                certificates.path("ca.pem").display()
            ),
        }
    }

    /// SIGKILL for one node.
    pub fn kill(&mut self, node: usize) {
        self.nodes[node].1.kill();
    }

    /// Any other signal.
    pub fn signal(&self, node: usize, name: &str) {
        super::signal(self.nodes[node].1.0.id(), name);
    }

    pub fn port(&self, node: usize) -> u16 {
        self.nodes[node].0
    }
}
