//! What the programs print on standard output: blocks of text, lines, CSV rows, progress.
//!
//! Rates and milliseconds are computed in single precision, as the original does: its last digits show it.

use super::histogram::{Latencies, ListLine};
use super::{BenchmarkPlan, Output, Program, Reads, Test};
use dyno_record::Buckets;
use std::fmt::Write;

/// How a test went.
#[derive(Clone, Copy, Debug)]
pub struct Ran<'a> {
    /// Latencies of operations.
    pub latencies: &'a Buckets,
    /// Number of operations.
    pub requests: u64,
    /// Length of the test, milliseconds.
    pub elapsed_ms: u64,
    /// Load threads that it had; 0 in a cluster shows the number of nodes.
    pub threads: usize,
    /// The server's CONFIG values of `save` and `appendonly`; `None` if it did not tell them.
    pub config: Option<(&'a str, &'a str)>,
    /// Nodes of the cluster that were used.
    pub cluster_nodes: usize,
    /// Length of the last progress text ([`width_of_progress`]), which is wiped out; 0 if there was none.
    pub progress_width: usize,
    /// Operations a second of each interval of progress, for the summary of `--rps`.
    pub rates: &'a [f64],
}

/// How a test goes.
#[derive(Clone, Copy, Debug)]
pub struct TestProgress {
    /// Operations so far.
    pub requests: u64,
    /// Time so far, milliseconds.
    pub elapsed_ms: u64,
    /// Mean latency so far, milliseconds; NaN if there is none.
    pub mean_ms: f64,
    /// Operations since the last progress text.
    pub interval_requests: u64,
    /// Time since then, milliseconds.
    pub interval_ms: u64,
    /// Mean latency since then, milliseconds; NaN if there is none.
    pub interval_mean_ms: f64,
    /// True during the warm-up.
    pub is_warmup: bool,
    /// Length of the last progress text ([`width_of_progress`]); 0 if there was none.
    pub width: usize,
}

const CSV_HEAD: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
    \"p99_latency_ms\",\"max_latency_ms\"\n";

/// Text before the first test: a CSV's head.
pub fn head(plan: &BenchmarkPlan) -> String {
    match plan.output {
        Output::Csv => CSV_HEAD.to_owned(),
        Output::Text | Output::Quiet => String::new(),
    }
}

/// Text behind the last test, with `-l` behind the last of each loop.
pub fn tail(plan: &BenchmarkPlan) -> String {
    if plan.is_own || plan.output == Output::Csv { String::new() } else { "\n".to_owned() }
}

fn role(reads: Reads) -> &'static str {
    match reads {
        Reads::Primary => "primary",
        Reads::Replica => "replica",
        Reads::Any => "cluster",
    }
}

/// The progress text: the last one is wiped out, and a carriage return ends the new one. Empty with `--csv`.
pub fn progress(plan: &BenchmarkPlan, test: &Test, now: &TestProgress) -> String {
    if plan.output == Output::Csv {
        return String::new();
    }
    let each = test.commands_of_operation();
    let requests = now.requests * each;
    let of_interval = per_second(now.interval_requests * each, now.interval_ms);
    let mut out = wiped(now.width);
    if now.is_warmup {
        out.push_str("Warming up ");
    }
    // Writing into a string cannot fail.
    let _ = write!(
        out,
        "{}: rps={} (overall: {}) avg_msec={} (overall: {})",
        test.title,
        fixed(of_interval, 1),
        fixed(per_second(requests, now.elapsed_ms), 1),
        fixed(now.interval_mean_ms, 3),
        fixed(now.mean_ms, 3)
    );
    let _ = match plan.program {
        Program::RedisBenchmark => Ok(()),
        Program::ValkeyBenchmark if now.is_warmup || plan.duration_s.is_some() => {
            write!(out, " {} seconds", fixed(f64::from(seconds(now.elapsed_ms)), 1))
        }
        Program::ValkeyBenchmark => write!(out, " {requests} requests"),
    };
    out.push('\r');
    out
}

/// Length of a progress text without the wiping at its beginning.
pub fn width_of_progress(text: &str) -> usize {
    text.split_once('\r').map_or(0, |(_, behind)| behind.len())
}

/// The report of a test.
pub fn report(plan: &BenchmarkPlan, test: &Test, ran: &Ran<'_>) -> String {
    let all = Latencies::new(ran.latencies, plan.precision, test.commands_of_operation());
    let requests = ran.requests * test.commands_of_operation();
    let rate = fixed(per_second(requests, ran.elapsed_ms), 2);
    let [mean, others @ ..] = figures(&all);
    // The mean is divided in double precision.
    let mean = f64::from((mean / 1_000.0) as f32);
    let [min, median, p95, p99, max] = others.map(us_to_ms);
    let shown = [mean, min, median, p95, p99, max].map(|ms| fixed(ms, 3));
    match plan.output {
        Output::Csv => format!("\"{}\",\"{rate}\",\"{}\"\n", test.title, shown.join("\",\"")),
        Output::Quiet => {
            let [_, _, median, ..] = shown;
            format!(
                "{}{}: {rate} requests per second, p50={median} msec\n",
                wiped(ran.progress_width),
                test.title
            )
        }
        Output::Text => {
            let mut out = wiped(ran.progress_width);
            push_settings(&mut out, plan, test, ran);
            push_rates(&mut out, plan, test, ran);
            push_lines(&mut out, "Latency by percentile distribution", &all.percentiles());
            push_lines(&mut out, "Cumulative distribution of latencies", &all.distribution());
            // Writing into a string cannot fail.
            let _ = writeln!(out, "\nSummary:\n  throughput summary: {rate} requests per second");
            out.push_str("  latency summary (msec):\n");
            push_summary(&mut out, shown);
            out
        }
    }
}

