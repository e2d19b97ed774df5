//! What goes wrong during a run: servers that die, stop, fill up or talk nonsense, signals, a full disk. Nothing may be
//! lost or counted twice, and what was measured must survive.

use dyno_testkit::{
    Dyno, RedisProcess, arrivals, assert_exit, finish, outcome, phase, signal, skip, stderr, stdout,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

#[test]
fn a_server_killed_and_started_again() {
    let Some(mut server) = RedisProcess::start(&[]) else { return skip("killed server") };
    let dyno = Dyno::new();
    let run = dyno.start(&[
        "run",
        &server.uri(),
        "--records",
        "500",
        "--rate",
        "2000",
        "--arrivals",
        "constant",
        "--duration",
        "4s",
        "--warmup",
        "0",
        "--timeout",
        "1s",
        "--out",
        "d",
    ]);
    pause(1_500);
    server.kill();
    pause(700);
    server.restart();
    let output = finish(run);
    dyno.assert_ran_but(&output, dyno_testkit::OF_A_LOST_SERVER);
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 8_000);
    assert!(
        outcome(measured, "unreachable") + outcome(measured, "disconnected") > 0,
        "{}",
        measured["outcomes"]
    );
    assert!(measured["reconnects"].as_u64().unwrap() > 0);
    // After the restart the records are gone: reads find nothing, updates succeed.
    assert!(outcome(measured, "ok") > 3_000);
}

#[test]
fn users_of_a_closed_loop_come_back_too() {
    let Some(mut server) = RedisProcess::start(&[]) else { return skip("closed loop and a killed server") };
    let dyno = Dyno::new();
    let run = dyno.start(&[
        "run",
        &server.uri(),
        "--records",
        "500",
        "--users",
        "4",
        "--duration",
        "3s",
        "--warmup",
        "0",
        "--out",
        "d",
    ]);
    dyno.await_phase("d", "measure");
    server.kill();
    pause(500);
    server.restart();
    dyno.assert_ran_but(&finish(run), dyno_testkit::OF_A_LOST_SERVER);
    let summary = dyno.summary("d");
    arrivals(phase(&summary, "measure"));
    let series = std::fs::read_to_string(dyno.path("d/series.csv")).unwrap();
    // The last whole second: what was under way at the end may be in a row of its own.
    let last = series.lines().find(|l| l.starts_with("2,measure,TOTAL,")).unwrap();
    let ok: u64 = last.split(',').nth(3).unwrap().parse().unwrap();
    assert!(ok > 0, "nothing succeeded after the restart: {last}");
}

#[test]
fn a_stall_shows_in_the_response_time_as_the_simulator_says() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("stall") };
    let dyno = Dyno::new();
    let run = dyno.start(&[
        "run",
        &server.uri(),
        "--records",
        "500",
        "--rate",
        "1000",
        "--arrivals",
        "constant",
        "--connections",
        "16",
        "--duration",
        "5s",
        "--warmup",
        "0",
        "--out",
        "d",
    ]);
    pause(2_000);
    signal(server.pid(), "STOP");
    pause(2_000);
    signal(server.pid(), "CONT");
    dyno.assert_ran(&finish(run));
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 5_000);
    assert_eq!(outcome(measured, "ok"), 5_000);
    let metrics = measured["metrics"].as_array().unwrap();
    let read = &metrics.iter().find(|m| m["name"] == "READ").unwrap();
    // Two of five seconds: arrivals waited evenly from 2 s down to 0, so p90 is about 1.5 s and p50 is short.
    let response = &read["response"]["percentiles_us"];
    let (p50, p90) = (response["p50"].as_f64().unwrap(), response["p90"].as_f64().unwrap());
    let max = metrics.iter().filter_map(|m| m["response"]["max_us"].as_f64()).fold(0.0, f64::max);
    assert!(max > 1_900_000.0, "max {max} us");
    assert!((1_200_000.0..1_900_000.0).contains(&p90), "p90 {p90} us");
    assert!(p50 < 1_000_000.0, "p50 {p50} us");
    // What tools that count from sending would have said: at most one operation for each connection was slow.
    let service = read["service"]["percentiles_us"]["p90"].as_f64().unwrap();
    assert!(service < p90 / 2.0, "service time p90 {service} us");
}

