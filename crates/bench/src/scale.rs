//! `dyno-bench scale`: what a controller pays for the frames of many workers. Each simulated worker sends one frame a second
//! with the histograms of four kinds of operation; the controller decodes them, adds them to the second, and that to the whole.

use anyhow::Result;
use dyno_monitor::ProcessCpu;
use dyno_record::{Scale, ThreadInterval, Totals, codec};
use dyno_types::Outcome;
use dyno_types::rng::{Purpose, Stream};
use std::time::Instant;

pub(crate) const METRICS: usize = 4;
const SECONDS: usize = 20;

/// A second of a worker: so many operations, log-normal around 300 microseconds with a heavy tail.
pub(crate) fn totals(worker: u64, operations: u64) -> Totals {
    let mut draws = Stream::new(7, worker, Purpose::Service);
    let mut interval = ThreadInterval::new(METRICS, Scale::Ns64);
    for number in 0..operations {
        let (a, b) = (draws.next_unit().max(1e-12), draws.next_unit());
        let normal = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        let tail = if draws.next_below(1_000) == 0 { 30.0 } else { 1.0 };
        let ns = (300_000.0 * (0.4 * normal).exp() * tail) as u64;
        interval.arrivals += 1;
        interval.ended[Outcome::Ok as usize] += 1;
        interval.record_ended((number % METRICS as u64) as u16, Outcome::Ok, ns, ns + 1_000);
    }
    let mut totals = Totals::new(METRICS, Scale::Ns64);
    totals.add_interval(&interval);
    totals
}

fn frame(worker: u64, operations: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::encode_totals(&totals(worker, operations), &mut bytes);
    bytes
}

/// Prints a row for each number of workers.
pub fn run() -> Result<()> {
    println!("workers  frame bytes   MB/s  CPU of one core  resident MB  merge of one second");
    for (workers, operations) in [(10, 10_000), (100, 10_000), (500, 10_000), (1_000, 10_000), (1_000, 1_000)]
    {
        // Frames differ from worker to worker; sixteen kinds are enough.
        let frames: Vec<Vec<u8>> = (0..16.min(workers)).map(|worker| frame(worker, operations)).collect();
        let bytes: usize = (0..workers as usize).map(|worker| frames[worker % frames.len()].len()).sum();
        let (cpu, begun) = (ProcessCpu::read_now(), Instant::now());
        let mut whole = Totals::new(METRICS, Scale::Ns64);
        for _ in 0..SECONDS {
            let mut second = Totals::new(METRICS, Scale::Ns64);
            for worker in 0..workers as usize {
                second.merge(&codec::decode_totals(&frames[worker % frames.len()])?);
            }
            whole.merge(&second);
        }
        let used = ProcessCpu::read_now().since_earlier(&cpu);
        let each_s = (used.user_s + used.system_s) / SECONDS as f64;
        println!(
            "{workers:>7}  {:>11}  {:>5.1}  {:>14.1} %  {:>11.0}  {:.1} ms",
            bytes / workers as usize,
            bytes as f64 / 1e6,
            each_s * 100.0,
            dyno_monitor::peak_resident_bytes().unwrap_or(0) as f64 / 1e6,
            begun.elapsed().as_secs_f64() * 1e3 / SECONDS as f64
        );
    }
    Ok(())
}
