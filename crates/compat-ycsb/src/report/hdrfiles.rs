//! HdrHistogram log files, one for each metric, as `hdrhistogram.fileoutput` asks for.
//!
//! YCSB writes them when it closes; here every line is in the file as soon as its interval has ended, so a killed run
//! leaves complete logs. A metric's file begins with the first interval in which it occurs, whose start is the zero
//! point of the file's times, and gets a line for each interval from then on. Values are microseconds.

use crate::report::metrics::{Metric, Metrics};
use crate::report::options::{Form, MeasurementOptions};
use dyno_rundir::{files, hlog};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A log file that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {source} (hdrhistogram.output.path is what the names of log files start with)")]
pub struct HdrFileError {
    /// The file.
    pub path: String,
    /// Cause.
    pub source: std::io::Error,
}

/// The log files of a run.
#[derive(Debug)]
pub struct HdrFiles {
    /// Beginning of the names, up to the metric; `None` if no files are asked for.
    start: Option<String>,
    prefix: &'static str,
    zone: TimeZone,
    open: Vec<Log>,
}

#[derive(Debug)]
struct Log {
    metric: String,
    path: String,
    file: File,
    base: SystemTime,
}

impl HdrFiles {
    /// No file yet. Times in headers are also shown in `zone`.
    pub fn new(options: &MeasurementOptions, zone: TimeZone) -> Self {
        let form = options.forms.iter().find(|(_, form)| *form == Form::Hdr);
        let start = form.and(options.hdr_files.clone());
        HdrFiles { start, prefix: form.map_or("", |(prefix, _)| prefix), zone, open: Vec::new() }
    }

    /// Adds the interval from `start` to `end` to the files of all metrics seen so far.
    pub fn interval(
        &mut self,
        metrics: &Metrics,
        start: SystemTime,
        end: SystemTime,
    ) -> Result<(), HdrFileError> {
        let Some(path_start) = self.start.clone() else { return Ok(()) };
        for metric in &metrics.list {
            if !self.open.iter().any(|log| log.metric == metric.name) {
                let log = self.create(&path_start, &metric.name, start)?;
                self.open.push(log);
            }
        }
        for log in &mut self.open {
            let empty;
            let metric = match metrics.list.iter().find(|metric| metric.name == log.metric) {
                Some(metric) => metric,
                None => {
                    empty = Metric::empty(&log.metric);
                    &empty
                }
            };
            let line = line(metric, since(start, log.base), since(end, start));
            write(&mut log.file, &log.path, &line)?;
        }
        Ok(())
    }

    fn create(&self, start: &str, metric: &str, base: SystemTime) -> Result<Log, HdrFileError> {
        let name = format!("{}{metric}", self.prefix);
        let path = format!("{start}{name}.hdr");
        let file = files::create_file(path.as_ref());
        let mut file = file.map_err(|source| HdrFileError { path: path.clone(), source })?;
        write(&mut file, &path, &header(&name, base, &self.zone))?;
        Ok(Log { metric: metric.to_owned(), path, file, base })
    }
}

fn write(file: &mut File, path: &str, text: &str) -> Result<(), HdrFileError> {
    file.write_all(text.as_bytes()).map_err(|source| HdrFileError { path: path.to_owned(), source })
}

fn since(later: SystemTime, earlier: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}

/// The head of the log of one metric.
fn header(name: &str, base: SystemTime, zone: &TimeZone) -> String {
    let since_epoch = since(base, UNIX_EPOCH);
    let local = Timestamp::try_from(base).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone.clone());
    format!(
        "#[Logging for: {name}]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {}.{:03} (seconds since epoch), {}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        since_epoch.as_secs(),
        since_epoch.subsec_millis(),
        local.strftime("%a %b %d %H:%M:%S %Z %Y")
    )
}

