//! A real Kubernetes of three nodes for tests.

use crate::skip_because;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// There is one cluster at a time.
static ONE: Mutex<()> = Mutex::new(());

/// The cluster, up as long as this lives.
pub struct Cluster {
    pub lab: PathBuf,
    _one: MutexGuard<'static, ()>,
}

/// Number of nodes: node0, node1, ...
pub const NODES: usize = 3;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kubernetes")
}

/// The manifests of a run from inside a cluster.
pub fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kubernetes")
}

/// Tag of the images in them.
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn run(program: &Path, words: &[&str]) -> (bool, String) {
    let told = Command::new(program).args(words).stdin(Stdio::null()).output();
    told.map_or((false, format!("{} does not start", program.display())), |told| {
        let text = String::from_utf8_lossy(&told.stdout) + String::from_utf8_lossy(&told.stderr);
        (told.status.success(), text.into_owned())
    })
}

impl Cluster {
    /// Starts it; nothing where its binaries are not there.
    pub fn up() -> Option<Cluster> {
        let home = std::env::var_os("KUBELAB").map(PathBuf::from);
        let lab = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/kubelab")))?;
        if !lab.join("bin/kubeone").is_file() || !lab.join("images/redis.tar").is_file() {
            skip_because("kubernetes", "its binaries are not there (tests/kubernetes/build.sh makes them)");
            return None;
        }
        let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        // What an earlier test that was killed has left.
        run(&scripts().join("down.sh"), &[]);
        let cluster = Cluster { lab, _one: one };
        let (up, text) = run(&scripts().join("up.sh"), &["node"]);
        if !up {
            skip_because(
                "kubernetes",
                &format!("the cluster does not start: {}", text.lines().last().unwrap_or_default()),
            );
            return None;
        }
        let program = format!("{}:/usr/bin/dyno", crate::program().display());
        cluster.image("localhost/dyno:test", &[&program]);
        Some(cluster)
    }

    /// Does something to a node: `die`, `cut`, `mend` or `pressure`.
    pub fn node(&self, action: &str, number: usize) {
        let (done, said) = run(&scripts().join("node.sh"), &[action, &number.to_string()]);
        assert!(done, "{action} {number}: {said}");
    }

    /// Makes an image of programs of this host, and has the nodes take it in.
    fn image(&self, name: &str, words: &[&str]) {
        let image = self.lab.join("images/test.tar").display().to_string();
        let make = scripts().join("image/mkimage.py").display().to_string();
        let (made, said) = run(Path::new("python3"), &[&[&make, name, &image], words].concat());
        assert!(made, "{said}");
        for node in 0..NODES {
            let socket = format!("/run/kubelab{node}/containerd.sock");
            // With the digest that a registry would have given it.
            let repository = name.rsplit_once(':').map_or(name, |(repository, _)| repository);
            let import = ["-a", &socket, "-n", "k8s.io", "images", "import", "--digests", "--base-name"];
            let (imported, said) = run(Path::new("ctr"), &[&import[..], &[repository, &image]].concat());
            assert!(imported, "{said}");
        }
        std::fs::remove_file(&image).unwrap();
    }

    /// The same of mongod and mongos, called `localhost/mongo:test`; false where they are not on PATH.
    pub fn mongo_image(&self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&path);
        let is = |folder: &PathBuf| ["mongod", "mongos"].iter().all(|name| folder.join(name).is_file());
        let Some(folder) = folders.find(is).and_then(|folder| folder.canonicalize().ok()) else {
            return false;
        };
        // Where packages of another system were unpacked, these are scripts, and the programs and libraries stand beside them.
        let root = folder.join("../root").canonicalize().ok();
        let real = root.as_ref().map_or(folder, |root| root.join("usr/bin"));
        let programs =
            ["mongod", "mongos"].map(|name| format!("{}:/usr/bin/{name}", real.join(name).display()));
        let mut words: Vec<&str> = programs.iter().map(String::as_str).collect();
        // What a script of the shell needs to start them in their place.
        words.extend([
            "/bin/busybox:/bin/busybox",
            "--link",
            "/bin/sh:busybox",
            "--link",
            "/bin/taskset:busybox",
        ]);
        let root = root.map(|root| root.display().to_string());
        words.extend(root.iter().flat_map(|root| ["--root", root.as_str()]));
        self.image("localhost/mongo:test", &words);
        true
    }

    /// The same of Dragonfly, called `localhost/dragonfly:test`; false where it is not on PATH.
    pub fn dragonfly_image(&self) -> bool {
        let Some((_, program)) = dyno_databases::spawn::find_server(Some("dragonfly")) else { return false };
        self.image("localhost/dragonfly:test", &[&format!("{}:/usr/bin/dragonfly", program.display())]);
        true
    }

    /// The images of `deploy/kubernetes`, under the names in its manifests: the controller's has the lab's kubectl, and what its
    /// `Containerfile` says of variables and entry point.
    pub fn images_of_deploy(&self) {
        let program = format!("{}:/usr/bin/dyno", crate::program().display());
        self.image(&format!("dyno:{VERSION}"), &[&program]);
        let text = std::fs::read_to_string(deploy().join("Containerfile")).unwrap();
        let after = |word: &str| text.lines().find_map(|line| line.strip_prefix(word)).unwrap();
        let kubectl = format!("{}:/usr/bin/kubectl", self.lab.join("bin/kubectl").display());
        let mut words = vec!["--entrypoint", after("ENTRYPOINT "), &program, &kubectl];
        after("ENV ").split(' ').for_each(|variable| words.extend(["--env", variable]));
        self.image(&format!("dyno-controller:{VERSION}"), &words);
        let busybox = ["/bin/busybox", "--link", "/bin/sleep:busybox", "--link", "/bin/tar:busybox"];
        self.image("busybox:1.36", &busybox);
    }

    /// kubectl: whether it succeeded, and what it said.
    pub fn k(&self, words: &[&str]) -> (bool, String) {
        run(&self.lab.join("k"), words)
    }

    /// A namespace that admits nothing but what the restricted policy allows.
    pub fn namespace(&self, name: &str) {
        let (made, message) = self.k(&["create", "namespace", name]);
        assert!(made, "{message}");
        let policy = "pod-security.kubernetes.io/enforce=restricted";
        let (labelled, message) = self.k(&["label", "namespace", name, policy]);
        assert!(labelled, "{message}");
    }

    /// What is left of dyno's in all namespaces, beside the Job of the manifests, which is the user's own.
    pub fn left(&self) -> String {
        let kinds = "pods,jobs,statefulsets,services,secrets,configmaps,persistentvolumeclaims";
        let own = "app.kubernetes.io/managed-by=dyno,app.kubernetes.io/name!=dyno-controller";
        self.k(&["get", kinds, "-A", "-l", own, "-o", "name"]).1
    }

    /// Waits until nothing is left.
    pub fn assert_nothing_left(&self, within: Duration) {
        let end = Instant::now() + within;
        while !self.left().trim().is_empty() {
            assert!(Instant::now() < end, "left in the cluster: {}", self.left());
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// An experiment file for it.
    pub fn experiment(&self, namespace: &str, server: &str, kubernetes: &str, phases: &str) -> String {
        format!(
            "server: {server}\nworkload: {{ycsb: {{workload: a, records: 1000}}}}\nphases: {{measure: {{{phases}}}}}\n\
             kubernetes:\n  kubectl: {}\n  namespace: {namespace}\n  image: localhost/dyno:test\n  \
             server_image: localhost/redis:7\n  pull: Never\n{kubernetes}",
            self.lab.join("k").display()
        )
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        run(&scripts().join("down.sh"), &[]);
    }
}
