//! Replays whose commands wait: for the reply before them and a pause, within a transaction, or for data.

use crate::replay_lines::{Line, count_calls, line, metric, record_lines, replayed};
use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, finish, outcome, phase, signal, skip, stderr, stdout,
};
use serde_json::Value;
use std::time::Duration;

fn calls(server: &RedisProcess, name: &str) -> u64 {
    count_calls(&server.cli(&["INFO", "commandstats"])).get(name).copied().unwrap_or(0)
}

/// Waits until a server has counted so many calls.
fn await_calls(server: &RedisProcess, name: &str, count: u64) {
    let has = |_: &u32| {
        std::thread::sleep(Duration::from_millis(20));
        calls(server, name) >= count
    };
    assert!((0..500).any(|n| has(&n)), "{name}: {} of {count}", calls(server, name));
}

/// Two connections, each with a command every 20 ms for two seconds.
fn steady() -> Vec<Line> {
    (0..200).map(|n| line(n * 10, n as u32 % 2, format!("SET k{n} v"), "+")).collect()
}

#[test]
fn pauses_are_kept_behind_replies_that_come_late() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    record_lines(&dyno, &steady());
    for (pace, is_held) in [("think", false), ("due", true)] {
        server.cli(&["FLUSHALL"]);
        server.cli(&["CONFIG", "RESETSTAT"]);
        let run = dyno.start(&["replay", "t.dyno", &server.uri(), "--pace", pace, "--out", pace, "--quiet"]);
        dyno.await_phase(pace, "measure");
        await_calls(&server, "SET", 20);
        // Nothing is answered for a second.
        server.cli(&["CLIENT", "PAUSE", "1000", "ALL"]);
        let output = finish(run);
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary(pace);
        let measured = phase(&summary, "measure");
        assert_eq!(replayed(&summary)["pace"], pace);
        assert_eq!((calls(&server, "SET"), outcome(measured, "ok")), (200, 200), "{measured}");
        assert_eq!(metric(&summary, "HELD").is_object(), is_held, "{pace}: {measured}");
        let elapsed = measured["elapsed_s"].as_f64().unwrap_or_else(|| measured["seconds"].as_f64().unwrap());
        let response = metric(&summary, "SET")["response"]["mean_us"].as_f64().unwrap();
        if is_held {
            // 50 commands of each connection are due in that second: they wait half of it on average.
            assert!(elapsed < 2.8 && response > 80_000.0, "{elapsed} {response}");
        } else {
            // Two of them meet it, the others come later.
            assert!(elapsed > 2.8 && response < 60_000.0, "{elapsed} {response}");
            assert!(stdout(&output).contains("--pace think"), "{}", stdout(&output));
        }
    }
    // Twice as fast: half of the pauses.
    server.cli(&["FLUSHALL"]);
    let output =
        dyno.run(&["replay", "t.dyno", &server.uri(), "--pace", "think", "--speed", "2", "--out", "two"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("two");
    let measured = phase(&summary, "measure");
    let elapsed = measured["elapsed_s"].as_f64().unwrap_or_else(|| measured["seconds"].as_f64().unwrap());
    // 99 pauses of 10 ms less the recorded time of replies, and what the replies of now take.
    assert!((0.95..3.0).contains(&elapsed), "{elapsed}");
    assert!(stdout(&output).contains("(--pace think)"), "{}", stdout(&output));
}

#[test]
fn a_pace_that_nothing_can_follow_is_refused() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    record_lines(&dyno, &steady());
    std::fs::write(dyno.path("m.txt"), "OK\n1000.5 [0 127.0.0.1:1] \"SET\" \"a\" \"b\"\n").unwrap();
    assert_exit(&dyno.run(&["record", "m.txt", "-o", "m.dyno"]), &[0]);
    for (file, more, expected) in [
        ("t.dyno", &["--speed", "max"][..], "--speed max leaves them out"),
        ("t.dyno", &["--rate", "100"], "--rate replaces them"),
        ("m.dyno", &[], "m.dyno does not tell replies"),
    ] {
        let output = dyno.run(&[&["replay", file, &uri, "--pace", "think", "--no-out"][..], more].concat());
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(expected), "{more:?}: {}", stderr(&output));
    }
    let output = dyno.run(&["replay", "t.dyno", &uri, "--pace", "fast"]);
    assert_exit(&output, &[2]);
}

