//! Alternated pairs: dyno, the floor and redis-benchmark one after another, round after round.

use crate::children::{Bench, Cpu, host_ticks};
use anyhow::Result;

/// Steal above this share discards a round.
const STEAL: f64 = 0.02;
const CONNECTIONS: usize = 64;

/// Median and range.
pub struct Spread {
    /// The middle.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Spread {
    /// Of some values, at least one.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        Spread { median: sorted[sorted.len() / 2], low: sorted[0], high: sorted[sorted.len() - 1] }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:6.2} ({:.2}-{:.2})", self.median, self.low, self.high)
    }
}

/// Runs rounds until `pairs` are good, at most twice as many.
pub fn compare(bench: &Bench, pairs: usize, pipeline: usize) -> Result<()> {
    let operations: u64 = if pipeline == 1 { 300_000 } else { 1_500_000 };
    let count = operations.to_string();
    let (mut ours, mut floors, mut peers) = (Vec::new(), Vec::new(), Vec::new());
    let mut discarded = 0;
    while ours.len() < pairs && discarded <= pairs {
        let before = host_ticks();
        let connections = CONNECTIONS.to_string();
        let extra = ["--no-load", "--ops", &count, "--users", &connections, "--timeout", "10s"];
        // The order turns with the round, so that none always follows the same.
        let turn = ours.len() % 2 == 0;
        let (mine, floor) = if turn {
            let mine = bench.dyno_run(&extra, pipeline)?.1;
            (mine, bench.floor(operations, CONNECTIONS, pipeline)?)
        } else {
            let floor = bench.floor(operations, CONNECTIONS, pipeline)?;
            (bench.dyno_run(&extra, pipeline)?.1, floor)
        };
        let peer = bench.redis_benchmark(operations, CONNECTIONS, pipeline)?;
        let after = host_ticks();
        if (after.1 - before.1) as f64 > STEAL * (after.0 - before.0) as f64 {
            discarded += 1;
            continue;
        }
        ours.push(mine);
        floors.push(floor);
        peers.push(peer);
    }
    let values = if bench.value == "zero" {
        "constant values"
    } else {
        "YCSB's random values (not redis-benchmark's)"
    };
    println!(
        "\nGET and SET of 1000 bytes 1:1, {values}, {CONNECTIONS} connections, pipeline {pipeline}, {operations} operations"
    );
    print(pipeline, operations, &ours, &floors, &peers, discarded);
    system_calls(bench, pipeline)
}

/// System calls per operation: what a long run makes more than a short one, divided by its further operations. They are
/// counted by strace, which slows the client down, so that it finds more replies at once than it otherwise would.
fn system_calls(bench: &Bench, pipeline: usize) -> Result<()> {
    if !bench.can_trace() {
        println!("  system calls per operation: strace is not installed");
        return Ok(());
    }
    let (few, many) = (50_000u64, 150_000u64);
    let per_op = |count: &dyn Fn(u64) -> Result<u64>| -> Result<f64> {
        Ok((count(many)? as f64 - count(few)? as f64) / (many - few) as f64)
    };
    let tracing = bench.tracing();
    let connections = CONNECTIONS.to_string();
    let ours = per_op(&|n| {
        let count = n.to_string();
        let extra = ["--no-load", "--ops", &count, "--users", &connections, "--timeout", "10s"];
        tracing.traced(|bench| bench.dyno_run(&extra, pipeline).map(drop))
    })?;
    let floor = per_op(&|n| tracing.traced(|bench| bench.floor(n, CONNECTIONS, pipeline).map(drop)))?;
    let peer =
        per_op(&|n| tracing.traced(|bench| bench.redis_benchmark(n, CONNECTIONS, pipeline).map(drop)))?;
    println!(
        "  system calls per operation (strace): dyno {ours:.3}, floor {floor:.3}, redis-benchmark {peer:.3}"
    );
    Ok(())
}

fn print(pipeline: usize, operations: u64, ours: &[Cpu], floors: &[Cpu], peers: &[Cpu], discarded: usize) {
    if ours.is_empty() {
        println!("  no round without steal");
        return;
    }
    println!("  {} pairs, {discarded} rounds discarded for steal", ours.len());
    let per_op = |all: &[Cpu], pick: fn(&Cpu) -> f64| {
        Spread::of(&all.iter().map(|c| pick(c) * 1e6 / operations as f64).collect::<Vec<_>>())
    };
    println!("  {:<18} {:<24} user only", "client CPU us/op", "user + system");
    for (name, all) in [("dyno", ours), ("floor", floors), ("redis-benchmark", peers)] {
        println!("  {name:<18} {:<24} {}", per_op(all, Cpu::total_s).to_string(), per_op(all, |c| c.user_s));
    }
    let ratio = |of: &[Cpu]| {
        Spread::of(&ours.iter().zip(of).map(|(a, b)| a.total_s() / b.total_s()).collect::<Vec<_>>())
    };
    let (floor_goal, peer_goal) = if pipeline == 1 { ("1.15", "0.70") } else { ("-", "0.75") };
    println!("  dyno / floor           {}   goal {floor_goal}", ratio(floors));
    println!("  dyno / redis-benchmark {}   goal {peer_goal}", ratio(peers));
}
