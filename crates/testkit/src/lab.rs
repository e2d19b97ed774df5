//! Hosts for tests: network namespaces on one bridge, each with an sshd of its own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A lab of hosts `db`, `load1`, `load2` and so on. All of it goes when it is dropped.
pub struct Lab {
    folder: tempfile::TempDir,
    tag: String,
    subnet: String,
    names: Vec<String>,
    daemons: Vec<Child>,
}

fn ok(program: &str, words: &[&str]) -> bool {
    let told = Command::new(program).args(words).stdin(Stdio::null()).output();
    told.is_ok_and(|told| told.status.success())
}

fn ip(text: &str) -> bool {
    ok("ip", &text.split(' ').collect::<Vec<_>>())
}

impl Lab {
    /// Hosts of these names; `None` where namespaces or sshd are not to be had.
    pub fn new(names: &[&str]) -> Option<Lab> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let id = (std::process::id() * 8 + MADE.fetch_add(1, Ordering::Relaxed)) % 60_000;
        let mut lab = Lab {
            folder: tempfile::tempdir().ok()?,
            tag: format!("dy{id}"),
            // Networks for tests of other software begin at 198.18 (RFC 2544).
            subnet: format!("198.{}.{}", 18 + id % 2, id / 2 % 250),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            daemons: Vec::new(),
        };
        let bridge = lab.bridge();
        let ready = ip(&format!("link add {bridge} type bridge"))
            && ip(&format!("addr add {}.1/24 dev {bridge}", lab.subnet))
            && ip(&format!("link set {bridge} up"))
            && lab.keys();
        let all = ready && (0..names.len()).all(|at| lab.host(at));
        all.then_some(lab)
    }

    fn bridge(&self) -> String {
        format!("{}b", self.tag)
    }

    /// The namespace of a host.
    pub fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.tag)
    }

    /// The end of a host's link that is outside of it.
    pub fn link(&self, name: &str) -> String {
        let at = self.names.iter().position(|one| one == name).unwrap();
        format!("{}v{at}", self.tag)
    }

    /// A host's address.
    pub fn address(&self, name: &str) -> String {
        let at = self.names.iter().position(|one| one == name).unwrap();
        format!("{}.{}", self.subnet, at + 2)
    }

    /// A file of the lab.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn keys(&self) -> bool {
        let key = |name: &str| {
            let path = self.path(name).display().to_string();
            ok("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &path])
        };
        let made = key("host_key") && key("user_key");
        let public = std::fs::read_to_string(self.path("host_key.pub")).unwrap_or_default();
        let own: Vec<&str> = public.split(' ').take(2).collect();
        let (mut known, mut config) = (String::new(), String::new());
        for name in &self.names {
            let address = self.address(name);
            known += &format!("{address} {}\n", own.join(" "));
            config += &format!(
                "Host {name}\n HostName {address}\n User root\n IdentityFile {}\n IdentitiesOnly yes\n \
                 UserKnownHostsFile {}\n GlobalKnownHostsFile /dev/null\n StrictHostKeyChecking yes\n",
                self.path("user_key").display(),
                self.path("known_hosts").display()
            );
        }
        made && std::fs::write(self.path("known_hosts"), known).is_ok()
            && std::fs::write(self.path("ssh_config"), config).is_ok()
    }

    fn host(&mut self, at: usize) -> bool {
        let name = self.names[at].clone();
        let (space, link, address) = (self.namespace(&name), self.link(&name), self.address(&name));
        let inner = format!("{}w{at}", self.tag);
        let made = ip(&format!("netns add {space}"))
            && ip(&format!("link add {link} type veth peer name {inner} netns {space}"))
            && ip(&format!("link set {link} master {}", self.bridge()))
            && ip(&format!("link set {link} up"))
            && ip(&format!("-n {space} addr add {address}/24 dev {inner}"))
            && ip(&format!("-n {space} link set {inner} up"))
            && ip(&format!("-n {space} link set lo up"));
        let config = format!(
            "ListenAddress {address}\nPort 22\nHostKey {}\nPidFile none\nUsePAM no\nStrictModes no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nAuthorizedKeysFile {}\nMaxStartups 100\n\
             Subsystem sftp internal-sftp\nSetEnv PATH={}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
            self.path("host_key").display(),
            self.path("user_key.pub").display(),
            self.path("bin").display()
        );
        let path = self.path(&format!("sshd-{name}"));
        let log = std::fs::File::create(self.path(&format!("sshd-{name}.log")));
        // sshd wants its folder for separation of privileges.
        let folder = std::fs::create_dir_all("/run/sshd");
        let (true, Ok(()), Ok(log), Ok(())) = (made, std::fs::write(&path, config), log, folder) else {
            return false;
        };
        // Each host has an /etc and a /var/lib of its own above this one's: what is configured there stays there.
        let mut script = "mount --make-rprivate / && ".to_owned();
        for (below, own) in [("/etc", "etc"), ("/var/lib", "lib")] {
            let (upper, work) =
                (self.path(&format!("{name}-{own}")), self.path(&format!("{name}-{own}-work")));
            if std::fs::create_dir_all(&upper).is_err() || std::fs::create_dir_all(&work).is_err() {
                return false;
            }
            let (upper, work) = (upper.display(), work.display());
            script += &format!(
                "mount -t overlay overlay -o lowerdir={below},upperdir={upper},workdir={work} {below} && "
            );
        }
        script += &format!("exec /usr/sbin/sshd -D -e -f {}", path.display());
        let words = ["netns", "exec", &space, "unshare", "--mount", "sh", "-c", &script];
        let daemon = Command::new("ip").args(words).stdin(Stdio::null()).stderr(log).spawn();
        let Ok(daemon) = daemon else { return false };
        self.daemons.push(daemon);
        let answers = |_: &u32| {
            std::thread::sleep(Duration::from_millis(20));
            std::net::TcpStream::connect((address.as_str(), 22)).is_ok()
        };
        (0..250u32).any(|n| answers(&n))
    }

    /// Puts a program of this name before those of all hosts.
    pub fn program(&self, name: &str, script: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::create_dir_all(self.path("bin")).unwrap();
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Has nothing that a host sends reach this address any more, or again.
    pub fn separate(&self, name: &str, address: &str, apart: bool) -> bool {
        let what = if apart { "add" } else { "del" };
        ip(&format!("-n {} route {what} blackhole {address}/32", self.namespace(name)))
    }

    /// Cuts a host off from all others, or connects it again.
    pub fn cut(&self, name: &str, off: bool) -> bool {
        ip(&format!("link set {} {}", self.link(name), if off { "down" } else { "up" }))
    }

    /// The address of this host in the lab.
    pub fn own_address(&self) -> String {
        format!("{}.1", self.subnet)
    }

    /// Processes of a host whose command line has this in it.
    pub fn processes(&self, name: &str, message: &str) -> Vec<u32> {
        let told = Command::new("ip").args(["netns", "pids", &self.namespace(name)]).output().unwrap();
        let pids = String::from_utf8_lossy(&told.stdout).into_owned();
        let of = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ").contains(message)
        };
        pids.lines().filter_map(|line| line.trim().parse().ok()).filter(of).collect()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for name in &self.names {
            for pid in self.processes(name, "") {
                ok("kill", &["-9", &pid.to_string()]);
            }
        }
        for daemon in &mut self.daemons {
            // It may have ended by itself.
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for name in &self.names {
            ip(&format!("netns del {}", self.namespace(name)));
        }
        ip(&format!("link del {}", self.bridge()));
    }
}