/// 16 transactions: the first, third, ... of them watch a key that another connection sets before `EXEC`.
fn transactions() -> Vec<Line> {
    let mut all = Vec::new();
    for n in 0..16 {
        let at = n * 250;
        let reply = if n % 2 == 0 { "nil" } else { "*2" };
        all.push(line(at, 0, "WATCH seen", "+"));
        all.push(line(at + 70, 1, if n % 2 == 0 { "INCR seen" } else { "INCR other" }, ":"));
        all.push(line(at + 140, 0, "MULTI", "+"));
        all.push(line(at + 142, 0, format!("SET t{n} v"), "+"));
        all.push(line(at + 144, 0, format!("GET t{n}"), "+"));
        all.push(line(at + 150, 0, "EXEC", reply));
    }
    all
}

#[test]
fn a_transaction_is_one_operation() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    record_lines(&dyno, &transactions());
    server.cli(&["CONFIG", "RESETSTAT"]);
    let output = dyno.run(&["replay", "t.dyno", &server.uri(), "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    let measured = phase(&summary, "measure");
    // WATCH, INCR, and the transaction.
    assert_eq!(arrivals(measured), 48, "{measured}");
    assert_eq!((outcome(measured, "ok"), outcome(measured, "conflict")), (40, 8), "{measured}");
    let whole = metric(&summary, "MULTI-EXEC");
    assert_eq!(
        (whole["outcomes"]["ok"].as_u64(), whole["outcomes"]["conflict"].as_u64()),
        (Some(8), Some(8))
    );
    // From MULTI's time to EXEC's reply: EXEC is due 10 ms later.
    let least = whole["response"]["min_us"].as_f64().unwrap();
    assert!((10_000.0..1_000_000.0).contains(&least), "{whole}");
    for (name, count) in [("MULTI", 16), ("SET", 16), ("GET", 16)] {
        let step = metric(&summary, &format!("MULTI-EXEC.{name}"));
        assert_eq!(step["outcomes"]["ok"], count, "{name}: {measured}");
        assert!(metric(&summary, name).is_null(), "{name}");
    }
    let exec = metric(&summary, "MULTI-EXEC.EXEC");
    assert_eq!((exec["outcomes"]["ok"].as_u64(), exec["outcomes"]["conflict"].as_u64()), (Some(8), Some(8)));
    // Every nil is one of then, and none is an error.
    let replay = replayed(&summary);
    assert_eq!((replay["compared"].as_u64(), replay["kind"].as_u64()), (Some(96), Some(0)), "{replay}");
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().all(|reason| reason["check"] != "errors"), "{reasons:?}");
    assert!(stdout(&output).contains("16 transactions, of which 8 (50.0 %)"), "{}", stdout(&output));
    for (name, count) in [("WATCH", 16), ("MULTI", 16), ("EXEC", 16), ("SET", 8), ("INCR", 16)] {
        assert_eq!(calls(&server, name), count, "{name}");
    }
}

#[test]
fn a_transaction_that_is_cut_off_has_one_end() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    // One of 400 ms every half second; the last has no end in the recording.
    let mut lines = Vec::new();
    for n in 0..8 {
        lines.push(line(n * 500, 0, "MULTI", "+"));
        lines.push(line(n * 500 + 200, 0, format!("SET t{n} v"), "+"));
        if n < 7 {
            lines.push(line(n * 500 + 400, 0, "EXEC", "*1"));
        }
    }
    record_lines(&dyno, &lines);
    let run = dyno.start(&["replay", "t.dyno", &server.uri(), "--out", "r", "--quiet"]);
    dyno.await_phase("r", "measure");
    let is_within = |_: &u32| {
        std::thread::sleep(Duration::from_millis(5));
        server.cli(&["CLIENT", "LIST", "TYPE", "normal"]).lines().any(|line| line.contains(" multi=1 "))
    };
    assert!((0..2_000).any(|n| is_within(&n)));
    server.cli(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    let output = finish(run);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    let measured = phase(&summary, "measure");
    let count = |name: &str| outcome(measured, name);
    assert_eq!((arrivals(measured), count("ok"), count("disconnected")), (8, 7, 1), "{measured}");
    let left = &replayed(&summary)["left_out"];
    assert_eq!(left["commands of transactions whose connection was lost"], 1, "{left}");
    assert_eq!(server.cli(&["DBSIZE"]), "6");
    assert_eq!(calls(&server, "EXEC"), 6);
}

