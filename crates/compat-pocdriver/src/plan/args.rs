//! POCDriver's flags, as the original takes them, and what dyno adds.

use crate::plan::locations;
use clap::Args;
use dyno_db::target::ClientDriver;
use dyno_types::limits::ASKED_S;
use dyno_types::{RefusalCode, Refused};
use dyno_workload::pocdriver::{Choice, PocConfig, Step, WeightMeaning, Weights};
use std::path::PathBuf;

/// `dyno pocdriver`.
#[derive(Clone, Debug, Args)]
#[command(
    next_line_help = false,
    after_help = "\
Exit codes: 0 valid or suspect, 1 internal error, 2 usage, 3 target unreachable, 5 run invalid, 130 interrupted.\n\
--compat-exit gives the original's: 0 whatever became of the operations."
)]
pub struct PocArgs {
    /// Print one document and its size as BSON, and do nothing else
    #[arg(short, long)]
    pub print: bool,
    /// Target
    #[arg(short = 'c', long, value_name = "URI", default_value = "mongodb://localhost:27017")]
    pub host: String,
    /// Database and collection
    #[arg(short, long, value_name = "DB.COLLECTION", default_value = "POCDB.POCCOLL")]
    pub namespace: String,
    /// Length of the run, seconds
    #[arg(short, long, value_name = "S", default_value_t = 18_000)]
    pub duration: u64,
    /// Workers
    #[arg(short, long, value_name = "N", default_value_t = 4)]
    pub threads: u32,
    /// Number of the first worker; must differ between clients
    #[arg(long = "threadIdStart", value_name = "N", default_value_t = 0)]
    pub thread_id_start: u32,
    /// Drop the collections first
    #[arg(short, long)]
    pub empty: bool,
    /// Iterations between two bulks
    #[arg(short, long, value_name = "N", default_value_t = 512)]
    pub bulksize: u32,
    /// End a bulk at its first failure
    #[arg(long, value_name = "true|false", default_value_t = true, action = clap::ArgAction::Set)]
    pub ordered: bool,
    /// Inserts: milliseconds of each worker's cycle, which all weights make up together; with --opsratio a proportion
    #[arg(short, long, value_name = "W", default_value_t = 100)]
    pub inserts: u32,
    /// Finds by _id: milliseconds of the cycle
    #[arg(short, long, value_name = "W", default_value_t = 0)]
    pub keyqueries: u32,
    /// Finds of a range: milliseconds of the cycle
    #[arg(short, long, value_name = "W", default_value_t = 0)]
    pub rangequeries: u32,
    /// Updates: milliseconds of the cycle
    #[arg(short, long, value_name = "W", default_value_t = 0)]
    pub updates: u32,
    /// Increments of an array's element: milliseconds of the cycle (needs --arrays)
    #[arg(short = 'g', long, value_name = "W", default_value_t = 0)]
    pub arrayupdates: u32,
    /// Letters i u I k K p in turn instead of weights
    #[arg(short = 'v', long, value_name = "LETTERS")]
    pub workflow: Option<String>,
    /// Updates one by one with findAndModify
    #[arg(short = 'm', long)]
    pub findandmodify: bool,
    /// Newest share of a worker's documents that is queried and updated, per cent
    #[arg(short = 'j', long, value_name = "%", default_value_t = 100)]
    pub workingset: u32,
    /// Documents of a range query
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub rangedocs: u32,
    /// Fields that an update sets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub updatefields: u32,
    /// Fields that a query returns; 0 for all
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub projectfields: u32,
    /// Keys by a zipfian of exponent 0.99 over N
    #[arg(short, long, value_name = "N")]
    pub zipfian: Option<u64>,
    /// Iterations a second of all workers; 0 for no cap
    #[arg(short = 'q', long = "opsPerSecond", value_name = "R", default_value_t = 0)]
    pub ops_per_second: u64,
    /// Indexes on the first N leaf fields
    #[arg(short = 'x', long, value_name = "N", default_value_t = 0)]
    pub indexes: u32,
    /// A text index on all fields
    #[arg(long)]
    pub fulltext: bool,
    /// Fields of a document
    #[arg(short = 'f', long, value_name = "N", default_value_t = 10)]
    pub numfields: u32,
    /// Levels of nesting
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub depth: u32,
    /// Longest text, characters
    #[arg(short = 'l', long, value_name = "N", default_value_t = 30)]
    pub textfieldsize: u32,
    /// Arrays: X arrays of Y integers
    #[arg(short = 'a', long, value_name = "X:Y")]
    pub arrays: Option<String>,
    /// Size of the binary field, KB
    #[arg(long, value_name = "KB", default_value_t = 0)]
    pub binary: u32,
    /// Field `location`, drawn from a list A,B,C or from the codes of all countries (random)
    #[arg(long, value_name = "LIST|random")]
    pub location: Option<String>,
    /// Collections: the namespace's with a number behind its name; not sharded
    #[arg(short = 'y', long, value_name = "N", default_value_t = 1)]
    pub collections: u32,
    /// Do not shard
    #[arg(short = 'w', long)]
    pub nosharding: bool,
    /// Thresholds, milliseconds
    #[arg(short, long, value_name = "MS,...", value_delimiter = ',', default_value = "50")]
    pub slowthreshold: Vec<u64>,
    /// Append a line each ten seconds to this file
    #[arg(short = 'o', long, value_name = "FILE")]
    pub logfile: Option<PathBuf>,
    /// Accepted: errors are always told
    #[arg(long)]
    pub debug: bool,
    /// Weights are proportions of what is done, not milliseconds: what the original's documentation says of this flag
    #[arg(long, alias = "opratio")]
    pub opsratio: bool,

