//! One client's log: what YCSB would have printed in both phases, and its reading.

use dyno_compat_ycsb::report::exporter::Exporter;
use dyno_compat_ycsb::report::line::{Line, ReportNumber};
use dyno_compat_ycsb::report::return_code::ReturnCode;
use dyno_rundir::schema::{Latency, Metric, Phase};
use dyno_types::Outcome;
use dyno_types::metric::{CLEANUP, READ_MODIFY_WRITE};
use std::collections::BTreeMap;

/// One operation of one phase, microseconds. What the log does not say is absent, never zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Operation {
    /// Name, such as `READ`.
    pub name: String,
    /// Mean.
    pub average: Option<f64>,
    /// Least.
    pub min: Option<f64>,
    /// Greatest.
    pub max: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Operations that did not end well.
    pub failed: u64,
}

/// One phase of one client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Half {
    /// Operations per second over its own time.
    pub throughput: Option<f64>,
    /// Operations in the log's order.
    pub operations: Vec<Operation>,
}

/// One client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientKpis {
    /// The load phase.
    pub load: Option<Half>,
    /// The run phase.
    pub run: Option<Half>,
}

impl Half {
    /// An operation by its name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// Operations that did not end well.
    pub fn failed(&self) -> u64 {
        self.operations.iter().map(|operation| operation.failed).sum()
    }
}

/// A client's log: the phases of its pair, as YCSB prints them.
pub fn client_log(phases: &[Phase]) -> String {
    let mut out = String::new();
    for (name, marker) in [("load", "[LOAD PHASE]"), ("measure", "[RUN PHASE]")] {
        let Some(phase) = phases.iter().find(|phase| phase.name == name) else { continue };
        out.push_str(marker);
        out.push('\n');
        out.push_str(&Exporter::Text.export(&lines(phase)));
    }
    out.push_str("benchmark-finish\n");
    out
}

/// Lists the lines of a phase as a YCSB client prints them.
pub fn lines(phase: &Phase) -> Vec<Line> {
    let unsent = |name: &str| ["dropped", "aborted"].contains(&name);
    let done: u64 = phase.outcomes.iter().filter(|(name, _)| !unsent(name)).map(|(_, n)| n).sum();
    let run_s = phase.until_last_s();
    let rate = if run_s > 0.0 { done as f64 / run_s } else { f64::NAN };
    let mut out = vec![
        Line::new("OVERALL", "RunTime(ms)", ReportNumber::Int((run_s * 1e3).round() as i64)),
        Line::new("OVERALL", "Throughput(ops/sec)", ReportNumber::Double(rate)),
    ];
    for metric in &phase.metrics {
        let failed = format!("{}-FAILED", metric.name);
        for (name, latency) in [(&metric.name, &metric.service), (&failed, &metric.failed_service)] {
            if let Some(latency) = latency {
                latencies(name, latency, &mut out);
            }
        }
        let mut codes: BTreeMap<ReturnCode, u64> = BTreeMap::new();
        for (name, count) in &metric.outcomes {
            if let Some(outcome) = Outcome::from_name(name) {
                *codes.entry(ReturnCode::of(outcome)).or_default() += count;
            }
        }
        if has_codes(metric) {
            let words = codes.into_iter().map(|(code, n)| (format!("Return={}", code.name()), n));
            out.extend(words.map(|(word, n)| Line::new(&metric.name, &word, ReportNumber::Int(n as i64))));
        }
    }
    out
}

fn has_codes(metric: &Metric) -> bool {
    ![CLEANUP, READ_MODIFY_WRITE].contains(&metric.name.as_str())
}

fn latencies(name: &str, latency: &Latency, out: &mut Vec<Line>) {
    out.push(Line::new(name, "Operations", ReportNumber::Int(latency.count as i64)));
    out.push(Line::new(name, "AverageLatency(us)", ReportNumber::Double(latency.mean_us)));
    for (word, value) in [("MinLatency(us)", latency.min_us), ("MaxLatency(us)", latency.max_us)] {
        out.extend(value.map(|value| Line::new(name, word, ReportNumber::Int(value as i64))));
    }
    for (key, word) in [("p95", "95thPercentileLatency(us)"), ("p99", "99thPercentileLatency(us)")] {
        if let Some(Some(value)) = latency.percentiles_us.get(key) {
            out.push(Line::new(name, word, ReportNumber::Int(*value as i64)));
        }
    }
}

/// Reads a client's log, dyno's or YCSB's own.
pub fn read_log(text: &str) -> ClientKpis {
    let mut all = ClientKpis::default();
    let mut running = None;
    for line in text.lines() {
        // Markers of both versions stand at the beginning of a line.
        let marked = |phase: &str| {
            [" ", "_"].iter().any(|gap| line.trim_start().starts_with(&format!("[{phase}{gap}PHASE]")))
        };
        match () {
            () if marked("LOAD") => running = Some(false),
            () if marked("RUN") => running = Some(true),
            () => {
                let half = match running {
                    Some(true) => &mut all.run,
                    Some(false) => &mut all.load,
                    None => continue,
                };
                take(line, half);
            }
        }
    }
    all
}

/// Takes one `[METRIC], measurement, value`; any other line is none of YCSB's.
fn take(line: &str, half: &mut Option<Half>) {
    let mut words = line.splitn(3, ',').map(str::trim);
    let (Some(metric), Some(measurement), Some(value)) = (words.next(), words.next(), words.next()) else {
        return;
    };
    let Some(metric) = metric.strip_prefix('[').and_then(|m| m.strip_suffix(']')) else { return };
    let Some(value) = value.parse::<f64>().ok().filter(|v| v.is_finite()) else { return };
    let half = half.get_or_insert_default();
    if metric == "OVERALL" {
        if measurement == "Throughput(ops/sec)" {
            half.throughput = Some(value);
        }
        return;
    }
    if !["READ", "UPDATE", "INSERT", "SCAN", READ_MODIFY_WRITE, CLEANUP].contains(&metric) {
        return;
    }
    let at = half.operations.iter().position(|known| known.name == metric).unwrap_or_else(|| {
        half.operations.push(Operation { name: metric.to_owned(), ..Operation::default() });
        half.operations.len() - 1
    });
    let operation = &mut half.operations[at];
    match measurement {
        "AverageLatency(us)" => operation.average = Some(value),
        "MinLatency(us)" => operation.min = Some(value),
        "MaxLatency(us)" => operation.max = Some(value),
        "99thPercentileLatency(us)" => operation.p99 = Some(value),
        _ if measurement.starts_with("Return=") && measurement != "Return=OK" => {
            operation.failed += value as u64;
        }
        _ => {}
    }
}
