//! `dyno replay` of MongoDB's commands. What was sent is held against `mongod`'s own counts and documents.

use crate::mongod_failover::{admin, form};
use crate::mongod_sharded::cluster;
use dyno_recording::entry::{Arguments, LongValue};
use dyno_recording::{
    Entry, RecordedKind, RecordedProtocol, RecordedReply, RecordingHeader, RecordingPoint, RecordingWriter,
};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, finish, outcome, phase, skip_because, stderr, stdout,
};
use dyno_types::bson::{self, kind};
use dyno_types::command::ReplyKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn skip() {
    skip_because("replay on MongoDB", "mongod is not on PATH");
}

/// Commands as a recorder of the wire would have them.
#[derive(Default)]
struct Traffic {
    entries: Vec<Entry>,
}

fn status(n: u64) -> Option<RecordedReply> {
    reply(RecordedKind::Reply(ReplyKind::Status), n, "")
}

fn batch(documents: u64) -> Option<RecordedReply> {
    reply(RecordedKind::Reply(ReplyKind::Array), documents, "")
}

fn error(class: &str) -> Option<RecordedReply> {
    reply(RecordedKind::Error, 0, class)
}

fn reply(kind: RecordedKind, size: u64, error: &str) -> Option<RecordedReply> {
    Some(RecordedReply { kind, size, error: error.into(), after_ns: Some(250_000) })
}

fn document(fields: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    bson::build_document(fields)
}

fn array(out: &mut Vec<u8>, name: &str, documents: impl IntoIterator<Item = Vec<u8>>) {
    bson::put_head(out, kind::ARRAY, name);
    let list = bson::open(out);
    for (number, one) in documents.into_iter().enumerate() {
        bson::put_document(out, &number.to_string(), &one);
    }
    bson::close(out, list);
}

/// Appends a session's id of sixteen such bytes.
fn session(out: &mut Vec<u8>, byte: u8) {
    let id = document(|out| {
        bson::put_head(out, kind::BINARY, "id");
        out.extend_from_slice(&16i32.to_le_bytes());
        out.push(4);
        out.extend_from_slice(&[byte; 16]);
    });
    bson::put_document(out, "lsid", &id);
}

/// Says which command opened the cursor of a later one.
fn opened_by(out: &mut Vec<u8>, connection: i32, command: i64) {
    let opener = document(|out| {
        bson::put_int32(out, "connection", connection);
        bson::put_int64(out, "command", command);
    });
    bson::put_document(out, "_openedBy", &opener);
}

impl Traffic {
    /// A command of a connection, so many milliseconds after the begin.
    fn send(
        &mut self,
        (ms, connection): (u64, u32),
        command: (&str, &str),
        reply: Option<RecordedReply>,
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        let (name, target) = command;
        let (database, collection) = target.split_once('.').unwrap_or((target, ""));
        let body = document(|out| {
            match name {
                "getMore" => bson::put_int64(out, name, 0x7777),
                _ if collection.is_empty() => bson::put_int32(out, name, 1),
                _ => bson::put_string(out, name, collection),
            }
            more(out);
        });
        self.entries.push(Entry {
            at_ns: ms * 1_000_000,
            connection,
            arguments: Arguments::from_words([name.as_bytes(), database.as_bytes(), &body]),
            reply,
            ..Entry::default()
        });
    }

    /// An insert of documents with these ids.
    fn insert(&mut self, at: (u64, u32), target: &str, ids: std::ops::Range<i32>) {
        let n = ids.len() as u64;
        self.send(at, ("insert", target), status(n), |out| {
            array(
                out,
                "documents",
                ids.map(|id| {
                    document(|out| {
                        bson::put_int32(out, "_id", id);
                        bson::put_int32(out, "n", id % 7);
                    })
                }),
            );
        });
    }

    fn find(&mut self, at: (u64, u32), target: &str, size: i32, documents: u64) {
        self.send(at, ("find", target), batch(documents), |out| bson::put_int32(out, "batchSize", size));
    }