    /// Seconds between reports
    #[arg(long, value_name = "S", default_value_t = 10, help_heading = "Added by dyno")]
    pub interval: u64,
    /// Choose keys by the clock, and operations of all workers together, as the original does since 2020
    #[arg(long, help_heading = "Added by dyno")]
    pub faithful_clock: bool,
    /// Write the log file as the original does: glued fields, no head, no rates
    #[arg(long, help_heading = "Added by dyno")]
    pub faithful_csv: bool,
    /// Turn a sharded cluster's balancer off while this runs; the original turns it off for good
    #[arg(long, help_heading = "Added by dyno")]
    pub stop_balancer: bool,
    /// Seed of documents and choices; default: drawn, and told
    #[arg(long, value_name = "N", help_heading = "Added by dyno")]
    pub seed: Option<u64>,
    /// Processes' worth of workers: they divide the --threads among themselves, each with its own connections
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Added by dyno")]
    pub workers: u32,
    /// Load threads; default: one a core, less one where the target is on this host
    #[arg(long = "load-threads", value_name = "N", help_heading = "Added by dyno")]
    pub load_threads: Option<usize>,
    /// Client that speaks to MongoDB
    #[arg(long, value_enum, default_value = "wire", help_heading = "Added by dyno")]
    pub client: ClientDriver,
    /// Run directory; none is kept without it
    #[arg(long, value_name = "DIR", help_heading = "Added by dyno")]
    pub out: Option<PathBuf>,
    /// With --out: do not watch host, processes and database beside the run
    #[arg(long, help_heading = "Added by dyno")]
    pub no_monitor: bool,
    /// The original's exit codes
    #[arg(long, help_heading = "Added by dyno")]
    pub compat_exit: bool,
}

impl PocArgs {
    /// Database and collection.
    pub fn names(&self) -> Result<(&str, &str), Refused> {
        let bad = || {
            Refused::new(
                RefusalCode::BadValue,
                "--namespace",
                format!("--namespace {:?}: expected DB.COLLECTION with exactly one dot", self.namespace),
            )
        };
        match self.namespace.split('.').collect::<Vec<_>>()[..] {
            [database, collection] if !database.is_empty() && !collection.is_empty() => {
                Ok((database, collection))
            }
            _ => Err(bad()),
        }
    }

    /// The workload.
    pub fn config(&self, now_ms: i64) -> Result<PocConfig, Refused> {
        let refuse = |flag: &str, text: String| Refused::new(RefusalCode::BadValue, flag, text);
        let contradict = |one: &str, other: &str| {
            Refused::new(RefusalCode::Conflict, one, format!("{one} and {other} exclude each other"))
        };
        let arrays = match &self.arrays {
            None => (0, 0),
            Some(text) => text
                .split_once(':')
                .and_then(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?)))
                .filter(|&(x, y): &(u32, u32)| x > 0 && u64::from(x) * u64::from(y) <= 1_000_000)
                .ok_or_else(|| {
                    refuse(
                        "--arrays",
                        format!("--arrays {text:?}: expected X:Y such as 5:5, at most a million elements"),
                    )
                })?,
        };
        let letters = self.workflow.as_deref().unwrap_or_default();
        let workflow: Option<Vec<Step>> = letters.chars().map(Step::from_letter).collect();
        if self.faithful_clock && self.opsratio {
            return Err(contradict("--faithful-clock", "--opsratio"));
        }
        let choice = match (self.faithful_clock, self.zipfian) {
            (true, Some(_)) => return Err(contradict("--faithful-clock", "--zipfian")),
            (true, None) => Choice::Clock,
            (false, Some(0)) => {
                return Err(refuse("--zipfian", "--zipfian 0: expected a number of keys from 1".into()));
            }
            (false, Some(n)) => Choice::Zipfian(n),
            (false, None) => Choice::Uniform,
        };
        let config = PocConfig {
            workers: self.threads,
            first_worker: self.thread_id_start,
            bulk: self.bulksize,
            ordered: self.ordered,
            weights: Weights {
                inserts: self.inserts,
                key_queries: self.keyqueries,
                range_queries: self.rangequeries,
                updates: self.updates,
                array_updates: self.arrayupdates,
            },
            shares: if self.opsratio { WeightMeaning::Counts } else { WeightMeaning::Time },
            workflow: workflow.ok_or_else(|| {
                let text = format!("--workflow {letters:?}: expected letters of i u I k K p");
                refuse("--workflow", text)
            })?,
            find_and_modify: self.findandmodify,
            working_set: self.workingset,
            range_documents: self.rangedocs,
            update_fields: self.updatefields,
            project_fields: self.projectfields,
            choice,
            per_second: self.ops_per_second,
            fields: self.numfields,
            depth: self.depth,
            text_chars: self.textfieldsize,
            arrays,
            binary_bytes: self.binary.saturating_mul(1024),
            locations: match self.location.as_deref() {
                None => Vec::new(),
                Some("random") => locations::countries(),
                Some(list) => list.split(',').map(str::to_owned).collect(),
            },
            collections: self.collections,
            thresholds_ms: self.slowthreshold.clone(),
            collection: self.names()?.1.to_owned(),
            indexes: self.indexes,
            seed: self.seed.unwrap_or(1),
            now_ms,
        };
        config.check().map_err(|bad| {
            refuse(&bad.key, format!("{} {}: expected {}", bad.key, bad.value, bad.expected))
        })?;
        if self.duration == 0 || self.duration > ASKED_S || self.interval == 0 {
            let text = format!("--duration and --interval: expected seconds from 1, at most {ASKED_S}");
            return Err(refuse(if self.interval == 0 { "--interval" } else { "--duration" }, text));
        }
        Ok(config)
    }
}
