//! `dyno prove`: numbers that can be put on a table and defended.

mod certificate;
mod embedded;
mod failover;
mod ingest;
mod ingest_args;
mod left;
mod rounds;

pub use left::{is_proof, stop};

use crate::exit::{Exit, Failure};
use clap::{Args, Subcommand};
use dyno_databases::copies::database::DatabaseError;
use dyno_prove::embedded::EmbeddedError;
use dyno_prove::failover::FailoverError;
use dyno_prove::failover::partition::PartitionError;

/// `dyno prove`.
#[derive(Clone, Debug, Args)]
pub struct ProveArgs {
    #[command(subcommand)]
    pub what: What,
}

/// What is proven.
#[derive(Clone, Debug, Subcommand)]
pub enum What {
    /// So many records in so many seconds, each acknowledged by so many copies, and all of them found on every copy
    Ingest(ingest_args::IngestArgs),
    /// No acknowledged record is lost when primaries are killed or cut off under load
    Failover(failover::FailoverArgs),
    /// Writes to an embedded store as it is told on standard input; dyno starts it itself, to kill it
    #[command(hide = true)]
    Writer,
}

/// The command.
pub fn prove(args: &ProveArgs) -> Result<Exit, Failure> {
    match &args.what {
        What::Ingest(args) => ingest::ingest(args),
        What::Failover(args) => failover::failover(args),
        What::Writer => embedded::writer(),
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Failure::Unreachable(error.to_string())
    }
}

impl From<FailoverError> for Failure {
    fn from(error: FailoverError) -> Self {
        Failure::Unreachable(error.to_string())
    }
}

impl From<PartitionError> for Failure {
    fn from(error: PartitionError) -> Self {
        Failure::Internal(error.to_string())
    }
}

impl From<EmbeddedError> for Failure {
    fn from(error: EmbeddedError) -> Self {
        Failure::Internal(error.to_string())
    }
}

/// Eight digits that no other run has.
fn run_name() -> Result<String, Failure> {
    let folder = tempfile::Builder::new().prefix("").rand_bytes(8).tempdir()?;
    let name = folder.path().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(name)
}

/// A share of the time, or a figure, that a reader can check.
fn figure(value: f64) -> String {
    dyno_types::units::Thousands(value.round() as u64).to_string()
}
