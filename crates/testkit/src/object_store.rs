//! A real object store, s3s-fs, that checks logins and keeps a bucket as a folder.

use crate::{await_port, free_port};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The bucket that it has.
pub const BUCKET: &str = "results";

/// The store; killed when dropped.
pub struct StoreProcess {
    folder: tempfile::TempDir,
    child: Child,
    host: String,
    pub port: u16,
}

fn launch(words: &[&str], host: &str, port: u16, (key, secret): (&str, &str), root: &Path) -> Option<Child> {
    let (first, rest) = words.split_first()?;
    let login = ["--access-key", key, "--secret-key", secret];
    Command::new(first)
        .args(rest)
        .args(["--host", host, "--port", &port.to_string()])
        .args(login)
        .arg(root)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()
}

impl StoreProcess {
    /// Starts one on loopback that takes this login; `None` where it is not installed.
    pub fn start(login: (&str, &str)) -> Option<StoreProcess> {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let child = launch(&["s3s-fs"], "127.0.0.1", port, login, folder.path())?;
        await_port(port);
        Some(StoreProcess { folder, child, host: "127.0.0.1".into(), port })
    }

    /// The same in the network namespace of a cluster, at an address that its pods reach.
    pub fn start_in(namespace: &str, host: &str, login: (&str, &str)) -> Option<StoreProcess> {
        let found = Command::new("s3s-fs").arg("--version").output().ok()?;
        assert!(found.status.success());
        let (folder, port) = (tempfile::tempdir().unwrap(), 9_000);
        std::fs::create_dir(folder.path().join(BUCKET)).unwrap();
        let enter = format!("--net=/run/netns/{namespace}");
        let child = launch(&["nsenter", &enter, "s3s-fs"], host, port, login, folder.path())?;
        Some(StoreProcess { folder, child, host: host.to_owned(), port })
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it again on the same port and folder, with a login that may be another one.
    pub fn restart(&mut self, login: (&str, &str)) {
        self.child = launch(&["s3s-fs"], &self.host, self.port, login, self.folder.path()).unwrap();
        await_port(self.port);
    }

    pub fn address(&self) -> String {
        format!("http://{}:{}", self.host, self.port)
    }

    /// The bucket's folder.
    pub fn bucket(&self) -> PathBuf {
        self.folder.path().join(BUCKET)
    }
}

impl Drop for StoreProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
