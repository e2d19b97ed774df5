//! What memtier prints: progress, the table, the distribution of latencies.

use super::args::Settings;
use dyno_record::{Buckets, Scale, bucket_high};
use hdrhistogram::Histogram;
use std::fmt::Write as _;

/// Least and greatest latency of memtier's histograms, microseconds.
const BOUNDS_US: (u64, u64) = (10, 6_000_000_000);

/// Steps of a distribution to each half of what is left.
const TICKS: u32 = 10;

/// What a second of a kind of request came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSecond {
    /// Its number, from 0.
    pub number: u64,
    /// Requests.
    pub count: u64,
    /// Bytes sent and received.
    pub bytes: (u64, u64),
    /// Latencies.
    pub latencies: Buckets,
}

/// What a kind of request came to.
#[derive(Clone, Debug)]
pub struct RequestTotals {
    /// The row's name: `Sets`.
    pub name: String,
    /// Requests that were answered, or were not in time.
    pub count: u64,
    /// Answers that have found something, and nothing.
    pub hits: (u64, u64),
    /// Requests that were lost with their connection, or had none.
    pub connection_errors: u64,
    /// Bytes sent and received.
    pub bytes: (u64, u64),
    /// Latencies from sending to the reply, of all that were answered.
    pub latencies: Buckets,
    /// The same, second by second.
    pub seconds: Vec<RequestSecond>,
}

/// A run.
#[derive(Clone, Debug)]
pub struct MemtierRun {
    /// Begin and end, milliseconds since 1970.
    pub times_ms: (u64, u64),
    /// Length of the measured time, seconds.
    pub seconds: f64,
    /// True if a signal has ended it.
    pub interrupted: bool,
    /// Kinds of requests, in the order of their rows.
    pub kinds: Vec<RequestTotals>,
}

/// A line of the table.
#[derive(Clone, Debug)]
pub(super) struct TableLine {
    pub(super) name: String,
    pub(super) ops: f64,
    /// Hits and misses a second, where the row has them.
    pub(super) hits: Option<(f64, f64)>,
    pub(super) latencies: Histogram<u64>,
    pub(super) count: u64,
    pub(super) connection_errors: u64,
    /// KiB a second, received and sent.
    pub(super) kb: (f64, f64),
}

/// memtier's form of latencies: microseconds with three digits.
pub(super) fn histogram(all: &[&Buckets]) -> Histogram<u64> {
    histogram_of((BOUNDS_US.0, BOUNDS_US.1, 3), all)
}

/// Latencies in microseconds, from the first to the second, with so many digits.
pub(super) fn histogram_of((least, most, digits): (u64, u64, u8), all: &[&Buckets]) -> Histogram<u64> {
    let of = |buckets: &Buckets| {
        let unit = buckets.bucket_scale().unit_ns();
        let us = move |bucket| (bucket_high(bucket) * unit + unit - 1) / 1_000;
        buckets.iter().map(move |(bucket, count)| (us(bucket), count)).collect::<Vec<_>>()
    };
    histogram_from((least, most, digits), all.iter().flat_map(|buckets| of(buckets)))
}

/// The same, of latencies that occurred so often.
pub(super) fn histogram_from(
    (least, most, digits): (u64, u64, u8),
    all: impl Iterator<Item = (u64, u64)>,
) -> Histogram<u64> {
    let mut found = Histogram::new_with_bounds(least, most, digits).expect("the bounds are apart");
    all.for_each(|(us, count)| found.saturating_record_n(us.max(least), count));
    found
}

/// The percentile in milliseconds, as memtier has it: of no requests 0.007.
pub(super) fn percentile(latencies: &Histogram<u64>, percentile: f64) -> f64 {
    let wanted = ((percentile / 100.0 * latencies.len() as f64 + 0.5) as u64).max(1);
    let mut seen = 0;
    let found = latencies.iter_recorded().find(|step| {
        seen += step.count_since_last_iteration();
        seen >= wanted
    });
    found.map_or(0.007, |step| latencies.highest_equivalent(step.value_iterated_to()) as f64 / 1e3)
}

