//! `dyno clean`: what runs have loaded goes, and nothing else does. Counts are the server's own.

use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, skip, skip_because, stderr, stdout};

#[test]
fn records_of_runs_go_and_others_stay() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("dyno clean") };
    let dyno = Dyno::new();
    let uri = server.uri();
    server.cli(&["SET", "own", "1"]);
    // Nothing is known to be dyno's before a run has loaded it.
    std::fs::create_dir(dyno.path("dyno-runs")).unwrap();
    let nothing = dyno.run(&["clean", &uri, "--yes"]);
    assert_exit(&nothing, &[2]);
    assert!(stderr(&nothing).contains("no run in dyno-runs has loaded data there"), "{}", stderr(&nothing));
    // 1,000 records, and inserts of workload d.
    let run = [
        "run",
        &uri,
        "-w",
        "d",
        "--records",
        "1000",
        "--users",
        "4",
        "--ops",
        "2000",
        "--out",
        "dyno-runs/one",
    ];
    let loaded = dyno.run(&run);
    dyno.assert_ran(&loaded);
    // A run says what stays on a server, and names the command that removes it.
    let how = format!("what was loaded stays there: `dyno clean {uri}` shows it, and removes it with --yes");
    assert!(stderr(&loaded).contains(&how), "{}", stderr(&loaded));
    let records: u64 = server.cli(&["DBSIZE"]).parse().unwrap();
    assert!(records > 1_020, "{records}");
    let named = dyno.run(&["clean", &uri]);
    assert_exit(&named, &[0]);
    let output = stdout(&named);
    assert!(
        output.contains("1,000 records of table usertable") && output.contains("dyno-runs/one"),
        "{output}"
    );
    assert!(output.contains(" inserted records of table usertable from key number 1000 on"), "{output}");
    assert!(stderr(&named).contains("nothing was removed; --yes removes this"), "{}", stderr(&named));
    assert_eq!(server.cli(&["DBSIZE"]), records.to_string());
    assert_exit(&dyno.run(&["clean", &uri, "--yes"]), &[0]);
    assert_eq!(server.cli(&["DBSIZE"]), "1");
    assert_eq!(server.cli(&["GET", "own"]), "1");
    let again = dyno.run(&["clean", &uri, "--yes"]);
    assert_exit(&again, &[2]);
    assert!(stderr(&again).contains("nothing is there"), "{}", stderr(&again));
    // The list of runs for programs.
    let listed: serde_json::Value = serde_json::from_str(&stdout(&dyno.run(&["list", "--json"]))).unwrap();
    let [one] = &listed.as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!((one["kind"].as_str(), one["state"].as_str()), (Some("run"), Some("complete")), "{one}");
    let summary = dyno.summary("dyno-runs/one");
    assert_eq!(one["throughput"], dyno_testkit::phase(&summary, "measure")["throughput"], "{one}");
}

#[test]
fn records_of_another_shape_are_not_removed() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("dyno clean, another shape") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let run = |fields: &str, out: &str| {
        let fields = format!("fieldcount={fields}");
        let more = ["--records", "100", "--ops", "100", "-p", &fields, "--reload", "--out", out];
        dyno.assert_ran(&dyno.run(&[&["run", &uri][..], &more].concat()));
    };
    run("10", "dyno-runs/ten");
    // Another program has written other records under the same keys.
    run("3", "elsewhere");
    let before = server.cli(&["DBSIZE"]);
    let refused = dyno.run(&["clean", &uri, "--yes"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("dyno clean removes only what it has loaded"), "{}", stderr(&refused));
    assert_eq!(server.cli(&["DBSIZE"]), before);
    // Half of the keys are free again: the others are not dyno's for that.
    let keys = server.cli(&["KEYS", "user*"]);
    let half: Vec<&str> = keys.lines().take(50).collect();
    assert_eq!(server.cli(&[&["DEL"][..], &half].concat()), "50");
    let before = server.cli(&["DBSIZE"]);
    assert_exit(&dyno.run(&["clean", &uri, "--yes"]), &[2]);
    assert_eq!(server.cli(&["DBSIZE"]), before);
    // A server that is not there.
    drop(server);
    assert_exit(&dyno.run(&["clean", &uri, "--yes"]), &[3]);
}

#[test]
fn records_of_several_runs_are_removed_and_counted_once() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("dyno clean, several runs") };
    let dyno = Dyno::new();
    let uri = server.uri();
    for (records, out) in [("100", "dyno-runs/few"), ("300", "dyno-runs/more")] {
        let words = ["run", &uri, "--records", records, "--ops", "100", "--reload", "--out", out];
        dyno.assert_ran(&dyno.run(&words));
    }
    // Beside the records there is the index of their keys.
    assert_eq!(server.cli(&["DBSIZE"]), "301");
    let cleaned = dyno.run(&["clean", &uri, "--yes"]);
    assert_exit(&cleaned, &[0]);
    assert!(stdout(&cleaned).contains(": 300 records"), "{}", stdout(&cleaned));
    assert_eq!(server.cli(&["DBSIZE"]), "0");
    // The number of records that dyno chooses where none is given is known again.
    dyno.assert_ran(&dyno.run(&["run", &uri, "--ops", "100", "--out", "dyno-runs/default"]));
    assert_eq!(server.cli(&["DBSIZE"]), "100001");
    assert_exit(&dyno.run(&["clean", &uri, "--yes"]), &[0]);
    assert_eq!(server.cli(&["DBSIZE"]), "0");
}

#[test]
fn collections_of_runs_go() {
    let Some(server) = Mongo::java() else {
        return skip_because("dyno clean", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    std::fs::write(dyno.path("shop.yaml"), include_str!("../../../../docs/examples/shop.yaml")).unwrap();
    let uri = server.uri("shop");
    let run =
        ["run", &uri, "--workload", "shop.yaml", "--users", "4", "--ops", "500", "--out", "dyno-runs/one"];
    dyno.assert_ran(&dyno.run(&run));
    let cleaned = dyno.run(&["clean", &uri, "--yes"]);
    assert_exit(&cleaned, &[0]);
    let output = stdout(&cleaned);
    assert!(output.contains("collection customers with 300 documents"), "{output}");
    assert_exit(&dyno.run(&["clean", &uri]), &[2]);
}
