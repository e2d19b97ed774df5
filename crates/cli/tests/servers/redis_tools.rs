//! `dyno memtier`, `dyno redis-benchmark` and `dyno valkey-benchmark` on real servers: what the servers counted, what the
//! programs themselves read back, and what goes wrong.

use dyno_testkit::cluster::RedisCluster;
use dyno_testkit::{
    Dyno, RedisProcess, assert_exit, finish, free_port, signal, skip, skip_because, stderr, stdout,
};
use serde_json::Value;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Calls of a command since the statistics were reset.
fn calls(server: &RedisProcess, command: &str) -> u64 {
    let all = server.cli(&["INFO", "commandstats"]);
    let found = all.split("cmdstat_").find_map(|one| one.strip_prefix(&format!("{command}:calls=")));
    found.map_or(0, |rest| rest.split(',').next().unwrap().parse().unwrap())
}

/// A figure of INFO.
fn info(server: &RedisProcess, name: &str) -> u64 {
    let all = server.cli(&["INFO", "stats"]);
    let found =
        all.split_whitespace().find_map(|line| line.strip_prefix(&format!("{name}:")).map(str::to_owned));
    found.unwrap_or_else(|| panic!("no {name} in {all}")).parse().unwrap()
}

fn uri(server: &RedisProcess) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}

/// Runs to its end: valid, or called invalid for want of a quiet machine.
fn ran(output: &Output) {
    assert_exit(output, &[0, 5]);
    let invalid = stderr(output);
    let invalid: Vec<&str> = invalid.lines().filter(|line| line.contains("is invalid")).collect();
    assert!(
        invalid.iter().all(|line| line.contains("(client_share)") || line.contains("(lag)")),
        "{invalid:?}"
    );
}

#[test]
fn memtiers_report_has_what_the_server_counted() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("dyno memtier") };
    let dyno = Dyno::new();
    let target = uri(&server);
    let keys = ["--key-pattern", "S:S", "--key-minimum", "1", "--key-maximum", "10"];
    let words = ["memtier", "-u", &target, "-c", "2", "-t", "2", "-n", "110", "--json-out-file", "o.json"];
    let output = dyno.run(&[&words[..], &keys].concat());
    ran(&output);
    assert_eq!((calls(&server, "set"), calls(&server, "get")), (40, 400));
    let (hits, misses) = (info(&server, "keyspace_hits"), info(&server, "keyspace_misses"));
    assert_eq!(hits + misses, 400);
    let json: Value = serde_json::from_slice(&std::fs::read(dyno.path("o.json")).unwrap()).unwrap();
    let stats = &json["ALL STATS"];
    assert_eq!(
        (&stats["Sets"]["Count"], &stats["Gets"]["Count"], &stats["Totals"]["Count"]),
        (&40.into(), &400.into(), &440.into())
    );
    let rate = |name: &str| stats["Gets"][name].as_f64().unwrap();
    let share = rate("Hits/sec") / rate("Ops/sec");
    assert!((share - hits as f64 / 400.0).abs() < 1e-3, "{share}: {hits} hits, {misses} misses");
    // Four clients have counted to ten.
    assert_eq!(server.cli(&["DBSIZE"]).trim(), "10");
    assert_eq!(server.cli(&["GET", "memtier-7"]).trim(), "x".repeat(32));
    let text = stdout(&output);
    for line in [
        "2         Threads",
        "2         Connections per thread",
        "110       Requests per client",
        "ALL STATS",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}: {text}");
    }
    let sums = stats["Gets"]["Time-Serie"].as_object().unwrap().values();
    let sums = sums.map(|second| ["Bytes RX", "Bytes TX"].map(|name| second[name].as_u64().unwrap()));
    let [received, sent] = sums.fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    // `$32 ...` of a hit and `$-1` of a miss; `GET` of keys of 9 and 10 letters.
    assert_eq!(received, hits * 39 + misses * 5);
    assert!((400 * 28..=400 * 30).contains(&sent), "{sent}");
}

