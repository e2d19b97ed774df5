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

/// A client that is measured.
struct Contender {
    name: &'static str,
    run: fn(&Bench, u64, usize) -> Result<Cpu>,
    /// True if the host has it.
    there: fn(&Bench) -> bool,
}

fn dyno(bench: &Bench, operations: u64, pipeline: usize, stamps: &str) -> Result<Cpu> {
    let (count, users) = (operations.to_string(), CONNECTIONS.to_string());
    let extra = ["--no-load", "--ops", &count, "--users", &users, "--timeout", "10s", "--stamps", stamps];
    Ok(bench.dyno_run(&extra, pipeline)?.1)
}

const OURS: [&str; 2] = ["dyno, kernel stamps", "dyno, client stamps"];

const CONTENDERS: [Contender; 5] = [
    Contender { name: OURS[0], run: |bench, n, p| dyno(bench, n, p, "kernel"), there: |_| true },
    Contender { name: "floor", run: |bench, n, p| bench.floor(n, CONNECTIONS, p), there: |_| true },
    Contender { name: OURS[1], run: |bench, n, p| dyno(bench, n, p, "client"), there: |_| true },
    Contender {
        name: "redis-benchmark",
        run: |bench, n, p| bench.redis_benchmark(n, CONNECTIONS, p),
        there: |_| true,
    },
    Contender {
        name: "memtier",
        run: |bench, n, p| bench.memtier(n, CONNECTIONS, p),
        there: Bench::has_memtier,
    },
];

/// What the ratio of one of ours to the floor is to be at most: by pipeline, values, ours.
const GOALS: [(usize, &str, &str, f64); 4] = [
    (1, "zero", OURS[0], 1.08),
    (1, "zero", OURS[1], 1.08),
    (16, "zero", OURS[1], 1.15),
    (16, "pool", OURS[1], 1.15),
];

/// Operations of a short and of a long run: what the long one takes more is the cost of its further operations, without
/// that of starting and of the report, which short runs would share out among few operations.
fn operations(pipeline: usize) -> (u64, u64) {
    if pipeline == 1 { (100_000, 400_000) } else { (500_000, 3_500_000) }
}

/// Runs rounds until `pairs` are good, at most twice as many. In each round every contender applies the same load.
pub fn compare(bench: &Bench, pairs: usize, pipeline: usize) -> Result<()> {
    let (few, many) = operations(pipeline);
    let contenders: Vec<Contender> = CONTENDERS.into_iter().filter(|one| (one.there)(bench)).collect();
    let mut taken: Vec<Vec<Cpu>> = contenders.iter().map(|_| Vec::new()).collect();
    let (mut good, mut discarded) = (0, 0);
    while good < pairs && discarded <= pairs {
        let before = host_ticks();
        let mut round = vec![Cpu::default(); contenders.len()];
        for step in 0..contenders.len() {
            // The order turns with the round, so that none always follows the same.
            let at = (step + good) % contenders.len();
            let short = (contenders[at].run)(bench, few, pipeline)?;
            let long = (contenders[at].run)(bench, many, pipeline)?;
            round[at] = Cpu { user_s: long.user_s - short.user_s, system_s: long.system_s - short.system_s };
        }
        let after = host_ticks();
        if (after.1 - before.1) as f64 > STEAL * (after.0 - before.0) as f64 {
            discarded += 1;
            continue;
        }
        taken.iter_mut().zip(round).for_each(|(all, cpu)| all.push(cpu));
        good += 1;
    }
    println!(
        "\nGET and SET of 1000 bytes, {} values, {CONNECTIONS} connections, pipeline {pipeline}, {many} operations less {few}",
        bench.value
    );
    if good == 0 {
        println!("  no round without steal");
        return Ok(());
    }
    println!("  {good} pairs, {discarded} rounds discarded for steal");
    println!("  {:<22} {:<24} user only", "client CPU us/op", "user + system");
    let per_op = |all: &[Cpu], pick: fn(&Cpu) -> f64| {
        Spread::of(&all.iter().map(|c| pick(c) * 1e6 / (many - few) as f64).collect::<Vec<_>>())
    };
    for (one, all) in contenders.iter().zip(&taken) {
        println!(
            "  {:<22} {:<24} {}",
            one.name,
            per_op(all, Cpu::total_s).to_string(),
            per_op(all, |c| c.user_s)
        );
    }
    for (own, mine) in contenders.iter().zip(&taken).filter(|(one, _)| OURS.contains(&one.name)) {
        for (other, theirs) in contenders.iter().zip(&taken).filter(|(one, _)| !OURS.contains(&one.name)) {
            let ratios: Vec<f64> = mine.iter().zip(theirs).map(|(a, b)| a.total_s() / b.total_s()).collect();
            let goal = GOALS.iter().find(|goal| {
                (goal.0, goal.1, goal.2, "floor") == (pipeline, bench.value, own.name, other.name)
            });
            let goal = goal.map_or(String::new(), |goal| format!("   goal {:.2}", goal.3));
            println!("  {:<40} {}{goal}", format!("{} / {}", own.name, other.name), Spread::of(&ratios));
        }
    }
    system_calls(bench, &contenders, pipeline)
}

/// System calls per operation: what a long run makes more than a short one, divided by its further operations. They are
/// counted by strace, which slows the client down, so that it finds more replies at once than it otherwise would.
fn system_calls(bench: &Bench, contenders: &[Contender], pipeline: usize) -> Result<()> {
    if !bench.can_trace() {
        println!("  system calls per operation: strace is not installed");
        return Ok(());
    }
    let (few, many) = (50_000u64, 150_000u64);
    let tracing = bench.tracing();
    let mut words = Vec::new();
    for one in contenders {
        let count = |n: u64| tracing.traced(|bench| (one.run)(bench, n, pipeline).map(drop));
        let per_op = (count(many)? as f64 - count(few)? as f64) / (many - few) as f64;
        words.push(format!("{} {per_op:.3}", one.name));
    }
    println!("  system calls per operation (strace): {}", words.join("; "));
    Ok(())
}
