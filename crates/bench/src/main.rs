//! `make bench`: what dyno costs beside a minimal loop and beside redis-benchmark, and what it promises otherwise.
//!
//! The server runs on the first core, the client on the last. Pairs alternate; rounds in which the hypervisor took
//! away more than 2 % are discarded; a row is the median of the ratios of the pairs with their range.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod arrivals;
mod children;
mod commands;
mod delays;
mod disturbance;
mod documents;
mod floor;
mod mongo;
mod official;
mod promises;
mod replay;
mod reports;
mod responder;
mod rounds;
mod scale;
mod scale_pool;
mod stops;
mod threads;
mod traffic;
mod verdicts;
mod ycsb;

use anyhow::{Context, Result, bail};
use children::Bench;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().map(String::as_str) == Some("floor") {
        return floor::run(&arguments[1..]);
    }
    match arguments.first().map(String::as_str) {
        Some("reports") => return reports::run_all(&arguments[1..]),
        Some("responder") => return responder::run(),
        Some("delays") => return delays::run(),
        Some("scale") => {
            scale::run()?;
            return scale_pool::run();
        }
        // What the second part of `scale` starts.
        Some("simulate") => {
            let operations = arguments.get(1).and_then(|text| text.parse().ok());
            return scale_pool::simulate(operations.context("expected a number of operations")?);
        }
        // Its third part, and the workers and groups that it starts.
        Some("scale-groups") => return scale_pool::run_groups(),
        Some("worker") => return scale_pool::serve_as_worker(&arguments[1..]),
        Some("official") => return official::run(&arguments[1..]),
        _ => {}
    }
    let pairs = match arguments.first() {
        Some(n) => n.parse().context("expected the number of pairs, such as 15")?,
        None => 15,
    };
    let mut bench = Bench::prepare()?;
    if bench.server_core == bench.client_core {
        bail!("the benchmark needs two cores: one for the server, one for the client");
    }
    println!("{}", bench.describe());
    // `dyno-bench 15 arrivals docs/images/arrivals.svg`: these rows alone, and a chart of them.
    if arguments.get(1).map(String::as_str) == Some("arrivals") {
        return arrivals::rows(&bench, arguments.get(2).map(String::as_str));
    }
    // `dyno-bench 40 verdicts`: so many good runs, and so many bad ones.
    if arguments.get(1).map(String::as_str) == Some("verdicts") {
        return verdicts::rows(&bench, pairs);
    }
    // `dyno-bench 100 stops`: so many loads, each of them undisturbed and with stops of the client or of the server.
    if arguments.get(1).map(String::as_str) == Some("stops") {
        return stops::rows(&bench, pairs);
    }
    // `dyno-bench 15 ycsb`: this row alone.
    if arguments.get(1).map(String::as_str) == Some("ycsb") {
        return ycsb::row(&bench, pairs);
    }
    // `dyno-bench 15 commands`: this row alone.
    if arguments.get(1).map(String::as_str) == Some("commands") {
        return commands::row(&bench, pairs);
    }
    // `dyno-bench 15 replay`: this one.
    if arguments.get(1).map(String::as_str) == Some("replay") {
        return replay::row(&bench, pairs);
    }
    // `dyno-bench 5 traffic`: what recordings cost.
    if arguments.get(1).map(String::as_str) == Some("traffic") {
        return traffic::rows(&bench, pairs);
    }
    // `dyno-bench 15 mongodb`: this row alone.
    if arguments.get(1).map(String::as_str) == Some("mongodb") {
        return mongo::row(&bench, pairs);
    }
    // `dyno-bench 15 16:pool`: this row alone, of pipeline and values.
    let rows = [(1, "zero"), (16, "zero"), (16, "pool"), (16, "random")];
    let is_alone =
        |row: &(usize, &str)| arguments.get(1).is_some_and(|word| *word == format!("{}:{}", row.0, row.1));
    let alone = rows.iter().any(is_alone);
    for (pipeline, value) in rows.into_iter().filter(|row| pairs > 0 && (!alone || is_alone(row))) {
        bench.value = value;
        rounds::compare(&bench, pairs, pipeline)?;
    }
    if alone {
        return Ok(());
    }
    bench.value = "zero";
    if pairs > 0 {
        threads::rows(&bench, pairs)?;
        ycsb::row(&bench, pairs)?;
        commands::row(&bench, pairs)?;
        replay::row(&bench, pairs)?;
        traffic::rows(&bench, pairs)?;
        mongo::row(&bench, pairs)?;
    }
    // `dyno-bench 0 documents`: these rows alone.
    documents::rows(&bench)?;
    if arguments.get(1).map(String::as_str) == Some("documents") {
        return Ok(());
    }
    promises::load(&bench)?;
    promises::open_loop(&bench)?;
    promises::connections(&bench)?;
    promises::start(&bench)?;
    arrivals::rows(&bench, None)?;
    Ok(())
}
