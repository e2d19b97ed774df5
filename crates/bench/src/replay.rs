//! A replay beside the built-in workload: the same GET and SET of values of 100 bytes, as fast as the server answers.

use crate::children::{Bench, Cpu};
use crate::rounds::Spread;
use crate::traffic::{CONNECTIONS, write_recording};
use anyhow::{Context, Result};
use dyno_databases::spawn::{find_server, spawn};
use std::path::Path;

/// A short and a long run: what the long one takes more is that of its further operations, without any start.
const OPERATIONS: (u64, u64) = (100_000, 400_000);
const RECORDS: u64 = 10_000;
const GOAL: f64 = 1.25;

/// Runs the row.
pub fn row(bench: &Bench, pairs: usize) -> Result<()> {
    println!("\nGET and SET of 100 bytes, {CONNECTIONS} connections: a replay and the built-in workload");
    let (kind, program) = find_server(Some("redis")).context("redis-server")?;
    let server = spawn(kind, &program)?;
    let folder = tempfile::tempdir()?;
    let plain =
        ["--no-pin", "--wait", "sleep", "--no-out", "--json", "--quiet", "--no-monitor", "--threads", "1"];
    let run = |words: &[&str]| -> Result<Cpu> {
        let all: Vec<String> = words.iter().chain(&plain).map(|word| (*word).to_owned()).collect();
        Ok(bench.timed(&bench.dyno.display().to_string(), &all)?.1)
    };
    let uri = format!("redis://127.0.0.1:{}?layout=string", server.port);
    let (records, users) = (RECORDS.to_string(), CONNECTIONS.to_string());
    let values = ["--fields", "1", "--field-length", "100", "--distribution", "uniform", "--warmup", "0s"];
    let mixed = ["-p", "readproportion=0.5", "-p", "updateproportion=0.5", "-p", "dyno.value=random"];
    let built_in = |operations: u64| {
        let count = operations.to_string();
        let ends = ["--ops", &count, "--users", &users];
        run(&[&["run", &uri, "--records", &records][..], &values, &mixed, &ends].concat())
    };
    built_in(1)?;
    let (few, many) = OPERATIONS;
    let files = [few, many].map(|count| folder.path().join(format!("{count}.dyno")));
    for (file, count) in files.iter().zip([few, many]) {
        write_recording(file, count, RECORDS)?;
    }
    let server_name = format!("127.0.0.1:{}/0", server.port);
    let replay = |file: &Path| {
        let path = file.display().to_string();
        run(&["replay", &path, &uri, "--speed", "max", "--yes-write", &server_name])
    };
    let each = |start: Cpu, whole: Cpu| (whole.total_s() - start.total_s()) * 1e6 / (many - few) as f64;
    let (mut costs, mut peers, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..pairs {
        let (mine, other) =
            (each(replay(&files[0])?, replay(&files[1])?), each(built_in(few)?, built_in(many)?));
        costs.push(mine);
        peers.push(other);
        ratios.push(mine / other);
    }
    println!("  client CPU us/op: replay {}, built-in {}", Spread::of(&costs), Spread::of(&peers));
    println!("  replay / built-in  {}   goal {GOAL}", Spread::of(&ratios));
    Ok(())
}
