//! `dyno record` and `dyno replay`. What was sent is held against the server's own counts.

use dyno_recording::entry::Arguments;
use dyno_recording::{
    Entry, RecordedKind, RecordedProtocol, RecordedReply, RecordingHeader, RecordingPoint, RecordingWriter,
};
use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, finish, outcome, phase, signal, skip, stderr, stdout,
};
use dyno_types::command::ReplyKind;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Command, Stdio};

/// Calls that the server has counted since `CONFIG RESETSTAT`, by command.
fn calls(server: &RedisProcess) -> BTreeMap<String, u64> {
    let stats = server.cli(&["INFO", "commandstats"]);
    let one = |line: &str| {
        let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
        Some((name.to_uppercase(), rest.split(',').next()?.parse().ok()?))
    };
    // What asks for the counts, and what sets them back.
    stats
        .lines()
        .filter_map(one)
        .filter(|(name, _)| !["INFO", "CONFIG|RESETSTAT"].contains(&name.as_str()))
        .collect()
}

/// Outcomes of the measured phase that are `ok`, by metric.
fn sent(summary: &Value) -> BTreeMap<String, u64> {
    let metrics = phase(summary, "measure")["metrics"].as_array().unwrap();
    let one = |metric: &Value| {
        let name = metric["name"].as_str().unwrap().to_owned();
        (name, metric["outcomes"]["ok"].as_u64().unwrap_or(0))
    };
    metrics.iter().map(one).filter(|(name, _)| name != "HELD").collect()
}

/// A digest of all keys and values of the first database.
fn digest(server: &RedisProcess) -> String {
    let script = "local k = redis.call('KEYS', '*') table.sort(k) local s = '' for _, x in ipairs(k) do s = s .. x .. \
                  redis.call('DUMP', x) end return redis.sha1hex(s)";
    server.cli(&["EVAL", script, "0"])
}

fn monitor_line(ms: u64, database: u32, client: u32, text: &str) -> String {
    let quoted: Vec<String> = text.split(' ').map(|word| format!("\"{word}\"")).collect();
    format!(
        "{}.{:06} [{database} 127.0.0.1:{client}] {}\n",
        1_000 + ms / 1_000,
        ms % 1_000 * 1_000,
        quoted.join(" ")
    )
}

/// Three connections for so many milliseconds: each sends a command every 10 ms, the third one in database 2.
fn traffic(length_ms: u64) -> String {
    let mut text = String::from("OK\n");
    for ms in (0..length_ms).step_by(10) {
        text += &monitor_line(ms, 0, 1, &format!("SET k{ms} v"));
        text += &monitor_line(ms + 1, 0, 2, &format!("GET k{ms}"));
        text += &monitor_line(ms + 2, 2, 3, "INCR n");
    }
    text
}

fn recorded(dyno: &Dyno, text: &str) {
    std::fs::write(dyno.path("monitor.txt"), text).unwrap();
    let output = dyno.run(&["record", "monitor.txt", "-o", "t.dyno"]);
    assert_exit(&output, &[0]);
}

