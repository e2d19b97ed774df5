//! `dyno sysbench-mongodb` as its users type it: data, transaction, lines, tables, refusals.

use dyno_databases::registry;
use dyno_db_mongodb::admin::MongoAdmin;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, assert_exit, skip_because, stderr, stdout};
use dyno_types::bson::{self, kind};
use dyno_workload::Workload;
use dyno_workload::sysbench_mongodb::{SysbenchConfig, SysbenchRun};
use serde_json::Value;

// One user: two could meet between the delete and the insert of one document.
const SMALL: [&str; 7] = [
    "NUM_COLLECTIONS=2",
    "NUM_DOCUMENTS_PER_INSERT=70",
    "NUM_LOADER_THREADS=2",
    "NUM_WRITER_THREADS=1",
    "NUM_SECONDS_PER_FEEDBACK=1",
    "DB_NAME=sbtest",
    "SEED=1",
];

fn servers() -> Vec<(&'static str, Mongo)> {
    let all = [
        ("FerretDB", Mongo::ferretdb(&[])),
        ("mongo-java-server", Mongo::java()),
        ("mongod", Mongo::mongod()),
    ];
    all.into_iter().filter_map(|(name, server)| Some((name, server?))).collect()
}

fn admin(server: &Mongo) -> MongoAdmin {
    let content = SysbenchRun::new(&SysbenchConfig::default()).unwrap().content();
    let opened = registry::parse(&server.uri("sbtest")).unwrap().open(content, &|| false).unwrap();
    MongoAdmin::from_target(opened.as_ref()).unwrap()
}

fn bench(dyno: &Dyno, server: &Mongo, more: &[&str]) -> std::process::Output {
    let uri = format!("URI={}", server.uri(""));
    let mut arguments = vec!["sysbench-mongodb", uri.as_str()];
    arguments.extend(SMALL);
    arguments.extend(more);
    dyno.run(&arguments)
}

#[test]
fn data_and_transactions_are_those_of_the_original() {
    let servers = servers();
    if servers.is_empty() {
        return skip_because("dyno sysbench-mongodb", "no server is there (see scripts/need mongo)");
    }
    for (name, server) in &servers {
        let dyno = Dyno::new();
        // 200 is no multiple of 70: the rest of a collection is loaded too.
        let more = ["NUM_DOCUMENTS_PER_COLLECTION=200", "RUN_TIME_SECONDS=3", "--out", "d"];
        let ran = bench(&dyno, server, &more);
        dyno.assert_ran(&ran);
        let text = stdout(&ran);
        let admin = admin(server);
        for collection in ["sbtest1", "sbtest2"] {
            assert_eq!(admin.count(collection).unwrap(), 200, "{name}: {text}");
        }
        let second = admin.find_one("sbtest2", &|out| {
            bson::put_head(out, kind::DOCUMENT, "filter");
            let at = bson::open(out);
            bson::put_int32(out, "_id", 7);
            bson::close(out, at);
        });
        let document = second.unwrap().expect("document 7");
        assert_eq!(bson::find_element(&document, "c").unwrap().as_str().unwrap().len(), 119);
        assert_eq!(bson::find_element(&document, "pad").unwrap().as_str().unwrap().len(), 59);
        // Loading the same again meets duplicate keys, says so and goes on.
        let again = bench(&dyno, server, &["NUM_DOCUMENTS_PER_COLLECTION=200", "DOQUERY=no"]);
        assert_exit(&again, &[5]);
        assert!(stderr(&again).contains("inserts failed"), "{}", stderr(&again));
        check_run(&dyno, name, &text);
    }
}

