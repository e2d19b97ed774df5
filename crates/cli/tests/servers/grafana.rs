//! The dashboards of `dyno grafana`: Grafana's JSON model, and every query against a real Prometheus that scrapes dyno, a node
//! exporter and a Redis exporter; those of MongoDB with dyno alone.

use dyno_testkit::{Dyno, RedisProcess, assert_exit, await_port, free_port, skip, skip_because};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ends with the test.
pub struct Ended(pub Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn program(name: &str, arguments: &[String], folder: &Path) -> Option<Ended> {
    let mut command = Command::new(name);
    command
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().ok().map(Ended)
}

/// The dashboards as they are written, MongoDB's last.
fn dashboards(dyno: &Dyno) -> Vec<Value> {
    assert_exit(&dyno.run(&["grafana", "--out", "g"]), &[0]);
    ["dyno-run", "dyno-host", "dyno-database", "dyno-mongodb"]
        .map(|name| {
            let text = std::fs::read_to_string(dyno.path("g").join(format!("{name}.json"))).unwrap();
            serde_json::from_str(&text).unwrap()
        })
        .to_vec()
}

fn panels(dashboard: &Value) -> &Vec<Value> {
    dashboard["panels"].as_array().unwrap()
}

/// What Grafana's documentation of the dashboard JSON model asks for.
#[test]
fn dashboards_are_what_grafana_loads() {
    let dyno = Dyno::new();
    for dashboard in dashboards(&dyno) {
        let title = dashboard["title"].as_str().unwrap();
        for key in [
            "uid",
            "title",
            "tags",
            "timezone",
            "editable",
            "graphTooltip",
            "time",
            "timepicker",
            "templating",
            "annotations",
            "refresh",
            "schemaVersion",
            "version",
            "links",
            "panels",
        ] {
            assert!(!dashboard[key].is_null(), "{title}: {key}");
        }
        assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36, "data sources as objects came with 36");
        let uid = dashboard["uid"].as_str().unwrap();
        assert!(uid.len() <= 40 && uid.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)));
        assert!(dashboard["id"].is_null(), "Grafana gives the number");
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let names: Vec<&str> = variables.iter().map(|v| v["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["datasource", "instance"]);
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in panels(&dashboard) {
            let name = format!("{title}: {}", panel["title"]);
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: an id twice");
            let kind = panel["type"].as_str().unwrap();
            assert!(["row", "timeseries", "stat"].contains(&kind), "{name}: {kind}");
            let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            assert!(at("w") > 0 && at("h") > 0 && at("x") + at("w") <= 24, "{name}: outside of the grid");
            for (x, y) in (0..at("w")).flat_map(|x| (0..at("h")).map(move |y| (x, y))) {
                assert!(cells.insert((at("x") + x, at("y") + y)), "{name}: overlaps");
            }
            if kind == "row" {
                assert_eq!(panel["panels"].as_array().map(Vec::len), Some(0), "{name}");
                continue;
            }
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}");
            let targets = panel["targets"].as_array().unwrap();
            let letters: BTreeSet<&str> = targets.iter().map(|t| t["refId"].as_str().unwrap()).collect();
            assert!(!targets.is_empty() && letters.len() == targets.len(), "{name}: refId");
            assert!(targets.iter().all(|t| t["datasource"]["type"] == "prometheus"), "{name}");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{name}: unit");
        }
    }
}

pub fn encoded(text: &str) -> String {
    text.bytes()
        .map(
            |byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            },
        )
        .collect()
}

pub fn get(port: u16, path: &str) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    serde_json::from_str(body).unwrap_or_else(|e| panic!("{e}: {answer}"))
}

