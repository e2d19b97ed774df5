//! `--remote-write` against a real Prometheus: what it has afterwards is what the summary says.

use crate::grafana::{Ended, await_ready, encoded, get, program};
use dyno_testkit::{Dyno, RedisProcess, free_port, skip, skip_because, stderr};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A Prometheus that takes remote writes; its port.
fn prometheus(folder: &Path) -> Option<(Ended, u16)> {
    let port = free_port();
    std::fs::write(folder.join("prometheus.yml"), "global: {scrape_interval: 1s}\n").unwrap();
    let arguments = [
        "--config.file=prometheus.yml".to_owned(),
        "--storage.tsdb.path=data".to_owned(),
        format!("--web.listen-address=127.0.0.1:{port}"),
        "--web.enable-remote-write-receiver".to_owned(),
    ];
    let running = program("prometheus", &arguments, folder)?;
    await_ready(port);
    Some((running, port))
}

/// The last value of each series of a query that has not ended longer ago than ten minutes, by its labels.
fn last(port: u16, selector: &str) -> Vec<(BTreeMap<String, String>, f64)> {
    let query = encoded(&format!("last_over_time({selector}[10m])"));
    let answer = get(port, &format!("/api/v1/query?query={query}"));
    assert_eq!(answer["status"], "success", "{selector}: {answer}");
    let row = |row: &Value| {
        let labels = row["metric"].as_object().unwrap().iter();
        let labels = labels.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        (labels.collect(), row["value"][1].as_str().unwrap().parse().unwrap())
    };
    answer["data"]["result"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn prometheus_has_what_the_summary_says() {
    let what = "remote write to Prometheus";
    let Some(server) = RedisProcess::start(&[]) else { return skip(what) };
    let dyno = Dyno::new();
    let Some((_prometheus, port)) = prometheus(dyno.folder.path()) else {
        return skip_because(what, "Prometheus is not installed");
    };
    let url = format!("http://127.0.0.1:{port}");
    let load = ["--records", "1000", "--rate", "1000", "--duration", "3s", "--warmup", "500ms", "-q"];
    let run = dyno.run(&[&["run", &server.uri(), "--out", "r", "--remote-write", &url][..], &load].concat());
    dyno.assert_ran(&run);
    assert!(!stderr(&run).contains("--remote-write"), "{}", stderr(&run));
    let summary = dyno.summary("r");
    let (mut expected, mut responses) = (BTreeMap::new(), BTreeMap::new());
    for phase in summary["phases"].as_array().unwrap() {
        let name = phase["name"].as_str().unwrap();
        for metric in phase["metrics"].as_array().unwrap() {
            let key = |outcome: &str| {
                (name.to_owned(), metric["name"].as_str().unwrap().to_owned(), outcome.to_owned())
            };
            for (outcome, count) in metric["outcomes"].as_object().unwrap() {
                expected.insert(key(outcome), count.as_f64().unwrap());
            }
            if let Some(count) = metric["response"]["count"].as_f64() {
                responses.insert(key("ok"), count);
            }
        }
    }
    let by = |rows: Vec<(BTreeMap<String, String>, f64)>, third: &str| -> BTreeMap<_, f64> {
        let key = |labels: &BTreeMap<String, String>| {
            (labels["phase"].clone(), labels["metric"].clone(), labels[third].clone())
        };
        rows.iter().filter(|(_, value)| *value > 0.0).map(|(labels, value)| (key(labels), *value)).collect()
    };
    assert!(expected.len() >= 5, "{expected:?}");
    assert_eq!(by(last(port, "dyno_operations_total"), "outcome"), expected);
    let counts = by(last(port, "dyno_response_seconds_count"), "result");
    for (key, count) in &responses {
        assert_eq!(counts.get(key), Some(count), "{key:?}");
    }
    let all = by(last(port, "dyno_response_seconds_bucket{le=\"+Inf\"}"), "result");
    assert_eq!(all, counts, "the last bucket holds all");
    // Labels of its own, as a scraper would add them; and nothing of the server is missing.
    let series = last(port, "dyno_run_info");
    let [(labels, one)] = &series[..] else { panic!("{series:?}") };
    assert_eq!((labels["job"].as_str(), labels["run"].as_str(), *one), ("dyno", "r", 1.0));
    assert!(labels["instance"].ends_with(":r"), "{labels:?}");
    assert!(!last(port, "dyno_server_total{source=\"database\"}").is_empty());
    // Every series has ended: none is shown as if the run went on.
    let now = get(port, &format!("/api/v1/query?query={}", encoded("{job=\"dyno\"}")));
    assert_eq!(now["data"]["result"].as_array().map(Vec::len), Some(0), "{now}");
}

#[test]
fn a_prometheus_that_takes_no_remote_write_says_so() {
    let what = "a Prometheus without remote write";
    let dyno = Dyno::new();
    let port = free_port();
    std::fs::write(dyno.path("prometheus.yml"), "global: {scrape_interval: 1s}\n").unwrap();
    let arguments = [
        "--config.file=prometheus.yml".to_owned(),
        "--storage.tsdb.path=data".to_owned(),
        format!("--web.listen-address=127.0.0.1:{port}"),
    ];
    let Some(_prometheus) = program("prometheus", &arguments, dyno.folder.path()) else {
        return skip_because(what, "Prometheus is not installed");
    };
    await_ready(port);
    let url = format!("http://127.0.0.1:{port}");
    let run = dyno.run(&["run", "sim:", "--ops", "1000", "--no-out", "-q", "--remote-write", &url]);
    dyno.assert_ran(&run);
    let said = stderr(&run);
    assert!(said.contains("answered 404 Not Found: remote write receiver needs to be enabled"), "{said}");
}
