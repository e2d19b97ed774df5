//! Whose delay was it? Stops of the server and of the client over random loads, in virtual time: each run has a twin without the
//! stops, so that what they moved is known. `DYNO_STOPS=NUMBER` makes so many trials and prints them.

use dyno_testkit::{Dyno, assert_exit};
use dyno_types::rng::{Purpose, Stream};
use serde_json::Value;

/// Checks that blame the server. A level changes in any run in which a side stood still, the client or the server: the reason
/// that is told first says which.
const OF_THE_SERVER: [&str; 7] =
    ["connections", "drops", "errors", "gone", "offered_rate", "overload", "stalls"];

/// A figure is moved by more than this share of it; a time by as many microseconds too.
const MOVED: (f64, f64) = (0.10, 200.0);

/// Seconds that are measured, after one of warm-up.
const LENGTH_S: f64 = 8.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Party {
    Client,
    Server,
}

struct Trial {
    target: String,
    load: String,
    /// As they stand in the target.
    stops: String,
}

impl Trial {
    /// 200 to 50,000/s, 1 to 256 connections, stops of 0.05 to 3 s, once to five times a second; all but the loop on a
    /// logarithmic scale. The server is busy for no more than a third of the time between stops.
    fn drawn(random: &mut Stream, of: Party) -> Trial {
        let mut log = |least: f64, most: f64| least * (most / least).powf(random.next_unit());
        let connections = log(1.0, 257.0).floor();
        let service_us = log(50.0, 1_000.0).round();
        let most = (0.33 * connections * 1e6 / service_us).min(50_000.0);
        let rate = log(200.0, most.max(201.0)).round();
        let capacity = (3.0 * rate * service_us / 1e6).ceil();
        let length_s = log(0.05, 3.0);
        let between_s = log(0.2, 10.0);
        let open = random.next_unit() < 0.5;
        let load = match open {
            true => format!("--rate {rate} --connections {connections}"),
            false => format!("--users {connections} --think {}us", (connections / rate * 1e6).round()),
        };
        // They take no more than a third of the time.
        let every_s = (between_s < 5.0).then(|| between_s.max(3.0 * length_s));
        let name = if of == Party::Client { "client_stall" } else { "stall" };
        let mut stops = String::new();
        let mut at_s = 1.0 + (LENGTH_S - length_s.min(4.0)) * random.next_unit();
        if let Some(every_s) = every_s {
            at_s = 1.0 + every_s * random.next_unit();
        }
        while at_s + length_s < 1.0 + LENGTH_S {
            stops += &format!("&{name}={:.0}us@{:.0}us", length_s * 1e6, at_s * 1e6);
            match every_s {
                Some(every_s) => at_s += every_s,
                None => break,
            }
        }
        let seed = random.next_below(1_000_000);
        let target =
            format!("sim:?service={service_us}us&distribution=exponential&capacity={capacity}&seed={seed}");
        Trial { target, load, stops }
    }

    fn run(&self, dyno: &Dyno, stops: &str) -> Value {
        let target = format!("{}{stops}", self.target);
        let common = ["run", &target, "--duration", "8s", "--warmup", "1s", "--no-out", "--json", "--quiet"];
        let load: Vec<&str> = self.load.split(' ').collect();
        let output = dyno.run(&[&common[..], &load].concat());
        assert_exit(&output, &[0, 5]);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn measured(summary: &Value) -> &Value {
    summary["phases"].as_array().unwrap().iter().find(|phase| phase["name"] == "measure").unwrap()
}

/// The greatest over the operations.
fn greatest(summary: &Value, pointer: &str) -> f64 {
    let metrics = measured(summary)["metrics"].as_array().unwrap().iter();
    metrics.filter_map(|metric| metric.pointer(pointer)?.as_f64()).fold(0.0, f64::max)
}

/// Figures that the stops have moved.
fn moved(usual: &Value, stopped: &Value) -> Vec<&'static str> {
    let throughput = |summary: &Value| measured(summary)["throughput"].as_f64().unwrap();
    let percentile = |name: &str| {
        let pointer = format!("/response/percentiles_us/{name}");
        let (before, after) = (greatest(usual, &pointer), greatest(stopped, &pointer));
        (after - before).abs() > (MOVED.0 * before).max(MOVED.1)
    };
    let rates = (throughput(usual), throughput(stopped));
    let all = [
        ("throughput", (rates.0 - rates.1).abs() > MOVED.0 * rates.0),
        ("p50", percentile("p50")),
        ("p99", percentile("p99")),
    ];
    all.into_iter().filter(|(_, moved)| *moved).map(|(name, _)| name).collect()
}

/// Checks among these that speak against the run.
fn says(summary: &Value, wanted: impl Fn(&str) -> bool) -> Vec<&str> {
    let reasons = summary["verdict"]["reasons"].as_array().unwrap().iter();
    let against = reasons.filter(|reason| reason["trust"] != "valid");
    against.filter_map(|reason| reason["check"].as_str()).filter(|check| wanted(check)).collect()
}

/// The check of the reason that is told first.
fn first(summary: &Value) -> Option<&str> {
    says(summary, |_| true).first().copied()
}

#[test]
#[expect(clippy::print_stdout, reason = "the rows of docs/reliability.md, where they are asked for")]
fn the_right_party_is_named() {
    let asked = std::env::var("DYNO_STOPS").ok().and_then(|text| text.parse().ok());
    let mut random = Stream::new(crate::known_answers::seed(), 2, Purpose::Choice);
    let dyno = Dyno::new();
    // Of each party: trials and right ones, where no figure was moved and where one was.
    let mut tally = [[(0, 0); 2]; 2];
    let mut wrong = Vec::new();
    for number in 0..asked.unwrap_or(40) {
        let of = if number % 2 == 0 { Party::Client } else { Party::Server };
        let trial = Trial::drawn(&mut random, of);
        let (usual, stopped) = (trial.run(&dyno, ""), trial.run(&dyno, &trial.stops));
        let moved = moved(&usual, &stopped);
        let client = says(&stopped, |check| check == "client_share");
        let server = says(&stopped, |check| OF_THE_SERVER.contains(&check));
        // What a stop takes from throughput is told from two per cent on.
        let right = match of {
            Party::Client => {
                server.is_empty() && (moved.is_empty() || first(&stopped) == Some("client_share"))
            }
            Party::Server => client.is_empty(),
        };
        let cell = &mut tally[usize::from(of == Party::Server)][usize::from(!moved.is_empty())];
        *cell = (cell.0 + 1, cell.1 + usize::from(right));
        let quiet = says(&usual, |check| check == "client_share" || OF_THE_SERVER.contains(&check));
        if !right || !quiet.is_empty() {
            let Trial { target, load, stops } = &trial;
            wrong.push(format!(
                "{target}{stops} {load}: moved {moved:?}, against the client {client:?}, the server {server:?}, without stops \
                 {quiet:?}"
            ));
        }
    }
    let all: usize = tally.iter().flatten().map(|cell| cell.0).sum();
    let told = format!("client, server x not moved, moved: {tally:?}; wrong: {wrong:#?}");
    if asked.is_some() {
        println!("{told}");
    }
    // Fewer than two in a hundred.
    assert!(wrong.len() * 50 <= all, "{told}");
}
