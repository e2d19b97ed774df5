//! What a directory says that somebody else has made, can change, or has copied from another host: `dyno stop` and `dyno resume`
//! do none of it, say why, and exit with 2.

mod common;

use common::{Dyno, assert_exit, skip_because, stderr};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const EXPERIMENT: &str = "target: \"sim:?service=1ms\"\nworkload: {ycsb: {workload: a, records: 100}}\n\
    phases: {load: {when: never}, measure: {operations: 100, warmup: 0s}}\nrepetitions: 2\n\
    hooks: {before_run: [[touch, HOOKED]]}\n";

/// An experiment that has come to its end, in `e`, and something that is none of dyno's business.
struct Bench {
    dyno: Dyno,
}

impl Bench {
    fn new() -> Self {
        let dyno = Dyno::new();
        let hooked = dyno.path("hooked").display().to_string();
        std::fs::write(dyno.path("e.yaml"), EXPERIMENT.replace("HOOKED", &hooked)).unwrap();
        assert_exit(&dyno.run(&["run", "e.yaml", "--out", "e", "--quiet"]), &[0]);
        std::fs::remove_file(&hooked).unwrap();
        std::fs::create_dir(dyno.path("precious")).unwrap();
        std::fs::write(dyno.path("precious/file"), "words").unwrap();
        Bench { dyno }
    }

    fn mode(&self, name: &str, bits: u32) {
        std::fs::set_permissions(self.dyno.path(name), PermissionsExt::from_mode(bits)).unwrap();
    }

    /// The head of a journal as dyno writes it on this host.
    fn owner(&self) -> Value {
        let made = self.dyno.path("made");
        let journal =
            dyno_rig::local::undo::Journal::open(&made, &dyno_rig::local::Machine::default()).unwrap();
        drop(journal);
        let text = std::fs::read_to_string(made.join("undo.jsonl")).unwrap();
        let mut owner: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        std::fs::remove_dir_all(made).unwrap();
        // Whoever had written it is gone.
        owner["started"] = json!(0);
        owner
    }

    /// A journal in the experiment's directory with this one entry.
    fn journal(&self, owner: &Value, mut entry: Value) {
        entry["id"] = json!(1);
        self.write("e/undo.jsonl", &format!("{owner}\n{entry}\n"));
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dyno.path(name), text).unwrap();
        self.mode(name, 0o600);
    }

    /// `dyno stop e` refuses with these words.
    fn refused(&self, command: &str, words: &str) {
        let told = self.dyno.run(&[command, "e"]);
        assert_exit(&told, &[2]);
        assert!(stderr(&told).contains(words), "{command}: no {words:?} in {}", stderr(&told));
        assert_eq!(std::fs::read_to_string(self.dyno.path("precious/file")).unwrap(), "words");
        assert!(!self.dyno.path("hooked").exists(), "a hook was run");
    }

    /// What dyno itself would have left below the directory, to be removed by a journal that is obeyed.
    fn own_folder(&self) -> PathBuf {
        let folder = self.dyno.path("e/left");
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }
}

fn folder(path: &Path) -> Value {
    json!({"undo": "folder", "path": path})
}

/// A process that has nothing to do with dyno; ends with this.
struct Bystander(Child);

