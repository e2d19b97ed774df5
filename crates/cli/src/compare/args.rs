//! The command line of `dyno compare`.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Per cent of throughput that matter.
const MARGIN: f64 = 2.0;

/// Per cent of a latency that matter.
const LATENCY_MARGIN: f64 = 5.0;

/// Seed of the resampling.
const SEED: u64 = 1;

/// A text that is no margin.
#[derive(Debug, thiserror::Error)]
#[error("expected per cent, from 0 to below 100")]
struct NoShare;

/// A margin, per cent.
fn share(text: &str) -> Result<f64, NoShare> {
    let value = text.parse::<f64>().ok().filter(|value| (0.0..100.0).contains(value));
    value.ok_or(NoShare)
}

/// Conclusions that end with exit code 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A figure is worse
    Worse,
    /// A figure is better or worse
    Different,
    /// A figure is worse, or nothing can be said of it
    Unclear,
}

/// `dyno compare`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A side is a run directory, an experiment's directory, or a folder of either that are repetitions of each other.\n\
Experiments are compared cell by cell. With --by FACTOR one experiment is enough: its levels are compared with the first.")]
pub struct CompareArgs {
    /// Directories to compare: the first is the baseline
    #[arg(required = true, value_name = "DIR")]
    pub sides: Vec<PathBuf>,
    /// Compare the levels of a factor within one experiment
    #[arg(long, value_name = "FACTOR")]
    pub by: Option<String>,
    /// Relative difference of throughput that matters, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = MARGIN, value_parser = share)]
    pub margin: f64,
    /// Relative difference of latencies that matters, per cent
    #[arg(long, value_name = "PERCENT", default_value_t = LATENCY_MARGIN, value_parser = share)]
    pub latency_margin: f64,
    /// Exit with code 4 on this
    #[arg(long, value_enum, value_name = "WHAT")]
    pub fail_on: Option<FailOn>,
    /// The sides are the same thing: keep what differs as the noise floor of this environment and database
    #[arg(long)]
    pub noise_floor: bool,
    /// Price of an hour of everything that takes part, such as server=0.34,client=0.17
    #[arg(long, value_name = "ROLE=PRICE,...")]
    pub price: Option<String>,
    /// Seed of the resampling
    #[arg(long, value_name = "N", default_value_t = SEED)]
    pub seed: u64,
    /// Form of the output
    #[arg(long, value_enum, default_value = "text")]
    pub format: ComparisonFormat,
    /// Print JSON, as --format json does
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// Write to a file instead of printing
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write one page that works offline, beside what is printed
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write JUnit XML, as CI systems read tests, beside what is printed: a case for each figure, which fails as --fail-on says
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// Forms of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ComparisonFormat {
    /// Verdicts in words and tables
    #[default]
    Text,
    /// One page that works offline
    Html,
    /// The same tables as Markdown
    Md,
    /// Everything that was found
    Json,
}

impl CompareArgs {
    /// Returns the defaults.
    pub(super) fn usual() -> Self {
        CompareArgs {
            sides: Vec::new(),
            by: None,
            margin: MARGIN,
            latency_margin: LATENCY_MARGIN,
            fail_on: None,
            noise_floor: false,
            price: None,
            seed: SEED,
            format: ComparisonFormat::Text,
            json: false,
            out: None,
            html: None,
            junit: None,
        }
    }
}
