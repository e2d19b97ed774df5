//! The file of `--json-out-file`.

use super::args::{Settings, Staircase};
use super::report::{
    MemtierRun, RequestTotals, TableLine, Verified, capitals, histogram, no_latencies, parts, percentile,
    steps,
};
use dyno_types::secret::mask_text;
use serde_json::{Map, Value, json as value};

/// The results as memtier writes them; the order of keys is its own.
pub fn json(settings: &Settings, runs: &[MemtierRun], verified: Option<Verified>) -> String {
    let mut out = Map::new();
    out.insert("configuration".into(), configuration(settings));
    if !runs.is_empty() {
        out.insert("run information".into(), about(settings));
    }
    for part in parts(settings, runs) {
        let of: Vec<&MemtierRun> = match part.run {
            Some(number) => vec![&runs[number]],
            None => runs.iter().collect(),
        };
        let mut stats = Map::new();
        stats.insert("Runtime".into(), runtime(&of));
        for (number, line) in part.lines.iter().enumerate() {
            let kinds: Vec<Vec<&RequestTotals>> = of.iter().map(|run| kinds(run, line, number)).collect();
            stats.insert(numbered(&line.name, &stats), of_line(settings, line, &kinds));
        }
        if !settings.has("hide-histogram") {
            for line in part.lines.iter().filter(|line| line.name != "Totals") {
                let steps = steps(&line.latencies).into_iter();
                let steps: Vec<Value> = steps
                    .map(|(ms, percent)| value!({"<=msec": round(ms), "percent": round(percent)}))
                    .collect();
                stats.insert(numbered(&capitals(&line.name), &stats), steps.into());
            }
        }
        out.insert(part.title, stats.into());
    }
    if let Some(Verified { keys, failed }) = verified {
        let found = value!({"keys verified successfuly": keys, "keys failed": failed});
        out.insert("client verifications results".into(), found);
    }
    let mut text = serde_json::to_string_pretty(&Value::from(out)).unwrap_or_default();
    text.push('\n');
    text
}

/// What was run.
fn about(settings: &Settings) -> Value {
    let mut about = Map::new();
    about.insert("Threads".into(), settings.clients.1.into());
    about.insert("Connections per thread".into(), settings.clients.0.into());
    match (settings.requests, settings.test_time) {
        (Some(requests), _) => about.insert("Requests per client".into(), requests.into()),
        (None, seconds) => about.insert("Seconds".into(), seconds.unwrap_or(0).into()),
    };
    about.insert("Format version".into(), 2.into());
    about.into()
}

/// The kinds of a line: the last line is of all.
fn kinds<'a>(run: &'a MemtierRun, line: &TableLine, number: usize) -> Vec<&'a RequestTotals> {
    if line.name == "Totals" {
        run.kinds.iter().collect()
    } else {
        run.kinds.get(number).into_iter().collect()
    }
}

/// A name that no other has: several rows of one command are numbered.
fn numbered(name: &str, others: &Map<String, Value>) -> String {
    let all = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name}-{number}")));
    all.into_iter().find(|name| !others.contains_key(name)).unwrap_or_default()
}

fn round(number: f64) -> Value {
    let rounded = (number * 1e3).round() / 1e3;
    if rounded.is_finite() { rounded.into() } else { Value::Null }
}

fn runtime(runs: &[&MemtierRun]) -> Value {
    let begin = runs.iter().map(|run| run.times_ms.0).min().unwrap_or(0);
    let end = runs.iter().map(|run| run.times_ms.1).max().unwrap_or(0);
    let took: u64 = runs.iter().map(|run| (run.seconds * 1e3).round() as u64).sum();
    let interrupted = runs.iter().any(|run| run.interrupted);
    value!({
        "Start time": begin,
        "Finish time": end,
        "Total duration": took / runs.len().max(1) as u64,
        "Time unit": "MILLISECONDS",
        "Interrupted": if interrupted { "true" } else { "false" },
    })
}

/// `p99.90`, of which memtier keeps six letters.
fn percentile_name(percentile: f64) -> String {
    let mut name = format!("p{percentile:.2}");
    name.truncate(6);
    name
}

