//! Proofs of failover on real servers: a primary that is killed, and one that is cut off in a network namespace; with two
//! copies nothing may be lost, with one something must be.

use dyno_testkit::{Dyno, assert_exit, signal, skip, skip_because, stderr, stdout};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn certificate(dyno: &Dyno, folder: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dyno.path(folder).join("proof.json")).unwrap()).unwrap()
}

fn there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
}

/// What every round must say, whichever server was elected.
fn rounds(certificate: &Value, by: &str, count: usize) {
    let rounds = certificate["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), count, "{certificate}");
    for round in rounds {
        assert_eq!(round["by"], by);
        assert_ne!(round["primary"], round["promoted"]);
        assert!(round["settled_s"].as_f64() > round["elected_s"].as_f64(), "{round}");
        let curve = &round["curve"]["acknowledged"];
        assert!(curve.as_array().unwrap().iter().any(|n| n.as_u64() > Some(0)), "{round}");
    }
}

/// Every record has one fate.
fn adds_up(certificate: &Value) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{certificate}"));
    let primary =
        certificate["copies"].as_array().unwrap().iter().find(|copy| copy["primary"] == true).unwrap();
    let acknowledged = number(&certificate["figures"]["acknowledged"]);
    assert_eq!(
        number(&primary["found"]) + number(&certificate["lost"]) + number(&certificate["wrong"]),
        acknowledged
    );
    let unknown =
        number(&certificate["indeterminate_found"]) + number(&certificate["indeterminate_not_found"]);
    assert_eq!(unknown, number(&certificate["figures"]["indeterminate"]));
    assert!(certificate["duplicated"].is_null(), "a name of Redis is there once: {certificate}");
}

#[test]
fn a_failover_loses_nothing_with_two_copies_and_something_with_one() {
    if !there("redis-server") {
        return skip("a proof of failover");
    }
    let dyno = Dyno::new();
    let base = ["prove", "failover", "--rounds", "2", "--between", "1s", "--down-after", "2s", "--quiet"];
    let output = dyno.run(&[&base[..], &["--out", "two"]].concat());
    assert_exit(&output, &[0]);
    let two = certificate(&dyno, "two");
    rounds(&two, "kill", 2);
    adds_up(&two);
    assert_eq!((&two["lost"], &two["wrong"], &two["refused_found"]), (&0.into(), &0.into(), &0.into()));
    assert!(two["figures"]["acknowledged"].as_u64().unwrap() > 1_000, "{two}");
    for round in two["rounds"].as_array().unwrap() {
        assert!(round["without_acks_s"].as_f64().unwrap() > 0.5, "{round}");
        assert!(round["cut_s"].is_null(), "{round}");
    }
    // The negative control: what only the primary has goes with it.
    let output = dyno.run(&[&base[..], &["--copies", "1", "--out", "one"]].concat());
    assert_exit(&output, &[4]);
    let one = certificate(&dyno, "one");
    assert!(one["lost"].as_u64().unwrap() > 0, "{one}");
    adds_up(&one);
}

#[test]
fn valkey_loses_nothing_with_two_copies() {
    if !there("valkey-server") {
        return skip_because("a proof of failover of Valkey", "valkey-server is not on PATH");
    }
    let dyno = Dyno::new();
    let words =
        ["prove", "failover", "valkey", "--rounds", "1", "--between", "1s", "--down-after", "2s", "--quiet"];
    assert_exit(&dyno.run(&[&words[..], &["--out", "two"]].concat()), &[0]);
    let two = certificate(&dyno, "two");
    rounds(&two, "kill", 1);
    adds_up(&two);
    assert_eq!((&two["lost"], &two["wrong"]), (&0.into(), &0.into()));
    assert!(two["target"].as_str().unwrap().to_lowercase().contains("valkey"), "{}", two["target"]);
}

/// Whether dyno may have a network namespace of its own here; says so if not.
fn may_cut(what: &str) -> bool {
    if !there("redis-server") {
        skip(what);
        return false;
    }
    // What dyno itself tries first.
    let entrance = dyno_prove::failover::partition::entrance(Path::new("/bin/true"));
    if let Err(why) = &entrance {
        skip_because(what, &why.to_string());
    }
    entrance.is_ok()
}

const CUT: [&str; 8] = ["prove", "failover", "--by", "cut", "--between", "1s", "--down-after", "2s"];

#[test]
fn a_primary_that_is_cut_off_takes_nothing_with_it_that_two_copies_have() {
    if !may_cut("a primary that is cut off") {
        return;
    }
    let dyno = Dyno::new();
    let output = dyno.run(&[&CUT[..], &["--rounds", "2", "--out", "two"]].concat());
    assert_exit(&output, &[0]);
    let two = certificate(&dyno, "two");
    rounds(&two, "cut", 2);
    adds_up(&two);
    assert_eq!((&two["lost"], &two["wrong"], &two["refused_found"]), (&0.into(), &0.into(), &0.into()));
    // What was sent to the old primary meanwhile was not called written, and is gone.
    assert!(two["figures"]["indeterminate"].as_u64().unwrap() > 0, "{two}");
    for round in two["rounds"].as_array().unwrap() {
        let (cut, elected) = (round["cut_s"].as_f64().unwrap(), round["elected_s"].as_f64().unwrap());
        assert!(cut > elected && elected > 0.0, "{round}");
        // Everyone has an address of their own.
        assert!(round["primary"].as_str().unwrap().starts_with("127.0.0.1"), "{round}");
        let host = |name: &str| round[name].as_str().unwrap().split(':').next().unwrap().to_owned();
        assert_ne!(host("primary"), host("promoted"), "{round}");
    }
    assert!(stderr(&output).contains("cut off,"), "{}", stderr(&output));
    assert!(stdout(&output).contains("recovered after"), "{}", stdout(&output));
    let page = std::fs::read_to_string(dyno.path("two").join("proof.html")).unwrap();
    assert!(page.contains("cut off") && page.contains("What became of the records"));
}

