//! Commands of one's own beside the built-in GET and SET: the same operations on values of 100 bytes.

use crate::children::{Bench, Cpu};
use crate::rounds::Spread;
use anyhow::{Context, Result};
use dyno_databases::spawn::{find_server, spawn};

/// A short and a long run: what the long one takes more is that of its further operations, without any start.
const OPERATIONS: (u64, u64) = (100_000, 400_000);
const RECORDS: u64 = 10_000;
const CONNECTIONS: u64 = 64;
const GOAL: f64 = 1.10;

/// Runs the row.
pub fn row(bench: &Bench, pairs: usize) -> Result<()> {
    println!("\nGET and SET of 100 bytes, {CONNECTIONS} connections: own commands and the built-in workload");
    let (kind, program) = find_server(Some("redis")).context("redis-server")?;
    let server = spawn(kind, &program)?;
    let plain =
        ["--no-pin", "--wait", "sleep", "--no-out", "--json", "--quiet", "--no-monitor", "--threads", "1"];
    let run = |words: &[&str], operations: u64| -> Result<Cpu> {
        let (count, users) = (operations.to_string(), CONNECTIONS.to_string());
        let ends = ["--ops", &count, "--users", &users, "--warmup", "0s"];
        let all = words.iter().chain(&plain).chain(&ends).map(|word| (*word).to_owned()).collect::<Vec<_>>();
        Ok(bench.timed(&bench.dyno.display().to_string(), &all)?.1)
    };
    let (uri, records) = (format!("redis://127.0.0.1:{}?layout=string", server.port), RECORDS.to_string());
    let values = ["--fields", "1", "--field-length", "100", "--distribution", "uniform"];
    let mixed = ["-p", "readproportion=0.5", "-p", "updateproportion=0.5", "-p", "dyno.value=random"];
    let built_in = [&["run", &uri, "--records", &records][..], &values, &mixed].concat();
    let own = [
        &["run", &uri, "--command-keys", &records][..],
        &["--command", "GET user%{key}", "--command", "SET user%{key} %{string:100}"],
    ]
    .concat();
    run(&built_in, 1)?;
    let per_operation = |words: &[&str]| -> Result<f64> {
        let (few, many) = OPERATIONS;
        let (start, whole) = (run(words, few)?.total_s(), run(words, many)?.total_s());
        Ok((whole - start) * 1e6 / (many - few) as f64)
    };
    let (mut costs, mut peers, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..pairs {
        let (mine, other) = (per_operation(&own)?, per_operation(&built_in)?);
        costs.push(mine);
        peers.push(other);
        ratios.push(mine / other);
    }
    println!("  client CPU us/op: own commands {}, built-in {}", Spread::of(&costs), Spread::of(&peers));
    println!("  own commands / built-in  {}   goal {GOAL}", Spread::of(&ratios));
    Ok(())
}
