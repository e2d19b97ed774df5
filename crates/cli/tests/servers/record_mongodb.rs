//! `dyno record` of MongoDB's traffic, by a proxy and by tcpdump before real servers: what it has recorded is what they have
//! counted.

use crate::mongod_failover::{admin, await_election, form};
use crate::record_capture::{Tcpdump, skip_capture};
use crate::record_proxy::{read_recording, start_proxy};
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_recording::{Entry, RecordedKind, RecordedProtocol, RecordingReader, RecordingTotals};
use dyno_testkit::cluster::Certificates;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, free_port, skip_because, stderr, stdout};
use dyno_types::bson::{self, kind};
use dyno_types::command::ReplyKind;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::path::Path;

/// The name under which server checks are counted.
const CHECKS: &str = "checks of the server (hello, isMaster)";

/// Calls by command since the server's start, names in capitals; those of commands that it does not know together.
fn calls(admin: &MongoAdmin) -> BTreeMap<String, i64> {
    let status = admin.run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1)).unwrap();
    let commands = bson::element_at_path(&status, "metrics.commands").unwrap().as_document().unwrap();
    let of = |element: bson::Element<'_>| {
        let total = match element.as_document() {
            Some(counts) => bson::find_element(counts, "total")?.as_i64()?,
            None => element.as_i64()?,
        };
        Some((String::from_utf8_lossy(element.name).to_uppercase(), total))
    };
    bson::read_elements(commands).unwrap().filter_map(|element| of(element.unwrap())).collect()
}

/// Commands of all kinds, through an address; `options` are those of the URI.
fn load(dyno: &Dyno, port: u16, options: &str) {
    let uri = format!("mongodb://127.0.0.1:{port}/t?{options}");
    let shared = ["--users", "8", "--no-out", "--reload"];
    let words = ["run", &uri, "--records", "300", "--ops", "600"];
    dyno.assert_ran(&dyno.run(&[&words[..], &shared].concat()));
    let file = "
collections:
  c: { count: 300, document: { n: { $int: [0, 9] } } }
operations:
  some: { weight: 3, find: c, filter: { n: { $int: [0, 9] } }, limit: 7 }
  both: { weight: 1, findAndModify: c, filter: { _id: { $key: c } }, change: { $inc: { n: 1 } } }
  put: { weight: 1, insert: c }
  take: { weight: 1, update: c, filter: { _id: { $key: c } }, change: { $inc: { n: 1 } } }
";
    std::fs::write(dyno.path("own.yaml"), file).unwrap();
    let words = ["run", &uri, "--workload", "own.yaml", "--ops", "500"];
    dyno.assert_ran(&dyno.run(&[&words[..], &shared].concat()));
    let direct = admin(&uri).unwrap();
    assert!(direct.run_on("t", &|out| bson::put_int32(out, "noSuchCommand", 1)).is_err());
    // A key that is there already.
    let insert = |out: &mut Vec<u8>| {
        bson::put_string(out, "insert", "twice");
        bson::put_head(out, kind::ARRAY, "documents");
        let list = bson::open(out);
        for number in 0..2 {
            bson::put_item_head(out, kind::DOCUMENT, number);
            out.extend_from_slice(&bson::build_document(|out| bson::put_int32(out, "_id", 1)));
        }
        bson::close(out, list);
    };
    direct.run_on("t", &insert).unwrap();
    let find = |out: &mut Vec<u8>| {
        bson::put_string(out, "find", "usertable");
        bson::put_int32(out, "batchSize", 3);
    };
    let first = direct.run_on("t", &find).unwrap();
    let cursor = bson::element_at_path(&first, "cursor.id").unwrap().as_i64().unwrap();
    let more = |out: &mut Vec<u8>| {
        bson::put_int64(out, "getMore", cursor);
        bson::put_string(out, "collection", "usertable");
        bson::put_int32(out, "batchSize", 5);
    };
    direct.run_on("t", &more).unwrap();
}

