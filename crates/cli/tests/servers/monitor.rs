//! What is watched while a load runs: monitors in the run directory and in the summary, live metrics for Prometheus, and
//! `dyno top`.

use dyno_rundir::monitor::Recording;
use dyno_testkit::mongo::Mongo;
use dyno_testkit::{
    Dyno, RedisProcess, assert_exit, await_port, finish, free_port, phase, skip, skip_because, stderr, stdout,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// 5 is a verdict on a short or noisy run, not on the command.
fn recording(dyno: &Dyno, directory: &str) -> Recording {
    Recording::open(&dyno.path(directory)).unwrap().expect("a folder of monitors")
}

/// Events of a run: Unix time in seconds, kind, text.
fn events(dyno: &Dyno, directory: &str) -> Vec<(f64, String, String)> {
    let text = std::fs::read_to_string(dyno.path(directory).join("events.jsonl")).unwrap();
    let event = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let word = |name: &str| event[name].as_str().unwrap().to_owned();
        let at: jiff::Timestamp = word("at").parse().unwrap();
        (at.as_nanosecond() as f64 / 1e9, word("event"), word("text"))
    };
    text.lines().map(event).collect()
}

#[test]
fn a_run_is_watched_on_one_time_axis() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("monitors of a run") };
    let dyno = Dyno::new();
    let output = dyno.run(&[
        "run",
        &server.uri(),
        "--workload",
        "c",
        "--records",
        "2000",
        "--rate",
        "4000",
        "--duration",
        "4s",
        "--warmup",
        "500ms",
        "--out",
        "d",
        "-v",
    ]);
    dyno.assert_ran(&output);
    let text = stdout(&output);
    assert!(text.contains("\nserver and host\n") && text.contains("commands/s"), "{text}");
    let summary = dyno.summary("d");
    let measured = phase(&summary, "measure");
    let seen = &measured["monitor"];
    // Every operation of this workload is one command: the server must have counted as many as the client.
    let (counted, applied) =
        (seen["database"]["operations_per_s"].as_f64().unwrap(), measured["throughput"].as_f64().unwrap());
    assert!((counted / applied - 1.0).abs() < 0.05, "{counted} and {applied}");
    assert!(seen["database"]["connections"].as_f64().unwrap() >= 64.0);
    // The server was not started by dyno, but is on this host.
    assert!(seen["server"]["cpu_cores"].as_f64().unwrap() > 0.0);
    assert!(seen["server"]["resident_bytes"].as_f64().unwrap() > 1e6);
    let busy = seen["host"]["cpu_busy_share"].as_f64().unwrap();
    assert!(busy > 0.0 && busy <= 1.0);
    assert!(seen["cost_share"].as_f64().unwrap() > 0.0);
    assert!(
        phase(&summary, "load")["monitor"].is_object() && phase(&summary, "warmup")["monitor"].is_object()
    );

    // Edges are as exact as the clock: begin to end is the length of the phase.
    let events = events(&dyno, "d");
    let at = |kind: &str, text: &str| events.iter().find(|(_, k, t)| k == kind && t == text).unwrap().0;
    let length = at("end", "measure") - at("begin", "measure");
    assert!((length - measured["seconds"].as_f64().unwrap()).abs() < 1e-5, "{length}");
    assert!((at("end", "warmup") - at("begin", "warmup") - 0.5).abs() < 1e-5);
    assert_eq!(at("end", "warmup"), at("begin", "measure"));
    assert!(at("end", "load") < at("begin", "warmup"));

    let recording = recording(&dyno, "d");
    assert_eq!(
        recording.source_names().collect::<Vec<_>>(),
        ["database", "dyno", "host", "monitor", "server"]
    );
    let (from, to) = (at("begin", "measure") * 1e3, at("end", "measure") * 1e3);
    let again = recording.counter_rate("database", "operations", from, to).unwrap();
    assert!((again / counted - 1.0).abs() < 1e-3, "the files say {again}, the summary {counted}");
    // One row a second, and one at each edge.
    let times: Vec<f64> =
        recording.find_series("host", "cpu.idle_s").unwrap().points.iter().map(|p| p.0).collect();
    for edge in [from, to] {
        assert!(times.iter().any(|t| (t - edge).abs() < 100.0), "no sample near the edge {edge}: {times:?}");
    }
    let ticks = times.iter().filter(|t| (from..to).contains(t)).count();
    assert!(ticks >= 4, "{ticks} samples in 4 s");
}