    fn get_more(&mut self, at: (u64, u32), target: &str, documents: u64, opener: (i32, i64)) {
        let collection = target.split_once('.').unwrap().1.to_owned();
        self.send(at, ("getMore", target), batch(documents), |out| {
            bson::put_string(out, "collection", &collection);
            bson::put_int32(out, "batchSize", 100);
            opened_by(out, opener.0, opener.1);
        });
    }

    fn write(&mut self, dyno: &Dyno) {
        let header = RecordingHeader {
            protocol: RecordedProtocol::Mongodb,
            source: "proxy".into(),
            point: RecordingPoint::Proxy,
            begins_ns: None,
            clock_step_ns: 1,
            lacks: Vec::new(),
            value_limit: 1 << 16,
        };
        self.entries.sort_by_key(|entry| entry.at_ns);
        let mut writer = RecordingWriter::create_file(&dyno.path("t.dyno"), &header).unwrap();
        for entry in &self.entries {
            writer.push_entry(entry).unwrap();
        }
        writer.finish().unwrap();
    }
}

/// Commands that `mongod` has counted, by name, and how many of each have failed.
fn counts(uri: &str) -> BTreeMap<String, (i64, i64)> {
    let status = admin(uri).unwrap().run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1)).unwrap();
    let commands = bson::element_at_path(&status, "metrics.commands").unwrap().as_document().unwrap();
    let mut all = BTreeMap::new();
    for element in bson::read_elements(commands).unwrap().flatten() {
        let Some(own) = element.as_document() else { continue };
        let of = |name: &str| bson::find_element(own, name).and_then(|n| n.as_i64()).unwrap_or(0);
        all.insert(String::from_utf8_lossy(element.name).into_owned(), (of("total"), of("failed")));
    }
    all
}

/// Counts of a server by kind of operation: documents inserted, queries and so on.
fn operations(uri: &str) -> BTreeMap<String, i64> {
    let status = admin(uri).unwrap().run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1)).unwrap();
    let counters = bson::find_element(&status, "opcounters").unwrap();
    let all = bson::read_elements(counters.as_document().unwrap()).unwrap().flatten();
    all.map(|e| (String::from_utf8_lossy(e.name).into_owned(), e.as_i64().unwrap())).collect()
}

fn count(uri: &str, collection: &str) -> u64 {
    admin(uri).unwrap().count(collection).unwrap()
}

/// Commands with an outcome, by metric.
fn sent(summary: &Value) -> BTreeMap<String, u64> {
    let metrics = phase(summary, "measure")["metrics"].as_array().unwrap();
    let one = |metric: &Value| {
        let outcomes = metric["outcomes"].as_object().unwrap();
        let sum = outcomes.values().map(|n| n.as_u64().unwrap()).sum();
        (metric["name"].as_str().unwrap().to_owned(), sum)
    };
    metrics.iter().map(one).filter(|(name, n)| name != "HELD" && *n > 0).collect()
}

fn replayed(summary: &Value) -> &Value {
    &phase(summary, "measure")["replay"]
}