fn push_settings(out: &mut String, plan: &BenchmarkPlan, test: &Test, ran: &Ran<'_>) {
    // Writing into a string cannot fail.
    let _ = write!(
        out,
        "====== {} ======\n  {} requests completed in {} seconds\n  {} parallel clients\n  {} bytes payload\n  \
         keep alive: {}\n",
        test.title,
        ran.requests * test.commands_of_operation(),
        fixed(f64::from(seconds(ran.elapsed_ms)), 2),
        plan.clients,
        test.payload,
        u8::from(plan.keep_alive)
    );
    match (plan.cluster, ran.config) {
        (true, config) => push_nodes(out, plan, ran.cluster_nodes, config),
        (false, Some((save, appendonly))) => {
            let _ = write!(
                out,
                "  host configuration \"save\": {save}\n  host configuration \"appendonly\": {appendonly}\n"
            );
        }
        (false, None) => {}
    }
    let _ = if plan.cluster || plan.threads.is_some() {
        // Without --threads, the original has one for each node.
        let threads = if ran.threads == 0 { ran.cluster_nodes } else { ran.threads };
        writeln!(out, "  multi-thread: yes\n  threads: {threads}")
    } else {
        writeln!(out, "  multi-thread: no")
    };
}

fn push_nodes(out: &mut String, plan: &BenchmarkPlan, nodes: usize, config: Option<(&str, &str)>) {
    let kind = match plan.program {
        Program::RedisBenchmark => "masters",
        Program::ValkeyBenchmark => role(plan.reads),
    };
    // Writing into a string cannot fail.
    let _ = writeln!(out, "  cluster mode: yes ({nodes} {kind})");
    let Some((save, appendonly)) = config else { return };
    let save = if save.is_empty() { "NONE" } else { save };
    for node in 0..nodes {
        let _ =
            writeln!(out, "  node [{node}] configuration:\n    save: {save}\n    appendonly: {appendonly}");
    }
}

/// The summary of `--rps`.
fn push_rates(out: &mut String, plan: &BenchmarkPlan, test: &Test, ran: &Ran<'_>) {
    let Some(target) = plan.rate.filter(|_| !ran.rates.is_empty()) else { return };
    let each = test.commands_of_operation() as f64;
    let rates: Vec<f64> = ran.rates.iter().map(|rate| rate * each).collect();
    let target = target * each;
    let all = Latencies::of_rates(&rates, target, plan.precision);
    // Writing into a string cannot fail.
    let _ = write!(
        out,
        "\nRPS Summary:\n  target RPS: {}\n  RPS distribution (reqs/sec):\n",
        fixed(f64::from(target as f32), 2)
    );
    push_summary(out, figures(&all).map(|rate| fixed(f64::from(rate as f32), 3)));
}

fn push_lines(out: &mut String, title: &str, lines: &[ListLine]) {
    // Writing into a string cannot fail.
    let _ = writeln!(out, "\n{title}:");
    for line in lines {
        let _ = writeln!(
            out,
            "{}% <= {} milliseconds (cumulative count {})",
            fixed(line.percent, 3),
            fixed(us_to_ms(line.bound_us as f64), 3),
            line.count
        );
    }
}

/// Mean, least, median, 95th and 99th percentile, greatest.
fn figures(all: &Latencies) -> [f64; 6] {
    let [min, median, p95, p99, max] = [all.min(), all.at(50.0), all.at(95.0), all.at(99.0), all.max()];
    [all.mean(), min as f64, median as f64, p95 as f64, p99 as f64, max as f64]
}

fn push_summary(out: &mut String, shown: [String; 6]) {
    for row in [["avg", "min", "p50", "p95", "p99", "max"].map(str::to_owned), shown] {
        let cells = row.map(|cell| format!("{cell:>9}"));
        // Writing into a string cannot fail.
        let _ = writeln!(out, "    {}", cells.join(" "));
    }
}

/// Blanks over the last progress text, at least one.
fn wiped(width: usize) -> String {
    format!("{:width$}\r", "", width = width.max(1))
}

fn seconds(ms: u64) -> f32 {
    ms as f32 / 1_000.0
}

fn per_second(requests: u64, ms: u64) -> f64 {
    f64::from(requests as f32 / seconds(ms))
}

fn us_to_ms(us: f64) -> f64 {
    f64::from(us as f32 / 1_000.0)
}

/// A number as C prints it: `inf`, and `-nan` for zero divided by zero.
fn fixed(number: f64, digits: usize) -> String {
    if number.is_nan() {
        return "-nan".to_owned();
    }
    format!("{number:.digits$}")
}