#[test]
fn what_is_not_there_is_missing_and_said_once() {
    let dyno = Dyno::new();
    // A run that ends early is the exporter of one that goes on.
    let port = free_port();
    let place = format!("127.0.0.1:{port}");
    let mut other =
        dyno.start(&["run", "null:", "--rate", "1000", "--duration", "2s", "--no-out", "--metrics", &place]);
    await_port(port);
    let exporters = [format!("other=http://{place}/metrics"), "nobody=http://127.0.0.1:1/metrics".to_owned()];
    let output = dyno.run(&[
        "run",
        "null:",
        "--rate",
        "1000",
        "--duration",
        "5s",
        "--warmup",
        "0",
        "--monitor-interval",
        "200ms",
        "--out",
        "d",
        "--prometheus",
        &exporters[0],
        "--prometheus",
        &exporters[1],
    ]);
    other.wait().unwrap();
    dyno.assert_ran(&output);
    let recording = recording(&dyno, "d");
    let name = "dyno_operations_total{phase=\"measure\",metric=\"READ\",outcome=\"ok\"}";
    let points = recording.find_series("prometheus-other", name).unwrap().points;
    let (first, last) = (points.iter().flat_map(|p| p.1).next().unwrap(), points.last().unwrap().1);
    assert!(first >= 0.0 && last.is_none(), "what has ended is missing: {points:?}");
    assert!(
        recording.source_names().all(|source| source != "prometheus-nobody"),
        "an exporter that is not there says nothing"
    );
    let events = events(&dyno, "d");
    let said = |source: &str| -> Vec<&str> {
        let of = events.iter().filter(|(_, kind, text)| kind == "monitor" && text.starts_with(source));
        of.map(|(.., text)| text.as_str()).collect()
    };
    for source in ["prometheus-other: ", "prometheus-nobody: "] {
        let words = said(source);
        assert!(words.len() == 1 && words[0].contains("refused"), "{words:?}");
    }
}

#[test]
fn a_run_can_be_left_alone() {
    let dyno = Dyno::new();
    let output = dyno.run(&["run", "null:", "--ops", "2000", "--out", "d", "--no-monitor", "-v"]);
    dyno.assert_ran(&output);
    assert!(!dyno.path("d").join("monitor").exists());
    assert!(!stdout(&output).contains("server and host"));
    assert!(phase(&dyno.summary("d"), "measure").get("monitor").is_none());
    for (arguments, message) in [
        (["--monitor-interval", "1ms"], "expected 10ms to 1h"),
        (["--monitor-interval", "often"], "--monitor-interval"),
        (["--prometheus", "http://h:1"], "expected NAME=URL"),
        (["--prometheus", "x=https://h:1"], "needs TLS"),
        (["--prometheus", "a/b=http://h:1"], "expected a name of its own"),
        (["--metrics", "nowhere:x"], "--metrics nowhere:x"),
    ] {
        let output = dyno.run(&[&["run", "null:", "--ops", "10", "--no-out"], &arguments[..]].concat());
        assert_exit(&output, &[2]);
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

#[test]
fn an_experiment_is_watched_with_its_workers() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("monitors of an experiment") };
    let dyno = Dyno::new();
    let text = format!(
        "target: {}\nworkload: {{ycsb: {{workload: c, records: 500}}}}\nclient: {{workers: 2}}\n\
         phases: {{measure: {{warmup: 500ms, duration: 2s, users: 4}}}}\nmonitors: {{interval: 200ms}}\n\
         factors: {{monitors.enabled: [true, false]}}\norder: sequential\n",
        server.uri()
    );
    std::fs::write(dyno.path("e.yaml"), text).unwrap();
    let output = dyno.run(&["run", "e.yaml", "--out", "e"]);
    dyno.assert_ran(&output);
    let watched = "e/runs/cell0001-rep01";
    let sources: Vec<String> = recording(&dyno, watched).source_names().map(str::to_owned).collect();
    assert_eq!(sources, ["database", "dyno", "host", "monitor", "server", "worker-1", "worker-2"]);
    let summary = dyno.summary(watched);
    let measured = phase(&summary, "measure");
    let counted = measured["monitor"]["database"]["operations_per_s"].as_f64().unwrap();
    let applied = measured["throughput"].as_f64().unwrap();
    assert!((counted / applied - 1.0).abs() < 0.05, "{counted} and {applied}");
    assert!(Recording::open(&dyno.path("e/runs/cell0002-rep01")).unwrap().is_none());
}