#[test]
fn own_commands_of_memtier() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("own commands of dyno memtier") };
    let dyno = Dyno::new();
    let target = uri(&server);
    let words = [
        "memtier",
        "-u",
        &target,
        "-c",
        "5",
        "-t",
        "1",
        "-n",
        "40",
        "--hide-histogram",
        "--key-maximum",
        "50",
    ];
    let own = ["--command", "ZADD board 7 __key__", "--command", "zcard 'board'", "--command-ratio", "3"];
    let output = dyno.run(&[&words[..], &own, &["--run-directory", "d"]].concat());
    ran(&output);
    assert_eq!((calls(&server, "zadd"), calls(&server, "zcard")), (50, 150));
    let text = stdout(&output);
    let row = |name: &str| text.lines().any(|line| line.starts_with(name));
    assert!(row("Zadds") && row("Zcards") && row("Totals") && !row("Sets"), "{text}");
    let summary = dyno.summary("d");
    let measured = dyno_testkit::phase(&summary, "measure");
    assert_eq!(dyno_testkit::outcome(measured, "ok"), 200);
    // A command that the server does not take is no success.
    let wrong = dyno.run(&[&words[..], &["--command", "GET board"]].concat());
    assert_exit(&wrong, &[5]);
    assert!(stderr(&wrong).contains("WRONGTYPE") || stderr(&wrong).contains("failed"), "{}", stderr(&wrong));
    assert_exit(&dyno.run(&[&words[..], &["--command", "GET board", "--compat-exit"]].concat()), &[0]);
}

#[test]
fn memtier_on_a_cluster() {
    let Some(cluster) = RedisCluster::start(None) else { return skip("dyno memtier on a cluster") };
    let dyno = Dyno::new();
    let port = cluster.port(0).to_string();
    let words = ["memtier", "-s", "127.0.0.1", "-p", &port, "--cluster-mode", "-c", "4", "-t", "1"];
    let load = [
        "-n",
        "allkeys",
        "--key-pattern",
        "P:P",
        "--ratio",
        "1:0",
        "--key-maximum",
        "999",
        "--hide-histogram",
    ];
    ran(&dyno.run(&[&words[..], &load].concat()));
    let sizes: Vec<u64> =
        (0..6).map(|node| cluster.ask(node, &["DBSIZE"]).trim().parse().unwrap_or(0)).collect();
    assert!(sizes.iter().filter(|size| **size > 200).count() >= 3, "{sizes:?}");
    let read = [
        "-n",
        "500",
        "--ratio",
        "0:1",
        "--key-maximum",
        "999",
        "--hide-histogram",
        "--json-out-file",
        "o.json",
    ];
    ran(&dyno.run(&[&words[..], &read].concat()));
    let json: Value = serde_json::from_slice(&std::fs::read(dyno.path("o.json")).unwrap()).unwrap();
    assert_eq!(json["ALL STATS"]["Gets"]["Misses/sec"].as_f64(), Some(0.0), "{}", json["ALL STATS"]["Gets"]);
}

#[test]
fn redis_benchmarks_tests_send_their_commands() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("dyno redis-benchmark") };
    let dyno = Dyno::new();
    let target = uri(&server);
    let words = ["redis-benchmark", "-u", &target, "-c", "5", "-n", "1000", "-r", "100", "--csv"];
    let output = dyno.run(&[&words[..], &["-t", "set,get,lpush,zadd,mset"]].concat());
    ran(&output);
    for (command, expected) in
        [("set", 1000), ("get", 1000), ("lpush", 1000), ("zadd", 1000), ("mset", 1000), ("incr", 0)]
    {
        assert_eq!(calls(&server, command), expected, "{command}");
    }
    let text = stdout(&output);
    let titles: Vec<&str> = text.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(titles, ["test", "SET", "GET", "LPUSH", "ZADD", "MSET (10 keys)"]);
    assert_eq!(server.cli(&["GET", "key:000000000042"]).trim(), "VXK");
    assert_eq!(server.cli(&["LLEN", "mylist"]).trim(), "1000");
    // Pipelines send no more than was asked for.
    server.cli(&["CONFIG", "RESETSTAT"]);
    let own = ["redis-benchmark", "-u", &target, "-c", "3", "-n", "1000", "-P", "16", "-q", "-r", "10"];
    let output = dyno.run(&[&own[..], &["incr", "counter:__rand_int__"]].concat());
    ran(&output);
    assert_eq!(calls(&server, "incr"), 1000);
    let sum: u64 = (0..10)
        .map(|n| server.cli(&["GET", &format!("counter:{n:012}")]).trim().parse::<u64>().unwrap())
        .sum();
    assert_eq!(sum, 1000);
    assert!(stdout(&output).contains("incr counter:__rand_int__: "), "{}", stdout(&output));
}

