//! Arguments of `dyno sysbench-mongodb`.

use crate::plan::resolve::Overrides;
use clap::{Args, ValueEnum};
use dyno_db::target::ClientDriver;
use dyno_workload::sysbench_mongodb::Dialect;
use std::path::PathBuf;

/// Version of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SysbenchVersion {
    /// February 2015: MONGO_SERVER and MONGO_PORT, 32-bit _ids
    #[value(name = "2015")]
    Y2015,
    /// The last one: URI, 64-bit _ids
    Head,
}

/// `dyno sysbench-mongodb`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
Exit codes: 0 valid or suspect, 1 internal error, 2 usage, 3 target unreachable, 5 run invalid, 130 interrupted.\n\
The configuration is read, never executed. Without CONFIG config.bash is read if it is there.")]
pub struct SysbenchArgs {
    /// CONFIG, then OVERRIDES, then NAME=VALUE pairs such as NUM_COLLECTIONS=4 RUN_TIME_SECONDS=60
    #[arg(value_name = "CONFIG [OVERRIDES] [NAME=VALUE]")]
    pub words: Vec<String>,
    /// Version; default: found out from the variables that are set
    #[arg(long, value_enum)]
    pub dialect: Option<SysbenchVersion>,
    /// Reproduce the original's defects: documents that fill no batch are not loaded, and so on
    #[arg(long)]
    pub faithful: bool,
    /// Draw each transaction by itself, so that they do not depend on the number of users
    #[arg(long)]
    pub independent: bool,
    /// Target instead of the configuration's, such as mongodb://host or null:
    #[arg(long, value_name = "URI")]
    pub target: Option<String>,
    /// Client that speaks to MongoDB
    #[arg(long, value_enum, default_value = "wire")]
    pub client: ClientDriver,
    /// Number of the first user, where several clients share the work
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub first_writer: u32,
    /// Workers that share the users, each with its own generators and connections
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub workers: u32,
    /// Load threads; default: one a core, less one where the target is on this host
    #[arg(long, value_name = "N")]
    pub load_threads: Option<usize>,
    /// Folder of the log files mongoSysbench*.txt and .tsv
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub logs: PathBuf,
    /// Run directory of load and transactions; none is kept without it
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// With --out: do not watch host, processes and database beside the transactions
    #[arg(long)]
    pub no_monitor: bool,
    /// Print the summary as JSON, and what the original prints to stderr
    #[arg(long)]
    pub json: bool,
}

impl SysbenchArgs {
    /// For the plan.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            dialect: self.dialect.map(|version| match version {
                SysbenchVersion::Y2015 => Dialect::Y2015,
                SysbenchVersion::Head => Dialect::Head,
            }),
            faithful: self.faithful,
            independent: self.independent,
        }
    }
}
