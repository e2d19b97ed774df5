//! `deploy/kubernetes` as it is written, but for sizes and times: `dyno run` in a pod of the cluster that its servers run in.

use crate::kube::{Cluster, deploy};
use dyno_testkit::Dyno;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "inside";

/// The manifests in a folder of their own, and the volume of the runs.
struct Inside<'a> {
    cluster: &'a Cluster,
    dyno: Dyno,
}

impl Inside<'_> {
    fn k(&self, words: &[&str]) -> String {
        let (well, said) = self.cluster.k(&[&["--namespace", NAMESPACE][..], words].concat());
        assert!(well, "{words:?}: {said}");
        said
    }

    /// A file of the manifests.
    fn file(&self, name: &str) -> PathBuf {
        self.dyno.path("manifests").join(name)
    }

    /// A file of the volume.
    fn kept(&self, name: &str) -> PathBuf {
        self.dyno.path("volume").join(name)
    }

    /// Changes a file of the manifests; each text must be there.
    fn change(&self, name: &str, pairs: &[(&str, &str)]) {
        let mut text = std::fs::read_to_string(deploy().join(name)).unwrap();
        for (from, to) in pairs {
            assert!(text.contains(from), "{name} has no {from:?}");
            text = text.replace(from, to);
        }
        std::fs::write(self.file(name), text).unwrap();
    }

    /// Has a job of this folder in the volume, in the place of the last one.
    fn job(&self, out: &str) {
        self.change("job.yaml", &[("/work/users", &format!("/work/{out}"))]);
        self.replace_job();
    }

    fn replace_job(&self) {
        self.k(&["delete", "job", "dyno-controller", "--ignore-not-found", "--cascade=foreground"]);
        self.k(&["create", "--filename", &self.file("job.yaml").display().to_string()]);
    }

    /// Waits for the end of the job: its log and exit code.
    fn ended(&self) -> Output {
        let end = Instant::now() + Duration::from_secs(180);
        let path = "{.items[0].status.containerStatuses[0].state.terminated.exitCode}";
        let pod = ["get", "pods", "--selector", "job-name=dyno-controller", "--output"];
        let code = loop {
            let said = self.k(&[&pod[..], &[&format!("jsonpath={path}")]].concat());
            if let Ok(code) = said.trim().parse::<i32>() {
                break code;
            }
            assert!(Instant::now() < end, "{}", self.k(&[&pod[..], &["yaml"]].concat()));
            std::thread::sleep(Duration::from_millis(300));
        };
        let log = self.k(&["logs", "job/dyno-controller"]).into_bytes();
        Output { status: ExitStatus::from_raw(code << 8), stdout: log, stderr: Vec::new() }
    }

    /// Waits for the end of a run that is to be complete.
    fn assert_complete(&self, out: &str) -> String {
        let output = self.ended();
        dyno_testkit::assert_ran_in(&self.kept(out), &output, &[]);
        let condition = if output.status.success() { "complete" } else { "failed" };
        self.k(&["wait", &format!("--for=condition={condition}"), "job/dyno-controller", "--timeout=30s"]);
        self.cluster.assert_nothing_left(Duration::from_secs(20));
        let ended: Vec<Value> =
            self.journal(out).into_iter().filter(|line| line["event"] == "ended").collect();
        let complete = ended.iter().filter(|record| record["status"] == "complete");
        for record in complete.clone() {
            let dir = self.kept(out).join(record["dir"].as_str().unwrap());
            assert!(dir.join("summary.json").is_file() && dir.join("run.json").is_file(), "{record}");
        }
        assert_eq!(complete.count(), 2, "{ended:#?}");
        for file in ["report.html", "results.csv", "summary.md", "experiment.yaml"] {
            assert!(self.kept(out).join(file).is_file(), "{file}");
        }
        let junit = std::fs::read_to_string(self.kept(&format!("{out}.xml"))).unwrap();
        assert!(junit.contains("<testsuite ") && junit.contains("errors=\"0\""), "{junit}");
        dyno_testkit::stdout(&output)
    }

    fn journal(&self, out: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.kept(out).join("journal.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Waits until a run measures.
    fn await_measuring(&self, out: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        let text = |dir: PathBuf| std::fs::read_to_string(dir.join("intervals.jsonl")).unwrap_or_default();
        let runs = || std::fs::read_dir(self.kept(out).join("runs")).into_iter().flatten().flatten();
        while !runs().any(|run| text(run.path()).contains("\"measure\"")) {
            assert!(Instant::now() < end, "{out}: the measured phase does not begin");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

pub fn runs_of_the_manifests(cluster: &Cluster) {
    cluster.images_of_deploy();
    cluster.namespace(NAMESPACE);
    let inside = Inside { cluster, dyno: Dyno::new() };
    std::fs::create_dir(inside.file("")).unwrap();
    for entry in std::fs::read_dir(deploy()).unwrap().flatten() {
        std::fs::copy(entry.path(), inside.file(&entry.file_name().to_string_lossy())).unwrap();
    }
    let sizes = [
        ("image: dyno", "server_image: localhost/redis:7\n      image: dyno"),
        ("workers: {requests: {cpu: 1}}", "workers: {requests: {cpu: 50m}}"),
        ("servers: {requests: {cpu: 1, memory: 1Gi}}", "servers: {requests: {cpu: 50m, memory: 64Mi}}"),
        ("records: 100000", "records: 1000"),
        ("[1, 8, 64]", "[1, 4]"),
        ("repetitions: 3", "repetitions: 1"),
        ("duration: 30s", "duration: 3s"),
    ];
    inside.change("experiment.yaml", &sizes);
    let volume = a_volume(cluster, &inside.kept(""));
    as_the_readme_says(&inside);
    copied_out_of_the_volume(&inside);
    a_right_that_is_missing(&inside);
    a_job_that_is_deleted(&inside);
    a_controller_that_is_killed(&inside);
    // The user made what stays, and removes it.
    inside.k(&["delete", "--kustomize", &inside.file("").display().to_string()]);
    let (gone, said) = cluster.k(&["delete", "namespace", NAMESPACE]);
    assert!(gone, "{said}");
    let (gone, said) = cluster.k(&["delete", "persistentvolume", &volume, "--timeout=60s"]);
    assert!(gone, "{said}");
}

/// A volume that was made beforehand, for a claim without a class; its name.
pub fn a_volume(cluster: &Cluster, folder: &Path) -> String {
    std::fs::create_dir(folder).unwrap();
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o777)).unwrap();
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let text = format!(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec:\n  capacity: {{storage: 1Gi}}\n  \
         accessModes: [ReadWriteOnce]\n  hostPath: {{path: {}}}\n",
        folder.display()
    );
    let file = folder.with_extension("yaml");
    std::fs::write(&file, text).unwrap();
    let (made, said) = cluster.k(&["create", "--filename", &file.display().to_string()]);
    assert!(made, "{said}");
    name
}

/// Created file by file, and followed; then the same by kustomize, which changes nothing.
fn as_the_readme_says(inside: &Inside<'_>) {
    let files = ["rbac", "experiment", "volume", "job"]
        .map(|name| inside.file(&format!("{name}.yaml")).display().to_string());
    let words: Vec<&str> = files.iter().flat_map(|file| ["--filename", file]).collect();
    let begun = Instant::now();
    inside.k(&[&["create"], &words[..]].concat());
    let followed = inside.k(&["logs", "--follow", "--pod-running-timeout=5m", "job/dyno-controller"]);
    let log = inside.assert_complete("users");
    for message in ["run 1 of 2: users=", "run 2 of 2: users=", "experiment directory: /work/users"] {
        assert!(log.contains(message) && followed.contains(message), "{message:?}: {followed}");
    }
    crate::say(&format!("a controller in a pod: {:.0} s for two runs", begun.elapsed().as_secs_f64()));
    let kustomized = inside.k(&["apply", "--kustomize", &inside.file("").display().to_string()]);
    assert_eq!(
        kustomized.matches("unchanged").count() + kustomized.matches("configured").count(),
        6,
        "{kustomized}"
    );
}

/// The commands of the README; what they bring is what the volume has.
fn copied_out_of_the_volume(inside: &Inside<'_>) {
    inside.k(&["create", "--filename", &inside.file("reader.yaml").display().to_string()]);
    inside.k(&["wait", "--for=condition=ready", "pod/dyno-reader", "--timeout=60s"]);
    let copy = inside.dyno.path("copy");
    inside.k(&["cp", "dyno-reader:/work", &copy.display().to_string()]);
    inside.k(&["delete", "pod", "dyno-reader"]);
    for file in ["users.xml", "users/report.html", "users/journal.jsonl"] {
        assert_eq!(
            std::fs::read(copy.join(file)).unwrap(),
            std::fs::read(inside.kept(file)).unwrap(),
            "{file}"
        );
    }
    let shown = inside.dyno.run(&["report", "copy/users"]);
    dyno_testkit::assert_exit(&shown, &[0]);
}

/// The role without a right that is needed late: the log names it, and nothing stays.
fn a_right_that_is_missing(inside: &Inside<'_>) {
    let roles = inside.file("rbac.yaml").display().to_string();
    inside.change("rbac.yaml", &[("- statefulsets", "- deployments")]);
    inside.k(&["apply", "--filename", &roles]);
    inside.job("forbidden");
    let output = inside.ended();
    let log = dyno_testkit::stdout(&output);
    assert_eq!(output.status.code(), Some(3), "{log}");
    assert!(log.contains("is forbidden") && log.contains("cannot create resource \"statefulsets\""), "{log}");
    inside.cluster.assert_nothing_left(Duration::from_secs(20));
    inside.change("rbac.yaml", &[]);
    inside.k(&["apply", "--filename", &roles]);
}

/// Within the time that the job grants, everything is gone, and the run says so.
fn a_job_that_is_deleted(inside: &Inside<'_>) {
    inside.job("deleted");
    inside.await_measuring("deleted");
    let begun = Instant::now();
    inside.k(&["delete", "job", "dyno-controller", "--cascade=foreground"]);
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    inside.cluster.assert_nothing_left(Duration::from_secs(1));
    let journal = inside.journal("deleted");
    let last = journal.last().unwrap();
    assert!(last["event"] == "end" && last["status"] == "interrupted", "{journal:#?}");
}

/// Killed, it leaves its pods; `args: [resume, ...]` removes them, and goes on.
fn a_controller_that_is_killed(inside: &Inside<'_>) {
    inside.job("killed");
    inside.await_measuring("killed");
    dyno_testkit::signal(controller_of("/work/killed").unwrap(), "KILL");
    let killed = inside.ended();
    assert_eq!(killed.status.code(), Some(137), "{}", dyno_testkit::stdout(&killed));
    assert!(inside.cluster.left().contains("statefulset.apps/"), "{}", inside.cluster.left());
    let args = "args: [run, /experiment/experiment.yaml, --out, /work/users, --junit, /work/users.xml]";
    inside.change("job.yaml", &[(args, "args: [resume, /work/killed, --junit, /work/killed.xml]")]);
    inside.replace_job();
    let log = inside.assert_complete("killed");
    assert!(log.contains(": removed from the cluster\n"), "{log}");
}

/// The controller that works in a folder, by its number on this host.
pub fn controller_of(out: &str) -> Option<u32> {
    let words = |pid: &u32| -> Vec<String> {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').map(str::to_owned).collect()
    };
    let is = |pid: &u32| {
        let words = words(pid);
        words.get(1).is_some_and(|word| ["run", "resume", "conduct"].contains(&word.as_str()))
            && words.iter().any(|word| word == out)
    };
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(is)
}
