//! YCSB's workload A by the same command line: dyno's drop-in beside YCSB itself.

use crate::children::{Bench, Cpu, split_words};
use crate::rounds::Spread;
use anyhow::{Context, Result};
use dyno_databases::spawn::find_server;
use dyno_databases::spawn::spawn;

/// A short and a long run: what the long one takes more is that of its further operations, without any start.
const OPERATIONS: (u64, u64) = (100_000, 300_000);
const RECORDS: u64 = 10_000;
const THREADS: u64 = 64;
const GOAL: f64 = 0.17;

/// The folder of YCSB's own client, as scripts/need ycsb makes it.
pub fn client() -> Option<String> {
    let home = || std::env::var("HOME").map(|home| format!("{home}/.cache"));
    let folder =
        format!("{}/dyno-ycsb/client-0.17.0", std::env::var("XDG_CACHE_HOME").or_else(|_| home()).ok()?);
    std::path::Path::new(&folder).join("RecordStore.class").is_file().then_some(folder)
}

/// Runs the row, where YCSB is installed.
pub fn row(bench: &Bench, pairs: usize) -> Result<()> {
    println!("\nYCSB's workload A, {THREADS} threads, client CPU of the drop-in and of YCSB");
    let Some(jars) = client() else {
        println!("  YCSB is not installed (scripts/need ycsb)");
        return Ok(());
    };
    let (kind, program) = find_server(Some("redis")).context("redis-server")?;
    let server = spawn(kind, &program)?;
    let properties = |operations: u64| {
        format!(
            "-threads {THREADS} -p workload=site.ycsb.workloads.CoreWorkload -p recordcount={RECORDS} -p \
             operationcount={operations} -p readproportion=0.5 -p updateproportion=0.5 -p requestdistribution=zipfian -p \
             redis.host=127.0.0.1 -p redis.port={}",
            server.port
        )
    };
    let dyno = bench.dyno.display().to_string();
    bench.timed(&dyno, &split_words(&format!("ycsb load redis {}", properties(0))))?;
    let ours = |operations| {
        Ok(bench.timed(&dyno, &split_words(&format!("ycsb run redis {}", properties(operations))))?.1)
    };
    let theirs = |operations| {
        let line =
            format!("-cp {jars}:{jars}/* site.ycsb.Client -t -db RecordStore {}", properties(operations));
        Ok(bench.timed("java", &split_words(&line))?.1)
    };
    let (mut costs, mut peers, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..pairs {
        let (own, other) = (per_operation(&ours)?, per_operation(&theirs)?);
        costs.push(own);
        peers.push(other);
        ratios.push(own / other);
    }
    println!("  client CPU us/op: dyno ycsb {}, YCSB {}", Spread::of(&costs), Spread::of(&peers));
    println!("  dyno ycsb / YCSB  {}   goal {GOAL}", Spread::of(&ratios));
    Ok(())
}

fn per_operation(run: &dyn Fn(u64) -> Result<Cpu>) -> Result<f64> {
    let (few, many) = OPERATIONS;
    let (start, whole) = (run(few)?.total_s(), run(many)?.total_s());
    Ok((whole - start) * 1e6 / (many - few) as f64)
}
