//! The real YCSB's outputs (`tests/data/peers`), made again from the numbers they can be traced back to.

use crate::report::exporter::Exporter;
use crate::report::line::Line;
use crate::report::line::ReportNumber;
use crate::report::metrics::Metrics;
use crate::report::metrics::metrics;
use crate::report::options::Interval;
use crate::report::options::MeasurementOptions;
use crate::report::render::Overall;
use crate::report::render::raw_notices;
use crate::report::render::report;
use crate::report::render::write_raw;
use crate::report::status::StatusLines;
use crate::report::status::StatusProgress;
use dyno_record::{Buckets, MergedSlot, RawSample, Scale, Totals};
use dyno_rundir::hlog;
use dyno_types::Outcome;
use jiff::tz::TimeZone;
use std::time::{Duration, UNIX_EPOCH};

/// A file of the samples.
fn sample(name: &str) -> String {
    let path = format!("{}/../../tests/data/peers/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn options(set: &[(&str, &str)]) -> MeasurementOptions {
    let mut lookup = |key: &str| set.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned());
    MeasurementOptions::from_lookup(&mut lookup).unwrap()
}

/// Totals of successful operations that took what the histograms say.
fn totals(found: &[(&str, Buckets)]) -> (Vec<String>, Totals) {
    let mut totals = Totals::new(found.len(), Scale::Micros);
    for (metric, (name, buckets)) in found.iter().enumerate() {
        if buckets.count() > 0 {
            totals.slots[metric * 2] =
                Some(MergedSlot { service: buckets.clone(), response: buckets.clone() });
        }
        totals.outcomes[metric][Outcome::Ok as usize] = buckets.count();
        if *name != "CLEANUP" {
            totals.ended[Outcome::Ok as usize] += buckets.count();
        }
    }
    (found.iter().map(|(name, _)| (*name).to_owned()).collect(), totals)
}

/// The metrics of `totals`.
fn seen((names, totals): &(Vec<String>, Totals), options: &MeasurementOptions) -> Metrics {
    metrics(names, totals, UNIX_EPOCH, options, Interval::Op)
}

/// All that a log holds, and each of its intervals.
fn log(text: &str) -> (Buckets, Vec<Buckets>) {
    let one = |line: &str| hlog::read(&format!("{line}\n"), Scale::Micros).unwrap().remove("").unwrap();
    let is_interval = |line: &&str| !line.starts_with('#') && !line.starts_with('"');
    (
        hlog::read(text, Scale::Micros).unwrap().remove("").unwrap(),
        text.lines().filter(is_interval).map(one).collect(),
    )
}

/// A report without the lines about garbage collection.
fn without_gc(text: &str) -> String {
    text.lines().filter(|line| !line.starts_with("[TOTAL_GC")).map(|line| format!("{line}\n")).collect()
}

/// Lines of a text report that begin with `start`.
fn of<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.starts_with(start)).collect()
}

const CLEANUP_LOG: &str = "0.002,0.178,0.002,HISTFAAAACN42pNpmSzMwMDAxgABzFCaEUoz2X+AMA6yMa2WYAIAUNwEEA==\n\
                           0.180,0.033,0.000,HISTFAAAABx42pNpmSzMwMDAyAABzFAaxmey/wBlAQA8yQJ9\n";

/// The second interval of `hdr-READ.hdr`.
const READ_INTERVAL: &str = "0.865,0.993,0.007,HISTFAAAAYN42i2MT0hUYRTF3/19930+n2av8SWDPWy0WUTJQH8WQaES/VlF\
    Ci6EBKVWCYq0cBe1MFciVjKIRLsijSRmYdDKoD9uiwiX407EhURFilA3pnu455z7fYeTTT5uDgKZC2rj/qvU5Oif7p2aO5YbXONpuK4V3Q83\
    3RqrUpabdx5JRb7LqmxJhSp7vOcty8ZlV9WZcDbc1n33zb3Qef3q1t2kW3IrvLZEmSl+yZ5MW/Y5C8zx264tWWKWqvyw1i/yUVZkQZZlXp6Y\
    TsvwyMTYxNjIfRm8OD4+0N/f23tp4ErXhc6uc509PaWzx4utp0tZqXgiV8gKaS5r68g6imm+NcknjWnSEhfyTQmxT3zcFPtUfaNXr5FGPg28\
    KupjRxSFgAYo3sjhzBESYI5Qa1xPPQcMjjr7aeCQbZ2lHgiX7ehjlHfCB68hi8JDsbcb3IOTNLPh+CTc4pVwkOv/5A3sijWOGs7zUmjnLpxi\
    F6tt4AzPhGsMcdhwlc/CEbq5zc+IvyYgV5g=\n";

