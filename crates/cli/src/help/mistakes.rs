//! Mistakes on the command line, in one or two sentences each: what is wrong as it was typed, what was meant perhaps, what helps.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use dyno_types::suggest;
use std::num::{ParseFloatError, ParseIntError};

/// Returns the words for a mistake; `None` where clap's own say it.
pub fn words(error: &clap::Error, names: &[&str]) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let typed = text(error, ContextKind::InvalidSubcommand)?;
            let hint = suggest::hint(&typed, names.iter().copied());
            Some(format!("unknown command {typed:?}{hint}\n`dyno --help` lists the commands."))
        }
        ErrorKind::UnknownArgument => unknown(error),
        ErrorKind::ArgumentConflict => conflict(error),
        ErrorKind::ValueValidation => number(error),
        ErrorKind::MissingRequiredArgument => without_rate(error),
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
const OF_OTHERS: [(&[&str], &str); 2] = [
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

fn unknown(error: &clap::Error) -> Option<String> {
    let typed = text(error, ContextKind::InvalidArg)?;
    if typed == "--dry-run" {
        let words = "unknown option --dry-run\n`dyno plan FILE` prints what an experiment would do; nothing is touched.";
        return Some(words.into());
    }
    // Names that other load generators have for it.
    if ["--threshold", "--thresholds", "--assert", "--fail-if"].contains(&typed.as_str()) {
        let words =
            "`dyno run --require 'p99(read) < 5ms'` sets a threshold; the exit code is 4 if it is missed.";
        return Some(format!("unknown option {typed}\n{words}"));
    }
    if let Some((_, words)) = OF_OTHERS.iter().find(|(names, _)| names.contains(&typed.as_str())) {
        return Some(format!("unknown option {typed}\n{words}"));
    }
    // A word that is no option stands where nothing is expected: clap says so.
    if !typed.starts_with('-') {
        return None;
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
    } else {
        return None;
    };
    let (arg, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
    Some(format!("{} {value}: expected {expected}", option(&arg)))
}
