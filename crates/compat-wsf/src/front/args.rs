//! The command line of `dyno wsf`.

use super::ctest::CtestArgs;
use crate::plan::cases::Reading;
use clap::{ArgAction, Args, Subcommand, ValueEnum};
use dyno_config::server::ServerKind;
use std::path::PathBuf;

/// A version of the framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReadingArg {
    /// v23.3: writes are inserts
    #[value(name = "23.3")]
    V23,
    /// 2025 and later: writes are updates
    #[value(name = "25")]
    V25,
}

impl From<ReadingArg> for Reading {
    fn from(reading: ReadingArg) -> Self {
        match reading {
            ReadingArg::V23 => Reading::V23,
            ReadingArg::V25 => Reading::V25,
        }
    }
}

/// Kind of servers that are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServerArg {
    /// mongod
    Mongod,
    /// FerretDB with SQLite; results are labelled as customised
    Ferretdb,
    /// Redis, as a stand-in; results are labelled as customised
    Redis,
}

impl From<ServerArg> for ServerKind {
    fn from(server: ServerArg) -> Self {
        match server {
            ServerArg::Mongod => ServerKind::Mongod,
            ServerArg::Ferretdb => ServerKind::FerretDb,
            ServerArg::Redis => ServerKind::Redis,
        }
    }
}

/// Reaction to what is not permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Leave {
    /// Stop and say what is lost
    Fail,
    /// Go on; the loss is recorded
    Continue,
}

/// `dyno wsf`.
#[derive(Clone, Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Values: default, exported variable, case, --config, --set; the last one wins.\n\
Exit codes: 0 passed, 1 internal error, 2 usage, 3 target unreachable, 5 a run failed or is invalid, 130 interrupted."
)]
pub struct WsfArgs {
    /// Action on logs
    #[command(subcommand)]
    pub action: Option<LogAction>,
    /// The case: `gated`, `wsf-23.3/write`, `mongodb_ycsb_read`, `test_mongodb_ycsb_90read10update`, ...
    #[arg(value_name = "TESTCASE")]
    pub case: Option<String>,
    /// The same, as an option
    #[arg(long, value_name = "NAME", conflicts_with = "case")]
    pub testcase: Option<String>,
    /// Run the tests whose names match
    #[arg(short = 'R', value_name = "REGEX", conflicts_with = "case")]
    pub include: Option<String>,
    /// Leave out the tests whose names match
    #[arg(short = 'E', value_name = "REGEX", conflicts_with = "case")]
    pub exclude: Option<String>,
    /// List tests, run none
    #[arg(short = 'N')]
    pub list: bool,
    /// Say more; alone it runs all tests, as ctest does
    #[arg(short = 'V', action = ArgAction::Count)]
    pub verbose: u8,
    /// Give variables values: `VAR=8 16 ...`, see docs/wsf.md; several options advance together
    #[arg(long = "set", value_name = "VAR=VALUES")]
    pub sets: Vec<String>,
    /// Sections of values for tests whose names match (YAML)
    #[arg(long = "config", alias = "test-config", value_name = "FILE")]
    pub configs: Vec<PathBuf>,
    /// The best known configuration of a machine: icx, spr, m6i.32xlarge, m6i.16xlarge
    #[arg(long, value_name = "NAME")]
    pub bkm: Option<String>,
    /// Iterations one after the other; default: as many as --set has combinations
    #[arg(long = "loop", value_name = "N")]
    pub loops: Option<usize>,
    /// Iterations of each loop; on one host they follow each other
    #[arg(long, value_name = "N")]
    pub burst: Option<usize>,
    /// Repetitions of each iteration (itr-1, itr-2, ...)
    #[arg(long = "run", value_name = "N", default_value_t = 1)]
    pub runs: u32,
    /// Print configuration and experiment of every iteration; nothing is started
    #[arg(long)]
    pub dry_run: bool,
    /// Version whose defaults and mixes apply
    #[arg(long, value_enum)]
    pub reading: Option<ReadingArg>,
    /// Keep the original's defects where they change what is done: one key for INSERT_COUNT=0, 1000 records, ...
    #[arg(long)]
    pub faithful: bool,
    /// Take shares that do not sum to 1 as weights
    #[arg(long)]
    pub faithful_weights: bool,
    /// Use no exported variable
    #[arg(long)]
    pub noenv: bool,
    /// Print all variables with their defaults
    #[arg(long)]
    pub describe_params: bool,
    /// Server that is started
    #[arg(long, value_enum, default_value = "mongod")]
    pub server: ServerArg,
    /// Program of the server; default: the usual name, on PATH
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Port of the first server; default: 27017 for mongod, a free one for others
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// A server that exists instead, such as mongodb://host
    #[arg(long, value_name = "URI")]
    pub target: Option<String>,
    /// Change settings of this host for the run (huge pages, governor, zone reclaim, NUMA balancing); put back afterwards
    #[arg(long)]
    pub tune_host: bool,
    /// Unmeasured time at the beginning of the run phase, seconds
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub warmup: u64,
    /// Time between load and run phase, seconds; default: none, with --faithful 30
    #[arg(long, value_name = "S")]
    pub pause: Option<u64>,
    /// Reaction where placement, limits or host settings are not permitted
    #[arg(long, value_enum, default_value = "fail")]
    pub if_not_permitted: Leave,
    /// Where and how it runs
    #[command(flatten)]
    pub deployment: DeploymentArgs,
    /// Folder of the logs
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub out: PathBuf,
    /// End what runs, of logs whose names begin so (or all)
    #[arg(long, value_name = "PREFIX", num_args = 0..=1, default_missing_value = "all")]
    pub stop: Option<String>,
    /// Print how far everything is
    #[arg(long)]
    pub status: bool,
    /// Go on with what was interrupted
    #[arg(long = "continue")]
    pub go_on: bool,
    /// Print no progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Further options of ctest.sh
    #[command(flatten)]
    pub ctest: CtestArgs,
}

