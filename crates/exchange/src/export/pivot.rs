//! One figure over two factors.

use crate::export::ExportError;
use crate::export::source::{ExportSource, SourceRun};
use dyno_analysis::ThresholdFigure;
use dyno_rundir::schema::Claim;
use dyno_types::stats::mean;

/// A figure of a run.
#[derive(Clone, Debug)]
pub enum Measure {
    /// Successful operations per second.
    Throughput,
    /// A percentile of the response time over all operations, such as `p99`, microseconds.
    Response(String),
    /// The figure of a threshold, such as `p99(read)`, in its unit (latencies: microseconds).
    Figure(Box<ThresholdFigure>),
}

impl Measure {
    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, ExportError> {
        let name = text.trim().to_ascii_lowercase();
        if name == "throughput" {
            return Ok(Measure::Throughput);
        }
        if ["mean", "max", "p50", "p90", "p95", "p99", "p99.9", "p99.99"].contains(&name.as_str()) {
            return Ok(Measure::Response(name));
        }
        let expected = "expected throughput, errors, mean, p50, p90, p95, p99, p99.9, max, or one of an operation: p99(read)";
        match ThresholdFigure::parse(text) {
            Ok(figure) => Ok(Measure::Figure(Box::new(figure))),
            Err(_) => Err(ExportError::Lacking(format!("{text}: {expected}"))),
        }
    }

    /// Claims of a run that it rests on.
    fn claims(&self) -> Vec<Claim> {
        match self {
            Measure::Throughput => vec![Claim::Throughput],
            Measure::Response(name) if name == "p50" => vec![Claim::Median],
            Measure::Response(name) if name == "mean" => vec![Claim::Median, Claim::Tail],
            Measure::Response(_) => vec![Claim::Tail],
            Measure::Figure(figure) => figure.claims(),
        }
    }

    /// Value in a run, if the run has it.
    pub fn of(&self, run: &SourceRun) -> Option<f64> {
        let phase = run.measured()?;
        match self {
            Measure::Throughput => Some(phase.throughput),
            Measure::Response(name) => {
                let found = crate::export::runs::response(run)?;
                match name.as_str() {
                    "mean" => Some(found.mean_us),
                    "max" => found.max_us,
                    name => found.percentiles_us.get(name).copied().flatten(),
                }
            }
            Measure::Figure(figure) => figure.measured_value(phase),
        }
    }
}

/// Levels of two factors and the mean of a figure over the runs of each pair.
#[derive(Clone, Debug, PartialEq)]
pub struct Pivot {
    /// The two factors.
    pub factors: (String, String),
    /// Levels of the first, in the order of the experiment.
    pub rows: Vec<String>,
    /// Levels of the second.
    pub columns: Vec<String>,
    /// Mean and number of runs by row and column; `None` where no usable run has the figure.
    pub cells: Vec<Vec<Option<(f64, usize)>>>,
}

/// Runs of which the figure is invalid, and those without a result, are left out.
pub fn pivot(
    source: &ExportSource,
    rows: &str,
    columns: &str,
    measure: &Measure,
) -> Result<Pivot, ExportError> {
    let levels = |factor: &str| -> Result<Vec<String>, ExportError> {
        if !source.factors.iter().any(|known| known == factor) {
            let known =
                if source.factors.is_empty() { "it has none".into() } else { source.factors.join(", ") };
            let message = format!("{factor}: no factor of {}; factors: {known}", source.name);
            return Err(ExportError::Lacking(message));
        }
        let mut levels: Vec<String> = Vec::new();
        for level in source.runs.iter().filter_map(|run| run.level(factor)) {
            if !levels.iter().any(|known| known == level) {
                levels.push(level.to_owned());
            }
        }
        // Runs end in a shuffled order.
        if levels.iter().all(|level| level.parse::<f64>().is_ok()) {
            let number = |level: &String| level.parse::<f64>().unwrap_or(0.0);
            levels.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        Ok(levels)
    };
    let claims = measure.claims();
    let (row_levels, column_levels) = (levels(rows)?, levels(columns)?);
    let cell = |row: &str, column: &str| {
        let same = |run: &&SourceRun| run.level(rows) == Some(row) && run.level(columns) == Some(column);
        let usable = source.runs.iter().filter(|run| run.is_usable(&claims)).filter(same);
        let values: Vec<f64> = usable.filter_map(|run| measure.of(run)).collect();
        mean(&values).map(|mean| (mean, values.len()))
    };
    let cells =
        row_levels.iter().map(|row| column_levels.iter().map(|column| cell(row, column)).collect()).collect();
    Ok(Pivot { factors: (rows.into(), columns.into()), rows: row_levels, columns: column_levels, cells })
}
