//! A run that is written and read back.

use super::*;
use crate::RunDir;
use crate::schema::{Phase, Trust, VERSION, Verdict};
use dyno_record::Interval;
use dyno_types::Outcome;

fn run() -> Run {
    Run {
        version: VERSION,
        dyno: "1.0.0".into(),
        command: vec!["dyno".into(), "run".into()],
        started: "2023-11-14T22:13:20Z".into(),
        status: Status::Running,
        target: "here".into(),
        database: "none".into(),
        facts: Default::default(),
        settings: Vec::new(),
        metrics: Default::default(),
        unit_ns: 64,
        plans: Default::default(),
    }
}

fn open(path: &Path) -> io::Result<Writer> {
    Writer::create(path, run(), &Environment::default(), Scale::Ns64)
}

/// As many reads of 1 ms that ended well, and one update that did not.
fn second_of(reads: u64) -> Totals {
    let mut interval = Interval::new(2, Scale::Ns64);
    for _ in 0..reads {
        interval.record(0, Outcome::Ok, 1_000_000, 1_500_000);
    }
    interval.record(1, Outcome::Busy, 2_000_000, 2_000_000);
    interval.arrivals = reads + 1;
    interval.ended[Outcome::Ok as usize] = reads;
    interval.ended[Outcome::Busy as usize] = 1;
    let mut totals = Totals::new(2, Scale::Ns64);
    totals.add(&interval);
    totals
}

/// A phase of two seconds.
fn phase(name: &str) -> Phase {
    serde_json::from_value(serde_json::json!({
        "name": name, "seconds": 2.0, "arrivals": 9, "outcomes": {"ok": 7, "busy": 2}, "throughput": 3.5, "metrics": [],
        "late_replies": 0, "reconnects": 0, "redirects": 0, "backlog": 0, "drops": {}, "errors": {},
        "client": {"pipeline": 1, "busy_share": 0.5, "pinned": true, "steal_share": 0.0},
    }))
    .unwrap()
}

fn summary() -> Summary {
    Summary {
        version: VERSION,
        dyno: "1.0.0".into(),
        status: Status::Complete,
        target: "here".into(),
        database: "none".into(),
        started: "2023-11-14T22:13:20Z".into(),
        title: "reads".into(),
        verdict: Verdict { trust: Trust::Valid, reasons: Vec::new(), checks: Vec::new() },
        thresholds: Vec::new(),
        phases: vec![phase("load"), phase("measure")],
        faults: Vec::new(),
        pairs: Vec::new(),
        collections: Default::default(),
    }
}

fn pair(number: usize, phase_name: &str) -> Pair {
    Pair { number, target: format!("here{number}"), phases: vec![phase(phase_name)] }
}

#[test]
fn a_run_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut writer = open(&path).unwrap();
    let names = ["READ", "UPDATE"].map(str::to_owned);
    for name in ["load", "measure"] {
        writer.metrics(name, &names);
        writer.plan(name, Planned { seconds: Some(2.0), ..Planned::default() });
    }
    writer.event_at(std::time::UNIX_EPOCH + Duration::from_secs(60), "begin", "measure");
    writer.event("end", "measure");
    writer.interval("load", Duration::ZERO, 1.0, &second_of(1), None);
    for (second, reads) in [(0, 3), (1, 4)] {
        writer.interval("measure", Duration::from_secs(second), 1.0, &second_of(reads), None);
    }
    writer.workers(&[pair(1, "load"), pair(2, "load")]);
    writer.workers(&[pair(2, "measure")]);
    let before = RunDir::open(&path).unwrap();
    assert_eq!((before.run.status, &before.summary), (Status::Running, &None));
    writer.finish(&summary(), Status::Complete);
    assert_eq!(writer.failure(), None);

    let read = RunDir::open(&path).unwrap();
    assert_eq!((read.run.status, &read.summary), (Status::Complete, &Some(summary())));
    assert_eq!(read.run.metrics["load"], names);
    assert_eq!(read.run.plans["measure"].seconds, Some(2.0));
    let mut both = second_of(3);
    both.merge(&second_of(4));
    let [load, measure] = read.phases.as_slice() else { panic!("{:?}", read.phases) };
    assert_eq!((load.name.as_str(), load.seconds, &load.totals), ("load", 1, &second_of(1)));
    assert_eq!((measure.name.as_str(), measure.seconds, &measure.totals), ("measure", 2, &both));
    let whole = std::fs::read_to_string(path.join(TOTALS)).unwrap();
    let whole = hlog::read(&whole, Scale::Ns64).unwrap();
    assert_eq!((whole["load.READ.ok.service"].count(), whole["measure.READ.ok.service"].count()), (1, 7));
    let events: Vec<_> = read.events().unwrap().into_iter().map(|e| (e.event, e.text)).collect();
    assert_eq!(events, [("begin", "measure"), ("end", "measure")].map(|(a, b)| (a.to_owned(), b.to_owned())));
    assert_eq!(read.events().unwrap()[0].at_ms(), Some(60_000.0));
    let workers = read.workers().unwrap();
    let of = |pair: &Pair| (pair.number, pair.phases.iter().map(|p| p.name.clone()).collect::<Vec<_>>());
    assert_eq!(of(&workers[0]), (1, vec!["load".to_owned()]));
    assert_eq!(of(&workers[1]), (2, vec!["load".to_owned(), "measure".to_owned()]));
    // The second second alone.
    let part = read.window(1, 9).unwrap();
    assert_eq!((part.seconds, part.operations, part.latencies["READ"].count()), (1, 4, 4));
    assert_eq!((part.latencies.len(), read.window(2, 9).unwrap().seconds), (1, 0));
}

#[test]
fn a_directory_must_be_new_or_empty() {
    let folder = tempfile::tempdir().unwrap();
    assert!(must_be_new(&folder.path().join("none")).is_ok());
    drop(open(folder.path()).unwrap());
    let refused = open(folder.path()).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
    assert!(refused.to_string().contains("not empty"), "{refused}");
}

#[test]
fn the_first_write_that_fails_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut writer = open(&path).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    writer.metrics("measure", &[]);
    let failure = writer.failure().unwrap().to_owned();
    assert!(failure.starts_with(&*path.to_string_lossy()), "{failure}");
    writer.finish(&summary(), Status::Complete);
    assert_eq!(writer.failure(), Some(failure.as_str()));
}