/// Lines, tables and counts of the transactions.
fn check_run(dyno: &Dyno, name: &str, text: &str) {
    assert!(text.contains("Thread[Thread-0,5,main]400 inserts : "), "{name}: {text}");
    assert!(text.contains("Thread[main,5,main]Done!"), "{name}");
    assert!(text.contains(" : cum excp=0 : int excpt=0 : writers=1 : int lat="), "{name}: {text}");
    let table = std::fs::read_to_string(dyno.path("mongoSysbenchExecute--2-200-1.txt.tsv")).unwrap();
    let (head, rows) = table.split_once('\n').unwrap();
    assert_eq!(head, "elap_secs\tcum_tps\tint_tps\tcum_ips\tint_ips\tcum_excp\tint_excp\tint_lat", "{table}");
    // On a busy host the first report may be late.
    assert!(rows.split('\t').next().and_then(|first| first.parse::<u64>().ok()) >= Some(1), "{table}");
    let summary: Value = dyno.summary("d");
    let measured = dyno_testkit::phase(&summary, "measure");
    let count = |metric: &str| {
        let all = measured["metrics"].as_array().unwrap();
        all.iter().find(|m| m["name"] == metric).map_or(0, |m| m["service"]["count"].as_u64().unwrap())
    };
    let transactions = count("TRANSACTION");
    assert!(transactions > 0, "{name}: {measured}");
    assert_eq!(count("POINT-SELECT"), 10 * transactions, "{name}");
    for command in ["SIMPLE-RANGE", "SUM-RANGE", "ORDER-RANGE", "DISTINCT-RANGE", "DELETE", "INSERT"] {
        assert_eq!(count(command), transactions, "{name}: {command}");
    }
}

/// Embedded stores of documents, with what tells a duplicate key there.
const EMBEDDED: &[(&str, &str, &str)] = &[
    ("SQLite", "sqlite:a.db?synchronous=off", "UNIQUE constraint failed"),
    ("redb", "redb:a.redb?durability=none", "duplicate key"),
    ("fjall", "fjall:a.fjall?durability=none", "duplicate key"),
    #[cfg(feature = "lmdb")]
    ("LMDB", "lmdb:a.lmdb?sync=none", "duplicate key"),
    #[cfg(feature = "rocksdb")]
    ("RocksDB", "rocksdb:a.rocksdb?wal=nosync", "duplicate key"),
    #[cfg(feature = "wiredtiger")]
    ("WiredTiger", "wiredtiger:a.wt?journal=nosync", "duplicate key"),
];

#[test]
fn embedded_stores_hold_the_same_data_and_do_the_same_transactions() {
    for (name, target, duplicate) in EMBEDDED.iter().copied() {
        let dyno = Dyno::new();
        let bench = |more: &[&str]| {
            let mut arguments = vec!["sysbench-mongodb", "--target", target];
            arguments.extend(SMALL);
            arguments.extend(["NUM_DOCUMENTS_PER_COLLECTION=200", "RUN_TIME_SECONDS=2", "--out", "d"]);
            arguments.extend(more);
            dyno.run(&arguments)
        };
        let ran = bench(&[]);
        dyno.assert_ran(&ran);
        check_run(&dyno, name, &stdout(&ran));
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
        // The records are there: a second load collides, document by document.
        let again = bench(&["DOQUERY=no"]);
        assert_exit(&again, &[5]);
        assert!(stderr(&again).contains(duplicate), "{name}: {}", stderr(&again));
    }
}

/// The number behind a word of the last line that has it.
fn last(text: &str, word: &str) -> f64 {
    let line = text.lines().rfind(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word}: {text}"));
    let number: String = line[line.find(word).unwrap() + word.len()..]
        .chars()
        .take_while(|c| c.is_ascii_digit() || ".,".contains(*c))
        .filter(|c| *c != ',')
        .collect();
    number.parse().unwrap()
}

