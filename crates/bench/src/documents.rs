//! Documents of sysbench-mongodb and POCDriver, generated and encoded by one core into nothing.

use crate::children::Bench;
use crate::rounds::Spread;
use anyhow::{Context, Result};

const ROUNDS: usize = 5;
/// Documents of a load of sysbench-mongodb.
const LOADED: u64 = 6_000_000;
/// Bytes of a document of the largest ingest command (50.01 KB).
const LARGE: f64 = 51_210.0;

/// Documents per second of one core's time: what the client costs, whatever else the host does.
pub fn rows(bench: &Bench) -> Result<()> {
    let dyno = bench.dyno.display().to_string();
    let logs = tempfile::tempdir()?;
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut sysbench = words("sysbench-mongodb --target null: --load-threads 1 --json --no-monitor --logs");
    sysbench.push(logs.path().display().to_string());
    sysbench.extend(words("NUM_COLLECTIONS=1 NUM_LOADER_THREADS=8 DOQUERY=no"));
    sysbench.push(format!("NUM_DOCUMENTS_PER_COLLECTION={LOADED}"));
    let pocdriver = words("pocdriver -c null: -f 1692 -a 10:10 --depth 2 -t 8 -d 4 --load-threads 1");
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (_, cpu) = bench.timed(&dyno, &sysbench)?;
        small.push(LOADED as f64 / cpu.total_s() / 1e6);
        let (text, cpu) = bench.timed(&dyno, &pocdriver)?;
        large.push(inserted(&text).context("no count in POCDriver's lines")? / cpu.total_s() * LARGE / 1e9);
    }
    println!("\ndocuments into nothing, per second of one core's time");
    println!("  sysbench-mongodb load, millions        {}   goal 0.60", Spread::of(&small));
    println!("  POCDriver, 50 KB documents, GB         {}   goal 1.50", Spread::of(&large));
    Ok(())
}

/// Documents of POCDriver's last line: `After 4 seconds, 292,000 new documents inserted - ...`.
fn inserted(text: &str) -> Option<f64> {
    let line = text.lines().rfind(|line| line.contains(" new documents inserted"))?;
    let words = line.split_whitespace().take_while(|word| *word != "new");
    words.last()?.replace(',', "").parse().ok()
}