/// A recording with replies: `GET`s on a connection each, with the length of what they found.
fn with_replies(dyno: &Dyno, replies: &[(&str, Option<u64>)]) {
    let header = RecordingHeader {
        protocol: RecordedProtocol::Redis,
        source: "capture".into(),
        point: RecordingPoint::Proxy,
        begins_ns: None,
        clock_step_ns: 1,
        lacks: Vec::new(),
        value_limit: 1 << 16,
    };
    let mut writer = RecordingWriter::create_file(&dyno.path("t.dyno"), &header).unwrap();
    for (number, (key, size)) in replies.iter().enumerate() {
        let kind = if size.is_some() { ReplyKind::Text } else { ReplyKind::Nil };
        let reply = RecordedReply {
            kind: RecordedKind::Reply(kind),
            size: size.unwrap_or(0),
            error: String::new(),
            after_ns: Some(1_000 * (number as u64 + 1)),
        };
        let entry = Entry {
            at_ns: number as u64 * 1_000_000,
            connection: number as u32 % 4,
            arguments: Arguments::from_words(["GET", key]),
            reply: Some(reply),
            ..Entry::default()
        };
        writer.push_entry(&entry).unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn what_monitor_saw_is_sent_once_more() {
    let (Some(then), Some(now)) = (RedisProcess::start(&[]), RedisProcess::start(&[])) else {
        return skip("replay");
    };
    let dyno = Dyno::new();
    let file = File::create(dyno.path("monitor.txt")).unwrap();
    let port = then.port.to_string();
    let mut monitor = Command::new("redis-cli")
        .args(["-p", &port, "MONITOR"])
        .stdout(file)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let listens = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        then.cli(&["INFO", "clients"]).contains("connected_clients:2")
    };
    assert!((0..500).any(|n| listens(&n)), "MONITOR listens");
    then.cli(&["CONFIG", "RESETSTAT"]);
    // Commands of several kinds, binary values, a script that calls others, a transaction, another database.
    let script = "redis.call('INCR', KEYS[1]); return redis.call('INCR', KEYS[1])";
    for words in [
        &["SET", "bin", "a\u{1}\"\\\n\t\u{7f}é"][..],
        &["-n", "3", "HSET", "h", "f", "1", "g", ""],
        &["EVAL", script, "1", "counter"],
        &["GET", "bin"],
        &["-n", "3", "HGETALL", "h"],
        &["ZADD", "z", "1", "a", "2", "b"],
        &["FLUSHDB"],
        &["SET", "after", "1"],
    ] {
        then.cli(words);
    }
    let run = dyno.run(&[
        "run",
        &then.uri(),
        "--no-load",
        "--users",
        "4",
        "--ops",
        "2000",
        "--warmup",
        "0s",
        "--out",
        "first",
        "--command",
        "SET key:%{int:1-50} %{string:5-60}",
        "--command",
        "GET key:%{int:1-50}",
        "--command",
        "INCR n",
    ]);
    dyno.assert_ran(&run);
    let seen = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let text = std::fs::read(dyno.path("monitor.txt")).unwrap();
        text.windows(6).filter(|six| six == b"\"INCR\"").count() as u64 >= calls(&then)["INCR"] - 2
    };
    assert!((0..500).any(|n| seen(&n)), "MONITOR has written all");
    let _ = monitor.kill();
    let _ = monitor.wait();
    let before = calls(&then);
    let output = dyno.run(&["record", "monitor.txt", "-o", "t.dyno"]);
    assert_exit(&output, &[0]);
    let said = stdout(&output) + &stderr(&output);
    assert!(said.contains("left out: 2 commands that scripts have called"), "{said}");
    assert!(said.contains("does not tell replies and their times"), "{said}");
    now.cli(&["CONFIG", "RESETSTAT"]);
    let replay = dyno.run(&["replay", "t.dyno", &now.uri(), "--speed", "max", "--out", "second"]);
    assert_exit(&replay, &[0, 5]);
    let (sent, after) = (sent(&dyno.summary("second")), calls(&now));
    for name in ["GET", "SET", "HSET", "HGETALL", "EVAL", "ZADD"] {
        assert_eq!(after.get(name), before.get(name), "{name}: {after:?} {before:?}");
        assert_eq!(sent.get(name), before.get(name), "{name}: {sent:?}");
    }
    // The two that the script called are the server's own.
    assert_eq!(sent["INCR"] + 2, before["INCR"]);
    assert_eq!(after["INCR"], before["INCR"]);
    assert!(!after.contains_key("FLUSHDB") && before.contains_key("FLUSHDB"));
    assert!(
        stderr(&replay).contains("not sent: 1 commands that administer the server"),
        "{}",
        stderr(&replay)
    );
    // FLUSHDB was not sent: what was set before it is there. Connections run side by side, so that the values of `key:*` depend
    // on which came last.
    assert_eq!((now.cli(&["EXISTS", "bin"]), then.cli(&["EXISTS", "bin"])), ("1".into(), "0".into()));
    assert_eq!(now.cli(&["GET", "n"]), then.cli(&["GET", "n"]));
    assert_eq!(now.cli(&["-n", "3", "HGETALL", "h"]), then.cli(&["-n", "3", "HGETALL", "h"]));
    assert_eq!(now.cli(&["GET", "counter"]), "2");
}

