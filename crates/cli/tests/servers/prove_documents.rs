//! Proofs on MongoDB's protocol: FerretDB and mongo-java-server as single servers, and a scripted replica set of two that keeps
//! what it is told, or does not. `mongod_replica_set.rs` has one on real members.

use dyno_testkit::fake_mongo::{FakeCommand, error, hello, serve};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, skip_because, stderr, stdout};
use dyno_types::bson::{self, kind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

fn certificate(dyno: &Dyno, folder: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dyno.path(folder).join("proof.json")).unwrap()).unwrap()
}

fn on_one_server(server: &Mongo) {
    let dyno = Dyno::new();
    let uri = server.uri("proofs");
    let base = [
        "prove",
        "ingest",
        &uri,
        "-n",
        "1500",
        "--batch",
        "50",
        "--record-bytes",
        "300",
        "--least",
        "0s",
        "--quiet",
    ];
    let output = dyno.run(&[&base[..], &["--copies", "1", "--require-rate", "1", "--out", "p"]].concat());
    assert_exit(&output, &[0]);
    let found = certificate(&dyno, "p");
    assert_eq!(found["copies"][0]["found"], 1_500, "{found}");
    assert_eq!(found["copies"][0]["indexed"], serde_json::json!([1_500, 1_500, 1_500]));
    // One server has no copies, whatever it is asked.
    let output = dyno.run(&[&base[..], &["--out", "q"]].concat());
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("there cannot be 2 copies"), "{}", stderr(&output));
}

#[test]
fn one_copy_on_ferretdb() {
    match Mongo::ferretdb(&[]) {
        Some(server) => on_one_server(&server),
        None => skip_because("a proof on FerretDB", "FerretDB is not there (see scripts/need mongo)"),
    }
}

#[test]
fn one_copy_on_mongo_java_server() {
    match Mongo::java() {
        Some(server) => on_one_server(&server),
        None => skip_because(
            "a proof on mongo-java-server",
            "mongo-java-server is not there (see scripts/need mongo)",
        ),
    }
}

/// Documents by their `_id`, of each member.
type HeldRecords = Arc<Mutex<[BTreeMap<String, Vec<u8>>; 2]>>;

fn text(document: &[u8], name: &str) -> Option<String> {
    bson::find_element(document, name)?.as_str().map(str::to_owned)
}

/// Keeps what is inserted: the primary all of it, the other all but each `loses`th.
fn insert(held: &HeldRecords, command: &FakeCommand, loses: Option<usize>, out: &mut Vec<u8>) {
    let concern = bson::element_at_path(&command.document, "writeConcern.w")
        .and_then(|w| w.as_str().map(str::to_owned));
    assert_eq!(concern.as_deref(), Some("majority"), "copies are acknowledged by a majority");
    assert!(bson::element_at_path(&command.document, "writeConcern.wtimeout").is_some());
    let list = bson::find_element(&command.document, "documents").unwrap().as_document().unwrap().to_vec();
    let mut held = held.lock().unwrap();
    let mut n = 0;
    for document in bson::read_elements(&list).unwrap().flatten() {
        let document = document.as_document().unwrap().to_vec();
        let id = text(&document, "_id").unwrap();
        held[0].insert(id.clone(), document.clone());
        if loses.is_none_or(|every| !held[0].len().is_multiple_of(every)) {
            held[1].insert(id, document);
        }
        n += 1;
    }
    bson::put_int32(out, "n", n);
}

/// Finds by a list of `_id`s.
fn find(held: &BTreeMap<String, Vec<u8>>, command: &FakeCommand, out: &mut Vec<u8>) {
    let ids =
        bson::element_at_path(&command.document, "filter._id.$in").unwrap().as_document().unwrap().to_vec();
    bson::put_head(out, kind::DOCUMENT, "cursor");
    let cursor = bson::open(out);
    bson::put_head(out, kind::ARRAY, "firstBatch");
    let list = bson::open(out);
    let asked = bson::read_elements(&ids).unwrap().flatten().filter_map(|id| id.as_str().map(str::to_owned));
    for (at, document) in asked.filter_map(|id| held.get(&id).cloned()).enumerate() {
        bson::put_document(out, &at.to_string(), &document);
    }
    bson::close(out, list);
    bson::put_int64(out, "id", 0);
    bson::put_string(out, "ns", "proofs.x");
    bson::close(out, cursor);
}

fn member(out: &mut Vec<u8>, at: usize, fields: &dyn Fn(&mut Vec<u8>)) {
    bson::put_item_head(out, kind::DOCUMENT, at as u32);
    let document = bson::open(out);
    fields(out);
    bson::close(out, document);
}

