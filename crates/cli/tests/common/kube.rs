//! A real one-node Kubernetes for tests.

use crate::common::skip_because;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The cluster, up as long as this lives.
pub struct Cluster {
    pub lab: PathBuf,
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kubernetes")
}

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
        // What an earlier test that was killed has left.
        run(&scripts().join("down.sh"), &[]);
        let cluster = Cluster { lab };
        let (up, words) = run(&scripts().join("up.sh"), &["node"]);
        if !up {
            skip_because(
                "kubernetes",
                &format!("the cluster does not start: {}", words.lines().last().unwrap_or_default()),
            );
            return None;
        }
        let image = cluster.lab.join("images/dyno.tar").display().to_string();
        let program = format!("{}:/usr/bin/dyno", env!("CARGO_BIN_EXE_dyno"));
        let make = scripts().join("image/mkimage.py").display().to_string();
        let (made, words) = run(Path::new("python3"), &[&make, "localhost/dyno:test", &image, &program]);
        assert!(made, "{words}");
        let import = ["-a", "/run/kubelab/containerd.sock", "-n", "k8s.io", "images", "import", &image];
        let (imported, words) = run(Path::new("ctr"), &import);
        assert!(imported, "{words}");
        Some(cluster)
    }

    /// kubectl: whether it succeeded, and what it said.
    pub fn k(&self, words: &[&str]) -> (bool, String) {
        run(&self.lab.join("k"), words)
    }

    /// A namespace that admits nothing but what the restricted policy allows.
    pub fn namespace(&self, name: &str) {
        let (made, words) = self.k(&["create", "namespace", name]);
        assert!(made, "{words}");
        let policy = "pod-security.kubernetes.io/enforce=restricted";
        let (labelled, words) = self.k(&["label", "namespace", name, policy]);
        assert!(labelled, "{words}");
    }

    /// What is left of dyno's in all namespaces.
    pub fn left(&self) -> String {
        let kinds = "pods,jobs,statefulsets,services,secrets,configmaps,persistentvolumeclaims";
        self.k(&["get", kinds, "-A", "-l", "app.kubernetes.io/part-of=dyno", "-o", "name"]).1
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