#[test]
fn embedded_logs_give_the_real_lines() {
    let options = options(&[]);
    let (cleanup, _) = log(CLEANUP_LOG);
    let found = totals(&[("CLEANUP", cleanup)]);
    let overall = Overall::of(&found.1, 1, 1);
    let text = Exporter::Text.export(&report(&overall, &seen(&found, &options), &options, true).unwrap());
    let expected = [
        "[CLEANUP], Operations, 2",
        "[CLEANUP], AverageLatency(us), 1196.5",
        "[CLEANUP], MinLatency(us), 417",
        "[CLEANUP], MaxLatency(us), 1976",
        "[CLEANUP], 50thPercentileLatency(us), 417",
        "[CLEANUP], 95thPercentileLatency(us), 1976",
        "[CLEANUP], 99thPercentileLatency(us), 1976",
    ];
    assert_eq!(of(&text, "[CLEANUP]"), expected);

    let (read, _) = log(READ_INTERVAL);
    let interval = seen(&totals(&[("READ", read)]), &options);
    let mut lines = StatusLines::new(&options, TimeZone::UTC);
    let progress = StatusProgress { elapsed_ms: 0, operations: 0, todo: 0 };
    let line = lines.line("2026-11-21T03:30:41.936Z".parse().unwrap(), progress, &interval);
    let expected = "2026-11-21 03:30:41:936 0 sec: 0 operations; [READ: Count=12603, Max=7203, Min=18, Avg=67.35, \
                    50=51, 90=97, 99=172, 99.9=3567, 99.99=4915] ";
    assert_eq!(line, expected);
}

#[test]
fn logs_of_a_run_give_its_report() {
    let files = ["hdr-READ.hdr", "hdr-UPDATE.hdr", "hdr-CLEANUP.hdr", "ycsb-run-a-hdr.out"].map(sample);
    let [read, update, cleanup, out] = files;
    let options = options(&[]);
    let found = totals(&[("UPDATE", log(&update).0), ("CLEANUP", log(&cleanup).0), ("READ", log(&read).0)]);
    let overall = Overall::of(&found.1, 3_751, 3_700);
    let lines = report(&overall, &seen(&found, &options), &options, true).unwrap();
    assert_eq!(without_gc(&Exporter::Text.export(&lines)), without_gc(&out));
}

#[test]
fn logs_of_a_run_give_its_status_lines() {
    let files = ["hdr-READ.hdr", "hdr-UPDATE.hdr", "hdr-CLEANUP.hdr", "ycsb-run-a-hdr.err"].map(sample);
    let [read, update, cleanup, err] = files;
    let options = options(&[("status", "true"), ("status.interval", "1")]);
    let (read, update, cleanup) = (log(&read).1, log(&update).1, log(&cleanup).1);
    let none = || Buckets::new(Scale::Micros);
    let mut intervals = vec![totals(&[])];
    for i in 0..4 {
        let cleanup = if i == 3 { cleanup[0].clone() } else { none() };
        intervals.push(totals(&[
            ("READ", read[i].clone()),
            ("UPDATE", update[i].clone()),
            ("CLEANUP", cleanup),
        ]));
    }
    let done = [(0, 0), (1_000, 16_964), (2_000, 42_271), (3_000, 66_878), (3_751, 100_000)];
    let expected: Vec<&str> = of(&err, "2026-11-21 ");
    assert_eq!(expected.len(), 5);
    let mut lines = StatusLines::new(&options, TimeZone::UTC);
    for ((expected, interval), (elapsed_ms, operations)) in expected.into_iter().zip(&intervals).zip(done) {
        let (date, time) = (&expected[..10], &expected[11..23]);
        let (clock, millis) = time.rsplit_once(':').unwrap();
        let at = format!("{date}T{clock}.{millis}Z").parse().unwrap();
        let progress = StatusProgress { elapsed_ms, operations, todo: 100_000 - operations };
        assert_eq!(lines.line(at, progress, &seen(interval, &options)), expected);
    }
}

