//! Batches of inserts: every record and every index entry arrives, each insert is an arrival of its own, and a batch
//! that is cut short fails as a whole.

use dyno_testkit::cluster::RedisCluster;
use dyno_testkit::{Dyno, RedisProcess, arrivals, assert_exit, finish, outcome, phase, skip, stdout};
use std::time::Duration;

#[test]
fn a_batched_load_holds_every_record_and_index_entry() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("batched load") };
    let dyno = Dyno::new();
    // 1,000 is no multiple of 7: the last batch is a partial one.
    let uri = server.uri();
    let load =
        ["run", &uri, "--records", "1000", "--load-batch", "7", "--users", "3", "--ops", "10", "--out", "d"];
    dyno.assert_ran(&dyno.run(&load));
    assert_eq!(server.cli(&["ZCARD", "_indices"]), "1000");
    assert_eq!(server.cli(&["DBSIZE"]), "1001");
    let summary = dyno.summary("d");
    let loaded = phase(&summary, "load");
    assert_eq!((arrivals(loaded), outcome(loaded, "ok")), (1000, 1000));
    assert_eq!(loaded["client"]["batch"], 7);
    let inserts = &loaded["metrics"][0];
    assert_eq!(inserts["name"], "INSERT");
    assert_eq!(inserts["service"]["count"], 1000, "{inserts}");
}

#[test]
fn batches_of_ycsb_load_the_same_data_as_single_inserts() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("YCSB's batches") };
    let dyno = Dyno::new();
    let port = format!("redis.port={}", server.port);
    let common =
        ["-p", "redis.host=127.0.0.1", "-p", &port, "-p", "recordcount=500", "-p", "dataintegrity=true"];
    let with = |mode: &str, extra: &[&str]| {
        let mut arguments = vec!["ycsb", mode, "redis", "-P", "workloads/workloada", "-threads", "4"];
        arguments.extend(common);
        arguments.extend(extra);
        dyno.run(&arguments)
    };
    let loaded = with("load", &["-p", "batchsize=50"]);
    dyno.assert_ran(&loaded);
    assert!(stdout(&loaded).contains("[INSERT], Operations, 500"), "{}", stdout(&loaded));
    assert_eq!(server.cli(&["ZCARD", "_indices"]), "500");
    let read =
        with("run", &["-p", "operationcount=2000", "-p", "readproportion=1", "-p", "updateproportion=0"]);
    dyno.assert_ran(&read);
    assert!(stdout(&read).contains("[VERIFY], Return=OK, 2000"), "{}", stdout(&read));
    assert_exit(&with("load", &["-p", "batchsize=0"]), &[2]);
}

#[test]
fn batches_cross_the_nodes_of_a_cluster() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("batches in a cluster") };
    let dyno = Dyno::new();
    let uri = cluster.uri("");
    let load = [
        "run",
        &uri,
        "--records",
        "2000",
        "--ops",
        "2000",
        "--load-batch",
        "64",
        "--workload",
        "c",
        "--out",
        "d",
    ];
    dyno.assert_ran(&dyno.run(&load));
    let summary = dyno.summary("d");
    assert_eq!(outcome(phase(&summary, "load"), "ok"), 2000);
    assert_eq!(outcome(phase(&summary, "measure"), "ok"), 2000);
    let entries: u64 =
        (0..3).map(|n| cluster.ask(n, &["ZCARD", "_indices"]).parse::<u64>().unwrap_or(0)).sum();
    assert_eq!(entries, 2000);
}

#[test]
fn a_server_killed_while_batches_are_under_way_loses_no_count() {
    let Some(mut server) = RedisProcess::start(&[]) else { return skip("killed during batches") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let arguments =
        ["run", &uri, "--records", "3M", "--load-batch", "64", "--users", "8", "--ops", "10", "--out", "d"];
    let run = dyno.start(&arguments);
    std::thread::sleep(Duration::from_millis(1500));
    server.kill();
    std::thread::sleep(Duration::from_millis(300));
    server.restart();
    std::thread::sleep(Duration::from_millis(1500));
    dyno_testkit::signal(run.id(), "INT");
    let output = finish(run);
    assert_exit(&output, &[130]);
    let summary = dyno.summary("d");
    let loaded = phase(&summary, "load");
    let sum: u64 = loaded["outcomes"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, arrivals(loaded));
    assert!(outcome(loaded, "disconnected") > 0, "{}", loaded["outcomes"]);
    // What was acknowledged after the restart is there; not more than was sent.
    let there: u64 = server.cli(&["ZCARD", "_indices"]).parse().unwrap();
    assert!(there > 0 && there <= outcome(loaded, "ok") + outcome(loaded, "aborted"), "{there}");
}

#[test]
fn embedded_stores_take_batches_as_transactions() {
    let dyno = Dyno::new();
    for store in ["sqlite:a.db?synchronous=full", "redb:b.redb", "fjall:c"] {
        let load = ["run", store, "--records", "1000", "--load-batch", "100", "--ops", "500", "--out", "d"];
        dyno.assert_ran(&dyno.run(&load));
        let summary = dyno.summary("d");
        assert_eq!(outcome(phase(&summary, "load"), "ok"), 1000, "{store}");
        assert_eq!(outcome(phase(&summary, "measure"), "ok"), 500, "{store}");
        assert_eq!(phase(&summary, "load")["client"]["batch"], 100, "{store}");
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
    }
}
