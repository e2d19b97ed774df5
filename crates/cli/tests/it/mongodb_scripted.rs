//! Deployments that only a script can play: elections, routers, cursors on the right node, every compressor, servers
//! that are too old or lie.

use dyno_testkit::fake_mongo::{FakeCommand, Script, cursor, error, hello, serve};
use dyno_testkit::{Dyno, arrivals, assert_exit, outcome, phase, stderr};
use dyno_types::bson;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

fn is_hello(command: &FakeCommand) -> bool {
    ["hello", "isMaster"].contains(&command.name().as_str())
}

/// Does everything that it is told.
fn obedient(command: &FakeCommand, out: &mut Vec<u8>) {
    match command.name().as_str() {
        "find" => cursor(0, "firstBatch", 1, out),
        "insert" | "update" | "delete" => {
            bson::put_int32(out, "n", 1);
            bson::put_int32(out, "nModified", 1);
            bson::put_double(out, "ok", 1.0);
        }
        name => error(59, &format!("no such command: {name}"), out),
    }
}

fn run(dyno: &Dyno, uri: &str, more: &[&str]) -> std::process::Output {
    dyno.run(&[&["run", uri, "--no-load", "--records", "100", "--out", "d"][..], more].concat())
}

#[test]
fn every_compressor_packs_both_ways() {
    for (number, name) in [(1, "snappy"), (2, "zlib"), (3, "zstd")] {
        let (packed, plain) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counts = (packed.clone(), plain.clone());
        let server = serve(|me| -> Script {
            Arc::new(move |command, out| {
                if is_hello(command) {
                    return hello(&me, &[], &me, out);
                }
                if ["find", "update"].contains(&command.name().as_str()) {
                    let count = if command.packed == Some(number) { &counts.0 } else { &counts.1 };
                    count.fetch_add(1, Ordering::Relaxed);
                }
                obedient(command, out);
            })
        });
        let dyno = Dyno::new();
        let uri = format!("mongodb://{server}/t?compressors={name}");
        dyno.assert_ran(&run(&dyno, &uri, &["--ops", "500"]));
        assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 500, "{name}");
        assert_eq!((packed.load(Ordering::Relaxed), plain.load(Ordering::Relaxed)), (500, 0), "{name}");
    }
}

#[test]
fn a_cursor_is_read_to_its_end_on_the_router_that_holds_it() {
    // Two routers; each knows only its own cursors.
    let mut names = Vec::new();
    let wrong = Arc::new(AtomicU64::new(0));
    let more = Arc::new(AtomicU64::new(0));
    for router in 1..=2i64 {
        let (wrong, more) = (wrong.clone(), more.clone());
        names.push(serve(|_| -> Script {
            Arc::new(move |command, out| match command.name().as_str() {
                "hello" | "isMaster" => {
                    bson::put_boolean(out, "ismaster", true);
                    bson::put_string(out, "msg", "isdbgrid");
                    bson::put_int32(out, "maxWireVersion", 21);
                    bson::put_double(out, "ok", 1.0);
                }
                "find" => cursor(router * 1_000, "firstBatch", 101, out),
                "getMore" => {
                    let id = bson::find_element(&command.document, "getMore").unwrap().as_i64().unwrap();
                    more.fetch_add(1, Ordering::Relaxed);
                    wrong.fetch_add(u64::from(id / 1_000 != router), Ordering::Relaxed);
                    // Two further batches.
                    let next = if id % 1_000 == 0 { id + 1 } else { 0 };
                    cursor(next, "nextBatch", 10, out);
                }
                _ => obedient(command, out),
            })
        }));
    }
    let dyno = Dyno::new();
    let uri = format!("mongodb://{}/t", names.join(","));
    let scans =
        ["--ops", "200", "-p", "readproportion=0", "-p", "updateproportion=0", "-p", "scanproportion=1"];
    dyno.assert_ran(&run(&dyno, &uri, &scans));
    assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 200);
    assert_eq!((more.load(Ordering::Relaxed), wrong.load(Ordering::Relaxed)), (400, 0));
}

