//! Flags of `dyno memtier` that change what a load is, on real servers: what these counted, and what was written.

use super::memcached::Memcached;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, signal, skip, stderr, stdout};
use serde_json::Value;
use std::process::Output;
use std::time::{Duration, Instant};

/// Records, as memtier_benchmark 2.3.0 has read them.
const IMPORT: &str = "dumpflags, time, exptime, nbytes, nsuffix, it_flags, clsid, nkey, key, data\n\
    0, 0, 0, 5, 0, 0, 1, 5, \"apple\", \"red\"\n\
    0, 0, 700, 7, 0, 0, 1, 4, \"pear\", \"green\"\n\
    0, 0, 0, 12, 0, 0, 1, 4, \"plum\", \"say \"\"x\"\", y\"\n";

fn stat(server: &RedisProcess, name: &str) -> u64 {
    let all = server.cli(&["INFO", "stats"]);
    let found =
        all.split_whitespace().find_map(|line| line.strip_prefix(&format!("{name}:")).map(str::to_owned));
    found.unwrap_or_else(|| panic!("no {name} in {all}")).parse().unwrap()
}

fn calls(server: &RedisProcess, command: &str) -> u64 {
    let all = server.cli(&["INFO", "commandstats"]);
    let found = all.split("cmdstat_").find_map(|one| one.strip_prefix(&format!("{command}:calls=")));
    found.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

/// Runs to its end, whatever is thought of a short run.
fn ran(output: &Output) {
    assert_exit(output, &[0, 5]);
    assert!(!stderr(output).contains("failed"), "{}", stderr(output));
}

fn json(dyno: &Dyno, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dyno.path(name)).unwrap()).unwrap()
}

#[test]
fn connections_are_made_anew_without_a_loss() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("--reconnect-interval of dyno memtier") };
    let dyno = Dyno::new();
    let target = server.uri();
    let words =
        ["memtier", "-u", &target, "-t", "1", "-c", "4", "--hide-histogram", "--reconnect-interval", "5"];
    for (more, made) in [
        (&["-n", "1000"][..], 4 * 200),
        (&["-n", "1003", "--pipeline", "4"], 4 * 201),
        (&["-n", "100", "--rate-limiting", "200"], 4 * 20),
    ] {
        let before = stat(&server, "total_connections_received");
        ran(&dyno.run(&[&words[..], more, &["--run-directory", "d"]].concat()));
        let connections = stat(&server, "total_connections_received") - before;
        // Some more look the server up, and watch it. At a rate the next free user takes what is due.
        assert!((made - 4..made + 20).contains(&connections), "{more:?}: {connections}");
        let summary = dyno.summary("d");
        let measured = dyno_testkit::phase(&summary, "measure");
        assert_eq!(measured["reconnects"], 0, "they were asked for");
        let reasons = summary["verdict"]["reasons"].as_array().unwrap().clone();
        let about = |reason: &Value| {
            ["reconnects", "connections", "errors"].contains(&reason["check"].as_str().unwrap())
        };
        assert!(!reasons.iter().any(about), "{reasons:?}");
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
    }
}

#[test]
fn waits_stand_between_sets_and_have_a_row() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("--wait-ratio of dyno memtier") };
    let dyno = Dyno::new();
    let target = server.uri();
    let words = ["memtier", "-u", &target, "-t", "1", "-c", "2", "-n", "24", "--json-out-file", "o.json"];
    let waits = ["--ratio", "3:2", "--wait-ratio", "2:1", "--num-slaves", "0-2", "--wait-timeout", "1-9"];
    ran(&dyno.run(&[&words[..], &waits].concat()));
    // As memtier's MONITOR has them: 5 WAITs, 12 SETs and 7 GETs of a client.
    assert_eq!(["wait", "set", "get"].map(|name| calls(&server, name)), [10, 24, 14]);
    let stats = &json(&dyno, "o.json")["ALL STATS"];
    assert_eq!((&stats["Waits"]["Count"], &stats["Totals"]["Count"]), (&10.into(), &48.into()));
    assert_eq!(stats["Waits"]["KB/sec"].as_f64(), Some(0.0));
}