/// What an application does: three inserts, cursors of several batches on one connection and on two, statements that fail.
fn application() -> Traffic {
    let mut t = Traffic::default();
    for part in 0..3 {
        t.insert((part * 10, 0), "shop.items", part as i32 * 100..part as i32 * 100 + 100);
    }
    // A unique value that is there already: as it was then, also now.
    t.send((40, 0), ("insert", "shop.items"), error("11000"), |out| {
        array(out, "documents", [document(|out| bson::put_int32(out, "_id", 7))]);
    });
    // 300 documents in four batches, the last of which is empty; a session as drivers have it.
    t.send((400, 1), ("find", "shop.items"), batch(100), |out| {
        bson::put_int32(out, "batchSize", 100);
        session(out, 1);
    });
    for documents in [100, 100, 0] {
        let ms = t.entries.len() as u64 + 420;
        t.send((ms, 1), ("getMore", "shop.items"), batch(documents), |out| {
            bson::put_string(out, "collection", "items");
            bson::put_int32(out, "batchSize", 100);
            session(out, 1);
            opened_by(out, 1, 0);
        });
    }
    // A cursor that one connection opens, and two others go on with and end.
    t.find((500, 2), "shop.items", 10, 10);
    t.get_more((520, 3), "shop.items", 100, (2, 0));
    t.send((540, 4), ("killCursors", "shop.items"), status(0), |out| {
        bson::put_head(out, kind::ARRAY, "cursors");
        let list = bson::open(out);
        bson::put_int64(out, "0", 0x7777);
        bson::close(out, list);
        opened_by(out, 2, 0);
    });
    // One that was ended then, and is asked for all the same.
    t.get_more((560, 3), "shop.items", 100, (2, 0));
    t.send((600, 0), ("update", "shop.items"), status(43), |out| {
        let update = document(|out| {
            bson::put_document(out, "q", &document(|out| bson::put_int32(out, "n", 3)));
            let change = document(|out| bson::put_int32(out, "m", 1));
            bson::put_document(out, "u", &document(|out| bson::put_document(out, "$set", &change)));
            bson::put_boolean(out, "multi", true);
        });
        array(out, "updates", [update]);
    });
    t.send((620, 0), ("count", "shop.items"), status(43), |out| {
        bson::put_document(out, "query", &document(|out| bson::put_int32(out, "m", 1)));
    });
    for (ms, id, found) in [(640, 5, true), (660, 5_000, false)] {
        let nothing = reply(RecordedKind::Reply(ReplyKind::Nil), 0, "");
        let expected = if found { status(1) } else { nothing };
        t.send((ms, 0), ("findAndModify", "shop.items"), expected, |out| {
            bson::put_document(out, "query", &document(|out| bson::put_int32(out, "_id", id)));
            bson::put_boolean(out, "remove", true);
        });
    }
    t.send((680, 0), ("find", "shop.items"), error("BadValue"), |out| {
        bson::put_document(out, "filter", &document(|out| bson::put_int32(out, "$no", 1)));
    });
    // Writes without an acknowledgement, of another database, and a read behind them.
    for n in 0..5 {
        t.send((700, 5), ("insert", "logs.lines"), None, |out| {
            array(out, "documents", [document(|out| bson::put_int32(out, "_id", n))]);
            bson::put_document(out, "writeConcern", &document(|out| bson::put_int32(out, "w", 0)));
        });
    }
    t.send((700, 5), ("count", "logs.lines"), status(5), |_| {});
    t.send((760, 0), ("aggregate", "shop.items"), batch(1), |out| {
        let stage = document(|out| bson::put_string(out, "$count", "all"));
        array(out, "pipeline", [stage]);
        bson::put_document(out, "cursor", &document(|_| {}));
    });
    t
}

