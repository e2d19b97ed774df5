//! Beside YCSB's own client (its core from Maven, and a binding of ours that keeps to its layout): each reads what the other
//! has written, value by value.

use dyno_testkit::{Dyno, RedisProcess, skip, skip_because, stderr, stdout};
use std::path::PathBuf;
use std::process::{Command, Output};

/// The client's folder, where scripts/need ycsb has put it.
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
        return skip_because("YCSB's own client", "it is not there (see scripts/need ycsb)");
    };
    let (Some(one), Some(other)) = (RedisProcess::start(&[]), RedisProcess::start(&[])) else {
        return skip("YCSB's client");
    };
    let dyno = Dyno::new();
    let workload = "-p workload=site.ycsb.workloads.CoreWorkload -p recordcount=500 -p operationcount=2000 \
                    -p readproportion=0.5 -p updateproportion=0.3 -p scanproportion=0.2 -p dataintegrity=true \
                    -p fieldlengthdistribution=constant -threads 2 -p redis.host=127.0.0.1";
    let ycsb = |mode: &str, port: u16| {
        let text = format!("ycsb {mode} redis {workload} -p redis.port={port}");
        dyno.run(&text.split_whitespace().collect::<Vec<_>>())
    };
    let theirs = |flag: &str, port: u16| {
        java(&folder, &format!("{flag} -db RecordStore {workload} -p redis.port={port}"))
    };
    let loaded = theirs("-load", one.port);
    assert_eq!(reported(&stdout(&loaded), "[INSERT], Return=OK,"), Some(500), "{}", stderr(&loaded));
    let run = ycsb("run", one.port);
    // Replies are handled late on a busy host.
    dyno.assert_ran(&run);
    verified(&stdout(&run));
    dyno.assert_ran(&ycsb("load", other.port));
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
        return skip_because("YCSB's own client", "it is not there (see scripts/need ycsb)");
    };
    let dyno = Dyno::new();
    for order in ["insertorder=hashed", "insertorder=ordered -p zeropadding=12"] {
        let common = format!(
            "-p workload=site.ycsb.workloads.CoreWorkload -p recordcount=300 -p basicdb.verbose=true \
             -p fieldcount=1 -p fieldlength=1 -p {order}"
        );
        let theirs = java(&folder, &format!("-load -db site.ycsb.BasicDB {common}"));
        let text = format!("ycsb load basic {common}");
        let ours = dyno.run(&text.split_whitespace().collect::<Vec<_>>());
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

/// What one client did in the run phase, as its `basic` binding printed it: for each read how many records were newer than the
/// one it read, in order of sending, and the number of each inserted record. Keys must be ordered (`user17`).
fn choices(text: &str, records: u64) -> (Vec<u64>, Vec<u64>) {
    let (mut ages, mut inserted, mut newest) = (Vec::new(), Vec::new(), records - 1);
    for line in text.lines() {
        let mut words = line.split(' ');
        let (verb, key) =
            (words.next(), words.nth(1).and_then(|k| k.strip_prefix("user")?.parse::<u64>().ok()));
        match (verb, key) {
            (Some("READ"), Some(key)) => ages.push(newest.saturating_sub(key)),
            (Some("INSERT"), Some(key)) => {
                newest = newest.max(key);
                inserted.push(key);
            }
            _ => {}
        }
    }
    (ages, inserted)
}

/// The greatest distance between two distribution functions (Kolmogorov and Smirnov's statistic), 0 to 1.
fn distance(mut one: Vec<u64>, mut other: Vec<u64>) -> f64 {
    one.sort_unstable();
    other.sort_unstable();
    let share = |of: &[u64], value: u64| of.partition_point(|v| *v <= value) as f64 / of.len() as f64;
    let all = one.iter().chain(&other);
    all.map(|v| (share(&one, *v) - share(&other, *v)).abs()).fold(0.0, f64::max)
}

/// The 1 % limit of [`distance`] for two samples: 1.628 times the root of (n + m) / (n m).
fn limit(one: usize, other: usize) -> f64 {
    1.628 * ((one + other) as f64 / (one as f64 * other as f64)).sqrt()
}

/// YCSB's draws are seeded by the clock, so a fair comparison misses the limit in one of a hundred: three are made, one may miss.
#[test]
fn which_records_are_read_while_others_are_inserted_is_as_with_ycsb() {
    let Some(folder) = client() else {
        return skip_because("YCSB's own client", "it is not there (see scripts/need ycsb)");
    };
    let dyno = Dyno::new();
    let records = 10_000;
    for distribution in ["latest", "zipfian"] {
        let common = format!(
            "-p workload=site.ycsb.workloads.CoreWorkload -p recordcount={records} -p operationcount=60000 \
             -p readproportion=0.95 -p updateproportion=0 -p insertproportion=0.05 -p insertorder=ordered \
             -p requestdistribution={distribution} -p fieldcount=1 -p fieldlength=1 -p basicdb.verbose=true"
        );
        let mut missed = Vec::new();
        for seed in 1..=3 {
            let theirs = java(&folder, &format!("-t -db site.ycsb.BasicDB {common}"));
            let text = format!("ycsb run basic {common} -p dyno.seed={seed}");
            let ours = dyno.run(&text.split_whitespace().collect::<Vec<_>>());
            dyno.assert_ran(&ours);
            let (theirs, _) = choices(&stdout(&theirs), records);
            let (ours, inserted) = choices(&stdout(&ours), records);
            assert!(
                inserted.iter().copied().eq(records..records + inserted.len() as u64),
                "in order, without a gap"
            );
            if distribution == "latest" {
                let newest =
                    |ages: &[u64]| ages.iter().filter(|age| **age == 0).count() as f64 / ages.len() as f64;
                assert!(
                    (newest(&ours) - newest(&theirs)).abs() < 0.01,
                    "{} {}",
                    newest(&ours),
                    newest(&theirs)
                );
            }
            let (found, limit) = (distance(ours.clone(), theirs.clone()), limit(ours.len(), theirs.len()));
            if found > limit {
                missed.push((found, limit));
            }
        }
        assert!(missed.len() <= 1, "{distribution}: {missed:?}");
    }
}

/// A run that ends by its time leaves no record out that a later run would ask for.
#[test]
fn an_end_by_time_leaves_no_gap() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("gaps behind an end by time") };
    let dyno = Dyno::new();
    let target = format!("-p redis.host=127.0.0.1 -p redis.port={}", server.port);
    let common = format!(
        "redis -P workloads/workloadd -p recordcount=1000 -p insertorder=ordered -p fieldcount=1 -p fieldlength=4 {target}"
    );
    let ycsb = |text: String| dyno.run(&text.split_whitespace().collect::<Vec<_>>());
    dyno.assert_ran(&ycsb(format!("ycsb load {common}")));
    let threads = "-p operationcount=100000000 -p maxexecutiontime=1 -threads 16 -p dyno.load.threads=2";
    dyno.assert_ran(&ycsb(format!("ycsb run {common} {threads}")));
    let records: u64 = server.cli(&["ZCARD", "_indices"]).trim().parse().unwrap();
    assert!(records > 1000, "{records}");
    let last = format!("user{}", records - 1);
    assert_eq!(server.cli(&["EXISTS", &last]).trim(), "1", "{records} records end with {last}");
}
