//! The row of MongoDB: find and update by id 1:1 on records of 1 KB against the responder, beside dyno's own Redis row
//! and, with the feature `official`, beside the official driver.

use crate::children::{Bench, Cpu, host_ticks};
use crate::responder::Responder;
use crate::rounds::Spread;
use anyhow::Result;

const OPERATIONS: u64 = 300_000;
/// The official driver takes so much longer for each.
const OFFICIAL: u64 = 60_000;

fn per_op(cpu: &Cpu, operations: u64) -> f64 {
    cpu.total_s() * 1e6 / operations as f64
}

/// Runs the row.
pub fn row(bench: &Bench, pairs: usize) -> Result<()> {
    let responder = Responder::start(bench.server_core, "responder")?;
    let target = format!("mongodb://127.0.0.1:{}/ycsb", responder.port);
    let redis = format!("redis://127.0.0.1:{}", bench.server.port);
    let ops = OPERATIONS.to_string();
    let dyno = |target: &str, records: &str, ops: &str, reload: &str| -> Result<Cpu> {
        let arguments = [
            "run",
            target,
            "--records",
            records,
            reload,
            "--ops",
            ops,
            "--users",
            "64",
            "--threads",
            "1",
            "--no-pin",
            "--wait",
            "sleep",
            "--no-out",
            "--json",
            "--quiet",
            "-p",
            "requestdistribution=uniform",
        ];
        Ok(bench.timed(&bench.dyno.display().to_string(), &arguments.map(str::to_owned))?.1)
    };
    // Hashes of ten fields, as YCSB has them.
    dyno(&redis, "10000", "1", "--reload")?;
    let (mut ours, mut redises, mut official, mut discarded) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while ours.len() < pairs && discarded <= pairs {
        let before = host_ticks();
        let mine = per_op(&dyno(&target, "10000", &ops, "--no-load")?, OPERATIONS);
        let other = per_op(&dyno(&redis, "10000", &ops, "--no-load")?, OPERATIONS);
        let theirs =
            crate::official::measure(bench, responder.port, OFFICIAL)?.map(|cpu| per_op(&cpu, OFFICIAL));
        let after = host_ticks();
        if (after.1 - before.1) as f64 > 0.02 * (after.0 - before.0) as f64 {
            discarded += 1;
            continue;
        }
        ours.push(mine);
        redises.push(other);
        official.extend(theirs);
    }
    print(&ours, &redises, &official, discarded);
    Ok(())
}

fn print(ours: &[f64], redises: &[f64], official: &[f64], discarded: usize) {
    println!(
        "\nfind and update by id 1:1, ten fields of 100 bytes, 64 connections, against a responder that answers at once"
    );
    if ours.is_empty() {
        return println!("  no round without steal");
    }
    let ratio = |of: &[f64]| Spread::of(&ours.iter().zip(of).map(|(a, b)| a / b).collect::<Vec<_>>());
    println!(
        "  {} pairs, {discarded} rounds discarded for steal; client CPU us/op, user + system",
        ours.len()
    );
    println!("  dyno, event loop       {}", Spread::of(ours));
    println!("  dyno on Redis          {}", Spread::of(redises));
    println!("  event loop / Redis      {}   goal 1.30", ratio(redises));
    if official.is_empty() {
        println!(
            "  the official driver is measured with: cargo run --release -p dyno-bench --features official"
        );
    } else {
        println!("  official driver        {}", Spread::of(official));
        println!("  event loop / official   {}   goal 0.28", ratio(official));
    }
}
