//! What a controller's pod does with an object store, on a real one: results go there, and come from there after a kill.

use dyno_testkit::object_store::{BUCKET, StoreProcess};
use dyno_testkit::{Dyno, assert_exit, assert_ran_in, finish, free_port, skip_because, stderr};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

const LOGIN: (&str, &str) = ("AKIDYNO", "first-quite-secret");
const RENEWED: (&str, &str) = ("AKIDYNO2", "second-quite-secret");

/// A pod's folders: the experiment's text, the login, and the directory of its own, which goes with it.
struct Pod {
    dyno: Dyno,
    store: StoreProcess,
}

impl Pod {
    fn new(what: &str) -> Option<Pod> {
        let Some(store) = StoreProcess::start(LOGIN) else {
            skip_because(what, "s3s-fs is not there (scripts/need s3 compiles it)");
            return None;
        };
        let pod = Pod { dyno: Dyno::new(), store };
        for folder in ["experiment", "login"] {
            std::fs::create_dir(pod.dyno.path(folder)).unwrap();
        }
        let text = "target: 'null:'\nworkload: {ycsb: {workload: c, records: 100}}\n\
                    factors: {connections: [1, 2, 3]}\n\
                    phases: {measure: {duration: 1s, rate: '200', warmup: 0s}}\n";
        std::fs::write(pod.dyno.path("experiment/experiment.yaml"), text).unwrap();
        std::fs::write(pod.dyno.path("experiment/sets.json"), "[]").unwrap();
        pod.log_in(LOGIN);
        Some(pod)
    }

    /// What the kubelet does with a Secret that has changed.
    fn log_in(&self, (key, secret): (&str, &str)) {
        std::fs::write(self.dyno.path("login/AWS_ACCESS_KEY_ID"), key).unwrap();
        std::fs::write(self.dyno.path("login/AWS_SECRET_ACCESS_KEY"), format!("{secret}\n")).unwrap();
    }

    fn text(&self) -> Value {
        json!({"bucket": BUCKET, "endpoint": self.store.address(), "region": "eu-1", "prefix": "nights",
               "login": "s3"})
    }

    fn start(&self, home: &str, store: &Value, more: &[&str]) -> Child {
        let (out, store) = (format!("{home}/dyno-1a2b"), store.to_string());
        let words =
            ["conduct", "--experiment", "experiment", "--out", &out, "--store", &store, "--login", "login"];
        self.dyno.start(&[&words[..], more].concat())
    }

    fn stored(&self, name: &str) -> PathBuf {
        self.store.bucket().join("nights/dyno-1a2b").join(name)
    }

    fn journal(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.stored("journal.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn ended(&self) -> usize {
        self.journal().iter().filter(|line| line["event"] == "ended").count()
    }

    fn await_ended(&self, count: usize) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.ended() < count {
            assert!(Instant::now() < end, "{:?}", self.journal());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Files below a folder with their content, but for the lock and the logs, which end with the process.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false if ["lock", "log.jsonl"].iter().any(|name| entry.file_name() == *name) => {}
                false => {
                    let name = entry.path().strip_prefix(folder).unwrap().to_owned();
                    found.push((name, std::fs::read(entry.path()).unwrap()));
                }
            }
        }
    }
    found.sort();
    found
}

#[test]
fn what_a_killed_pod_had_completed_is_in_the_store_and_is_not_made_again() {
    let Some(pod) = Pod::new("results in an object store") else { return };
    let mut first = pod.start("one", &pod.text(), &[]);
    pod.await_ended(1);
    first.kill().unwrap();
    first.wait().unwrap();
    let complete: Vec<Value> = pod.journal().into_iter().filter(|line| line["event"] == "ended").collect();
    for record in &complete {
        let run = pod.stored(record["dir"].as_str().unwrap());
        assert!(run.join("summary.json").is_file() && run.join("run.json").is_file(), "{record}");
    }
    // Another pod has an empty folder.
    let output = finish(pod.start("two", &pod.text(), &[]));
    assert_ran_in(&pod.dyno.path("two/dyno-1a2b"), &output, &[]);
    assert_eq!(pod.ended(), 3, "{:#?}", pod.journal());
    let mut cells: Vec<u64> = pod
        .journal()
        .iter()
        .filter(|line| line["event"] == "ended")
        .map(|line| line["cell"].as_u64().unwrap())
        .collect();
    cells.sort_unstable();
    assert_eq!(cells, [1, 2, 3], "each once");
    let rows = std::fs::read_to_string(pod.stored("results.csv")).unwrap();
    assert_eq!(rows.lines().count(), 4, "{rows}");
    // What the store has is what the pod had, and a directory like any other.
    let (own, stored) = (files(&pod.dyno.path("two/dyno-1a2b")), files(&pod.stored("")));
    assert_eq!(own, stored);
    assert!(stored.iter().any(|(name, _)| name == Path::new("report.html")));
    let secret = LOGIN.1.as_bytes();
    let told = stored.iter().find(|(_, bytes)| bytes.windows(secret.len()).any(|part| part == secret));
    assert!(told.is_none(), "{told:?}");
    let shown = pod.stored("").display().to_string();
    assert_exit(&pod.dyno.run(&["report", &shown]), &[0]);
    // It is sent from the store where the folder is gone with its pod.
    let text = pod.text().to_string();
    let sent = pod.dyno.run(&["send", "three/dyno-1a2b", "--store", &text, "--login", "login"]);
    assert_exit(&sent, &[0]);
    assert!(!pod.dyno.path("three").exists(), "a conductor's own folder is left alone");
    let received = pod.dyno.path("received");
    dyno_hosts::kubernetes::transfer::receive_folder(sent.stdout.as_slice(), &received).unwrap();
    assert_eq!(files(&received), stored);
    // A Job that makes nothing again finds nothing to do.
    let again = finish(pod.start("four", &pod.text(), &["--again", "failed"]));
    assert_eq!(again.status, output.status, "{}", stderr(&again));
    assert_eq!(pod.ended(), 3);
}