/// Waits, at most 30 s, until a Prometheus answers queries.
pub fn await_ready(port: u16) {
    await_port(port);
    let end = Instant::now() + Duration::from_secs(30);
    while !page_at(port, "/-/ready").is_some_and(|answer| answer.starts_with("HTTP/1.0 200 ")) {
        assert!(Instant::now() < end, "Prometheus is not ready");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every query of the dashboards: (where it stands, expression with the variables replaced).
fn queries(dashboards: &[Value]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for dashboard in dashboards {
        for panel in panels(dashboard) {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let expression = target["expr"].as_str().unwrap();
                let expression = expression.replace("$__rate_interval", "10s").replace("$instance", ".*");
                assert!(!expression.contains('$') && !expression.contains('@'), "{expression}");
                all.push((format!("{}: {}", dashboard["title"], panel["title"]), expression));
            }
        }
    }
    all
}

#[test]
fn every_query_returns_data() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("queries of dashboards") };
    let dyno = Dyno::new();
    let folder = dyno.folder.path();
    let [redis, node, metrics, port] = [free_port(), free_port(), free_port(), free_port()];
    let arguments =
        [format!("--redis.addr={}", server.uri()), format!("--web.listen-address=127.0.0.1:{redis}")];
    let _redis = program("prometheus-redis-exporter", &arguments, folder);
    let _node =
        program("prometheus-node-exporter", &[format!("--web.listen-address=127.0.0.1:{node}")], folder);
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: all\n  static_configs:\n  \
         - targets: ['127.0.0.1:{metrics}', '127.0.0.1:{node}', '127.0.0.1:{redis}']\n"
    );
    std::fs::write(folder.join("prometheus.yml"), config).unwrap();
    let arguments = [
        "--config.file=prometheus.yml".to_owned(),
        "--storage.tsdb.path=data".to_owned(),
        format!("--web.listen-address=127.0.0.1:{port}"),
    ];
    let prometheus = program("prometheus", &arguments, folder);
    if _redis.is_none() || _node.is_none() || prometheus.is_none() {
        return skip_because("queries of dashboards", "Prometheus and its exporters are not installed");
    }
    [redis, node, port].into_iter().for_each(await_port);
    let place = format!("127.0.0.1:{metrics}");
    let uri = server.uri();
    let load = [
        "run",
        &uri,
        "--records",
        "5000",
        "--rate",
        "1000",
        "--duration",
        "50s",
        "--no-out",
        "--metrics",
        &place,
    ];
    let _load = Ended(dyno.start(&load));
    let mut left = queries(&dashboards(&dyno)[..3]);
    assert!(left.len() > 40, "{}", left.len());
    let begun = Instant::now();
    let has_data = |expression: &str| {
        let answer = get(port, &format!("/api/v1/query?query={}", encoded(expression)));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let value = |row: &Value| row["value"][1].as_str().is_some_and(|v| v != "NaN");
        answer["data"]["result"].as_array().is_some_and(|rows| rows.iter().any(value))
    };
    while !left.is_empty() && begun.elapsed() < Duration::from_secs(40) {
        std::thread::sleep(Duration::from_secs(1));
        left.retain(|(_, expression)| !has_data(expression));
    }
    assert!(left.is_empty(), "no data for {left:#?}");
}

/// Series that a query of MongoDB's dashboard asks for, as a pattern.
fn asked(expression: &str) -> String {
    let part = expression.split("series=").nth(1).unwrap().trim_start_matches('~').trim_start_matches('"');
    part.split('"').next().unwrap().to_owned()
}

