//! Report lines and status text of one metric in each measurement type.
//!
//! Percentiles and means are those YCSB computes, faults included: the `histogram` form has buckets of 1 ms and no
//! percentile where the rank lies beyond them, `timeseries` leaves out a unit without samples.

use crate::report::java;
use crate::report::line::{Line, ReportNumber};
use crate::report::metrics::{Metric, MetricSample};
use crate::report::options::{Form, MeasurementOptions};
use dyno_record::bucket_high;
use std::io::{self, Write};

/// Ranks of the `raw` form's summary.
const RAW_RANKS: [(&str, f64); 8] = [
    ("p1", 0.01),
    ("p5", 0.05),
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
];

/// Appends all lines of one metric.
pub(crate) fn lines(metric: &Metric, options: &MeasurementOptions, out: &mut Vec<Line>) {
    for (number, &(prefix, form)) in options.forms.iter().enumerate() {
        // Only the first of two forms is told the return codes.
        let mut form_lines = Lines { name: format!("{prefix}{}", metric.name), out, returns: number == 0 };
        match form {
            Form::Hdr => hdr(metric, options, &mut form_lines),
            Form::Histogram => histogram(metric, options, &mut form_lines),
            Form::TimeSeries => time_series(metric, options, &mut form_lines),
            Form::Raw => raw(metric, options, &mut form_lines),
        }
    }
}

/// Lines of one metric and form.
struct Lines<'a> {
    name: String,
    out: &'a mut Vec<Line>,
    returns: bool,
}

impl Lines<'_> {
    fn add(&mut self, measurement: &str, value: ReportNumber) {
        self.out.push(Line::new(&self.name, measurement, value));
    }

    fn count(&mut self, measurement: &str, value: u64) {
        self.add(measurement, ReportNumber::Int(value as i64));
    }

    fn returns(&mut self, metric: &Metric) {
        if self.returns {
            for (code, count) in &metric.returns {
                self.count(&format!("Return={}", code.name()), *count);
            }
        }
    }

    /// Count, mean and extremes, as the forms other than HdrHistogram's give them when there is nothing, too.
    fn basics(&mut self, all: &Sums, variance: bool) {
        let extreme = |value: u64| ReportNumber::Int(if all.count == 0 { -1 } else { value as i64 });
        self.count("Operations", all.count);
        self.add("AverageLatency(us)", ReportNumber::Double(all.mean()));
        if variance {
            let mean_of_squares = all.squares / all.count as f64;
            self.add("LatencyVariance(us)", ReportNumber::Double(mean_of_squares - all.mean() * all.mean()));
        }
        self.add("MinLatency(us)", extreme(all.min));
        self.add("MaxLatency(us)", extreme(all.max));
    }
}

fn hdr(metric: &Metric, options: &MeasurementOptions, out: &mut Lines<'_>) {
    let buckets = &metric.buckets;
    out.count("Operations", buckets.count());
    out.add("AverageLatency(us)", ReportNumber::Double(buckets.hdr_mean_units()));
    out.count("MinLatency(us)", buckets.hdr_min_units());
    out.count("MaxLatency(us)", buckets.hdr_max_units());
    for &percentile in &options.percentiles {
        let value = buckets.percentile_units(percentile);
        out.count(&format!("{}PercentileLatency(us)", ordinal(percentile)), value);
    }
    out.returns(metric);
    if options.verbose {
        for (bucket, count) in buckets.iter() {
            out.add(&bucket_high(bucket).to_string(), ReportNumber::Double(count as f64));
        }
    }
}