#[test]
fn what_is_wrong_with_a_store_is_said_before_anything_is_run() {
    let Some(pod) = Pod::new("object stores that are wrong") else { return };
    let changed = |key: &str, value: &str| {
        let mut text = pod.text();
        text[key] = value.into();
        text
    };
    let nothing = format!("http://127.0.0.1:{}", free_port());
    let refused = |store: &Value, code: i32, said: &str| {
        let output = finish(pod.start("one", store, &[]));
        assert_exit(&output, &[code]);
        assert!(stderr(&output).contains(said), "{said}: {}", stderr(&output));
        assert!(
            !stderr(&output).contains(LOGIN.1) && !stderr(&output).contains("X-Amz"),
            "{}",
            stderr(&output)
        );
        assert!(!pod.dyno.path("one/dyno-1a2b").exists());
    };
    refused(&changed("bucket", "other"), 2, "has no such bucket (404 NoSuchBucket");
    refused(&changed("endpoint", "http://"), 2, "expected http://HOST:PORT");
    refused(&changed("endpoint", &nothing), 3, "does not answer");
    pod.log_in((LOGIN.0, "wrong"));
    refused(&pod.text(), 2, "does not take the login (403 SignatureDoesNotMatch");
    std::fs::remove_file(pod.dyno.path("login/AWS_ACCESS_KEY_ID")).unwrap();
    refused(&pod.text(), 2, "there is no AWS_ACCESS_KEY_ID in login: is it a key of the Secret?");
}

#[test]
fn a_store_that_is_lost_in_the_middle_is_waited_for_and_a_renewed_login_is_taken() {
    let Some(mut pod) = Pod::new("an object store that is lost") else { return };
    let child = pod.start("one", &pod.text(), &[]);
    pod.await_ended(1);
    pod.store.kill();
    // The login expires while it is away.
    std::thread::sleep(Duration::from_secs(1));
    pod.store.restart(RENEWED);
    std::thread::sleep(Duration::from_secs(7));
    pod.log_in(RENEWED);
    let output = finish(child);
    assert_ran_in(&pod.dyno.path("one/dyno-1a2b"), &output, &[]);
    let said = stderr(&output);
    assert!(said.contains("does not answer") && said.contains("tries again for"), "{said}");
    assert!(said.contains("does not take the login (403"), "{said}");
    assert!(said.contains("the object store takes requests again"), "{said}");
    assert!(!said.contains(LOGIN.1) && !said.contains(RENEWED.1) && !said.contains("X-Amz"), "{said}");
    assert_eq!(pod.ended(), 3, "{:#?}", pod.journal());
    assert_eq!(files(&pod.dyno.path("one/dyno-1a2b")), files(&pod.stored("")));
}

#[test]
fn a_store_that_stays_away_ends_the_experiment_and_another_pod_makes_what_it_lacks() {
    let Some(mut pod) = Pod::new("an object store that stays away") else { return };
    let child = pod.start("one", &pod.text(), &["--outage-s", "6"]);
    pod.await_ended(1);
    pod.store.kill();
    let output = finish(child);
    assert_exit(&output, &[3]);
    let said = stderr(&output);
    assert!(said.contains("does not answer") && said.contains("is made again by `dyno resume`"), "{said}");
    // What is tried after it was waited for in vain is tried once.
    assert!(said.matches("tries again for 5 s").count() <= 1, "{said}");
    pod.store.restart(LOGIN);
    let known = pod.ended();
    assert!(known < 3);
    assert_ran_in(&pod.dyno.path("two/dyno-1a2b"), &finish(pod.start("two", &pod.text(), &[])), &[]);
    assert_eq!(pod.ended(), 3, "{:#?}", pod.journal());
}
