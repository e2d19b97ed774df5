//! Mistakes on the command line, in one or two sentences each: what is wrong as it was typed, what was meant perhaps, what helps.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use dyno_types::suggest;
use std::num::{ParseFloatError, ParseIntError};

/// Returns the words for a mistake; `None` where clap's own say it.
pub fn explain_mistake(error: &clap::Error, names: &[&str]) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = text(error, ContextKind::InvalidSubcommand)?;
            let hint = suggest::hint(&typed, names.iter().copied());
            Some(format!("unknown command {typed:?}{hint}\n`dyno --help` lists the commands."))
        }
        ErrorKind::UnknownArgument => unknown(error),
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

/// Names that other load generators have for what has another name here, and where it is.
const OF_OTHERS: [(&[&str], &str); 6] = [
    (
        &["--clients", "--client-count", "--concurrency", "--vus"],
        "`dyno run --users N` sets how many send one operation after another (a closed loop); `--rate` with \
         `--connections N` is an open loop.",
    ),
    (
        &["--ratio", "--read-ratio", "--set-get-ratio"],
        "`dyno run --workload a` to `f` sets the mix of operations, a file of properties with readproportion sets \
         any other; `dyno memtier` takes memtier_benchmark's --ratio.",
    ),
    (
        &["--port", "--bind", "--host"],
        "`dyno serve --listen 127.0.0.1:8000` says where; a target is a URI: redis://HOST:PORT.",
    ),
    (&["--format"], "`--json` prints the summary as JSON; `dyno report DIR --format` has more forms."),
    (&["--batch", "--batch-size"], "`--load-batch N` sends so many records of the load together."),
    (
        &["--json-out", "--output", "--report"],
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

fn unknown(error: &clap::Error) -> Option<String> {
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
        return Some(format!("{typed:?} is one argument too many\nAdd --help to the command for its form."));
    }
    if typed[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return Some(format!("{typed}: a value below 0 is none of this option's"));
    }
    let near = text(error, ContextKind::SuggestedArg);
    let hint = near.map_or(String::new(), |near| format!("; did you mean {}?", option(&near)));
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