#[test]
fn every_query_of_mongodb_is_answered() {
    use dyno_testkit::mongo::Mongo;
    let what = "queries of MongoDB's dashboard";
    let servers = [
        ("FerretDB", Mongo::ferretdb(&[])),
        ("mongo-java-server", Mongo::java()),
        ("mongod", Mongo::mongod()),
    ];
    let servers: Vec<_> = servers.into_iter().filter_map(|(name, server)| Some((name, server?))).collect();
    if servers.is_empty() {
        return skip_because(what, "no server that speaks MongoDB's protocol is there");
    }
    let dyno = Dyno::new();
    let folder = dyno.folder.path();
    let port = free_port();
    let metrics: Vec<u16> = servers.iter().map(|_| free_port()).collect();
    let targets: Vec<String> = metrics.iter().map(|port| format!("'127.0.0.1:{port}'")).collect();
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: all\n  static_configs:\n  - targets: [{}]\n",
        targets.join(", ")
    );
    std::fs::write(folder.join("prometheus.yml"), config).unwrap();
    let arguments = [
        "--config.file=prometheus.yml".to_owned(),
        "--storage.tsdb.path=data".to_owned(),
        format!("--web.listen-address=127.0.0.1:{port}"),
    ];
    let Some(_prometheus) = program("prometheus", &arguments, folder) else {
        return skip_because(what, "Prometheus is not installed");
    };
    await_port(port);
    let loads: Vec<Ended> = servers
        .iter()
        .zip(&metrics)
        .map(|((_, server), metrics)| {
            let (uri, place) = (server.uri("g"), format!("127.0.0.1:{metrics}"));
            let load = ["run", &uri, "--records", "100", "--rate", "50", "--duration", "40s", "--no-out"];
            Ended(dyno.start(&[&load[..], &["--metrics", &place]].concat()))
        })
        .collect();
    let all = queries(&dashboards(&dyno)[3..]);
    assert!(all.len() >= 20, "{}", all.len());
    std::thread::sleep(Duration::from_secs(12));
    for (at, expression) in &all {
        let answer = get(port, &format!("/api/v1/query?query={}", encoded(expression)));
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        let value = |row: &Value| row["value"][1].as_str().is_some_and(|v| v != "NaN");
        let data = answer["data"]["result"].as_array().is_some_and(|rows| rows.iter().any(value));
        // What servers say of themselves is what dyno exports: a query has data if one of them says its series.
        let pattern = regex_lite::Regex::new(&format!("^(?:{})$", asked(expression))).unwrap();
        let source = if expression.contains("source=~\"server") { "server" } else { "database" };
        let said = metrics.iter().filter_map(|port| page(*port)).any(|page| {
            let series = page.lines().filter(|line| line.contains(&format!("source=\"{source}")));
            let names = series
                .filter_map(|line| line.split("series=\"").nth(1)?.split('"').next().map(str::to_owned));
            names.into_iter().any(|name| pattern.is_match(&name))
        });
        // Of a mean of nothing there is none.
        assert!(
            data == said || expression.contains('/') && !data,
            "{at}: {expression}: {answer}, said: {said}"
        );
    }
    let with_data = |name: &str| {
        let expression = format!("sum(rate(dyno_server_total{{series=\"{name}\"}}[10s]))");
        let answer = get(port, &format!("/api/v1/query?query={}", encoded(&expression)));
        answer["data"]["result"][0]["value"][1]
            .as_str()
            .and_then(|v| v.parse::<f64>().ok())
            .is_some_and(|v| v > 0.0)
    };
    let counts = servers.iter().any(|(name, _)| *name != "mongo-java-server");
    assert!(!counts || with_data("operations"), "a server that counts commands has counted none");
    drop(loads);
}

fn page(port: u16) -> Option<String> {
    page_at(port, "/metrics")
}

fn page_at(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Series of an experiment say which run they are of, and each phase of a summary links its time on the dashboard.
#[test]
fn an_experiment_has_labels_and_links() {
    let dyno = Dyno::new();
    let text = "target: 'null:'\nworkload: {ycsb: {records: 1000}}\nfactors: {users: [1, 2]}\norder: file\n\
                phases: {measure: {duration: 2s, warmup: 1s}}\nmonitors: {grafana: 'http://127.0.0.1:3000/d/dyno-run'}\n";
    std::fs::write(dyno.path("x.yaml"), text).unwrap();
    let port = free_port();
    let mut child =
        Ended(dyno.start(&["run", "x.yaml", "--out", "o", "--metrics", &port.to_string(), "--quiet"]));
    let (mut seen, begun) = (BTreeSet::new(), Instant::now());
    while child.0.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_secs(60) {
        let page = page(port).unwrap_or_default();
        let series =
            |cell: u32| format!("dyno_operations_total{{cell=\"{cell}\",repetition=\"1\",phase=\"measure\"");
        seen.extend([1, 2].into_iter().filter(|cell| page.contains(&series(*cell))));
        assert!(!(page.contains(&series(1)) && page.contains(&series(2))), "a run shows the one before it");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(seen, BTreeSet::from([1, 2]));
    let run = dyno.path("o/runs/cell0001-rep01");
    let read = |name: &str| std::fs::read_to_string(run.join(name)).unwrap();
    let summary: Value = serde_json::from_str(&read("summary.json")).unwrap();
    let events: Vec<Value> =
        read("events.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for phase in summary["phases"].as_array().unwrap() {
        let at = |kind: &str| {
            let event = events.iter().find(|e| e["event"] == kind && e["text"] == phase["name"]).unwrap();
            event["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
        };
        let expected = format!("http://127.0.0.1:3000/d/dyno-run?from={}&to={}", at("begin"), at("end"));
        assert_eq!(phase["link"], expected.as_str());
    }
}