/// Totals with every sample of (name, completion in ms since the Unix epoch, microseconds), counted from `epoch_ms`.
fn sampled(records: &[(&str, u64, u64)], epoch_ms: u64) -> (Vec<String>, Totals) {
    let names = ["READ", "UPDATE", "CLEANUP"].map(str::to_owned).to_vec();
    let mut counts = dyno_record::ThreadInterval::new(names.len(), Scale::Micros);
    for (i, (name, done_ms, us)) in records.iter().enumerate() {
        let metric = names.iter().position(|n| n == name).unwrap() as u16;
        let (service_ns, outcome) = (us * 1_000 + 7, Outcome::Ok);
        counts.record_ended(metric, outcome, service_ns, service_ns);
        let done_ns = (done_ms - epoch_ms) * 1_000_000 + i as u64;
        counts.samples.push(RawSample { metric, outcome, done_ns, service_ns, response_ns: service_ns });
    }
    let mut totals = Totals::new(names.len(), Scale::Micros);
    totals.ended[Outcome::Ok as usize] = records.iter().filter(|r| r.0 != "CLEANUP").count() as u64;
    totals.add_interval(&counts);
    (names, totals)
}

/// The READ latencies of `ycsb-run-a-raw.out`, sorted, microseconds.
const RAW_READS: &str = "75 81 95 96 97 99 101 101 103 106 106 107 107 109 111 113 114 118 119 120 121 123 125 129 130 \
    130 131 132 134 135 135 136 137 137 137 138 140 142 142 143 143 145 146 147 149 149 151 152 155 156 157 158 159 159 \
    161 162 164 167 167 168 169 169 171 172 174 176 178 179 182 185 188 190 190 191 193 195 196 196 199 200 201 203 203 \
    205 211 213 213 214 227 230 231 233 237 240 244 246 258 259 264 273 327 2232 6174";

fn raw_reads() -> Vec<(&'static str, u64, u64)> {
    let latencies = RAW_READS.split_whitespace().map(|us| us.parse().unwrap());
    latencies.enumerate().map(|(i, us)| ("READ", 1_000 + i as u64 * 7, us)).collect()
}

fn export(records: &[(&str, u64, u64)], epoch_ms: u64, run_ms: u64, kind: &str) -> (String, String) {
    let options = options(&[("measurementtype", kind), ("timeseries.granularity", "100")]);
    let (names, totals) = sampled(records, epoch_ms);
    let epoch = UNIX_EPOCH + Duration::from_millis(epoch_ms);
    let metrics = metrics(&names, &totals, epoch, &options, Interval::Op);
    let lines = report(&Overall::of(&totals, run_ms, run_ms), &metrics, &options, true).unwrap();
    let mut raw: String = raw_notices(&metrics, &options).into_iter().map(|notice| notice + "\n").collect();
    let mut bytes = Vec::new();
    write_raw(&metrics, &options, &mut bytes).unwrap();
    raw += std::str::from_utf8(&bytes).unwrap();
    (raw, Exporter::Text.export(&lines))
}