fn percentiles(settings: &Settings, latencies: &hdrhistogram::Histogram<u64>) -> Map<String, Value> {
    let mut all = settings.percentiles.clone();
    all.sort_by(f64::total_cmp);
    all.into_iter().map(|one| (percentile_name(one), round(percentile(latencies, one)))).collect()
}

fn of_line(settings: &Settings, line: &TableLine, runs: &[Vec<&RequestTotals>]) -> Value {
    let kinds = || runs.iter().flatten();
    let (min, max) = match line.count {
        0 => (0.0, 0.0),
        _ => (line.latencies.min() as f64 / 1e3, line.latencies.max() as f64 / 1e3),
    };
    let sum_ms = kinds().map(|kind| kind.latencies.sum_ns()).sum::<u128>() as f64 / 1e6;
    let mean = if line.count == 0 { 0.0 } else { line.latencies.mean() / 1e3 };
    let (hits, misses) = line.hits.unwrap_or_default();
    let mut out = Map::new();
    let mut put = |name: &str, number: Value| drop(out.insert(name.into(), number));
    put("Count", line.count.into());
    put("Ops/sec", round(line.ops));
    put("Hits/sec", round(hits));
    put("Misses/sec", round(misses));
    let seconds = if line.ops > 0.0 { line.count as f64 / line.ops } else { 1.0 };
    put("Connection Errors/sec", round(line.connection_errors as f64 / seconds));
    put("Connection Errors", line.connection_errors.into());
    put("Latency", round(mean));
    put("Average Latency", round(mean));
    put("Accumulated Latency", (sum_ms as u64).into());
    put("Min Latency", round(min));
    put("Max Latency", round(max));
    put("KB/sec", round(line.kb.0 + line.kb.1));
    put("KB/sec RX/TX", round(line.kb.0 + line.kb.1));
    put("KB/sec RX", round(line.kb.0));
    put("KB/sec TX", round(line.kb.1));
    if let [one] = runs {
        put("Time-Serie", series(settings, one));
    }
    let all = percentiles(settings, &line.latencies);
    put("Percentile Latencies", all.into());
    out.into()
}

/// Second by second.
fn series(settings: &Settings, kinds: &[&RequestTotals]) -> Value {
    let last = kinds.iter().flat_map(|kind| &kind.seconds).map(|second| second.number).max();
    let mut out = Map::new();
    for number in 0..=last.unwrap_or(0) {
        let own = || kinds.iter().flat_map(|kind| &kind.seconds).filter(|second| second.number == number);
        let count: u64 = own().map(|second| second.count).sum();
        let mut second = Map::new();
        second.insert("Bytes RX".into(), own().map(|second| second.bytes.1).sum::<u64>().into());
        second.insert("Bytes TX".into(), own().map(|second| second.bytes.0).sum::<u64>().into());
        second.insert("Count".into(), count.into());
        if count > 0 {
            let mut all = no_latencies();
            own().for_each(|second| all.merge(&second.latencies));
            let latencies = histogram(&[&all]);
            second.insert("Average Latency".into(), round(all.mean_ns() / 1e6));
            second.insert("Accumulated Latency".into(), ((all.sum_ns() / 1_000_000) as u64).into());
            second.insert("Min Latency".into(), round(all.min_ns() as f64 / 1e6));
            second.insert("Max Latency".into(), round(all.max_ns() as f64 / 1e6));
            second.extend(percentiles(settings, &latencies));
        }
        out.insert(number.to_string(), second.into());
    }
    out.into()
}

