//! `dyno run`, `report` and `merge` against real targets, from the command line to the files.

use dyno_testkit::{Dyno, RedisProcess, arrivals, assert_exit, outcome, phase, skip, stdout};
use std::os::unix::fs::PermissionsExt;

/// 5 is a verdict on a noisy machine, not on the command.
#[test]
fn a_closed_loop_leaves_a_consistent_run_directory() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("closed loop") };
    let dyno = Dyno::new();
    let output = dyno.run(&[
        "run",
        &server.uri(),
        "--records",
        "2000",
        "--users",
        "8",
        "--ops",
        "20000",
        "--out",
        "d",
    ]);
    dyno.assert_ran(&output);
    let report =
        format!("\nreport:  file://{}/report.html\n", dyno.path("d").canonicalize().unwrap().display());
    assert!(stdout(&output).ends_with(&report), "{}", stdout(&output));
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 20_000);
    assert_eq!(outcome(measured, "ok"), 20_000);
    assert_eq!(outcome(phase(&summary, "load"), "ok"), 2_000);
    let counted: u64 = measured["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|m| m["name"] != "CLEANUP")
        .map(|m| m["service"]["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, 20_000);
    assert_eq!(std::fs::metadata(dyno.path("d")).unwrap().permissions().mode() & 0o777, 0o700);
    for file in
        ["run.json", "environment.json", "events.jsonl", "intervals.jsonl", "latency.hlog", "series.csv"]
    {
        assert!(dyno.path("d").join(file).is_file(), "{file} is missing");
    }
    // The records are YCSB's: a hash of ten fields and an index entry with the Java hash as score.
    assert_eq!(server.cli(&["ZSCORE", "_indices", "user6284781860667377211"]), "-594971599");
    assert_eq!(server.cli(&["HLEN", "user6284781860667377211"]), "10");
    assert_eq!(server.cli(&["ZCARD", "_indices"]), "2000");
}

#[test]
fn reports_work_from_the_files_alone() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("report") };
    let dyno = Dyno::new();
    let output = dyno.run(&["run", &server.uri(), "--records", "1000", "--ops", "3000", "--out", "a"]);
    dyno.assert_ran(&output);
    drop(server);
    let again = dyno.run(&["report", "a", "--json"]);
    assert_exit(&again, &[0]);
    let again: serde_json::Value = serde_json::from_str(&stdout(&again)).unwrap();
    assert_eq!(again, dyno.summary("a"));
    // Without its summary, everything is computed anew from log and counters.
    std::fs::remove_file(dyno.path("a").join("summary.json")).unwrap();
    let rebuilt = dyno.run(&["report", "a", "--json"]);
    let rebuilt: serde_json::Value = serde_json::from_str(&stdout(&rebuilt)).unwrap();
    let (was, is) = (phase(&again, "measure"), phase(&rebuilt, "measure"));
    assert_eq!(was["outcomes"], is["outcomes"]);
    assert_eq!(was["metrics"], is["metrics"]);
}

#[test]
fn records_are_loaded_once() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("loading once") };
    let dyno = Dyno::new();
    let base = ["run", &server.uri(), "--records", "500", "--ops", "1000", "--json", "--no-out"];
    let loads = |extra: &[&str]| {
        let output = dyno.run(&[&base[..], extra].concat());
        dyno.assert_ran(&output);
        let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        summary["phases"].as_array().unwrap().iter().any(|p| p["name"] == "load")
    };
    assert!(loads(&[]));
    assert!(!loads(&[]));
    assert!(loads(&["--reload"]));
    assert!(!loads(&["--no-load"]));
}

#[test]
fn every_workload_runs_on_every_kind_of_target() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("workloads") };
    let dyno = Dyno::new();
    let store = |kind: &str| format!("{kind}:{}", dyno.path(&format!("{kind}.db")).display());
    let targets = [
        server.uri(),
        format!("{}?protocol=3", server.uri()),
        store("sqlite"),
        store("redb"),
        store("fjall"),
    ];
    for target in &targets {
        for workload in ["a", "b", "c", "d", "e", "f"] {
            let output = dyno.run(&[
                "run",
                target,
                "-w",
                workload,
                "--records",
                "300",
                "--ops",
                "600",
                "--users",
                "2",
                "--json",
                "--no-out",
                "--reload",
            ]);
            dyno.assert_ran(&output);
            let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
            let measured = phase(&summary, "measure");
            assert_eq!(arrivals(measured), 600);
            assert_eq!(
                outcome(measured, "ok"),
                600,
                "{target} workload {workload}: {}",
                measured["outcomes"]
            );
        }
    }
}