/// Checks a recording against the difference of the server's counts.
///
/// `beside`: connections that were recorded and not counted, less those that were counted and not recorded.
fn compare(
    path: &Path,
    before: &BTreeMap<String, i64>,
    after: &BTreeMap<String, i64>,
    beside: i64,
) -> RecordingTotals {
    let (entries, totals) = read_recording(path);
    assert_eq!(RecordingReader::open_file(path).unwrap().header().protocol, RecordedProtocol::Mongodb);
    let counted = |name: &str| after.get(name).unwrap_or(&0) - before.get(name).unwrap_or(&0);
    let is_unknown =
        |entry: &Entry| entry.reply.as_ref().is_some_and(|reply| reply.error == "CommandNotFound");
    for (name, count) in &totals.by_name {
        let are_unknown = entries.iter().filter(|entry| entry.arguments.is_named(name)).all(is_unknown);
        // The counts are asked for by serverStatus itself.
        if name != "SERVERSTATUS" && !are_unknown {
            assert_eq!(*count as i64, counted(name), "{name}: {:?}", totals.by_name);
        }
    }
    for name in ["FIND", "INSERT", "UPDATE", "GETMORE"] {
        assert!(totals.by_name.get(name).is_some_and(|count| *count >= 1), "{name}: {:?}", totals.by_name);
        assert_eq!(totals.by_name[name] as i64, counted(name), "{name}");
    }
    // A server that does not know hello counts it among those.
    let unknown = entries.iter().filter(|entry| is_unknown(entry)).count() as i64;
    let checks = counted("ISMASTER") + counted("HELLO") + counted("<UNKNOWN>") - unknown;
    assert_eq!(totals.left_out[CHECKS] as i64, checks + beside, "{unknown} unknown");
    // Packets of two processors may be written in another order than that of their times.
    let left = totals.left_out.keys().filter(|name| !name.starts_with("times"));
    assert_eq!(left.count(), 1, "{:?}", totals.left_out);
    assert_eq!(totals.replies, totals.commands);
    let all = |name: &str, found: &dyn Fn(&Entry) -> bool| {
        entries.iter().filter(|entry| entry.arguments.is_named(name) && found(entry)).count()
    };
    let reply = |entry: &Entry| entry.reply.clone().unwrap();
    let class =
        |entry: &Entry, class: &str| reply(entry).kind == RecordedKind::Error && reply(entry).error == class;
    assert_eq!(all("noSuchCommand", &|entry| class(entry, "CommandNotFound")), 1);
    assert_eq!(all("insert", &|entry| class(entry, "11000")), 1);
    let rows = RecordedKind::Reply(ReplyKind::Array);
    assert_eq!(all("getMore", &|entry| reply(entry).kind == rows && reply(entry).size == 5), 1);
    for entry in &entries {
        assert_eq!(entry.arguments.count(), 3);
        let body = entry.arguments.word(2);
        bson::check(body).unwrap();
        assert!(bson::find_element(body, "$db").is_none() && !entry.arguments.word(1).is_empty());
        // Each batch names the command that has opened its cursor, and that one has left it open.
        if entry.arguments.is_named("getMore") {
            let part = |name: &str| bson::element_at_path(body, name).unwrap().as_i64().unwrap();
            let (connection, number) = (part("_openedBy.connection"), part("_openedBy.command"));
            let mut of = entries.iter().filter(|other| i64::from(other.connection) == connection);
            let opener = of.nth(number as usize).unwrap();
            let name = String::from_utf8_lossy(opener.arguments.word(0)).into_owned();
            assert!(["find", "aggregate"].contains(&name.as_str()), "{name}");
            let collection = bson::find_element(body, "collection").unwrap();
            let of_opener = bson::find_element(opener.arguments.word(2), &name).unwrap();
            assert_eq!(collection.as_str(), of_opener.as_str());
            assert!(opener.at_ns <= entry.at_ns && reply(opener).kind == rows);
        }
    }
    totals
}

