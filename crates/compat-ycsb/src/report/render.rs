//! The final report as a list of (metric, measurement, value), in the order of YCSB's calls of its exporter.

use crate::report::forms;
use crate::report::line::{Line, ReportNumber};
use crate::report::metrics::Metrics;
use crate::report::options::{Form, MeasurementOptions};
use dyno_record::Totals;
use dyno_types::Outcome;
use std::io::{self, Write};

/// Figures for the lines about the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overall {
    /// Wall clock from before the first thread starts to after the last one is joined, milliseconds: with connecting
    /// and cleaning up, as YCSB counts it.
    pub run_ms: u64,
    /// The same without connecting and cleaning up, milliseconds.
    pub load_ms: u64,
    /// Operations done, failed ones included.
    pub operations: u64,
    /// Operations that succeeded.
    pub successes: u64,
}

impl Overall {
    /// Counts the operations of `totals`. What was dropped or aborted was never done.
    pub fn of(totals: &Totals, run_ms: u64, load_ms: u64) -> Overall {
        let undone = totals.ended[Outcome::Dropped as usize] + totals.ended[Outcome::Aborted as usize];
        Overall { run_ms, load_ms, operations: totals.ended_total() - undone, successes: totals.count_ok() }
    }

    /// YCSB's throughput, operations per second.
    pub fn throughput(&self) -> f64 {
        1000.0 * self.operations as f64 / self.run_ms as f64
    }
}

/// The measurement type needs single samples, but not all of them were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "measurementtype other than hdrhistogram needs every sample recorded, and the run did not record them"
)]
pub struct SamplesMissing;

/// All lines of the report. In `compat` mode exactly YCSB's; otherwise with dyno's own after `[OVERALL]`'s.
pub fn report(
    overall: &Overall,
    metrics: &Metrics,
    options: &MeasurementOptions,
    compat: bool,
) -> Result<Vec<Line>, SamplesMissing> {
    if !metrics.samples && options.forms.iter().any(|(_, form)| *form != Form::Hdr) {
        return Err(SamplesMissing);
    }
    let mut out = vec![
        Line::new("OVERALL", "RunTime(ms)", ReportNumber::Int(overall.run_ms as i64)),
        Line::new("OVERALL", "Throughput(ops/sec)", ReportNumber::Double(overall.throughput())),
    ];
    if !compat {
        let successes = 1000.0 * overall.successes as f64 / overall.run_ms as f64;
        out.push(Line::new("OVERALL", "SuccessfulThroughput(ops/sec)", ReportNumber::Double(successes)));
        out.push(Line::new(
            "OVERALL",
            "RunTimeWithoutConnect(ms)",
            ReportNumber::Int(overall.load_ms as i64),
        ));
    }
    // There is no garbage collector; parsers expect the three totals, and after YCSB those of Java's usual collector.
    for generation in ["Young", "Old"].into_iter().filter(|_| compat) {
        let line = |what: &str, unit, value| {
            Line::new(&format!("TOTAL_{what}_G1_{generation}_Generation"), unit, value)
        };
        out.push(line("GCS", "Count", ReportNumber::Int(0)));
        out.push(line("GC_TIME", "Time(ms)", ReportNumber::Int(0)));
        out.push(line("GC_TIME_%", "Time(%)", ReportNumber::Double(0.0)));
    }
    out.push(Line::new("TOTAL_GCs", "Count", ReportNumber::Int(0)));
    out.push(Line::new("TOTAL_GC_TIME", "Time(ms)", ReportNumber::Int(0)));
    out.push(Line::new("TOTAL_GC_TIME_%", "Time(%)", ReportNumber::Double(0.0)));
    for metric in &metrics.list {
        forms::lines(metric, options, &mut out);
    }
    Ok(out)
}

/// Writes the samples of the `raw` form to its own file or to standard output, before the report; nothing for other forms.
pub fn write_raw(metrics: &Metrics, options: &MeasurementOptions, out: &mut dyn Write) -> io::Result<()> {
    metrics.list.iter().try_for_each(|metric| forms::write_raw(metric, options, out))
}

/// Notices of the `raw` form on standard output when a metric is first used, one line for each metric.
pub fn raw_notices(metrics: &Metrics, options: &MeasurementOptions) -> Vec<String> {
    if !options.forms.iter().any(|(_, form)| *form == Form::Raw) {
        return Vec::new();
    }
    let notice = match &options.raw_file {
        Some(file) => format!("Raw data measurement: will output to result file: {file}"),
        None => "Raw data measurement: will output to stdout.".to_owned(),
    };
    vec![notice; metrics.list.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::Scale;

    #[test]
    fn overall_lines() {
        let options = MeasurementOptions::from_lookup(&mut |_| None).unwrap();
        let mut totals = Totals::new(0, Scale::Micros);
        totals.ended[Outcome::Ok as usize] = 900;
        totals.ended[Outcome::TimedOut as usize] = 100;
        totals.ended[Outcome::Aborted as usize] = 3;
        let overall = Overall::of(&totals, 1243, 1200);
        let none = Metrics { list: Vec::new(), warnings: Vec::new(), samples: false };
        let text = |compat| {
            crate::report::exporter::Exporter::Text
                .export(&report(&overall, &none, &options, compat).unwrap())
        };
        let compat = "[OVERALL], RunTime(ms), 1243\n[OVERALL], Throughput(ops/sec), 804.5052292839904\n\
                      [TOTAL_GCS_G1_Young_Generation], Count, 0\n[TOTAL_GC_TIME_G1_Young_Generation], Time(ms), 0\n\
                      [TOTAL_GC_TIME_%_G1_Young_Generation], Time(%), 0.0\n[TOTAL_GCS_G1_Old_Generation], Count, 0\n\
                      [TOTAL_GC_TIME_G1_Old_Generation], Time(ms), 0\n[TOTAL_GC_TIME_%_G1_Old_Generation], Time(%), 0.0\n\
                      [TOTAL_GCs], Count, 0\n[TOTAL_GC_TIME], Time(ms), 0\n[TOTAL_GC_TIME_%], Time(%), 0.0\n";
        assert_eq!(text(true), compat);
        let own = "Throughput(ops/sec), 804.5052292839904\n\
                   [OVERALL], SuccessfulThroughput(ops/sec), 724.0547063555913\n\
                   [OVERALL], RunTimeWithoutConnect(ms), 1200\n[TOTAL_GCs], Count, 0\n";
        assert!(text(false).contains(own), "{}", text(false));
    }

    #[test]
    fn raw_needs_its_samples() {
        let mut lookup = |key: &str| (key == "measurementtype").then(|| "raw".to_owned());
        let options = MeasurementOptions::from_lookup(&mut lookup).unwrap();
        let overall = Overall { run_ms: 1, load_ms: 1, operations: 1, successes: 1 };
        let metrics = Metrics { list: Vec::new(), warnings: Vec::new(), samples: false };
        assert_eq!(report(&overall, &metrics, &options, true), Err(SamplesMissing));
        assert!(raw_notices(&metrics, &options).is_empty());
    }
}
