//! Options of the commands that have no folder of their own, and those that several commands share.

use crate::spec_args::SpecArgs;
use clap::{Args, ValueEnum};
use clap_complete::Shell;
use dyno_config::server::ServerKind;
use dyno_databases::{registry, spawn};
use dyno_experiment::directory::DirectoryCopy;
use dyno_frontend::metrics::LiveArgs;
use std::path::PathBuf;
use std::sync::Arc;

/// Data that a schema describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum SchemaOf {
    /// summary.json of a run directory
    #[default]
    Summary,
    /// Experiment files
    Experiment,
    /// Files of documents and operations of one's own
    Documents,
}

/// `dyno schema`.
#[derive(Clone, Debug, Args)]
pub struct SchemaArgs {
    /// Of what
    #[arg(value_enum, default_value = "summary")]
    pub of: SchemaOf,
}

/// Kind of file that a recording is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourceKind {
    /// Output of redis-cli MONITOR
    Monitor,
    /// Append-only file of Redis, with its timestamps (aof-timestamp-enabled yes)
    Aof,
    /// Snapshot of Redis (RDB): its keys, as commands that restore them
    Rdb,
    /// Archive of mongodump (--archive), or its folder: documents, indexes and options of collections
    Dump,
    /// Documents as mongoexport writes them, one a line; --into names their collection
    Json,
    /// Documents of MongoDB's profiler: system.profile as mongodump (BSON) or mongoexport (JSON) writes it
    MongodbProfile,
    /// Log of mongod or mongos, with its lines of slow commands
    MongodbLog,
    /// Playback file of mongoreplay, or what mongotrafficreader makes of a server's own recording
    MongodbPlayback,
    /// Logs of Dragonfly's threads (DEBUG TRAFFIC)
    DragonflyTraffic,
    /// Command log of momento-proxy, as rpc-perf replays it
    CommandLog,
    /// Table of a cache's requests as Twitter or Meta have published it (CSV)
    CacheTrace,
    /// Network traffic as tcpdump -w and Wireshark write it (pcap, pcapng)
    Capture,
}

/// `dyno record`.
#[derive(Clone, Debug, Args)]
pub struct RecordArgs {
    /// The file, which may be packed by gzip or zstd, or - for standard input; a folder of mongodump; several captures, or logs
    /// of Dragonfly's threads, are merged by their times
    #[arg(value_name = "FILE", required_unless_present = "listen", conflicts_with = "listen")]
    pub sources: Vec<PathBuf>,
    /// The recording; it must not be there
    #[arg(short, long, value_name = "FILE", default_value = "traffic.dyno")]
    pub out: PathBuf,
    /// Kind of the file; default: what its first bytes say
    #[arg(long, value_enum, value_name = "KIND")]
    pub kind: Option<SourceKind>,
    /// Values longer than this are kept as length, hash and compressibility; default: 64KiB, of MongoDB all are kept
    #[arg(long, value_name = "BYTES")]
    pub value_limit: Option<String>,
    /// Ports of the servers in a capture; default: those to which commands go
    #[arg(long, value_name = "PORT", value_delimiter = ',')]
    pub port: Vec<u16>,
    /// Where a capture was made; default: unknown
    #[arg(long, value_enum, value_name = "PLACE")]
    pub point: Option<CapturePoint>,
    /// Collection of the documents of JSON lines
    #[arg(long, value_name = "DATABASE.COLLECTION")]
    pub into: Option<String>,
    /// Put other words in place of keys, names of fields and values, by the key in this file; a file that is not there is made
    #[arg(long, value_name = "KEYFILE")]
    pub anonymise: Option<PathBuf>,
    /// With --anonymise: keep commands with scripts, patterns and languages of modules, and what they say
    #[arg(long, requires = "anonymise")]
    pub keep_scripts: bool,
    /// With --anonymise: keys of Redis stay in their slots of a cluster
    #[arg(long, requires = "anonymise")]
    pub keep_slots: bool,
    #[command(flatten)]
    pub proxy: ProxyArgs,
}

