//! What is refused and what fails; what is written is read back in `tests/read_back.rs`.

use super::*;
use crate::schema::{Trust, VERSION, Verdict};

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
        phases: Vec::new(),
        faults: Vec::new(),
        pairs: Vec::new(),
        collections: Default::default(),
    }
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
