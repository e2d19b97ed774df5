//! `dyno bexhoma`: bexhoma's command line for key-value stores.
//!
//! `crate::plan` reads words with one dash; `run` carries out what they mean, `manage` is about experiments that
//! are there.

mod application;
mod config;
mod folders;
mod grid;
mod jupyter;
mod manage;
mod run;
mod status;

use crate::plan::flags::{BexhomaMode, TypedFlags, help, parse};
use clap::Args;
use dyno_frontend::exit::{Exit, Failure};
use dyno_frontend::terminal;

/// `dyno bexhoma`: everything goes to a parser of its own, because bexhoma's flags have one dash.
#[derive(Clone, Debug, Args)]
pub struct BexhomaArgs {
    /// ycsb FLAGS run|load|start|summary, or status, stop, summary, localresults, jupyter
    #[arg(value_name = "ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

const USAGE: &str = "\
usage: dyno bexhoma ycsb FLAGS run|load|start|summary
       dyno bexhoma status|stop|summary|localresults|jupyter [-e CODE] [--resultfolder DIR]
";

/// Scripts and modes of bexhoma that are not there, and what is there instead.
const ELSEWHERE: [(&str, &str); 12] = [
    ("benchbase", "its benchmarks are SQL"),
    ("hammerdb", "its benchmarks are SQL"),
    ("tpch", "its queries are SQL"),
    ("tpcds", "its queries are SQL"),
    ("example", "`dyno presets` lists experiments to begin with"),
    ("cluster", "`dyno plan FILE --manifests DIR` writes what a cluster is given"),
    ("dashboard", "`dyno serve` lists experiments in a local page"),
    ("localdashboard", "`dyno serve` lists experiments in a local page"),
    ("master", "servers live for their run and are reached by its workers alone"),
    ("data", "data are generated where they are loaded from"),
    ("environment", "`dyno doctor` says what a host is"),
    ("help", "see --help"),
];

/// The command.
pub fn bexhoma(args: &BexhomaArgs) -> Result<Exit, Failure> {
    let Some((first, rest)) = args.arguments.split_first() else {
        return Err(Failure::usage(format!("expected a command\n{USAGE}")));
    };
    if ["-h", "--help", "help"].contains(&first.as_str()) {
        terminal::out(&format!("{USAGE}\n{}", help()));
        return Ok(Exit::Ok);
    }
    let typed = |rest: &[String]| parse(rest).map_err(Failure::usage);
    match first.as_str() {
        "ycsb" => ycsb(typed(rest)?),
        "status" => manage::status(&only(first, typed(rest)?)?),
        "stop" => manage::stop(&only(first, typed(rest)?)?),
        "summary" => manage::summary(&only(first, typed(rest)?)?),
        "jupyter" => jupyter::jupyter(&only(first, typed(rest)?)?),
        "localresults" => manage::results(&only(first, typed(rest)?)?),
        other => match ELSEWHERE.iter().find(|(name, _)| *name == other) {
            Some((name, why)) => Err(Failure::usage(format!("{name}: is not offered: {why}"))),
            None => Err(Failure::usage(format!("{other:?} is no command of bexhoma\n{USAGE}"))),
        },
    }
}

/// Refuses flags that these commands do not take.
fn only(command: &str, typed: TypedFlags) -> Result<TypedFlags, Failure> {
    let known = ["experiment", "resultfolder"];
    match typed.mode.is_some() || !typed.only(&known) {
        true => {
            Err(Failure::usage(format!("{command}: expected no more than -e CODE and --resultfolder DIR")))
        }
        false => Ok(typed),
    }
}

fn ycsb(typed: TypedFlags) -> Result<Exit, Failure> {
    if typed.given("help") {
        terminal::out(&format!("{USAGE}\n{}", help()));
        return Ok(Exit::Ok);
    }
    match typed.mode {
        Some(BexhomaMode::Run) => run::run(typed),
        Some(BexhomaMode::Summary) => manage::summary(&typed),
        Some(BexhomaMode::Load) => run::leave(typed, true),
        Some(BexhomaMode::Start) => run::leave(typed, false),
        None => Err(Failure::usage("expected a mode: run, load, start or summary")),
    }
}
