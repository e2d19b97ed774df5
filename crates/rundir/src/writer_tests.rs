//! Tests of what is refused and what fails; what is written is read back in `tests/read_back.rs`.

use super::*;
use crate::fixtures::{empty_summary, run};
use crate::schema::Planned;

fn open(path: &Path) -> io::Result<RunWriter> {
    RunWriter::create_run(path, run(), &Environment::default(), Scale::Ns64)
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
fn what_happens_is_noted_with_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = open(folder.path()).unwrap();
    assert_eq!((writer.run_path(), writer.first_failure()), (folder.path(), None));
    writer.write_workers(&[]);
    assert!(!folder.path().join(WORKERS).exists(), "no worker applied the load");
    let before = jiff::Timestamp::now();
    writer.write_event("note", "now");
    let after = jiff::Timestamp::now();
    writer.event_at(SystemTime::UNIX_EPOCH + Duration::from_nanos(1_500_000_001), "note", "then");
    let text = std::fs::read_to_string(folder.path().join("events.jsonl")).unwrap();
    let lines: Vec<crate::Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let at: jiff::Timestamp = lines[0].at.parse().unwrap();
    assert!(before <= at && at <= after, "{at}");
    assert_eq!((lines[0].text.as_str(), lines[1].at.as_str()), ("now", "1970-01-01T00:00:01.500000001Z"));
    assert_eq!((lines[1].event.as_str(), lines[1].at_ms()), ("note", Some(1_500.000_001)));
    assert_eq!(crate::Event { at: "yesterday".into(), ..lines[1].clone() }.at_ms(), None);
}

#[test]
fn the_first_write_that_fails_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let mut writer = open(&path).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    writer.name_metrics("measure", &[], Planned::default(), false);
    let failure = writer.first_failure().unwrap().to_owned();
    assert!(failure.starts_with(&*path.to_string_lossy()), "{failure}");
    writer.finish(&empty_summary(&[]), Status::Complete);
    assert_eq!(writer.first_failure(), Some(failure.as_str()));
}