impl MemtierRun {
    /// The lines of the table: one for each kind, and that of all.
    pub(super) fn lines(&self, standard: bool) -> Vec<TableLine> {
        let seconds = self.seconds.max(1e-6);
        let line = |name: &str, kinds: &[&RequestTotals], hits: bool| {
            let sum = |of: fn(&RequestTotals) -> u64| kinds.iter().map(|kind| of(kind)).sum::<u64>();
            let count = sum(|kind| kind.count);
            let (found, misses) = match standard {
                // Gets alone hit and miss.
                true => {
                    let gets = kinds.iter().find(|kind| kind.name == "Gets");
                    gets.map_or((0, 0), |gets| gets.hits)
                }
                false => (0, 0),
            };
            let all: Vec<&Buckets> = kinds.iter().map(|kind| &kind.latencies).collect();
            let kb = |bytes: u64| bytes as f64 / 1_024.0 / seconds;
            TableLine {
                name: name.to_owned(),
                ops: count as f64 / seconds,
                hits: hits.then_some((found as f64 / seconds, misses as f64 / seconds)),
                latencies: histogram(&all),
                count,
                connection_errors: sum(|kind| kind.connection_errors),
                kb: (kb(sum(|kind| kind.bytes.1)), kb(sum(|kind| kind.bytes.0))),
            }
        };
        let each = self.kinds.iter().map(|kind| line(&kind.name, &[kind], kind.name == "Gets"));
        let all: Vec<&RequestTotals> = self.kinds.iter().collect();
        each.chain([line("Totals", &all, true)]).collect()
    }

    /// Requests a second.
    fn rate(&self) -> f64 {
        self.kinds.iter().map(|kind| kind.count).sum::<u64>() as f64 / self.seconds.max(1e-6)
    }
}

/// What is printed under one title.
pub(super) struct Part {
    pub(super) title: String,
    pub(super) lines: Vec<TableLine>,
    /// The run that it is of; `None` for all together.
    pub(super) run: Option<usize>,
}

/// The parts of a report, in order.
pub(super) fn parts(settings: &Settings, runs: &[MemtierRun]) -> Vec<Part> {
    let standard = settings.own.is_empty();
    let of =
        |number: usize, title: String| Part { title, lines: runs[number].lines(standard), run: Some(number) };
    if let [_] = runs {
        return vec![of(0, "ALL STATS".into())];
    }
    let mut all = Vec::new();
    if settings.has("print-all-runs") {
        all.extend((0..runs.len()).map(|number| of(number, format!("RUN #{} RESULTS", number + 1))));
    }
    let by_rate = |a: &usize, b: &usize| runs[*a].rate().total_cmp(&runs[*b].rate());
    if let (Some(best), Some(worst)) = ((0..runs.len()).max_by(by_rate), (0..runs.len()).min_by(by_rate)) {
        all.push(of(best, "BEST RUN RESULTS".into()));
        all.push(of(worst, "WORST RUN RESULTS".into()));
        let title = format!("AGGREGATED AVERAGE RESULTS ({} runs)", runs.len());
        let lines = averages(&runs.iter().map(|run| run.lines(standard)).collect::<Vec<_>>());
        all.push(Part { title, lines, run: None });
    }
    all
}

/// Means of rates, and percentiles of all latencies.
fn averages(runs: &[Vec<TableLine>]) -> Vec<TableLine> {
    let count = runs.len() as f64;
    let mean = |number: usize, of: &dyn Fn(&TableLine) -> f64| {
        runs.iter().map(|run| of(&run[number])).sum::<f64>() / count
    };
    let one = |number: usize| {
        let first = &runs[0][number];
        let mut latencies = first.latencies.clone();
        for run in &runs[1..] {
            // Histograms of one form add up.
            let _ = latencies.add(&run[number].latencies);
        }
        TableLine {
            name: first.name.clone(),
            ops: mean(number, &|line| line.ops),
            hits: first.hits.map(|_| {
                let of = |line: &TableLine| line.hits.unwrap_or_default();
                (mean(number, &|line| of(line).0), mean(number, &|line| of(line).1))
            }),
            latencies,
            count: runs.iter().map(|run| run[number].count).sum(),
            connection_errors: runs.iter().map(|run| run[number].connection_errors).sum(),
            kb: (mean(number, &|line| line.kb.0), mean(number, &|line| line.kb.1)),
        }
    };
    (0..runs[0].len()).map(one).collect()
}

