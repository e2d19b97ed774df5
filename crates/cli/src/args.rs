//! Command-line arguments. Every option names its unit and its default.

use crate::help::with_groups;
use crate::options::{
    CleanArgs, CompletionsArgs, ConductArgs, FetchArgs, InitArgs, LearnArgs, ListArgs, LogsArgs, MergeArgs,
    PlanArgs, PresetsArgs, RecordArgs, ReplayArgs, RunArgs, SampleArgs, SchemaArgs, SelftestArgs, SendArgs,
    StatusArgs, StopArgs, TopArgs, YcsbArgs,
};
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use dyno_frontend::experiment::ResumeArgs;
use dyno_worker::args::{HostArgs, PlaceArgs, PodArgs, RelayArgs, TendArgs, WorkerArgs};
use std::ffi::OsString;

/// dyno puts a database on the dynamometer.
#[derive(Debug, Parser)]
#[command(name = "dyno", version, long_version = crate::version::long_version(), about)]
#[command(max_term_width = 110, infer_subcommands = false)]
pub struct Cli {
    /// Command to carry out.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// The whole command line, as help, completions and manual pages describe it.
pub fn command() -> clap::Command {
    with_groups(crate::log::with_verbosity(Cli::command()))
}

/// Reads a command line; beside it what clap has found, which knows of `-v`.
pub fn parse(words: Vec<OsString>) -> Result<(Cli, ArgMatches), clap::Error> {
    let matches = command().try_get_matches_from(words)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command()))?;
    Ok((cli, matches))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Measure one target, or carry out an experiment: load records, apply a load, print a summary with its verdict
    Run(Box<RunArgs>),
    /// Print the summary of a run directory again, from its files alone
    Report(crate::report::ReportArgs),
    /// Make a recording of traffic: of a capture, what a server has written down, or as a proxy before the server
    Record(Box<RecordArgs>),
    /// Send recorded traffic once more, and compare the replies with those of then
    Replay(Box<ReplayArgs>),
    /// Make a workload that behaves like a recording, and says how well it fits
    Learn(LearnArgs),
    /// Explain what the maximum is, how sure that is, what limits it, and whether the laws hold
    Explain(crate::explain::ExplainArgs),
    /// Is B better than A? Runs, experiments cell by cell, or the levels of a factor, with intervals and a verdict
    Compare(crate::compare::CompareArgs),
    /// One figure over many runs, and where its level changed
    History(crate::compare::HistoryArgs),
    /// Write runs and experiments as CSV, Parquet or a spreadsheet, or in the words of YCSB and others
    Export(crate::export::ExportArgs),
    /// Make run directories of old results of YCSB, sysbench-mongodb, POCDriver, or of a CSV file
    Import(crate::import::ImportArgs),
    /// Prove an ingest rate with copies, or that a failover loses nothing
    Prove(dyno_prove::front::ProveArgs),
    /// List runs and experiments in a local page that follows those under way, and opens and compares reports
    Serve(crate::serve::ServeArgs),
    /// Merge runs that were made side by side exactly, and print one summary
    Merge(MergeArgs),
    /// Remove the records and documents that runs have loaded into a database; their directories say which
    Clean(CleanArgs),
    /// Watch a server alone: operations, hit ratio, connections, memory and network, one line a second
    Top(TopArgs),
    /// Check the engine against closed forms of queueing theory, in virtual time
    Selftest(SelftestArgs),
    /// Drop-in for YCSB: load, run or shell with YCSB's own arguments; `dyno ycsb help` lists them
    #[command(disable_help_flag = true)]
    Ycsb(YcsbArgs),
    /// Drop-in for POCDriver: a proof of ingest rate with POCDriver's own flags
    #[command(infer_long_args = true)]
    Pocdriver(Box<dyno_compat_pocdriver::plan::args::PocArgs>),
    /// Drop-in for sysbench-mongodb: its configuration, its data, its transaction
    SysbenchMongodb(Box<dyno_compat_sysbench_mongodb::front::SysbenchArgs>),
    /// Drop-in for memtier_benchmark; `dyno memtier --help` lists its flags
    #[command(disable_help_flag = true)]
    Memtier(dyno_compat_redis_tools::front::ToolArgs),
    /// Drop-in for redis-benchmark; `dyno redis-benchmark --help` lists its flags
    #[command(disable_help_flag = true)]
    RedisBenchmark(dyno_compat_redis_tools::front::ToolArgs),
    /// Drop-in for valkey-benchmark; `dyno valkey-benchmark --help` lists its flags
    #[command(disable_help_flag = true)]
    ValkeyBenchmark(dyno_compat_redis_tools::front::ToolArgs),
    /// Drop-in for the Workload Services Framework's Mongo-YCSB workload: its cases, variables and KPIs
    Wsf(Box<dyno_compat_wsf::front::WsfArgs>),
    /// Drop-in for bexhoma's ycsb on key-value stores; `dyno bexhoma --help` lists its flags
    #[command(disable_help_flag = true)]
    Bexhoma(dyno_compat_bexhoma::front::BexhomaArgs),
    /// Print documents of a workload of one's own (YAML) and their size; nothing is sent
    Sample(SampleArgs),
    /// Print cells, order and duration of an experiment; nothing is touched
    Plan(PlanArgs),
    /// List presets, or print one as an experiment file
    Presets(PresetsArgs),
    /// Write a commented experiment, or a preset, as a file to be changed and run
    Init(InitArgs),
    /// Go on with an experiment that was interrupted or cut off
    Resume(ResumeArgs),
    /// List runs and experiments: how far they are, and what came of them
    List(ListArgs),
    /// Print how far an experiment is, and its table
    Status(StatusArgs),
    /// End an experiment that runs, as Ctrl-C does; after a crash, remove what it left behind
    Stop(StopArgs),
    /// Print the log of an experiment that a pod conducts
    Logs(LogsArgs),
    /// Bring the results of an experiment that a pod conducts to this host
    Fetch(FetchArgs),
    /// Describe this host: what it is, how it is set up, and what of that speaks against good measurements
    Doctor(crate::doctor::DoctorArgs),
    /// Print what pods of earlier runs have used, as requests of the next ones
    Requests(crate::requests::RequestsArgs),
    /// Write dashboards for Grafana: run, host, database
    Grafana(crate::grafana::GrafanaArgs),
    /// Apply load for an experiment; started by dyno itself
    #[command(hide = true)]
    Worker(WorkerArgs),
    /// Does on this host what a controller elsewhere asks for (started by dyno)
    #[command(hide = true)]
    Host(HostArgs),
    /// Waits in a pod for a controller to speak to it (started by Kubernetes)
    #[command(hide = true)]
    Pod(PodArgs),
    /// Writes how a server is started on the cores of its node (started by Kubernetes)
    #[command(hide = true)]
    Place(PlaceArgs),
    /// Changes settings of a server's node for a time, and removes its data at the end (started by Kubernetes)
    #[command(hide = true)]
    Tend(TendArgs),
    /// Carries what a controller and the pods of its run say to each other (started by dyno)
    #[command(hide = true)]
    Relay(RelayArgs),
    /// Carries out an experiment in the cluster, or what is left of it (started by Kubernetes)
    #[command(hide = true)]
    Conduct(ConductArgs),
    /// Writes a folder to standard output (started by dyno)
    #[command(hide = true)]
    Send(SendArgs),
    /// Print a JSON Schema
    Schema(SchemaArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
}