/// `50th`, `91st`; a percentile with a fraction has no ending.
fn ordinal(percentile: f64) -> String {
    if percentile % 1.0 != 0.0 {
        return java::double(percentile);
    }
    let whole = percentile as u64;
    let ending = match (whole % 100, whole % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{whole}{ending}")
}

/// Sums of single latencies in microseconds.
#[derive(Default)]
struct Sums {
    count: u64,
    total: u64,
    squares: f64,
    min: u64,
    max: u64,
}

impl Sums {
    fn of(points: &[MetricSample]) -> Sums {
        let mut all = Sums { min: u64::MAX, ..Sums::default() };
        for point in points {
            let us = point.latency_us;
            all.count += 1;
            all.total += us;
            all.squares += us as f64 * us as f64;
            all.min = all.min.min(us);
            all.max = all.max.max(us);
        }
        all
    }

    /// NaN when empty, as in YCSB.
    fn mean(&self) -> f64 {
        self.total as f64 / self.count as f64
    }
}

fn histogram(metric: &Metric, options: &MeasurementOptions, out: &mut Lines<'_>) {
    let all = Sums::of(&metric.points);
    out.basics(&all, true);
    let mut counts = vec![0u64; options.buckets as usize];
    let mut overflow = 0;
    for point in &metric.points {
        match counts.get_mut((point.latency_us / 1_000) as usize) {
            Some(count) => *count += 1,
            None => overflow += 1,
        }
    }
    for (share, label) in [(0.95, "95thPercentileLatency(us)"), (0.99, "99thPercentileLatency(us)")] {
        let mut seen = 0;
        let reached = counts.iter().position(|count| {
            seen += count;
            seen as f64 / all.count as f64 >= share
        });
        if let Some(bucket) = reached {
            out.count(label, bucket as u64 * 1_000);
        }
    }
    out.returns(metric);
    if options.verbose {
        for (bucket, count) in counts.iter().enumerate() {
            out.count(&bucket.to_string(), *count);
        }
        out.count(&format!(">{}", options.buckets), overflow);
    }
}

fn time_series(metric: &Metric, options: &MeasurementOptions, out: &mut Lines<'_>) {
    out.basics(&Sums::of(&metric.points), false);
    out.returns(metric);
    let Some(first) = metric.points.first() else {
        return out.add("0", ReportNumber::Double(f64::NAN));
    };
    let unit_of = |p: &MetricSample| (p.done_ms - first.done_ms) / options.granularity_ms;
    for unit in metric.points.chunk_by(|a, b| unit_of(a) == unit_of(b)) {
        let start_ms = unit_of(&unit[0]) * options.granularity_ms;
        out.add(&start_ms.to_string(), ReportNumber::Double(Sums::of(unit).mean()));
    }
}

fn raw(metric: &Metric, options: &MeasurementOptions, out: &mut Lines<'_>) {
    let mut sorted: Vec<u64> = metric.points.iter().map(|p| p.latency_us).collect();
    sorted.sort_unstable();
    out.count("Total Operations", sorted.len() as u64);
    if let (Some(&min), Some(&max), false) = (sorted.first(), sorted.last(), options.raw_no_summary) {
        out.add("Below is a summary of latency in microseconds:", ReportNumber::Int(-1));
        out.add("Average", ReportNumber::Double(Sums::of(&metric.points).mean()));
        out.count("Min", min);
        out.count("Max", max);
        for (label, share) in RAW_RANKS {
            out.count(label, sorted[(sorted.len() as f64 * share) as usize]);
        }
    }
    out.returns(metric);
}

/// The lines that YCSB's `raw` form writes past the exporter, before the report: every sample of one metric.
pub(crate) fn write_raw(
    metric: &Metric,
    options: &MeasurementOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (prefix, _) in options.forms.iter().filter(|(_, form)| *form == Form::Raw) {
        writeln!(out, "{prefix}{} latency raw data: op, timestamp(ms), latency(us)", metric.name)?;
        for point in &metric.points {
            writeln!(out, "{prefix}{},{},{}", metric.name, point.done_ms, point.latency_us)?;
        }
    }
    Ok(())
}

/// Text of a status line about one metric in one interval.
pub(crate) fn summary(metric: &Metric, options: &MeasurementOptions) -> String {
    let one = |&(prefix, form): &(&str, Form)| {
        let name = format!("{prefix}{}", metric.name);
        match form {
            Form::Hdr => hdr_summary(&name, metric),
            Form::Histogram | Form::TimeSeries => {
                let all = Sums::of(&metric.points);
                let mean = java::decimal(all.mean());
                if all.count == 0 { String::new() } else { format!("[{name} AverageLatency(us)={mean}]") }
            }
            Form::Raw => {
                let all = Sums::of(&metric.points);
                let (count, mean) = (all.count, java::fixed(all.mean()));
                if count == 0 {
                    String::new()
                } else {
                    format!("{name} count: {count}, average latency(us): {mean}")
                }
            }
        }
    };
    options.forms.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn hdr_summary(name: &str, metric: &Metric) -> String {
    let buckets = &metric.buckets;
    let mut text = format!(
        "[{name}: Count={}, Max={}, Min={}, Avg={}",
        buckets.count(),
        buckets.hdr_max_units(),
        buckets.hdr_min_units(),
        java::decimal(buckets.hdr_mean_units())
    );
    for percentile in [50.0, 90.0, 99.0, 99.9, 99.99] {
        text += &format!(", {percentile}={}", buckets.percentile_units(percentile));
    }
    text + "]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(set: &[(&str, &str)]) -> MeasurementOptions {
        let mut lookup = |key: &str| set.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned());
        MeasurementOptions::from_lookup(&mut lookup).unwrap()
    }

    /// READ of latencies in microseconds, one sample each 100 ms.
    fn read(latencies: &[u64]) -> Metric {
        let mut metric = Metric::empty("READ");
        for (i, &latency_us) in latencies.iter().enumerate() {
            metric.buckets.record(latency_us * 1_000);
            metric.points.push(MetricSample { done_ms: 5_000 + i as u64 * 100, latency_us });
        }
        metric
    }

    fn text(metric: &Metric, options: &MeasurementOptions) -> String {
        let mut out = Vec::new();
        lines(metric, options, &mut out);
        crate::report::exporter::Exporter::Text.export(&out)
    }

    #[test]
    fn ordinals() {
        for (percentile, text) in [
            (50.0, "50th"),
            (91.0, "91st"),
            (92.0, "92nd"),
            (93.0, "93rd"),
            (11.0, "11th"),
            (12.0, "12th"),
            (13.0, "13th"),
            (1.0, "1st"),
            (99.9, "99.9"),
            (100.0, "100th"),
        ] {
            assert_eq!(ordinal(percentile), text);
        }
    }

    #[test]
    fn empty_metrics() {
        let empty = Metric::empty("READ");
        let hdr = "[READ], Operations, 0\n[READ], AverageLatency(us), 0.0\n[READ], MinLatency(us), 0\n\
                   [READ], MaxLatency(us), 0\n[READ], 99.9PercentileLatency(us), 0\n";
        assert_eq!(text(&empty, &options(&[("hdrhistogram.percentiles", "99.9")])), hdr);
        let histogram = "[READ], Operations, 0\n[READ], AverageLatency(us), NaN\n[READ], LatencyVariance(us), NaN\n\
                         [READ], MinLatency(us), -1\n[READ], MaxLatency(us), -1\n";
        assert_eq!(text(&empty, &options(&[("measurementtype", "histogram")])), histogram);
        assert_eq!(text(&empty, &options(&[("measurementtype", "raw")])), "[READ], Total Operations, 0\n");
        assert!(text(&empty, &options(&[("measurementtype", "timeseries")])).ends_with("[READ], 0, NaN\n"));
        for kind in ["histogram", "timeseries", "raw"] {
            assert_eq!(summary(&empty, &options(&[("measurementtype", kind)])), "");
        }
    }

    #[test]
    fn histogram_has_no_percentile_in_its_overflow() {
        let options = options(&[
            ("measurementtype", "histogram"),
            ("histogram.buckets", "3"),
            ("measurement.histogram.verbose", "true"),
        ]);
        let mut latencies = vec![100; 90];
        latencies.extend([1_500; 5]);
        latencies.extend([3_000; 5]);
        let shown = text(&read(&latencies), &options);
        assert!(shown.contains("[READ], AverageLatency(us), 315.0\n"), "{shown}");
        let rest = "[READ], MaxLatency(us), 3000\n[READ], 95thPercentileLatency(us), 1000\n[READ], 0, 90\n\
                    [READ], 1, 5\n[READ], 2, 0\n[READ], >3, 5\n";
        assert!(shown.ends_with(rest), "{shown}");
    }

    #[test]
    fn a_unit_without_samples_is_missing() {
        let options = options(&[("measurementtype", "timeseries"), ("timeseries.granularity", "200")]);
        let mut metric = read(&[10, 20, 30, 40, 50]);
        metric.points.drain(2..4);
        let shown = text(&metric, &options);
        assert!(shown.ends_with("[READ], 0, 15.0\n[READ], 400, 50.0\n"), "{shown}");
    }

    #[test]
    fn two_forms_in_one() {
        let both = options(&[
            ("measurementtype", "hdrhistogram+raw"),
            ("hdrhistogram.percentiles", "50"),
            ("measurement.raw.no_summary", "true"),
            ("measurement.histogram.verbose", "true"),
        ]);
        let mut metric = read(&[10, 10, 4_001]);
        metric.returns = vec![(crate::report::return_code::ReturnCode::Ok, 3)];
        let expected = "[HdrREAD], Operations, 3\n[HdrREAD], AverageLatency(us), 1340.3333333333333\n\
                        [HdrREAD], MinLatency(us), 10\n[HdrREAD], MaxLatency(us), 4001\n\
                        [HdrREAD], 50thPercentileLatency(us), 10\n[HdrREAD], Return=OK, 3\n[HdrREAD], 10, 2.0\n\
                        [HdrREAD], 4001, 1.0\n[RawREAD], Total Operations, 3\n";
        assert_eq!(text(&metric, &both), expected);
        let mut raw = Vec::new();
        write_raw(&metric, &both, &mut raw).unwrap();
        assert!(String::from_utf8(raw).unwrap().ends_with("RawREAD,5100,10\nRawREAD,5200,4001\n"));
        let status = "[HdrREAD: Count=3, Max=4001, Min=10, Avg=1340.33, 50=10, 90=4001, 99=4001, 99.9=4001, \
                      99.99=4001]\nRawREAD count: 3, average latency(us): 1340.33";
        assert_eq!(summary(&metric, &both), status);
        let buckets = options(&[("measurementtype", "hdrhistogram+histogram")]);
        assert!(text(&metric, &buckets).contains("[BucketREAD], LatencyVariance(us), "));
        assert!(summary(&metric, &buckets).ends_with("]\n[BucketREAD AverageLatency(us)=1340.33]"));
    }
}
