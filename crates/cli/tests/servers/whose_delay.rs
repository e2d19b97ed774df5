//! Whose delay it was: dyno itself or its server is stopped for a while, and the right one must be named.

use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, finish, outcome, phase, signal, skip, stderr, stdout,
};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Output};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Stops `pid` for `stop` once the measured phase of the run in `directory` is under way, and waits for the end of `dyno`.
fn stopped(dyno: &Dyno, directory: &str, (pid, stop): (u32, Duration), run: Child) -> Output {
    dyno.await_phase(directory, "measure");
    signal(pid, "STOP");
    std::thread::sleep(stop);
    signal(pid, "CONT");
    finish(run)
}

/// A relay before a server. It stops its client for 6 s when the first request of one connection has come, and passes that
/// request on: the server answers meanwhile.
struct StoppingRelay {
    port: u16,
    /// Takes the process id of the client.
    client: Sender<u32>,
    /// Says that the client was stopped and goes on.
    stopped: Receiver<()>,
}

/// A relay before the server at this port, which stops its client at the connection numbered `stops_at`, from 1.
fn stopping_relay(server: u16, stops_at: usize) -> StoppingRelay {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (client, told): (Sender<u32>, Receiver<u32>) = channel();
    let (report, stopped) = channel();
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().map_while(Result::ok).enumerate() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { return };
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            let stopped = (number + 1 == stops_at).then(|| (told.recv().unwrap(), report.clone()));
            std::thread::spawn(move || {
                if let Some((pid, report)) = stopped {
                    let mut first = [0; 4_096];
                    let read = from_client.read(&mut first)?;
                    signal(pid, "STOP");
                    to_server.write_all(&first[..read])?;
                    std::thread::sleep(Duration::from_secs(6));
                    signal(pid, "CONT");
                    let _ = report.send(());
                }
                std::io::copy(&mut from_client, &mut to_server)
            });
            let (mut from_server, mut to_client) = (server, client);
            std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
        }
    });
    StoppingRelay { port, client, stopped }
}

/// dyno waits 5 s for a server to answer. It is stopped for 6 s while it asks the server what it is (connection 1), and while
/// users connect.
#[test]
fn a_client_that_is_stopped_while_it_connects_calls_no_server_unreachable() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("whose_delay") };
    for stops_at in [1, 3, 6] {
        let dyno = Dyno::new();
        let relay = stopping_relay(server.port, stops_at);
        let uri = format!("redis://127.0.0.1:{}", relay.port);
        let common = ["--workload", "c", "--records", "100", "--users", "4", "--duration", "2s"];
        let run = dyno.start(&[&["run", &uri, "--out", "r", "--quiet"][..], &common].concat());
        relay.client.send(run.id()).unwrap();
        let output = finish(run);
        assert_eq!(relay.stopped.try_recv(), Ok(()), "connection {stops_at}: the client was stopped");
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary("r");
        let measured = phase(&summary, "measure");
        assert_eq!(outcome(measured, "ok"), arrivals(measured), "connection {stops_at}");
        assert!(arrivals(measured) > 0, "connection {stops_at}");
    }
}

fn checks(dyno: &Dyno, directory: &str) -> Vec<String> {
    let summary = dyno.summary(directory);
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let against = reasons.iter().filter(|reason| reason["trust"] != "valid");
    against.map(|reason| reason["check"].as_str().unwrap().to_owned()).collect()
}

/// Replies that came in time lie in the sockets while the client is stopped for longer than its time-out.
#[test]
fn a_client_that_is_stopped_for_longer_than_its_time_out_fails_no_operation() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("whose_delay") };
    let uri = server.uri();
    let pause = Duration::from_millis(2_600);
    let common = ["--timeout", "2s", "--records", "1000", "--warmup", "0s", "--quiet"];
    for (name, load) in [
        ("closed", &["--users", "16", "--duration", "6s"][..]),
        ("client", &["--users", "16", "--stamps", "client", "--duration", "6s"]),
        ("open", &["--rate", "2000", "--connections", "64", "--duration", "6s"]),
        // It is stopped across the end of the run, and of its drain.
        ("end", &["--users", "16", "--duration", "1500ms", "--drain", "500ms"]),
    ] {
        let dyno = Dyno::new();
        let words = [&["run", &uri, "--workload", "c", "--out", name][..], &common, load].concat();
        let run = dyno.start(&words);
        let pid = run.id();
        let output = stopped(&dyno, name, (pid, pause), run);
        assert_exit(&output, &[0, 5]);
        let summary = dyno.summary(name);
        let measured = phase(&summary, "measure");
        assert_eq!(
            outcome(measured, "ok"),
            arrivals(measured),
            "{name}: {}\n{}",
            measured["outcomes"],
            stderr(&output)
        );
        let found = checks(&dyno, name);
        assert!(!found.iter().any(|check| check == "gone" || check == "errors"), "{name}: {found:?}");
    }
}

