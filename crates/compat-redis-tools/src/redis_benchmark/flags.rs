//! The flags of both programs: names, values, defaults, and their help.

use super::Program;
use std::fmt::Write;

/// A flag.
#[derive(Debug)]
pub(super) struct Flag {
    /// Name as it is typed.
    pub name: &'static str,
    /// Placeholder of its value; empty if it takes none.
    pub value: &'static str,
    /// Default value; empty if there is none.
    pub default: &'static str,
    help: &'static str,
    valkey_only: bool,
    /// Reason why dyno refuses it.
    pub refused: Option<&'static str>,
}

impl Flag {
    const fn valkey(self) -> Self {
        Flag { valkey_only: true, ..self }
    }

    const fn refused(self, reason: &'static str) -> Self {
        Flag { refused: Some(reason), ..self }
    }

    /// Returns whether a program has it.
    pub fn is_of(&self, program: Program) -> bool {
        !self.valkey_only || program == Program::ValkeyBenchmark
    }

    /// Returns whether it sets something: help and version do not.
    pub fn is_setting(&self) -> bool {
        self.refused.is_none() && !["--help", "-v", "--version"].contains(&self.name)
    }
}

const fn takes(name: &'static str, value: &'static str, default: &'static str, help: &'static str) -> Flag {
    Flag { name, value, default, help, valkey_only: false, refused: None }
}

const fn switch(name: &'static str, help: &'static str) -> Flag {
    takes(name, "", "", help)
}

const CIPHERS: &str = "its TLS chooses ciphers itself";
const DATASET: &str = "it has no values from files; use __data__";
const FUZZ: &str = "it has no fuzzer";

/// All flags, in the order of the help.
#[rustfmt::skip]
pub(super) const FLAGS: &[Flag] = &[
    takes("-h", "hostname", "127.0.0.1", "Host of the server"),
    takes("-p", "port", "6379", "Port of the server"),
    takes("-s", "socket", "", "Unix socket of the server, instead of host and port"),
    takes("-a", "password", "", "Password"),
    takes("--user", "username", "", "User of the ACL, whose password -a is"),
    takes("-u", "uri", "", "Server as scheme://[user:password@]host[:port][/database]"),
    takes("-c", "clients", "50", "Connections of all threads together"),
    takes("-n", "requests", "100000", "Requests of each test"),
    takes("--duration", "seconds", "", "Length of each test, instead of -n").valkey(),
    takes("--warmup", "seconds", "0", "Warm-up before each test, which does not count").valkey(),
    takes("-d", "size", "3", "Length of values in bytes"),
    takes("--dbnum", "db", "0", "Number of the database"),
    switch("-3", "Speak RESP3"),
    takes("--threads", "num", "0", "Load threads; 0 leaves it to dyno"),
    switch("--cluster", "The server is a cluster. A command of your own has {tag} in its key"),
    takes("--rfr", "mode", "no", "With --cluster, send reads to replicas: no, yes or all").valkey(),
    switch("--enable-tracking", "Turn on client tracking")
        .refused("its connections cannot turn on CLIENT TRACKING"),
    takes("-k", "boolean", "1", "1 keeps connections open; dyno has no other way"),
    takes("-r", "keyspacelen", "", "Replace __rand_int__ with a random number of 12 digits below keyspacelen"),
    switch("--sequential", "With -r, count instead of drawing random numbers").valkey(),
    takes("-P", "numreq", "1", "Requests in flight on a connection"),
    switch("-q", "Print a line for each test"),
    takes("--precision", "num", "3", "Significant digits of latencies, 1 to 4"),
    switch("--csv", "Print CSV"),
    switch("-l", "Repeat the tests until stopped"),
    takes("-t", "tests", "", "Tests to run, with commas between them; default: all"),
    switch("-I", "Open the connections, send nothing and wait"),
    switch("-x", "Read the last argument of the command from standard input"),
    switch("-e", "No effect: the first error always ends the benchmark"),
    takes("--rps", "requests", "0", "Most requests a second; 0 sets no limit").valkey(),
    takes("--seed", "num", "", "Seed of random numbers"),
    takes("--num-functions", "num", "10", "Functions in the library of the test function_load").valkey(),
    takes("--num-keys-in-fcall", "num", "1", "Keys of the test fcall")
        .valkey().refused("it does not have the test fcall"),
    takes("--dataset", "file", "", "File of values").valkey().refused(DATASET),
    takes("--maxdocs", "num", "", "Most values of the file").valkey().refused(DATASET),
    switch("--tls", "Speak TLS"),
    takes("--sni", "host", "", "Name of the server for TLS, which its certificate must have"),
    takes("--cacert", "file", "", "Certificates to trust, instead of the system's"),
    takes("--cacertdir", "dir", "", "Directory of certificates to trust")
        .refused("it reads certificates to trust from one file; use --cacert"),
    switch("--insecure", "Accept any certificate"),
    takes("--cert", "file", "", "Certificate of the client"),
    takes("--key", "file", "", "Private key of the client"),
    takes("--tls-ciphers", "list", "", "Ciphers of TLS 1.2").refused(CIPHERS),
    takes("--tls-ciphersuites", "list", "", "Cipher suites of TLS 1.3").refused(CIPHERS),
    switch("--mptcp", "Multipath TCP").valkey().refused("it connects over plain TCP"),
    switch("--rdma", "RDMA").valkey().refused("it connects over TCP and Unix sockets"),
    switch("--fuzz", "Send random commands").valkey().refused(FUZZ),
    takes("--fuzz-mode", "modes", "", "Kinds of random commands").valkey().refused(FUZZ),
    takes("--fuzz-loglevel", "level", "", "Messages about random commands").valkey().refused(FUZZ),
    switch("--help", "Print this help"),
    switch("-v", "Print the version"),
    switch("--version", "Print the version"),
];

