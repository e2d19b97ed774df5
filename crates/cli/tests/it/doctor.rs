//! `dyno doctor` on the built command: facts, their hash, differences, recipes, and what runs record.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

fn dyno(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dyno")).args(arguments).current_dir(folder).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn facts_are_hashed_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let first = dyno(here, &["doctor", "--json"]);
    let second = dyno(here, &["doctor", "--json"]);
    let (one, two) = (json(&first), json(&second));
    assert_eq!(one["system"]["hash"], two["system"]["hash"], "nothing was changed in between");
    assert_eq!(one["system"]["hash"].as_str().unwrap().len(), 64);
    assert!(one["system"]["facts"]["memory"]["available"].is_null());
    std::fs::write(here.join("a.json"), &first.stdout).unwrap();
    let mut changed = two;
    changed["system"]["facts"]["vm"]["swappiness"] = "97".into();
    std::fs::write(here.join("b.json"), changed.to_string()).unwrap();
    assert_eq!(dyno(here, &["doctor", "--diff", "a.json", "a.json"]).status.code(), Some(0));
    let differs = dyno(here, &["doctor", "--diff", "a.json", "b.json", "--json"]);
    assert_eq!(differs.status.code(), Some(4));
    let differences = json(&differs)["differences"].as_array().unwrap().clone();
    assert_eq!(differences.len(), 1, "{differences:?}");
    assert_eq!((&differences[0]["name"], &differences[0]["second"]), (&"swappiness".into(), &"97".into()));
    let none = dyno(here, &["doctor", "--diff", "a.json", "missing"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn findings_come_first_and_facts_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let told = |words: &[&str]| String::from_utf8(dyno(folder.path(), words).stdout).unwrap();
    let short = told(&["doctor"]);
    let first = short.lines().next().unwrap();
    assert!(first.contains("finding") || first.starts_with("Nothing that was read"), "{short}");
    assert!(
        short.contains("environment ") && short.contains(" facts with -v") && !short.contains("\ncpu\n"),
        "{short}"
    );
    for words in [&["doctor", "-v"][..], &["doctor", "--all"]] {
        let long = told(words);
        let (findings, facts) =
            (long.find(first.rsplit(' ').next().unwrap()).unwrap(), long.find("\ncpu\n").unwrap());
        assert!(findings < facts && long.contains("\nunknown\n"), "{long}");
    }
}

#[test]
fn a_recipe_is_checked_and_an_unknown_one_refused() {
    let folder = tempfile::tempdir().unwrap();
    let checked = dyno(folder.path(), &["doctor", "--profile", "wsf/bkm-m6i.32xlarge", "--json"]);
    let items = json(&checked)["items"].as_array().unwrap().clone();
    let kinds = |kind: &str| items.iter().filter(|item| item["result"] == kind).count();
    assert_eq!(items.len(), kinds("same") + kinds("different") + kinds("unknown"));
    assert_eq!(checked.status.code(), Some(if kinds("different") > 0 { 4 } else { 0 }));
    assert!(items.iter().all(|item| (item["result"] == "unknown") == item["found"].is_null()));
    let refused = dyno(folder.path(), &["doctor", "--profile", "bkm-spx"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("wsf/bkm-spr"));
}

#[test]
fn every_run_records_its_environment() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let run = ["run", "null:", "--records", "100", "--ops", "1000", "--out", "o", "--quiet"];
    dyno_testkit::assert_ran_in(here, &dyno(here, &run), &[]);
    let own = json(&dyno(here, &["doctor", "--json"]));
    let text = std::fs::read_to_string(here.join("o/environment.json")).unwrap();
    let recorded: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(recorded["system"]["facts"]["cpu"], own["system"]["facts"]["cpu"]);
    let file = here.join("own.json");
    std::fs::write(&file, own.to_string()).unwrap();
    let differs = dyno(here, &["doctor", "--diff", "o", "own.json"]);
    assert_eq!(differs.status.code(), Some(0), "{}", String::from_utf8_lossy(&differs.stdout));
}
