//! Proofs of failover on a replica set: on members that a program plays, and on real ones where `mongod` is on PATH.

mod member;

use dyno_testkit::{Dyno, assert_exit, skip_because, stdout};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONFIGURATION: &str = "DYNO_TEST_CONFIGURATION";
const FOLDER: &str = "DYNO_TEST_FOLDER";

#[test]
#[ignore = "is started as mongod by the others"]
fn plays_mongod() {
    if let (Ok(configuration), Some(folder)) = (std::env::var(CONFIGURATION), std::env::var_os(FOLDER)) {
        member::play(&configuration, folder.into());
    }
}

/// Runs a proof with a `mongod` on PATH that is this program.
fn with_played(dyno: &Dyno, folder: &str, words: &[&str]) -> Output {
    let (tools, shared) = (dyno.path("tools"), dyno.path(folder));
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::create_dir_all(&shared).unwrap();
    let own = std::env::current_exe().unwrap();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'db version v8.0.0'; exit; fi\n\
         {CONFIGURATION}=\"$2\" exec '{}' --ignored --exact --nocapture prove_mongod::plays_mongod\n",
        own.display()
    );
    let program = tools.join("mongod");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let base = ["prove", "failover", "mongod", "--between", "500ms", "--rate", "500", "--quiet"];
    let words = [&base[..], words].concat();
    dyno.command(&words).env("PATH", path).env(FOLDER, &shared).output().unwrap()
}

fn certificate(dyno: &Dyno, folder: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dyno.path(folder).join("proof.json")).unwrap()).unwrap()
}

#[test]
fn a_majority_keeps_what_one_member_loses() {
    let dyno = Dyno::new();
    let output = with_played(&dyno, "a", &["--rounds", "2", "--out", "two"]);
    assert_exit(&output, &[0]);
    let two = certificate(&dyno, "two");
    assert_eq!((&two["lost"], &two["wrong"], &two["duplicated"]), (&0.into(), &0.into(), &0.into()), "{two}");
    assert!(two["figures"]["acknowledged"].as_u64().unwrap() > 100, "{two}");
    assert_eq!(two["copies"].as_array().unwrap().len(), 3, "{two}");
    let rounds = two["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2, "{two}");
    for round in rounds {
        assert_ne!(round["primary"], round["promoted"]);
        assert!(round["without_acks_s"].as_f64().unwrap() > 0.3, "{round}");
    }
    assert!(two["claim"]["words"].as_str().unwrap().contains("w:majority"), "{two}");
    let told = std::fs::read_to_string(dyno.path("a").join("election")).unwrap();
    assert_eq!(told, "2000", "after how long a member counts as down");
    // The negative control: what one member has is lost with it.
    let output = with_played(&dyno, "b", &["--rounds", "1", "--copies", "1", "--out", "one"]);
    assert_exit(&output, &[4]);
    let one = certificate(&dyno, "one");
    assert!(one["lost"].as_u64().unwrap() > 0, "{one}");
    assert!(one["claim"]["words"].as_str().unwrap().contains("w:1"), "{one}");
}

#[test]
fn documents_that_are_there_more_than_once_are_no_proof() {
    let dyno = Dyno::new();
    std::fs::create_dir_all(dyno.path("c")).unwrap();
    std::fs::write(dyno.path("c").join("twice"), "").unwrap();
    let output = with_played(&dyno, "c", &["--rounds", "1", "--out", "p"]);
    assert_exit(&output, &[4]);
    let found = certificate(&dyno, "p");
    assert_eq!((&found["lost"], &found["duplicated"]), (&0.into(), &2.into()), "{found}");
    assert!(stdout(&output).contains("- no record is there more than once: 2 more"), "{}", stdout(&output));
}

#[test]
fn a_real_replica_set_keeps_what_a_majority_has() {
    if Command::new("mongod").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip_because("a proof of failover on a replica set of mongod", "mongod is not on PATH");
    }
    let dyno = Dyno::new();
    let base = ["prove", "failover", "mongod", "--rounds", "2", "--quiet"];
    let output = dyno.run(&[&base[..], &["--out", "two"]].concat());
    assert_exit(&output, &[0]);
    let two = certificate(&dyno, "two");
    assert_eq!((&two["lost"], &two["duplicated"]), (&0.into(), &0.into()), "{two}");
    assert_eq!(two["rounds"].as_array().unwrap().len(), 2, "{two}");
    let output = dyno.run(&[&base[..], &["--copies", "1", "--out", "one"]].concat());
    assert_exit(&output, &[4]);
    assert!(certificate(&dyno, "one")["lost"].as_u64().unwrap() > 0);
}

/// Members have a network each: the one that is cut off goes on acknowledging until it steps down by itself.
#[test]
fn a_real_primary_that_is_cut_off_takes_with_it_what_no_majority_has() {
    let what = "a proof of failover on a replica set of mongod whose primary is cut off";
    if Command::new("mongod").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip_because(what, "mongod is not on PATH");
    }
    if let Err(why) = dyno_prove::failover::partition::entrance(Path::new("/bin/true")) {
        return skip_because(what, &why.to_string());
    }
    let dyno = Dyno::new();
    let base = ["prove", "failover", "mongod", "--by", "cut", "--rounds", "1", "--quiet"];
    let output = dyno.run(&[&base[..], &["--out", "two"]].concat());
    assert_exit(&output, &[0]);
    let two = certificate(&dyno, "two");
    assert_eq!((&two["lost"], &two["duplicated"]), (&0.into(), &0.into()), "{two}");
    let round = &two["rounds"][0];
    assert!(round["cut_s"].as_f64().unwrap() > round["elected_s"].as_f64().unwrap(), "{round}");
    // Everyone has an address of their own.
    let host = |name: &str| round[name].as_str().unwrap().split(':').next().unwrap().to_owned();
    assert!(host("primary").starts_with("192.0.2.") && host("primary") != host("promoted"), "{round}");
    let output = dyno.run(&[&base[..], &["--copies", "1", "--out", "one"]].concat());
    assert_exit(&output, &[4]);
    assert!(certificate(&dyno, "one")["lost"].as_u64().unwrap() > 0);
}

/// A frozen primary says nothing until it goes on, and then finds another in its place: what only it has is undone.
#[test]
fn a_real_primary_that_freezes_takes_with_it_what_no_majority_has() {
    if Command::new("mongod").arg("--version").stdout(Stdio::null()).status().is_err() {
        let what = "a proof of failover on a replica set of mongod whose primary freezes";
        return skip_because(what, "mongod is not on PATH");
    }
    let dyno = Dyno::new();
    let base = ["prove", "failover", "mongod", "--by", "freeze", "--rounds", "1", "--quiet"];
    let output = dyno.run(&[&base[..], &["--out", "two"]].concat());
    assert_exit(&output, &[0]);
    let two = certificate(&dyno, "two");
    assert_eq!((&two["lost"], &two["duplicated"]), (&0.into(), &0.into()), "{two}");
    let round = &two["rounds"][0];
    assert_eq!(round["by"], "freeze", "{round}");
    // It goes on in its old place after the election, and follows.
    assert!(round["cut_s"].as_f64().unwrap() > round["elected_s"].as_f64().unwrap(), "{round}");
    assert_ne!(round["primary"], round["promoted"], "{round}");
    let output = dyno.run(&[&base[..], &["--copies", "1", "--out", "one"]].concat());
    assert_exit(&output, &[4]);
    assert!(certificate(&dyno, "one")["lost"].as_u64().unwrap() > 0);
}
