//! YCSB: its report (text and both JSON exporters), its status lines, its `.hdr` files. Any mixture of files of one run.

use crate::import::{BadFile, Found, ImportDetails, Input, counted, hdr, latency, ycsb_status};
use dyno_rundir::schema::{Latency, Metric, Setting};
use dyno_types::limits::{IMPORT_COUNT, IMPORT_FIGURE};
use dyno_types::metric::{CLEANUP, READ_MODIFY_WRITE, SCAN_PER_RECORD, VERIFY};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A report's value with its place.
struct ReportEntry {
    line: usize,
    measurement: String,
    value: f64,
}

/// By metric, in the order of the report.
#[derive(Default)]
struct YcsbReport {
    path: PathBuf,
    metrics: Vec<(String, Vec<ReportEntry>)>,
}

impl YcsbReport {
    fn add(&mut self, line: usize, metric: &str, measurement: &str, value: f64) {
        let entry = ReportEntry { line, measurement: measurement.to_owned(), value };
        match self.metrics.iter_mut().find(|(name, _)| name == metric) {
            Some((_, entries)) => entries.push(entry),
            None => self.metrics.push((metric.to_owned(), vec![entry])),
        }
    }

    fn get(&self, metric: &str, measurement: &str) -> Option<f64> {
        let entries = &self.metrics.iter().find(|(name, _)| name == metric)?.1;
        entries.iter().find(|entry| entry.measurement == measurement).map(|entry| entry.value)
    }
}

/// Metrics that hold others, or no operation of the workload.
const DERIVED: [&str; 4] = [READ_MODIFY_WRITE, CLEANUP, SCAN_PER_RECORD, VERIFY];

const REPORT: &str = "YCSB's report with [OVERALL], RunTime(ms) (text or JSON)";

/// Reads all files of a run.
pub fn read(inputs: &[Input], said: &ImportDetails) -> Result<Found, BadFile> {
    let mut report = YcsbReport::default();
    let mut status = Vec::new();
    let mut logs = Vec::new();
    let mut command = None;
    for input in inputs {
        if hdr::is_one(&input.text) {
            logs.push(hdr::read(input)?);
            continue;
        }
        let lines = || input.text.lines().enumerate();
        if lines().any(|(_, line)| line.contains("current ops/sec")) {
            status = ycsb_status::read(input)?;
        }
        command = command.or_else(|| {
            let (number, message) =
                lines().find_map(|(n, l)| Some((n, l.strip_prefix("Command line: ")?)))?;
            Some((input.path.clone(), number + 1, message.to_owned()))
        });
        if report.metrics.is_empty() {
            read_report(input, &mut report)?;
        }
    }
    hdr::align(&mut logs);
    let mut found = Found { program: "YCSB", phase: "measure", ..Found::default() };
    if let Some((path, line, message)) = &command {
        arguments(&mut found, message, &format!("file {}:{line}", path.display()));
    }
    let longest = IMPORT_FIGURE * 1e3;
    let Some(run_ms) = report.get("OVERALL", "RunTime(ms)").filter(|ms| *ms > 0.0 && *ms <= longest) else {
        let first = &inputs[0];
        return Err(BadFile::new(&first.path, 1, REPORT, first.text.lines().next().unwrap_or("")));
    };
    found.seconds = run_ms / 1e3;
    let rate_unknown = found.unknown.iter().any(|message| message.contains("set a rate"));
    let closed = said.closed_loop || (command.is_some() && found.offered.is_none() && !rate_unknown);
    if !closed {
        let message = match found.offered {
            Some(_) => "response times (from the intended start) where the report has no Intended- lines",
            None => {
                "whether a rate was set, and so response times (give the standard error's file, or --closed-loop)"
            }
        };
        found.unknown.push(message.into());
    }
    // Each thread cleans up once, however many were asked for.
    if let Some(threads) = report.get(CLEANUP, "Operations").and_then(counted).filter(|count| *count > 0) {
        found.users = usize::try_from(threads).ok();
    }
    metrics(&mut found, &report, closed)?;
    intervals(&mut found, status, &logs, closed);
    if found.users.is_none() && said.users.is_none() {
        found.unknown.push("the number of users (--users)".into());
    }
    Ok(found)
}