#[test]
fn a_full_database_is_an_outcome() {
    let Some(server) = RedisProcess::start(&["--maxmemory", "3mb", "--maxmemory-policy", "noeviction"])
    else {
        return skip("out of memory");
    };
    let dyno = Dyno::new();
    let output = dyno.run(&["run", &server.uri(), "--records", "5000", "--ops", "2000", "--out", "d"]);
    assert_exit(&output, &[5]);
    let summary = dyno.summary("d");
    let loaded = phase(&summary, "load");
    assert_eq!(arrivals(loaded), 5_000);
    assert!(outcome(loaded, "out_of_memory") > 0, "{}", loaded["outcomes"]);
    assert!(stdout(&output).contains("OOM command not allowed"), "{}", stdout(&output));
}

/// A server of canned replies: answers INFO, then every request of a connection with `reply`.
fn canned(reply: &'static [u8], close: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        // Bounded: a test makes far fewer connections.
        for stream in listener.incoming().take(10_000).flatten() {
            std::thread::spawn(move || serve(stream, reply, close));
        }
    });
    port
}

fn serve(mut stream: TcpStream, reply: &[u8], close: bool) {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut buffer = [0; 4096];
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        let request = &buffer[..n];
        let asked = |word: &[u8; 4]| request.windows(4).any(|w| w == word);
        let greeted = [
            if asked(b"PING") { &b"+PONG\r\n"[..] } else { b"" },
            if asked(b"INFO") { &b"$20\r\nredis_version:7.0.15\r\n"[..] } else { b"" },
        ]
        .concat();
        let answer = if greeted.is_empty() { reply } else { &greeted[..] };
        if stream.write_all(answer).is_err() || (close && greeted.is_empty()) {
            return;
        }
    }
}

#[test]
fn error_replies_become_their_classes() {
    let cases: [(&[u8], bool, &str); 5] = [
        (b"-LOADING Redis is loading the dataset in memory\r\n", false, "loading"),
        (b"-CLUSTERDOWN The cluster is down\r\n", false, "cluster_down"),
        (b"-READONLY You can't write against a read only replica.\r\n", false, "read_only"),
        (b"this is not RESP\r\n", false, "protocol"),
        (b"$100\r\nonly a part", true, "disconnected"),
    ];
    for (reply, close, class) in cases {
        let port = canned(reply, close);
        let dyno = Dyno::new();
        let output = dyno.run(&[
            "run",
            &format!("redis://127.0.0.1:{port}"),
            "--no-load",
            "-w",
            "c",
            "--users",
            "2",
            "--duration",
            "300ms",
            "--warmup",
            "0",
            "--timeout",
            "1s",
            "--drain",
            "1s",
            "--out",
            "d",
        ]);
        assert_exit(&output, &[5]);
        let summary = dyno.summary("d");
        let measured = phase(&summary, "measure");
        assert!(arrivals(measured) > 0);
        assert!(outcome(measured, class) > 0, "{class}: {}", measured["outcomes"]);
    }
}

#[test]
fn the_first_interrupt_keeps_what_was_measured() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("interrupt") };
    let dyno = Dyno::new();
    let run = dyno.start(&[
        "run",
        &server.uri(),
        "--records",
        "500",
        "--users",
        "4",
        "--duration",
        "60s",
        "--warmup",
        "0",
        "--out",
        "d",
    ]);
    pause(1_500);
    signal(run.id(), "INT");
    let output = finish(run);
    assert_exit(&output, &[130]);
    assert!(stdout(&output).contains("INTERRUPTED"), "{}", stdout(&output));
    let summary = dyno.summary("d");
    assert_eq!(summary["status"], "interrupted");
    assert!(arrivals(phase(&summary, "measure")) > 0);
    let report = dyno.run(&["report", "d"]);
    assert_exit(&report, &[130]);
}

