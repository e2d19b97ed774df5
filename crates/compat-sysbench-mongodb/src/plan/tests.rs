use crate::plan::resolve::BenchmarkPhase;
use crate::plan::variables::VARIABLES;
use crate::plan::*;
use dyno_workload::sysbench_mongodb::{Dialect, Streams};
use std::path::Path;

const NOW: u64 = 1_435_936_321;

/// The same kinds of lines and the same variables as the configuration of 2015.
const OLD: &str = r#"#!/bin/bash

# Simple benchmark against one server.

# TokuMX knows lzma, quicklz, zlib and none
export MONGO_COMPRESSION=zlib
export MONGO_BASEMENT=65536

export NUM_COLLECTIONS=640
export NUM_DOCUMENTS_PER_COLLECTION=1000000
export NUM_DOCUMENTS_PER_INSERT=1000
export NUM_INSERTS_PER_FEEDBACK=-1
export NUM_SECONDS_PER_FEEDBACK=10
export NUM_LOADER_THREADS=24
export NUM_WRITER_THREADS=64

export RUN_TIME_MINUTES=180
export RUN_TIME_SECONDS=$[RUN_TIME_MINUTES*60]

export DB_NAME=sbtest
export MONGO_SERVER=db.example
export MONGO_PORT=27018
export USERNAME=none
export PASSWORD=none
export WRITE_CONCERN=SAFE
export MAX_TPS=999999
export SYSBENCH_AUTO_COMMIT=Y
export SYSBENCH_RANGE_SIZE=100
export SYSBENCH_POINT_SELECTS=10
export SYSBENCH_INSERTS=1
# the same keys again: set a number
export SEED=$(date +%s)
DOLOAD=yes
DOQUERY=yes
"#;

/// The same of the last version.
const HEAD: &str = r#"
export SHARDED=no
export DB_NAME=sbtest10by1mm
export URI="mongodb://bob:secret@h1,h2/?replicaSet=rs&w=majority"
export TRUST_STORE="./store.jks"
export TRUST_STORE_PASSWORD="<put-it-here>"
DOLOAD=no
DOQUERY=yes
export NUM_COLLECTIONS=10
export NUM_WRITER_THREADS=32
export RUN_TIME_MINUTES=10
export RUN_TIME_SECONDS=$[RUN_TIME_MINUTES*60]
# the time, as in $( date +%s )
SEED=$( date +%s )
export NUM_INSERTS_PER_FEEDBACK=-1
"#;

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// The plan of a file and further words.
fn plan(text: &str, words: &[&str], overrides: Overrides) -> Result<SysbenchPlan, SysbenchError> {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec![file(folder.path(), "config.bash", text)];
    all.extend(words.iter().map(|word| (*word).to_owned()));
    parse(&all, &overrides, NOW)
}

fn refusal(text: &str, words: &[&str]) -> String {
    plan(text, words, Overrides::default()).unwrap_err().to_string()
}

#[test]
fn the_configuration_of_2015() {
    let plan = plan(OLD, &[], Overrides::default()).unwrap();
    let config = &plan.config;
    assert_eq!(config.dialect, Dialect::Y2015);
    assert_eq!((config.collections, config.documents, config.batch), (640, 1_000_000, 1_000));
    assert_eq!((config.loaders, config.writers, config.seed), (24, 64, NOW as i64));
    assert_eq!((plan.run_seconds, plan.feedback_seconds, plan.feedback_inserts), (10_800, Some(10), None));
    assert_eq!(plan.uri, "mongodb://db.example:27018/?w=1");
    assert_eq!((plan.database.as_str(), plan.server.as_str()), ("sbtest", "db.example:27018"));
    assert!(plan.load && plan.query && config.counts.count_commands() == 18);
    assert_eq!(plan.log_name(BenchmarkPhase::Execute), "mongoSysbenchExecute-640-1000000-64.txt");
    assert_eq!(plan.log_name(BenchmarkPhase::Load), "mongoSysbenchLoad-640-1000000-24.txt");
    assert_eq!(plan.notes.len(), 2, "{:?}", plan.notes);
    assert!(plan.notes[0].contains("config.bash:6: MONGO_COMPRESSION has no effect"));
    let shown: Vec<String> =
        plan.provenance.iter().map(|p| format!("{}={} {}", p.key, p.value, p.source)).collect();
    assert!(shown.iter().any(|p| p.starts_with("PASSWORD=*** ")), "{shown:?}");
    assert!(shown.contains(&"SYSBENCH_INDEX_UPDATES=1 default".to_owned()));
    assert!(shown.iter().any(|p| p.starts_with("RUN_TIME_SECONDS=10800 ") && p.ends_with("config.bash:18")));
    assert!(!shown.iter().any(|p| p.starts_with("URI")));
}

