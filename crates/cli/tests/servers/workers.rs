//! Several workers of one process divide the work and make one report: `dyno ycsb`, `sysbench-mongodb`, `pocdriver`.

use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_hosts::protocol::agent::{FromHost, ToHost};
use dyno_hosts::protocol::frame::{Frame, read_frame, write_frame};
use dyno_hosts::protocol::worker::{FromWorker, ToWorker};
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, skip_because, stderr, stdout};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use std::io::Write;
use std::process::{Command, Stdio};

/// The value of a line of YCSB's report.
fn reported(text: &str, line: &str) -> u64 {
    let found = text.lines().find_map(|l| l.strip_prefix(line)).unwrap_or_else(|| panic!("{line}: {text}"));
    found.trim().parse().unwrap()
}

#[test]
fn ycsb_workers_load_every_record_once_and_know_of_each_others_inserts() {
    let dyno = Dyno::new();
    let ycsb = |mode: &str, more: &[&str]| {
        let common = ["ycsb", mode, "redb", "-P", "workloads/workloadd", "-p", "redb.path=a.redb"];
        let sizes = ["-p", "recordcount=2000", "-p", "operationcount=3000", "-threads", "7"];
        dyno.run(
            &[&common[..], &sizes, &["-p", "redb.durability=none", "-p", "insertorder=ordered"], more]
                .concat(),
        )
    };
    let load = ycsb("load", &["-p", "dyno.workers=3"]);
    dyno.assert_ran(&load);
    assert_eq!(reported(&stdout(&load), "[INSERT], Return=OK,"), 2000);
    // Reads of the newest records find those of all workers; closed and open loop.
    for more in [&["-p", "dyno.workers=3"][..], &["-p", "dyno.workers=2", "-target", "20000"]] {
        let run = ycsb("run", more);
        dyno.assert_ran(&run);
        let text = stdout(&run);
        let (read, inserted) =
            (reported(&text, "[READ], Return=OK,"), reported(&text, "[INSERT], Return=OK,"));
        assert_eq!(read + inserted, 3000, "{text}");
        // The next run inserts the same keys.
        std::fs::remove_file(dyno.path("a.redb")).unwrap();
        dyno.assert_ran(&ycsb("load", &[]));
    }
    let refused = ycsb("load", &["-p", "dyno.workers=8"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("8 workers: expected 1 to 7"), "{}", stderr(&refused));
}

fn admin(server: &Mongo, database: &str) -> MongoAdmin {
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    let opened = registry::parse(&server.uri(database)).unwrap().open(content, &|| false).unwrap();
    MongoAdmin::from_target(opened.as_ref()).unwrap()
}

fn document(admin: &MongoAdmin, collection: &str, id: i32) -> Vec<u8> {
    let found = admin.find_one(collection, &|out| {
        bson::put_head(out, kind::DOCUMENT, "filter");
        let at = bson::open(out);
        bson::put_int32(out, "_id", id);
        bson::close(out, at);
    });
    found.unwrap().unwrap_or_else(|| panic!("{collection} has no document {id}"))
}

#[test]
fn sysbench_workers_load_the_same_documents_and_share_the_users() {
    let Some(server) = Mongo::java() else {
        return skip_because("workers", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = format!("URI={}", server.uri(""));
    let bench = |more: &[&str]| {
        let common = ["sysbench-mongodb", &uri, "NUM_COLLECTIONS=2", "NUM_DOCUMENTS_PER_COLLECTION=300"];
        let users = ["NUM_DOCUMENTS_PER_INSERT=7", "NUM_LOADER_THREADS=4", "NUM_WRITER_THREADS=5", "SEED=1"];
        dyno.run(&[&common[..], &users, &["NUM_SECONDS_PER_FEEDBACK=1"], more].concat())
    };
    dyno.assert_ran(&bench(&["DB_NAME=one", "DOQUERY=no"]));
    dyno.assert_ran(&bench(&["DB_NAME=three", "DOQUERY=no", "--workers", "3"]));
    let (one, three) = (admin(&server, "one"), admin(&server, "three"));
    for collection in ["sbtest1", "sbtest2"] {
        assert_eq!((one.count(collection).unwrap(), three.count(collection).unwrap()), (300, 300));
        for id in 1..=300 {
            assert_eq!(document(&one, collection, id), document(&three, collection, id), "{collection} {id}");
        }
    }
    let run = bench(&["DB_NAME=three", "DOLOAD=no", "RUN_TIME_SECONDS=3", "--workers", "2", "MAX_TPS=100"]);
    dyno.assert_ran(&run);
    let table = std::fs::read_to_string(dyno.path("mongoSysbenchExecute--2-300-5.txt.tsv")).unwrap();
    let last = table.lines().last().unwrap();
    let per_second: f64 = last.split('\t').nth(1).unwrap().parse().unwrap();
    // The cap is that of all workers together.
    assert!(per_second > 20.0 && per_second <= 105.0, "{table}");
}

#[test]
fn pocdriver_workers_have_threads_of_their_own() {
    let Some(server) = Mongo::java() else {
        return skip_because("workers", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = server.uri("");
    let run = dyno.run(&[
        "pocdriver",
        "-c",
        &uri,
        "-n",
        "poc.c",
        "-d",
        "2",
        "-t",
        "5",
        "--threadIdStart",
        "10",
        "-b",
        "33",
        "--workers",
        "2",
        "-k",
        "10",
        "-u",
        "10",
    ]);
    dyno.assert_ran(&run);
    let text = stdout(&run);
    let line = text.lines().rfind(|l| l.contains("new documents inserted - collection has ")).unwrap();
    let number = |before: &str| -> u64 {
        let rest = line.split_once(before).unwrap().1;
        rest.split_whitespace().next().unwrap().replace(',', "").parse().unwrap()
    };
    let admin = admin(&server, "poc");
    assert_eq!(number("seconds, "), admin.count("c").unwrap(), "{text}");
    for thread in [9, 10, 11, 12, 13, 14, 15] {
        let found = admin.find_one("c", &|out| {
            bson::put_head(out, kind::DOCUMENT, "filter");
            let filter = bson::open(out);
            bson::put_head(out, kind::DOCUMENT, "_id");
            let id = bson::open(out);
            bson::put_int32(out, "w", thread);
            bson::put_int32(out, "i", 0);
            bson::close(out, id);
            bson::close(out, filter);
        });
        assert_eq!(found.unwrap().is_some(), (10..15).contains(&thread), "thread {thread}");
    }
    let refused = dyno.run(&["pocdriver", "-c", &uri, "-t", "2", "--workers", "3"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("--workers 3: expected 1 to 2"), "{}", stderr(&refused));
}

/// A worker or an agent refuses a controller of another version at once, and says which version it speaks.
#[test]
fn who_speaks_another_protocol_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().display().to_string();
    let mut hello = Vec::new();
    let greeting = ToWorker::Hello { protocol: 99, now_ns: 1, log: Vec::new() };
    write_frame(&mut hello, &Frame::Message(&greeting)).unwrap();
    let mut to_host = Vec::new();
    write_frame(&mut to_host, &Frame::Message(&ToHost::Hello { protocol: 99, log: Vec::new() })).unwrap();
    let host_words = ["host", "--stdio", "--directory", &directory];
    for (words, hello) in [(&["worker", "--stdio"][..], hello), (&host_words, to_host)] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_dyno"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its end stays open: it is for the other one to go.
        let mut input = child.stdin.take().unwrap();
        input.write_all(&hello).unwrap();
        let output = dyno_testkit::finish(child);
        drop(input);
        assert!(!output.status.success(), "{words:?}");
        let said = stderr(&output);
        assert!(
            said.contains("speaks protocol 99") && said.contains("use the same dyno"),
            "{words:?}: {said}"
        );
        let own = match words[0] {
            "worker" => match read_frame::<FromWorker>(&mut &output.stdout[..]) {
                Ok(Frame::Message(FromWorker::Hello { protocol, .. })) => protocol,
                other => panic!("{other:?}"),
            },
            _ => match read_frame::<FromHost>(&mut &output.stdout[..]) {
                Ok(Frame::Message(FromHost::Hello { protocol, .. })) => protocol,
                other => panic!("{other:?}"),
            },
        };
        assert_ne!(own, 99, "it says which it speaks");
    }
}
