//! YCSB's measurement properties.
//!
//! Names, defaults and class names are YCSB's (master). Faults that would spoil a run are errors, found before any
//! load is sent; where YCSB itself goes on with a default, so does dyno, and says so in
//! [`MeasurementOptions::warnings`]. Booleans and numbers lose surrounding white space; free text keeps it.

use crate::report::exporter::Exporter;
use crate::report::java;
use crate::report::return_code::ReturnCode;
use dyno_types::units::parse_count;
use dyno_workload::ycsb::BadProperty;
use std::ops::RangeInclusive;

/// One way of reporting the latencies of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Percentiles of an HdrHistogram.
    Hdr,
    /// Mean, variance and two percentiles of buckets of 1 ms.
    Histogram,
    /// Means per unit of time.
    TimeSeries,
    /// Every sample, and a summary.
    Raw,
}

/// Values of `measurementtype`.
const TYPES: [(&str, &[(&str, Form)]); 6] = [
    ("hdrhistogram", &[("", Form::Hdr)]),
    ("histogram", &[("", Form::Histogram)]),
    ("timeseries", &[("", Form::TimeSeries)]),
    ("raw", &[("", Form::Raw)]),
    ("hdrhistogram+histogram", &[("Hdr", Form::Hdr), ("Bucket", Form::Histogram)]),
    ("hdrhistogram+raw", &[("Hdr", Form::Hdr), ("Raw", Form::Raw)]),
];

/// Latencies that are reported: `measurement.interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Service time: from sending to completion.
    Op,
    /// Response time, from intended start to completion, under the plain names.
    Intended,
    /// Both, response time under `Intended-` names.
    Both,
}

const INTERVALS: [(&str, Interval); 3] =
    [("op", Interval::Op), ("intended", Interval::Intended), ("both", Interval::Both)];

const DEFAULT_PERCENTILES: &str = "50,95,99";

/// All measurement properties.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasurementOptions {
    /// Forms of `measurementtype`, each with the prefix of its metrics' names.
    pub forms: &'static [(&'static str, Form)],
    /// `measurement.interval`, if set; see [`MeasurementOptions::interval`].
    pub interval_set: Option<Interval>,
    /// `hdrhistogram.percentiles`, each 0 to 100.
    pub percentiles: Vec<f64>,
    /// `hdrhistogram.output.path` if `hdrhistogram.fileoutput` is set: what the names of log files start with.
    pub hdr_files: Option<String>,
    /// `histogram.buckets`: number of buckets of 1 ms.
    pub buckets: u64,
    /// `timeseries.granularity`, milliseconds.
    pub granularity_ms: u64,
    /// `measurement.histogram.verbose`: list the buckets too.
    pub verbose: bool,
    /// `measurement.raw.output_file`, appended to; standard output if `None`.
    pub raw_file: Option<String>,
    /// `measurement.raw.no_summary`.
    pub raw_no_summary: bool,
    /// `reportlatencyforeacherror`: a metric of its own for each return code.
    pub each_error: bool,
    /// `latencytrackederrors`: return codes with a metric of their own (not trimmed, as in YCSB).
    pub tracked_errors: Vec<String>,
    /// `exporter`.
    pub exporter: Exporter,
    /// `exportfile`; standard output if `None`.
    pub export_file: Option<String>,
    /// `status`: print status lines.
    pub status: bool,
    /// `status.interval`, seconds.
    pub status_interval_s: u64,
    /// `label`: what each status line starts with.
    pub label: String,
    /// Lines for standard error.
    pub warnings: Vec<String>,
}

impl MeasurementOptions {
    /// Reads all properties through `lookup`, which answers `None` for a property that is not set.
    pub fn from_lookup(lookup: &mut dyn FnMut(&str) -> Option<String>) -> Result<Self, BadProperty> {
        let mut read = OptionReader { lookup };
        let mut warnings = Vec::new();
        let files = read.flag("hdrhistogram.fileoutput")?;
        let path = read.text("hdrhistogram.output.path").unwrap_or_default();
        let each_error = read.flag("reportlatencyforeacherror")?;
        let tracked = read.text("latencytrackederrors").filter(|_| !each_error);
        if read.flag("measurement.trackjvm")? {
            warnings.push("measurement.trackjvm is ignored: there is no JVM to track.".to_owned());
        }
        Ok(MeasurementOptions {
            forms: read.choice("measurementtype", &TYPES)?.unwrap_or(TYPES[0].1),
            interval_set: read.choice("measurement.interval", &INTERVALS)?,
            percentiles: read_percentiles(&mut read, &mut warnings),
            hdr_files: files.then_some(path),
            buckets: read.count("histogram.buckets", 1_000, 0..=10_000_000)?,
            granularity_ms: read.count("timeseries.granularity", 1_000, 1..=86_400_000)?,
            verbose: read.flag("measurement.histogram.verbose")?,
            raw_file: read.text("measurement.raw.output_file").filter(|f| !f.is_empty()),
            raw_no_summary: read.flag("measurement.raw.no_summary")?,
            each_error,
            tracked_errors: read_tracked(tracked.as_deref(), &mut warnings),
            exporter: read_exporter(&mut read, &mut warnings),
            export_file: read.text("exportfile"),
            status: read.flag("status")?,
            status_interval_s: read.count("status.interval", 10, 1..=86_400)?,
            label: read.text("label").unwrap_or_default(),
            warnings,
        })
    }