#[test]
fn writes_follow_the_primary_through_an_election() {
    let members: Arc<OnceLock<Vec<String>>> = Arc::new(OnceLock::new());
    let primary = Arc::new(AtomicUsize::new(0));
    let writes: Arc<Mutex<Vec<u64>>> = Arc::new(Mutex::new(vec![0; 3]));
    let names: Vec<String> = (0..3usize)
        .map(|number| {
            let (members, primary, writes) = (members.clone(), primary.clone(), writes.clone());
            serve(move |me| -> Script {
                Arc::new(move |command, out| {
                    let leader = primary.load(Ordering::Relaxed);
                    if is_hello(command) {
                        let hosts = members.wait();
                        return hello(&hosts[leader], hosts, &me, out);
                    }
                    if command.name() == "update" {
                        if leader != number {
                            return error(10_107, "not primary", out);
                        }
                        let mut writes = writes.lock().unwrap();
                        writes[number] += 1;
                        if writes[number] == 500 && number == 0 {
                            // The election: no server tells the clients.
                            primary.store(2, Ordering::Relaxed);
                        }
                    }
                    obedient(command, out);
                })
            })
        })
        .collect();
    members.set(names.clone()).unwrap();
    let dyno = Dyno::new();
    // One seed is enough, and it is a secondary.
    let uri = format!("mongodb://{}/t?replicaSet=rs0", names[1]);
    let output = run(
        &dyno,
        &uri,
        &[
            "--rate",
            "2000",
            "--arrivals",
            "constant",
            "--connections",
            "4",
            "--duration",
            "2s",
            "--warmup",
            "0",
        ],
    );
    dyno.assert_ran_but(&output, &["errors"]);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 4_000);
    let (ok, refused) = (outcome(measured, "ok"), outcome(measured, "read_only"));
    assert_eq!(ok + refused, 4_000, "{}", measured["outcomes"]);
    assert!(refused > 0 && refused < 2_000, "{}", measured["outcomes"]);
    let writes = writes.lock().unwrap().clone();
    assert_eq!((writes[0], writes[1]), (500, 0), "{writes:?}");
    assert!(writes[2] > 500, "{writes:?}");
    let wrong_set =
        run(&dyno, &format!("mongodb://{}/t?replicaSet=other", names[0]), &["--ops", "1", "--no-out"]);
    assert_exit(&wrong_set, &[2, 3]);
}

#[test]
fn reads_go_where_the_read_preference_says() {
    let members: Arc<OnceLock<Vec<String>>> = Arc::new(OnceLock::new());
    let reads: Arc<Mutex<Vec<u64>>> = Arc::new(Mutex::new(vec![0; 3]));
    let names: Vec<String> = (0..3usize)
        .map(|number| {
            let (members, reads) = (members.clone(), reads.clone());
            serve(move |me| -> Script {
                Arc::new(move |command, out| {
                    if is_hello(command) {
                        let hosts = members.wait();
                        return hello(&hosts[0], hosts, &me, out);
                    }
                    if command.name() == "find" {
                        let mode = bson::element_at_path(&command.document, "$readPreference.mode");
                        assert_eq!(mode.unwrap().as_str(), Some("secondary"));
                        reads.lock().unwrap()[number] += 1;
                    }
                    obedient(command, out);
                })
            })
        })
        .collect();
    members.set(names.clone()).unwrap();
    let dyno = Dyno::new();
    let uri = format!("mongodb://{}/t?replicaSet=rs0&readPreference=secondary", names[0]);
    dyno.assert_ran(&run(&dyno, &uri, &["--ops", "400", "--workload", "c"]));
    let reads = reads.lock().unwrap().clone();
    assert_eq!((reads[0], reads[1] + reads[2]), (0, 400), "{reads:?}");
    assert!(reads[1] > 100 && reads[2] > 100, "{reads:?}");
}