#[test]
fn commands_are_due_when_they_were() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    recorded(&dyno, &traffic(3_000));
    for (speed, seconds) in [("1", 3.0), ("3x", 1.0)] {
        server.cli(&["FLUSHALL"]);
        server.cli(&["CONFIG", "RESETSTAT"]);
        let output = dyno.run(&["replay", "t.dyno", &server.uri(), "--speed", speed, "--out", speed]);
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary(speed);
        let measured = phase(&summary, "measure");
        // 900 commands, and the SELECT that the third connection needs.
        assert_eq!((arrivals(measured), outcome(measured, "ok")), (901, 901));
        let length = measured["seconds"].as_f64().unwrap();
        assert!((length - seconds * (2_992.0 / 3_000.0)).abs() < 0.01, "{speed}: {length}");
        assert!((measured["offered"].as_f64().unwrap() - 901.0 / length).abs() < 1.0);
        let after = calls(&server);
        assert_eq!((after["SET"], after["GET"], after["INCR"], after["SELECT"]), (300, 300, 300, 1));
        assert_eq!(server.cli(&["-n", "2", "GET", "n"]), "300");
        assert_eq!(server.cli(&["DBSIZE"]), "300");
        assert_eq!(measured["client"]["users"], 3);
    }
}

#[test]
fn commands_are_due_at_a_rate_in_place_of_their_times() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    recorded(&dyno, &traffic(3_000));
    for arrivals_are in ["constant", "poisson"] {
        server.cli(&["FLUSHALL"]);
        server.cli(&["CONFIG", "RESETSTAT"]);
        let options = ["--rate", "600", "--arrivals", arrivals_are, "--out", arrivals_are];
        let output = dyno.run(&[&["replay", "t.dyno", &server.uri()][..], &options].concat());
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary(arrivals_are);
        let measured = phase(&summary, "measure");
        // 901 commands at 600/s: the last is due after 1.5 s, or what 900 random gaps make: 30 of them more or fewer are a
        // deviation.
        let (sent, length) = (outcome(measured, "ok"), measured["seconds"].as_f64().unwrap());
        assert!((length - 901.0 / 600.0).abs() < 0.01, "{arrivals_are}: {length}");
        assert!(sent <= 901 && sent > 780, "{arrivals_are}: {sent}");
        // In the order of then: a key is set and then read, by two connections.
        let (set, get) = (calls(&server)["SET"], calls(&server)["GET"]);
        assert!(set.abs_diff(get) <= 1 && set.abs_diff(sent / 3) <= 1, "{set} {get} {sent}");
    }
    // Two workers have the connections between them, and each the times that its commands would have alone.
    server.cli(&["FLUSHALL"]);
    let file = format!(
        "target: '{}'\nworkload: {{recording: {{file: t.dyno}}}}\nclient: {{workers: 2}}\n\
         phases: {{load: {{when: never}}, measure: {{rate: 600, arrivals: constant}}}}\n",
        server.uri()
    );
    std::fs::write(dyno.path("e.yaml"), file).unwrap();
    dyno.run(&["run", "e.yaml", "--out", "workers"]);
    let found = std::fs::read_dir(dyno.path("workers/runs")).unwrap().next().unwrap().unwrap().path();
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(found.join("summary.json")).unwrap()).unwrap();
    let measured = phase(&summary, "measure");
    let length = measured["seconds"].as_f64().unwrap();
    assert_eq!(outcome(measured, "ok"), 901, "{measured}");
    assert!((length - 901.0 / 600.0).abs() < 0.01, "{length}");
    let refused = dyno.run(&["replay", "t.dyno", &server.uri(), "--rate", "600", "--speed", "2"]);
    assert_exit(&refused, &[2]);
    let refused = dyno.run(&["replay", "t.dyno", &server.uri(), "--rate", "ramp:1-2:1s"]);
    assert_exit(&refused, &[2]);
    assert!(stderr(&refused).contains("constant rate"), "{}", stderr(&refused));
}

