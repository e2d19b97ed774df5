//! Experiments in pods of a real one-node Kubernetes (`tests/kubernetes`), where its binaries are there.

mod common;

use common::{Dyno, assert_exit, skip_because, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The cluster, up as long as this lives.
struct Cluster {
    lab: PathBuf,
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
    fn up() -> Option<Cluster> {
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

    fn k(&self, words: &[&str]) -> (bool, String) {
        run(&self.lab.join("k"), words)
    }

    /// A namespace that admits nothing but what the restricted policy allows.
    fn namespace(&self, name: &str) {
        let (made, words) = self.k(&["create", "namespace", name]);
        assert!(made, "{words}");
        let policy = "pod-security.kubernetes.io/enforce=restricted";
        let (labelled, words) = self.k(&["label", "namespace", name, policy]);
        assert!(labelled, "{words}");
    }

    /// What is left of dyno's in all namespaces.
    fn left(&self) -> String {
        let kinds = "pods,jobs,statefulsets,services,secrets,persistentvolumeclaims";
        self.k(&["get", kinds, "-A", "-l", "app.kubernetes.io/part-of=dyno", "-o", "name"]).1
    }

    fn assert_nothing_left(&self, within: Duration) {
        let end = Instant::now() + within;
        while !self.left().trim().is_empty() {
            assert!(Instant::now() < end, "left in the cluster: {}", self.left());
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn experiment(&self, namespace: &str, server: &str, kubernetes: &str, phases: &str) -> String {
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

fn record(dyno: &Dyno, out: &str) -> (PathBuf, Value) {
    let text = std::fs::read_to_string(dyno.path(out).join("journal.jsonl")).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let record = lines.rfind(|line| line["event"] == "ended").unwrap();
    (dyno.path(out).join(record["dir"].as_str().unwrap()), record)
}

/// One test, because there is one cluster.
#[test]
fn experiments_run_in_pods_and_leave_nothing() {
    let Some(cluster) = Cluster::up() else { return };
    cluster.namespace("bench");
    a_server_and_two_pods_of_workers(&cluster);
    a_cluster_of_six(&cluster);
    what_cannot_be_says_why(&cluster);
    volumes_and_objects_of_ones_own(&cluster);
    servers_that_stay(&cluster);
    a_controller_that_is_killed(&cluster);
}

fn a_server_and_two_pods_of_workers(cluster: &Cluster) {
    let dyno = Dyno::new();
    let two = "  worker_pods: 2\n";
    let text = cluster.experiment(
        "bench",
        "{kind: redis}",
        two,
        "users: 8, rate: 2000, operations: 10000, warmup: 0s",
    );
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let plan = dyno.run(&["plan", "e.yaml", "--manifests", "m"]);
    assert_exit(&plan, &[0]);
    for file in ["rbac.yaml", "cell0001.yaml"] {
        let path = dyno.path("m").join(file).display().to_string();
        let (valid, words) = cluster.k(&["-n", "bench", "apply", "--dry-run=server", "-f", &path]);
        assert!(valid, "{file}: {words}");
        assert!(!words.contains("Warning"), "{file}: {words}");
    }
    let begun = Instant::now();
    let output = dyno.run(&["run", "e.yaml", "--out", "one", "--quiet"]);
    assert_exit(&output, &[0, 5]);
    let (dir, record) = record(&dyno, "one");
    assert_eq!(record["status"], "complete", "{record}");
    // Five seconds of load; the rest is bounded generously, for a host that does other things, too.
    assert!(begun.elapsed() < Duration::from_secs(120), "{:?}", begun.elapsed());
    let summary = dyno.summary(dir.to_str().unwrap());
    assert_eq!(common::arrivals(common::phase(&summary, "measure")), 10_000);
    let measured = common::phase(&summary, "measure");
    assert!(measured["monitor"]["workers"]["cpu_cores"].as_f64().is_some(), "{measured}");
    assert!(measured["monitor"]["database"]["operations_per_s"].as_f64().is_some(), "{measured}");
    let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
    let facts = run["facts"].as_object().unwrap();
    assert_eq!(
        facts.keys().filter(|key| key.starts_with("pod.") && key.ends_with(".node")).count(),
        3,
        "{facts:?}"
    );
    assert!(facts["worker-1.clock"].as_str().unwrap().contains("within"));
    cluster.assert_nothing_left(Duration::from_secs(20));
}

fn a_cluster_of_six(cluster: &Cluster) {
    let dyno = Dyno::new();
    let server = "{kind: redis, topology: cluster, members: 3, replicas: 1}";
    let text = cluster.experiment("bench", server, "", "users: 4, operations: 5000, warmup: 0s");
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "six", "--quiet"]);
    assert_exit(&output, &[0, 5]);
    let (dir, record) = record(&dyno, "six");
    assert_eq!(record["status"], "complete", "{record}");
    let summary = dyno.summary(dir.to_str().unwrap());
    assert_eq!(common::outcome(common::phase(&summary, "measure"), "ok"), 5_000);
    cluster.assert_nothing_left(Duration::from_secs(20));
}

fn what_cannot_be_says_why(cluster: &Cluster) {
    let (made, words) = cluster.k(&["create", "namespace", "small"]);
    assert!(made, "{words}");
    let (made, words) = cluster.k(&["-n", "small", "create", "quota", "few", "--hard=pods=1"]);
    assert!(made, "{words}");
    let phases = "duration: 1s";
    let patience = "  patience: 6s\n";
    let nowhere = format!("{patience}  servers: {{node_selector: {{disk: none}}}}\n");
    let class = format!("{patience}  storage: {{class: no-such-class, size: 1GiB}}\n");
    let little = "  servers: {limits: {memory: 6Mi}}\n";
    for (name, namespace, image, more, expected) in [
        ("image", "bench", "localhost/nothing:1", "", "ErrImageNeverPull"),
        ("node", "bench", "localhost/redis:7", nowhere.as_str(), "Unschedulable"),
        ("class", "bench", "localhost/redis:7", class.as_str(), "pod"),
        ("quota", "small", "localhost/redis:7", patience, "exceeded quota"),
        ("namespace", "nowhere", "localhost/redis:7", "", "namespaces \"nowhere\" not found"),
        ("memory", "bench", "localhost/redis:7", little, "OOMKilled"),
    ] {
        let dyno = Dyno::new();
        let text =
            cluster.experiment(namespace, "{kind: redis}", more, phases).replace("localhost/redis:7", image);
        std::fs::write(dyno.path("e.yaml"), text).unwrap();
        let begun = Instant::now();
        let output = dyno.run(&["run", "e.yaml", "--out", "o", "--quiet"]);
        let said = stdout(&output) + &stderr(&output);
        assert!(!output.status.success() && said.contains(expected), "{name}: {said}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{name} took {:?}", begun.elapsed());
        cluster.assert_nothing_left(Duration::from_secs(30));
    }
}

/// Claims on volumes that were made beforehand, as clusters without a provisioner have them.
fn volumes_and_objects_of_ones_own(cluster: &Cluster) {
    let dyno = Dyno::new();
    let mut shelf = String::new();
    for number in 1..=2 {
        let folder = dyno.path(&format!("shelf-{number}"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        shelf += &format!(
            "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: shelf-{number}}}\nspec:\n  capacity: \
             {{storage: 1Gi}}\n  accessModes: [ReadWriteOnce]\n  storageClassName: shelf\n  hostPath: {{path: {}}}\n",
            folder.display()
        );
    }
    std::fs::write(dyno.path("shelf.yaml"), shelf).unwrap();
    let (made, words) = cluster.k(&["apply", "-f", &dyno.path("shelf.yaml").display().to_string()]);
    assert!(made, "{words}");
    std::fs::create_dir(dyno.path("own")).unwrap();
    let own = "apiVersion: v1\nkind: Service\nmetadata: {name: dyno-v-0, labels: {team: own}}\nspec:\n  clusterIP: None\n  \
               ports: [{port: 6379}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: dyno-run-notes}\ndata: {a: b}\n";
    std::fs::write(dyno.path("own/service.yaml"), own).unwrap();
    let run = |name: &str, more: &str, records: &str| {
        let kubernetes = format!("  storage: {{class: shelf, size: 1GiB}}\n{more}");
        let server = "{kind: redis, data: {volume: {name: v}}}";
        let text = cluster.experiment("bench", server, &kubernetes, "users: 4, operations: 1000, warmup: 0s");
        std::fs::write(dyno.path("e.yaml"), text.replace("records: 1000", records)).unwrap();
        let output = dyno.run(&["run", "e.yaml", "--out", name, "--quiet"]);
        assert_exit(&output, &[0, 5]);
        let (dir, record) = record(&dyno, name);
        assert_eq!(record["status"], "complete", "{record}");
        let run: Value = serde_json::from_slice(&std::fs::read(dir.join("run.json")).unwrap()).unwrap();
        let fact = |key: &str| run["facts"][key].as_str().unwrap_or_default().to_owned();
        (fact("volume.data"), fact("volume.why"), fact("volume.count"))
    };
    assert_eq!(
        run("first", "", "records: 1000"),
        ("loaded".into(), "there is no such volume yet".into(), "1001".into())
    );
    let again = run("again", "  manifests: own\n", "records: 1000");
    assert_eq!(again, ("reused".into(), String::new(), "1001".into()));
    let other = run("other", "", "records: 1000, properties: {fieldcount: 2}");
    assert_eq!((other.0.as_str(), other.1.as_str()), ("loaded", "fieldcount: 10 there, 2 asked for"));
    let left = cluster.left();
    assert_eq!(left.trim(), "persistentvolumeclaim/data-dyno-v-0-0", "the volume stays, and nothing else");
    cluster.k(&["-n", "bench", "delete", "persistentvolumeclaim", "data-dyno-v-0-0"]);
    cluster.k(&["delete", "persistentvolume", "shelf-1", "shelf-2", "--wait=false"]);
    cluster.assert_nothing_left(Duration::from_secs(30));
}

/// `dyno bexhoma ycsb ... load`, a run on what it leaves, and `stop`.
fn servers_that_stay(cluster: &Cluster) {
    let dyno = Dyno::new();
    let flags = format!(
        "-dbms Redis -sf 1 -xwl a -xop 1 -xtb 1000 -nlp 2 -nlt 4 -nbt 4 -rr 0 -rc 0 -m --scale 1000 --namespace bench --image \
         localhost/dyno:test --set kubernetes.kubectl={} --set kubernetes.server_image=localhost/redis:7 --set \
         kubernetes.pull=Never --set client.threads=1 --resultfolder results -q",
        cluster.lab.join("k").display()
    );
    let bexhoma = |words: &str| {
        let all: Vec<&str> = ["bexhoma"].into_iter().chain(words.split_whitespace()).collect();
        dyno.run(&all)
    };
    let loaded = bexhoma(&format!("ycsb {flags} load"));
    assert_exit(&loaded, &[0]);
    let left = cluster.left();
    assert!(left.contains("statefulset.apps/") && !left.contains("job.batch/"), "{left}");
    let code = std::fs::read_dir(dyno.path("results")).unwrap().next().unwrap().unwrap().file_name();
    let code = code.to_string_lossy().into_owned();
    let status = stdout(&bexhoma("status --resultfolder results"));
    assert!(status.contains("| redis-1") && status.contains("(1. Running)"), "{status}");
    let run = bexhoma(&format!("ycsb {flags} -e {code} run"));
    assert_exit(&run, &[0, 4, 5]);
    assert!(stdout(&run).contains("Nothing was loaded"), "{}", stdout(&run));
    let other = bexhoma(&format!("ycsb {flags} -sf 2 -e {code} run"));
    assert!((stdout(&other) + &stderr(&other)).contains("other data are loaded"), "{}", stderr(&other));
    assert_exit(&bexhoma(&format!("stop -e {code} --resultfolder results")), &[0]);
    cluster.assert_nothing_left(Duration::from_secs(20));
}

fn a_controller_that_is_killed(cluster: &Cluster) {
    let dyno = Dyno::new();
    let text =
        cluster.experiment("bench", "{kind: redis}", "", "users: 2, rate: 200, duration: 60s, warmup: 0s");
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let mut child = dyno.start(&["run", "e.yaml", "--out", "o", "--quiet"]);
    let end = Instant::now() + Duration::from_secs(60);
    let measuring = || {
        let runs = std::fs::read_dir(dyno.path("o/runs")).into_iter().flatten().flatten();
        runs.map(|entry| std::fs::read_to_string(entry.path().join("intervals.jsonl")).unwrap_or_default())
            .any(|text| text.contains("\"measure\""))
    };
    while !measuring() {
        assert!(Instant::now() < end, "the measured phase does not begin");
        std::thread::sleep(Duration::from_millis(100));
    }
    common::signal(child.id(), "KILL");
    child.wait().unwrap();
    assert!(!cluster.left().trim().is_empty());
    let stopped = dyno.run(&["stop", "o"]);
    assert_exit(&stopped, &[0]);
    cluster.assert_nothing_left(Duration::from_secs(10));
}