#[test]
fn commands_that_wait_for_data_end_and_are_no_operations() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    let mut lines = vec![line(0, 0, "SELECT 2", "+"), line(0, 1, "SELECT 2", "+")];
    // A worker that waits for jobs: each comes 80 ms after it has asked.
    for n in 0..10 {
        let at = 20 + n * 100;
        lines.push(Line { took_ms: 80, ..line(at, 0, "BLPOP jobs 0", "*2") });
        lines.push(line(at + 80, 1, format!("RPUSH jobs j{n}"), ":"));
        lines.push(line(at + 90, 0, "INCR done", ":"));
    }
    // Then something was there; now nothing comes.
    lines.push(Line { took_ms: 100, ..line(1_100, 0, "BLPOP nothing 0", "*2") });
    lines.push(line(1_250, 0, "INCR done", ":"));
    record_lines(&dyno, &lines);
    server.cli(&["CONFIG", "RESETSTAT"]);
    let output = dyno.run(&["replay", "t.dyno", &server.uri(), "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    let measured = phase(&summary, "measure");
    let waits = metric(&summary, "BLPOP.wait");
    assert_eq!(waits["outcomes"]["ok"], 10, "{measured}");
    let median = waits["service"]["percentiles_us"]["p50"].as_f64().unwrap();
    assert!((50_000.0..400_000.0).contains(&median), "{waits}");
    // Two times SELECT and one more on the connection that was made anew, RPUSH and INCR: BLPOP is none of them.
    assert_eq!((arrivals(measured), outcome(measured, "ok")), (24, 24), "{measured}");
    // What comes behind a wait counts from its end on.
    let done = metric(&summary, "INCR")["response"]["max_us"].as_f64().unwrap();
    assert!(done < 900_000.0, "{done}");
    // 100 ms then: at most 1.2 s now, on a connection in the same database.
    assert_eq!(replayed(&summary)["cut_waits"], 1, "{}", replayed(&summary));
    assert_eq!(server.cli(&["-n", "2", "GET", "done"]), "11");
    assert_eq!(server.cli(&["EXISTS", "done"]), "0");
    assert!(stdout(&output).contains("1 commands waited for data"), "{}", stdout(&output));
    assert!(replayed(&summary)["left_out"].is_null(), "{}", replayed(&summary));
}

#[test]
fn what_is_in_a_pipeline_behind_a_wait_does_not_time_out() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    let lines = vec![
        Line { took_ms: 3_000, ..line(0, 0, "BLPOP q 0", "*2") },
        Line { took_ms: 2_980, ..line(20, 0, "INCR behind", ":") },
        line(3_000, 1, "RPUSH q job", ":"),
        line(3_020, 0, "INCR behind", ":"),
    ];
    record_lines(&dyno, &lines);
    let output = dyno.run(&["replay", "t.dyno", &server.uri(), "--timeout", "1s", "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    let measured = phase(&summary, "measure");
    assert_eq!(metric(&summary, "BLPOP.wait")["outcomes"]["ok"], 1, "{measured}");
    assert_eq!((outcome(measured, "timed_out"), outcome(measured, "ok")), (0, 3), "{measured}");
    assert_eq!((calls(&server, "INCR"), server.cli(&["GET", "behind"])), (2, "2".into()));
    // Nothing else was asked of the server for three seconds: it was not silent.
    assert!(measured["silences"].as_array().is_none_or(Vec::is_empty), "{}", measured["silences"]);
}

#[test]
fn waits_without_an_end_and_listeners_are_left_out() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    let mut text = String::from("OK\n");
    for n in 0..10 {
        text += &format!("1000.{n}00000 [0 127.0.0.1:1] \"BLPOP\" \"q\" \"0\"\n");
        text += &format!("1000.{n}10000 [0 127.0.0.1:1] \"INCR\" \"n\"\n");
        text += &format!("1000.{n}20000 [0 127.0.0.1:2] \"SUBSCRIBE\" \"c\"\n");
    }
    std::fs::write(dyno.path("m.txt"), text).unwrap();
    assert_exit(&dyno.run(&["record", "m.txt", "-o", "t.dyno"]), &[0]);
    let output = dyno.run(&["replay", "t.dyno", &server.uri(), "--out", "r"]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("r");
    assert_eq!(server.cli(&["GET", "n"]), "10");
    let left = &replayed(&summary)["left_out"];
    assert_eq!(
        left["commands that wait for data, of which it is not recorded how long they did"], 10,
        "{left}"
    );
    assert_eq!(left["commands of connections that listen for messages"], 10, "{left}");
}

#[test]
fn a_replay_that_waits_for_data_can_be_interrupted() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let dyno = Dyno::new();
    let mut lines = vec![Line { took_ms: 60_000, ..line(0, 0, "BLPOP q 0", "*2") }];
    lines.extend((0..6_000).map(|n| line(n * 10, 1, "INCR n", ":")));
    lines.sort_by_key(|line| line.at_ms);
    record_lines(&dyno, &lines);
    let run = dyno.start(&["replay", "t.dyno", &server.uri(), "--out", "r", "--quiet"]);
    dyno.await_phase("r", "measure");
    await_calls(&server, "INCR", 20);
    signal(run.id(), "INT");
    let output = finish(run);
    assert_exit(&output, &[130]);
    let summary: Value = dyno.summary("r");
    assert_eq!(outcome(phase(&summary, "measure"), "ok"), calls(&server, "INCR"));
}

#[test]
fn replies_are_compared_with_a_second_server() {
    let (Some(here), Some(there)) = (RedisProcess::start(&[]), RedisProcess::start(&[])) else {
        return skip("replay against another server");
    };
    let dyno = Dyno::new();
    // Without replies: 100 keys are set, read, and read from a key that one server lacks.
    let mut text = String::from("OK\n");
    for n in 0..100 {
        for (at, words) in [
            (0, format!("\"SET\" \"k{n}\" \"v\"")),
            (3, format!("\"GET\" \"k{n}\"")),
            (6, format!("\"GET\" \"old{n}\"")),
        ] {
            text += &format!("1000.{:06} [0 127.0.0.1:{}] {words}\n", n * 10_000 + at * 1_000, n % 4);
        }
    }
    std::fs::write(dyno.path("m.txt"), text).unwrap();
    assert_exit(&dyno.run(&["record", "m.txt", "-o", "t.dyno"]), &[0]);
    let (first, second) = (here.uri(), there.uri());
    let replay = |out: &str, more: &[&str]| {
        let words = ["replay", "t.dyno", &first, "--against", &second, "--out", out];
        dyno.run(&[&words[..], more].concat())
    };
    let output = replay("same", &[]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("same");
    let against = &replayed(&summary)["against"];
    assert_eq!(
        (against["compared"].as_u64(), against["not_compared"].as_u64()),
        (Some(300), Some(0)),
        "{against}"
    );
    for way in ["missing", "error", "kind", "size"] {
        assert_eq!(against[way], 0, "{against}");
    }
    assert!(
        stdout(&output).contains("300 replies compared with those of the other server"),
        "{}",
        stdout(&output)
    );
    // What the second server was sent is in no figure of the first.
    assert_eq!(arrivals(phase(&summary, "measure")), 300);
    for server in [&here, &there] {
        assert_eq!((calls(server, "SET"), calls(server, "GET")), (100, 200));
    }
    // It holds keys now, and so does the first.
    let refused = replay("none", &[]);
    assert_exit(&refused, &[2]);
    let named = format!("127.0.0.1:{}/0 127.0.0.1:{}/0", here.port, there.port);
    for n in 0..10 {
        there.cli(&["SET", &format!("old{n}"), "x"]);
    }
    let output = replay("other", &["--yes-write", &named]);
    assert_exit(&output, &[0, 5]);
    let summary = dyno.summary("other");
    let against = &replayed(&summary)["against"];
    assert_eq!((against["compared"].as_u64(), against["kind"].as_u64()), (Some(300), Some(10)), "{against}");
    assert_eq!(
        (against["examples"][0]["then"].as_str(), against["examples"][0]["now"].as_str()),
        (Some("1 bytes"), Some("nil"))
    );
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["check"] == "against"), "{reasons:?}");
    // One that is not there, and one that speaks another protocol.
    drop(there);
    assert_exit(&replay("gone", &["--yes-write", &named]), &[3]);
    let output =
        dyno.run(&["replay", "t.dyno", &here.uri(), "--against", "null:", "--no-out", "--only", "reads"]);
    assert_exit(&output, &[2]);
}