#[test]
fn absolute_expiries_are_as_far_away_as_they_were() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    // Lines of MONITOR at 1,000 s since 1970.
    let mut text = monitor_line(0, 0, 1, "SET a v EXAT 1500");
    text += &monitor_line(1, 0, 1, "SET b v EX 500");
    text += &monitor_line(2, 0, 1, "SET c v");
    text += &monitor_line(3, 0, 1, "PEXPIREAT c 1500000");
    recorded(&dyno, &text);
    let output = dyno.run(&["replay", "t.dyno", &server.uri()]);
    assert_exit(&output, &[0, 5]);
    for key in ["a", "b", "c"] {
        let left: i64 = server.cli(&["TTL", key]).parse().unwrap();
        assert!((400..=502).contains(&left), "{key}: {left}");
    }
}

#[test]
fn a_part_a_half_and_workers() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    recorded(&dyno, &traffic(1_000));
    let replay = |out: &str, more: &[&str]| {
        server.cli(&["FLUSHALL"]);
        let output =
            dyno.run(&[&["replay", "t.dyno", &uri, "--speed", "max", "--out", out][..], more].concat());
        assert_exit(&output, &[0, 5]);
        sent(&dyno.summary(out))
    };
    let counts = |set: u64, get: u64, incr: u64| {
        let all = [("GET", get), ("INCR", incr), ("SELECT", 1), ("SET", set)];
        all.into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| (name.to_owned(), n))
            .collect::<BTreeMap<_, _>>()
    };
    assert_eq!(replay("part", &["--from", "500ms", "--to", "600ms"]), counts(10, 10, 10));
    assert_eq!(server.cli(&["-n", "2", "GET", "n"]), "10");
    assert_eq!(replay("reads", &["--only", "reads"]), counts(0, 100, 0));
    assert_eq!(replay("writes", &["--only", "writes"]), counts(100, 0, 100));
    let file = format!(
        "target: '{uri}'\nworkload: {{recording: {{file: t.dyno, speed: max}}}}\nclient: {{workers: 2}}\n\
         phases: {{load: {{when: never}}}}\n"
    );
    std::fs::write(dyno.path("e.yaml"), file).unwrap();
    server.cli(&["FLUSHALL"]);
    server.cli(&["CONFIG", "RESETSTAT"]);
    let output = dyno.run(&["run", "e.yaml", "--out", "workers"]);
    assert_exit(&output, &[0, 5]);
    let after = calls(&server);
    assert_eq!((after["SET"], after["GET"], after["INCR"]), (100, 100, 100), "{}", stderr(&output));
    assert_eq!(server.cli(&["-n", "2", "GET", "n"]), "100");
}

