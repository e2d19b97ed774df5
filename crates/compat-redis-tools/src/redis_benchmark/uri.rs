//! The server of the settings as one URI of dyno.

use super::address::PATH;
use super::args::Args;
use super::{BenchmarkRefusal, Program, Reads};
use dyno_types::percent;

/// The server as dyno's URI; a database that does not count is noted.
pub(super) fn uri(args: &Args, notes: &mut Vec<String>) -> Result<String, BenchmarkRefusal> {
    let address = &args.address;
    let scheme = match (&address.socket, address.tls) {
        (Some(_), true) => {
            return Err(BenchmarkRefusal::Unavailable {
                what: "--tls with -s",
                reason: "it speaks TLS over TCP only",
            });
        }
        (Some(_), false) => "unix",
        (None, true) => "rediss",
        (None, false) => "redis",
    };
    let mut options = address.tls_options()?;
    if args.resp3 {
        options.push(("protocol", "3".to_owned()));
    }
    if args.cluster {
        options.push(("cluster", "true".to_owned()));
    }
    match args.reads {
        Reads::Primary => {}
        Reads::Replica => options.push(("reads", "replica".to_owned())),
        Reads::Any => options.push(("reads", "any".to_owned())),
    }
    if let Some(database) = database(args, notes)? {
        options.push(("db", database.to_string()));
    }
    let pairs: Vec<String> = options
        .iter()
        .map(|(name, value)| format!("{name}={}", percent::percent_encode(value, PATH)))
        .collect();
    let mark = if pairs.is_empty() { "" } else { "?" };
    Ok(format!("{scheme}://{}{}{mark}{}", address.login(), address.place()?, pairs.join("&")))
}

/// The database; `None` for the first.
fn database(args: &Args, notes: &mut Vec<String>) -> Result<Option<u32>, BenchmarkRefusal> {
    let database = args.address.database;
    match (database, args.cluster, args.program) {
        (0, _, _) => Ok(None),
        (_, false, _) => Ok(Some(database)),
        (_, true, Program::RedisBenchmark) => {
            notes.push("WARNING: --dbnum has no effect with --cluster.".to_owned());
            Ok(None)
        }
        (_, true, Program::ValkeyBenchmark) => Err(BenchmarkRefusal::Unavailable {
            what: "--dbnum with --cluster",
            reason: "it uses database 0 of a cluster",
        }),
    }
}
