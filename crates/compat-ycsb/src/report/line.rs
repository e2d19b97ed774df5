//! Lines of the report: metric, measurement, value.

use crate::report::java;
use std::fmt;

/// A number of the report.
#[derive(Clone, Debug, PartialEq)]
pub enum ReportNumber {
    /// A whole number.
    Int(i64),
    /// A Java double.
    Double(f64),
    /// A word.
    Text(&'static str),
}

impl fmt::Display for ReportNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportNumber::Int(n) => write!(f, "{n}"),
            ReportNumber::Double(x) => f.write_str(&java::double(*x)),
            ReportNumber::Text(word) => f.write_str(word),
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the metric, such as `READ`.
    pub metric: String,
    /// Name of the measurement, with its unit.
    pub measurement: String,
    /// The number.
    pub value: ReportNumber,
}

impl Line {
    /// A line.
    pub fn new(metric: &str, measurement: &str, value: ReportNumber) -> Line {
        Line { metric: metric.to_owned(), measurement: measurement.to_owned(), value }
    }
}