#[test]
fn replies_are_compared_with_those_of_then() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let all: Vec<(String, Option<u64>)> =
        (0..200).map(|n| (format!("k{n}"), (n % 2 == 0).then_some(n % 7 + 1))).collect();
    let replies: Vec<(&str, Option<u64>)> = all.iter().map(|(key, size)| (key.as_str(), *size)).collect();
    with_replies(&dyno, &replies);
    for (key, size) in &all {
        if let Some(size) = size {
            server.cli(&["SET", key, &"x".repeat(*size as usize)]);
        }
    }
    let output = dyno.run(&["replay", "t.dyno", &uri, "--out", "same"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("same");
    let replay = &phase(&summary, "measure")["replay"];
    assert_eq!(
        (replay["compared"].as_u64(), replay["kind"].as_u64(), replay["size"].as_u64()),
        (Some(200), Some(0), Some(0))
    );
    let checks = |summary: &Value| {
        let reasons = summary["verdict"]["reasons"].as_array().unwrap().clone();
        reasons.into_iter().filter(|reason| reason["check"] == "divergence").collect::<Vec<_>>()
    };
    assert!(checks(&summary).is_empty());
    // Replies took 1 to 200 microseconds then.
    let then = &replay["then"]["GET"];
    let (p50, p99) = (then["p50_us"].as_f64().unwrap(), then["p99_us"].as_f64().unwrap());
    assert!((p50 - 100.0).abs() < 1.0 && (p99 - 198.0).abs() < 1.0 && then["count"] == 200, "{then}");
    assert!(stdout(&output).contains("200 replies compared, 0 differ"), "{}", stdout(&output));
    // Another data set: 20 keys are gone, 5 have another length.
    for n in (0..40).step_by(2) {
        server.cli(&["DEL", &format!("k{n}")]);
    }
    for n in (100..110).step_by(2) {
        server.cli(&["APPEND", &format!("k{n}"), "y"]);
    }
    let output = dyno.run(&["replay", "t.dyno", &uri, "--out", "other"]);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("other");
    let replay = &phase(&summary, "measure")["replay"];
    assert_eq!(
        (replay["kind"].as_u64(), replay["size"].as_u64(), replay["connections"].as_u64()),
        (Some(20), Some(5), Some(2))
    );
    let found = checks(&summary);
    assert!(found.len() == 1 && found[0]["trust"] == "invalid", "{found:?}");
    let text = found[0]["text"].as_str().unwrap();
    assert!(
        text.contains("25 of 200 replies (12.5 %)") && text.contains("GET k0: then 1 bytes, now nil"),
        "{text}"
    );
}

#[test]
fn workers_compare_their_replies_too() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let all: Vec<(String, Option<u64>)> = (0..200).map(|n| (format!("k{n}"), Some(n % 7 + 1))).collect();
    let replies: Vec<(&str, Option<u64>)> = all.iter().map(|(key, size)| (key.as_str(), *size)).collect();
    with_replies(&dyno, &replies);
    // Half of the keys are there.
    for (key, size) in all.iter().step_by(2) {
        server.cli(&["SET", key, &"x".repeat(size.unwrap_or(0) as usize)]);
    }
    let file = format!(
        "target: '{uri}'\nworkload: {{recording: {{file: t.dyno}}}}\nclient: {{workers: 2}}\nphases: {{load: {{when: never}}}}\n"
    );
    std::fs::write(dyno.path("e.yaml"), file).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "e"]);
    let found = std::fs::read_dir(dyno.path("e/runs")).unwrap().next().unwrap().unwrap().path();
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(found.join("summary.json")).unwrap()).unwrap();
    let replay = &phase(&summary, "measure")["replay"];
    assert_eq!(
        (replay["compared"].as_u64(), replay["kind"].as_u64()),
        (Some(200), Some(100)),
        "{}",
        stderr(&output)
    );
    assert_eq!(replay["then"]["GET"]["count"], 200);
}

#[test]
fn a_connection_that_is_closed_while_it_is_idle_goes_back_to_its_database() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    recorded(&dyno, &traffic(4_000));
    let run = dyno.start(&["replay", "t.dyno", &server.uri(), "--out", "r", "--quiet"]);
    dyno.await_phase("r", "measure");
    let many = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        server.cli(&["DBSIZE"]).parse::<u64>().is_ok_and(|keys| keys > 50)
    };
    assert!((0..500).any(|n| many(&n)));
    for _ in 0..3 {
        server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        std::thread::sleep(std::time::Duration::from_millis(105));
    }
    let output = finish(run);
    assert_exit(&output, &[0, 5]);
    let after = calls(&server);
    assert!(after["SELECT"] >= 3, "{after:?}");
    // Every count went to the database of the connection.
    assert_eq!(server.cli(&["-n", "2", "GET", "n"]).parse::<u64>().unwrap(), after["INCR"]);
    assert_eq!(server.cli(&["EXISTS", "n"]), "0");
    assert!(after["INCR"] >= 390, "{after:?}");
}

