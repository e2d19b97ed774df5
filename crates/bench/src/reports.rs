//! `dyno-bench reports FOLDER`: reports and comparisons of long runs, with their time and memory.

use anyhow::{Context, Result, bail};
use dyno_record::{Scale, ThreadInterval, Totals};
use dyno_rundir::monitor::{Kind, MonitorWriter};
use dyno_rundir::schema::{Client, Environment, Run, Status, Summary, Trust, VERSION, Verdict};
use dyno_rundir::{IntervalFacts, RunWriter};
use dyno_types::Outcome;
use dyno_types::rng::{Purpose, Stream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// Operations of a run.
const OPERATIONS: usize = 5;

/// Series that monitors recorded.
const SERIES: usize = 200;

/// Samples of an operation in a second.
const SAMPLES: usize = 300;

/// When the runs are said to have begun, Unix time in seconds.
const BEGIN: u64 = 1_700_000_000;

fn names() -> Vec<String> {
    ["READ", "UPDATE", "INSERT", "SCAN", "DELETE"].into_iter().take(OPERATIONS).map(str::to_owned).collect()
}

/// About log-normal, around 400 us.
fn latency_ns(random: &mut Stream) -> u64 {
    let normal = (0..12).map(|_| random.next_unit()).sum::<f64>() - 6.0;
    (400_000.0 * (normal * 0.4).exp()) as u64
}

fn run() -> Run {
    Run {
        version: VERSION,
        dyno: env!("CARGO_PKG_VERSION").into(),
        command: ["dyno", "run"].map(str::to_owned).to_vec(),
        started: "2023-11-14T22:13:20Z".into(),
        status: Status::Running,
        target: "made up".into(),
        database: "made up".into(),
        facts: Default::default(),
        settings: Vec::new(),
        metrics: [("measure".to_owned(), names())].into(),
        unit_ns: 64,
        plans: Default::default(),
    }
}

/// The loop of a run: in the open one the server's share of each response time is recorded, too.
#[derive(Clone, Copy, PartialEq)]
enum Loop {
    Closed,
    Open,
}

/// A run of that many seconds; nothing where it is already.
fn written(path: &Path, seconds: u64, seed: u64, kind: Loop) -> Result<()> {
    if path.join("summary.json").is_file() {
        return Ok(());
    }
    if path.exists() {
        bail!("{}: begun, but not complete: remove it", path.display());
    }
    let names = names();
    let mut random = Stream::new(seed, 0, Purpose::Choice);
    let mut writer = RunWriter::create_run(path, run(), &Environment::default(), Scale::Ns64)?;
    let begin = UNIX_EPOCH + Duration::from_secs(BEGIN);
    writer.event_at(begin, "begin", "measure");
    let mut all = Totals::new(OPERATIONS, Scale::Ns64);
    for second in 0..seconds {
        let mut interval = ThreadInterval::new(OPERATIONS, Scale::Ns64);
        let count = SAMPLES + random.next_below(20) as usize;
        for metric in 0..OPERATIONS {
            for _ in 0..count {
                let ns = latency_ns(&mut random);
                interval.record_ended(metric as u16, Outcome::Ok, ns, ns + 1_000);
                if kind == Loop::Open {
                    interval.record_server(metric as u16, ns);
                }
                interval.arrivals += 1;
                interval.ended[Outcome::Ok as usize] += 1;
            }
        }
        let mut totals = Totals::new(OPERATIONS, Scale::Ns64);
        totals.add_interval(&interval);
        all.add_interval(&interval);
        writer.write_interval("measure", Duration::from_secs(second), 1.0, &totals, IntervalFacts::default());
    }
    writer.event_at(begin + Duration::from_secs(seconds), "end", "measure");
    let facts = dyno_analysis::PhaseFacts {
        name: "measure".into(),
        seconds: seconds as f64,
        offered: (kind == Loop::Open).then(|| all.arrivals as f64 / seconds as f64),
        client: Client { users: 8, pipeline: 1, batch: 1, threads: 8, ..Client::default() },
        ..Default::default()
    };
    let summary = Summary {
        version: VERSION,
        dyno: env!("CARGO_PKG_VERSION").into(),
        status: Status::Complete,
        target: "made up".into(),
        database: "made up".into(),
        started: "2023-11-14T22:13:20Z".into(),
        title: format!("{seconds} s"),
        verdict: Verdict::nothing_judged(Trust::Valid),
        thresholds: Vec::new(),
        strict: false,
        phases: vec![dyno_analysis::summarise_phase(facts, &names, &all)],
        faults: Vec::new(),
        pairs: Vec::new(),
        collections: Default::default(),
    };
    watched(path, seconds, &mut random)?;
    writer.finish(&summary, Status::Complete);
    Ok(())
}

fn watched(path: &Path, seconds: u64, random: &mut Stream) -> Result<()> {
    let mut monitor = MonitorWriter::create_in(path, 1_000.0)?;
    let names: Vec<String> = (0..SERIES).map(|n| format!("series.{n}")).collect();
    for second in 0..=seconds {
        let at = (BEGIN + second) * 1_000_000_000;
        let values: Vec<f64> = names.iter().map(|_| (random.next_unit() * 1e6).round() / 1e2).collect();
        let row = names.iter().zip(values).map(|(name, value)| (name.as_str(), Kind::Gauge, value));
        monitor.write_row("database", at, row);
        let cpu = [("cpu.user_s", 0.5), ("cpu.idle_s", 1.0)];
        monitor.write_row(
            "host",
            at,
            cpu.iter().map(|(name, each)| (*name, Kind::Counter, second as f64 * each)),
        );
    }
    match monitor.first_failure() {
        Some(failure) => bail!("{failure}"),
        None => Ok(()),
    }
}

/// Runs dyno in the folder and prints what it took.
fn measured(folder: &Path, what: &str, goal: &str, args: &[&str]) -> Result<()> {
    let program = std::env::current_exe()?.with_file_name("dyno");
    let mut best = (f64::INFINITY, 0.0);
    for _ in 0..3 {
        let done = Command::new("/usr/bin/time")
            .args(["-f", "%e %M"])
            .arg(&program)
            .args(args)
            .current_dir(folder)
            .output()
            .context("/usr/bin/time (Debian: apt-get install time)")?;
        let sentence = String::from_utf8_lossy(&done.stderr).into_owned();
        let line = sentence.lines().last().unwrap_or_default();
        let figure = |at: usize| line.split(' ').nth(at).and_then(|text| text.parse::<f64>().ok());
        let (Some(seconds), Some(kib)) = (figure(0), figure(1)) else { bail!("{args:?}: {sentence}") };
        if !done.status.success() {
            bail!("{args:?}: {sentence}");
        }
        best = if seconds < best.0 { (seconds, kib) } else { best };
    }
    println!("{what:44} {:6.2} s {:6.0} MiB   goal: {goal}", best.0, best.1 / 1_024.0);
    Ok(())
}

/// All of it. Directories that are there already are used again.
pub fn run_all(arguments: &[String]) -> Result<()> {
    let folder = Path::new(arguments.first().context("expected a folder for the runs")?);
    std::fs::create_dir_all(folder)?;
    use Loop::{Closed, Open};
    for (name, seconds, kind) in
        [("hour", 3_600, Closed), ("day", 86_400, Closed), ("open-day", 86_400, Open)]
    {
        written(&folder.join(name), seconds, 1, kind)?;
    }
    for side in 0..2u64 {
        for run in 0..30 {
            let path = folder.join(format!("side-{side}/{run:02}"));
            written(&path, 60, 100 * side + run + 2, Closed)?;
        }
    }
    let page = |name: &str| format!("{name}.html");
    let (hour, day, open_day, sides) = (page("hour"), page("day"), page("open-day"), page("sides"));
    let report = |dir, out| vec!["report", dir, "--format", "html", "-o", out];
    measured(folder, "report of an hour", "2 s, 300 MB", &report("hour", &hour))?;
    measured(folder, "report of a day", "10 s, 500 MB", &report("day", &day))?;
    measured(folder, "report of a day, open loop", "10 s, 500 MB", &report("open-day", &open_day))?;
    measured(folder, "comparison of 2 x 30 runs", "5 s", &["compare", "side-0", "side-1", "--html", &sides])?;
    for page in [hour, day, open_day, sides] {
        println!("{page:44} {:9} bytes", std::fs::metadata(folder.join(&page))?.len());
    }
    Ok(())
}
