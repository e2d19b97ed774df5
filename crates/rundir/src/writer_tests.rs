//! What is refused and what fails; what is written is read back in `tests/read_back.rs`.

use super::*;
use crate::fixtures::{run, summary};

fn open(path: &Path) -> io::Result<Writer> {
    Writer::create(path, run(), &Environment::default(), Scale::Ns64)
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
    writer.finish(&summary(&[]), Status::Complete);
    assert_eq!(writer.failure(), Some(failure.as_str()));
}
