//! Whose delay was it? A sweep of stops of the client and of the server over random loads: which side the verdict names where
//! the stop moved a figure, and whether it names a side where the stop moved none.

use crate::children::{Bench, RECORDS, split_words};
use crate::disturbance::{Disturbance, Party, Stops, disturbed};
use anyhow::{Context, Result};
use dyno_rundir::schema::{Claim, Metric, Phase, Summary, Trust};
use dyno_types::rng::{Purpose, draw_at, unit_interval};
use std::time::Duration;

/// Checks that say that the server was slow, or not there.
const OF_THE_SERVER: [&str; 11] = [
    "connections",
    "drift",
    "drops",
    "errors",
    "gone",
    "level",
    "offered_rate",
    "overload",
    "period",
    "response_level",
    "stalls",
];

/// A figure is moved by more than this share of it; of a time, by as many seconds too.
const MOVED: (f64, f64) = (0.10, 200e-6);

/// A load and a stop, drawn.
struct Trial {
    load: String,
    stops: Stops,
}

impl Trial {
    /// Draws the trial of a number: log-uniform rates from 200 to 50,000/s, 1 to 256 connections, stops of 0.05 to 3 s, once to
    /// five times a second.
    fn drawn(number: u64) -> Trial {
        let mut drawn = (0..).map(|index| unit_interval(draw_at(number, index, Purpose::Service)));
        let mut log =
            |(least, most): (f64, f64)| least * (most / least).powf(drawn.next().unwrap_or_default());
        let connections = log((1.0, 256.9)).floor();
        // One connection does some 20,000 operations a second one after the other; a quarter of that leaves no queue.
        let rate = log((200.0, 50_000.0_f64.min(connections * 5_000.0))).round();
        let length_s = log((0.05, 3.0));
        let between_s = log((0.2, 10.0));
        let load = match number % 4 {
            0 | 1 => format!("--rate {rate} --connections {connections}"),
            // Users who think, so that neither side is the bottleneck.
            _ => format!("--users {connections} --think {}us", (connections / rate * 1e6).round()),
        };
        // A core that sleeps is woken late by some hypervisors: that would be the client's share, too.
        let load = format!("{load} --wait spin");
        let every = (between_s < 5.0).then(|| Duration::from_secs_f64(between_s.max(2.0 * length_s)));
        let stops = Stops {
            of: if number.is_multiple_of(2) { Party::Client } else { Party::Server },
            first: Duration::from_secs(3),
            length: Duration::from_secs_f64(length_s),
            every,
            last: Duration::from_secs(6),
        };
        Trial { load, stops }
    }
}

/// `count` trials, each of an undisturbed run and of one with stops.
pub fn rows(bench: &Bench, count: usize) -> Result<()> {
    println!(
        "\n{count} loads, each undisturbed and with stops, 8 s after 1 s of warm-up: whom the verdict names"
    );
    let mut tally = [[(0usize, 0usize); 2]; 2];
    let (mut quiet, mut accused, mut discarded) = (0, 0, 0);
    for number in 0..count as u64 {
        let trial = Trial::drawn(number);
        let usual = run(bench, &trial.load, Disturbance::None)?;
        let stopped = run(bench, &trial.load, Disturbance::Stopped(trial.stops))?;
        let moved = moved(&usual, &stopped)?;
        let steals = |summary: &Summary| summary.verdict.speaks_against("steal");
        if steals(&usual) || steals(&stopped) {
            discarded += 1;
            continue;
        }
        let (before, after) = (client_named(&usual, None)?, client_named(&stopped, Some(&usual))?);
        // Throughput that the host spoils without a stop, too, is not the stop's.
        let client: Vec<String> =
            after.into_iter().filter(|one| one != "throughput" || !before.contains(one)).collect();
        let server = server_named(&stopped);
        // A client that was stopped may be named for less than what moves a figure: throughput is from 2 % on.
        let right = match trial.stops.of {
            Party::Client => server.is_empty() && (moved.is_empty() || !client.is_empty()),
            Party::Server => client.is_empty(),
        };
        let cell = &mut tally[usize::from(trial.stops.of == Party::Server)][usize::from(!moved.is_empty())];
        cell.0 += 1;
        cell.1 += usize::from(right);
        let wrongly = [before, server_named(&usual)].concat();
        quiet += 1;
        accused += usize::from(!wrongly.is_empty());
        println!(
            "  {number} {} {}: moved {}; client: {}; server: {}; undisturbed: {}{}",
            trial.load,
            Disturbance::Stopped(trial.stops).describe(),
            listed(&moved),
            listed(&client),
            listed(&server),
            listed(&wrongly),
            if right { "" } else { "  <- WRONG" }
        );
    }
    for (party, cells) in ["client", "server"].into_iter().zip(tally) {
        for (what, (all, right)) in ["moved no figure", "moved a figure"].into_iter().zip(cells) {
            println!("  the {party} stopped, {what}: right in {right} of {all}");
        }
    }
    println!("  undisturbed: a side is accused in {accused} of {quiet}");
    println!("  discarded, because the hypervisor took time away: {discarded}");
    Ok(())
}

