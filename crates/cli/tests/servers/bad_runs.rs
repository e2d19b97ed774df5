//! Twelve bad runs, seeded on purpose: each must be called by its own name. The twelfth, a worker that dies, is in
//! `experiment.rs`.

use dyno_testkit::strange_proxy::{Strange, before};
use dyno_testkit::{Dyno, RedisProcess, assert_exit, signal, skip, skip_because, stderr};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Child;
use std::time::Duration;

/// What the verdict of a run directory names: trust and check.
fn reasons(dyno: &Dyno, directory: &str) -> Vec<(String, String)> {
    let summary = dyno.summary(directory);
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let word = |reason: &serde_json::Value, key: &str| reason[key].as_str().unwrap().to_owned();
    reasons.iter().map(|reason| (word(reason, "trust"), word(reason, "check"))).collect()
}

/// The run must be called suspect or invalid for this reason, by exactly this name.
fn assert_named(dyno: &Dyno, directory: &str, check: &str) {
    let found = reasons(dyno, directory);
    assert!(found.iter().any(|(trust, name)| trust != "valid" && name == check), "{check}: {found:?}");
}

/// Runs against the simulated server, whose time is virtual: what is found is what was seeded and nothing else.
#[test]
fn runs_in_virtual_time_are_called_by_their_only_fault() {
    let dyno = Dyno::new();
    let load = ["--rate", "2000", "--connections", "64"];
    let minute = ["--duration", "60s", "--warmup", "0s"];
    for (name, code, target, load, length) in [
        ("gone", 0, "sim:?service=100us&stall=1500ms@20s", &load[..], &minute[..]),
        (
            "drift",
            0,
            "sim:?service=100us&capacity=unbounded&growth=0.004",
            &["--users", "1"][..],
            &minute[..],
        ),
        ("drops", 5, "sim:?service=1ms", &["--rate", "2000", "--queue", "10"], &minute),
        ("samples", 0, "sim:?service=100us", &load, &["--duration", "200ms", "--warmup", "0s"]),
    ] {
        let words = [&["run", target, "--out", name, "--quiet"], load, length].concat();
        assert_exit(&dyno.run(&words), &[code]);
        let found = reasons(&dyno, name);
        assert_eq!(found.len(), 1, "{name}: {found:?}");
        assert_named(&dyno, name, name);
    }
    let good = [&["run", "sim:?service=100us", "--out", "good", "--quiet"], &load[..], &minute[..]].concat();
    assert_exit(&dyno.run(&good), &[0]);
    assert_eq!(reasons(&dyno, "good"), []);
}

#[test]
fn a_client_that_cannot_keep_up_a_wrong_mix_and_a_single_key() {
    let dyno = Dyno::new();
    let short = ["--duration", "1s", "--warmup", "0s", "--quiet"];
    dyno.assert_ran(&dyno.run(&[&["run", "null:", "--out", "starved"], &short[..]].concat()));
    assert_named(&dyno, "starved", "client_cpu");
    let workload = "workload=site.ycsb.workloads.CoreWorkload\nrecordcount=10000\nreadproportion=0.5\n";
    std::fs::write(dyno.path("mix"), format!("{workload}updateproportion=0.2\n")).unwrap();
    std::fs::write(dyno.path("keys"), format!("{workload}insertcount=1\nrequestdistribution=zipfian\n"))
        .unwrap();
    for name in ["mix", "keys"] {
        let out = format!("{name}.run");
        let words = ["run", "sim:?service=100us", "--workload", name, "--out", &out];
        dyno.assert_ran(&dyno.run(&[&words, &short[..]].concat()));
        assert_named(&dyno, &out, name);
    }
}

/// 180 MB of records under a limit of 96 MiB, which holds the program beside them, of which all operations ask for one per
/// cent: what a busy host evicts now and then must not be a read for a thousand operations.
#[test]
fn data_that_do_not_fit_but_are_never_read_from_disk() {
    let dyno = Dyno::new();
    let hot = "{requestdistribution: hotspot, hotspotdatafraction: \"0.01\", hotspotopnfraction: \"1.0\"}";
    let text = format!(
        "target: \"sqlite:{{dir}}/bench.db\"\n\
         workload: {{ycsb: {{workload: c, records: 150000, properties: {hot}}}}}\n\
         client: {{limits: {{memory: 96MiB}}}}\n\
         phases: {{load: {{users: 1, keep: true}}, measure: {{users: 2, duration: 4s, warmup: 5s}}}}\n"
    );
    std::fs::write(dyno.path("hot.yaml"), text).unwrap();
    // What the kernel evicts of the pages that the load has left is read again, once: now and then while it is measured.
    let mut found = Vec::new();
    for attempt in 0..6 {
        let out = format!("hot{attempt}");
        let output = dyno.run(&["run", "hot.yaml", "--out", &out, "--quiet"]);
        if !output.status.success() && stderr(&output).contains("control group") {
            return skip_because("data in the cache", "control groups are not permitted");
        }
        dyno.assert_ran(&output);
        let made =
            std::fs::read_dir(dyno.path(&out).join("runs")).unwrap().flatten().map(|entry| entry.path());
        let measured =
            |path: &std::path::PathBuf| path.extension().is_none_or(|extension| extension != "load");
        let run = made.into_iter().find(measured).unwrap();
        found = reasons(&dyno, run.to_str().unwrap());
        if found.iter().any(|(trust, name)| trust != "valid" && name == "cache") {
            return;
        }
    }
    panic!("cache: {found:?}");
}