#[test]
fn two_replays_are_compared_with_times_of_then() {
    let (Some(one), Some(other)) = (RedisProcess::start(&[]), RedisProcess::start(&[])) else {
        return skip("replays compared");
    };
    let dyno = Dyno::new();
    // 2,000 commands a second, each with the 50 us that it took then.
    let lines: Vec<Line> =
        (0..4_000).map(|n| line(n / 2, n as u32 % 4, format!("INCR n{}", n % 50), ":")).collect();
    record_lines(&dyno, &lines);
    for (name, server) in [("A", &one), ("B", &other)] {
        let file = format!(
            "name: {name}\ntarget: '{}'\nworkload: {{recording: {{file: t.dyno, yes_write: '127.0.0.1:{}/0'}}}}\n\
             phases: {{load: {{when: never}}}}\nrepetitions: 3\n",
            server.uri(),
            server.port
        );
        std::fs::write(dyno.path(&format!("{name}.yaml")), file).unwrap();
        let output = dyno.run(&["run", &format!("{name}.yaml"), "--out", name]);
        assert_exit(&output, &[0, 5]);
    }
    let output = dyno.run(&["compare", "A", "B", "--json"]);
    // On a busy host every run may be invalid: then there is nothing to compare.
    if output.status.code() == Some(2) && stderr(&output).contains("it is invalid") {
        return;
    }
    let all: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let replays = &all[0]["replays"];
    assert_eq!((replays["differing"][0].as_f64(), replays["differing"][1].as_f64()), (Some(0.0), Some(0.0)));
    // On a busy host medians may be of no use.
    if replays["times"].as_array().unwrap().is_empty() {
        return;
    }
    let times = &replays["times"][0];
    assert_eq!(
        (times["metric"].as_str(), times["then"]["count"].as_u64().map(|n| n > 3_000)),
        (Some("INCR"), Some(true)),
        "{replays}"
    );
    assert!((times["then"]["p50_us"].as_f64().unwrap() - 50.0).abs() < 0.1, "{times}");
    let known: Vec<f64> = ["first", "second"].iter().filter_map(|side| times[side][0].as_f64()).collect();
    assert!(known.iter().all(|p50| *p50 > 1.0), "{times}");
    let names: Vec<&str> =
        all[0]["figures"].as_array().unwrap().iter().filter_map(|figure| figure["name"].as_str()).collect();
    assert!(names.contains(&"throughput"), "{names:?}");
    assert!(names.iter().all(|name| !name.starts_with("HELD")), "{names:?}");
    let text = stdout(&dyno.run(&["compare", "A", "B"]));
    assert!(text.contains("from command to reply, us: then (recorded at the proxy)"), "{text}");
}