/// Figures of which the verdict says that the client spoiled them, by as much as a stop must move one, and more than in its
/// undisturbed twin: a host that wakes its programs late is the client's lag as well.
fn client_named(summary: &Summary, usual: Option<&Summary>) -> Result<Vec<String>> {
    let about = |claim: Claim| {
        let mut reasons = summary.verdict.reasons.iter().filter(|reason| reason.trust != Trust::Valid);
        reasons.any(|reason| reason.check == "client_share" && reason.is_about(&[claim]))
    };
    let share_s = |phase: &Phase, name: &str| {
        let of = |metric: &Metric| *metric.client_us.get(name)?;
        phase.metrics.iter().filter_map(of).fold(0.0, f64::max) / 1e6
    };
    let (phase, usual) = (measured(summary)?, usual.map(measured).transpose()?);
    let spoiled = |name: &str| {
        let more = share_s(phase, name) - usual.map_or(0.0, |usual| share_s(usual, name));
        more > (MOVED.0 * percentile_s(phase, name)).max(MOVED.1)
    };
    let figures = [
        ("throughput", about(Claim::Throughput)),
        ("p50", about(Claim::Median) && spoiled("p50")),
        ("p99", about(Claim::Tail) && spoiled("p99")),
    ];
    Ok(figures.into_iter().filter(|(_, named)| *named).map(|(name, _)| name.to_owned()).collect())
}

/// Checks that speak against the server.
fn server_named(summary: &Summary) -> Vec<String> {
    let named = OF_THE_SERVER.iter().filter(|check| summary.verdict.speaks_against(check));
    named.map(|check| (*check).to_owned()).collect()
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "-".to_owned() } else { names.join(" ") }
}

/// The figures that differ between a run and its disturbed twin.
fn moved(usual: &Summary, stopped: &Summary) -> Result<Vec<String>> {
    let (usual, stopped) = (measured(usual)?, measured(stopped)?);
    let mut found = Vec::new();
    if (usual.throughput - stopped.throughput).abs() > MOVED.0 * usual.throughput {
        found.push(format!("throughput {:.0} to {:.0}/s", usual.throughput, stopped.throughput));
    }
    for name in ["p50", "p99"] {
        let (before, after) = (percentile_s(usual, name), percentile_s(stopped, name));
        if (after - before).abs() > (MOVED.0 * before).max(MOVED.1) {
            found.push(format!("{name} {:.2} to {:.2} ms", before * 1e3, after * 1e3));
        }
    }
    Ok(found)
}

fn measured(summary: &Summary) -> Result<&Phase> {
    summary.phases.iter().find(|phase| phase.name == "measure").context("the measured phase")
}

/// The greatest of the metrics' percentiles of response times, seconds.
fn percentile_s(phase: &Phase, name: &str) -> f64 {
    let of = |metric: &Metric| *metric.response.as_ref()?.percentiles_us.get(name)?;
    phase.metrics.iter().filter_map(of).fold(0.0, f64::max) / 1e6
}

/// Runs a load of 8 s after 1 s of warm-up to its end, disturbed or not.
pub fn run(bench: &Bench, load: &str, disturbance: Disturbance) -> Result<Summary> {
    let line = format!(
        "run redis://127.0.0.1:{}?layout=string --no-load --records {RECORDS} -p fieldcount=1 -p fieldlength=1000 {load} \
         --duration 8s --warmup 1s --threads 1 --no-pin --no-out --json --quiet",
        bench.server.port
    );
    let text = disturbed(bench, (&bench.dyno.display().to_string(), &split_words(&line)), disturbance)?;
    serde_json::from_str(&text).context("dyno's summary")
}
