//! A replica set of three real `mongod`s, where `mongod` is on PATH: elections, sessions, transactions.

mod common;

use common::mongo::Mongo;
use common::{Dyno, arrivals, assert_exit, finish, outcome, phase, skip_because};
use dyno_rig::{MongoAdmin, Target};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use std::time::{Duration, Instant};

fn admin(uri: &str) -> Result<MongoAdmin, String> {
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    let opened = Target::parse(uri).unwrap().open(content).map_err(|error| error.to_string())?;
    Ok(opened.mongo_admin().unwrap())
}

/// Three members with a primary, and the URI that names them all.
fn replica_set() -> Option<(Vec<Mongo>, String)> {
    let members: Vec<Mongo> = (0..3).map(|_| Mongo::member()).collect::<Option<_>>()?;
    let hosts: Vec<String> = members.iter().map(|m| format!("127.0.0.1:{}", m.port)).collect();
    let first = admin(&format!("mongodb://{}/t?directConnection=true", hosts[0])).unwrap();
    let initiated = first.run_on("admin", &|out| {
        bson::head(out, kind::DOCUMENT, "replSetInitiate");
        let config = bson::open(out);
        bson::string(out, "_id", "dyno");
        bson::head(out, kind::ARRAY, "members");
        let list = bson::open(out);
        for (number, host) in hosts.iter().enumerate() {
            bson::item(out, kind::DOCUMENT, number as u32);
            let member = bson::open(out);
            bson::int32(out, "_id", number as i32);
            bson::string(out, "host", host);
            bson::close(out, member);
        }
        bson::close(out, list);
        bson::close(out, config);
    });
    initiated.unwrap();
    let uri = format!("mongodb://{}/t?replicaSet=dyno&w=majority", hosts.join(","));
    let begun = Instant::now();
    while let Err(why) = admin(&uri) {
        assert!(begun.elapsed() < Duration::from_secs(60), "no primary: {why}");
        std::thread::sleep(Duration::from_millis(200));
    }
    Some((members, uri))
}

/// Transactions came with wire version 7 (4.0).
fn has_transactions(uri: &str) -> bool {
    let hello = admin(uri).unwrap().run_on("admin", &|out| bson::int32(out, "isMaster", 1)).unwrap();
    bson::find(&hello, "maxWireVersion").and_then(|e| e.as_i64()).unwrap() >= 7
}

fn transactions_commit(dyno: &Dyno, uri: &str) {
    let file = "
collections:
  a: { count: 500, document: { n: 1 } }
operations:
  pair:
    transaction:
      - { name: take, update: a, filter: { _id: { $key: a } }, change: { $inc: { n: -1 } } }
      - { name: note, insert: a }
";
    std::fs::write(dyno.path("pair.yaml"), file).unwrap();
    let ran =
        dyno.run(&["run", uri, "--workload", "pair.yaml", "--ops", "500", "--users", "1", "--out", "p"]);
    assert_exit(&ran, &[0, 5]);
    assert_eq!(outcome(phase(&dyno.summary("p"), "measure"), "ok"), 500);
    assert_eq!(admin(uri).unwrap().count("a").unwrap(), 1_000);
}

#[test]
fn a_primary_that_dies_is_replaced_and_transactions_commit() {
    let Some((mut members, uri)) = replica_set() else {
        return skip_because("a replica set of mongod", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    match has_transactions(&uri) {
        true => transactions_commit(&dyno, &uri),
        false => skip_because("transactions of mongod", "mongod is older than 4.0"),
    }

    let arguments =
        ["--records", "2000", "--rate", "500", "--duration", "20s", "--warmup", "0", "--out", "d"];
    let run = dyno.start(&[&["run", &uri][..], &arguments].concat());
    std::thread::sleep(Duration::from_secs(8));
    // The member that was initiated first is the primary.
    members[0].kill();
    assert_exit(&finish(run), &[0, 5]);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    let sum: u64 = measured["outcomes"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert_eq!(sum, arrivals(measured));
    assert!(outcome(measured, "ok") > 2_000, "{measured}");
}

/// Two copies by a majority, looked up on every member.
#[test]
fn an_ingest_rate_is_proven() {
    let Some((_members, uri)) = replica_set() else {
        return skip_because("a proof on a replica set of mongod", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    let words = [
        "-n",
        "3000",
        "--batch",
        "100",
        "--rate",
        "1500",
        "--require-rate",
        "1",
        "--durable",
        "--quiet",
        "--out",
        "p",
    ];
    assert_exit(&dyno.run(&[&["prove", "ingest", &uri][..], &words].concat()), &[0]);
    let text = std::fs::read(dyno.path("p").join("proof.json")).unwrap();
    let found: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let copies = found["copies"].as_array().unwrap();
    assert_eq!(copies.len(), 3, "{found}");
    assert!(copies.iter().all(|copy| copy["found"] == 3_000), "{found}");
    // What was sent is what mongod has: documents of the same mean size.
    let figure = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{found:#}"));
    let sent = figure(&found["sent"]["record_bytes"]) / figure(&found["sent"]["records"]);
    let stored = &found["storage"];
    assert!((sent - figure(&stored["avgObjSize"])).abs() < 1.0, "{sent} sent, {stored}");
    assert_eq!((figure(&stored["count"]), figure(&stored["nindexes"])), (3_000.0, 4.0), "{stored}");
    assert_eq!(
        (&found["lag"]["unit"], found["lag"]["members"].as_object().unwrap().len()),
        (&"s of the oplog".into(), 2)
    );
    let clocks = found["pre_checks"].as_array().unwrap().iter();
    let clocks = clocks.filter(|check| check["name"].as_str().unwrap().starts_with("clock of "));
    assert_eq!(clocks.filter(|check| check["found"].as_str().unwrap().contains("within")).count(), 3);
}
