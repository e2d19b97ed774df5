//! redis-benchmark and valkey-benchmark.
//!
//! ```text
//! words --flags, args--> settings --address--> URI
//!                                 --plan-----> tests, each a `Commands` --(the program runs it)--> Buckets
//! Buckets --histogram--> HdrHistogram's lists --report--> the original's text, line or CSV row
//! ```
//!
//! `redis-benchmark` is the program of Redis 7.2 and later. `valkey-benchmark` is the one of Valkey 9: several commands
//! at once, `__rand_1st__`, `__data__`, `--rps`, `--duration`, `--warmup`, `--sequential`.

mod address;
mod args;
mod flags;
mod histogram;
mod plan;
mod report;
mod uri;

pub use plan::parse;
pub use report::{Ran, TestProgress, head, progress, report, tail, width_of_progress};

use dyno_workload::commands::Commands;

/// The program whose words are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `redis-benchmark`.
    RedisBenchmark,
    /// `valkey-benchmark`.
    ValkeyBenchmark,
}

impl Program {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Program::RedisBenchmark => "redis-benchmark",
            Program::ValkeyBenchmark => "valkey-benchmark",
        }
    }
}

/// Result of reading a command line.
#[derive(Clone, Debug)]
pub enum ParsedCommandLine {
    /// A benchmark.
    Run(Box<BenchmarkPlan>),
    /// Help or version.
    Print {
        /// Text for standard output.
        text: String,
        /// Exit code of the original.
        exit: u8,
    },
}

/// Reason why a command line is refused. All of them are usage errors.
#[derive(Debug, thiserror::Error)]
pub enum BenchmarkRefusal {
    /// A flag that the program does not have, or one without its value.
    #[error("Invalid option \"{0}\" or option argument missing")]
    Option(String),
    /// A port outside 1 to 65535.
    #[error("Invalid server port.")]
    Port,
    /// A URI of another scheme.
    #[error("Invalid URI scheme")]
    UriScheme,
    /// A `%` at the end of a URI's part.
    #[error("Incomplete URI encoding")]
    UriIncomplete,
    /// A `%` without hexadecimal digits, or bytes that are not UTF-8.
    #[error("Illegal character in URI encoding")]
    UriCharacter,
    /// Both ends of a run.
    #[error("Options -n and --duration are mutually exclusive.")]
    RequestsAndDuration,
    /// A value outside its range.
    #[error("{flag} {value}: expected {expected}")]
    Value {
        /// The flag as it was typed.
        flag: &'static str,
        /// Its value as it was typed.
        value: String,
        /// Accepted values.
        expected: &'static str,
    },
    /// A flag or test of the original that dyno lacks.
    #[error("{what} is not available in dyno: {reason}")]
    Unavailable {
        /// The flag or test as it was typed.
        what: &'static str,
        /// What is missing.
        reason: &'static str,
    },
    /// A flag without the one it belongs to.
    #[error("{flag} needs {other}")]
    Needs {
        /// The flag as it was typed.
        flag: &'static str,
        /// The missing flag.
        other: &'static str,
    },
    /// A command that cannot be sent.
    #[error("the command on the command line: {0}")]
    Command(&'static str),
    /// Standard input failed.
    #[error("-x: cannot read standard input")]
    Stdin(#[source] std::io::Error),
}

/// Form of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// A block of text for each test.
    Text,
    /// A line for each test (`-q`).
    Quiet,
    /// A row for each test (`--csv`).
    Csv,
}

/// Nodes of a cluster that reads go to (`--rfr`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Primaries.
    Primary,
    /// Replicas.
    Replica,
    /// All nodes.
    Any,
}

/// A benchmark as its command line describes it.
#[derive(Clone, Debug)]
pub struct BenchmarkPlan {
    /// The program.
    pub program: Program,
    /// The server in dyno's form, with its password.
    pub uri: String,
    /// True if the server is a cluster (`--cluster`).
    pub cluster: bool,
    /// Nodes that reads go to.
    pub reads: Reads,
    /// Connections (`-c`).
    pub clients: usize,
    /// Operations in flight on a connection (`-P`).
    pub pipeline: usize,
    /// Load threads (`--threads`).
    pub threads: Option<usize>,
    /// Operations of each test. An operation is a command, or a whole sequence of commands with `;` between them: `-n`
    /// counts commands, and is divided by their number.
    pub requests: Option<u64>,
    /// Length of each test in seconds, instead of a number of operations.
    pub duration_s: Option<u64>,
    /// Warm-up of each test in seconds, not measured.
    pub warmup_s: u64,
    /// Operations a second of all connections (`--rps`).
    pub rate: Option<f64>,
    /// Tests, in order.
    pub tests: Vec<Test>,
    /// True if the tests are repeated until the program is stopped (`-l`).
    pub repeats: bool,
    /// True if connections are opened and nothing is sent (`-I`).
    pub idle: bool,
    /// Form of the reports.
    pub output: Output,
    /// Significant digits of latencies, 1 to 4.
    pub precision: u8,
    /// True if the command is the user's own.
    pub is_own: bool,
    /// Warnings for standard error.
    pub notes: Vec<String>,
    /// Seed of random numbers, if one was typed. Each test's `Commands` has a seed that follows from it, or from 1.
    pub seed: Option<u64>,
    /// True unless each batch gets a connection of its own, which dyno refuses.
    pub keep_alive: bool,
    /// Every flag with its value, and whether it was typed. Passwords are `***`.
    pub settings: Vec<(String, String, bool)>,
}

/// A test: commands that are sent again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// Title in the reports.
    pub title: String,
    /// The load: one operation.
    pub commands: Commands,
    /// Bytes of the reports' line "bytes payload": the length of values, or of the whole command if it is the user's own.
    pub payload: u64,
}

impl Test {
    /// Number of commands of an operation.
    pub fn commands_of_operation(&self) -> u64 {
        self.commands.operations.iter().map(|operation| operation.commands.len() as u64).sum::<u64>().max(1)
    }
}

#[cfg(test)]
mod tests;