#[test]
fn the_configuration_of_the_last_version() {
    let plan = plan(HEAD, &[], Overrides::default()).unwrap();
    assert_eq!((plan.config.dialect, plan.config.seed), (Dialect::Head, NOW as i64));
    assert_eq!(plan.uri, "mongodb://bob:secret@h1,h2/?replicaSet=rs&w=majority");
    assert!(!plan.load && plan.query);
    assert!(plan.notes.iter().any(|note| note.contains("tlsCAFile")));
    assert!(!format!("{:?}", plan.provenance).contains("secret"));
    let faithful = self::plan(HEAD, &[], Overrides { faithful: true, ..Overrides::default() }).unwrap();
    assert_eq!(faithful.log_name(BenchmarkPhase::Execute), "mongoSysbenchExecute--10-1000000-32.txt");
}

#[test]
fn overrides_win_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        file(folder.path(), "a", OLD),
        file(folder.path(), "b", "NUM_WRITER_THREADS=$((NUM_LOADER_THREADS * 2))\nRUN_TIME_MINUTES=2"),
        "SEED=7".to_owned(),
        "NUM_COLLECTIONS=16".to_owned(),
    ];
    let plan = parse(&words, &Overrides::default(), NOW).unwrap();
    assert_eq!((plan.config.writers, plan.config.seed, plan.config.collections), (48, 7, 16));
    assert_eq!(plan.run_seconds, 120);
    assert!(plan.notes.iter().any(|note| note.contains("replaces RUN_TIME_SECONDS")));
    let third = [&words[..2], &[words[0].clone()]].concat();
    assert!(parse(&third, &Overrides::default(), NOW).unwrap_err().to_string().contains("two files at most"));
    let with = |words: &[&str]| self::plan(OLD, words, Overrides::default()).unwrap();
    assert_eq!(with(&["RUN_TIME_SECONDS=60"]).run_seconds, 60);
    assert_eq!(with(&["URI=mongodb://other"]).uri, "mongodb://other");
    assert_eq!(with(&["URI=mongodb://other"]).config.dialect, Dialect::Y2015);
}

#[test]
fn overrides() {
    let overrides = Overrides { dialect: Some(Dialect::Y2015), faithful: true, independent: true };
    let plan = plan(HEAD, &[], overrides).unwrap();
    assert_eq!((plan.config.dialect, plan.config.faithful), (Dialect::Y2015, true));
    assert_eq!(plan.config.streams, Streams::Transactions);
}

#[test]
fn logins_and_write_concerns() {
    let uri = |words: &[&str], faithful| {
        plan(OLD, words, Overrides { faithful, ..Overrides::default() }).unwrap().uri
    };
    assert_eq!(
        uri(&["USERNAME=bob", "PASSWORD=p@ss/w", "WRITE_CONCERN=FSYNC_SAFE"], false),
        "mongodb://bob:p%40ss%2Fw@db.example:27018/?authSource=sbtest&w=1&journal=true"
    );
    assert_eq!(uri(&["WRITE_CONCERN=REPLICAS_SAFE"], false), "mongodb://db.example:27018/?w=2");
    assert_eq!(uri(&["WRITE_CONCERN=REPLICAS_SAFE"], true), "mongodb://db.example:27018/?w=1");
    let more = ["MONGO_SERVER=::1", "USE_TLS=true", "MONGO_READ_PREFERENCE=secondary"];
    assert_eq!(uri(&more, false), "mongodb://[::1]:27018/?w=1&readPreference=secondary&tls=true");
}

