//! A Redis server of its own for each test, the command as a process, and a parser of YCSB's report as others
//! wrote theirs.

use dyno_databases::spawn::spawn;
use dyno_databases::spawn::{Spawned, find_server};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Output};

/// A server on a free loopback port; it ends when this is dropped.
pub struct Redis {
    server: Spawned,
}

impl Redis {
    /// Starts one; `None`, with a loud word, where there is none to start.
    pub fn start() -> Option<Redis> {
        let Some((name, program)) = find_server(Some("redis")) else {
            skipped("redis-server is not on PATH");
            return None;
        };
        Some(Redis { server: spawn(name, &program).expect("redis-server starts") })
    }

    /// `-p redis.host=... -p redis.port=...`
    pub fn properties(&self) -> Vec<String> {
        ["-p".into(), "redis.host=127.0.0.1".into(), "-p".into(), format!("redis.port={}", self.server.port)]
            .into()
    }

    /// Runs the command with a line of YCSB's, the server's address appended.
    pub fn ycsb(&self, line: &str) -> Output {
        let mut arguments = split_words(line);
        arguments.extend(self.properties());
        run(&arguments)
    }

    /// Sends one command; all strings and numbers of its reply, in order.
    pub fn ask(&self, command: &[&str]) -> Vec<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.server.port)).expect("the server listens");
        let mut text = format!("*{}\r\n", command.len());
        for word in command {
            text += &format!("${}\r\n{word}\r\n", word.len());
        }
        stream.write_all(text.as_bytes()).expect("sent");
        reply(&mut BufReader::new(stream))
    }
}

#[allow(clippy::print_stderr)]
fn skipped(why: &str) {
    eprintln!("SKIPPED: {why}");
}

fn reply(from: &mut impl BufRead) -> Vec<String> {
    let mut line = String::new();
    from.read_line(&mut line).expect("a reply");
    let (kind, rest) = line.trim_end().split_at(1);
    match kind {
        "*" => (0..rest.parse().expect("a length")).flat_map(|_| reply(from)).collect(),
        "$" if rest == "-1" => Vec::new(),
        "$" => {
            let mut bytes = vec![0; rest.parse::<usize>().expect("a length") + 2];
            from.read_exact(&mut bytes).expect("a string");
            bytes.truncate(bytes.len() - 2);
            vec![String::from_utf8(bytes).expect("ASCII")]
        }
        _ => vec![rest.to_owned()],
    }
}

/// The words of a line.
pub fn split_words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// `dyno ycsb` with these arguments and without a password in its environment.
pub fn command(arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dyno"));
    command.arg("ycsb").args(arguments);
    for (variable, _) in dyno_compat_ycsb::bindings::ENVIRONMENT {
        command.env_remove(variable);
    }
    command
}

/// Runs `dyno ycsb` to its end.
pub fn run(arguments: &[String]) -> Output {
    command(arguments).output().expect("dyno runs")
}

/// Runs a line.
pub fn ycsb(line: &str) -> Output {
    run(&split_words(line))
}

/// Standard output.
pub fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Standard error.
pub fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Fails with everything the command printed unless it exited with `code`. A run on a busy machine may find
/// its own latencies worthless, which is no fault here.
pub fn exited(output: &Output, code: i32) {
    let lag = output.status.code() == Some(5) && code == 0 && err(output).contains("_lag)");
    let all = format!("{}\n{}", out(output), err(output));
    assert!(
        lag || output.status.code() == Some(code),
        "expected {code}, not {:?}\n{all}",
        output.status.code()
    );
}

/// A report as a map from (metric, measurement) to the value's text.
pub type Report = BTreeMap<(String, String), String>;

/// Reads a text report the way scripts do: `^\[(\S+)\], ([^,]+), (\S+)$`; other lines do not belong to it.
pub fn report(text: &str) -> Report {
    let line = |line: &str| -> Option<((String, String), String)> {
        let (metric, rest) = line.strip_prefix('[')?.split_once("], ")?;
        let (measurement, value) = rest.split_once(", ")?;
        let blank = |text: &str| text.contains(char::is_whitespace);
        let plain = !blank(metric) && !measurement.contains(',') && !blank(value);
        plain.then(|| ((metric.to_owned(), measurement.to_owned()), value.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// A value that must be there, and be a whole number without a point.
pub fn whole(report: &Report, metric: &str, measurement: &str) -> u64 {
    let value = report.get(&(metric.to_owned(), measurement.to_owned()));
    let value = value.unwrap_or_else(|| panic!("no {metric} {measurement} in {report:#?}"));
    value.parse().unwrap_or_else(|_| panic!("{metric} {measurement}: {value} is no whole number"))
}

/// Whether a metric is in the report.
pub fn has(report: &Report, metric: &str) -> bool {
    report.keys().any(|(name, _)| name == metric)
}
