//! Beside YCSB's own client (its core from Maven, and a binding of ours that keeps to its layout): each reads what the other
//! has written, value by value.

mod common;

use common::{Dyno, Server, assert_exit, skip, skip_because, stderr, stdout};
use std::path::PathBuf;
use std::process::{Command, Output};

/// The client's folder, where scripts/need-ycsb.sh has put it.
fn client() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let folder = cache.join("dyno-ycsb/client-0.17.0");
    let has_java = Command::new("java").arg("-version").output().is_ok_and(|o| o.status.success());
    (has_java && folder.join("RecordStore.class").is_file()).then_some(folder)
}

fn java(folder: &std::path::Path, arguments: &str) -> Output {
    let path = format!("{0}:{0}/*", folder.display());
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "120", "java", "-Xmx256m", "-cp", &path, "site.ycsb.Client"]);
    command.args(arguments.split_whitespace()).output().unwrap()
}

/// The number behind a line of the report, if it is there.
fn reported(text: &str, line: &str) -> Option<u64> {
    text.lines().find_map(|l| l.strip_prefix(line))?.trim().parse().ok()
}

#[test]
fn each_reads_what_the_other_has_written() {
    let Some(folder) = client() else {
        return skip_because("YCSB's own client", "it is not there (see scripts/need-ycsb.sh)");
    };
    let (Some(one), Some(other)) = (Server::start(&[]), Server::start(&[])) else {
        return skip("YCSB's client");
    };
    let dyno = Dyno::new();
    let workload = "-p workload=site.ycsb.workloads.CoreWorkload -p recordcount=500 -p operationcount=2000 \
                    -p readproportion=0.5 -p updateproportion=0.3 -p scanproportion=0.2 -p dataintegrity=true \
                    -p fieldlengthdistribution=constant -threads 2 -p redis.host=127.0.0.1";
    let ycsb = |mode: &str, port: u16| {
        let words = format!("ycsb {mode} redis {workload} -p redis.port={port}");
        dyno.run(&words.split_whitespace().collect::<Vec<_>>())
    };
    let theirs = |flag: &str, port: u16| {
        java(&folder, &format!("{flag} -db RecordStore {workload} -p redis.port={port}"))
    };
    let loaded = theirs("-load", one.port);
    assert_eq!(reported(&stdout(&loaded), "[INSERT], Return=OK,"), Some(500), "{}", stderr(&loaded));
    let run = ycsb("run", one.port);
    assert_exit(&run, &[0]);
    verified(&stdout(&run));
    assert_exit(&ycsb("load", other.port), &[0]);
    let run = theirs("-t", other.port);
    verified(&stdout(&run));
}

/// Every value read was what it must be, and scans found something.
fn verified(text: &str) {
    let read = reported(text, "[READ], Return=OK,");
    assert!(read.is_some_and(|n| n > 900), "{text}");
    assert_eq!(reported(text, "[VERIFY], Return=OK,"), read, "{text}");
    assert_eq!(reported(text, "[VERIFY], Return=UNEXPECTED_STATE,"), None, "{text}");
    assert!(reported(text, "[SCAN], Return=OK,").is_some_and(|n| n > 300), "{text}");
}

#[test]
fn keys_are_the_same() {
    let Some(folder) = client() else {
        return skip_because("YCSB's own client", "it is not there (see scripts/need-ycsb.sh)");
    };
    let dyno = Dyno::new();
    for order in ["insertorder=hashed", "insertorder=ordered -p zeropadding=12"] {
        let common = format!(
            "-p workload=site.ycsb.workloads.CoreWorkload -p recordcount=300 -p basicdb.verbose=true \
             -p fieldcount=1 -p fieldlength=1 -p {order}"
        );
        let theirs = java(&folder, &format!("-load -db site.ycsb.BasicDB {common}"));
        let words = format!("ycsb load basic {common}");
        let ours = dyno.run(&words.split_whitespace().collect::<Vec<_>>());
        let keys = |output: &Output| -> Vec<String> {
            let lines = stdout(output)
                .lines()
                .filter(|l| l.starts_with("INSERT "))
                .map(str::to_owned)
                .collect::<Vec<_>>();
            lines.iter().map(|l| l.split(' ').nth(2).unwrap().to_owned()).collect()
        };
        assert_eq!(keys(&theirs).len(), 300, "{}", stderr(&theirs));
        assert_eq!(keys(&theirs), keys(&ours), "{order}");
    }
}
