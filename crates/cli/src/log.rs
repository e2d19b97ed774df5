//! The log on stderr: `-v`, `-vv` and `DYNO_LOG`.

use clap::{ArgAction, ArgMatches};
use dyno_frontend::exit::Failure;
use dyno_frontend::terminal;
use dyno_rundir::log::{self, Record, TargetFilter};

/// The variable that holds a filter.
const VARIABLE: &str = "DYNO_LOG";

/// Commands that speak to their controller: they log to it, and nothing of it to their own stderr.
const FAR: [&str; 4] = ["worker", "host", "pod", "relay"];

/// Commands whose flags are those of other programs.
const DROP_INS: [&str; 8] = [
    "ycsb",
    "pocdriver",
    "sysbench-mongodb",
    "wsf",
    "bexhoma",
    "memtier",
    "redis-benchmark",
    "valkey-benchmark",
];

/// `-v`, which may be given several times.
fn verbose_option() -> clap::Arg {
    let help = "Print all details of a result, and say on stderr what is done: -v steps, -vv more. DYNO_LOG=FILTER, such as \
                info,dyno_hosts::remote=debug, chooses by crate and module";
    clap::Arg::new("verbose").short('v').long("verbose").action(ArgAction::Count).help(help)
}

/// Adds `-v` before the command, and to the native commands.
pub fn with_verbosity(whole: clap::Command) -> clap::Command {
    let whole = whole.mut_subcommands(|command| {
        if FAR.contains(&command.get_name()) || DROP_INS.contains(&command.get_name()) {
            return command;
        }
        // A number below zero is a value that is refused, not an option.
        let command = command.mut_args(|arg| {
            let takes_values = arg.get_action().takes_values();
            if takes_values { arg.allow_negative_numbers(true) } else { arg }
        });
        command.arg(verbose_option().global(true))
    });
    whole.arg(verbose_option())
}

/// Returns how often `-v` was given.
fn verbosity(matches: &ArgMatches) -> u8 {
    let given = matches.subcommand().and_then(|(name, of)| {
        let is_native = !DROP_INS.contains(&name) && !FAR.contains(&name);
        is_native.then(|| of.get_count("verbose"))
    });
    matches.get_count("verbose").saturating_add(given.unwrap_or(0))
}

/// Begins to log, as the command line and the environment say.
pub fn begin(matches: &ArgMatches) -> Result<(), Failure> {
    if matches.subcommand_name().is_some_and(|name| FAR.contains(&name)) {
        log::begin(Vec::new(), None);
        return Ok(());
    }
    // Results are longer then, too.
    terminal::show_details(verbosity(matches) > 0);
    let typed = match verbosity(matches) {
        0 => None,
        1 => Some("dyno=info"),
        2 => Some("dyno=debug"),
        _ => Some("dyno=trace"),
    };
    let set = std::env::var_os(VARIABLE).map(|text| text.to_string_lossy().into_owned());
    let named = |e| Failure::usage(format!("{VARIABLE}: {e}"));
    let wanted = typed.map(str::to_owned).into_iter().chain(set).map(|text| TargetFilter::parse(&text));
    log::begin(wanted.collect::<Result<_, _>>().map_err(named)?, Some(show));
    Ok(())
}

fn show(record: &Record) {
    if record.target == log::NOTICE {
        return terminal::note(&record.message);
    }
    let at = jiff::Timestamp::from_nanosecond(i128::from(record.unix_ns)).unwrap_or_default();
    terminal::beside(&format!("{} {record}", at.strftime("%H:%M:%S.%3f")));
}