impl Bystander {
    fn new() -> Self {
        Bystander(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn started(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit_once(')').unwrap().1.split_whitespace().nth(19).unwrap().parse().unwrap()
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_journal_of_ones_own_is_done() {
    let bench = Bench::new();
    let left = bench.own_folder();
    bench.journal(&bench.owner(), folder(&left));
    assert_exit(&bench.dyno.run(&["stop", "e"]), &[0]);
    assert!(!left.exists());
}

#[test]
fn what_others_can_write_is_not_done() {
    let bench = Bench::new();
    let left = bench.own_folder();
    bench.journal(&bench.owner(), folder(&left));
    bench.mode("e/undo.jsonl", 0o644);
    bench.refused("stop", "undo.jsonl: others can read or write it (mode 644)");
    bench.refused("resume", "undo.jsonl: others can read or write it");
    bench.mode("e/undo.jsonl", 0o600);
    bench.mode("e", 0o777);
    bench.refused("stop", "others can write to it (mode 777)");
    bench.refused("resume", "others can write to it");
    assert!(left.exists());
    bench.mode("e", 0o700);
    bench.mode("e/experiment.yaml", 0o666);
    bench.refused("resume", "experiment.yaml: others can read or write it");
}

#[test]
fn what_belongs_to_somebody_else_is_not_done() {
    if !rustix::process::geteuid().is_root() {
        return skip_because("directories of other users", "only root can make them");
    }
    let bench = Bench::new();
    let left = bench.own_folder();
    bench.journal(&bench.owner(), folder(&left));
    let give = |name: &str, user: u32| chown(bench.dyno.path(name), Some(user), None).unwrap();
    give("e/undo.jsonl", 65534);
    bench.refused("stop", "undo.jsonl: belongs to user 65534, not to user 0 who calls dyno");
    give("e/undo.jsonl", 0);
    give("e", 65534);
    bench.refused("stop", "belongs to user 65534");
    bench.refused("resume", "belongs to user 65534");
    give("e", 0);
    give("e/experiment.yaml", 65534);
    bench.refused("resume", "experiment.yaml: belongs to user 65534");
    assert!(left.exists());
}

#[test]
fn links_are_not_followed() {
    let bench = Bench::new();
    let left = bench.own_folder();
    bench.journal(&bench.owner(), folder(&left));
    std::fs::rename(bench.dyno.path("e/undo.jsonl"), bench.dyno.path("elsewhere")).unwrap();
    symlink(bench.dyno.path("elsewhere"), bench.dyno.path("e/undo.jsonl")).unwrap();
    bench.refused("stop", "undo.jsonl: is a link");
    std::fs::remove_file(bench.dyno.path("e/undo.jsonl")).unwrap();
    // A folder behind a link is not looked into, and what is reached through one is not removed.
    symlink(bench.dyno.path("precious"), bench.dyno.path("e/way")).unwrap();
    std::fs::create_dir(bench.dyno.path("precious/deep")).unwrap();
    bench.journal(&bench.owner(), folder(&bench.dyno.path("e/way/deep")));
    bench.refused("stop", "dyno does not note that, and does not do it");
    assert!(bench.dyno.path("precious/deep").exists() && left.exists());
}

#[test]
fn a_journal_of_another_host_is_not_done() {
    let bench = Bench::new();
    let left = bench.own_folder();
    let mut owner = bench.owner();
    owner["host"] = json!("another");
    bench.journal(&owner, folder(&left));
    bench.refused("stop", "was written on another host");
    // Without a host's name the running of the host must be the same.
    owner["host"] = Value::Null;
    owner["boot"] = json!("before");
    bench.journal(&owner, folder(&left));
    bench.refused("stop", "was written on another host");
    assert!(left.exists());
}

#[test]
fn what_dyno_never_notes_is_not_done() {
    let bench = Bench::new();
    let owner = bench.owner();
    let value = bench.dyno.path("precious/file");
    for entry in [
        folder(&bench.dyno.path("precious")),
        folder(&bench.dyno.path("e/../precious")),
        folder(&bench.dyno.path("e")),
        json!({"undo": "file", "path": value}),
        json!({"undo": "value", "path": value, "old": "other"}),
        json!({"undo": "value", "path": "/proc/sys/kernel/core_pattern", "old": "|/bin/false"}),
        json!({"undo": "cgroup", "path": bench.dyno.path("precious")}),
        json!({"undo": "mount", "path": bench.dyno.path("precious")}),
    ] {
        bench.journal(&owner, entry);
        bench.refused("stop", "dyno does not note that, and does not do it");
    }
}

#[test]
fn programs_and_credentials_do_not_come_from_a_journal() {
    let bench = Bench::new();
    let program = bench.dyno.path("program");
    let started = bench.dyno.path("started");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\n", started.display())).unwrap();
    bench.mode("program", 0o755);
    let asked = json!({"kubectl": program, "kubeconfig": "/tmp/none"});
    bench.write("e/kubernetes-x.json", &json!({"asked": asked, "selector": "dyno.run=x"}).to_string());
    bench.refused("stop", "names a context or a namespace that experiment.yaml does not");
    bench.write("e/kubernetes-x.json", &json!({"selector": "app=other"}).to_string());
    bench.refused("stop", "no label of dyno's");
    assert!(!started.exists());
}

#[test]
fn a_lock_names_a_process_by_its_start() {
    let bench = Bench::new();
    let mut bystander = Bystander::new();
    let (pid, started) = (bystander.0.id(), bystander.started());
    // Held by this test, while it names a process that has the number of one that is gone.
    let held = std::fs::OpenOptions::new().write(true).open(bench.dyno.path("e/lock")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    bench.write("e/lock", &format!("{pid} {}\n", started - 1));
    let told = bench.dyno.run(&["stop", "e"]);
    assert_exit(&told, &[0]);
    assert!(stderr(&told).contains("nobody is at work on it"), "{}", stderr(&told));
    assert!(bystander.runs());
    drop(held);
}
