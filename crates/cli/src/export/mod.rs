//! `dyno export`: runs and experiments in forms that other programs read.

use clap::{Args, ValueEnum};
use dyno_exchange::export::intervals::intervals;
use dyno_exchange::export::pivot::{Measure, Pivot, pivot};
use dyno_exchange::export::runs::runs;
use dyno_exchange::export::source::ExportSource;
use dyno_exchange::export::table::ExportTable;
use dyno_exchange::export::{ExportError, originals};
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;
use dyno_rundir::{RunDir, files};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The figure of a pivot where none is named.
const VALUE: &str = "throughput";

/// Seed of the models' resampling where none is given.
const SEED: u64 = 1;

/// Formats and contents of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Comma-separated table
    Csv,
    /// The same table for data frames and query engines
    Parquet,
    /// Spreadsheet: the lab's columns and charts, every run, a pivot of two factors
    Xlsx,
    /// YCSB's report
    Ycsb,
    /// sysbench-mongodb's table, a line each ten seconds
    Sysbench,
    /// POCDriver's log file, a line each ten seconds
    Pocdriver,
    /// KPIs of the Workload Services Framework
    Wsf,
    /// Log of a bexhoma benchmarker
    Bexhoma,
}

/// Table of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableArg {
    /// One row for each interval, phase and operation
    Intervals,
    /// One row for each run
    Runs,
}

/// `dyno export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// A run directory, a folder of run directories, or an experiment's directory
    pub dir: PathBuf,
    /// The form
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub format: ExportFormat,
    /// csv and parquet: which table
    #[arg(long, value_enum, default_value = "intervals", value_name = "TABLE")]
    pub table: TableArg,
    /// xlsx: the factor whose levels are the pivot's rows
    #[arg(long, value_name = "FACTOR", requires = "columns")]
    pub rows: Option<String>,
    /// xlsx: the factor whose levels are the pivot's columns
    #[arg(long, value_name = "FACTOR", requires = "rows")]
    pub columns: Option<String>,
    /// xlsx: the pivot's figure: throughput, mean, p50 ... p99.9 of the response time, or of one operation: p99(read)
    #[arg(long, value_name = "FIGURE", default_value = VALUE)]
    pub value: String,
    /// xlsx: seed of the models' resampling
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub seed: u64,
    /// The file; text goes to standard output without it
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl ExportArgs {
    /// `dyno report DIR --format FORM`: everything else as it is without options.
    pub fn plain(dir: &Path, format: ExportFormat, out: Option<&Path>) -> Self {
        ExportArgs {
            dir: dir.to_owned(),
            format,
            table: TableArg::Intervals,
            rows: None,
            columns: None,
            value: VALUE.into(),
            seed: SEED,
            out: out.map(Path::to_owned),
        }
    }
}

fn failure_of(error: ExportError) -> Failure {
    match error {
        ExportError::Format { .. } => Failure::internal(error),
        _ => Failure::usage(error),
    }
}

/// `dyno export`.
pub fn export(args: &ExportArgs) -> Result<Exit, Failure> {
    let binary = matches!(args.format, ExportFormat::Parquet | ExportFormat::Xlsx);
    if binary && args.out.is_none() {
        return Err(Failure::usage("this form is no text: name a file with --out FILE"));
    }
    if args.rows.is_some() && args.format != ExportFormat::Xlsx {
        return Err(Failure::usage("--rows and --columns: a pivot goes with --format xlsx"));
    }
    let source = ExportSource::open(&args.dir).map_err(failure_of)?;
    source.notes.iter().for_each(|note| terminal::warn(note));
    let bytes = bytes(args, &source)?;
    match &args.out {
        Some(path) => {
            let named = |e: std::io::Error| Failure::internal(format!("{}: {e}", path.display()));
            files::put_file(path, &bytes).map_err(named)?;
            terminal::note(&format!("{}: {} bytes", path.display(), bytes.len()));
        }
        None => {
            let mut out = terminal::Results::default();
            out.write_all(&bytes).and_then(|()| out.flush())?;
        }
    }
    Ok(Exit::Ok)
}

fn bytes(args: &ExportArgs, source: &ExportSource) -> Result<Vec<u8>, Failure> {
    let table = || match args.table {
        TableArg::Intervals => intervals(source).map_err(failure_of),
        TableArg::Runs => Ok(runs(source)),
    };
    match args.format {
        ExportFormat::Csv => Ok(table()?.csv().into_bytes()),
        ExportFormat::Parquet => parquet(&table()?),
        ExportFormat::Xlsx => {
            let pivot = match (&args.rows, &args.columns) {
                (Some(rows), Some(columns)) => {
                    let found =
                        Measure::parse(&args.value).and_then(|value| pivot(source, rows, columns, &value));
                    Some((args.value.clone(), found.map_err(failure_of)?))
                }
                _ => None,
            };
            workbook(source, pivot.as_ref(), args.seed)
        }
        ExportFormat::Ycsb => original(source, "ycsb", originals::ycsb),
        ExportFormat::Sysbench => original(source, "sysbench", originals::sysbench),
        ExportFormat::Pocdriver => original(source, "pocdriver", originals::pocdriver),
        ExportFormat::Wsf => original(source, "wsf", originals::wsf),
        ExportFormat::Bexhoma => original(source, "bexhoma", originals::bexhoma),
    }
}

/// A run as another tool prints it.
fn original(
    source: &ExportSource,
    name: &'static str,
    form: fn(&RunDir) -> Result<String, ExportError>,
) -> Result<Vec<u8>, Failure> {
    source.single(name).and_then(form).map(String::into_bytes).map_err(failure_of)
}

#[cfg(feature = "parquet")]
fn parquet(table: &ExportTable) -> Result<Vec<u8>, Failure> {
    dyno_exchange::export::parquet::parquet(table).map_err(failure_of)
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &ExportTable) -> Result<Vec<u8>, Failure> {
    Err(without("parquet"))
}

/// `pivot` is the name of a figure and its table.
#[cfg(feature = "xlsx")]
fn workbook(source: &ExportSource, pivot: Option<&(String, Pivot)>, seed: u64) -> Result<Vec<u8>, Failure> {
    dyno_exchange::export::workbook::workbook(source, pivot, seed).map_err(failure_of)
}

#[cfg(not(feature = "xlsx"))]
fn workbook(_: &ExportSource, _: Option<&(String, Pivot)>, _: u64) -> Result<Vec<u8>, Failure> {
    Err(without("xlsx"))
}

/// A form that this program was built without.
#[cfg(not(all(feature = "parquet", feature = "xlsx")))]
fn without(feature: &str) -> Failure {
    Failure::usage(format!("--format {feature}: this program was built without the feature `{feature}`"))
}