#[test]
fn embedded_raw_reads_give_the_real_summary_in_every_form() {
    let records = raw_reads();
    let report = |kind| export(&records, 900, 93, kind).1;
    let raw = report("raw");
    let expected = [
        "[READ], Total Operations, 103",
        "[READ], Below is a summary of latency in microseconds:, -1",
        "[READ], Average, 241.75728155339806",
        "[READ], Min, 75",
        "[READ], Max, 6174",
        "[READ], p1, 81",
        "[READ], p5, 99",
        "[READ], p50, 158",
        "[READ], p90, 237",
        "[READ], p95, 259",
        "[READ], p99, 2232",
        "[READ], p99.9, 6174",
        "[READ], p99.99, 6174",
        "[READ], Return=OK, 103",
    ];
    assert_eq!(of(&raw, "[READ]"), expected);
    let basics = [
        "[READ], Operations, 103",
        "[READ], AverageLatency(us), 241.75728155339806",
        "[READ], MinLatency(us), 75",
        "[READ], MaxLatency(us), 6174",
    ];
    let series = report("timeseries");
    assert_eq!(of(&series, "[READ]")[..4], basics);
    // One sample in 7 ms: 15 in the first unit of 100 ms, 3 in the eighth (327, 2232 and 6174).
    assert_eq!(of(&series, "[READ]").len(), 5 + 8);
    assert_eq!(of(&series, "[READ]")[5], "[READ], 0, 99.6");
    assert_eq!(of(&series, "[READ]").last(), Some(&"[READ], 700, 2911.0"));
    let histogram = report("histogram");
    let mut lines = of(&histogram, "[READ]");
    assert!(lines.remove(2).starts_with("[READ], LatencyVariance(us), "));
    assert_eq!(lines[..4], basics);
    let rest = [
        "[READ], 95thPercentileLatency(us), 0",
        "[READ], 99thPercentileLatency(us), 2000",
        "[READ], Return=OK, 103",
    ];
    assert_eq!(lines[4..], rest);
    let hdr = report("hdrhistogram");
    let expected = [
        "[READ], Operations, 103",
        "[READ], AverageLatency(us), 241.76699029126215",
        "[READ], MinLatency(us), 75",
        "[READ], MaxLatency(us), 6175",
        "[READ], 50thPercentileLatency(us), 158",
        "[READ], 95thPercentileLatency(us), 259",
        "[READ], 99thPercentileLatency(us), 2233",
        "[READ], Return=OK, 103",
    ];
    assert_eq!(of(&hdr, "[READ]"), expected);
}

/// CLEANUP of `ycsb-run-f-histogram.out` and `ycsb-run-a-timeseries.out`: two samples each, known by their extremes.
#[test]
fn two_samples_give_the_real_lines() {
    let two = |a, b, kind| export(&[("CLEANUP", 5, a), ("CLEANUP", 6, b)], 0, 1, kind).1;
    let expected = [
        "[CLEANUP], Operations, 2",
        "[CLEANUP], AverageLatency(us), 542.5",
        "[CLEANUP], LatencyVariance(us), 178506.25",
        "[CLEANUP], MinLatency(us), 120",
        "[CLEANUP], MaxLatency(us), 965",
        "[CLEANUP], 95thPercentileLatency(us), 0",
        "[CLEANUP], 99thPercentileLatency(us), 0",
    ];
    assert_eq!(of(&two(120, 965, "histogram"), "[CLEANUP]"), expected);
    let expected = [
        "[CLEANUP], Operations, 2",
        "[CLEANUP], AverageLatency(us), 574.5",
        "[CLEANUP], MinLatency(us), 188",
        "[CLEANUP], MaxLatency(us), 961",
        "[CLEANUP], 0, 574.5",
    ];
    assert_eq!(of(&two(961, 188, "timeseries"), "[CLEANUP]"), expected);
}

#[test]
fn a_raw_run_is_printed_again() {
    let out = sample("ycsb-run-a-raw.out");
    let mut records = Vec::new();
    for line in out.lines() {
        if let [name, done, us] = line.split(',').collect::<Vec<_>>()[..]
            && let (Ok(done), Ok(us)) = (done.parse(), us.parse())
        {
            records.push((name, done, us));
        }
    }
    assert_eq!(records.len(), 201);
    let (raw, text) = export(&records, 1_795_231_838_000, 93, "raw");
    assert_eq!(without_gc(&(raw + &text)), without_gc(&out));
}

