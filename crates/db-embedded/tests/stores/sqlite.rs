//! What is SQLite's own: locks, tables that are there already, and names it cannot have.

use crate::content::{Sample, request};
use dyno_types::{Fields, Outcome, Request, Verb};
use rusqlite::Connection;
use std::time::{Duration, Instant};

fn uri(directory: &tempfile::TempDir, options: &str) -> String {
    format!("sqlite:{}/db?{options}", directory.path().display())
}

#[test]
fn a_locked_database_is_busy() {
    for journal in ["wal", "delete"] {
        let directory = tempfile::tempdir().unwrap();
        let uri = uri(&directory, &format!("busy_timeout=20ms&journal={journal}"));
        let store = dyno_db_embedded::open(&uri, Sample::new().arc()).unwrap();
        let mut session = store.session().unwrap();
        assert_eq!(session.execute(&request(Verb::Insert, 1)).outcome, Outcome::Ok);

        let other = Connection::open(directory.path().join("db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let begun = Instant::now();
        for verb in [Verb::Insert, Verb::Update, Verb::Delete] {
            assert_eq!(session.execute(&request(verb, 1)).outcome, Outcome::Busy, "{journal}");
            assert!(session.last_error().contains("locked"), "{}", session.last_error());
        }
        assert!(begun.elapsed() >= Duration::from_millis(60), "the timeout was not waited for");
        let batch = [request(Verb::Insert, 2), request(Verb::Insert, 3)];
        assert_eq!(session.execute_batch(&batch).outcome, Outcome::Busy, "{journal}");
        let verified = session.execute(&request(Verb::Read, 1)).verified;
        assert_eq!(verified.map(|v| v.outcome), Some(Outcome::Ok), "{journal}");

        other.execute_batch("COMMIT").unwrap();
        assert_eq!(session.execute_batch(&batch).outcome, Outcome::Ok, "{journal}");
        assert_eq!(store.count(), Ok(Some(3)), "{journal}");
    }
}

#[test]
fn two_writers_with_a_tiny_timeout() {
    let directory = tempfile::tempdir().unwrap();
    let store = dyno_db_embedded::open(&uri(&directory, "busy_timeout=1ms"), Sample::new().arc()).unwrap();
    let written: u64 = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let mut session = store.session().unwrap();
                scope.spawn(move || {
                    let outcomes =
                        (0..200).map(|i| session.execute(&request(Verb::Insert, writer * 1000 + i)).outcome);
                    let outcomes: Vec<Outcome> = outcomes.collect();
                    assert!(
                        outcomes.iter().all(|o| matches!(o, Outcome::Ok | Outcome::Busy)),
                        "{outcomes:?}"
                    );
                    outcomes.iter().filter(|o| o.is_ok()).count() as u64
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert!(written > 0);
    assert_eq!(
        store.count(),
        Ok(Some(written)),
        "a busy insert was counted as written, or one that was written as busy"
    );
}

#[test]
fn other_errors_are_server_errors_with_words() {
    let directory = tempfile::tempdir().unwrap();
    let store = dyno_db_embedded::open(&uri(&directory, "synchronous=off"), Sample::new().arc()).unwrap();
    let other = Connection::open(directory.path().join("db")).unwrap();
    other
        .execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON usertable BEGIN SELECT RAISE(ABORT, 'disk on fire'); END",
        )
        .unwrap();
    let mut session = store.session().unwrap();
    assert_eq!(session.execute(&request(Verb::Insert, 1)).outcome, Outcome::ServerError);
    assert!(session.last_error().contains("disk on fire"), "{}", session.last_error());
}

#[test]
fn a_table_with_other_columns_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    drop(dyno_db_embedded::open(&uri(&directory, ""), Sample::named(&["a", "b"]).arc()).unwrap());
    let error = dyno_db_embedded::open(&uri(&directory, ""), Sample::named(&["a", "c"]).arc())
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("[\"c\"]") && error.contains("usertable"), "{error}");
}

#[test]
fn names_that_sqlite_cannot_have() {
    let directory = tempfile::tempdir().unwrap();
    for (sample, message) in [
        (Sample::named(&["a", "A"]), "ignores case"),
        (Sample::named(&["a\0b"]), "NUL"),
        (Sample::named(&[]), "no fields"),
        (Sample { names: vec![vec![0xFF]], writes: 1, ..Sample::new() }, "not UTF-8"),
        (Sample { table: "sqlite_x".to_owned(), ..Sample::new() }, "reserved"),
    ] {
        let error = dyno_db_embedded::open(&uri(&directory, ""), sample.arc()).err().unwrap().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn an_unknown_field_is_a_bad_request() {
    let directory = tempfile::tempdir().unwrap();
    let store = dyno_db_embedded::open(&uri(&directory, ""), Sample::new().arc()).unwrap();
    let mut session = store.session().unwrap();
    let read = Request { fields: Fields::One(77), ..request(Verb::Read, 1) };
    assert_eq!(session.execute(&read).outcome, Outcome::BadRequest);
    assert!(session.last_error().contains("no such field"), "{}", session.last_error());
}

#[test]
fn settings_are_what_was_asked_for() {
    for (options, message) in [
        ("", "WAL, synchronous=FULL: every commit is fsynced"),
        ("synchronous=normal", "WAL, synchronous=NORMAL: fsynced at checkpoints only"),
        (
            "journal=delete&synchronous=EXTRA",
            "(DELETE), synchronous=EXTRA: every commit is fsynced, and the removal of its journal",
        ),
        ("journal=memory", "a crash inside a transaction may corrupt"),
        ("journal=off&synchronous=off", "no journal (OFF), synchronous=OFF: nothing is ever fsynced"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let store = dyno_db_embedded::open(&uri(&directory, options), Sample::new().arc()).unwrap();
        assert!(store.durability().contains(message), "{options}: {}", store.durability());
        assert!(store.engine().starts_with("SQLite 3."), "{}", store.engine());
        drop(store);
        let other = Connection::open(directory.path().join("db")).unwrap();
        let journal: String = other.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
        assert_eq!(journal == "wal", !options.contains("journal"), "{options}");
    }
}

#[test]
fn an_update_that_changes_nothing_writes_nothing() {
    // SQLite's own shortcut (btreeOverwriteContent). It matters to a workload that writes equal values again: such
    // updates are not synced either.
    let directory = tempfile::tempdir().unwrap();
    let store = dyno_db_embedded::open(&uri(&directory, ""), Sample::new().arc()).unwrap();
    let mut session = store.session().unwrap();
    let wal_bytes = || directory.path().join("db-wal").metadata().unwrap().len();
    let mut update = Request { fields: Fields::One(3), ..request(Verb::Update, 1) };
    assert_eq!(session.execute(&request(Verb::Insert, 1)).outcome, Outcome::Ok);
    let before = wal_bytes();
    assert_eq!(session.execute(&update).outcome, Outcome::Ok);
    assert_eq!(wal_bytes(), before);
    update.seed = 1;
    assert_eq!(session.execute(&update).outcome, Outcome::Ok);
    assert!(wal_bytes() > before);
}