/// Place at which packets were captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CapturePoint {
    /// On the server's host
    Server,
    /// On the client's host
    Client,
}

/// Options of the proxy.
#[derive(Clone, Debug, Args)]
pub struct ProxyArgs {
    /// Record as a proxy: address to which clients connect instead of the server's; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", requires = "to", help_heading = "Proxy")]
    pub listen: Option<String>,
    /// Server behind the proxy, as redis://, rediss://, unix:// or mongodb://; clients log in through the proxy themselves, a
    /// login in this URI is only used to look at the server before
    #[arg(long, value_name = "URI", requires = "listen", help_heading = "Proxy")]
    pub to: Option<String>,
    /// Take the password of --to from env:NAME, file:PATH (its first line) or a prompt
    #[arg(long, value_name = "FROM", requires = "listen", help_heading = "Proxy")]
    pub password_from: Option<dyno_frontend::secret::PasswordFrom>,
    /// Certificate chain (PEM) that is shown to clients: they connect by TLS
    #[arg(long, value_name = "FILE", requires = "tls_key", requires = "listen", help_heading = "Proxy")]
    pub tls_cert: Option<PathBuf>,
    /// Key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Proxy")]
    pub tls_key: Option<PathBuf>,
    /// Authorities (PEM) of the certificates that clients have to show
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Proxy")]
    pub tls_client_ca: Option<PathBuf>,
    /// Clients at the same time; further ones are closed and counted
    #[arg(long, value_name = "N", default_value = "1000", help_heading = "Proxy")]
    pub connections: usize,
    /// End after this time; default: until interrupted
    #[arg(long, value_name = "DURATION", requires = "listen", help_heading = "Proxy")]
    pub duration: Option<String>,
    /// Relay without recording: what recording costs is the difference
    #[arg(long, requires = "listen", help_heading = "Proxy")]
    pub relay_only: bool,
}

/// `dyno replay`.
#[derive(Clone, Debug, Args)]
pub struct ReplayArgs {
    /// The recording, as `dyno record` has made it
    #[arg(id = "recorded", value_name = "RECORDING")]
    pub recorded: String,
    #[command(flatten)]
    pub run: RunArgs,
}

/// `dyno learn`.
#[derive(Clone, Debug, Args)]
pub struct LearnArgs {
    /// The recording, as `dyno record` has made it
    #[arg(value_name = "RECORDING")]
    pub recording: PathBuf,
    /// The workload; it must not be there
    #[arg(short, long, value_name = "FILE", default_value = "learned.yaml")]
    pub out: PathBuf,
    /// Seed of the workload's draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// `dyno plan`.
#[derive(Clone, Debug, Args)]
pub struct PlanArgs {
    /// The experiment, or a preset
    #[arg(value_name = "FILE|PRESET")]
    pub experiment: String,
    /// Presets: divide data, cache and limits
    #[arg(long, value_name = "N")]
    pub scale: Option<u32>,
    /// Replace a value of the file, or the levels of a factor; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// List every run
    #[arg(long)]
    pub all: bool,
    /// Print JSON, with every setting and its source
    #[arg(long)]
    pub json: bool,
    /// Write what Kubernetes is given for each cell, and the rights that dyno needs, for review or GitOps
    #[arg(long, value_name = "DIR")]
    pub manifests: Option<PathBuf>,
}

/// Names of the documentation's examples.
pub const EXAMPLES: [&str; 11] = [
    "first",
    "users",
    "shop",
    "faults",
    "leaderboard",
    "cache-aside",
    "rate-limiter",
    "sessions",
    "queue",
    "messages",
    "vector-search",
];

/// `dyno init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// A preset to begin with, such as quick/users; without one a commented experiment
    pub preset: Option<String>,
    /// An example of the documentation instead
    #[arg(long, value_name = "NAME", conflicts_with = "preset", value_parser = EXAMPLES)]
    pub example: Option<String>,
    /// The file to be written; it must not be there. Default: experiment.yaml, or NAME.yaml of an example
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `dyno presets`.
#[derive(Clone, Debug, Args)]
pub struct PresetsArgs {
    /// The preset
    pub name: Option<String>,
    /// Divide data, cache and limits, where the preset can be scaled
    #[arg(long, value_name = "N")]
    pub scale: Option<u32>,
}

/// `dyno list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Where to look
    #[arg(default_value = "dyno-runs")]
    pub folder: PathBuf,
    /// Print them as JSON: state, verdict, throughput and p99 of each
    #[arg(long)]
    pub json: bool,
}