#[test]
fn memcached_has_memtiers_data() {
    let Some(server) = Memcached::start("dyno memtier on memcached", &[]) else { return };
    let dyno = Dyno::new();
    let port = server.port.to_string();
    let words = ["memtier", "-s", "127.0.0.1", "-p", &port, "-P", "memcache_text", "-t", "1", "-c", "2"];
    let sets = [
        "-n",
        "allkeys",
        "--key-minimum",
        "1",
        "--key-maximum",
        "101",
        "--key-pattern",
        "P:P",
        "--ratio",
        "1:0",
    ];
    ran(&dyno.run(&[&words[..], &sets, &["-d", "7", "--hide-histogram"]].concat()));
    assert_eq!((server.stat("curr_items"), server.get("memtier-77")), (101, "xxxxxxx".to_owned()));
    let gets =
        ["-n", "50", "--ratio", "0:10", "--multi-key-get", "4", "--key-minimum", "1", "--key-maximum", "202"];
    ran(&dyno.run(&[&words[..], &gets, &["--json-out-file", "o.json"]].concat()));
    let (hits, misses) = (server.stat("get_hits") - 1, server.stat("get_misses"));
    // Of a client's 50 gets two in three have four keys, the third the two that are left.
    assert_eq!(hits + misses, 2 * (34 * 4 + 16 * 2));
    let found = &json(&dyno, "o.json")["ALL STATS"]["Gets"];
    assert_eq!(found["Count"], 100);
    let share = found["Hits/sec"].as_f64().unwrap() / found["Ops/sec"].as_f64().unwrap();
    assert!((share - hits as f64 / 100.0).abs() < 1e-2, "{share}: {hits} hits, {misses} misses");
    // Values that the server does not take are no success.
    let output = dyno.run(&[&words[..], &["-n", "10", "--ratio", "1:0", "-d", "2000000"]].concat());
    assert_exit(&output, &[5]);
    assert!(stderr(&output).contains("too large"), "{}", stderr(&output));
}

#[test]
fn records_of_a_file_are_written_and_read_back() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("--data-import of dyno memtier") };
    let dyno = Dyno::new();
    std::fs::write(dyno.path("i.csv"), IMPORT).unwrap();
    let target = server.uri();
    let words =
        ["memtier", "-u", &target, "-t", "1", "-c", "2", "-n", "12", "--ratio", "1:1", "--hide-histogram"];
    let output = dyno.run(&[&words[..], &["--data-import", "i.csv", "--data-verify"]].concat());
    ran(&output);
    assert!(stdout(&output).ends_with("6          keys verified successfuly.\n0          keys failed.\n"));
    assert_eq!((calls(&server, "set"), calls(&server, "setex")), (8, 4));
    assert_eq!(server.cli(&["GET", "plum"]).trim(), "say \"x\", y");
    let lives: i64 = server.cli(&["TTL", "pear"]).trim().parse().unwrap();
    assert!((600..=700).contains(&lives), "{lives}");
    server.cli(&["SET", "plum", "other"]);
    let verify = ["--data-import", "i.csv", "--verify-only", "--json-out-file", "o.json"];
    let output = dyno.run(&[&words[..], &verify].concat());
    assert_exit(&output, &[5]);
    assert!(
        stderr(&output).contains("key [plum]: expected [say \"x\", y], got [other]"),
        "{}",
        stderr(&output)
    );
    let found = &json(&dyno, "o.json")["client verifications results"];
    assert_eq!((&found["keys verified successfuly"], &found["keys failed"]), (&4.into(), &2.into()));
    std::fs::write(dyno.path("bad.csv"), "key,data\n").unwrap();
    for file in ["bad.csv", "none.csv"] {
        assert_exit(&dyno.run(&[&words[..], &["--data-import", file]].concat()), &[2]);
    }
}

