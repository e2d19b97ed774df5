//! Speed of what runs once per operation. Ignored by default: it measures, so it wants a quiet machine.
//!
//! `cargo test --release -p dyno-workload --test speed -- --ignored --nocapture`
#![allow(clippy::print_stdout)]

use dyno_types::{Content, Request};
use dyno_workload::Workload;
use dyno_workload::values::ValueKind;
use dyno_workload::ycsb::{CoreConfig, CoreWorkload};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Nanoseconds per call, the best of five rounds.
fn best_ns(n: u64, mut call: impl FnMut(u64)) -> f64 {
    (0..5)
        .map(|_| {
            let start = Instant::now();
            (0..n).for_each(&mut call);
            start.elapsed().as_nanos() as f64 / n as f64
        })
        .fold(f64::INFINITY, f64::min)
}

fn workload(distribution: &str, insert: &str) -> CoreWorkload {
    let config = CoreConfig::from_lookup(&mut |key| {
        let value = match key {
            "recordcount" => "1000000",
            "operationcount" => "1000000",
            "readproportion" | "updateproportion" => "0.5",
            "insertproportion" => insert,
            "requestdistribution" => distribution,
            _ => return None,
        };
        Some(value.to_owned())
    });
    CoreWorkload::run(&config.unwrap()).unwrap()
}

#[test]
#[ignore = "measures"]
fn draw_bind_and_key() {
    for (distribution, insert, limit) in [
        ("uniform", "0", 150.0),
        ("zipfian", "0", 200.0),
        ("zipfian", "0.05", 250.0),
        ("zipfian:0.99", "0", 250.0),
        ("zipfian:0.8", "0", 300.0),
        ("latest", "0.05", 300.0),
        ("exponential", "0", 200.0),
    ] {
        let workload = workload(distribution, insert);
        let frontier = workload.frontier();
        let content: Arc<dyn Content> = workload.content();
        let mut out = Vec::with_capacity(64);
        let ns = best_ns(300_000, |index| {
            out.clear();
            let request = workload.bind(&workload.draw(index), &frontier);
            content.key(&request, &mut out);
            black_box(&out);
        });
        let draw = best_ns(300_000, |index| {
            black_box(workload.draw(black_box(index)));
        });
        println!("{distribution}, insert {insert}: draw {draw:.1} ns, draw + bind + key {ns:.1} ns");
        assert!(ns < limit);
    }
}

#[test]
#[ignore = "measures"]
fn values() {
    for (kind, name) in [(ValueKind::Random, "random"), (ValueKind::Pool, "pool"), (ValueKind::Text, "text")]
    {
        for (bytes, limit) in [(100usize, 120.0), (1000, 800.0)] {
            let mut out = Vec::with_capacity(2000);
            let ns = best_ns(300_000, |seed| {
                out.clear();
                kind.render_value(black_box(seed), 3, bytes, &mut out);
                black_box(&out);
            });
            println!("{name} {bytes} bytes: {ns:.1} ns");
            assert!(ns < limit);
        }
    }
    let workload = workload("uniform", "0");
    let content = workload.content();
    let request = Request { verb: dyno_types::Verb::Insert, ..Request::default() };
    let mut out = Vec::with_capacity(2000);
    let ns = best_ns(100_000, |seed| {
        out.clear();
        let request = Request { seed, ..request };
        (0..10).for_each(|field| content.value(&request, field, &mut out));
        black_box(&out);
    });
    println!("ten fields of 100 bytes: {ns:.1} ns");
}
