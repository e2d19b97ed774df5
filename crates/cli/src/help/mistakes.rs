//! Mistakes on the command line, in one or two sentences each: what is wrong as it was typed, what was meant perhaps, what helps.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use dyno_types::suggest;
use std::num::{ParseFloatError, ParseIntError};

/// Returns the message for a mistake in a command line; `None` where clap's own says it. `names`: the commands.
pub fn explain_mistake(error: &clap::Error, names: &[&str], line: &[String]) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => unknown_command(error, names),
        ErrorKind::UnknownArgument => unknown(error, line),
        ErrorKind::TooFewValues => too_few(error),
        ErrorKind::TooManyValues => too_many(error),
        ErrorKind::ArgumentConflict => conflict(error),
        ErrorKind::ValueValidation => number(error),
        ErrorKind::InvalidValue => value(error),
        ErrorKind::MissingRequiredArgument => without_rate(error).or_else(|| missing(error)),
        _ => None,
    }
}

/// A value of clap's context as text, several joined by commas.
fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(one) => Some(one.clone()),
        ContextValue::Strings(all) => Some(all.join(", ")),
        _ => None,
    }
}

/// The option without its value: `--users <N>` is `--users`.
fn option(shown: &str) -> &str {
    shown.split_whitespace().next().unwrap_or(shown)
}

/// Commands that other load generators have, or that a hurried person types, and what does it here.
const COMMANDS_OF_OTHERS: [(&[&str], &str); 3] = [
    (
        &["bench", "benchmark", "test", "start", "exec"],
        "`dyno run TARGET` measures, such as `dyno run redis://127.0.0.1:6379`; without a target it starts a Redis of its own.",
    ),
    (
        &["load", "prepare", "populate"],
        "`dyno run TARGET` loads the records before it measures; `dyno ycsb load` takes YCSB's words.",
    ),
    (&["version"], "`dyno --version` prints it."),
];

fn unknown_command(error: &clap::Error, names: &[&str]) -> Option<String> {
    let typed = text(error, ContextKind::InvalidSubcommand)?;
    let of_others = COMMANDS_OF_OTHERS.iter().find(|(others, _)| others.contains(&typed.as_str()));
    if let Some((_, message)) = of_others {
        return Some(format!("unknown command {typed:?}\n{message}"));
    }
    if typed.contains("://") {
        let shown = dyno_types::secret::mask_value("target", &typed);
        return Some(format!("{shown:?} is a target, no command\n`dyno run {shown}` measures it."));
    }
    let hint = suggest::hint(&typed, names.iter().copied());
    Some(format!("unknown command {typed:?}{hint}\n`dyno --help` lists the commands."))
}

/// Names that other load generators have for what has another name here, and where it is.
const OF_OTHERS: [(&[&str], &str); 15] = [
    (
        &["-P"],
        "`dyno run --pipeline N` keeps N operations under way on a connection; `dyno redis-benchmark` takes -P.",
    ),
    (
        &["-a", "--pass", "--auth"],
        "`dyno run --password-from prompt` asks for a password, env:NAME and file:PATH read one.",
    ),
    (
        &["--clients", "--client-count", "--concurrency", "--vus", "--vu"],
        "`dyno run --users N` sets how many send one operation after another (a closed loop); `--rate` with \
         `--connections N` is an open loop.",
    ),
    (
        &["--rps", "--qps", "--throughput"],
        "`dyno run --rate N` sends so many operations a second (an open loop).",
    ),
    (
        &["--iterations", "--requests", "--operations", "--operationcount"],
        "`dyno run --ops N` ends after so many operations.",
    ),
    (
        &["--stages"],
        "`dyno run --rate ramp:FROM-TO:DURATION` and `steps:RATE:DURATION,...` change the rate; an experiment varies users.",
    ),
    (
        &["--test-time", "--time", "--runtime", "--run-time"],
        "`dyno run --duration 30s` measures so long, after --warmup.",
    ),
    (
        &["--ratio", "--read-ratio", "--set-get-ratio"],
        "`dyno run --workload a` to `f` sets the mix of operations, a file of properties with readproportion sets \
         any other; `dyno memtier` takes memtier_benchmark's --ratio.",
    ),
    (
        &["--data-size", "--size", "--value-size"],
        "`dyno run -p fieldcount=1 -p fieldlength=100` sets the size of a record; `dyno memtier` takes memtier_benchmark's \
         --data-size.",
    ),
    (
        &["--keys", "--key-count", "--key-maximum", "--recordcount", "--keyspace"],
        "`dyno run --records N` sets the number of records; `dyno memtier` takes memtier_benchmark's --key-maximum.",
    ),
    (
        &["--port", "--bind", "--host", "--server", "--uri", "--url"],
        "a target is a URI: `dyno run redis://HOST:PORT`; `dyno serve --listen 127.0.0.1:8000` says where pages are.",
    ),
    (
        &["--tls", "--ssl"],
        "a target's protocol says it: rediss://HOST:PORT, mongodb://HOST/?tls=true, memcacheds://HOST:PORT.",
    ),
    (&["--format"], "`--json` prints the summary as JSON; `dyno report DIR --format` has more forms."),
    (&["--batch", "--batch-size"], "`--load-batch N` sends so many records of the load together."),
    (
        &["--json-out", "--output", "--report", "--summary-export"],
        "`--out DIR` keeps the run, `--json` prints its summary as JSON.",
    ),
];

