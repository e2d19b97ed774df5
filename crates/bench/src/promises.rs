//! The rows that are not ratios of CPU: load phase, open-loop lag, many connections, start.

use crate::children::{Bench, host_ticks};
use crate::rounds::Spread;
use anyhow::{Context, Result};
use dyno_databases::spawn::find_server;
use dyno_databases::spawn::spawn;
use std::time::Instant;

const ROUNDS: usize = 15;

/// A figure of a summary by its JSON pointer.
pub fn number(summary: &serde_json::Value, path: &str) -> f64 {
    summary.pointer(path).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN)
}

/// The phase of a name.
pub fn phase<'a>(summary: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let found = summary["phases"].as_array().and_then(|p| p.iter().find(|p| p["name"] == name));
    found.unwrap_or(&serde_json::Value::Null)
}

/// Loading hash and index entry, beside the server's own ceilings for HMSET and ZADD.
pub fn load(bench: &Bench) -> Result<()> {
    let mut ratios = Vec::new();
    let mut rates = Vec::new();
    let (kind, program) = find_server(Some("redis")).context("redis-server")?;
    let server = spawn(kind, &program)?;
    // The first round finds memory that the server has never touched; all others are alike.
    ceiling(bench, server.port)?;
    for _ in 0..5 {
        let ceiling = ceiling(bench, server.port)?;
        flush(bench, server.port)?;
        let target = format!("redis://127.0.0.1:{}", server.port);
        let arguments = [
            "run",
            &target,
            "--records",
            "200k",
            "--reload",
            "--ops",
            "1",
            "--users",
            "16",
            "--threads",
            "1",
            "--no-pin",
            "--no-out",
            "--json",
            "--quiet",
        ];
        let (text, _) = bench.timed(&bench.dyno.display().to_string(), &arguments.map(str::to_owned))?;
        let summary: serde_json::Value = serde_json::from_str(&text)?;
        let rate = number(phase(&summary, "load"), "/throughput");
        rates.push(rate / 1e3);
        ratios.push(rate / ceiling);
    }
    println!("\nload phase: 1 KB records, hash and index entry, one server core");
    println!("  thousand records/s     {}", Spread::of(&rates));
    println!("  of the server's HMSET and ZADD ceilings {}   goal 0.90", Spread::of(&ratios));
    Ok(())
}

fn flush(bench: &Bench, port: u16) -> Result<()> {
    bench.timed("redis-cli", &["-p".to_owned(), port.to_string(), "FLUSHALL".to_owned()]).map(drop)
}

/// Records/s that the server can take: the harmonic sum of its HMSET and ZADD rates with deep pipelines. Keys are drawn
/// from a range so wide that nearly all are new, as they are in a load.
fn ceiling(bench: &Bench, port: u16) -> Result<f64> {
    let value = "x".repeat(100);
    let mut hmset = vec!["HMSET".to_owned(), "ceiling:__rand_int__".to_owned()];
    for field in 0..10 {
        hmset.extend([format!("field{field}"), value.clone()]);
    }
    let zadd = ["ZADD", "ceiling_index", "__rand_int__", "user__rand_int__"].map(str::to_owned).to_vec();
    let mut seconds_per_record = 0.0;
    for command in [hmset, zadd] {
        flush(bench, port)?;
        let mut arguments =
            ["-p", &port.to_string(), "-n", "200000", "-r", "1000000000", "-P", "64", "-c", "16", "--csv"]
                .map(str::to_owned)
                .to_vec();
        arguments.extend(command);
        let (text, _) = bench.timed("redis-benchmark", &arguments)?;
        let last = text.lines().last().context("redis-benchmark printed nothing")?;
        let rate: f64 = last
            .rsplit("\",\"")
            .nth(6)
            .or(last.split("\",\"").nth(1))
            .context("csv")?
            .trim_matches('"')
            .parse()?;
        seconds_per_record += 1.0 / rate;
    }
    Ok(1.0 / seconds_per_record)
}

/// Schedule lag at 20,000/s while sleeping.
pub fn open_loop(bench: &Bench) -> Result<()> {
    let (mut lags, mut rates, mut discarded) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let before = host_ticks();
        let extra = [
            "--no-load",
            "--rate",
            "20000",
            "--arrivals",
            "constant",
            "--connections",
            "64",
            "--duration",
            "3s",
            "--warmup",
            "0.5s",
        ];
        let (summary, _) = bench.dyno_run(&extra, 1)?;
        let after = host_ticks();
        if (after.1 - before.1) as f64 > 0.02 * (after.0 - before.0) as f64 {
            discarded += 1;
            continue;
        }
        let measured = phase(&summary, "measure");
        lags.push(number(measured, "/schedule_lag/percentiles_us/p99"));
        let due = number(measured, "/arrivals") / number(measured, "/seconds");
        rates.push((due / 20_000.0 - 1.0).abs() * 100.0);
    }
    println!(
        "\nopen loop, 20,000/s evenly, 64 connections, sleeping; {discarded} rounds discarded for steal"
    );
    if !lags.is_empty() {
        println!("  schedule lag p99, us   {}   goal below 50", Spread::of(&lags));
        println!("  rate off by, %         {}   goal 0.1", Spread::of(&rates));
    }
    Ok(())
}

/// Memory of 10,000 connections, and of 128.
pub fn connections(bench: &Bench) -> Result<()> {
    let resident = |users: &str| -> Result<f64> {
        let (summary, _) = bench.dyno_run(&["--no-load", "--users", users, "--ops", "200000"], 1)?;
        Ok(number(phase(&summary, "measure"), "/client/peak_resident_bytes"))
    };
    let (few, many) = (resident("128")?, resident("10000")?);
    println!("\nmemory");
    println!("  resident at 128 connections, MiB  {:6.1}   goal below 32", few / 1048576.0);
    println!("  10,000 connections, KiB each      {:6.1}   goal 16", (many - few) / 9_872.0 / 1024.0);
    Ok(())
}

/// From the start of the process to its end with one operation done, less nothing.
pub fn start(bench: &Bench) -> Result<()> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        bench.dyno_run(&["--no-load", "--ops", "1", "--users", "1"], 1)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    println!(
        "\nstart: process start to exit with one operation done, ms  {}   goal: first operation within 50",
        Spread::of(&times)
    );
    Ok(())
}