#[test]
fn what_finds_nothing_is_no_exception() {
    // The original leaves the last part of a batch out: of 1,000 documents a tenth is not there.
    let words = ["NUM_COLLECTIONS=1", "NUM_DOCUMENTS_PER_INSERT=300"];
    let more = ["NUM_WRITER_THREADS=1", "NUM_SECONDS_PER_FEEDBACK=1", "RUN_TIME_SECONDS=3", "SEED=1"];
    let of = |dyno: &Dyno, target: &str, flags: &[&str]| {
        let command = ["sysbench-mongodb", "--target", target];
        dyno.run(&[&command[..], flags, &words, &more].concat())
    };
    let servers = servers();
    let mut targets = vec![("SQLite", "sqlite:a.db?synchronous=off".to_owned())];
    targets.extend(servers.iter().map(|(name, server)| (*name, server.uri("holes"))));
    for (name, target) in targets {
        let dyno = Dyno::new();
        let ran = of(&dyno, &target, &["--faithful", "NUM_DOCUMENTS_PER_COLLECTION=1000"]);
        dyno.assert_ran(&ran);
        let text = stdout(&ran);
        assert_eq!(last(&text, "cum excp="), 0.0, "{name}: {text}");
        assert!(last(&text, "cum tps=") > 0.0, "{name}: {text}");
        // Of our own records, too. Far more documents are asked for than are there.
        let far = ["--out", "d", "DOLOAD=no", "NUM_DOCUMENTS_PER_COLLECTION=100000"];
        let again = of(&dyno, &target, &far);
        dyno.assert_ran(&again);
        let summary = dyno.summary("d");
        let measured = dyno_testkit::phase(&summary, "measure");
        assert_eq!(
            dyno_testkit::outcome(measured, "ok"),
            dyno_testkit::arrivals(measured),
            "{name}: {measured}"
        );
        // What was missed stands with its command, and in the verdict.
        assert!(measured["metrics"].to_string().contains("not_found"), "{name}: {measured}");
        let reasons = summary["verdict"]["reasons"].to_string();
        assert!(reasons.contains("within transactions"), "{name}: {reasons}");
    }
}

#[test]
fn a_load_that_fails_is_said_and_both_phases_are_kept() {
    let dyno = Dyno::new();
    let words = ["sysbench-mongodb", "--target", "sqlite:a.db?synchronous=off", "NUM_COLLECTIONS=1"];
    let more = ["NUM_DOCUMENTS_PER_COLLECTION=500", "NUM_WRITER_THREADS=1", "RUN_TIME_SECONDS=1"];
    let run = |flags: &[&str]| dyno.run(&[&words[..], &more, flags].concat());
    let first = run(&["--out", "d", "--json"]);
    dyno.assert_ran(&first);
    let printed: Value = serde_json::from_str(&stdout(&first)).unwrap();
    let names: Vec<&str> =
        printed["phases"].as_array().unwrap().iter().filter_map(|phase| phase["name"].as_str()).collect();
    assert_eq!(names, ["load", "measure"]);
    assert!(stderr(&first).contains("sysbench benchmark duration"), "{}", stderr(&first));
    let record: Value =
        serde_json::from_str(&std::fs::read_to_string(dyno.path("d/run.json")).unwrap()).unwrap();
    let settings = record["settings"].to_string();
    assert!(
        settings.contains("NUM_DOCUMENTS_PER_COLLECTION") && !settings.contains("usertable"),
        "{settings}"
    );
    // The same documents once more.
    let second = run(&["--out", "e"]);
    assert_exit(&second, &[5]);
    let reasons = dyno.summary("e")["verdict"]["reasons"].to_string();
    assert!(reasons.contains("of the load"), "{reasons}");
    // A directory that is not new is refused before anything is loaded.
    let refused = run(&["--out", "e"]);
    assert_exit(&refused, &[2]);
    assert!(!stdout(&refused).contains("Writer thread"), "{}", stdout(&refused));
}

