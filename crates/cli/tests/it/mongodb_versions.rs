//! Versions of mongod and mongos that are played: what a run says of them, what explain can apply, and what a plan tells of a
//! program before anything is started.

use dyno_testkit::mongo_player::{Player, RELEASES, Role};
use dyno_testkit::{Dyno, assert_exit, stderr, stdout};
use dyno_types::mongod::MongodVersion;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;

/// A short run against a player; returns its `run.json`.
fn run_json(dyno: &Dyno, player: Player) -> Value {
    let uri = format!("mongodb://{}/t", player.serve());
    let _ = std::fs::remove_dir_all(dyno.path("d"));
    let run = ["run", &uri, "--no-load", "--records", "100", "--ops", "200", "--workload", "c", "--out", "d"];
    dyno.assert_ran(&dyno.run(&run));
    serde_json::from_slice(&std::fs::read(dyno.path("d/run.json")).unwrap()).unwrap()
}

#[test]
fn every_version_is_named_with_its_write_concern() {
    let dyno = Dyno::new();
    for (version, text, _) in RELEASES {
        for role in [Role::Standalone, Role::Primary] {
            let said = run_json(&dyno, Player::new(version, role));
            assert_eq!(said["database"], format!("MongoDB {text}"));
            let majority = role == Role::Primary && version.defaults_to_majority();
            let expected = if majority { "write concern w: majority" } else { "write concern w: 1" };
            assert_eq!(said["facts"]["durability"], expected, "{version} {role:?}");
        }
    }
}

#[test]
fn a_write_concern_that_a_user_may_not_ask_for_is_not_told() {
    let dyno = Dyno::new();
    let refused = |major: u32, minor: u32, role: Role| {
        let version = MongodVersion::new(major, minor);
        let said = run_json(&dyno, Player { may_monitor: false, ..Player::new(version, role) });
        let fact = |name: &str| said["facts"][name].as_str().unwrap_or_default().to_owned();
        assert!(fact("refused").contains("serverStatus: Unauthorized (13)"), "{said}");
        fact("durability")
    };
    let old = refused(3, 6, Role::Primary);
    assert!(old.starts_with("write concern: not told by the server (replSetGetConfig was refused"), "{old}");
    let new = refused(8, 0, Role::Primary);
    assert!(new.starts_with("write concern w: majority (implied by MongoDB 8.0"), "{new}");
    let router = refused(7, 0, Role::Router);
    assert!(router.starts_with("write concern w: majority (implied by MongoDB 7.0"), "{router}");
}

#[test]
fn explain_names_rules_only_where_their_figures_are_missing() {
    let dyno = Dyno::new();
    for (version, ..) in RELEASES {
        run_json(&dyno, Player::new(version, Role::Primary));
        let said = stdout(&dyno.run(&["explain", "d"]));
        assert!(!said.contains("could not be applied"), "{version}: {said}");
    }
    // Routers have no storage engine.
    run_json(&dyno, Player::new(MongodVersion::new(8, 2), Role::Router));
    let said = stdout(&dyno.run(&["explain", "d"]));
    let joined = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        joined.contains("the rule cache_eviction could not be applied: the server does not report"),
        "{said}"
    );
}

/// A program that tells a version, and notes with what it was started.
fn put_mongod(dyno: &Dyno, version: &str) {
    let program = dyno.path("mongod");
    let text =
        format!("#!/bin/sh\necho \"$@\" >> {}\necho 'db version v{version}'\n", dyno.path("calls").display());
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_plan_tells_what_a_version_does_not_have_before_it_is_started() {
    let dyno = Dyno::new();
    let program = format!("server.program={}", dyno.path("mongod").display());
    put_mongod(&dyno, "8.0.4");
    let planned = dyno.run(&["plan", "percona/storage-engines", "--set", &program]);
    let said = stderr(&planned);
    let expected = "server.engine: mmapv1 was removed in mongod 4.2; this is db version v8.0.4";
    assert!(said.contains(expected), "{said}");

    let file = "server: {kind: mongod, journal: false}\nphases: {measure: {duration: 1s}}\n";
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    let refused = dyno.run(&["run", "x.yaml", "--set", &program, "--out", "o"]);
    assert_exit(&refused, &[2]);
    let said = stderr(&refused);
    assert!(
        said.contains("server.journal: is mandatory from mongod 6.1 on; this is db version v8.0.4"),
        "{said}"
    );
    assert!(!dyno.path("o").exists(), "nothing is begun");
    let calls = std::fs::read_to_string(dyno.path("calls")).unwrap();
    assert!(calls.lines().all(|line| line == "--version"), "{calls}");

    put_mongod(&dyno, "6.0.20");
    let planned = dyno.run(&["plan", "x.yaml", "--set", &program]);
    assert!(!stderr(&planned).contains("mandatory"), "{}", stderr(&planned));
}
