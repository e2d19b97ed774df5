//! Rates that change, on a real server: the seconds of a run are those of the integrated rate, and workers make what one makes.

use dyno_testkit::{Dyno, RedisProcess, arrivals, assert_exit, outcome, phase, skip};
use serde_json::Value;
use std::f64::consts::TAU;

/// Intervals of the measured phase: what the rate asked for, and what was done.
fn intervals(dyno: &Dyno, folder: &str) -> Vec<(f64, u64)> {
    let text = std::fs::read_to_string(dyno.path(folder).join("intervals.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let measured = lines.filter(|line| line["phase"] == "measure");
    measured
        .map(|line| {
            let done = line["completed"].as_u64().or(line["ended"]["ok"].as_u64()).unwrap_or(0);
            (line["due"].as_f64().unwrap(), done)
        })
        .collect()
}

#[test]
fn seconds_of_three_periods_are_those_of_the_integrated_rate() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("rates") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    // A cosine between 100/s and 900/s in 4 s: from its least rate, 500 t - 400 * 4 / 2 pi * sin(2 pi t / 4) are due.
    let due = |seconds: f64| 500.0 * seconds - 400.0 * 4.0 / TAU * (TAU * seconds / 4.0).sin();
    let ran = dyno.run(&[
        "run",
        &uri,
        "--command",
        "INCR n",
        "--rate",
        "day:100:900:4s",
        "--arrivals",
        "constant",
        "--duration",
        "12s",
        "--warmup",
        "0s",
        "--out",
        "d",
        "-q",
    ]);
    assert_exit(&ran, &[0, 5]);
    let seconds = intervals(&dyno, "d");
    let mut done = 0;
    for (number, (asked, completed)) in seconds.iter().take(12).enumerate() {
        let (from, to) = (number as f64, number as f64 + 1.0);
        assert!((asked - (due(to) - due(from))).abs() < 0.01, "second {number}: {asked}");
        done += completed;
        // No more is done than was due, and no less than was due most of a second before: a constant rate has twice as much
        // after a second, and so in every period.
        let (least, most) = (due(to - 0.8), due(to) + 1.0);
        assert!((least..=most).contains(&(done as f64)), "second {number}: {done} of {least} to {most}");
    }
    let measured = dyno.summary("d");
    let measured = phase(&measured, "measure");
    assert_eq!(arrivals(measured), 6_000, "three periods of 2,000");
    assert_eq!(server.cli(&["GET", "n"]), "6000");
    assert!((measured["offered"].as_f64().unwrap() - 500.0).abs() < 0.1);
    let page = std::fs::read_to_string(dyno.path("d/report.html")).unwrap();
    assert!(page.contains(r#""n":"due""#), "the report draws what was due");
}

#[test]
fn bursts_are_sent_and_nothing_between_them() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("rates") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    std::fs::write(dyno.path("r.csv"), "time,rate\n0,400\n2,0\n4,400\n6,0\n").unwrap();
    // The file's points are those of these bursts.
    for rate in ["bursty:200:400:4s", "file:r.csv:steps"] {
        server.cli(&["FLUSHALL"]);
        let ran = dyno.run(&[
            "run",
            &uri,
            "--command",
            "INCR n",
            "--rate",
            rate,
            "--arrivals",
            "constant",
            "--duration",
            "8s",
            "--warmup",
            "0s",
            "--out",
            "d",
            "-q",
        ]);
        assert_exit(&ran, &[0, 5]);
        let due: Vec<f64> = intervals(&dyno, "d").iter().map(|(due, _)| due.round()).collect();
        // Behind the last arrival nothing is recorded any more.
        assert_eq!(due[..6], [400.0, 400.0, 0.0, 0.0, 400.0, 400.0], "{rate}");
        assert!(due[6..].iter().all(|due| *due == 0.0), "{due:?}");
        // The run is as long as asked, though nothing is due in the end.
        assert_eq!(phase(&dyno.summary("d"), "measure")["seconds"], 8.0);
        assert_eq!(server.cli(&["GET", "n"]), "1600", "{rate}");
        std::fs::remove_dir_all(dyno.path("d")).unwrap();
    }
}

#[test]
fn two_workers_make_the_arrivals_of_one() {
    let Some(server) = RedisProcess::start(&[]) else { return skip("rates") };
    let (dyno, uri) = (Dyno::new(), server.uri());
    let mut seen = Vec::new();
    for workers in [1, 2] {
        let text = format!(
            "target: {uri}
workload: {{ commands: {{ list: ['INCR n'] }} }}
client: {{ workers: {workers} }}
phases: {{ measure: {{ connections: 8, rate: 'mmpp:100:500ms,2k:200ms', duration: 4s, warmup: 1s }} }}
seed: 6
"
        );
        std::fs::write(dyno.path("x.yaml"), text).unwrap();
        let out = format!("x{workers}");
        assert_exit(&dyno.run(&["run", "x.yaml", "--out", &out, "-q"]), &[0, 5]);
        let run = format!("{out}/runs/cell0001-rep01");
        let summary = dyno.summary(&run);
        let due: Vec<f64> = intervals(&dyno, &run).iter().map(|(due, _)| *due).take(4).collect();
        let measured = phase(&summary, "measure");
        assert_eq!(outcome(measured, "ok"), arrivals(measured));
        seen.push((arrivals(measured), due));
    }
    assert_eq!(seen[0], seen[1]);
    let (all, due) = &seen[0];
    let asked: f64 = due.iter().sum();
    assert!((*all as f64 - asked).abs() < 5.0 * asked.sqrt(), "{all} arrivals of {asked}");
    let (least, most) =
        (due.iter().copied().fold(f64::MAX, f64::min), due.iter().copied().fold(0.0, f64::max));
    assert!(most > 1.3 * least, "the seconds differ: {due:?}");
}