/// Waits until the measured phase of a run has lasted a while: whatever is read before it has been read.
fn await_load(dyno: &Dyno, out: &str) {
    let begun = || {
        let events = std::fs::read_to_string(dyno.path(out).join("events.jsonl")).unwrap_or_default();
        events.contains(r#""event":"begin","text":"measure""#)
    };
    let end = std::time::Instant::now() + Duration::from_secs(120);
    while !begun() {
        assert!(std::time::Instant::now() < end, "the load does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(800));
}

/// A run against a real server in the background, and what is done to it meanwhile.
fn disturbed(dyno: &Dyno, words: &[&str], seconds: &str, disturb: impl FnOnce(&Child)) {
    let length = ["--records", "500", "--rate", "500", "--duration", seconds, "--warmup", "0s", "--quiet"];
    let run = dyno.start(&[words, &length[..]].concat());
    let out = words[words.iter().position(|word| *word == "--out").unwrap() + 1];
    await_load(dyno, out);
    disturb(&run);
    dyno.assert_ran(&dyno_testkit::finish(run));
}

#[test]
fn an_environment_that_changes() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("an environment that changes") };
    let dyno = Dyno::new();
    disturbed(&dyno, &["run", &server.uri(), "--out", "changed"], "3s", |run| {
        // The run's own limit of open files is part of its environment.
        let pid = run.id().to_string();
        let lowered = std::process::Command::new("prlimit")
            .args(["--pid", &pid, "--nofile=1000:1000"])
            .status()
            .unwrap();
        assert!(lowered.success());
    });
    assert_named(&dyno, "changed", "environment");
}

/// Answers as an exporter does for `answers` questions, then no more.
fn exporter(answers: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().take(answers).flatten() {
            let _ = stream.read(&mut [0; 1_024]);
            let body = "# TYPE up gauge\nup 1\n";
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
            let _ = stream.write_all((head + body).as_bytes());
        }
    });
    port
}

#[test]
fn a_monitor_that_is_lost() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a monitor that is lost") };
    let dyno = Dyno::new();
    let source = format!("x=http://127.0.0.1:{}/metrics", exporter(5));
    let uri = server.uri();
    let words = ["run", &uri, "--out", "lost", "--prometheus", &source, "--monitor-interval", "200ms"];
    disturbed(&dyno, &words, "4s", |_| ());
    assert_named(&dyno, "lost", "monitors");
}

/// The wall clock of the run alone is set, by libfaketime.
#[test]
fn a_clock_that_jumps() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a clock that jumps") };
    if std::process::Command::new("faketime").arg("--version").output().is_err() {
        return skip_because("a clock that jumps", "faketime is not on PATH");
    }
    let dyno = Dyno::new();
    let offset = dyno.path("offset");
    std::fs::write(&offset, "+0\n").unwrap();
    let uri = server.uri();
    let words =
        ["run", &uri, "--out", "jumped", "--records", "500", "--rate", "500", "--duration", "3s", "--quiet"];
    let mut command = dyno.command(&words);
    let library =
        ["x86_64", "aarch64"].map(|arch| format!("/usr/lib/{arch}-linux-gnu/faketime/libfaketimeMT.so.1"));
    let Some(library) = library.iter().find(|path| std::path::Path::new(path).exists()) else {
        return skip_because("a clock that jumps", "libfaketimeMT.so.1 is not where Debian puts it");
    };
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &offset);
    command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    let run =
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap();
    await_load(&dyno, "jumped");
    std::fs::write(&offset, "+5\n").unwrap();
    dyno.assert_ran(&dyno_testkit::finish(run));
    assert_named(&dyno, "jumped", "clock_jump");
}

/// A real server that stands still for a while: too long for the rate, so that what was due came late.
#[test]
fn a_server_that_stands_still() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("a server that stands still") };
    let dyno = Dyno::new();
    disturbed(&dyno, &["run", &server.uri(), "--out", "still"], "32s", |_| {
        std::thread::sleep(Duration::from_secs(10));
        signal(server.pid(), "STOP");
        std::thread::sleep(Duration::from_millis(1_600));
        signal(server.pid(), "CONT");
    });
    assert_named(&dyno, "still", "gone");
}

/// No operation fails, and yet it is not a server's usual work.
#[test]
fn unexpected_replies_and_lost_connections_are_told() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("bad_runs") };
    let dyno = Dyno::new();
    let port = server.uri().rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
    for (name, strange, exit) in [("protocol", Strange::Twice, 5), ("reconnects", Strange::Closes, 0)] {
        let uri = format!("redis://127.0.0.1:{}", before(port, strange));
        let twice = strange == Strange::Twice;
        let words = ["run", &uri, "--workload", "c", "--records", "1000", "--users", "8", "--duration", "3s"];
        // A user who thinks has nothing under way when its connection is closed.
        let think = if twice { "0s" } else { "5ms" };
        let more = ["--warmup", "0s", "--quiet", "--think", think, "--out", name];
        let output = dyno.run(&[&words[..], &more].concat());
        match exit {
            0 => dyno.assert_ran(&output),
            exit => assert_exit(&output, &[exit]),
        }
        assert_named(&dyno, name, name);
        let summary = dyno.summary(name);
        let measured = dyno_testkit::phase(&summary, "measure");
        let count = |figure: &str| measured[figure].as_u64().unwrap_or(0);
        assert_eq!(count("unexpected_replies") > 10, twice, "{measured}");
        assert!(count("reconnects") > 10, "{measured}");
    }
}