#[test]
fn sequences_of_valkey_benchmark() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("dyno valkey-benchmark") };
    let dyno = Dyno::new();
    let target = uri(&server);
    let words = ["valkey-benchmark", "-u", &target, "-c", "4", "-n", "900", "-r", "1000", "-q", "--"];
    let output = dyno.run(
        &[
            &words[..],
            &[
                "set",
                "k:__rand_1st__",
                "__data__",
                ";",
                "get",
                "k:__rand_1st__",
                ";",
                "del",
                "k:__rand_1st__",
            ],
        ]
        .concat(),
    );
    ran(&output);
    assert_eq!(["set", "get", "del"].map(|command| calls(&server, command)), [300; 3]);
    // What was just set is there, unless another client that had the same number has deleted it.
    let (hits, misses) = (info(&server, "keyspace_hits"), info(&server, "keyspace_misses"));
    assert!(hits + misses == 300 && hits > 280, "{hits} and {misses}");
    assert_eq!(server.cli(&["DBSIZE"]).trim(), "0");
}

/// Data that one has loaded are found by the other.
#[test]
fn redis_benchmark_and_dyno_read_each_others_data() {
    if Command::new("redis-benchmark").arg("--version").output().is_err() {
        return skip_because("redis-benchmark beside dyno", "redis-benchmark is not installed");
    }
    let Some(server) = RedisProcess::start(&[]) else { return skip("redis-benchmark beside dyno") };
    let dyno = Dyno::new();
    let port = server.port.to_string();
    let common = ["-p", &port, "-c", "5", "-n", "3000", "-r", "20", "-q", "-t"];
    let theirs = |test: &str| {
        let output = Command::new("redis-benchmark").args(common).arg(test).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    let ours = |test: &str| ran(&dyno.run(&[&["redis-benchmark"], &common[..], &[test]].concat()));
    for (load, read) in [(&theirs as &dyn Fn(&str), &ours as &dyn Fn(&str)), (&ours, &theirs)] {
        server.cli(&["FLUSHALL"]);
        load("set");
        let values = (0..20).map(|n| server.cli(&["GET", &format!("key:{n:012}")]));
        assert!(values.into_iter().all(|value| value.trim() == "VXK"));
        server.cli(&["CONFIG", "RESETSTAT"]);
        read("get");
        assert_eq!((info(&server, "keyspace_hits"), info(&server, "keyspace_misses")), (3000, 0));
    }
}

/// Every file below a folder.
fn files(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let one = |path: std::path::PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![(path.clone(), std::fs::read(&path).unwrap_or_default())],
    };
    entries.flat_map(one).collect()
}