    /// Returns the latencies to report. Where the property is not set, YCSB takes `op`; dyno (not in `compat` mode) reports both
    /// as soon as there is a target, because service times alone hide that the target was missed.
    pub fn interval(&self, target_set: bool, compat: bool) -> Interval {
        let default = if target_set && !compat { Interval::Both } else { Interval::Op };
        self.interval_set.unwrap_or(default)
    }

    /// Returns whether the report needs every single sample (`Totals::samples`): all forms but HdrHistogram do, and so do
    /// metrics per return code where an operation fails in several ways.
    pub fn needs_samples(&self) -> bool {
        self.forms.iter().any(|(_, form)| *form != Form::Hdr) || self.splits_errors()
    }

    /// The same report by HdrHistogram alone, for a run whose single samples are not all there.
    pub fn without_samples(&self) -> Self {
        MeasurementOptions { forms: &[("", Form::Hdr)], ..self.clone() }
    }

    /// Returns whether failures may go to metrics per return code.
    pub fn splits_errors(&self) -> bool {
        self.each_error || !self.tracked_errors.is_empty()
    }

    /// Returns whether status lines go to standard output as well as to standard error.
    pub fn status_on_stdout(&self) -> bool {
        self.forms.iter().any(|(_, form)| *form == Form::TimeSeries)
    }

    /// Text that YCSB prints on standard error when its first database object is made.
    pub fn wrapper_notice(&self) -> String {
        format!(
            "DBWrapper: report latency for each error is {} and specific error codes to track for latency are: {}",
            self.each_error,
            java::set_text(&self.tracked_errors)
        )
    }
}

/// `hdrhistogram.percentiles`, or its default and YCSB's warning.
fn read_percentiles(read: &mut OptionReader<'_>, warnings: &mut Vec<String>) -> Vec<f64> {
    let key = "hdrhistogram.percentiles";
    let text = read.text(key).unwrap_or_else(|| DEFAULT_PERCENTILES.to_owned());
    // Java drops empty strings at the end of a split.
    let parsed: Option<Vec<f64>> = text.trim_end_matches(',').split(',').map(percentile).collect();
    parsed.unwrap_or_else(|| {
        warnings.push(format!(
            "[WARN] Couldn't read {key} value: '{text}', the default of '{DEFAULT_PERCENTILES}' will be used."
        ));
        vec![50.0, 95.0, 99.0]
    })
}

fn percentile(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p))
}

/// `latencytrackederrors`; a name that no operation ever returns gets a warning.
fn read_tracked(text: Option<&str>, warnings: &mut Vec<String>) -> Vec<String> {
    let Some(text) = text else { return Vec::new() };
    let names: Vec<String> = text.split(',').map(str::to_owned).collect();
    for name in &names {
        if !ReturnCode::ALL.iter().any(|code| code.name() == name) {
            warnings.push(format!(
                "latencytrackederrors: '{name}' is no status (blanks count); accepted are {}.",
                ReturnCode::ALL.map(ReturnCode::name).join(", ")
            ));
        }
    }
    names
}

/// `exporter`; an unknown class gets YCSB's message and the text exporter.
fn read_exporter(read: &mut OptionReader<'_>, warnings: &mut Vec<String>) -> Exporter {
    let Some(name) = read.text("exporter") else { return Exporter::Text };
    Exporter::from_name(name.trim()).unwrap_or_else(|| {
        warnings.push(format!("Could not find exporter {name}, will use default text reporter."));
        Exporter::Text
    })
}

/// Typed reading of properties.
struct OptionReader<'a> {
    lookup: &'a mut dyn FnMut(&str) -> Option<String>,
}

