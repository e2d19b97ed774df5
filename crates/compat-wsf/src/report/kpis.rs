//! The KPI text of an iteration.

use crate::report::client::{ClientKpis, Half};
use dyno_rundir::schema::{Latency, Metric, Summary};
use dyno_types::metric::CLEANUP;
use dyno_types::stats::mean;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Figures of all clients together, which their own figures do not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CombinedKpis {
    /// Successful operations per second while all clients were at work.
    pub throughput: Option<f64>,
    /// Length of that time, seconds.
    pub window_s: f64,
    /// True if that time is the same as each client's own.
    pub whole: bool,
    /// 99th percentiles of all clients' operations, from merged histograms, microseconds.
    pub p99: Vec<(String, f64)>,
    /// The same of response times, counted from when each operation was due: of a load that keeps to a schedule (TARGET).
    pub response_p99: Vec<(String, f64)>,
    /// Operations of the run phase that did not end well, by outcome.
    pub failed: BTreeMap<String, u64>,
    /// Windows of the run phase.
    pub windows: Vec<Windowed>,
}

/// A window of the run phase, all clients together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Windowed {
    /// Begin and end that were asked for, seconds of the run phase.
    pub asked: (u64, u64),
    /// Whole seconds of it that were recorded.
    pub seconds: u64,
    /// Operations in them that ended well.
    pub operations: u64,
    /// 99th percentiles, microseconds.
    pub p99: Vec<(String, f64)>,
}

impl CombinedKpis {
    /// Takes them from a summary and the successful operations of each second of the run phase (from the end of the warm-up).
    pub fn of(summary: &Summary, seconds: &BTreeMap<u64, u64>) -> CombinedKpis {
        let Some(phase) = summary.phases.iter().find(|phase| phase.name == "measure") else {
            return CombinedKpis::default();
        };
        let p99 = |metric: &Metric, latency: &Option<Latency>| {
            Some((metric.name.clone(), (*latency.as_ref()?.percentiles_us.get("p99")?)?))
        };
        let due = |metric: &&Metric| phase.offered.is_some() && metric.response.is_some();
        let failed = phase.outcomes.iter().filter(|(name, n)| *name != "ok" && **n > 0);
        let mut all = CombinedKpis {
            throughput: Some(phase.throughput),
            window_s: phase.seconds,
            whole: true,
            p99: phase.metrics.iter().filter_map(|metric| p99(metric, &metric.service)).collect(),
            response_p99: phase
                .metrics
                .iter()
                .filter(due)
                .filter_map(|metric| p99(metric, &metric.response))
                .collect(),
            failed: failed.map(|(name, n)| (name.clone(), *n)).collect(),
            windows: Vec::new(),
        };
        // Until the first client has ended, in whole seconds.
        let measured =
            summary.pairs.iter().filter_map(|pair| pair.phases.iter().find(|p| p.name == "measure"));
        let first = measured.map(|phase| phase.seconds).reduce(f64::min).unwrap_or(phase.seconds);
        let common = first.floor();
        if summary.pairs.len() > 1 && common >= 1.0 {
            let operations: u64 = seconds.range(..common as u64).map(|(_, n)| n).sum();
            (all.throughput, all.window_s, all.whole) = (Some(operations as f64 / common), common, false);
        }
        all
    }
}

/// The KPI text: each client's figures, then all clients'. Figures that are known for all clients together stand under the
/// names that comparisons look at; the original's sum and means stand beside them where there are several clients.
pub fn kpi_text(clients: &[ClientKpis], together: Option<&CombinedKpis>) -> String {
    let mut out = String::new();
    for (number, client) in clients.iter().enumerate() {
        if let Some(load) = &client.load {
            let _ = writeln!(out, "Counter of [LOAD PHASE]: {number}");
            half(load, false, &mut out);
        }
        if let Some(run) = &client.run {
            let _ = writeln!(out, "Counter of [RUN PHASE]: {number}");
            half(run, true, &mut out);
        }
    }
    out.push_str("Summary:\n");
    let runs: Vec<&Half> = clients.iter().filter_map(|client| client.run.as_ref()).collect();
    for (name, word) in [("INSERT", "insert"), ("READ", "read"), ("UPDATE", "update"), ("SCAN", "scan")] {
        percentiles(name, word, &runs, together, &mut out);
    }
    throughputs(&runs, together, &mut out);
    together.iter().flat_map(|together| &together.windows).for_each(|one| window(one, &mut out));
    let failed: u64 = match together {
        Some(together) => together.failed.values().sum(),
        None => runs.iter().map(|run| run.failed()).sum(),
    };
    let _ = writeln!(out, "Operations of [RUN PHASE] that failed: {failed}");
    out
}