/// Options of an open loop without its rate, such as memtier's `-t 4 -c 50`.
fn without_rate(error: &clap::Error) -> Option<String> {
    let missing = match error.get(ContextKind::InvalidArg)? {
        ContextValue::Strings(all) => all.as_slice(),
        ContextValue::String(one) => std::slice::from_ref(one),
        _ => return None,
    };
    let [only] = missing else { return None };
    (option(only) == "--rate").then(|| {
        "--rate is missing: -c, --connections, --arrivals, --queue and --queue-age are for an open loop\n\
         A closed loop has users: `dyno run -u 50 --threads 4`. `dyno memtier` takes memtier_benchmark's -t and -c."
            .to_owned()
    })
}

/// What must be there and is not, with the form of the command.
fn missing(error: &clap::Error) -> Option<String> {
    let missing = text(error, ContextKind::InvalidArg)?;
    let usage = match error.get(ContextKind::Usage)? {
        ContextValue::StyledStr(usage) => usage.to_string(),
        _ => return None,
    };
    let are = if missing.contains(", ") { "are" } else { "is" };
    Some(format!("{missing} {are} missing\n{}\nAdd --help to the command for examples.", usage.trim()))
}

/// A value that is not among the possible ones, or none at all.
fn value(error: &clap::Error) -> Option<String> {
    let (arg, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
    let expected = text(error, ContextKind::ValidValue).filter(|all| !all.is_empty());
    Some(match (value.is_empty(), expected) {
        (true, None) => format!("{} needs a value: {arg}", option(&arg)),
        (true, Some(all)) => format!("{} needs a value: {all}", option(&arg)),
        (false, None) => format!("{} {value}: no value of it", option(&arg)),
        (false, Some(all)) => format!("{} {value}: expected one of {all}", option(&arg)),
    })
}

/// Fewer values than an argument needs.
fn too_few(error: &clap::Error) -> Option<String> {
    let arg = text(error, ContextKind::InvalidArg)?;
    let count = |kind| match error.get(kind)? {
        ContextValue::Number(count) => Some(*count),
        _ => None,
    };
    let (given, least) = (count(ContextKind::ActualNumValues)?, count(ContextKind::MinValues)?);
    Some(format!("{arg}: {given} given, expected {least} or more\nAdd --help to the command for examples."))
}

/// A value of an option that has none.
fn too_many(error: &clap::Error) -> Option<String> {
    let (arg, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
    let arg = option(&arg).trim_end_matches('.').to_owned();
    Some(format!("{arg} has no value: {value:?} is one too many\nAdd --help to the command for its options."))
}

/// What stands before a word on the command line, if it looks like an option.
fn option_before<'a>(line: &'a [String], typed: &str) -> Option<&'a str> {
    let at = line.iter().position(|word| word == typed)?;
    let before = line.get(at.checked_sub(1)?)?;
    before.starts_with('-').then_some(before.as_str())
}

fn unknown(error: &clap::Error, line: &[String]) -> Option<String> {
    let typed = text(error, ContextKind::InvalidArg)?;
    if typed == "--dry-run" {
        let message = "unknown option --dry-run\n`dyno plan FILE` prints what an experiment would do; nothing is touched.";
        return Some(message.into());
    }
    // Names that other load generators have for it.
    if ["--threshold", "--thresholds", "--assert", "--fail-if"].contains(&typed.as_str()) {
        let message =
            "`dyno run --require 'p99(read) < 5ms'` sets a threshold; the exit code is 4 if it is missed.";
        return Some(format!("unknown option {typed}\n{message}"));
    }
    if let Some((_, message)) = OF_OTHERS.iter().find(|(names, _)| names.contains(&typed.as_str())) {
        return Some(format!("unknown option {typed}\n{message}"));
    }
    if !typed.starts_with('-') {
        // YCSB's -threads 4: one letter with a value, and a word that is left over.
        if let Some(long) =
            option_before(line, &typed).filter(|before| before.len() > 2 && !before.starts_with("--"))
        {
            let message =
                "options of more than one letter have two dashes; `dyno ycsb` takes YCSB's command lines.";
            return Some(format!("unknown option {long} {typed}\n{message}"));
        }
        return Some(format!("{typed:?} is one argument too many\nAdd --help to the command for its form."));
    }
    if typed[1..].starts_with(|c: char| c.is_ascii_digit()) {
        // clap takes it for an option, and names no other.
        let whole = line.iter().find(|word| word.starts_with(&typed)).unwrap_or(&typed);
        let of = option_before(line, whole).map_or(String::new(), |option| format!("{option}: "));
        return Some(format!("{of}{whole}: expected a value of 0 or more"));
    }
    // clap finds a likeness in names that have nothing in common.
    let near = text(error, ContextKind::SuggestedArg);
    let hint = near.map_or(String::new(), |near| {
        suggest::hint(typed.trim_start_matches('-'), [option(&near).trim_start_matches('-')])
            .replace("mean ", "mean --")
    });
    Some(format!("unknown option {typed}{hint}\nAdd --help to the command for its options."))
}

fn conflict(error: &clap::Error) -> Option<String> {
    let (one, other) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::PriorArg)?);
    let (one, other) = (option(&one), option(&other));
    let loops = matches!((one, other), ("--users", "--rate") | ("--rate", "--users"));
    let why =
        if loops { "\nA closed loop has users; an open loop has a rate, and --connections." } else { "" };
    (one != other).then(|| format!("{one} and {other} exclude each other{why}"))
}

fn number(error: &clap::Error) -> Option<String> {
    let source = std::error::Error::source(error)?;
    let expected = if source.is::<ParseIntError>() {
        "a whole number"
    } else if source.is::<ParseFloatError>() {
        "a number"
    } else if let Some((_, range)) = source.to_string().split_once(" is not in ")
        && let Some((least, most)) = range.split_once("..=")
    {
        let (arg, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
        return Some(format!("{} {value}: expected {least} to {most}", option(&arg)));
    } else {
        return None;
    };
    let (arg, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
    Some(format!("{} {value}: expected {expected}", option(&arg)))
}
