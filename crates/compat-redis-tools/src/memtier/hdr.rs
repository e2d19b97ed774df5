//! The files of `--hdr-file-prefix`: the latencies of a run and of each command, as a table of percentiles and as an HdrHistogram
//! log.

use super::args::Settings;
use super::report::{MemtierRun, RequestTotals, capitals, histogram_of, steps_of};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use std::fmt::Write as _;

/// Least and greatest latency of these files, microseconds, and its digits.
const FORM: (u64, u64, u8) = (10, 600_000_000, 2);
/// What a histogram of this form consists of, as the table's last line says.
const PARTS: (u32, u32) = (20, 256);

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HdrFile {
    /// Its path.
    pub path: String,
    /// What memtier says when it writes it.
    pub note: String,
    /// What is in it.
    pub text: String,
}

/// The files of run number `run`, from 1 on; none where they are not asked for.
pub fn hdr_files(settings: &Settings, run: u64, found: &MemtierRun) -> Vec<HdrFile> {
    let Some(prefix) = settings.value("hdr-file-prefix") else { return Vec::new() };
    let whole = (format!("{prefix}_FULL_RUN_{run}"), "Full Run".to_owned(), found.kinds.iter().collect());
    let mut all: Vec<(String, String, Vec<&RequestTotals>)> = vec![whole];
    // memtier has no files of WAITs between its sets and gets.
    for kind in found.kinds.iter().filter(|kind| !settings.own.is_empty() || kind.name != "Waits") {
        let name = capitals(&kind.name);
        match all.iter_mut().skip(1).find(|(_, other, _)| *other == name) {
            Some((_, _, kinds)) => kinds.push(kind),
            None => all.push((format!("{prefix}_{name}_command_run_{run}"), name, vec![kind])),
        }
    }
    let files = |(path, name, kinds): (String, String, Vec<&RequestTotals>)| {
        let latencies: Vec<_> = kinds.iter().map(|kind| &kind.latencies).collect();
        let latencies = histogram_of(FORM, &latencies);
        if latencies.is_empty() {
            return Vec::new();
        }
        let what = format!("{name} command HDR latency histogram results");
        let (table, log) = (format!("{path}.txt"), format!("{path}.hgrm"));
        vec![
            HdrFile {
                note: format!("Writing {what} to {table}..."),
                text: percentiles(&latencies),
                path: table,
            },
            HdrFile {
                note: format!("Writing {what} in HistogramLogProcessor format to {log}..."),
                text: log_of(&what, found.times_ms, &latencies),
                path: log,
            },
        ]
    };
    all.into_iter().flat_map(files).collect()
}

/// The table of percentiles, in milliseconds.
fn percentiles(latencies: &Histogram<u64>) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{:>12} {:>12} {:>12} 1/(1-Percentile)\n", "Value", "Percentile", "TotalCount");
    for step in steps_of(latencies) {
        let inverse = 1.0 / (1.0 - step.part);
        let (part, seen) = (step.part, step.seen);
        let _ = writeln!(out, "{:>12.2} {part:>12.6} {seen:>12} {inverse:>12.2}", step.us as f64 / 1e3);
    }
    let (mean, deviation) = (latencies.mean() / 1e3, latencies.stdev() / 1e3);
    let (greatest, count) = (latencies.max() as f64 / 1e3, latencies.len());
    let (buckets, parts) = PARTS;
    let _ = writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]");
    let _ = writeln!(out, "#[Max     = {greatest:>12.3}, Total count    = {count:>12}]");
    let _ = writeln!(out, "#[Buckets = {buckets:>12}, SubBuckets     = {parts:>12}]");
    out
}

/// The log of one interval: values and the greatest one are microseconds.
fn log_of(what: &str, (begin_ms, end_ms): (u64, u64), latencies: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    // Writing into memory cannot fail.
    let _ = V2DeflateSerializer::new().serialize(latencies, &mut bytes);
    let begin = begin_ms as f64 / 1e3;
    let date = jiff::Timestamp::from_millisecond(begin_ms as i64).unwrap_or_default();
    let date = date.strftime("%a %b %H:%M:%S GMT %Y");
    format!(
        "#[{what}]\n#[Histogram log format version 1.2]\n#[StartTime: {begin:.3} (seconds since epoch), {date}]\n\
         \"StartTimestamp\",\"EndTimestamp\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n\
         {begin:.3},{:.3},{}.0,{}\n",
        end_ms as f64 / 1e3,
        latencies.max(),
        STANDARD.encode(bytes)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::Deserializer;

    /// Written by memtier_benchmark 2.3.0: -t 2 -c 2 -n 1000 --ratio 1:1 --key-maximum 100 --hdr-file-prefix=hp; those of SET.
    const TABLE: &str = include_str!("../../tests/data/memtier/hdr.txt");
    const LOG: &str = include_str!("../../tests/data/memtier/hdr.hgrm");

    #[test]
    fn files_are_memtiers_byte_for_byte() {
        let line = LOG.lines().last().unwrap();
        let columns: Vec<&str> = line.split(',').collect();
        let bytes = STANDARD.decode(columns[3]).unwrap();
        let theirs: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        let mut own = Histogram::new_with_bounds(FORM.0, FORM.1, FORM.2).unwrap();
        for step in theirs.iter_recorded() {
            own.record_n(step.value_iterated_to(), step.count_since_last_iteration()).unwrap();
        }
        assert_eq!(percentiles(&own), TABLE);
        let ms = |text: &str| (text.parse::<f64>().unwrap() * 1e3).round() as u64;
        let ours =
            log_of("SET command HDR latency histogram results", (ms(columns[0]), ms(columns[1])), &own);
        let head = |text: &str| text.rsplit_once(',').unwrap().0.to_owned();
        assert_eq!(head(&ours), head(LOG));
        // What is compressed may differ; what it means does not.
        let again = STANDARD.decode(ours.trim_end().rsplit_once(',').unwrap().1).unwrap();
        let again: Histogram<u64> = Deserializer::new().deserialize(&mut again.as_slice()).unwrap();
        assert!(again == theirs && again.len() == 2_000);
    }
}