/// Writes the figures of a window: throughput and percentiles of all clients.
fn window(one: &Windowed, out: &mut String) {
    let named = format!("in window {}-{} s", one.asked.0, one.asked.1);
    if one.seconds == 0 {
        let _ = writeln!(out, "# Sum of [RUN PHASE] Throughput {named}: the run phase ended before");
        return;
    }
    let whole = one.asked.1 - one.asked.0;
    let short = if one.seconds < whole {
        format!(" # the run phase ended in it: {} s", one.seconds)
    } else {
        String::new()
    };
    let rate = one.operations as f64 / one.seconds as f64;
    let _ = writeln!(out, "Sum of [RUN PHASE] Throughput {named}(ops/sec): {rate}{short}");
    for (name, value) in &one.p99 {
        let word = name.to_lowercase();
        let _ = writeln!(out, "P99 of [RUN PHASE] {word} latency {named}(us): {value}");
    }
}

/// One phase, with the original's commas and blanks, which differ from line to line.
fn half(half: &Half, run: bool, out: &mut String) {
    if let Some(throughput) = half.throughput {
        let _ = writeln!(out, "[OVERALL] Throughput(ops/sec):  {throughput}");
    }
    for operation in &half.operations {
        let name = operation.name.as_str();
        // Of closing its connections a client tells the mean alone.
        let cleanup = name == CLEANUP;
        let figures = [
            ("AverageLatency", operation.average, cleanup, false),
            ("MinLatency", operation.min, run, name == "READ"),
            ("MaxLatency", operation.max, run, name == "READ"),
            ("99thPercentileLatency", operation.p99, run, name == "READ"),
        ];
        for (figure, value, comma, narrow) in figures.into_iter().take(if cleanup { 1 } else { 4 }) {
            if let Some(value) = value {
                let (comma, blank) = (if comma { "," } else { "" }, if narrow { " " } else { "  " });
                let _ = writeln!(out, "[{name}]{comma} {figure}(us):{blank}{value}");
            }
        }
    }
}

fn percentiles(name: &str, word: &str, runs: &[&Half], together: Option<&CombinedKpis>, out: &mut String) {
    let there = runs.iter().filter_map(|run| run.operation(name)).count();
    let own: Vec<f64> = runs.iter().filter_map(|run| run.operation(name)?.p99).collect();
    let line = format!("Mean of [RUN PHASE] P99 {word} latency(us)");
    let response =
        together.and_then(|together| together.response_p99.iter().find(|(known, _)| known == name));
    // A mix without an operation has no latency of it, not one of 0.
    match (mean(&own), there) {
        (None, 0) if word == "scan" => return,
        (None, 0) => {
            let _ = writeln!(out, "# {line}: no {word} in the mix");
            return;
        }
        (None, _) => {
            let _ = writeln!(out, "# {line}: too few operations for a 99th percentile");
        }
        (Some(mean), _) => {
            let few = (own.len() < there).then_some("not of all clients: some have too few operations");
            let remarks: Vec<&str> =
                response.map(|_| "service time: from sending to the reply").into_iter().chain(few).collect();
            let remark =
                if remarks.is_empty() { String::new() } else { format!(" # {}", remarks.join("; ")) };
            let _ = writeln!(out, "*{line}: {mean}{remark}");
        }
    }
    if let Some((_, value)) = response {
        let _ = writeln!(
            out,
            "P99 of [RUN PHASE] {word} response time(us): {value} # from when each operation was due (TARGET), all clients"
        );
    }
    let merged = together.and_then(|together| together.p99.iter().find(|(known, _)| known == name));
    let served = if response.is_some() { " (service time)" } else { "" };
    if let Some((_, value)) = merged.filter(|_| runs.len() > 1) {
        let _ = writeln!(
            out,
            "*P99 of [RUN PHASE] {word} latency of all clients(us): {value} # of all latencies{served}; a mean of \
             percentiles is none"
        );
    }
}

fn throughputs(runs: &[&Half], together: Option<&CombinedKpis>, out: &mut String) {
    let own: Vec<f64> = runs.iter().filter_map(|run| run.throughput).collect();
    let sum: f64 = own.iter().sum();
    let aligned = together.and_then(|together| Some((together.throughput?, together)));
    let (total, why) = match aligned {
        Some((rate, together)) if !together.whole => {
            (rate, format!(" # over the {} s in which all clients were at work", together.window_s))
        }
        Some((rate, _)) => (rate, String::new()),
        None if own.is_empty() => {
            out.push_str("# Sum of [run phase] Throughput(ops/sec): no client has a run phase\n");
            return;
        }
        None if own.len() > 1 => (sum, " # each client over its own time".into()),
        None => (sum, String::new()),
    };
    let count = runs.len().max(1) as f64;
    let _ = writeln!(out, "Mean of [run phase] Throughput(ops/sec): {}", total / count);
    let _ = writeln!(out, "*Sum of [run phase] Throughput(ops/sec): {total}{why}");
    if aligned.is_some() && own.len() > 1 {
        let _ = writeln!(
            out,
            "Mean of [run phase] Throughput, clients by themselves(ops/sec): {}",
            sum / own.len() as f64
        );
        let _ = writeln!(
            out,
            "Sum of [run phase] Throughput, clients by themselves(ops/sec): {sum} # as the original adds it up"
        );
    }
}