#[test]
fn partly_failed_bulks_are_counted_statement_by_statement() {
    // Every third document of a bulk is there already.
    let server = serve(|me| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "insert" => {
                let documents = command.sequences.windows(4).filter(|w| w == b"_id\0").count() as i32;
                let failed: Vec<i32> = (0..documents).filter(|n| n % 3 == 0).collect();
                bson::put_int32(out, "n", documents - failed.len() as i32);
                bson::put_head(out, bson::kind::ARRAY, "writeErrors");
                let list = bson::open(out);
                for (at, index) in failed.iter().enumerate() {
                    bson::put_item_head(out, bson::kind::DOCUMENT, at as u32);
                    let one = bson::open(out);
                    bson::put_int32(out, "index", *index);
                    bson::put_int32(out, "code", 11_000);
                    bson::put_string(out, "errmsg", "E11000 duplicate key error");
                    bson::close(out, one);
                }
                bson::close(out, list);
                bson::put_double(out, "ok", 1.0);
            }
            "hello" | "isMaster" => hello(&me, &[], &me, out),
            _ => obedient(command, out),
        })
    });
    let dyno = Dyno::new();
    let uri = format!("mongodb://{server}/t");
    let load =
        ["run", &uri, "--reload", "--records", "120", "--load-batch", "12", "--ops", "10", "--out", "d"];
    let output = dyno.run(&load);
    let summary = dyno.summary("d");
    let loaded = phase(&summary, "load");
    assert_eq!((outcome(loaded, "ok"), outcome(loaded, "duplicate")), (80, 40), "{}", loaded["outcomes"]);
    assert!(stderr(&output).contains("E11000"), "{}", stderr(&output));
}

#[test]
fn servers_that_are_too_old_or_cut_their_replies_are_refused() {
    let old = serve(|_| -> Script {
        Arc::new(|_, out| {
            bson::put_boolean(out, "ismaster", true);
            bson::put_int32(out, "maxWireVersion", 5);
            bson::put_double(out, "ok", 1.0);
        })
    });
    let dyno = Dyno::new();
    let refused = dyno.run(&["run", &format!("mongodb://{old}/"), "--no-out"]);
    assert_exit(&refused, &[3]);
    assert!(stderr(&refused).contains("too old"), "{}", stderr(&refused));
    // A document whose inner length leads beyond its end.
    let liar = serve(|me| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "find" => {
                bson::put_head(out, bson::kind::DOCUMENT, "cursor");
                out.extend_from_slice(&1_000i32.to_le_bytes());
                out.push(0);
            }
            "hello" | "isMaster" => hello(&me, &[], &me, out),
            _ => obedient(command, out),
        })
    });
    let output = run(&dyno, &format!("mongodb://{liar}/t"), &["--ops", "100", "--workload", "c"]);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("d");
    assert!(outcome(phase(&summary, "measure"), "protocol") > 0, "{summary}");
}

const PAIR: &str = "
collections:
  a: { count: 5, document: { n: 1 } }
operations:
  pair:
    transaction:
      - { name: take, update: a, filter: { _id: { $key: a } }, change: { $inc: { n: -1 } } }
      - { name: note, insert: a }
";

