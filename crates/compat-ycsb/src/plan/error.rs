//! Refusals of a command line: in our words, and in YCSB's for `--compat-exit`.

use crate::bindings::NoBinding;
use crate::plan::command::Mode;
use crate::plan::flags::{FLAGS, accepted};
use dyno_config::settings::{BadSetting, Source};
use dyno_types::suggest;

/// A command line that cannot be understood.
#[derive(Debug, thiserror::Error)]
pub enum YcsbError {
    /// No command was given.
    #[error(
        "no command: expected load, run or shell, as in: load redis -P workloads/workloada -p redis.host=HOST"
    )]
    NoCommand,
    /// The first word is not a command.
    #[error(
        "unknown command {given:?}{hint}; accepted: load, run, shell",
        hint = suggest::hint(given, Mode::ALL.map(Mode::name))
    )]
    UnknownCommand {
        /// Text as typed.
        given: String,
    },
    /// No binding was given.
    #[error(
        "{mode} needs a binding, as in: {mode} redis; accepted: {list}",
        mode = mode.name(),
        list = crate::bindings::Binding::all().map(|b| b.name()).collect::<Vec<_>>().join(", ")
    )]
    NoBinding {
        /// The command.
        mode: Mode,
    },
    /// The binding is not offered.
    #[error("{place}{why}", place = place(asked_by))]
    Binding {
        /// Reason.
        why: NoBinding,
        /// Source of the name; the default if it is the second word.
        asked_by: Source,
    },
    /// A flag without its value.
    #[error("{flag} needs a value: {accepted}", accepted = accepted(flag))]
    NoValue {
        /// The flag.
        flag: &'static str,
    },
    /// A flag with a value that it does not take.
    #[error("{flag} {given}: expected {accepted}", accepted = accepted(flag))]
    BadValue {
        /// The flag.
        flag: &'static str,
        /// The value.
        given: String,
    },
    /// `-p` with something that is no pair.
    #[error("-p {given}: expected key=value, such as -p operationcount=99999")]
    NotAPair {
        /// Text as typed.
        given: String,
    },
    /// A flag that dyno does not know.
    #[error(
        "unknown option {given:?}{hint}; accepted: {list}",
        hint = suggest::hint(given, FLAGS.iter().map(|flag| flag.name)),
        list = FLAGS.map(|flag| flag.name).join(" ")
    )]
    UnknownOption {
        /// Text as typed.
        given: String,
    },
    /// A flag of load and run in the shell, or the other way round.
    #[error("{mode} does not take {flag}", mode = mode.name())]
    WrongMode {
        /// The flag.
        flag: &'static str,
        /// The command.
        mode: Mode,
    },
    /// A word where a flag should be.
    #[error("{given:?} belongs to no option: expected one that starts with - before it, such as -P {given}")]
    Stray {
        /// Text as typed.
        given: String,
    },
    /// Flags that exclude each other.
    #[error("--out and --no-out exclude each other: give one of them")]
    OutAndNoOut,
    /// A property file that cannot be read.
    #[error("-P {path}: {reason}")]
    Unreadable {
        /// Path as typed.
        path: String,
        /// The reason, and the nearest built-in workload.
        reason: String,
    },
    /// A property file with a line that breaks the grammar.
    #[error("{path}:{line}: {problem}")]
    BadLine {
        /// Path as typed.
        path: String,
        /// The line, from 1.
        line: u32,
        /// Problem of the line.
        #[source]
        problem: dyno_config::properties::LineError,
    },
    /// No workload was named.
    #[error("workload is not set: give -P FILE, such as -P workloads/workloada, or -p workload=core")]
    NoWorkload,
    /// A property that cannot be used.
    #[error("{0}")]
    Setting(#[from] BadSetting),
}

fn place(source: &Source) -> String {
    match source {
        Source::Default => String::new(),
        Source::CommandLine => "-p db: ".to_owned(),
        source => format!("{source}: "),
    }
}

/// Properties whose faults end YCSB with 0.
const QUIET: [&str; 4] = ["workload", "measurementtype", "measurement.interval", "redis.host"];

/// Properties whose faults end YCSB with 255: ranges that do not fit, `dataintegrity` with lengths that vary, files
/// that cannot be written.
const LOUD: [&str; 4] = ["insertstart", "insertcount", "fieldlengthdistribution", "exportfile"];

/// YCSB's own way of refusing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Original {
    /// Message on standard output after its usage text; `None` where it only prints a stack trace, or the wrapper's usage.
    pub message: Option<String>,
    /// Exit code.
    pub exit: u8,
}

impl YcsbError {
    /// YCSB's own message, if it has one.
    pub fn original(&self) -> Option<String> {
        self.as_original().message
    }

    /// YCSB's own message and exit code.
    pub fn as_original(&self) -> Original {
        let usage = |message: String| Original { message: Some(message), exit: 0 };
        let silent = |exit| Original { message: None, exit };
        match self {
            YcsbError::NoCommand => {
                usage("At least one argument specifying a workload is required.".to_owned())
            }
            // bin/ycsb's argparse.
            YcsbError::UnknownCommand { .. } | YcsbError::NoBinding { .. } => silent(2),
            YcsbError::Binding { asked_by: Source::Default, .. } => silent(2),
            YcsbError::Binding { .. } => silent(0),
            YcsbError::NoValue { flag: "-cp" | "-jvm-args" } => silent(2),
            YcsbError::NoValue { flag: "-p" } => usage("Missing argument value for -p".to_owned()),
            YcsbError::NoValue { flag } => usage(format!("Missing argument value for {flag}.")),
            // An uncaught NumberFormatException.
            YcsbError::BadValue { .. } => silent(1),
            YcsbError::NotAPair { .. } => usage(
                "Argument '-p' expected to be in key=value format (e.g., -p operationcount=99999)".to_owned(),
            ),
            YcsbError::UnknownOption { given } => usage(format!("Unknown option {given}")),
            YcsbError::WrongMode { flag, .. } => usage(format!("Unknown option {flag}")),
            YcsbError::Stray { given } => usage(format!(
                "An argument value without corresponding argument specifier (e.g., -p, -s) was found. \
                 We expected an argument specifier and instead found {given}"
            )),
            YcsbError::Unreadable { path, .. } => usage(format!("Unable to open the properties file {path}")),
            YcsbError::NoWorkload => {
                usage("Missing property: workload\nFailed check required properties.".to_owned())
            }
            YcsbError::Setting(bad) if QUIET.contains(&bad.key.as_str()) => silent(0),
            YcsbError::Setting(bad) if LOUD.contains(&bad.key.as_str()) => silent(255),
            YcsbError::BadLine { .. } | YcsbError::Setting(_) => silent(1),
            YcsbError::OutAndNoOut => silent(0),
        }
    }
}