/// Reads the command line of the run.
fn arguments(found: &mut Found, text: &str, source: &str) {
    let mut put = |key: &str, value: &str| {
        found.settings.push(Setting { key: key.into(), value: value.into(), source: source.into() });
    };
    let mut words = text.split_whitespace();
    // A file of properties may set what the command line does not; YCSB's own set neither.
    let (mut users, mut offered, mut files) = (None, None, false);
    while let Some(word) = words.next() {
        match word {
            "-load" => found.phase = "load",
            "-t" => found.phase = "measure",
            "-threads" | "-target" | "-db" | "-P" => {
                let value = words.next().unwrap_or("");
                match word {
                    "-threads" => users = value.parse().ok(),
                    "-target" => offered = value.parse().ok().filter(|rate: &f64| *rate > 0.0),
                    "-P" => files |= !is_stock(value),
                    _ => {}
                }
                put(word.trim_start_matches('-').replace('P', "workload").as_str(), value);
            }
            "-p" => {
                if let Some((key, value)) = words.next().and_then(|word| word.split_once('=')) {
                    match key {
                        "threadcount" => users = value.parse().ok(),
                        "target" => offered = value.parse().ok().filter(|rate: &f64| *rate > 0.0),
                        _ => {}
                    }
                    let secret = dyno_types::secret::is_secret(key);
                    put(key, &if secret { "***".to_owned() } else { dyno_types::secret::mask_text(value) });
                }
            }
            _ => {}
        }
    }
    (found.users, found.offered) = (users.or((!files).then_some(1)), offered);
    if files && offered.is_none() {
        found.unknown.push("whether a file of properties (-P) set a rate".into());
    }
}

/// Returns whether a file of properties is one of YCSB's own, `workloada` to `workloadf`.
fn is_stock(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_prefix("workload").is_some_and(|letter| matches!(letter, "a" | "b" | "c" | "d" | "e" | "f"))
}

fn read_report(input: &Input, report: &mut YcsbReport) -> Result<(), BadFile> {
    report.path.clone_from(&input.path);
    let start = input.text.trim_start();
    if start.starts_with('{') || start.starts_with("[ {") || start.starts_with("[{") {
        return read_json(input, report);
    }
    for (number, line) in input.text.lines().enumerate() {
        let Some(rest) = line.strip_prefix('[') else { continue };
        let mut parts = rest.splitn(3, ", ");
        let (Some(name), Some(measurement), Some(value)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(name) = name.strip_suffix(']') else { continue };
        let bad = || BadFile::new(&input.path, number + 1, "a number as the third part of the line", value);
        report.add(number + 1, name, measurement, value.trim().parse().map_err(|_| bad())?);
    }
    Ok(())
}

/// JSON objects one after the other, or one array of them.
fn read_json(input: &Input, report: &mut YcsbReport) -> Result<(), BadFile> {
    let expected = "objects with metric, measurement and value";
    let stream = serde_json::Deserializer::from_str(&input.text).into_iter::<Value>();
    for value in stream {
        let value = value.map_err(|e| BadFile::new(&input.path, e.line(), expected, &e.to_string()))?;
        let list = match value {
            Value::Array(list) => list,
            one => vec![one],
        };
        for object in list {
            let text = |key: &str| object[key].as_str();
            let number = object["value"].as_f64().or_else(|| text("value")?.parse().ok());
            let (Some(metric), Some(measurement), Some(number)) =
                (text("metric"), text("measurement"), number)
            else {
                return Err(BadFile::new(&input.path, 1, expected, &object.to_string()));
            };
            report.add(1, metric, measurement, number);
        }
    }
    Ok(())
}

/// `95thPercentileLatency(us)` or `99.9PercentileLatency(us)` as `p95`, `p99.9`.
fn percentile(measurement: &str) -> Option<String> {
    let number = measurement.strip_suffix("PercentileLatency(us)")?;
    let number = ["st", "nd", "rd", "th"].iter().find_map(|end| number.strip_suffix(end)).unwrap_or(number);
    number.parse::<f64>().ok().map(|_| format!("p{number}"))
}

fn latency_of(entries: &[ReportEntry]) -> Option<Latency> {
    let get = |name: &str| entries.iter().find(|entry| entry.measurement == name).map(|entry| entry.value);
    let count = get("Operations").filter(|count| *count > 0.0)?;
    let mut found = latency(counted(count)?, get("AverageLatency(us)").filter(|mean| mean.is_finite())?);
    (found.min_us, found.max_us) = (get("MinLatency(us)"), get("MaxLatency(us)"));
    // measurementtype=histogram rounds down to whole milliseconds: that is no percentile of microseconds.
    if get("LatencyVariance(us)").is_none() {
        let all = entries.iter().filter_map(|e| Some((percentile(&e.measurement)?, Some(e.value))));
        found.percentiles_us = all.collect();
    }
    Some(found)
}

/// dyno's name of a return code.
fn outcome(code: &str) -> &'static str {
    match code {
        "OK" | "BATCHED_OK" => "ok",
        "NOT_FOUND" => "not_found",
        "UNEXPECTED_STATE" => "mismatch",
        "NOT_IMPLEMENTED" => "not_implemented",
        "BAD_REQUEST" => "bad_request",
        "FORBIDDEN" => "forbidden",
        "SERVICE_UNAVAILABLE" => "busy",
        _ => "server_error",
    }
}