/// A primary that is frozen goes on after the election, is made a replica, and loses what only it has.
#[test]
fn a_primary_that_freezes_takes_nothing_with_it_that_two_copies_have() {
    if !there("redis-server") {
        return skip("a primary that freezes");
    }
    let dyno = Dyno::new();
    let base =
        ["prove", "failover", "--by", "freeze", "--between", "1s", "--down-after", "2s", "--rounds", "1"];
    let output = dyno.run(&[&base[..], &["--out", "two"]].concat());
    assert_exit(&output, &[0]);
    let two = certificate(&dyno, "two");
    rounds(&two, "freeze", 1);
    adds_up(&two);
    assert_eq!((&two["lost"], &two["wrong"], &two["refused_found"]), (&0.into(), &0.into(), &0.into()));
    let round = &two["rounds"][0];
    assert!(round["cut_s"].as_f64() > round["elected_s"].as_f64(), "{round}");
    assert!(stderr(&output).contains("frozen,"), "{}", stderr(&output));
    let output = dyno.run(&[&base[..], &["--copies", "1", "--quiet", "--out", "one"]].concat());
    assert_exit(&output, &[4]);
    let one = certificate(&dyno, "one");
    assert!(one["lost"].as_u64().unwrap() > 0, "{one}");
    adds_up(&one);
}

/// The negative control: a primary that is cut off and still acknowledges what no other server has.
#[test]
fn what_one_copy_has_is_lost_with_a_primary_that_is_cut_off() {
    if !may_cut("a primary that is cut off, with one copy") {
        return;
    }
    let dyno = Dyno::new();
    let output =
        dyno.run(&[&CUT[..], &["--rounds", "1", "--copies", "1", "--quiet", "--out", "one"]].concat());
    assert_exit(&output, &[4]);
    let one = certificate(&dyno, "one");
    rounds(&one, "cut", 1);
    adds_up(&one);
    assert!(one["lost"].as_u64().unwrap() > 100, "{one}");
    assert!(stdout(&output).contains("- no acknowledged record is lost"), "{}", stdout(&output));
}

/// Processes that work in a folder: Redis writes its title over its command line.
fn within(folder: &Path) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let places = entries.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(folder)).count()
}

#[test]
fn nothing_outlives_a_proof_that_is_interrupted() {
    if !may_cut("a proof that is interrupted") {
        return;
    }
    let dyno = Dyno::new();
    let temporary = dyno.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let temporary = temporary.canonicalize().unwrap();
    for name in ["INT", "KILL"] {
        let mut child = dyno
            .command(&[&CUT[..], &["--rounds", "50", "--quiet", "--out", name]].concat())
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        // Two servers and three sentinels.
        while within(&temporary) < 5 {
            assert!(Instant::now() < end, "the servers do not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_secs(2));
        signal(child.id(), name);
        let status = child.wait().unwrap();
        assert_eq!(status.code(), (name == "INT").then_some(130), "{status}");
        let end = Instant::now() + Duration::from_secs(20);
        while within(&temporary) > 0 {
            assert!(Instant::now() < end, "servers are left after SIG{name}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn what_cannot_be_proven_is_refused() {
    let dyno = Dyno::new();
    let refused = |words: &[&str], why: &str| {
        let output = dyno.run(&[&["prove", "failover"], words].concat());
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    };
    refused(&["mongod", "--copies", "3"], "expected 1 to 2 with 2 replicas");
    refused(&["mongod", "--isolate", "2s"], "expected less than --down-after");
    refused(&["mongod", "--replicas", "3"], "expected 2, 4 or 6");
    refused(&["--copies", "3"], "expected 1 to 2 with 1 replicas");
    refused(&["mysql"], "expected one of redis, valkey and mongod");
    refused(&["--by", "magic"], "expected one of kill, cut, freeze");
}

/// Without the programs, or without permission, it says what is missing before anything is started.
#[test]
fn cutting_off_says_what_it_needs() {
    let dyno = Dyno::new();
    let tools = dyno.path("tools");
    std::fs::create_dir(&tools).unwrap();
    let denied = "#!/bin/sh\necho 'unshare: unshare failed: Operation not permitted' >&2\nexit 1\n";
    let path = tools.join("unshare");
    std::fs::write(&path, denied).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let all = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let words = [&CUT[..], &["--quiet", "--out", "p"]].concat();
    let output = dyno.command(&words).env("PATH", &all).output().unwrap();
    assert_exit(&output, &[1]);
    let why = stderr(&output);
    assert!(why.contains("cutting off needs"), "{why}");
    assert!(why.contains("Operation not permitted") || why.contains("is not installed"), "{why}");
    assert!(!dyno.path("p").exists());
}