/// Place of servers and clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// On this host
    Local,
    /// On hosts of an inventory: servers on the first of its group worker, clients on hosts of its group client
    Ssh,
    /// In pods
    Kubernetes,
}

/// Where servers and clients run, and how to come there.
#[derive(Clone, Debug, Args)]
pub struct DeploymentArgs {
    /// Where servers and clients run
    #[arg(long, value_enum, default_value = "local")]
    pub backend: Backend,
    /// Ansible's inventory with the groups worker and client (--backend ssh)
    #[arg(long, value_name = "FILE")]
    pub inventory: Option<PathBuf>,
    /// A key of the experiment's section ssh, such as config=FILE, directory=DIR (--backend ssh)
    #[arg(long = "ssh", value_name = "KEY=VALUE")]
    pub ssh: Vec<String>,
    /// A key of the experiment's section kubernetes, such as namespace=bench, image=..., server_image=... (--backend kubernetes)
    #[arg(long = "kubernetes", value_name = "KEY=VALUE")]
    pub kubernetes: Vec<String>,
    /// Servers as in the original: privileged pods on their node's network, with cores and folders of the node
    /// (--backend kubernetes)
    #[arg(long)]
    pub privileged: bool,
    /// Write what the cluster would be given as kubernetes-config.yaml in a folder; nothing is started
    #[arg(long, value_name = "DIR")]
    pub manifests: Option<PathBuf>,
}

/// Actions on logs.
#[derive(Clone, Debug, Subcommand)]
pub enum LogAction {
    /// List KPIs of logs, and statistics over iterations
    ListKpi(ListKpiArgs),
}

/// Layouts of `list-kpi`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// Text
    #[default]
    List,
    /// CSV: rows are parameters and KPIs, columns iterations
    #[value(alias = "xls-inst", alias = "csv")]
    XlsList,
    /// CSV: a table for each KPI by two parameters, --var1 in rows and --var2 in columns
    #[value(alias = "xls-ai")]
    XlsTable,
}

/// `dyno wsf list-kpi`.
#[derive(Clone, Debug, Args)]
pub struct ListKpiArgs {
    /// Folders of logs, or folders that hold some
    #[arg(value_name = "DIR", default_value = ".")]
    pub dirs: Vec<PathBuf>,
    /// Starred KPIs only (the default)
    #[arg(long, conflicts_with = "all")]
    pub primary: bool,
    /// All KPIs
    #[arg(long)]
    pub all: bool,
    /// Parameters too
    #[arg(long)]
    pub params: bool,
    /// Statistics once more without values beyond so many standard deviations
    #[arg(long, value_name = "SIGMAS")]
    pub outlier: Option<f64>,
    /// Layout
    #[arg(long, value_enum, default_value = "list")]
    pub format: ListFormat,
    /// Facts about the host, as `dyno doctor` tells them
    #[arg(long, alias = "svrinfo")]
    pub sutinfo: bool,
    /// The latest logs only
    #[arg(long)]
    pub recent: bool,
    #[arg(long = "intel_publish", alias = "intel-publish", hide = true)]
    pub intel_publish: bool,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub owner: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub tags: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub pretag: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub uri: Option<String>,
    #[arg(long, hide = true)]
    pub export_trace: bool,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub filter: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub var1: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub var2: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub var3: Option<String>,
    #[arg(long, hide = true, value_name = "TEXT")]
    pub var4: Option<String>,
    /// Write there instead of printing
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}
