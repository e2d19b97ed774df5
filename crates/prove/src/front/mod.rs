//! `dyno prove`: numbers that can be put on a table and defended.

mod certificate;
mod embedded;
mod failover;
mod ingest;
mod ingest_args;
mod left;
mod rounds;

pub use left::{is_proof, stop};

use clap::{Args, Subcommand};
use dyno_databases::registry;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::secret;
use dyno_frontend::signals;
use ingest_args::{IngestArgs, RecordKind};

/// `dyno prove`.
#[derive(Clone, Debug, Args)]
pub struct ProveArgs {
    #[command(subcommand)]
    /// Kind of the proof.
    pub what: What,
}

/// Claims that can be proven.
#[derive(Clone, Debug, Subcommand)]
pub enum What {
    /// So many records in so many seconds, each acknowledged by so many copies, and all of them found on every copy
    Ingest(IngestArgs),
    /// No acknowledged record is lost when primaries are killed, cut off or frozen under load
    Failover(failover::FailoverArgs),
    /// Writes to an embedded store as it is told on standard input; dyno starts it itself, to kill it
    #[command(hide = true)]
    Writer,
}

/// The command.
pub fn prove(args: &ProveArgs) -> Result<Exit, Failure> {
    match &args.what {
        What::Ingest(args) => ingest(args),
        What::Failover(args) => failover::failover(args),
        What::Writer => embedded::writer(),
    }
}

/// `dyno prove ingest`, of servers or of an embedded store.
fn ingest(args: &IngestArgs) -> Result<Exit, Failure> {
    signals::begin()?;
    let uri = secret::uri(&args.target, args.password_from.as_ref())?;
    let parsed = registry::parse(&uri)?;
    if args.document == RecordKind::Pocdriver {
        let copies = parsed.copies().transpose().map_err(Failure::usage)?;
        if !copies.is_some_and(|database| database.keeps_documents()) {
            return Err(args.refuse("--document pocdriver: documents are kept by mongodb:// alone"));
        }
    }
    match parsed.embedded() {
        Some(store) => embedded::prove(args, store),
        None => ingest::prove(args, &uri),
    }
}
