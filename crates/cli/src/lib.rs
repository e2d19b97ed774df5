//! The dyno command: parses, runs, prints, and exits with a code that says how it went.

mod args;
mod clean;
mod compare;
mod completions;
mod controlled;
mod derived_options;
mod doctor;
mod experiment;
mod explain;
mod export;
mod grafana;
mod help;
mod import;
mod json;
mod list;
mod log;
mod merge;
mod options;
mod price;
mod record;
mod record_proxy;
mod record_totals;
mod report;
mod requests;
mod run;
mod sample;
mod selftest;
mod serve;
mod spec_args;
mod top;
mod version;
mod worker;

use dyno_compat_bexhoma::front as bexhoma;
use dyno_compat_pocdriver::front::{FRONT_END, pocdriver};
use dyno_compat_pocdriver::plan::forms::normal;
use dyno_compat_redis_tools::front as redis_tools;
use dyno_compat_sysbench_mongodb::front::sysbench_mongodb;
use dyno_compat_wsf::front as wsf;
use dyno_compat_ycsb::front::ycsb;
use dyno_frontend::exit::Exit;
use dyno_frontend::program::{Program, set_program};
use dyno_frontend::{in_cluster, terminal};
use dyno_prove::front as prove;
use std::process::ExitCode;

/// The command line of `dyno`, as it is described: what manual pages and the reference are made of.
pub fn command() -> clap::Command {
    args::command()
}

/// The script by which a shell completes what is typed; none for an unknown shell.
pub fn completions_of(shell: &str) -> Option<String> {
    completions::registration(shell).ok()
}

/// The program.
pub fn main() -> ExitCode {
    set_program(Program {
        read_work: |spec| dyno_worker::read_work(spec, FRONT_END),
        continues: dyno_compat_wsf::folder::continues,
        price: dyno_compat_bexhoma::catalogue::price,
        list: |folder| list::list(folder, false),
    });
    completions::answer();
    dyno_worker::outlive_long_files();
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    dyno_types::secret::remember_arguments(&words);
    let (cli, matches) = match args::parse(normal(std::env::args_os().collect(), terminal::warn)) {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and version are answers, not errors; a reader that closed the pipe has seen enough.
            let whole = command();
            let names: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
            let lost = terminal::answer(&error, help::mistakes::explain_mistake(&error, &names, &words))
                .is_err_and(|why| why.kind() != std::io::ErrorKind::BrokenPipe);
            return match (error.use_stderr(), lost) {
                (true, _) => Exit::Usage.into(),
                (false, true) => Exit::Internal.into(),
                (false, false) => Exit::Ok.into(),
            };
        }
    };
    if let Err(wrong) = log::begin(&matches) {
        terminal::error(&wrong.to_string());
        return wrong.exit().into();
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        command = dyno_types::shell::quoted(&dyno_types::secret::own_command_line()),
        "dyno begins"
    );
    // Which options were typed is known to clap alone.
    let (_, typed) = matches.subcommand().unwrap_or(("", &matches));
    let ended = match cli.command {
        args::CliCommand::Run(options) => run::run(&options),
        args::CliCommand::Record(options) => record::record(&options),
        args::CliCommand::Replay(options) => record::replay(&options),
        args::CliCommand::Learn(options) => record::learn(&options),
        args::CliCommand::Report(options) => report::report(&options),
        args::CliCommand::Compare(options) => compare::compare(&options),
        args::CliCommand::Explain(options) => explain::explain(&options),
        args::CliCommand::History(options) => compare::history(&options),
        args::CliCommand::Export(options) => export::export(&options),
        args::CliCommand::Import(options) => import::import(&options),
        args::CliCommand::Serve(options) => serve::serve(&options),
        args::CliCommand::Merge(options) => merge::merge(&options),
        args::CliCommand::Top(options) => top::top(&options),
        args::CliCommand::Sample(options) => sample::sample(&options),
        args::CliCommand::Selftest(options) => selftest::selftest(&options),
        args::CliCommand::Pocdriver(options) => pocdriver(&options, typed),
        args::CliCommand::SysbenchMongodb(options) => sysbench_mongodb(&options),
        args::CliCommand::Memtier(options) => redis_tools::memtier(&options),
        args::CliCommand::RedisBenchmark(options) => redis_tools::redis_benchmark(&options),
        args::CliCommand::ValkeyBenchmark(options) => redis_tools::valkey_benchmark(&options),
        args::CliCommand::Wsf(options) => wsf::wsf(&options),
        args::CliCommand::Ycsb(options) => {
            let code = ycsb(&options.arguments);
            tracing::info!("dyno ends");
            return code;
        }
        args::CliCommand::Bexhoma(options) => bexhoma::bexhoma(&options),
        args::CliCommand::Plan(options) => experiment::plan(&options),
        args::CliCommand::Presets(options) => experiment::list_presets(&options),
        args::CliCommand::Init(options) => experiment::init::init(&options),
        args::CliCommand::Resume(options) => controlled::resume(&options),
        args::CliCommand::Clean(options) => clean::clean(&options),
        args::CliCommand::List(options) => list::list(&options.folder, options.json),
        args::CliCommand::Status(options) => controlled::status(&options),
        args::CliCommand::Logs(options) => in_cluster::logs(&options.dir, options.follow),
        args::CliCommand::Fetch(options) => in_cluster::fetch(&options.dir, options.remove),
        args::CliCommand::Conduct(options) => controlled::conduct(&options),
        args::CliCommand::Send(options) => controlled::send(&options),
        args::CliCommand::Stop(options) => list::stop(&options),
        args::CliCommand::Doctor(options) => doctor::doctor(&options),
        args::CliCommand::Requests(options) => requests::requests(&options),
        args::CliCommand::Grafana(options) => grafana::grafana(&options),
        args::CliCommand::Worker(args) => worker::worker(&args),
        args::CliCommand::Completions(args) => completions::completions(&args),
        args::CliCommand::Prove(args) => prove::prove(&args),
        args::CliCommand::Host(args) => worker::host(&args),
        args::CliCommand::Pod(args) => worker::pod(&args),
        args::CliCommand::Place(args) => worker::place(&args),
        args::CliCommand::Tend(args) => worker::tend(&args),
        args::CliCommand::Relay(args) => worker::relay(&args),
        args::CliCommand::Schema(options) => report::schema(&options),
    };
    match ended {
        Ok(exit) => {
            let exit = exit.unless_output_lost();
            tracing::info!(exit = exit as u8, "dyno ends");
            exit.into()
        }
        Err(error) => {
            let refusal =
                error.refusal().map(|refused| (refused.refusal_code().code_word(), refused.refused_place()));
            let (code, place) = refusal.unwrap_or_default();
            tracing::error!(exit = error.exit() as u8, code, place, %error, "dyno ends with an error");
            terminal::error(&error.to_string());
            error.exit().into()
        }
    }
}