/// Users of an embedded store are threads of the client: where it does not run, it is unknown whether the store did.
#[test]
fn a_stop_of_the_client_is_no_silence_of_an_embedded_store() {
    let dyno = Dyno::new();
    let common = ["--records", "1000", "--users", "4", "--duration", "6s", "--warmup", "0s", "--quiet"];
    let run = dyno.start(&[&["run", "sqlite:a.db?synchronous=off", "--out", "r"][..], &common].concat());
    let pid = run.id();
    let output = stopped(&dyno, "r", (pid, Duration::from_millis(2_500)), run);
    assert_exit(&output, &[0, 5]);
    let found = checks(&dyno, "r");
    let accused = |check: &&String| ["gone", "stalls", "level", "drift"].contains(&check.as_str());
    assert_eq!(found.iter().find(accused), None, "{found:?}");
    let summary = dyno.summary("r");
    let grades = summary["verdict"]["grades"].as_array().unwrap();
    let throughput = grades.iter().find(|grade| grade["claim"] == "throughput").unwrap();
    assert_eq!(throughput["trust"], "invalid", "{throughput}");
    assert!(throughput["against"].as_array().unwrap().contains(&"client_share".into()), "{throughput}");
    let pauses = phase(&summary, "measure")["pauses"].clone();
    let length_s: f64 = pauses.as_array().unwrap().iter().map(|one| one["length_s"].as_f64().unwrap()).sum();
    assert!((2.3..4.0).contains(&length_s), "{pauses}");
    // Nor does anything else of dyno say so.
    let explained = stdout(&dyno.run(&["explain", "r"]));
    assert!(!explained.contains("look for checkpoints") && !explained.contains("collapse"), "{explained}");
}

/// Arrivals that wait for a connection because the client was stopped have not waited for the server.
#[test]
fn a_stop_of_the_client_is_its_own_however_few_connections_it_has() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("whose_delay") };
    let dyno = Dyno::new();
    let uri = server.uri();
    let run = dyno.start(&[
        "run",
        &uri,
        "--workload",
        "c",
        "--records",
        "1000",
        "--rate",
        "500",
        "--connections",
        "16",
        "--duration",
        "5s",
        "--warmup",
        "0s",
        "--out",
        "r",
        "--require",
        "p99(read) < 5ms",
        "--quiet",
    ]);
    let pid = run.id();
    let output = stopped(&dyno, "r", (pid, Duration::from_millis(250)), run);
    let found = checks(&dyno, "r");
    assert!(found.iter().any(|check| check == "client_share"), "{found:?}");
    assert_eq!(trust_of(&dyno, "r", "client_share"), Some("invalid".to_owned()));
    // A threshold on a time that the client has spoilt has not failed: it is not known.
    assert_exit(&output, &[5]);
}

/// The worst trust that a check leaves in the tail: a median of microseconds is late on any busy host.
fn trust_of(dyno: &Dyno, directory: &str, check: &str) -> Option<String> {
    let summary = dyno.summary(directory);
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let affects = |reason: &Value| {
        reason["affects"]
            .as_array()
            .is_none_or(|all| all.is_empty() || all.iter().any(|claim| claim == "tail"))
    };
    let own = reasons.iter().filter(|reason| reason["check"] == check && affects(reason));
    let trusts: Vec<&str> = own.map(|reason| reason["trust"].as_str().unwrap()).collect();
    // In alphabetical order the worst is the first.
    trusts.into_iter().min().map(str::to_owned)
}

/// Stops that move p99 by far more than any host delays a client: the verdict names the side that was stopped, and no other.
#[test]
fn the_side_that_was_stopped_is_named() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("whose_delay") };
    let uri = server.uri();
    for (load, stop_ms) in [
        (&["--rate", "200", "--connections", "1"][..], 400),
        (&["--rate", "2000", "--connections", "16"], 200),
        (&["--rate", "2000", "--connections", "64"], 1_000),
        (&["--rate", "5000", "--connections", "256"], 500),
    ] {
        for stopped_client in [true, false] {
            let dyno = Dyno::new();
            let common = ["--records", "1000", "--duration", "6s", "--warmup", "0s", "--quiet", "--out", "r"];
            let words = [&["run", &uri, "--workload", "c"][..], &common, load].concat();
            let run = dyno.start(&words);
            let pid = if stopped_client { run.id() } else { server.pid() };
            let output = stopped(&dyno, "r", (pid, Duration::from_millis(stop_ms)), run);
            assert_exit(&output, &[0, 5]);
            let client = trust_of(&dyno, "r", "client_share");
            let who = if stopped_client { "client" } else { "server" };
            let told =
                format!("the {who} was stopped for {stop_ms} ms at {load:?}: {:?}", checks(&dyno, "r"));
            // Where other programs take the CPU, the client is late by itself in what the server's stop has queued.
            let busy =
                ["neighbours", "steal"].iter().any(|check| checks(&dyno, "r").iter().any(|own| own == check));
            assert!(client.as_deref() == Some("invalid") || !stopped_client, "{told}");
            assert!(client.as_deref() != Some("invalid") || stopped_client || busy, "{told}");
            let accused = ["stalls", "gone"].map(|check| trust_of(&dyno, "r", check).is_some());
            assert!(!stopped_client || accused == [false; 2], "{told}");
        }
    }
}