fn status(names: &[String], out: &mut Vec<u8>) {
    bson::put_head(out, kind::ARRAY, "members");
    let list = bson::open(out);
    for (at, name) in names.iter().enumerate() {
        member(out, at, &|out| {
            bson::put_string(out, "name", name);
            bson::put_string(out, "stateStr", ["PRIMARY", "SECONDARY"][at]);
        });
    }
    bson::close(out, list);
    bson::put_head(out, kind::DOCUMENT, "optimes");
    let optimes = bson::open(out);
    bson::put_head(out, kind::DOCUMENT, "appliedOpTime");
    let applied = bson::open(out);
    bson::put_head(out, kind::TIMESTAMP, "ts");
    out.extend_from_slice(&7u64.to_le_bytes());
    bson::close(out, applied);
    bson::close(out, optimes);
}

fn config(names: &[String], out: &mut Vec<u8>) {
    bson::put_head(out, kind::DOCUMENT, "config");
    let config = bson::open(out);
    bson::put_head(out, kind::ARRAY, "members");
    let list = bson::open(out);
    for (at, name) in names.iter().enumerate() {
        member(out, at, &|out| {
            bson::put_string(out, "host", name);
            bson::put_int32(out, "votes", 1);
        });
    }
    bson::close(out, list);
    bson::put_boolean(out, "writeConcernMajorityJournalDefault", true);
    bson::close(out, config);
}

/// Two members; the second loses each `loses`th document.
fn replica_set(loses: Option<usize>) -> (String, HeldRecords) {
    let held: HeldRecords = Arc::default();
    let names: Arc<OnceLock<Vec<String>>> = Arc::default();
    let made: Vec<String> = (0..2)
        .map(|number| {
            let (held, names) = (held.clone(), names.clone());
            serve(move |me| {
                Arc::new(move |command, out| {
                    let names = names.wait();
                    match command.name().as_str() {
                        "hello" | "isMaster" => {
                            bson::put_boolean(out, "isWritablePrimary", number == 0);
                            return hello(&names[0], names, &me, out);
                        }
                        "buildInfo" => bson::put_string(out, "version", "8.0.0"),
                        "replSetGetStatus" => status(names, out),
                        "replSetGetConfig" => config(names, out),
                        "insert" if number == 0 => insert(&held, command, loses, out),
                        "insert" => return error(10_107, "not primary (NotWritablePrimary)", out),
                        "find" => find(&held.lock().unwrap()[number], command, out),
                        "count" => bson::put_int32(out, "n", held.lock().unwrap()[number].len() as i32),
                        "drop" => held.lock().unwrap().iter_mut().for_each(BTreeMap::clear),
                        "createIndexes" | "serverStatus" | "getDefaultRWConcern" => {}
                        other => return error(59, &format!("no such command: '{other}'"), out),
                    }
                    bson::put_double(out, "ok", 1.0);
                })
            })
        })
        .collect();
    names.set(made.clone()).unwrap();
    (format!("mongodb://{}/proofs?replicaSet=rs0", made.join(",")), held)
}

#[test]
fn two_members_of_a_replica_set() {
    let dyno = Dyno::new();
    let (uri, held) = replica_set(None);
    let base = [
        "-n",
        "2000",
        "--batch",
        "100",
        "--record-bytes",
        "200",
        "--require-rate",
        "1",
        "--least",
        "0s",
        "--quiet",
    ];
    let output = dyno.run(&[&["prove", "ingest", &uri][..], &base, &["--out", "met"]].concat());
    assert_exit(&output, &[0]);
    let found = certificate(&dyno, "met");
    let copies = found["copies"].as_array().unwrap();
    assert_eq!(copies.len(), 2, "{found}");
    assert!(copies.iter().all(|copy| copy["found"] == 2_000 && copy["digest"] == copies[0]["digest"]));
    assert_eq!((&copies[0]["primary"], &copies[1]["primary"]), (&true.into(), &false.into()));
    let check = |name: &str| {
        let all = found["pre_checks"].as_array().unwrap();
        all.iter().find(|check| check["name"] == name).unwrap()["found"].as_str().unwrap().to_owned()
    };
    assert_eq!(check("version"), "8.0.0");
    assert_eq!(check("w: majority"), "2 of 2 members with data and a vote");
    assert!(held.lock().unwrap().iter().all(BTreeMap::is_empty), "the proof's records are removed");
    // A majority of two is two: three copies are not to be had.
    let output =
        dyno.run(&[&["prove", "ingest", &uri][..], &base, &["--copies", "3", "--out", "no"]].concat());
    assert_exit(&output, &[2]);
    // What says that it has everything, and has not, is found out.
    let (uri, _held) = replica_set(Some(500));
    let output = dyno.run(&[&["prove", "ingest", &uri][..], &base, &["--out", "lost"]].concat());
    assert_exit(&output, &[4]);
    let found = certificate(&dyno, "lost");
    assert_eq!(found["copies"][1]["missing"], 4, "{found}");
    assert!(stdout(&output).contains("1 whole copies of 2"), "{}", stdout(&output));
}
