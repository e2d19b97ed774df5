//! Sessions and retryable writes of dyno's own MongoDB codec, before a scripted member of a replica set.

use dyno_testkit::fake_mongo::{FakeCommand, Script, cursor, hello, serve};
use dyno_testkit::{Dyno, arrivals, outcome, phase};
use dyno_types::bson::{self, kind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// What is kept of a command: its name, its session, the number of its write.
type Seen = (String, Option<Vec<u8>>, Option<i64>);

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    refused: u64,
}

fn keep(command: &FakeCommand) -> Seen {
    let session = bson::element_at_path(&command.document, "lsid.id").map(|id| id.value.to_vec());
    let number = bson::find_element(&command.document, "txnNumber").map(|e| {
        assert_eq!(e.kind, kind::INT64);
        e.as_i64().unwrap()
    });
    (command.name(), session, number)
}

/// A member that refuses each seventh update with a code that allows a retry, and with a label for each other of these.
fn member(replica_set: bool, log: &Arc<Mutex<Log>>) -> String {
    let (log, own) = (log.clone(), Arc::new(OnceLock::<String>::new()));
    let name = own.clone();
    let server = serve(move |me| -> Script {
        name.set(me.clone()).unwrap();
        Arc::new(move |command, out| {
            if ["hello", "isMaster"].contains(&command.name().as_str()) {
                let hosts = if replica_set { vec![me.clone()] } else { Vec::new() };
                hello(&me, &hosts, &me, out);
                return bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
            }
            let mut log = log.lock().unwrap();
            match command.name().as_str() {
                "find" => {
                    log.seen.push(keep(command));
                    cursor(0, "firstBatch", 1, out);
                }
                "update" => {
                    log.seen.push(keep(command));
                    if log.seen.len() % 7 == 0 {
                        log.refused += 1;
                        return refuse(log.refused % 2 == 0, out);
                    }
                    bson::put_int32(out, "n", 1);
                    bson::put_double(out, "ok", 1.0);
                }
                _ => {
                    bson::put_double(out, "ok", 0.0);
                    bson::put_int32(out, "code", 59);
                }
            }
        })
    });
    assert_eq!(own.get(), Some(&server));
    server
}

fn refuse(labelled: bool, out: &mut Vec<u8>) {
    bson::put_double(out, "ok", 0.0);
    bson::put_string(out, "errmsg", "interrupted");
    // The code with the label is not among those that say it by themselves.
    bson::put_int32(out, "code", if labelled { 50 } else { 11_602 });
    if labelled {
        bson::put_head(out, kind::ARRAY, "errorLabels");
        let list = bson::open(out);
        bson::put_item_head(out, kind::STRING, 0);
        bson::put_text_value(out, b"RetryableWriteError");
        bson::close(out, list);
    }
}

/// Runs 400 operations of workload A; returns the measured phase and what the server saw.
fn run(replica_set: bool, query: &str) -> (serde_json::Value, Log) {
    let log = Arc::new(Mutex::new(Log::default()));
    let server = member(replica_set, &log);
    let dyno = Dyno::new();
    let uri = format!("mongodb://{server}/t{query}");
    let more = ["--records", "100", "--no-load", "--ops", "400", "--users", "4", "--out", "d"];
    dyno.assert_ran_but(&dyno.run(&[&["run", &uri][..], &more].concat()), &["errors"]);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure").clone();
    assert_eq!(arrivals(&measured), 400);
    let log = std::mem::take(&mut *log.lock().unwrap());
    (measured, log)
}

#[test]
fn writes_are_numbered_and_sent_once_more_where_the_server_allows_it() {
    let (measured, log) = run(true, "?retryWrites=true");
    // Every seventh command may be an update that is sent again and refused again.
    let mut tries: BTreeMap<(Vec<u8>, i64), u64> = BTreeMap::new();
    for (name, session, number) in &log.seen {
        let session = session.clone().expect("a session");
        match (name.as_str(), number) {
            ("update", Some(number)) => *tries.entry((session, *number)).or_default() += 1,
            ("find", None) => {}
            other => panic!("{other:?}"),
        }
    }
    let retries: u64 = tries.values().map(|n| n - 1).sum();
    // How many are updates depends on how four users mix.
    assert!(tries.values().all(|n| *n <= 2) && retries > 3, "{retries} retries: {tries:?}");
    assert_eq!(measured["redirects"], retries);
    let failed = outcome(&measured, "read_only") + outcome(&measured, "server_error");
    assert_eq!((outcome(&measured, "ok") + failed, failed + retries), (400, log.refused));
    // A session is used by one operation at a time, and by many one after the other.
    let sessions: std::collections::BTreeSet<_> = log.seen.iter().map(|(_, session, _)| session).collect();
    assert!((1..=8).contains(&sessions.len()), "{} sessions of 4 users", sessions.len());
}

#[test]
fn without_the_option_every_failure_is_an_outcome() {
    let (measured, log) = run(true, "");
    assert!(log.seen.iter().all(|(_, session, number)| session.is_some() && number.is_none()));
    let failed = outcome(&measured, "read_only") + outcome(&measured, "server_error");
    assert_eq!((failed, &measured["redirects"]), (log.refused, &serde_json::json!(0)));
}

#[test]
fn a_single_server_gets_neither() {
    let (_, log) = run(false, "?retryWrites=true");
    assert!(log.seen.iter().all(|(_, session, number)| session.is_none() && number.is_none()));
}