#[test]
fn ways_of_connecting() {
    let socket = tempfile::tempdir().unwrap();
    let path = socket.path().join("redis.sock");
    let path = path.to_str().unwrap();
    let acl = "on >hunter2 ~* &* +@all";
    let Some(server) = RedisProcess::start(&["--unixsocket", path, "--databases", "4"]) else {
        return skip("connecting");
    };
    let rules: Vec<&str> = ["ACL", "SETUSER", "bob"].into_iter().chain(acl.split(' ')).collect();
    assert_eq!(server.cli(&rules), "OK");
    let dyno = Dyno::new();
    let targets = [
        format!("unix://{path}"),
        format!("unix://{path}?db=2"),
        format!("redis://bob:hunter2@127.0.0.1:{}/1", server.port),
        format!("redis://bob:hunter2@127.0.0.1:{}?protocol=3", server.port),
        format!("redis://127.0.0.1:{}?layout=string", server.port),
        format!("redis://localhost:{}?index=none", server.port),
    ];
    for target in &targets {
        let output = dyno.run(&[
            "run",
            target,
            "--records",
            "200",
            "-p",
            "fieldcount=1",
            "--ops",
            "1000",
            "--pipeline",
            "4",
            "--reload",
            "--no-out",
        ]);
        dyno.assert_ran(&output);
        server.cli(&["FLUSHALL"]);
    }
}

#[test]
fn an_open_loop_ends_by_time_and_by_count() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("open loop") };
    let dyno = Dyno::new();
    for arrivals_option in ["poisson", "constant"] {
        let by_count =
            ["--rate", "2000", "--ops", "1500", "--arrivals", arrivals_option, "--warmup", "200ms"];
        let mut arguments = vec!["run", "", "--records", "500", "--json", "--no-out"];
        let uri = server.uri();
        arguments[1] = &uri;
        arguments.extend(by_count);
        let output = dyno.run(&arguments);
        dyno.assert_ran(&output);
        let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
        assert_eq!(arrivals(phase(&summary, "measure")), 1_500);
    }
    let output = dyno.run(&[
        "run",
        &server.uri(),
        "--rate",
        "1000",
        "--arrivals",
        "constant",
        "--duration",
        "1s",
        "--warmup",
        "0",
        "--json",
        "--no-out",
        "--records",
        "500",
    ]);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(arrivals(phase(&summary, "measure")), 1_000);
}

#[test]
fn thresholds_decide_the_exit_code() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("thresholds") };
    let dyno = Dyno::new();
    let run = |expression: &str| {
        dyno.run(&[
            "run",
            &server.uri(),
            "--records",
            "500",
            "--ops",
            "3000",
            "--no-out",
            "--require",
            expression,
        ])
    };
    let passed = run("p99(read) < 100s");
    dyno.assert_ran(&passed);
    let shown = stdout(&passed);
    assert!(
        shown.lines().any(|line| line.contains("p99(read) < 100s") && line.contains("PASS (")),
        "{shown}"
    );
    let failed = run("p50(update.service) < 1ns");
    assert_exit(&failed, &[4]);
    assert!(stdout(&failed).contains("FAIL"));
    // A percentile without its samples decides nothing.
    let close = run("p99.99(read) < 100s");
    dyno.assert_ran(&close);
    assert!(stdout(&close).contains("TOO CLOSE (not measurable"), "{}", stdout(&close));
}

#[test]
fn a_temporary_server_is_removed() {
    if RedisProcess::start(&[]).is_none() {
        return skip("temporary server");
    }
    let dyno = Dyno::new();
    let output = dyno.run(&["run", "spawn:redis", "--records", "500", "--ops", "1000", "--out", "d"]);
    dyno.assert_ran(&output);
    let target = dyno.summary("d")["target"].as_str().unwrap().to_owned();
    let address = target.strip_prefix("redis://").unwrap();
    assert!(std::net::TcpStream::connect(address).is_err(), "{address} still listens");
}