/// `p99 Latency`: as many places as are needed, but of more than one three.
fn label(percentile: f64) -> String {
    let places = match percentile {
        whole if whole.fract().abs() < 1e-9 => 0,
        tenth if (tenth * 10.0).fract().abs() < 1e-6 => 1,
        _ => 3,
    };
    format!("p{percentile:.places$} Latency")
}

/// The whole report of these runs.
pub fn report(settings: &Settings, runs: &[MemtierRun]) -> String {
    let (clients, threads) = settings.clients;
    let mut out = format!("{threads:<9} Threads\n{clients:<9} Connections per thread\n");
    let _ = match (settings.requests, settings.test_time) {
        (Some(requests), _) => writeln!(out, "{requests:<9} Requests per client"),
        (None, seconds) => writeln!(out, "{:<9} Seconds", seconds.unwrap_or(0)),
    };
    for part in parts(settings, runs) {
        table(settings, &part, &mut out);
        if !settings.has("hide-histogram") {
            distribution(settings, &part, &mut out);
        }
    }
    out
}

fn table(settings: &Settings, part: &Part, out: &mut String) {
    let standard = settings.own.is_empty();
    // Without the s of the plural.
    let width = part.lines.iter().map(|line| capitals(&line.name).len()).max().unwrap_or(0).max(6) + 1;
    let mut head = vec![(format!("{:<width$}", "Type"), width), (format!("{:>12}", "Ops/sec"), 12)];
    if standard {
        head.extend(["Hits/sec", "Misses/sec"].map(|name| (format!("{name:>12}"), 12)));
    }
    head.push((format!("{:>15}", "Avg. Latency"), 15));
    head.extend(settings.percentiles.iter().map(|one| (format!("{:>15}", label(*one)), 15)));
    head.push((format!("{:>12}", "KB/sec"), 12));
    let whole: usize = head.iter().map(|(_, width)| width + 1).sum();
    let _ = writeln!(out, "\n\n{}\n{}", part.title, "=".repeat(whole));
    let _ = writeln!(out, "{}", head.iter().fold(String::new(), |row, (cell, _)| row + cell + " "));
    let _ = writeln!(out, "{}", "-".repeat(whole));
    for line in &part.lines {
        let none = line.count == 0;
        let mut row = format!("{:<width$} {:>12.2} ", line.name, line.ops);
        if standard {
            let _ = match line.hits {
                Some((hits, misses)) => write!(row, "{hits:>12.2} {misses:>12.2} "),
                None => write!(row, "{:>12} {:>12} ", "---", "---"),
            };
        }
        let mut latency = |value: f64| {
            let _ = if none { write!(row, "{:>15} ", "---") } else { write!(row, "{value:>15.5} ") };
        };
        latency(line.latencies.mean() / 1e3);
        settings.percentiles.iter().for_each(|one| latency(percentile(&line.latencies, *one)));
        let _ = match line.name == "Waits" && (standard || none) {
            true => writeln!(row, "{:>12} ", "---"),
            false => writeln!(row, "{:>12.2} ", line.kb.0 + line.kb.1),
        };
        out.push_str(&row);
    }
}

/// Steps of a distribution: latency in milliseconds, and per cent.
pub(super) fn steps(latencies: &Histogram<u64>) -> Vec<(f64, f64)> {
    if latencies.is_empty() {
        return vec![(0.0, 100.0)];
    }
    steps_of(latencies).map(|step| (step.us as f64 / 1e3, step.part * 100.0)).collect()
}

/// A step of a distribution.
pub(super) struct DistributionStep {
    /// Latency, microseconds.
    pub(super) us: u64,
    /// Part of all that is no longer.
    pub(super) part: f64,
    /// Their number.
    pub(super) seen: u64,
}