#[test]
fn what_a_server_refuses_to_select_is_not_sent_elsewhere() {
    let Some(server) = RedisProcess::start(&["--databases", "1"]) else { return skip("replay") };
    let dyno = Dyno::new();
    recorded(&dyno, &traffic(200));
    let output = dyno.run(&["replay", "t.dyno", &server.uri(), "--speed", "max", "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    assert_eq!(server.cli(&["EXISTS", "n"]), "0");
    let left = &phase(&summary, "measure")["replay"]["left_out"];
    assert_eq!(left["commands behind a SELECT or HELLO that the server refused"], 20, "{left}");
}

#[test]
fn a_server_that_holds_data_is_not_written_to() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    recorded(&dyno, &traffic(200));
    server.cli(&["-n", "5", "MSET", "a", "1", "b", "2"]);
    let replay = |more: &[&str]| {
        dyno.run(&[&["replay", "t.dyno", &uri, "--speed", "max", "--no-out"][..], more].concat())
    };
    let refused = replay(&[]);
    assert_exit(&refused, &[2]);
    // The third connection selects database 2.
    let name = format!("127.0.0.1:{}/0,2", server.port);
    let said = stderr(&refused);
    assert!(said.contains("holds 2 keys") && said.contains(&format!("--yes-write {name}")), "{said}");
    assert!(said.contains("20 INCR, 20 SET") && server.cli(&["DBSIZE"]) == "0", "{said}");
    assert_exit(&replay(&["--yes-write", &format!("127.0.0.1:{}/0", server.port)]), &[2]);
    assert_exit(&replay(&["--only", "reads"]), &[0, 5]);
    assert_eq!(server.cli(&["DBSIZE"]), "0");
    assert_exit(&replay(&["--yes-write", &name]), &[0, 5]);
    assert_eq!((server.cli(&["DBSIZE"]), server.cli(&["-n", "5", "DBSIZE"])), ("20".into(), "2".into()));
}

#[test]
fn a_server_that_dies_and_one_that_is_not_there() {
    let Some(mut server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    recorded(&dyno, &traffic(4_000));
    let run = dyno.start(&["replay", "t.dyno", &server.uri(), "--out", "r", "--quiet"]);
    dyno.await_phase("r", "measure");
    let many = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        server.cli(&["DBSIZE"]).parse::<u64>().is_ok_and(|keys| keys > 50)
    };
    assert!((0..500).any(|n| many(&n)));
    server.kill();
    server.restart();
    let output = finish(run);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    let measured = phase(&summary, "measure");
    // Every command has an outcome, and those after the restart went on: also in their own databases.
    let ok = outcome(measured, "ok");
    assert!(arrivals(measured) >= 1_201 && ok > 600 && ok < arrivals(measured), "{measured}");
    assert_eq!(server.cli(&["DBSIZE"]).parse::<u64>().unwrap(), calls(&server)["SET"]);
    assert_eq!(server.cli(&["-n", "2", "GET", "n"]).parse::<u64>().unwrap(), calls(&server)["INCR"]);
    let uri = server.uri();
    drop(server);
    let gone = dyno.run(&["replay", "t.dyno", &uri, "--no-out"]);
    assert_exit(&gone, &[3]);
}

#[test]
fn a_replay_that_is_interrupted_keeps_what_it_has() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    recorded(&dyno, &traffic(60_000));
    let run = dyno.start(&["replay", "t.dyno", &server.uri(), "--out", "r", "--quiet"]);
    dyno.await_phase("r", "measure");
    let many = |_: &u32| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        server.cli(&["DBSIZE"]).parse::<u64>().is_ok_and(|keys| keys > 20)
    };
    assert!((0..500).any(|n| many(&n)));
    signal(run.id(), "INT");
    let output = finish(run);
    assert_exit(&output, &[130]);
    let summary = dyno.summary("r");
    assert_eq!(summary["status"], "interrupted");
    assert_eq!(sent(&summary)["SET"], calls(&server)["SET"]);
}

#[test]
fn what_cannot_be_recorded_or_replayed_is_refused() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    recorded(&dyno, &traffic(100));
    let refused = |words: &[&str], expected: &str| {
        let output = dyno.run(words);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    };
    refused(&["record", "monitor.txt", "-o", "t.dyno"], "it is there already");
    refused(&["record", "nothing.txt", "-o", "u.dyno"], "nothing.txt: No such file");
    std::fs::write(dyno.path("other.txt"), "select * from t\n").unwrap();
    refused(
        &["record", "other.txt", "-o", "u.dyno"],
        "the output of redis-cli MONITOR, an append-only file or a snapshot",
    );
    refused(&["record", "other.txt", "--kind", "monitor", "-o", "u.dyno"], "it has no lines of MONITOR");
    assert!(!dyno.path("u.dyno").exists());
    refused(&["replay", "monitor.txt", &uri], "it is no recording of dyno");
    refused(&["replay", "t.dyno"], "expected a target");
    refused(&["replay", "t.dyno", &uri, "--speed", "0"], "a number above 0");
    refused(&["replay", "t.dyno", &uri, "--from", "2s", "--to", "1s"], "expected a time after 2s");
    refused(&["replay", "t.dyno", &uri, "--from", "1h"], "it holds no commands");
    refused(&["replay", "t.dyno", &uri, "--ops", "5"], "--ops");
    refused(&["replay", "t.dyno", "null:"], "expected a target that speaks it");
    refused(&["run", &uri, "--speed", "2"], "--recording");
    // Half a file is replayed as far as it goes, and says so.
    let whole = std::fs::read(dyno.path("t.dyno")).unwrap();
    std::fs::write(dyno.path("half.dyno"), &whole[..whole.len() - 20]).unwrap();
    let output = dyno.run(&["replay", "half.dyno", &uri, "--speed", "max", "--no-out"]);
    assert_exit(&output, &[0, 5]);
    assert!(stderr(&output).contains("it was cut off"), "{}", stderr(&output));
    assert_eq!(server.cli(&["DBSIZE"]), "10");
}