#[test]
fn a_scan_goes_on_from_its_cursor() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("SCANs of dyno memtier") };
    let dyno = Dyno::new();
    for key in 0..300 {
        server.cli(&["SET", &format!("k{key}"), "1"]);
    }
    let target = server.uri();
    let words = ["memtier", "-u", &target, "-t", "1", "-c", "2", "-n", "300", "--json-out-file", "o.json"];
    let scan = ["--command", "SCAN 0 COUNT 30", "--scan-incremental-iteration"];
    ran(&dyno.run(&[&words[..], &scan].concat()));
    let stats = json(&dyno, "o.json")["ALL STATS"].clone();
    let count = |name: &str| stats[name]["Count"].as_u64().unwrap();
    let (begun, gone_on) = (count("Scan 0s"), count("Scan <cursor>s"));
    assert_eq!(begun + gone_on, 600);
    // A round of 300 keys by 30 has about ten replies.
    assert!((40..=120).contains(&begun), "{begun}");
    ran(&dyno.run(&[&words[..], &scan, &["--scan-incremental-max-iterations", "2"]].concat()));
    assert_eq!(json(&dyno, "o.json")["ALL STATS"]["Scan 0s"]["Count"], 200);
}

#[test]
fn clients_begin_step_by_step() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("--clients-start of dyno memtier") };
    let dyno = Dyno::new();
    let target = server.uri();
    let words = ["memtier", "-u", &target, "-t", "2", "-c", "5", "--test-time", "600", "--hide-histogram"];
    let stairs = ["--clients-start", "1", "--clients-step", "2", "--step-duration", "2"];
    let child = dyno.start(&[&words[..], &stairs].concat());
    let clients = || {
        let all = server.cli(&["INFO", "clients"]);
        all.lines()
            .find_map(|line| line.trim().strip_prefix("connected_clients:")?.parse::<u64>().ok())
            .unwrap()
    };
    // Beside those of the load there is the one that asks.
    let end = Instant::now() + Duration::from_secs(60);
    let mut seen = Vec::new();
    while !seen.contains(&11) {
        assert!(Instant::now() < end, "{seen:?}");
        seen.push(clients());
        std::thread::sleep(Duration::from_millis(50));
    }
    seen.dedup();
    let steps: Vec<u64> = seen.into_iter().filter(|count| [3, 7, 11].contains(count)).collect();
    assert_eq!(steps, [3, 7, 11]);
    signal(child.id(), "INT");
    assert_exit(&dyno_testkit::finish(child), &[130]);
}

#[test]
fn files_of_latencies_and_of_clients() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("files of dyno memtier") };
    let dyno = Dyno::new();
    let target = server.uri();
    let words =
        ["memtier", "-u", &target, "-t", "2", "-c", "2", "-n", "500", "--ratio", "1:4", "--hide-histogram"];
    ran(&dyno.run(&[&words[..], &["--client-stats=c", "--hdr-file-prefix=h", "-x", "2"]].concat()));
    let read = |name: &str| std::fs::read_to_string(dyno.path(name)).unwrap();
    for run in 1..=2 {
        for (name, count) in [("FULL_RUN", 2_000), ("SET_command_run", 400), ("GET_command_run", 1_600)] {
            let table = read(&format!("h_{name}_{run}.txt"));
            assert!(table.contains(&format!("Total count    = {count:>12}]")), "{table}");
            assert!(read(&format!("h_{name}_{run}.hgrm")).contains(",HISTFAAAA"));
        }
        for (thread, client) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let text = read(&format!("c-{run}-{thread}-{client}.csv"));
            let rows = text.lines().skip(2).take_while(|line| !line.is_empty());
            let rows: Vec<Vec<f64>> =
                rows.map(|row| row.split(',').map(|n| n.parse().unwrap()).collect()).collect();
            let sum = |column: usize| rows.iter().map(|row| row[column]).sum::<f64>();
            assert_eq!((sum(1), sum(6), sum(11) + sum(12)), (100.0, 400.0, 400.0), "{text}");
            // `+OK` of each set.
            assert_eq!(sum(5), 500.0);
        }
    }
}