#[test]
fn refusals_name_file_line_and_what_is_accepted() {
    for (line, words, part) in [
        ("NUM_COLECTIONS=3", &[][..], "unknown variable NUM_COLECTIONS; did you mean NUM_COLLECTIONS?"),
        ("NUM_COLLECTIONS=many", &[], "config.bash:2: NUM_COLLECTIONS=many: expected a whole number, 1 to"),
        ("rm -rf x", &[], "config.bash:2: \"rm -rf x\" is no assignment"),
        ("SEED=1", &["NUM_WRITER_THREAD=3"], "did you mean NUM_WRITER_THREADS?"),
        ("SEED=1", &["MAX_TPS=0"], "command line: MAX_TPS=0: expected"),
        ("URI=<replace-with-proper-URI>", &[], "expected mongodb://"),
        ("URI=mongodb://h\nMONGO_SERVER=h", &[], "not both"),
        ("SHARDED=yes", &[], "MAX_SHARD_KEY= (default): expected a whole number"),
        ("SHARDED=yes\nMAX_SHARD_KEY=70000\nDOCS_PER_SHARD=70000", &[], "below 2147483648"),
        ("SHARDED=perhaps", &[], "expected yes or no"),
        ("DOLOAD=perhaps", &[], "expected yes or no"),
        ("MONGO_PORT=70000", &[], "1 to 65535"),
        ("MONGO_PORT=1\nWRITE_CONCERN=MAYBE", &[], "REPLICAS_SAFE"),
        ("DB_NAME=a.b", &[], "the name of a database"),
        ("RUN_TIME_SECONDS=0", &[], "1 to"),
    ] {
        let text = refusal(&format!("# first\n{line}\n"), words);
        assert!(text.contains(part), "{line}: {text}");
    }
    let missing = parse(&["no/such/file".to_owned()], &Overrides::default(), NOW).unwrap_err().to_string();
    assert!(missing.starts_with("no/such/file: "), "{missing}");
}

#[test]
fn helpers_and_strangers() {
    let text = "BASE=4\nNUM_COLLECTIONS=$((BASE*4))\nJAVA_OPTS=x\n";
    let plan = plan(text, &[], Overrides::default()).unwrap();
    assert_eq!(plan.config.collections, 16);
    assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
    assert!(plan.notes[0].contains(":3: unknown variable JAVA_OPTS"));
}

#[test]
fn every_variable_is_listed_once() {
    let mut names: Vec<&str> = variables::names().collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), count), (41, 41));
    assert!(VARIABLES.iter().all(|v| !v.meaning.is_empty()));
}

#[test]
fn sharded_collections_are_a_product() {
    let words = ["SHARDED=yes", "MAX_SHARD_KEY=40", "DOCS_PER_SHARD=250", "NUM_DOCUMENTS_PER_INSERT=7"];
    let plan = plan(HEAD, &words, Overrides::default()).unwrap();
    let sharding = plan.config.sharding.unwrap();
    assert_eq!(
        (sharding.keys, sharding.each, plan.config.documents, plan.config.batch),
        (40, 250, 10_000, 250)
    );
    assert!(
        plan.notes.iter().any(|note| note.contains("NUM_DOCUMENTS_PER_INSERT has no effect")),
        "{:?}",
        plan.notes
    );
    assert!(plan.log_name(BenchmarkPhase::Load).contains("-10-10000-"));
}