#[test]
fn a_second_interrupt_does_not_wait_for_replies() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("second interrupt") };
    let dyno = Dyno::new();
    let run = dyno.start(&[
        "run",
        &server.uri(),
        "--records",
        "500",
        "--users",
        "4",
        "--duration",
        "60s",
        "--warmup",
        "0",
        "--timeout",
        "0",
        "--drain",
        "50s",
        "--out",
        "d",
    ]);
    dyno.await_phase("d", "measure");
    signal(server.pid(), "STOP");
    pause(300);
    signal(run.id(), "INT");
    pause(300);
    signal(run.id(), "INT");
    let begun = std::time::Instant::now();
    let output = finish(run);
    signal(server.pid(), "CONT");
    assert_exit(&output, &[130]);
    assert!(begun.elapsed() < Duration::from_secs(20), "it waited for the drain");
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    arrivals(measured);
    assert_eq!(outcome(measured, "aborted"), 4);
}

#[test]
fn a_killed_run_can_still_be_reported() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("killed run") };
    let dyno = Dyno::new();
    let mut run = dyno.start(&[
        "run",
        &server.uri(),
        "--records",
        "500",
        "--users",
        "4",
        "--duration",
        "60s",
        "--warmup",
        "0",
        "--out",
        "d",
    ]);
    pause(3_200);
    run.kill().unwrap();
    run.wait().unwrap();
    let report = dyno.run(&["report", "d"]);
    dyno.assert_ran(&report);
    assert!(stdout(&report).contains("INCOMPLETE"), "{}", stdout(&report));
    let report = dyno.run(&["report", "d", "--json"]);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&report)).unwrap();
    let measured = phase(&summary, "measure");
    let counted: u64 =
        measured["metrics"].as_array().unwrap().iter().map(|m| m["service"]["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, outcome(measured, "ok"));
    assert!(counted > 0);
    // Every operation is one command; what monitors saw until then is there too.
    let commands = measured["monitor"]["database"]["operations_per_s"].as_f64().unwrap();
    let operations = counted as f64 / measured["seconds"].as_f64().unwrap();
    assert!((commands / operations - 1.0).abs() < 0.5, "{commands} and {operations}");
}

fn full_disk_run(dyno: &Dyno, server: &RedisProcess) -> std::process::Output {
    let uri = server.uri();
    dyno.run(&["run", &uri, "--records", "500", "--users", "2", "--duration", "3s", "--out", "disk/d"])
}

#[test]
fn a_full_disk_does_not_cost_the_result() {
    let dyno = Dyno::new();
    let disk = dyno.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=56k", "tmpfs"])
        .arg(&disk)
        .status()
        .is_ok_and(|s| s.success());
    if !mounted {
        return dyno_testkit::skip_because("full disk", "a tmpfs cannot be mounted here");
    }
    let server = RedisProcess::start(&[]);
    let output = server.as_ref().map(|server| full_disk_run(&dyno, server));
    let unmounted = std::process::Command::new("umount").arg(&disk).status().unwrap();
    assert!(unmounted.success());
    let Some(output) = output else { return skip("full disk") };
    // On a busy host the run itself may be invalid; that it is incomplete is said all the same.
    assert_exit(&output, &[1, 5]);
    assert!(stdout(&output).contains("response time"), "{}", stdout(&output));
    assert!(stderr(&output).contains("No space left"), "{}", stderr(&output));
}

#[test]
fn failed_inserts_of_a_ycsb_load_are_tried_again() {
    // An insert is two commands, HMSET and ZADD: every reply is an error until the retries are used up.
    let port = canned(b"-BUSY a script is running\r\n-BUSY a script is running\r\n", false);
    let dyno = Dyno::new();
    let output = dyno.run(&[
        "ycsb",
        "load",
        "redis",
        "-P",
        "workloads/workloada",
        "-p",
        "redis.host=127.0.0.1",
        "-p",
        &format!("redis.port={port}"),
        "-p",
        "recordcount=3",
        "-p",
        "core_workload_insertion_retry_limit=2",
        "-p",
        "core_workload_insertion_retry_interval=0",
    ]);
    assert_exit(&output, &[5]);
    // Every attempt is measured: 3 records, 3 attempts each.
    assert!(stdout(&output).contains("[INSERT], Return=SERVICE_UNAVAILABLE, 9"), "{}", stdout(&output));
    assert!(stdout(&output).contains("[INSERT-FAILED], Operations, 9"), "{}", stdout(&output));
}
