//! A cluster of three masters and three replicas on loopback, with TLS and an ACL user; removed when dropped.

use super::await_port;
use std::net::TcpListener;
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

/// A server from a configuration text; `None` where redis-server is not installed.
pub fn launch(folder: &Path, configuration: &str) -> Option<Child> {
    let path = folder.join("redis.conf");
    std::fs::write(&path, configuration).unwrap();
    Command::new("redis-server")
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

pub struct Cluster {
    nodes: Vec<(u16, Child)>,
    pub certificates: Certificates,
    _folder: tempfile::TempDir,
}

/// A port whose cluster bus port is free too.
fn port_pair() -> u16 {
    for _ in 0..1_000 {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { continue };
        let port = listener.local_addr().unwrap().port();
        if port < 55_000 && TcpListener::bind(("127.0.0.1", port + 10_000)).is_ok() {
            return port;
        }
    }
    panic!("no free pair of ports");
}

impl Cluster {
    pub fn start() -> Option<Self> {
        let certificates = Certificates::make()?;
        let folder = tempfile::tempdir().unwrap();
        let mut cluster = Cluster { nodes: Vec::new(), certificates, _folder: folder };
        for _ in 0..6 {
            let port = port_pair();
            let home = cluster._folder.path().join(port.to_string());
            std::fs::create_dir(&home).unwrap();
            let configuration = format!(
                "bind 127.0.0.1\n{}tls-replication yes\ntls-cluster yes\ncluster-enabled yes\ncluster-node-timeout 2000\n\
                 dir {}\nsave \"\"\nappendonly no\nmasteruser {USER}\nmasterauth {PASSWORD}\n\
                 user {USER} on >{PASSWORD} ~* &* +@all\nuser default off\n",
                cluster.certificates.settings(port, "optional"),
                home.display()
            );
            cluster.nodes.push((port, launch(&home, &configuration)?));
            await_port(port);
        }
        let addresses: Vec<String> =
            cluster.nodes.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
        let mut arguments = vec!["--cluster", "create"];
        arguments.extend(addresses.iter().map(String::as_str));
        arguments.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        let made = cluster.cli(0, &arguments);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
        cluster.await_whole();
        Some(cluster)
    }

    /// redis-cli on one node.
    pub fn cli(&self, node: usize, arguments: &[&str]) -> Output {
        let mut command = Command::new("redis-cli");
        command
            .args(["-p", &self.nodes[node].0.to_string(), "--tls", "--cacert"])
            .arg(self.certificates.path("ca.pem"));
        command.args(["--user", USER, "-a", PASSWORD, "--no-auth-warning"]).args(arguments);
        command.stdin(Stdio::null()).output().unwrap()
    }

    /// Waits until every node says that all slots are served and every replica follows.
    fn await_whole(&self) {
        let begun = Instant::now();
        let whole = |node| {
            let info = String::from_utf8_lossy(&self.cli(node, &["CLUSTER", "INFO"]).stdout).into_owned();
            let links =
                String::from_utf8_lossy(&self.cli(node, &["INFO", "replication"]).stdout).into_owned();
            info.contains("cluster_state:ok") && !links.contains("master_link_status:down")
        };
        while !(0..6).all(whole) {
            assert!(begun.elapsed() < Duration::from_secs(30), "the cluster does not come up");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn uri(&self, options: &str) -> String {
        format!(
            "rediss://{USER}:{PASSWORD}@127.0.0.1:{}?cluster=true&ca={}{options}",
            self.nodes[0].0,
            self.certificates.path("ca.pem").display()
        )
    }

    /// SIGKILL for one node.
    pub fn kill(&mut self, node: usize) {
        let child = &mut self.nodes[node].1;
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn port(&self, node: usize) -> u16 {
        self.nodes[node].0
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for (_, child) in &mut self.nodes {
            // One may have been killed already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