/// `dyno status`.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// The experiment's directory
    pub dir: PathBuf,
    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,
    /// Of one that a pod conducts: wait for its end, and exit with its code
    #[arg(long)]
    pub wait: bool,
}

/// `dyno logs`.
#[derive(Clone, Debug, Args)]
pub struct LogsArgs {
    /// The directory that `dyno run --in-cluster` has made
    pub dir: PathBuf,
    /// Go on until it has ended
    #[arg(short, long)]
    pub follow: bool,
}

/// `dyno fetch`.
#[derive(Clone, Debug, Args)]
pub struct FetchArgs {
    /// The directory that `dyno run --in-cluster` has made
    pub dir: PathBuf,
    /// Remove all of it from the cluster afterwards, the volume of its results included
    #[arg(long)]
    pub remove: bool,
}

/// `dyno conduct`.
#[derive(Clone, Debug, Args)]
pub struct ConductArgs {
    /// Where experiment.yaml and sets.json are
    #[arg(long, value_name = "DIR")]
    pub experiment: PathBuf,
    /// The experiment's directory
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Runs that this Job makes again
    #[arg(long, value_parser = ["failed", "invalid"])]
    pub again: Vec<String>,
    /// Where the results are kept elsewhere, too
    #[command(flatten)]
    pub store: StoreArgs,
    /// Longest time that the store may be out of reach, seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub outage_s: u64,
}

/// `dyno send`.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// The folder
    pub dir: PathBuf,
    /// What it is taken from, where it is not there
    #[command(flatten)]
    pub store: StoreArgs,
}

/// An object store, as a pod is told of it.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// The object store, as JSON
    #[arg(long, value_name = "JSON", requires = "login")]
    pub store: Option<String>,
    /// Folder with the store's login, a file for each key
    #[arg(long, value_name = "DIR", requires = "store")]
    pub login: Option<PathBuf>,
}

/// `dyno stop`.
#[derive(Clone, Debug, Args)]
pub struct StopArgs {
    /// The experiment's directory, or the proof's
    #[arg(required_unless_present = "left")]
    pub dir: Option<PathBuf>,
    /// Remove what dynos that were killed have left, wherever their directories are: processes, control groups, mounts, files,
    /// settings of this host, objects in clusters
    #[arg(long, conflicts_with_all = ["dir", "password_from"])]
    pub left: bool,
    /// Proofs: take the target's password from env:NAME, file:PATH (its first line) or a prompt
    #[arg(long, value_name = "FROM")]
    pub password_from: Option<dyno_frontend::secret::PasswordFrom>,
}

/// `dyno sample`.
#[derive(Clone, Debug, Args)]
pub struct SampleArgs {
    /// The workload
    #[arg(value_name = "FILE.yaml")]
    pub file: String,
    /// Documents of each collection
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1)]
    pub documents: u32,
}

/// Lists what `dyno run` takes as a target, and what it ends with.
fn targets() -> String {
    let forms: Vec<String> = registry::schemes().map(|one| format!("  {}", one.form)).collect();
    let kinds = ServerKind::ALL.map(|kind| kind.to_string());
    let programs: Vec<&str> = spawn::meant(None).map(ServerKind::program_name).collect();
    format!(
        "Targets:\n{}\n\nspawn: starts {}. Without a target a temporary server is started from PATH ({}), or SQLite is used \
         where there is none.\n\nExit codes: 0 valid or suspect, 1 internal error, 2 usage, 3 target unreachable, 4 threshold \
         missed, 5 run invalid, 130 interrupted.",
        forms.join("\n"),
        kinds.join(", "),
        programs.join(", "),
    )
}

