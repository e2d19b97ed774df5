//! A server that answers no client for a while, and one that lets too few connect, as a real server does both.

use dyno_testkit::{Dyno, RedisProcess, assert_exit, finish, phase, signal, skip, stderr};
use serde_json::Value;
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

fn reason(dyno: &Dyno, directory: &str, check: &str) -> Option<(String, String)> {
    let summary = dyno.summary(directory);
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let found = reasons.iter().find(|reason| reason["check"] == check)?;
    let word = |key: &str| found[key].as_str().unwrap().to_owned();
    Some((word("trust"), word("text")))
}

/// Eight of fifteen seconds, in which no operation fails: the server has said so itself.
#[test]
fn a_pause_of_the_server_is_measured_from_what_waits() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("silences") };
    let uri = server.uri();
    for (name, load) in [("closed", &["--users", "8"][..]), ("open", &["--rate", "500"])] {
        let dyno = Dyno::new();
        let common = ["--records", "1000", "--duration", "15s", "--warmup", "0s", "--quiet", "--out", name];
        let bounds = ["--require", "p50(read) < 1s", "--require", "throughput > 10"];
        let run = dyno.start(&[&["run", &uri][..], &common, load, &bounds].concat());
        dyno.await_phase(name, "measure");
        server.cli(&["CLIENT", "PAUSE", "8000", "ALL"]);
        let output = finish(run);
        assert_exit(&output, &[5]);
        let (trust, text) = reason(&dyno, name, "gone").unwrap_or_else(|| panic!("{}", stderr(&output)));
        assert_eq!(trust, "invalid", "{text}");
        let summary = dyno.summary(name);
        let silences = phase(&summary, "measure")["silences"].as_array().unwrap().clone();
        let length_s = |one: &Value| one["length_s"].as_f64().unwrap();
        let longest = silences.iter().map(length_s).fold(0.0, f64::max);
        // A pause of the client in it, on a host that is busy, leaves two of them.
        let total: f64 = silences.iter().map(length_s).sum();
        assert!((7.0..9.0).contains(&total) && longest > 3.0, "{silences:?}");
    }
}

#[test]
fn too_many_connections_are_refused_in_the_words_of_the_server() {
    let Some(server) = RedisProcess::start(&["--maxclients", "4"]) else { return skip("silences") };
    let dyno = Dyno::new();
    let output = dyno.run(&["run", &server.uri(), "--users", "8", "--records", "100", "--duration", "2s"]);
    assert_exit(&output, &[3]);
    assert!(stderr(&output).contains("max number of clients reached"), "{}", stderr(&output));
}

/// Connections that are lost on the way and cannot be made again: the load is that of fewer users.
#[test]
fn users_that_have_lost_their_connections_are_counted() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("silences") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let words = [
        "run",
        &uri,
        "--users",
        "8",
        "--records",
        "100",
        "--duration",
        "6s",
        "--warmup",
        "0s",
        "--no-monitor",
    ];
    let run = dyno.start(&[&words[..], &["--out", "r", "--quiet"]].concat());
    dyno.await_phase("r", "measure");
    std::thread::sleep(Duration::from_secs(1));
    // On one connection, which is a client, too: another one would be refused.
    let mut own = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    own.write_all(b"CONFIG SET maxclients 5\r\nCLIENT KILL TYPE normal\r\n").unwrap();
    let output = finish(run);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("r");
    let connected = phase(&summary, "measure")["client"]["connected"].as_f64().unwrap();
    // Eight for a second or two of six, five at most for the rest.
    assert!((4.0..7.0).contains(&connected), "{connected}");
    let (trust, text) = reason(&dyno, "r", "connections").unwrap();
    assert_eq!(trust, "invalid", "{text}");
    assert!(text.contains("of 8 users had a connection on average"), "{text}");
    let errors = summary["phases"].as_array().unwrap().last().unwrap()["errors"].to_string();
    assert!(errors.contains("max number of clients reached"), "{errors}");
}

/// A dyno that is killed has written no summary: what was recorded tells of the silence that had ended, and of the last one.
#[test]
fn silences_of_a_killed_run_are_told_from_what_was_recorded() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("silences") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let words = ["run", &uri, "--users", "8", "--records", "100", "--warmup", "1s", "--out", "r", "--quiet"];
    let run = dyno.start(&[&words[..], &["--duration", "60s"]].concat());
    dyno.await_phase("r", "measure");
    std::thread::sleep(Duration::from_secs(2));
    server.cli(&["CLIENT", "PAUSE", "2500", "ALL"]);
    std::thread::sleep(Duration::from_secs(5));
    server.cli(&["CLIENT", "PAUSE", "30000", "ALL"]);
    let recorded = || std::fs::read_to_string(dyno.path("r/intervals.jsonl")).unwrap().lines().count();
    let before = recorded();
    let goes_on = |_: &u32| {
        std::thread::sleep(Duration::from_millis(100));
        recorded() >= before + 4
    };
    (0..600).find(goes_on).expect("seconds without a success");
    signal(run.id(), "KILL");
    drop(finish(run));
    assert!(!dyno.path("r/summary.json").exists());
    let told = dyno.run(&["report", "r", "--format", "json"]);
    let summary: Value = serde_json::from_slice(&told.stdout).unwrap_or_else(|_| panic!("{}", stderr(&told)));
    let silences = phase(&summary, "measure")["silences"].as_array().unwrap().clone();
    let lengths: Vec<f64> = silences.iter().map(|one| one["length_s"].as_f64().unwrap()).collect();
    // Whole seconds are known of the last one. A pause of the client in the other one, on a host that is busy, leaves two of it.
    let (last, ended) = lengths.split_last().unwrap();
    assert!((2.2..2.8).contains(&ended.iter().sum::<f64>()) && *last >= 3.0, "{silences:?}");
}