#[test]
fn the_engine_alone_and_the_simulator() {
    let dyno = Dyno::new();
    dyno.assert_ran(&dyno.run(&["run", "null:", "--ops", "20000", "--no-out"]));
    let simulated = ["run", "sim:?service=1ms", "--rate", "500", "--duration", "20s", "--json", "--no-out"];
    let output = dyno.run(&[&simulated[..], &["--require", "throughput > 400"]].concat());
    assert_exit(&output, &[0]);
    let summary: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    let measured = phase(&summary, "measure");
    let read = &measured["metrics"][0]["service"];
    assert_eq!(read["min_us"].as_f64(), Some(1_000.0));
    // Virtual time has no client that is late.
    assert_eq!(measured["ideal_response"]["count"], measured["outcomes"]["ok"]);
    let metrics = measured["metrics"].as_array().unwrap().iter();
    let longest = metrics.filter_map(|metric| metric["response"]["max_us"].as_f64()).fold(0.0, f64::max);
    assert_eq!(measured["ideal_response"]["max_us"].as_f64(), Some(longest));
    let grades = summary["verdict"]["grades"].as_array().unwrap();
    let told: Vec<_> = grades.iter().map(|one| (one["claim"].as_str(), one["asked"].as_bool())).collect();
    // Of a simulation no resource is watched.
    let claims = ["throughput", "median", "tail", "throughput > 400"];
    let asked: Vec<_> = claims.into_iter().map(|claim| (Some(claim), Some(claim.contains('>')))).collect();
    assert_eq!(told, asked);
    assert!(grades.iter().all(|one| one["trust"] == "valid"), "{grades:?}");
    assert_exit(&dyno.run(&["selftest"]), &[0]);
}

#[test]
fn service_times_end_by_the_clock_that_was_asked_for() {
    let socket = tempfile::tempdir().unwrap();
    let path = socket.path().join("redis.sock");
    let path = path.to_str().unwrap();
    let Some(server) = RedisProcess::start(&["--unixsocket", path]) else { return skip("stamps") };
    let dyno = Dyno::new();
    let unix = format!("unix://{path}");
    let uri = server.uri();
    // Sentences are broken into lines.
    let told =
        |output: &std::process::Output| stdout(output).split_whitespace().collect::<Vec<_>>().join(" ");
    for (target, stamps, out) in
        [(&uri, "kernel", "kernel"), (&uri, "client", "client"), (&unix, "kernel", "unix")]
    {
        // The kernel begins to stamp some time after it was asked.
        let base = ["run", target, "-n", "200", "--ops", "50000", "--users", "4", "--pipeline", "4"];
        let output =
            dyno.run(&[&base[..], &["-v", "--warmup", "0s", "--stamps", stamps, "--out", out]].concat());
        dyno.assert_ran(&output);
        let summary = dyno.summary(out);
        let found = &phase(&summary, "measure")["stamps"];
        if stamps == "client" {
            assert!(found.is_null(), "{out}: {found}");
            assert!(told(&output).contains("arrivals by the client's clock"), "{}", stdout(&output));
            continue;
        }
        let count = |name: &str| found[name].as_u64().unwrap();
        assert_eq!(count("kernel") + count("client"), 50_000);
        let clock = if out == "unix" { "client" } else { "kernel" };
        assert_eq!(count("kernel") > count("client"), out == "kernel", "{found}");
        assert!(count("shared") <= count("kernel"), "{found}");
        assert!(told(&output).contains(&format!("arrivals by the {clock}'s clock")), "{}", stdout(&output));
    }
    // Workers are told, and the report has the sum.
    let file = format!(
        "target: {uri}\nclient: {{workers: 2, stamps: kernel}}\nworkload: {{ycsb: {{records: 200}}}}\n\
         phases: {{measure: {{operations: 5000, users: 4, warmup: 0s}}}}\n"
    );
    std::fs::write(dyno.path("x.yaml"), file).unwrap();
    dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", "o", "--quiet"]));
    let summary = dyno.summary("o/runs/cell0001-rep01");
    let run: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(dyno.path("o/runs/cell0001-rep01/run.json")).unwrap())
            .unwrap();
    let settings = run["settings"].as_array().unwrap();
    assert!(
        settings.iter().any(|one| one["key"] == "client.stamps" && one["value"] == "kernel"),
        "{settings:?}"
    );
    let found = &phase(&summary, "measure")["stamps"];
    assert_eq!(found["kernel"].as_u64().unwrap() + found["client"].as_u64().unwrap(), 5_000, "{found}");
    assert_exit(&dyno.run(&["run", &uri, "--stamps", "hardware"]), &[2]);
}