/// The lines of a report, read back from its text form.
fn parse_text(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let (metric, rest) = line.strip_prefix('[').unwrap().split_once("], ").unwrap();
        let (measurement, value) = rest.rsplit_once(", ").unwrap();
        Line::new(metric, measurement, parse_value(value))
    };
    text.lines().filter(|l| l.starts_with('[')).map(line).collect()
}

fn parse_value(text: &str) -> ReportNumber {
    text.parse().map_or_else(|_| ReportNumber::Double(text.parse().unwrap()), ReportNumber::Int)
}

fn parse_json(objects: &[serde_json::Value]) -> Vec<Line> {
    let line = |o: &serde_json::Value| {
        let text = |key: &str| o[key].as_str().unwrap().to_owned();
        Line::new(&text("metric"), &text("measurement"), parse_value(&o["value"].to_string()))
    };
    objects.iter().map(line).collect()
}

#[test]
fn exporters_lay_out_as_the_samples() {
    for name in ["load", "run-a", "run-a-hdr", "run-a-target-both", "run-e", "run-f-histogram", "maxexec"] {
        let text = sample(&format!("ycsb-{name}.out"));
        assert_eq!(Exporter::Text.export(&parse_text(&text)), text, "{name}");
    }
    let text = sample("ycsb-run-a-timeseries.out");
    assert_eq!(Exporter::Text.export(&parse_text(&text)), text);
    let text = sample("ycsb-run-a-json.out");
    let objects: Result<Vec<serde_json::Value>, _> =
        serde_json::Deserializer::from_str(&text).into_iter().collect();
    assert_eq!(Exporter::Json.export(&parse_json(&objects.unwrap())), text);
    let text = sample("ycsb-run-a-jsonarray.out");
    let objects: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(Exporter::JsonArray.export(&parse_json(&objects)), text);
}

/// Order of metrics and of their lines in the samples, from nothing but the names.
#[test]
fn order_is_that_of_the_samples() {
    let histogram = [("measurementtype", "histogram")];
    let both = [("measurement.interval", "both"), ("hdrhistogram.percentiles", "50,90,95,99,99.9,99.99")];
    let cases = [
        ("load", &[][..], "INSERT CLEANUP"),
        ("run-a", &[], "UPDATE READ CLEANUP"),
        ("run-e", &[], "SCAN INSERT SCAN-LATENCY-PER-RECORD CLEANUP"),
        ("run-f-histogram", &histogram, "UPDATE READ READ-MODIFY-WRITE CLEANUP"),
        ("run-a-target-both", &both, "UPDATE READ CLEANUP"),
    ];
    for (name, set, metric_names) in cases {
        let text = sample(&format!("ycsb-{name}.out"));
        let options = options(set);
        let names: Vec<String> = metric_names.split(' ').map(str::to_owned).collect();
        let mut counts = dyno_record::ThreadInterval::new(names.len(), Scale::Micros);
        for metric in 0..names.len() as u16 {
            let outcome = Outcome::Ok;
            counts.record_ended(metric, outcome, 5_000, 5_000);
            counts.samples.push(RawSample {
                metric,
                outcome,
                done_ns: 1,
                service_ns: 5_000,
                response_ns: 5_000,
            });
        }
        let mut totals = Totals::new(names.len(), Scale::Micros);
        totals.add_interval(&counts);
        let metrics = metrics(&names, &totals, UNIX_EPOCH, &options, options.interval(true, true));
        let lines = report(&Overall::of(&totals, 1, 1), &metrics, &options, true).unwrap();
        let label = |l: &Line| format!("{} {}", l.metric, l.measurement);
        let ours: Vec<String> = lines.iter().map(label).collect();
        let theirs: Vec<String> = parse_text(&text).iter().map(label).collect();
        assert_eq!(ours, theirs, "{name}");
    }
}