#[test]
fn pocdrivers_documents_fit_where_documents_do() {
    for (name, target, _) in &EMBEDDED[1..] {
        let dyno = Dyno::new();
        let words = ["-c", target, "-t", "1", "-d", "2", "-i", "10", "-k", "20", "-u", "10", "-m", "-r", "2"];
        let ran = dyno.run(&[&["pocdriver"][..], &words, &["--out", "d"]].concat());
        dyno.assert_ran(&ran);
        let summary: Value = dyno.summary("d");
        let measured = dyno_testkit::phase(&summary, "measure");
        let metrics = measured["metrics"].as_array().unwrap();
        let busy = metrics.iter().filter(|m| m["service"]["count"].as_u64() > Some(0)).count();
        assert!(busy >= 4, "{name}: {metrics:?}");
    }
    let dyno = Dyno::new();
    let refused = dyno.run(&["pocdriver", "-c", "sqlite:p.db", "-d", "1", "-a", "2:2", "-g", "1"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("a table has no field called"), "{}", stderr(&refused));
    for (target, message) in
        [("basic:", "has no documents"), ("redis://127.0.0.1:1", "nothing listens there")]
    {
        let refused = dyno.run(&["sysbench-mongodb", "--target", target]);
        assert!(!refused.status.success() && stderr(&refused).contains(message), "{}", stderr(&refused));
    }
}

#[test]
fn configurations_are_read_and_what_is_wrong_in_them_is_named() {
    let dyno = Dyno::new();
    let null = |words: &[&str]| dyno.run(&[&["sysbench-mongodb", "--target", "null:"], words].concat());
    std::fs::write(
        dyno.path("config.bash"),
        "#!/bin/bash\n# small\nexport NUM_COLLECTIONS=3\nexport NUM_DOCUMENTS_PER_COLLECTION=$[5*100]\n\
         export NUM_WRITER_THREADS=2\nRUN_TIME_SECONDS=1\nexport RUN_TIME_SECONDS\nexport DB_NAME=\"db_${NUM_COLLECTIONS}\"\n",
    )
    .unwrap();
    let ran = null(&[]);
    dyno.assert_ran(&ran);
    let text = stdout(&ran);
    assert!(text.contains("database name            = db_3") && text.contains("1,500 inserts"), "{text}");
    std::fs::write(dyno.path("bad.bash"), "export NUM_COLLECTIONS=1\nrm -rf /tmp/x\n").unwrap();
    for (words, expected) in [
        (&["bad.bash"][..], "bad.bash:2:"),
        (&["nowhere.bash"], "nowhere.bash"),
        (&["NUM_COLECTIONS=1"], "NUM_COLLECTIONS"),
        (&["NUM_WRITER_THREADS=none"], "NUM_WRITER_THREADS=none"),
    ] {
        let refused = null(words);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains(expected), "{words:?}: {}", stderr(&refused));
    }
}

#[test]
fn default_batches_are_taken() {
    let Some(server) = Mongo::java() else {
        return skip_because("default batches", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = format!("URI={}", server.uri(""));
    // 1,000 documents an insert, and POCDriver's 512 writes a bulk.
    let loaded = dyno.run(&[
        "sysbench-mongodb",
        &uri,
        "NUM_COLLECTIONS=2",
        "NUM_DOCUMENTS_PER_COLLECTION=3500",
        "DB_NAME=sbtest",
        "DOQUERY=no",
    ]);
    dyno.assert_ran(&loaded);
    for collection in ["sbtest1", "sbtest2"] {
        assert_eq!(admin(&server).count(collection).unwrap(), 3_500);
    }
    let poc =
        dyno.run(&["pocdriver", "-c", &server.uri(""), "-n", "poc.c", "-d", "2", "-u", "20", "-t", "2"]);
    dyno.assert_ran(&poc);
    assert!(stdout(&poc).contains("new documents inserted"), "{}", stdout(&poc));
}

#[test]
fn sharded_collections_are_loaded_and_asked_by_their_shard_key() {
    let Some(server) = Mongo::java() else {
        return skip_because("SHARDED=yes", "mongo-java-server is not there (see scripts/need mongo)");
    };
    let dyno = Dyno::new();
    let uri = format!("URI={}", server.uri(""));
    let text = "SHARDED=yes MAX_SHARD_KEY=8 DOCS_PER_SHARD=50 NUM_COLLECTIONS=1 NUM_WRITER_THREADS=1 \
                 RUN_TIME_SECONDS=2 NUM_SECONDS_PER_FEEDBACK=1 SEED=3";
    let run = dyno.run(&[&["sysbench-mongodb", &uri][..], &text.split(' ').collect::<Vec<_>>()].concat());
    dyno.assert_ran(&run);
    assert!(stdout(&run).contains("400 inserts"), "{}", stdout(&run));
    // One user alone finds everything: every insert finds its _id free.
    assert!(stdout(&run).contains("cum excp=0 "), "{}", stdout(&run));
}