#[test]
fn a_transaction_is_one_session_one_number_and_one_end() {
    // Every third insert meets a conflict.
    let heard: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let inserts = Arc::new(AtomicU64::new(0));
    let (ears, count) = (heard.clone(), inserts.clone());
    let server = serve(|me| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" => {
                bson::put_boolean(out, "ismaster", true);
                bson::put_string(out, "setName", "rs");
                bson::put_string(out, "primary", &me);
                bson::put_string(out, "me", &me);
                bson::put_head(out, bson::kind::ARRAY, "hosts");
                let hosts = bson::open(out);
                bson::put_string(out, "0", &me);
                bson::close(out, hosts);
                bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
                bson::put_int32(out, "maxWireVersion", 21);
                bson::put_double(out, "ok", 1.0);
            }
            "commitTransaction" | "abortTransaction" => {
                ears.lock().unwrap().push(command.document.clone());
                bson::put_double(out, "ok", 1.0);
            }
            name @ ("insert" | "update") => {
                ears.lock().unwrap().push(command.document.clone());
                if name == "insert" && count.fetch_add(1, Ordering::Relaxed) % 3 == 2 {
                    return error(112, "WriteConflict", out);
                }
                bson::put_int32(out, "n", 1);
                bson::put_double(out, "ok", 1.0);
            }
            "count" => {
                bson::put_int32(out, "n", 0);
                bson::put_double(out, "ok", 1.0);
            }
            name => error(59, &format!("no such command: {name}"), out),
        })
    });
    let dyno = Dyno::new();
    std::fs::write(dyno.path("pair.yaml"), PAIR).unwrap();
    let uri = format!("mongodb://{server}/t?replicaSet=rs&w=majority");
    let arguments = ["--no-load", "--workload", "pair.yaml", "--ops", "30", "--users", "1", "--out", "d"];
    dyno.assert_ran_but(&dyno.run(&[&["run", &uri][..], &arguments].concat()), &["errors"]);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!((outcome(measured, "ok"), outcome(measured, "busy")), (20, 10), "{measured}");
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 90, "three commands a transaction");
    for (number, transaction) in heard.chunks(3).enumerate() {
        let field = |command: usize, path: &str| bson::element_at_path(&transaction[command], path);
        for command in 0..3 {
            let at = |path| field(command, path).map(|e| e.value.to_vec());
            assert_eq!(at("lsid.id"), field(0, "lsid.id").map(|e| e.value.to_vec()));
            assert_eq!(field(command, "txnNumber").unwrap().as_i64(), Some(number as i64 + 1));
            assert!(!field(command, "autocommit").unwrap().is_true());
            assert_eq!(field(command, "startTransaction").is_some(), command == 0);
            // Only the end has a write concern.
            assert_eq!(field(command, "writeConcern").is_some(), command == 2, "{number}");
        }
        let end = if number % 3 == 2 { "abortTransaction" } else { "commitTransaction" };
        assert!(field(2, end).is_some() && field(2, "$db").unwrap().as_str() == Some("admin"), "{number}");
    }
    // A single server has no transactions, and that is said before anything is sent.
    let alone = serve(|me| -> Script {
        Arc::new(move |command, out| match is_hello(command) {
            true => hello(&me, &[], &me, out),
            false => obedient(command, out),
        })
    });
    let uri = format!("mongodb://{alone}/t");
    let refused = dyno.run(&["run", &uri, "--no-load", "--workload", "pair.yaml", "--no-out"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("need a replica set or a router"), "{}", stderr(&refused));
}

#[test]
fn a_servers_errors_are_outcomes_and_none_is_lost() {
    let count = Arc::new(AtomicU64::new(0));
    let server = serve(|me| -> Script {
        let count = count.clone();
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" => hello(&me, &[], &me, out),
            "find" => match count.fetch_add(1, Ordering::Relaxed) % 5 {
                0 => cursor(0, "firstBatch", 1, out),
                1 => error(50, "operation exceeded time limit", out),
                // Its getMore finds the cursor killed.
                2 => cursor(9, "firstBatch", 1, out),
                3 => error(13, "not authorized", out),
                _ => error(112, "WriteConflict", out),
            },
            "getMore" => error(43, "cursor id 9 not found", out),
            _ => obedient(command, out),
        })
    });
    let dyno = Dyno::new();
    let uri = format!("mongodb://{server}/t");
    let ran = run(&dyno, &uri, &["--workload", "c", "--ops", "500", "--users", "3"]);
    dyno.assert_ran_but(&ran, &["errors"]);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    let counts = ["ok", "server_error", "forbidden", "busy"].map(|name| outcome(measured, name));
    assert_eq!(counts, [100, 200, 100, 100], "{measured}");
    assert_eq!(arrivals(measured), 500);
    let message = measured["errors"].to_string();
    assert!(message.contains("not authorized") && message.contains("WriteConflict"), "{message}");
}