#[test]
fn what_was_recorded_is_sent_once_more() {
    let Some(server) = Mongo::mongod() else { return skip() };
    let (dyno, uri) = (Dyno::new(), server.uri("shop"));
    let mut traffic = application();
    // The first field of the end of sessions is their list.
    let body = document(|out| {
        let id = document(|out| session(out, 1));
        let id = bson::find_element(&id, "lsid").unwrap().as_document().unwrap().to_vec();
        array(out, "endSessions", [id]);
    });
    traffic.entries.push(Entry {
        at_ns: 780_000_000,
        arguments: Arguments::from_words([b"endSessions".as_slice(), b"admin", &body]),
        reply: status(0),
        ..Entry::default()
    });
    // What is not sent: it would remove everything, it is too long to be kept, it waits for data, it was opened before.
    traffic.send((790, 0), ("dropDatabase", "shop"), status(0), |_| {});
    let mut long = Arguments::from_words(["insert", "shop"]);
    long.push_long(LongValue { length: 100_000, hash: 1, compressed: 10 });
    traffic.entries.push(Entry { at_ns: 791_000_000, arguments: long, ..Entry::default() });
    traffic.send((792, 6), ("find", "shop.items"), batch(0), |out| {
        bson::put_boolean(out, "tailable", true);
        bson::put_boolean(out, "awaitData", true);
    });
    traffic.get_more((793, 6), "shop.items", 0, (6, 0));
    traffic.send((794, 6), ("getMore", "shop.items"), batch(9), |out| {
        bson::put_string(out, "collection", "items");
    });
    traffic.write(&dyno);
    let (before, done_before) = (counts(&uri), operations(&uri));
    let output = dyno.run(&["replay", "t.dyno", &uri, "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    let (after, done_after) = (counts(&uri), operations(&uri));
    let summary = dyno.summary("r");
    let expected = [
        ("AGGREGATE", 1),
        ("COUNT", 2),
        ("ENDSESSIONS", 1),
        ("FIND", 3),
        ("FINDANDMODIFY", 2),
        ("GETMORE", 4),
        ("INSERT", 9),
        ("KILLCURSORS", 1),
        ("UPDATE", 1),
    ];
    let expected: BTreeMap<String, u64> =
        expected.into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
    assert_eq!(sent(&summary), expected, "{}", stderr(&output));
    for (name, calls, failures) in [
        ("aggregate", 1, 0),
        ("find", 3, 1),
        ("getMore", 4, 0),
        ("insert", 9, 0),
        ("update", 1, 0),
        ("findAndModify", 2, 0),
        ("endSessions", 1, 0),
        ("dropDatabase", 0, 0),
    ] {
        let of = |counts: &BTreeMap<String, (i64, i64)>| counts.get(name).copied().unwrap_or((0, 0));
        let (now, then) = (of(&after), of(&before));
        assert_eq!((now.0 - then.0, now.1 - then.1), (calls, failures), "{name}");
    }
    let done = |name: &str| done_after[name] - done_before[name];
    assert_eq!((done("insert"), done("getmore"), done("update")), (306, 4, 1), "{done_after:?}");
    // One was removed, and one was there already.
    assert_eq!((count(&uri, "items"), count(&server.uri("logs"), "lines")), (299, 5));
    let measured = phase(&summary, "measure");
    assert_eq!((arrivals(measured), outcome(measured, "ok")), (24, 24), "{measured}");
    // All replies but those of the writes that nothing was recorded for are as they were.
    let replay = replayed(&summary);
    let ways = ["missing", "error", "kind", "size"].map(|way| replay[way].as_u64().unwrap());
    assert_eq!(ways, [0; 4], "{replay}");
    assert_eq!(
        (&replay["compared"], &replay["not_compared"], &replay["errors_as_then"]),
        (&19.into(), &5.into(), &2.into()),
        "{replay}"
    );
    let left = replay["left_out"].as_object().unwrap();
    let of = |message: &str| {
        let found: Vec<u64> =
            left.iter().filter(|(why, _)| why.contains(message)).map(|(_, n)| n.as_u64().unwrap()).collect();
        assert_eq!(found.len(), 1, "{message}: {left:?}");
        found[0]
    };
    assert_eq!(of("administer the server"), 1);
    assert_eq!(of("too long to be kept"), 1);
    assert_eq!(of("wait for data"), 1);
    assert_eq!(of("before the recording began"), 1);
    // The one that had been ended, and the one that was not opened.
    assert_eq!(of("not open now"), 2);
    let then = &replay["then"]["FIND"];
    assert!((then["p50_us"].as_f64().unwrap() - 250.0).abs() < 1.0 && then["count"] == 3, "{then}");
    assert!(stdout(&output).contains("19 replies compared, 0 differ"), "{}", stdout(&output));
}

#[test]
fn other_data_are_a_divergence() {
    let Some(server) = Mongo::mongod() else { return skip() };
    let (dyno, uri) = (Dyno::new(), server.uri("shop"));
    let mut traffic = Traffic::default();
    for n in 0..40u64 {
        let id = n as i32;
        traffic.send((n, n as u32 % 4), ("find", "shop.items"), batch(1), |out| {
            bson::put_document(out, "filter", &document(|out| bson::put_int32(out, "_id", id)));
        });
    }
    traffic.write(&dyno);
    let documents: Vec<Vec<u8>> = (0..30).map(|id| document(|out| bson::put_int32(out, "_id", id))).collect();
    admin(&uri)
        .unwrap()
        .run(&|out| {
            bson::put_string(out, "insert", "items");
            array(out, "documents", documents.clone());
        })
        .unwrap();
    // Replies that are compressed are looked at, too.
    let uri = format!("{uri}?compressors=snappy");
    let output = dyno.run(&["replay", "t.dyno", &uri, "--speed", "max", "--out", "r"]);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("r");
    let replay = replayed(&summary);
    assert_eq!((&replay["compared"], &replay["size"]), (&40.into(), &10.into()), "{replay}");
    let text = summary["verdict"]["reasons"].to_string();
    assert!(text.contains("10 of 40 replies (25.0 %)"), "{text}");
    assert!(text.contains("find shop.items: then 1 elements, now 0 elements"), "{text}");
}

#[test]
fn databases_that_hold_documents_are_not_written_to() {
    let Some(server) = Mongo::mongod() else { return skip() };
    let (dyno, uri) = (Dyno::new(), server.uri("other"));
    application().write(&dyno);
    let put = |database: &str| {
        let documents = [document(|out| bson::put_int32(out, "_id", 100_000))];
        let made = admin(&server.uri(database)).unwrap().run(&|out| {
            bson::put_string(out, "insert", "mine");
            array(out, "documents", documents.clone());
        });
        made.unwrap();
    };
    let replay = |more: &[&str]| dyno.run(&[&["replay", "t.dyno", &uri, "--no-out"][..], more].concat());
    // Databases that the recording does not name are none of its business.
    put("other");
    put("logs");
    let refused = replay(&[]);
    assert_exit(&refused, &[2]);
    let (said, name) = (stderr(&refused), format!("{}/logs,shop", server.host()));
    assert!(said.contains("holds logs.mine") && said.contains(&format!("--yes-write {name}")), "{said}");
    assert!(said.contains("9 INSERT, 2 FINDANDMODIFY, 1 UPDATE"), "{said}");
    assert_exit(&replay(&["--yes-write", &format!("{}/shop", server.host())]), &[2]);
    assert_exit(&replay(&["--only", "reads"]), &[0, 5]);
    assert_eq!(count(&server.uri("shop"), "items"), 0);
    assert_exit(&replay(&["--yes-write", &name]), &[0, 5]);
    assert_eq!((count(&server.uri("shop"), "items"), count(&server.uri("logs"), "lines")), (299, 5));
    // An administering command that is named is sent.
    let mut traffic = Traffic::default();
    traffic.send((0, 0), ("dropDatabase", "shop"), status(0), |_| {});
    traffic.send((1, 1), ("ping", "shop"), status(0), |_| {});
    std::fs::remove_file(dyno.path("t.dyno")).unwrap();
    traffic.write(&dyno);
    assert_exit(&replay(&[]), &[0, 5]);
    assert_eq!(count(&server.uri("shop"), "items"), 299);
    let name = format!("{}/shop", server.host());
    assert_exit(&replay(&["--include", "dropDatabase", "--yes-write", &name]), &[0, 5]);
    assert_eq!(count(&server.uri("shop"), "items"), 0);
}

#[test]
fn a_part_a_half_and_workers() {
    let Some(server) = Mongo::mongod() else { return skip() };
    let (dyno, uri) = (Dyno::new(), server.uri("shop"));
    application().write(&dyno);
    // From the second batch of the cursor on: it is not open.
    let run = |out: &str, more: &[&str]| {
        let output = dyno.run(&[&["replay", "t.dyno", &uri, "--out", out][..], more].concat());
        assert_exit(&output, &[0, 5]);
        dyno.summary(out)
    };
    let summary = run("part", &["--from", "410ms", "--to", "550ms", "--only", "reads"]);
    let found = sent(&summary);
    assert_eq!((found.get("FIND"), found.get("GETMORE")), (Some(&1), None), "{found:?}");
    assert_eq!(found.get("KILLCURSORS"), None, "{found:?}");
    let left = replayed(&summary)["left_out"].clone();
    assert_eq!(left["getMore and killCursors of cursors that are not open now"], 5, "{left}");
    let summary = run("writes", &["--only", "writes"]);
    let found = sent(&summary);
    assert_eq!((found["INSERT"], found["UPDATE"], found["FINDANDMODIFY"]), (9, 1, 2), "{found:?}");
    assert!(!found.contains_key("FIND") && !found.contains_key("GETMORE"), "{found:?}");
    assert_eq!(count(&uri, "items"), 299);
    // Two processes: a cursor of one is none of the other's. Connections 2 and 4 go to the one, 3 to the other.
    let file = format!(
        "target: '{uri}'\nworkload: {{recording: {{file: t.dyno, only: reads}}}}\nclient: {{workers: 2}}\n\
         phases: {{load: {{when: never}}}}\n"
    );
    std::fs::write(dyno.path("e.yaml"), file).unwrap();
    let before = operations(&uri);
    let output = dyno.run(&["run", "e.yaml", "--out", "workers"]);
    assert_exit(&output, &[0, 5]);
    assert_eq!(operations(&uri)["getmore"] - before["getmore"], 2, "{}", stderr(&output));
}

#[test]
fn a_router_takes_a_replay_and_several_are_refused() {
    let Some(cluster) = cluster() else {
        return skip_because("a sharded cluster of mongod", "mongod or mongos is not on PATH");
    };
    let dyno = Dyno::new();
    application().write(&dyno);
    let refused = dyno.run(&["replay", "t.dyno", &cluster.uri, "--no-out"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("a replay goes to one router"), "{}", stderr(&refused));
    let uri = cluster.routers[0].uri("shop");
    let output = dyno.run(&["replay", "t.dyno", &uri, "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    let more = sent(&summary)["GETMORE"];
    // One is not sent where the command before it, which ends the cursor, is answered by the time that it is due.
    assert!(count(&uri, "items") == 299 && [4, 5].contains(&more), "{more}: {}", stderr(&output));
    let replay = replayed(&summary);
    assert_eq!((&replay["compared"], &replay["kind"]), (&(14 + more).into(), &0.into()), "{replay}");
}

/// Servers that know less: every command is answered, and what they refuse is a divergence.
#[test]
fn other_servers_answer_as_they_can() {
    let servers = [Mongo::ferretdb(&[]), Mongo::java()];
    if servers.iter().all(Option::is_none) {
        return skip_because("replay on FerretDB", "no server is there (see scripts/need mongo)");
    }
    for server in servers.iter().flatten() {
        let (dyno, uri) = (Dyno::new(), server.uri("shop"));
        application().write(&dyno);
        let output = dyno.run(&["replay", "t.dyno", &uri, "--out", "r"]);
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary("r");
        let measured = phase(&summary, "measure");
        let unanswered = ["timeout", "disconnected", "unreachable", "protocol_error"];
        let lost: u64 = unanswered.iter().map(|name| outcome(measured, name)).sum();
        assert_eq!(lost, 0, "{measured}");
        assert_eq!(replayed(&summary)["missing"], 0, "{measured}");
        assert_eq!((count(&uri, "items"), count(&server.uri("logs"), "lines")), (299, 5));
    }
}

#[test]
fn retryable_writes_are_done_in_every_replay() {
    let Some(member) = Mongo::member() else { return skip() };
    let dyno = Dyno::new();
    let uri = format!("mongodb://{}/shop?replicaSet=dyno", form(std::slice::from_ref(&member)));
    let mut traffic = Traffic::default();
    // A session whose writes come on two connections in turns, and one whose reads say which time they are behind.
    for n in 0..20u64 {
        traffic.send((n * 20, n as u32 % 2), ("insert", "shop.items"), status(1), |out| {
            array(out, "documents", [document(|out| bson::put_int64(out, "n", n as i64))]);
            session(out, 9);
            bson::put_int64(out, "txnNumber", n as i64 + 1);
        });
    }
    traffic.send((450, 2), ("find", "shop.items"), batch(20), |out| {
        let concern = document(|out| {
            bson::put_head(out, kind::TIMESTAMP, "afterClusterTime");
            // Far ahead of the server's own: it would wait for it.
            out.extend_from_slice(&(4_000_000_000u64 << 32 | 1).to_le_bytes());
        });
        bson::put_document(out, "readConcern", &concern);
        let mode = document(|out| bson::put_string(out, "mode", "secondaryPreferred"));
        bson::put_document(out, "$readPreference", &mode);
        session(out, 8);
    });
    traffic.write(&dyno);
    let name = format!("{}/shop", member.host());
    for (run, documents) in [("first", 20), ("second", 40)] {
        let output = dyno.run(&["replay", "t.dyno", &uri, "--yes-write", &name, "--out", run]);
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary(run);
        let measured = phase(&summary, "measure");
        assert_eq!((arrivals(measured), outcome(measured, "ok")), (21, 21), "{measured}");
        assert_eq!(count(&uri, "items"), documents, "a server does what it has done in a session once");
        let said = stderr(&output);
        assert!(said.contains("all commands go to the primary"), "{said}");
        assert!(said.contains("not sent: 1 times of then in read concerns"), "{said}");
    }
    // A single server refuses the numbers: that is a divergence, and no end.
    let Some(single) = Mongo::mongod() else { return skip() };
    let output = dyno.run(&["replay", "t.dyno", &single.uri("shop"), "--out", "single"]);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("single");
    assert_eq!(replayed(&summary)["error"], 20, "{}", replayed(&summary));
    assert!(stderr(&output).contains("20 commands carry the number"), "{}", stderr(&output));
}

#[test]
fn a_server_that_dies_one_that_is_not_there_and_one_of_another_protocol() {
    let Some(mut server) = Mongo::mongod() else { return skip() };
    let (dyno, uri) = (Dyno::new(), server.uri("shop"));
    let mut traffic = Traffic::default();
    for n in 0..400u64 {
        traffic.insert((n * 10, n as u32 % 3), "shop.items", n as i32..n as i32 + 1);
    }
    traffic.write(&dyno);
    let run = dyno.start(&["replay", "t.dyno", &uri, "--out", "r", "--quiet"]);
    dyno.await_phase("r", "measure");
    let begun = Instant::now();
    while count(&uri, "items") < 120 {
        assert!(begun.elapsed() < Duration::from_secs(20), "documents are written");
        std::thread::sleep(Duration::from_millis(20));
    }
    server.kill();
    let output = finish(run);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("r");
    let measured = phase(&summary, "measure");
    let ok = outcome(measured, "ok");
    assert!(arrivals(measured) == 400 && (120..400).contains(&ok), "{measured}");
    let replay = replayed(&summary);
    assert!(replay["missing"].as_u64().unwrap() >= 400 - ok - 3, "{replay}");
    let gone = dyno.run(&["replay", "t.dyno", &uri, "--no-out"]);
    assert_exit(&gone, &[3]);
    let Some(redis) = RedisProcess::start(&[]) else { return skip_because("replay", "no redis-server") };
    let refused = dyno.run(&["replay", "t.dyno", &redis.uri(), "--no-out"]);
    assert_exit(&refused, &[2]);
    let said = stderr(&refused);
    assert!(
        said.contains("t.dyno is a recording of mongodb")
            && said.contains(&format!("redis://127.0.0.1:{} speaks redis", redis.port)),
        "{said}"
    );
    assert_eq!(redis.cli(&["DBSIZE"]), "0");
    let Some(server) = Mongo::mongod() else { return skip() };
    std::fs::write(
        dyno.path("monitor.txt"),
        "OK\n1000.000001 [0 127.0.0.1:1] \"SET\" \"a\" \"b\"\n1000.000002 [0 127.0.0.1:1] \"GET\" \"a\"\n",
    )
    .unwrap();
    assert_exit(&dyno.run(&["record", "monitor.txt", "-o", "redis.dyno"]), &[0]);
    let refused = dyno.run(&["replay", "redis.dyno", &server.uri("shop"), "--no-out"]);
    assert_exit(&refused, &[2]);
    let said = stderr(&refused);
    assert!(
        said.contains("redis.dyno is a recording of redis")
            && said.contains(&format!("mongodb://127.0.0.1:{}", server.port))
            && said.contains("speaks mongodb"),
        "{said}"
    );
}