fn metrics(found: &mut Found, report: &YcsbReport, closed: bool) -> Result<(), BadFile> {
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    let mut coarse = false;
    for (name, entries) in &report.metrics {
        let skipped = ["OVERALL", "TOTAL_"].iter().any(|start| name.starts_with(start));
        if skipped || name.starts_with("Intended-") || name.ends_with("-FAILED") {
            continue;
        }
        let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
        for entry in entries {
            if let Some(code) = entry.measurement.strip_prefix("Return=") {
                let bad = || {
                    BadFile::new(
                        &report.path,
                        entry.line,
                        &format!("a count up to {IMPORT_COUNT}"),
                        &entry.value.to_string(),
                    )
                };
                *outcomes.entry(outcome(code).to_owned()).or_default() +=
                    counted(entry.value).ok_or_else(bad)?;
            }
        }
        coarse |= entries.iter().any(|entry| entry.measurement == "LatencyVariance(us)");
        let service = latency_of(entries);
        if outcomes.is_empty() {
            outcomes.extend(service.iter().map(|service| ("ok".to_owned(), service.count)));
        }
        let other = |name: &str| report.metrics.iter().find(|(known, _)| known == name);
        let intended = other(&format!("Intended-{name}")).and_then(|(_, entries)| latency_of(entries));
        let lost = other(&format!("{name}-FAILED")).and_then(|(_, entries)| latency_of(entries));
        if !DERIVED.contains(&name.as_str()) {
            for (outcome, count) in outcomes.iter().filter(|(outcome, _)| *outcome != "ok") {
                *failed.entry(outcome.clone()).or_default() += count;
            }
        }
        found.metrics.push(Metric {
            name: name.clone(),
            outcomes,
            response: intended.or(service.clone().filter(|_| closed)),
            service,
            server: None,
            client_us: BTreeMap::new(),
            failed_service: lost,
            failed_response: None,
            all_response: None,
            all_service: None,
        });
    }
    if coarse {
        found.unknown.push("percentiles (measurementtype=histogram has whole milliseconds only)".into());
    }
    let place = || report.metrics.first().and_then(|(_, e)| e.first()).map_or(1, |entry| entry.line);
    let Some(rate) = report.get("OVERALL", "Throughput(ops/sec)").filter(|rate| *rate <= IMPORT_FIGURE)
    else {
        return Err(BadFile::new(&report.path, place(), "[OVERALL], Throughput(ops/sec)", "none"));
    };
    let all = (rate * found.seconds).round() as u64;
    let lost: u64 = failed.values().sum();
    found.outcomes = failed;
    found.outcomes.insert("ok".into(), all.saturating_sub(lost));
    Ok(())
}

/// Intervals of the histograms where these are given, else of the status lines.
fn intervals(found: &mut Found, status: Vec<ycsb_status::StatusLine>, logs: &[hdr::HdrLog], closed: bool) {
    let response = |name: &str| logs.iter().any(|log| log.metric == format!("Intended-{name}"));
    if !logs.is_empty() {
        for log in logs {
            let (name, kinds): (&str, &[&str]) = match log.metric.strip_prefix("Intended-") {
                Some(name) => (name, &["response"]),
                None if closed && !response(&log.metric) => (&log.metric, &["service", "response"]),
                None => (&log.metric, &["service"]),
            };
            let known = found.metrics.iter_mut().find(|metric| metric.name == name);
            let Some(metric) = known else { continue };
            for kind in kinds {
                let tag = format!("{}.{name}.ok.{kind}", found.phase);
                log.lines.iter().for_each(|line| found.log.push_str(&line.tagged(&tag)));
                let exact = log.whole.clone();
                let slot = if *kind == "service" { &mut metric.service } else { &mut metric.response };
                hdr::percentiles(slot, exact);
            }
        }
        found.intervals = hdr::intervals(logs, &DERIVED);
    } else {
        found.unknown.push("histograms (only percentiles; give the .hdr files where there are some)".into());
        found.intervals = ycsb_status::intervals(&status, found.seconds, closed);
    }
    if let Some(last) = status.last() {
        found.started = last.started(found.seconds);
        found
            .facts
            .insert("started".into(), "by the last status line; its time zone is taken for UTC".into());
    }
    if found.intervals.is_empty() {
        found.unknown.push("the course of throughput (status lines: -s)".into());
    }
}