/// A process that ends when this does.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program of Debian's package; `None` where it is not installed.
fn program(name: &str, arguments: &[String], folder: &Path) -> Option<Ended> {
    let mut command = Command::new(name);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().ok().map(Ended)
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned())
}

/// The port that dyno says it serves metrics on.
fn announced(child: &mut Child) -> u16 {
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let line = lines.find_map(|l| {
        l.unwrap().strip_prefix("metrics for Prometheus: http://127.0.0.1:").map(str::to_owned)
    });
    line.unwrap().trim_end_matches("/metrics").parse().unwrap()
}

#[test]
fn prometheus_scrapes_a_run() {
    let dyno = Dyno::new();
    let port = free_port();
    let child =
        dyno.start(&["run", "null:", "--rate", "500", "--duration", "30s", "--no-out", "--metrics", "0"]);
    let mut child = Ended(child);
    let metrics = announced(&mut child.0);
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: dyno\n    static_configs:\n      \
         - targets: ['127.0.0.1:{metrics}']\n"
    );
    std::fs::write(dyno.path("prometheus.yml"), config).unwrap();
    let arguments = [
        "--config.file=prometheus.yml".to_owned(),
        "--storage.tsdb.path=data".to_owned(),
        format!("--web.listen-address=127.0.0.1:{port}"),
    ];
    let Some(_prometheus) = program("prometheus", &arguments, dyno.folder.path()) else {
        return skip_because("Prometheus scrapes a run", "prometheus is not installed");
    };
    await_port(port);
    let query = |expression: &str| -> Option<f64> {
        let answer = get(port, &format!("/api/v1/query?query={expression}"));
        let answer: Value = serde_json::from_str(&answer).unwrap_or_default();
        answer["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    };
    let begun = Instant::now();
    let mut rate = None;
    while begun.elapsed() < Duration::from_secs(25) && rate.is_none_or(|r: f64| (r - 500.0).abs() > 50.0) {
        std::thread::sleep(Duration::from_millis(250));
        rate = query("sum(rate(dyno_operations_total%7Bphase=%22measure%22%7D%5B5s%5D))");
    }
    assert!(
        rate.is_some_and(|r| (r - 500.0).abs() <= 50.0),
        "500/s are applied, Prometheus computes {rate:?}"
    );
    let p99 = query("histogram_quantile(0.99,sum%20by(le)(dyno_response_seconds_bucket))").unwrap();
    assert!(p99 > 0.0 && p99 < 10.0, "{p99}");
    assert_eq!(query("dyno_users"), Some(64.0));
    // The exposition is what Prometheus' own checker accepts.
    let page = get(metrics, "/metrics");
    assert!(
        page.contains("# TYPE dyno_operations_total counter\n") && page.contains("dyno_run_info{run="),
        "{page}"
    );
    let mut checker = Command::new("promtool");
    checker.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut checking = checker.spawn().unwrap();
    checking.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
    let checked = finish(checking);
    assert!(checked.status.success(), "{}{}", stdout(&checked), stderr(&checked));
}

#[test]
fn exporters_are_scraped() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("exporters") };
    let dyno = Dyno::new();
    let (node, redis) = (free_port(), free_port());
    let arguments = [format!("--web.listen-address=127.0.0.1:{node}")];
    let Some(_node) = program("prometheus-node-exporter", &arguments, dyno.folder.path()) else {
        return skip_because("exporters are scraped", "prometheus-node-exporter is not installed");
    };
    let arguments = [
        format!("--web.listen-address=127.0.0.1:{redis}"),
        format!("--redis.addr=redis://127.0.0.1:{}", server.port),
    ];
    let Some(_redis) = program("prometheus-redis-exporter", &arguments, dyno.folder.path()) else {
        return skip_because("exporters are scraped", "prometheus-redis-exporter is not installed");
    };
    await_port(node);
    await_port(redis);
    let exporters =
        [format!("node=http://127.0.0.1:{node}"), format!("redis=http://127.0.0.1:{redis}/metrics")];
    let output = dyno.run(&[
        "run",
        &server.uri(),
        "--workload",
        "c",
        "--records",
        "500",
        "--rate",
        "2000",
        "--duration",
        "4s",
        "--out",
        "d",
        "--prometheus",
        &exporters[0],
        "--prometheus",
        &exporters[1],
    ]);
    dyno.assert_ran(&output);
    let recording = recording(&dyno, "d");
    let last = |source: &str, name: &str| {
        let series = recording.find_series(source, name).unwrap_or_else(|| panic!("no {name} in {source}"));
        series.points.iter().filter_map(|p| p.1).next_back().unwrap()
    };
    assert!(last("prometheus-node", "node_memory_MemTotal_bytes") > 1e6);
    // What the exporter counts is what INFO counts.
    let (theirs, ours) =
        (last("prometheus-redis", "redis_commands_processed_total"), last("database", "operations"));
    assert!((theirs / ours - 1.0).abs() < 0.1, "{theirs} and {ours}");
}