/// What becomes of the result of a run.
#[derive(Clone, Debug, Args)]
pub struct ResultArgs {
    /// The run directory; default: dyno-runs/TIME-WORKLOAD
    #[arg(short, long, value_name = "DIR", help_heading = "Result")]
    pub out: Option<PathBuf>,
    /// Write no run directory
    #[arg(long, conflicts_with = "out", help_heading = "Result")]
    pub no_out: bool,
    /// Print summary.json instead of the summary
    #[arg(long, help_heading = "Result")]
    pub json: bool,
    /// Write the result as JUnit XML, as CI systems read tests: a case for each threshold and for each claim of the verdict
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub junit: Option<PathBuf>,
    /// Print no progress
    #[arg(short, long, help_heading = "Result")]
    pub quiet: bool,
    /// Serve the live page on a free port of the loopback, and print its address
    #[arg(long, conflicts_with = "no_out", help_heading = "Result")]
    pub web: bool,
    /// The same, and open it in a browser
    #[arg(long, conflicts_with = "no_out", help_heading = "Result")]
    pub open: bool,
}

/// `dyno run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = targets())]
pub struct RunArgs {
    /// URI of the target, an experiment (a .yaml file) or a preset; without it a temporary server is started
    #[arg(value_name = "TARGET|FILE|PRESET")]
    pub target: Option<String>,
    /// Compare with this target, experiment or preset: both are run by turns, A B, B A, and compared at the end
    #[arg(
        long,
        value_name = "TARGET|FILE|PRESET",
        requires = "target",
        conflicts_with_all = ["no_out", "junit", "web", "open"],
        help_heading = "Comparison"
    )]
    pub versus: Option<String>,
    /// With --versus: runs of each; fewer than 4 decide nothing
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        requires = "versus",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=99),
        help_heading = "Comparison"
    )]
    pub turns: usize,
    /// Make the run so many times: an experiment without a file, whose table has the interval of their mean
    #[arg(
        long,
        value_name = "N",
        conflicts_with_all = ["versus", "no_out", "in_cluster", "sets", "scale"],
        value_parser = clap::builder::RangedU64ValueParser::<u32>::new().range(1..=999),
        help_heading = "Experiment"
    )]
    pub repeat: Option<u32>,
    /// With --repeat: name of the experiment, which its directory ends with; default: the workload's
    #[arg(long, value_name = "NAME", requires = "repeat", help_heading = "Experiment")]
    pub name: Option<String>,
    /// With --repeat: its subject, in words for people
    #[arg(long, value_name = "TEXT", requires = "repeat", help_heading = "Experiment")]
    pub note: Option<String>,
    /// Experiments: replace a value of the file, or the levels of a factor; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = "Experiment")]
    pub sets: Vec<String>,
    /// Experiments in pods: a pod conducts it, and this host need not stay awake; status, logs, fetch and stop take its
    /// directory
    #[arg(
        long,
        conflicts_with_all = [
            "versus", "no_out", "json", "junit", "quiet", "web", "open", "metrics", "remote_write", "otlp", "push_interval",
        ],
        help_heading = "Experiment"
    )]
    pub in_cluster: bool,
    /// Keeps the experiment's directory elsewhere, too.
    #[arg(skip)]
    pub copy: Option<Arc<dyn DirectoryCopy>>,
    /// Presets: divide data, cache and limits, where the preset can be scaled
    #[arg(long, value_name = "N", help_heading = "Experiment")]
    pub scale: Option<u32>,
    /// Experiments: the claim, operations/s, instead of the file's thresholds
    #[arg(long, value_name = "RATE", help_heading = "Experiment")]
    pub require_rate: Option<String>,

    /// YCSB workload: a letter (a to f), a built-in name (workloads/workloada) or a properties file; or documents and
    /// operations of one's own: a file that ends in .yaml; default: a
    #[arg(short, long, value_name = "a..f|FILE", help_heading = "Workload")]
    pub workload: Option<String>,
    /// Which keys are asked for: uniform, zipfian (YCSB's), zipfian:THETA (true), latest, hotspot, sequential,
    /// exponential; default: the workload's
    #[arg(long, value_name = "NAME", help_heading = "Workload")]
    pub distribution: Option<String>,
    /// Fields of a record; default: the workload's, 10
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub fields: Option<u32>,
    /// Bytes of a field; default: the workload's, 100
    #[arg(long, value_name = "BYTES", help_heading = "Workload")]
    pub field_length: Option<u64>,
    /// A property of the workload; may be given several times
    #[arg(short = 'p', long = "property", value_name = "KEY=VALUE", help_heading = "Workload")]
    pub properties: Vec<String>,

    #[command(flatten)]
    pub spec: SpecArgs,

    /// Use the data as it is: no load, no check
    #[arg(long, conflicts_with = "reload", help_heading = "Records")]
    pub no_load: bool,
    /// Load records even if they are there
    #[arg(long, help_heading = "Records")]
    pub reload: bool,

    /// Take the target's password from env:NAME, file:PATH (its first line) or a prompt, instead of its URI
    #[arg(long, value_name = "FROM", help_heading = "Client")]
    pub password_from: Option<dyno_frontend::secret::PasswordFrom>,
    /// Do not pin load threads to cores
    #[arg(long, help_heading = "Client")]
    pub no_pin: bool,

    #[command(flatten)]
    pub result: ResultArgs,

    /// Watch nothing but the load itself
    #[arg(long, conflicts_with = "prometheus", help_heading = "Monitoring")]
    pub no_monitor: bool,
    /// An exporter to scrape as well; may be given several times
    #[arg(long, value_name = "NAME=URL", help_heading = "Monitoring")]
    pub prometheus: Vec<String>,
    #[command(flatten)]
    pub live: LiveArgs,
}