#[test]
fn an_append_only_file_is_traffic() {
    let Some(then) = RedisProcess::start(&[
        "--appendonly",
        "yes",
        "--aof-timestamp-enabled",
        "yes",
        "--appendfsync",
        "always",
    ]) else {
        return skip("replay of an append-only file");
    };
    let Some(now) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    for n in 0..30 {
        then.cli(&["SET", &format!("k{n}"), &"v".repeat(n)]);
        then.cli(&["GET", "k0"]);
    }
    then.cli(&["-n", "2", "SADD", "s", "a", "b"]);
    then.cli(&["DEL", "k3"]);
    let folder = then.folder().join("appendonlydir");
    let found = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let Some(file) = found.into_iter().find(|path| path.to_string_lossy().ends_with(".incr.aof")) else {
        return skip("append-only files of several parts");
    };
    let output = dyno.run(&["record", &file.display().to_string(), "-o", "w.dyno"]);
    assert_exit(&output, &[0]);
    let output = dyno.run(&["replay", "w.dyno", &now.uri(), "--speed", "max", "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    assert_eq!(digest(&now), digest(&then), "{}", stderr(&output));
    assert_eq!((now.cli(&["DBSIZE"]), now.cli(&["-n", "2", "SCARD", "s"])), ("29".into(), "2".into()));
}

/// Lengths of the values of all keys that match, ordered.
fn lengths(server: &RedisProcess, pattern: &str) -> Vec<u64> {
    let script = "local out = {} for _, key in ipairs(redis.call('KEYS', ARGV[1])) do table.insert(out, redis.call('STRLEN', \
                  key)) end return table.concat(out, ' ')";
    let mut all: Vec<u64> =
        server.cli(&["EVAL", script, "0", pattern]).split(' ').filter_map(|n| n.parse().ok()).collect();
    all.sort_unstable();
    all
}

#[test]
fn what_is_learned_behaves_like_the_recording() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("learning") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    // Three quarters read, a fifth writes, the rest counts; popular keys as 1/rank says, values of 20 to 219 bytes.
    let mut text = String::new();
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for n in 0..20_000u64 {
        let rank = (1_000f64.powf(draw(1_000_000) as f64 / 1e6)) as u64;
        let message = match draw(100) {
            0..75 => format!("GET item:{rank}"),
            75..95 => format!("SET item:{rank} {}", "v".repeat(20 + draw(200) as usize)),
            _ => "INCR visits".to_owned(),
        };
        text += &monitor_line(n, 0, n as u32 % 5, &message);
    }
    recorded(&dyno, &text);
    let output = dyno.run(&["learn", "t.dyno", "-o", "work.yaml"]);
    assert_exit(&output, &[0]);
    let said = stdout(&output);
    assert!(said.contains("1000.1 operations a second on 5 connections"), "{said}");
    // The first of a thousand keys has ln(2) / ln(1000) of the requests, 10.03 %; three standard deviations are 0.65 points.
    let first = said.split("the most popular key ").nth(1);
    let first = first.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
    assert!(
        said.contains("item:%{n}: ") && first.is_some_and(|share| (share - 10.03).abs() < 0.65),
        "{said}"
    );
    server.cli(&["CONFIG", "RESETSTAT"]);
    let run = dyno.run(&[
        "run",
        &uri,
        "--workload",
        "work.yaml",
        "--users",
        "4",
        "--ops",
        "20480",
        "--warmup",
        "0s",
        "--out",
        "d",
    ]);
    dyno.assert_ran(&run);
    let after = calls(&server);
    let share = |name: &str| after[name] as f64 / 20_480.0;
    let keys = server.cli(&["DBSIZE"]).parse::<u64>().unwrap();
    // The load sets each key once, and the counter.
    assert!((share("GET") - 0.75).abs() < 0.01, "{after:?}");
    assert!((after["SET"] as f64 - (keys - 1) as f64 - 0.2 * 20_480.0).abs() < 250.0, "{after:?}");
    // There were 999 keys, of which some were never asked for, and the counter.
    assert!((980..=1_020).contains(&keys), "{keys}");
    // The length of half of the values is below 120, as it was: within a twentieth.
    let lengths = lengths(&server, "item:*");
    let median = lengths[lengths.len() / 2];
    assert!(
        (112..=128).contains(&median) && lengths[0] >= 20 && lengths[lengths.len() - 1] <= 219,
        "{median}"
    );
    let again = dyno.run(&["learn", "t.dyno", "-o", "work.yaml"]);
    assert_exit(&again, &[2]);
    assert!(stderr(&again).contains("work.yaml: File exists"), "{}", stderr(&again));
}

/// Pages of a shop: each reads and renews one of eight sessions at a time, and reads a product.
#[test]
fn sequences_and_keys_that_come_and_go_are_learned() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("learning") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let mut text = String::new();
    for page in 0..4_000u64 {
        let (at, place, product) = (page * 25, page % 8, page * 7_919 % 1_000);
        let session = (page + place * 50) / 400 * 8 + place;
        for (step, line) in [
            format!("GET session:{session}"),
            format!("EXPIRE session:{session} 600"),
            format!("HGETALL product:{product}"),
        ]
        .iter()
        .enumerate()
        {
            text += &monitor_line(at + step as u64, 0, page as u32 % 4, line);
        }
    }
    recorded(&dyno, &text);
    let output = dyno.run(&["learn", "t.dyno", "-o", "work.yaml"]);
    assert_exit(&output, &[0]);
    let said = stdout(&output);
    // 40 pages a second.
    assert!(said.contains("40.0 operations a second on 4 connections"), "{said}");
    assert!(said.contains("sequences of 1 form,") && said.contains("hold 100.0 % of the commands"), "{said}");
    let told = said.split("session:%{n}: ").nth(1).and_then(|rest| rest.split("popularity ").nth(1)).unwrap();
    let at_a_time: u64 = told.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{said}"));
    assert!((7..=9).contains(&at_a_time), "{said}");
    server.cli(&["CONFIG", "SET", "slowlog-max-len", "4000"]);
    for number in 0..88 {
        server.cli(&["SET", &format!("session:{number}"), "x"]);
    }
    server.cli(&["HSET", "product:0", "name", "x"]);
    server.cli(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    let common = ["--users", "1", "--ops", "300", "--warmup", "0s", "--no-load", "--out", "d"];
    let run = dyno.run(&[&["run", &uri, "--workload", "work.yaml"][..], &common].concat());
    dyno.assert_ran(&run);
    // What Redis has noted, the newest first: each page renews the session that it has read.
    let noted = server.cli(&["SLOWLOG", "GET", "4000"]);
    let lines: Vec<&str> = noted.lines().map(str::trim).collect();
    let sent: Vec<(&str, &str)> = lines
        .windows(3)
        // Which arguments are keys was asked before.
        .filter(|three| three[0] != "GETKEYS" && ["GET", "EXPIRE", "HGETALL"].contains(&three[1]))
        .filter(|three| three[2].starts_with("session:") || three[2].starts_with("product:"))
        .map(|three| (three[1], three[2]))
        .collect();
    assert_eq!(sent.len(), 900, "{}", sent.len());
    let mut sessions = Vec::new();
    for page in sent.chunks(3) {
        let [(third, product), (second, renewed), (first, read)] = page else { panic!("{page:?}") };
        assert_eq!((*first, *second, *third, read), ("GET", "EXPIRE", "HGETALL", renewed), "{page:?}");
        assert!(product.starts_with("product:"), "{page:?}");
        sessions.push(*read);
    }
    // 300 pages see the sessions of their time, and not all 88.
    sessions.sort_unstable();
    sessions.dedup();
    assert!((8..=18).contains(&sessions.len()), "{sessions:?}");
}