#[test]
fn top_shows_a_redis_server() {
    let Some(server) = RedisProcess::start(&["--requirepass", "hunter2"]) else { return skip("dyno top") };
    let dyno = Dyno::new();
    let uri = format!("redis://:hunter2@127.0.0.1:{}", server.port);
    let load = dyno.start(&[
        "run",
        &uri,
        "--records",
        "100",
        "--rate",
        "1000",
        "--duration",
        "20s",
        "--no-out",
        "--quiet",
    ]);
    let _load = Ended(load);
    std::thread::sleep(Duration::from_millis(800));
    let output = dyno.run(&["top", &uri, "--interval", "200ms", "--count", "22"]);
    assert_exit(&output, &[0]);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 24, "{text}");
    let headers: Vec<usize> = (0..24).filter(|i| lines[*i].trim_start().starts_with("ops/s")).collect();
    assert_eq!(headers, [0, 21], "{text}");
    assert!(lines.iter().any(|l| l.contains("hmset") || l.contains("hgetall")), "{text}");
    let output = dyno.run(&["top", &uri, "--count", "1", "--json"]);
    assert_exit(&output, &[0]);
    let object: Value = serde_json::from_str(stdout(&output).trim()).unwrap();
    assert!(object["operations_per_s"].as_f64().unwrap() > 100.0, "{object}");
    assert!(object["connections"].as_f64().unwrap() >= 2.0 && object["memory_bytes"].as_f64().unwrap() > 1e5);
    assert!(object["network_sent_bytes_per_s"].as_f64().unwrap() > 0.0 && object["by_kind"].is_object());
    for (target, code) in [("sqlite:x", 2), ("redis://127.0.0.1:1", 3)] {
        assert_exit(&dyno.run(&["top", target, "--count", "1"]), &[code]);
    }
    // It is away at the last look: what was asked for was not seen.
    let watched = dyno.start(&["top", &uri, "--interval", "500ms", "--count", "4"]);
    std::thread::sleep(Duration::from_millis(700));
    drop(server);
    let watched = finish(watched);
    assert_exit(&watched, &[3]);
    assert_eq!(stderr(&watched).matches("error: ").count(), 1, "{}", stderr(&watched));
}

#[test]
fn mongodb_is_watched() {
    let servers = [
        ("FerretDB", Mongo::ferretdb(&[])),
        ("mongo-java-server", Mongo::java()),
        ("mongod", Mongo::mongod()),
    ];
    let servers: Vec<(&str, Mongo)> = servers.into_iter().filter_map(|(name, s)| Some((name, s?))).collect();
    if servers.is_empty() {
        return skip_because("MongoDB is watched", "no server that speaks MongoDB's protocol is there");
    }
    for (name, server) in &servers {
        let dyno = Dyno::new();
        let uri = server.uri("t9");
        let output =
            dyno.run(&["run", &uri, "--records", "100", "--rate", "200", "--duration", "3s", "--out", "d"]);
        dyno.assert_ran(&output);
        // What a server does not say is absent; that it was asked shows.
        let recording = recording(&dyno, "d");
        let said = recording.series_names("database").count();
        let events = events(&dyno, "d");
        let complained =
            events.iter().any(|(_, kind, text)| kind == "monitor" && text.starts_with("database: "));
        assert!(said > 0 || complained, "{name} was not asked");
        let output = dyno.run(&["top", &uri, "--count", "1", "--interval", "100ms"]);
        assert_exit(&output, if said > 0 { &[0] } else { &[3] });
        if said > 0 {
            assert!(stdout(&output).contains("getmore"), "{name}: {}", stdout(&output));
        }
    }
}