/// The flag of a name.
pub(super) fn flag_of(program: Program, name: &str) -> Option<(usize, &'static Flag)> {
    FLAGS.iter().enumerate().find(|(_, flag)| flag.name == name && flag.is_of(program))
}

/// The help of a program.
pub(super) fn help(program: Program) -> String {
    let (end, seconds) = match program {
        Program::RedisBenchmark => ("", "redis:// and rediss:// (TLS)"),
        Program::ValkeyBenchmark => (" [--]", "valkey:// and redis://, valkeys:// and rediss:// (TLS)"),
    };
    let mut out = format!("Usage: {} [OPTIONS]{end} [COMMAND ARGS...]\n\nOptions:\n", program.name());
    for flag in FLAGS.iter().filter(|flag| flag.is_of(program)) {
        let head = match flag.value {
            "" => flag.name.to_owned(),
            value => format!("{} <{value}>", flag.name),
        };
        // Writing into a string cannot fail.
        let _ = if head.len() < 19 {
            write!(out, " {head:<19}{}", flag.help)
        } else {
            write!(out, " {head}\n{:20}{}", "", flag.help)
        };
        let _ = match (flag.refused, flag.default) {
            (Some(_), _) => writeln!(out, " (not in dyno)"),
            (None, "") => writeln!(out),
            (None, default) => writeln!(out, " (default {default})"),
        };
    }
    let _ = writeln!(out, "\nSchemes of -u: {seconds}.");
    if program == Program::ValkeyBenchmark {
        out.push_str(SEQUENCES);
    }
    out
}

const SEQUENCES: &str = "
Several commands are written with ';' between them, and a number before a command repeats it. In arguments, __data__
stands for a value of -d bytes. With -r, __rand_1st__ to __rand_9th__ stand for numbers that are equal within a command.
";

/// Versions whose command lines are read.
const REDIS: &str = "7.2.4";
const VALKEY: &str = "9.1.0";

/// The line of `--version`.
pub(super) fn version(program: Program) -> String {
    let version = match program {
        Program::RedisBenchmark => REDIS,
        Program::ValkeyBenchmark => VALKEY,
    };
    format!("{} {version} (dyno {})\n", program.name(), env!("CARGO_PKG_VERSION"))
}