#[test]
fn times_to_live_are_divided_by_the_speed_where_it_is_asked() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("replay") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    record_lines(
        &dyno,
        &[line(0, 0, "SET a v EX 900", "+"), line(1, 0, "SET b v", "+"), line(2, 0, "EXPIRE b 600", ":")],
    );
    let replay = |more: &[&str]| {
        server.cli(&["FLUSHALL"]);
        dyno.run(&[&["replay", "t.dyno", &uri, "--no-out"][..], more].concat())
    };
    let ttl = |key: &str| server.cli(&["TTL", key]).parse::<u64>().unwrap();
    let output = replay(&["--speed", "3"]);
    assert!(stderr(&output).contains("2 commands have relative times to live"), "{}", stderr(&output));
    assert!(ttl("a") > 800 && ttl("b") > 500);
    let output = replay(&["--speed", "3", "--scale-ttl"]);
    assert!(!stderr(&output).contains("relative times"), "{}", stderr(&output));
    assert!((250..=300).contains(&ttl("a")) && (150..=200).contains(&ttl("b")));
    for more in [&["--speed", "max", "--scale-ttl"][..], &["--rate", "10", "--scale-ttl"]] {
        let output = replay(more);
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains("--scale-ttl: there is no speed"), "{}", stderr(&output));
    }
}