#[test]
fn passwords_are_written_nowhere() {
    const SECRET: &str = "hunter2-not-a-word";
    let Some(server) = RedisProcess::start(&["--requirepass", SECRET]) else {
        return skip("passwords of memtier");
    };
    let port = server.port.to_string();
    let by_uri = format!("redis://:{SECRET}@127.0.0.1:{port}");
    let alone = format!("redis://{SECRET}@127.0.0.1:{port}");
    let attached = format!("-a{SECRET}");
    for words in [
        vec!["memtier", "-p", &port, "-a", SECRET],
        vec!["memtier", "-p", &port, &attached],
        vec!["memtier", "-u", &by_uri],
        vec!["redis-benchmark", "-p", &port, "-a", SECRET, "-t", "get"],
        vec!["redis-benchmark", "-u", &alone, "-t", "get"],
    ] {
        let dyno = Dyno::new();
        let kept = ["--run-directory", "d", "--json-out-file", "o.json", "-t", "1", "-o", "report"];
        let kept = if words[0] == "memtier" { &kept[..] } else { &[] };
        let output = dyno.run(&[&["-vv"], &words[..], &["-n", "20", "-c", "2"], kept].concat());
        ran(&output);
        let said = [output.stdout.clone(), output.stderr.clone()].concat();
        let written =
            files(dyno.folder.path()).into_iter().map(|(path, text)| (path.display().to_string(), text));
        for (place, text) in written.chain([("what it says".to_owned(), said)]) {
            let found = text.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
            assert!(!found, "{words:?}: {place}");
        }
        let wrong = dyno.run(&[words[0], "-p", &port, "-a", "wrong-not-a-word", "-n", "20"]);
        assert_exit(&wrong, &[3]);
        assert!(!stderr(&wrong).contains("wrong-not-a-word"), "{}", stderr(&wrong));
    }
}

#[test]
fn connections_that_count_together_are_as_many() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("dyno valkey-benchmark --sequential") };
    let dyno = Dyno::new();
    let before = info(&server, "total_connections_received");
    let target = uri(&server);
    let words = ["valkey-benchmark", "-u", &target, "-c", "9", "-n", "1000", "-r", "1000", "-t", "set", "-q"];
    ran(&dyno.run(&[&words[..], &["--sequential"]].concat()));
    assert_eq!(server.cli(&["DBSIZE"]).trim(), "1000");
    assert!(info(&server, "total_connections_received") - before >= 9);
}

#[test]
fn what_goes_wrong_is_said_and_has_its_exit_code() {
    let dyno = Dyno::new();
    let unused = free_port().to_string();
    for tool in ["memtier", "redis-benchmark", "valkey-benchmark"] {
        let refused = dyno.run(&[tool, "--bogus"]);
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains("bogus"), "{}", stderr(&refused));
        let absent = dyno.run(&[tool, "-p", &unused, "-n", "10"]);
        assert_exit(&absent, &[3]);
        assert!(stderr(&absent).contains("refused"), "{}", stderr(&absent));
        let version = dyno.run(&[tool, "-v"]);
        assert_exit(&version, &[0]);
        assert!(stdout(&version).lines().count() == 1, "{}", stdout(&version));
        let help = dyno.run(&[tool, "--help"]);
        assert_exit(&help, &[0]);
        assert!(stdout(&help).contains("Usage"), "{}", stdout(&help));
    }
    let Some(mut server) = RedisProcess::start(&[]) else {
        return skip("dyno memtier and a server that dies");
    };
    let target = uri(&server);
    let serves = |server: &RedisProcess, command: &str| {
        let end = Instant::now() + Duration::from_secs(60);
        while calls(server, command) < 100 {
            assert!(Instant::now() < end, "no {command} within a minute");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    // Ctrl-C: a report of what there is.
    let child = dyno.start(&[
        "memtier",
        "-u",
        &target,
        "--test-time",
        "600",
        "-c",
        "2",
        "-t",
        "1",
        "--hide-histogram",
    ]);
    serves(&server, "get");
    signal(child.id(), "INT");
    let output = finish(child);
    assert_exit(&output, &[130]);
    assert!(stdout(&output).contains("Totals"), "{}", stdout(&output));
    server.cli(&["CONFIG", "RESETSTAT"]);
    let child = dyno.start(&["redis-benchmark", "-u", &target, "-n", "1000000000", "-t", "incr", "-c", "2"]);
    serves(&server, "incr");
    server.kill();
    let output = finish(child);
    assert_exit(&output, &[5]);
    // What came before it is reported, and why there is no more.
    assert!(stderr(&output).contains("the run is given up"), "{}", stderr(&output));
    assert!(stdout(&output).contains("====== INCR ======"), "{}", stdout(&output));
}