#[test]
fn counts_of_a_proxy_are_those_of_mongod() {
    let options = ["--networkMessageCompressors", "snappy,zlib"];
    let Some(mongod) = Mongo::from_path("mongod", &options) else {
        return skip_because("a proxy before mongod", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    for options in ["", "compressors=snappy", "compressors=zlib"] {
        let _ = std::fs::remove_file(dyno.path("traffic.dyno"));
        let direct = admin(&mongod.uri("t")).unwrap();
        let proxy = start_proxy(&dyno, &mongod.uri("t"), &[]);
        let before = calls(&direct);
        load(&dyno, proxy.port, options);
        let after = calls(&direct);
        let output = proxy.end();
        assert_exit(&output, &[0]);
        // The second question for the counts is none of the proxy's.
        let totals = compare(&dyno.path("traffic.dyno"), &before, &after, -1);
        let text = stdout(&output);
        assert!(
            text.contains(&format!("{} commands", dyno_types::units::Thousands(totals.commands))),
            "{text}"
        );
    }
}

#[test]
fn counts_of_a_capture_are_those_of_mongod() {
    let options = ["--networkMessageCompressors", "snappy,zlib"];
    let Some(mongod) = Mongo::from_path("mongod", &options) else {
        return skip_because("a capture of mongod's traffic", "mongod is not on PATH");
    };
    for options in ["", "compressors=zlib"] {
        let dyno = Dyno::new();
        let file = dyno.path("traffic.pcap");
        let direct = admin(&mongod.uri("t")).unwrap();
        let Some(dump) = Tcpdump::start("lo", mongod.port, &file, &[]) else {
            return skip_capture("a capture of mongod's traffic");
        };
        let before = calls(&direct);
        load(&dyno, mongod.port, options);
        let after = calls(&direct);
        if dump.end(&file) > 0 {
            return skip_because(
                "a capture of mongod's traffic",
                "the host is too busy: packets were dropped",
            );
        }
        let output = dyno.run(&["record", "traffic.pcap", "--point", "server"]);
        assert_exit(&output, &[0]);
        // Both questions for the counts are captured; the greeting of the first is counted before.
        let totals = compare(&dyno.path("traffic.dyno"), &before, &after, 1);
        // The same with the port named, and nothing under another one.
        let port = mongod.port.to_string();
        assert_exit(&dyno.run(&["record", "traffic.pcap", "--port", &port, "-o", "named.dyno"]), &[0]);
        assert_eq!(read_recording(&dyno.path("named.dyno")).1.by_name, totals.by_name);
        let wrong = free_port().to_string();
        let output = dyno.run(&["record", "traffic.pcap", "--port", &wrong, "-o", "x"]);
        assert_exit(&output, &[2]);
        let told = format!("port {port}: MongoDB");
        assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    }
}

#[test]
fn passwords_and_members_of_a_set() {
    let Some(member) = Mongo::member() else {
        return skip_because("a proxy before a replica set", "mongod is not on PATH");
    };
    let members = [member];
    let since = Timestamp::now();
    form(&members);
    await_election(&members, usize::MAX, since);
    let uri = members[0].uri("t");
    let dyno = Dyno::new();
    let direct =
        |port: u16, login: &str| format!("mongodb://{login}127.0.0.1:{port}/t?directConnection=true");
    let proxy = start_proxy(&dyno, &uri, &[]);
    let through = admin(&direct(proxy.port, "")).unwrap();
    let create = |out: &mut Vec<u8>| {
        bson::put_string(out, "createUser", "bench");
        bson::put_string(out, "pwd", "planted-pw");
        bson::put_head(out, kind::ARRAY, "roles");
        let list = bson::open(out);
        bson::put_string(out, "0", "root");
        bson::close(out, list);
    };
    through.run_on("admin", &create).unwrap();
    let login = direct(proxy.port, "bench:planted-pw@") + "&authSource=admin";
    let logged_in = admin(&login).unwrap();
    logged_in.run_on("t", &|out| bson::put_string(out, "count", "c")).unwrap();
    let output = proxy.end();
    assert_exit(&output, &[0]);
    let told = stderr(&output);
    assert!(
        told.contains("member of replica set \"dyno\"") && told.contains("directConnection=true"),
        "{told}"
    );
    assert!(told.contains("named members of a replica set (hello)"), "{told}");
    let (entries, totals) = read_recording(&dyno.path("traffic.dyno"));
    // createUser, and a conversation of SCRAM.
    assert!(totals.left_out["credentials"] >= 3, "{:?}", totals.left_out);
    assert_eq!(totals.by_name["COUNT"], 1);
    for entry in &entries {
        let whole: Vec<u8> = entry.arguments.words().flatten().copied().collect();
        assert!(!String::from_utf8_lossy(&whole).contains("planted"), "{entry:?}");
    }
}

#[test]
fn a_proxy_before_mongod_with_tls() {
    let Some(certificates) = Certificates::make() else {
        return skip_because("a proxy before mongod with TLS", "openssl is not installed");
    };
    let dyno = Dyno::new();
    let path = |name: &str| certificates.path(name).display().to_string();
    let parts = ["server.pem", "server.key"].map(|name| std::fs::read(certificates.path(name)).unwrap());
    let both = dyno.path("both.pem");
    std::fs::write(&both, parts.concat()).unwrap();
    let both = both.display().to_string();
    let Some(mongod) = Mongo::from_path("mongod", &["--sslMode", "requireSSL", "--sslPEMKeyFile", &both])
    else {
        return skip_because("a proxy before mongod with TLS", "mongod is not on PATH");
    };
    let query = format!("tls=true&tlsCAFile={}", path("ca.pem"));
    let uri = format!("mongodb://127.0.0.1:{}/t?{query}", mongod.port);
    let more = ["--tls-cert", &path("server.pem"), "--tls-key", &path("server.key")];
    let proxy = start_proxy(&dyno, &uri, &more);
    let through = admin(&format!("mongodb://127.0.0.1:{}/t?{query}", proxy.port)).unwrap();
    assert_eq!(through.count("nothing").unwrap(), 0);
    assert_exit(&proxy.end(), &[0]);
    let totals = read_recording(&dyno.path("traffic.dyno")).1;
    assert_eq!((totals.by_name["COUNT"], totals.replies), (1, totals.commands));
}

/// Operations that the server has counted, by kind.
fn operations(admin: &MongoAdmin) -> BTreeMap<String, i64> {
    let status = admin.run_on("admin", &|out| bson::put_int32(out, "serverStatus", 1)).unwrap();
    let counters = bson::element_at_path(&status, "opcounters").unwrap().as_document().unwrap();
    let of = |element: bson::Element<'_>| {
        Some((String::from_utf8_lossy(element.name).into_owned(), element.as_i64()?))
    };
    bson::read_elements(counters).unwrap().filter_map(|element| of(element.unwrap())).collect()
}

#[test]
fn what_mongod_has_written_down_is_what_was_sent() {
    let Some(mongod) = Mongo::mongod() else {
        return skip_because("files of mongod", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    let uri = mongod.uri("t");
    let direct = admin(&uri).unwrap();
    let file = "
collections:
  c: { count: 300, document: { n: { $int: [0, 9] } } }
operations:
  some: { weight: 3, find: c, filter: { n: { $int: [0, 9] } }, limit: 7 }
  both: { weight: 1, findAndModify: c, filter: { _id: { $key: c } }, change: { $inc: { n: 1 } } }
  take: { weight: 2, update: c, filter: { _id: { $key: c } }, change: { $inc: { n: 1 } } }
  drop: { weight: 1, deleteMany: c, filter: { n: 77 } }
  put: { weight: 1, insert: c }
";
    std::fs::write(dyno.path("own.yaml"), file).unwrap();
    let words = ["run", &uri, "--workload", "own.yaml", "--users", "4", "--no-out"];
    dyno.assert_ran(&dyno.run(&[&words[..], &["--ops", "10", "--reload"]].concat()));
    // The profiler's collection is small unless it is made before.
    let create = |out: &mut Vec<u8>| {
        bson::put_string(out, "create", "system.profile");
        bson::put_boolean(out, "capped", true);
        bson::put_int32(out, "size", 64 << 20);
    };
    direct.run_on("t", &create).unwrap();
    let profile = |level: i32| {
        move |out: &mut Vec<u8>| {
            bson::put_int32(out, "profile", level);
            bson::put_int32(out, "slowms", -1);
        }
    };
    direct.run_on("t", &profile(2)).unwrap();
    let log_begins = mongod.log().len();
    let (before, called) = (operations(&direct), calls(&direct));
    dyno.assert_ran(&dyno.run(&[&words[..], &["--ops", "800", "--no-load"]].concat()));
    let find = |name: &'static str, size: i32| {
        move |out: &mut Vec<u8>| {
            bson::put_string(out, "find", name);
            bson::put_int32(out, "batchSize", size);
        }
    };
    let first = direct.run_on("t", &find("c", 3)).unwrap();
    let cursor = bson::element_at_path(&first, "cursor.id").unwrap().as_i64().unwrap();
    let more = |out: &mut Vec<u8>| {
        bson::put_int64(out, "getMore", cursor);
        bson::put_string(out, "collection", "c");
        bson::put_int32(out, "batchSize", 5);
    };
    direct.run_on("t", &more).unwrap();
    let (after, called_after) = (operations(&direct), calls(&direct));
    direct.run_on("t", &profile(0)).unwrap();
    // What mongodump writes: one document behind the other.
    let found = direct.run_on("t", &find("system.profile", 100_000)).unwrap();
    assert_eq!(bson::element_at_path(&found, "cursor.id").unwrap().as_i64(), Some(0));
    let documents = bson::element_at_path(&found, "cursor.firstBatch").unwrap().as_document().unwrap();
    let documents = bson::read_elements(documents).unwrap().map(|one| one.unwrap().value);
    std::fs::write(dyno.path("system.profile.bson"), documents.collect::<Vec<_>>().concat()).unwrap();
    std::fs::write(dyno.path("mongod.log"), &mongod.log()[log_begins..]).unwrap();
    let difference = |name: &str| after[name] - before[name];
    for (source, file) in [("profile", "system.profile.bson"), ("log", "mongod.log")] {
        let output = dyno.run(&["record", file, "-o", &format!("{source}.dyno")]);
        assert_exit(&output, &[0]);
        assert!(stderr(&output).contains("faster than the server's threshold"), "{}", stderr(&output));
        let (entries, totals) = read_recording(&dyno.path(&format!("{source}.dyno")));
        // The log goes on with the question for the profiler's documents.
        let beside = i64::from(source == "log");
        let count = |name: &str| totals.by_name.get(name).copied().unwrap_or(0) as i64;
        assert_eq!(count("FIND"), difference("query") + beside, "{source}: {:?}", totals.by_name);
        assert_eq!(count("UPDATE"), difference("update"), "{source}: {:?}", totals.left_out);
        assert_eq!(count("DELETE"), difference("delete"), "{source}");
        assert_eq!((count("GETMORE"), difference("getmore")), (1, 1), "{source}");
        let modified = called_after["FINDANDMODIFY"] - called.get("FINDANDMODIFY").unwrap_or(&0);
        assert_eq!(count("FINDANDMODIFY"), modified, "{source}");
        let inserts =
            totals.left_out["inserts without their documents, which the server does not write down"];
        assert_eq!(inserts as i64, difference("insert"), "{source}");
        assert!(difference("query") > 200 && difference("update") > 100, "{after:?}");
        let cursor = entries.iter().find(|entry| entry.arguments.is_named("getMore")).unwrap();
        let part =
            |name: &str| bson::element_at_path(cursor.arguments.word(2), name).unwrap().as_i64().unwrap();
        let mut of = entries.iter().filter(|one| i64::from(one.connection) == part("_openedBy.connection"));
        let opener = of.nth(part("_openedBy.command") as usize).unwrap();
        assert_eq!(bson::find_element(opener.arguments.word(2), "batchSize").unwrap().as_i64(), Some(3));
        assert_eq!((&opener.reply.as_ref().unwrap().size, &cursor.reply.as_ref().unwrap().size), (&3, &5));
        assert!(entries.is_sorted_by_key(|entry| entry.at_ns));
    }
}