fn configuration(settings: &Settings) -> Value {
    let mut out = Map::new();
    for (name, default) in CONFIGURATION {
        let typed = settings.value(name);
        let shown = match (name, default) {
            ("authenticate", _) => value!(if typed.is_some() { "***" } else { "" }),
            (_, Default::No) => value!(if typed.is_some() { "true" } else { "false" }),
            (_, Default::Nothing) => typed.map_or(Value::Null, Value::from),
            ("uri", _) => mask_text(typed.unwrap_or_default()).into(),
            (_, Default::Text(default)) => typed.unwrap_or(default).into(),
            (_, Default::Number(default)) => {
                let number = typed.map_or(Some(default), |text| text.trim().parse().ok());
                number.map_or_else(|| typed.unwrap_or_default().into(), |number: f64| whole(number))
            }
        };
        let key = match name {
            "unix-socket" => "unix socket".to_owned(),
            "address-family" => "address family".to_owned(),
            "rate-limiting" => "rate_limit".to_owned(),
            "select-db" | "no-expiry" | "wait-ratio" | "num-slaves" | "wait-timeout" | "print-all-runs" => {
                name.to_owned()
            }
            other => other.replace('-', "_"),
        };
        let shown = match (name, settings.requests) {
            ("requests", requests) => requests.unwrap_or(0).into(),
            _ => shown,
        };
        out.insert(key, shown);
    }
    if let Some(Staircase { start, step, seconds }) = settings.staircase {
        for (key, value) in [("clients_start", start), ("clients_step", step), ("step_duration", seconds)] {
            out.insert(key.into(), value.into());
        }
    }
    out.into()
}

fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 1e15 { (number as i64).into() } else { number.into() }
}

/// Kinds of defaults.
#[derive(Clone, Copy)]
enum Default {
    Text(&'static str),
    Number(f64),
    /// Null.
    Nothing,
    /// `false`, and `true` where the flag was typed.
    No,
}

/// Settings in the file's order, by their flags.
const CONFIGURATION: [(&str, Default); 53] = [
    ("server", Default::Text("localhost")),
    ("port", Default::Number(6379.0)),
    ("uri", Default::Text("")),
    ("unix-socket", Default::Nothing),
    ("address-family", Default::Text("Unspecified")),
    ("protocol", Default::Text("redis")),
    ("out-file", Default::Nothing),
    ("tls", Default::No),
    ("cert", Default::Nothing),
    ("key", Default::Nothing),
    ("cacert", Default::Nothing),
    ("tls-skip-verify", Default::No),
    ("sni", Default::Nothing),
    ("client-stats", Default::Nothing),
    ("run-count", Default::Number(1.0)),
    ("debug", Default::Number(0.0)),
    ("requests", Default::Number(10_000.0)),
    ("rate-limiting", Default::Number(0.0)),
    ("clients", Default::Number(50.0)),
    ("threads", Default::Number(4.0)),
    ("test-time", Default::Number(0.0)),
    ("ratio", Default::Text("1:10")),
    ("pipeline", Default::Number(1.0)),
    ("data-size", Default::Number(32.0)),
    ("data-offset", Default::Number(0.0)),
    ("random-data", Default::No),
    ("data-size-range", Default::Text("0:0")),
    ("data-size-list", Default::Text("")),
    ("data-size-pattern", Default::Text("R")),
    ("expiry-range", Default::Text("0:0")),
    ("data-import", Default::Nothing),
    ("data-verify", Default::No),
    ("verify-only", Default::No),
    ("generate-keys", Default::No),
    ("key-prefix", Default::Text("memtier-")),
    ("key-minimum", Default::Number(0.0)),
    ("key-maximum", Default::Number(10_000_000.0)),
    ("key-pattern", Default::Text("R:R")),
    ("key-stddev", Default::Number(0.0)),
    ("key-median", Default::Number(0.0)),
    ("key-zipf-exp", Default::Number(0.0)),
    ("reconnect-interval", Default::Number(0.0)),
    ("connection-timeout", Default::Number(0.0)),
    ("thread-conn-start-min-jitter-micros", Default::Number(0.0)),
    ("thread-conn-start-max-jitter-micros", Default::Number(0.0)),
    ("multi-key-get", Default::Number(0.0)),
    ("authenticate", Default::Text("")),
    ("select-db", Default::Number(0.0)),
    ("no-expiry", Default::No),
    ("wait-ratio", Default::Text("0:0")),
    ("num-slaves", Default::Text("0:0")),
    ("wait-timeout", Default::Text("0-0")),
    ("print-all-runs", Default::No),
];