/// `dyno top`.
#[derive(Clone, Debug, Args)]
pub struct TopArgs {
    #[arg(value_name = "TARGET", help = format!("URI of the server: {}", registry::servers_in_words()))]
    pub target: String,
    /// Take the target's password from env:NAME, file:PATH (its first line) or a prompt, instead of its URI
    #[arg(long, value_name = "FROM")]
    pub password_from: Option<dyno_frontend::secret::PasswordFrom>,
    /// Time between two lines
    #[arg(short, long, default_value = "1s", value_name = "DURATION")]
    pub interval: String,
    /// Lines to print; default: until interrupted
    #[arg(short = 'n', long, value_name = "N")]
    pub count: Option<u64>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
}

/// `dyno clean`.
#[derive(Clone, Debug, Args)]
pub struct CleanArgs {
    #[arg(value_name = "TARGET", help = format!("URI as the runs had it: {}", registry::servers_in_words()))]
    pub target: String,
    /// Where the runs are that have loaded the data: only what they have loaded is removed
    #[arg(default_value = "dyno-runs")]
    pub folder: PathBuf,
    /// Remove it; without this it is only named
    #[arg(long)]
    pub yes: bool,
    /// Take the target's password from env:NAME, file:PATH (its first line) or a prompt, instead of its URI
    #[arg(long, value_name = "FROM")]
    pub password_from: Option<dyno_frontend::secret::PasswordFrom>,
}

/// `dyno merge`.
#[derive(Clone, Debug, Args)]
pub struct MergeArgs {
    /// The run directories
    #[arg(required = true, num_args = 2..)]
    pub dirs: Vec<PathBuf>,
    /// Runs that were made one after the other, repetitions: rates are their means
    #[arg(long)]
    pub sequential: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `dyno selftest`.
#[derive(Clone, Debug, Args)]
pub struct SelftestArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `dyno ycsb`: everything goes to a parser of its own, because YCSB's flags have one dash.
#[derive(Clone, Debug, Args)]
pub struct YcsbArgs {
    /// load|run|shell BINDING [options], as for YCSB
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// `dyno completions`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "For example: dyno completions bash > ~/.local/share/bash-completion/completions/dyno"
)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}
