//! `dyno record` of files that other tools write, and what a replay sends of them, by the server's own counts.

use dyno_testkit::mongo::Mongo;
use dyno_testkit::{Dyno, RedisProcess, assert_exit, outcome, phase, skip, skip_because, stderr, stdout};
use serde_json::Value;

/// Calls of a command that the server has counted.
fn calls(server: &RedisProcess, name: &str) -> u64 {
    let stats = server.cli(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{name}:calls=")));
    line.and_then(|rest| rest.split(',').next()).map_or(0, |count| count.parse().unwrap())
}

/// Records `text` and sends it to `uri`; returns what was said of the recording, and the run's summary.
fn send(dyno: &Dyno, sources: &[&str], uri: &str) -> (String, Value) {
    let output = dyno.run(&[&["record"], sources, &["-o", "t.dyno"]].concat());
    assert_exit(&output, &[0]);
    let said = stdout(&output) + &stderr(&output);
    let replay = dyno.run(&["replay", "t.dyno", uri, "--speed", "max", "--out", "run"]);
    // A second of traffic is too little for percentiles.
    assert_exit(&replay, &[0, 5]);
    (said, dyno.summary("run"))
}

/// A record of Dragonfly's log of traffic.
fn record(client: u32, ms: u64, (database, more): (u32, u32), words: &[&str]) -> Vec<u8> {
    let mut out = client.to_le_bytes().to_vec();
    out.extend((1_700_000_000_000_000_000 + ms * 1_000_000).to_le_bytes());
    for number in [database, more, words.len() as u32] {
        out.extend(number.to_le_bytes());
    }
    words.iter().for_each(|word| out.extend((word.len() as u32).to_le_bytes()));
    words.iter().for_each(|word| out.extend(word.as_bytes()));
    out
}

#[test]
fn logs_of_dragonflys_threads_are_sent_once_more() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("Dragonfly's logs") };
    let dyno = Dyno::new();
    let mut logs = [vec![3, 1], vec![3, 1]];
    for n in 0..200u64 {
        let key = format!("k{n}");
        let log = &mut logs[(n % 2) as usize];
        let client = 40 + (n % 4) as u32;
        log.extend(record(client, n * 2, ((n % 2) as u32, 1), &["SET", &key, "v"]));
        log.extend(record(client, n * 2, ((n % 2) as u32, 0), &["GET", &key]));
    }
    for (number, log) in logs.iter().enumerate() {
        std::fs::write(dyno.path(&format!("traffic-00{number}.bin")), log).unwrap();
    }
    let (said, _) = send(&dyno, &["traffic-000.bin", "traffic-001.bin"], &server.uri());
    assert!(said.contains("does not tell replies and their times"), "{said}");
    assert_eq!((calls(&server, "set"), calls(&server, "get")), (200, 200));
    // Half of the connections were in database 1.
    assert_eq!((server.cli(&["DBSIZE"]), server.cli(&["-n", "1", "DBSIZE"])), ("100".into(), "100".into()));
    let refused = dyno.run(&["record", "traffic-000.bin", "--port", "6379", "-o", "other.dyno"]);
    assert_exit(&refused, &[2]);
    std::fs::write(dyno.path("memcached.bin"), [&[3, 2][..], &logs[0][2..]].concat()).unwrap();
    let refused = dyno.run(&["record", "memcached.bin", "-o", "other.dyno"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("port for memcached"), "{}", stderr(&refused));
}

#[test]
fn requests_of_a_cache_are_sent_once_more() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("traces of caches") };
    let dyno = Dyno::new();
    let mut trace = String::new();
    for n in 0..300 {
        trace += &format!("{},ns:{},12,{},{},set,600\n", n / 100, n % 50, 10 + n % 50, n % 3);
        trace += &format!("{},ns:{},12,{},{},get,0\n", n / 100, n % 50, 10 + n % 50, n % 3);
    }
    trace += "2,ns:1,12,0,1,prepend,0\n";
    std::fs::write(dyno.path("cluster.csv"), &trace).unwrap();
    let (said, _) = send(&dyno, &["cluster.csv"], &server.uri());
    assert!(said.contains("left out: 1 requests that Redis has no command for"), "{said}");
    assert!(said.contains("times finer than a second"), "{said}");
    assert_eq!((calls(&server, "set"), calls(&server, "get")), (300, 300));
    assert_eq!(server.cli(&["DBSIZE"]), "50");
    assert_eq!(server.cli(&["STRLEN", "ns:7........"]), "17");
    assert_ne!(server.cli(&["TTL", "ns:7........"]), "-1");
}

#[test]
fn a_command_log_has_replies_to_compare_with() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("command logs") };
    let dyno = Dyno::new();
    let mut log = String::new();
    for n in 0..100 {
        let time = format!("2025-07-16T17:00:{:02}.{:03}Z", n / 50, n % 50 * 20);
        log += &format!("{time} \"get k{n}\" 0 0\n{time} \"set k{n} 0 60 {}\" 5 8\n", n + 1);
        log += &format!(
            "{time} {{\"command\": \"get\", \"key\": \"k{n}\", \"response_status\": \"4\", \"response_size\": \"{}\"}}\n",
            n + 1
        );
    }
    std::fs::write(dyno.path("command.log"), &log).unwrap();
    let (_, summary) = send(&dyno, &["command.log"], &server.uri());
    assert_eq!((calls(&server, "set"), calls(&server, "get")), (100, 200));
    let replay = &phase(&summary, "measure")["replay"];
    let ways: Vec<_> =
        ["compared", "missing", "error", "kind", "size"].map(|way| replay[way].as_u64()).to_vec();
    assert_eq!(ways, [Some(300), Some(0), Some(0), Some(0), Some(0)], "{replay}");
}

#[test]
fn a_playback_file_of_mongoreplay_is_sent_once_more() {
    let Some(server) = Mongo::mongod() else {
        return skip_because("playback files", "mongod is not on PATH");
    };
    let dyno = Dyno::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/tests/data/mongoreplay-4.0.playback.gz");
    let (said, summary) = send(&dyno, &[file], &server.uri(""));
    assert!(said.contains("checks of the server"), "{said}");
    let metrics = phase(&summary, "measure")["metrics"].as_array().unwrap();
    let sent = |name: &str| {
        let metric = metrics.iter().find(|metric| metric["name"].as_str() == Some(name));
        metric.map_or(0, |metric| outcome(metric, "ok"))
    };
    assert_eq!((sent("FIND"), sent("GETMORE"), sent("UPDATE"), sent("DELETE")), (1, 2, 1, 1), "{summary}");
}