impl OptionReader<'_> {
    fn text(&mut self, key: &str) -> Option<String> {
        (self.lookup)(key)
    }

    /// YCSB takes everything but `true` for false; words for true that it would misread are refused.
    fn flag(&mut self, key: &str) -> Result<bool, BadProperty> {
        let Some(value) = self.text(key) else { return Ok(false) };
        match value.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(bad(key, value, "true or false".to_owned())),
        }
    }

    fn count(&mut self, key: &str, default: u64, range: RangeInclusive<u64>) -> Result<u64, BadProperty> {
        let Some(value) = self.text(key) else { return Ok(default) };
        match parse_count(&value) {
            Ok(n) if range.contains(&n) => Ok(n),
            _ => {
                let expected = format!("a whole number, {} to {}", range.start(), range.end());
                Err(bad(key, value, expected))
            }
        }
    }

    fn choice<T: Copy>(&mut self, key: &str, choices: &[(&str, T)]) -> Result<Option<T>, BadProperty> {
        let Some(value) = self.text(key) else { return Ok(None) };
        match choices.iter().find(|(name, _)| *name == value.trim()) {
            Some(&(_, choice)) => Ok(Some(choice)),
            None => {
                let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                Err(bad(key, value, format!("one of {}", names.join(", "))))
            }
        }
    }
}

fn bad(key: &str, value: String, expected: String) -> BadProperty {
    BadProperty { key: key.to_owned(), value, expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<MeasurementOptions, BadProperty> {
        let mut lookup = |key: &str| set.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned());
        MeasurementOptions::from_lookup(&mut lookup)
    }

    #[test]
    fn defaults_are_those_of_ycsb() {
        let options = read(&[]).unwrap();
        assert_eq!(options.forms, [("", Form::Hdr)]);
        assert_eq!(options.percentiles, [50.0, 95.0, 99.0]);
        assert_eq!((options.buckets, options.granularity_ms, options.status_interval_s), (1000, 1000, 10));
        assert_eq!((options.hdr_files.clone(), options.raw_file.clone()), (None, None));
        assert_eq!(options.exporter, Exporter::Text);
        assert!(options.warnings.is_empty() && !options.needs_samples() && !options.status_on_stdout());
        let notice = "DBWrapper: report latency for each error is false and specific error codes to track for \
                      latency are: []";
        assert_eq!(options.wrapper_notice(), notice);
    }

    #[test]
    fn interval_depends_on_target_and_compat() {
        let unset = read(&[]).unwrap();
        assert_eq!(unset.interval(false, false), Interval::Op);
        assert_eq!(unset.interval(true, false), Interval::Both);
        assert_eq!(unset.interval(true, true), Interval::Op);
        let set = read(&[("measurement.interval", "op")]).unwrap();
        assert_eq!(set.interval(true, false), Interval::Op);
    }

    #[test]
    fn everything_can_be_set() {
        let options = read(&[
            ("measurementtype", "hdrhistogram+raw"),
            ("measurement.interval", "both"),
            ("hdrhistogram.percentiles", "50, 99.9,99.99,"),
            ("hdrhistogram.fileoutput", "TRUE "),
            ("hdrhistogram.output.path", "out/"),
            ("measurement.raw.output_file", "raw.csv"),
            ("latencytrackederrors", "NOT_FOUND, ERROR"),
            ("exporter", "com.yahoo.ycsb.measurements.exporter.JSONArrayMeasurementsExporter"),
            ("label", "one "),
            ("measurement.trackjvm", "true"),
        ])
        .unwrap();
        assert_eq!(options.forms, [("Hdr", Form::Hdr), ("Raw", Form::Raw)]);
        assert_eq!(options.interval(false, true), Interval::Both);
        assert_eq!(options.percentiles, [50.0, 99.9, 99.99]);
        assert_eq!(options.hdr_files.as_deref(), Some("out/"));
        assert_eq!(options.raw_file.as_deref(), Some("raw.csv"));
        assert_eq!(options.tracked_errors, ["NOT_FOUND", " ERROR"]);
        assert_eq!(options.exporter, Exporter::JsonArray);
        assert_eq!(options.label, "one ");
        assert!(options.needs_samples());
        assert_eq!(options.warnings.len(), 2, "{:?}", options.warnings);
    }

    #[test]
    fn faults_are_named_or_warned_of() {
        let error = read(&[("measurementtype", "hgrm")]).unwrap_err();
        assert!(
            error.to_string().starts_with("measurementtype=hgrm: expected one of hdrhistogram, histogram")
        );
        let error = read(&[("status.interval", "0")]).unwrap_err();
        assert_eq!(error.to_string(), "status.interval=0: expected a whole number, 1 to 86400");
        let error = read(&[("status", "yes")]).unwrap_err();
        assert_eq!((error.key.as_str(), error.expected.as_str()), ("status", "true or false"));
        assert!(read(&[("measurement.interval", "Both")]).is_err());
        let options = read(&[("hdrhistogram.percentiles", "50,x"), ("exporter", "my.Exporter")]).unwrap();
        assert_eq!(options.percentiles, [50.0, 95.0, 99.0]);
        let percentiles = "[WARN] Couldn't read hdrhistogram.percentiles value: '50,x', the default of '50,95,99' \
                           will be used.";
        let exporter = "Could not find exporter my.Exporter, will use default text reporter.";
        assert_eq!(options.warnings, [percentiles, exporter]);
    }
}