/// All steps: so many to each half of what is left, up to the greatest latency, and one for that.
pub(super) fn steps_of(latencies: &Histogram<u64>) -> impl Iterator<Item = DistributionStep> + '_ {
    let mut recorded = latencies.iter_recorded();
    let (mut us, mut seen, mut percent) = (0, 0, 0.0f64);
    let (all, mut ended) = (latencies.len(), latencies.is_empty());
    std::iter::from_fn(move || {
        if ended {
            return None;
        }
        if seen == all {
            ended = true;
            return Some(DistributionStep { us, part: 1.0, seen });
        }
        while seen == 0 || percent > 100.0 * seen as f64 / all as f64 {
            let next = recorded.next()?;
            us = latencies.highest_equivalent(next.value_iterated_to());
            seen += next.count_since_last_iteration();
        }
        let part = percent / 100.0;
        let halvings = (100.0 / (100.0 - percent)).log2().floor() + 1.0;
        percent += 100.0 / (f64::from(TICKS) * halvings.exp2());
        Some(DistributionStep { us, part, seen })
    })
}

/// Name of a kind in a distribution: `SET`.
pub(super) fn capitals(name: &str) -> String {
    name.strip_suffix('s').unwrap_or(name).to_ascii_uppercase()
}

fn distribution(settings: &Settings, part: &Part, out: &mut String) {
    let _ = writeln!(out, "\n\nRequest Latency Distribution");
    let _ = writeln!(out, "{:<6} {:>12} {:>12}\n{}", "Type", "<= msec   ", "Percent", "-".repeat(72));
    let standard = settings.own.is_empty();
    for line in part.lines.iter().filter(|line| line.name != "Totals") {
        let name = capitals(&line.name);
        for (ms, percent) in steps(&line.latencies) {
            let _ = writeln!(out, "{name:<6} {ms:>8.3} {percent:>12.3}");
        }
        if !standard || line.name != "Waits" {
            out.push_str("---\n");
        }
    }
}

/// KiB, MiB or GiB.
fn size(bytes: f64) -> String {
    let (unit, name) = match bytes {
        small if small < 1_048_576.0 => (1_024.0, "KB"),
        middle if middle < 1_073_741_824.0 => (1_048_576.0, "MB"),
        _ => (1_073_741_824.0, "GB"),
    };
    format!("{:.2}{name}", bytes / unit)
}

/// The line of progress: of the last second, and of all so far: requests, bytes and mean latency in milliseconds.
pub fn progress(
    settings: &Settings,
    run: u64,
    (done, seconds): (f64, f64),
    now: (u64, u64, f64),
    all: (u64, u64, f64),
    running: bool,
) -> String {
    let each = seconds.max(1e-6);
    format!(
        "[RUN #{run} {:.0}%, {:>3} secs] {:>2} threads {:>2} conns: {:>11} ops, {:>7} (avg: {:>7}) ops/sec, {}/sec (avg: \
         {}/sec), {:>5.2} (avg: {:>5.2}) msec latency\r",
        done * 100.0,
        seconds as u64,
        if running { settings.clients.1 } else { 0 },
        settings.connected(seconds as u64) / settings.clients.1,
        all.0,
        now.0,
        (all.0 as f64 / each) as u64,
        size(now.1 as f64),
        size(all.1 as f64 / each),
        now.2,
        all.2,
    )
}

/// What was read back of the records that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Keys that hold what they should.
    pub keys: u64,
    /// Keys that do not.
    pub failed: u64,
}

/// What memtier says of that.
pub fn verification_report(verified: Verified) -> String {
    let Verified { keys, failed } = verified;
    format!(
        "\n\nPerforming data verification...\nData verification completed:\n{keys:<10} keys verified successfuly.\n\
         {failed:<10} keys failed.\n"
    )
}

/// Empty latencies.
pub(super) fn no_latencies() -> Buckets {
    Buckets::new(Scale::Ns64)
}
