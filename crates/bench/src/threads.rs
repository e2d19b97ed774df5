//! One to as many load threads as there are cores beside the server's.

use crate::children::Bench;
use crate::promises::{number, phase};
use crate::rounds::Spread;
use anyhow::Result;

const OPERATIONS: u64 = 300_000;
const CONNECTIONS: u64 = 64;

/// A row for each number of load threads: operations per second, and client CPU for each.
pub fn rows(bench: &Bench, rounds: usize) -> Result<()> {
    println!("\nGET and SET of 1000 bytes 1:1, {CONNECTIONS} connections a load thread, one server core");
    let all = (1..).map_while(|count| Some((count, bench.on_cores(count as usize)?)));
    for (count, bench) in all {
        let (operations, users) = ((OPERATIONS * count).to_string(), (CONNECTIONS * count).to_string());
        let extra = ["--no-load", "--ops", &operations, "--users", &users];
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (summary, cpu) = bench.dyno_run(&extra, 1)?;
            rates.push(number(phase(&summary, "measure"), "/throughput") / 1e3);
            costs.push(cpu.total_s() * 1e6 / (OPERATIONS * count) as f64);
        }
        println!(
            "  {count:2} load threads: thousand operations/s {}, client CPU us/op {}",
            Spread::of(&rates),
            Spread::of(&costs)
        );
    }
    Ok(())
}
