//! Against what redis-benchmark 7.0.15 and valkey-benchmark 8.0.1 printed and sent.

mod commands;
mod flags;
mod reports;

use super::{BenchmarkPlan, BenchmarkRefusal, ParsedCommandLine, Program, parse};

/// A recorded file.
fn recorded(name: &str) -> String {
    let path = format!("{}/tests/data/redis-benchmark/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn read(program: Program, line: &[&str], stdin: &[u8]) -> Result<ParsedCommandLine, BenchmarkRefusal> {
    let words: Vec<String> = line.iter().map(|word| (*word).to_owned()).collect();
    parse(program, &words, || Ok(stdin.to_vec()))
}

fn plan_of(program: Program, line: &[&str], stdin: &[u8]) -> BenchmarkPlan {
    match read(program, line, stdin).unwrap() {
        ParsedCommandLine::Run(plan) => *plan,
        ParsedCommandLine::Print { text, .. } => panic!("{text}"),
    }
}

/// The plan of a line without quotes.
fn redis(line: &str) -> BenchmarkPlan {
    plan_of(Program::RedisBenchmark, &line.split_whitespace().collect::<Vec<_>>(), b"")
}

fn valkey(line: &str) -> BenchmarkPlan {
    plan_of(Program::ValkeyBenchmark, &line.split_whitespace().collect::<Vec<_>>(), b"")
}

/// The words with which a line is refused.
fn refusal(program: Program, line: &str) -> String {
    read(program, &line.split_whitespace().collect::<Vec<_>>(), b"").unwrap_err().to_string()
}