/// A line of the log.
fn line(metric: &Metric, start: Duration, length: Duration) -> String {
    hlog::log_line(None, start.as_secs_f64(), length.as_secs_f64(), &hlog::to_hdr(&metric.buckets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    fn options(set: &[(&str, &str)]) -> MeasurementOptions {
        let mut lookup = |key: &str| set.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned());
        MeasurementOptions::from_lookup(&mut lookup).unwrap()
    }

    /// Metrics of one sample each: (name, microseconds).
    fn metrics(samples: &[(&str, u64)]) -> Metrics {
        let one = |&(name, us): &(&str, u64)| {
            let mut metric = Metric::empty(name);
            metric.buckets.record(us * 1_000);
            metric
        };
        Metrics { list: samples.iter().map(one).collect(), warnings: Vec::new(), samples: false }
    }

    #[test]
    fn head_is_that_of_the_sample() {
        let base = UNIX_EPOCH + Duration::from_millis(1_795_231_843_510);
        let expected = "#[Logging for: CLEANUP]\n#[Histogram log format version 1.3]\n\
                        #[StartTime: 1795231843.510 (seconds since epoch), Sat Nov 21 03:30:43 UTC 2026]\n\
                        \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";
        assert_eq!(header("CLEANUP", base, &TimeZone::UTC), expected);
    }

    #[test]
    fn a_standard_reader_reads_every_interval_as_it_comes() {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}/a-", dir.path().display());
        let options = options(&[("hdrhistogram.fileoutput", "true"), ("hdrhistogram.output.path", &path)]);
        let mut files = HdrFiles::new(&options, TimeZone::UTC);
        let at = |ms: u64| UNIX_EPOCH + Duration::from_millis(1_000_000 + ms);
        files.interval(&metrics(&[("READ", 40)]), at(0), at(1_000)).unwrap();
        files.interval(&metrics(&[("READ", 5_000), ("UPDATE", 7)]), at(1_000), at(1_500)).unwrap();
        files.interval(&metrics(&[]), at(1_500), at(2_500)).unwrap();

        let read = |name: &str| -> Vec<(u128, u128, f64, Vec<u64>)> {
            let bytes = std::fs::read(format!("{path}{name}.hdr")).unwrap();
            let mut deserializer = Deserializer::new();
            IntervalLogIterator::new(&bytes)
                .filter_map(|entry| match entry.unwrap() {
                    LogEntry::Interval(interval) => Some(interval),
                    LogEntry::StartTime(_) | LogEntry::BaseTime(_) => None,
                })
                .map(|interval| {
                    let coded = base64::Engine::decode(
                        &base64::engine::general_purpose::STANDARD,
                        interval.encoded_histogram(),
                    );
                    let histogram: hdrhistogram::Histogram<u64> =
                        deserializer.deserialize(&mut coded.unwrap().as_slice()).unwrap();
                    let values = histogram.iter_recorded().map(|v| v.value_iterated_to()).collect();
                    let (start, length) = (interval.start_timestamp(), interval.duration());
                    (start.as_millis(), length.as_millis(), interval.max(), values)
                })
                .collect()
        };
        let expected =
            [(0, 1_000, 0.0, vec![40]), (1_000, 500, 0.005, vec![5_003]), (1_500, 1_000, 0.0, vec![])];
        assert_eq!(read("READ"), expected);
        assert_eq!(read("UPDATE"), [(0, 500, 0.0, vec![7]), (500, 1_000, 0.0, vec![])]);
    }

    #[test]
    fn names_and_faults() {
        let dir = tempfile::tempdir().unwrap();
        let path = format!("{}/", dir.path().display());
        let set = [
            ("hdrhistogram.fileoutput", "true"),
            ("hdrhistogram.output.path", &path),
            ("measurementtype", "hdrhistogram+raw"),
        ];
        let mut files = HdrFiles::new(&options(&set), TimeZone::UTC);
        files.interval(&metrics(&[("Intended-READ", 1)]), UNIX_EPOCH, UNIX_EPOCH).unwrap();
        assert!(dir.path().join("HdrIntended-READ.hdr").exists());
        let mut off = HdrFiles::new(&options(&[("hdrhistogram.output.path", "/nowhere/x")]), TimeZone::UTC);
        off.interval(&metrics(&[("READ", 1)]), UNIX_EPOCH, UNIX_EPOCH).unwrap();
        let bad = [("hdrhistogram.fileoutput", "true"), ("hdrhistogram.output.path", "/nowhere/x-")];
        let mut bad = HdrFiles::new(&options(&bad), TimeZone::UTC);
        let error = bad.interval(&metrics(&[("READ", 1)]), UNIX_EPOCH, UNIX_EPOCH).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/x-READ.hdr: "), "{error}");
        assert_eq!(metrics(&[("READ", 1)]).list[0].buckets.bucket_scale(), Scale::Micros);
    }
}
