//! What every store that stores must do alike. Each test runs over all stores and their ways of being durable.

use crate::content::{Sample, request};
use dyno_types::{Executed, Fields, Outcome, RecordVerification, Request, Store, StoreSession, Verb};
use std::path::Path;
use std::sync::{Arc, Barrier};

/// Every store, with the options that change how requests are executed.
const ALWAYS: [&str; 9] = [
    // Long time-outs: a slow disk must not fail the tests with several writers.
    "sqlite:{}/db?busy_timeout=60s",
    "sqlite:{}/db?journal=delete&synchronous=normal&busy_timeout=60s",
    "sqlite:{}/db?journal=memory&synchronous=off&cache=1MiB&mmap=16MiB&busy_timeout=60s",
    "sqlite:{}/db?journal=off&synchronous=extra&busy_timeout=60s",
    "redb:{}/db",
    "redb:{}/db?durability=none&cache=8MiB",
    "fjall:{}/db",
    "fjall:{}/db?durability=fdatasync",
    "fjall:{}/db?durability=none&cache=8MiB",
];

/// The same of stores that need a feature.
const LIBRARIES: &[&str] = &[
    #[cfg(feature = "lmdb")]
    "lmdb:{}/db?map=1GiB",
    #[cfg(feature = "lmdb")]
    "lmdb:{}/db?sync=none&writemap=true&map=1GiB",
    #[cfg(feature = "rocksdb")]
    "rocksdb:{}/db?wal=nosync",
    #[cfg(feature = "rocksdb")]
    "rocksdb:{}/db?cache=8MiB&compression=lz4",
    #[cfg(feature = "wiredtiger")]
    "wiredtiger:{}/db?journal=nosync",
    #[cfg(feature = "wiredtiger")]
    "wiredtiger:{}/db?cache=16MiB&compression=none&checkpoint=1s",
];

fn stores() -> impl Iterator<Item = &'static str> {
    ALWAYS.into_iter().chain(LIBRARIES.iter().copied())
}

fn open(form: &str, directory: &Path, sample: Sample) -> Arc<dyn Store> {
    let uri = form.replace("{}", directory.to_str().unwrap());
    dyno_db_embedded::open(&uri, sample.arc()).unwrap()
}

/// A table has the columns of its records: SQLite refuses it to a workload with others, and what is to be tried cannot be.
fn has_columns(form: &str, directory: &Path, fewer: Sample) -> bool {
    let columns = form.starts_with("sqlite:");
    if columns {
        let uri = form.replace("{}", directory.to_str().unwrap());
        let refused = dyno_db_embedded::open(&uri, fewer.arc()).map(drop).unwrap_err();
        assert!(format!("{refused:?}").contains("records of this workload have"), "{refused:?}");
    }
    columns
}

/// Runs `test` once per store, in a fresh directory.
fn each(sample: &Sample, test: impl Fn(&str, &Path, Arc<dyn Store>)) {
    for form in stores() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(form, directory.path(), sample.clone());
        test(form, directory.path(), store);
    }
}

fn ok(records: u32, verified: Option<Outcome>) -> Executed {
    let verified = verified.map(|outcome| RecordVerification { outcome, took_ns: 0 });
    Executed { outcome: Outcome::Ok, records, verified }
}

fn not_found() -> Executed {
    Executed::new(Outcome::NotFound, 0)
}

fn insert(session: &mut dyn StoreSession, keys: impl IntoIterator<Item = u64>) {
    for key in keys {
        assert_eq!(session.execute(&request(Verb::Insert, key)), ok(0, None), "{}", session.last_error());
    }
}

/// Reads `key` with all ways of naming fields; all must agree.
fn read(session: &mut dyn StoreSession, key: u64) -> Executed {
    let all = session.execute(&request(Verb::Read, key));
    let named = session.execute(&Request { fields: Fields::Named, ..request(Verb::Read, key) });
    assert_eq!(all, named);
    all
}

fn read_one(session: &mut dyn StoreSession, key: u64, field: u16) -> Executed {
    session.execute(&Request { fields: Fields::One(field), ..request(Verb::Read, key) })
}

const RIGHT: Option<Outcome> = Some(Outcome::Ok);
const WRONG: Option<Outcome> = Some(Outcome::Mismatch);

#[test]
fn what_is_inserted_is_read() {
    each(&Sample::new(), |form, _, store| {
        let mut session = store.session().unwrap();
        assert_eq!(read(&mut *session, 1), not_found(), "{form}");
        insert(&mut *session, [1, 2]);
        assert_eq!(read(&mut *session, 1), ok(1, RIGHT), "{form}");
        assert_eq!(read_one(&mut *session, 2, 9), ok(1, RIGHT), "{form}");
        assert_eq!(read(&mut *session, 3), not_found(), "{form}");
        assert_eq!(store.count(), Ok(Some(2)), "{form}");
        assert_eq!(
            session.execute(&request(Verb::Topology, 0)),
            Executed::new(Outcome::NotImplemented, 0),
            "{form}"
        );
    });
}

#[test]
fn nothing_is_verified_where_the_content_cannot() {
    each(&Sample { verifies: false, ..Sample::new() }, |form, _, store| {
        let mut session = store.session().unwrap();
        insert(&mut *session, [1]);
        assert_eq!(read(&mut *session, 1), ok(1, None), "{form}");
    });
}

#[test]
fn updating_one_field_changes_that_field_only() {
    each(&Sample::new(), |form, _, store| {
        let mut session = store.session().unwrap();
        insert(&mut *session, 0..3);
        let change = Request { fields: Fields::One(3), seed: 7, ..request(Verb::Update, 1) };
        assert_eq!(session.execute(&change), ok(0, None), "{form}");
        assert_eq!(read(&mut *session, 1), ok(1, WRONG), "{form}");
        for field in 0..10 {
            let expected = if field == 3 { WRONG } else { RIGHT };
            assert_eq!(read_one(&mut *session, 1, field), ok(1, expected), "{form}");
        }
        assert_eq!(read(&mut *session, 0), ok(1, RIGHT), "{form}");
        assert_eq!(read(&mut *session, 2), ok(1, RIGHT), "{form}");
        assert_eq!(session.execute(&Request { seed: 0, ..change }), ok(0, None), "{form}");
        assert_eq!(read(&mut *session, 1), ok(1, RIGHT), "{form}");
        assert_eq!(store.count(), Ok(Some(3)), "{form}");
    });
}

#[test]
fn updating_all_fields_and_inserting_again_replace() {
    each(&Sample::new(), |form, _, store| {
        let mut session = store.session().unwrap();
        insert(&mut *session, [1]);
        for (verb, fields) in
            [(Verb::Update, Fields::All), (Verb::Update, Fields::Named), (Verb::Insert, Fields::All)]
        {
            let wrong = Request { fields, seed: 5, ..request(verb, 1) };
            assert_eq!(session.execute(&wrong), ok(0, None), "{form}");
            for field in 0..10 {
                assert_eq!(read_one(&mut *session, 1, field), ok(1, WRONG), "{form}");
            }
            assert_eq!(session.execute(&Request { seed: 0, ..wrong }), ok(0, None), "{form}");
            assert_eq!(read(&mut *session, 1), ok(1, RIGHT), "{form}");
        }
        assert_eq!(store.count(), Ok(Some(1)), "{form}");
    });
}

#[test]
fn scans_go_up_from_the_key_to_the_limit() {
    each(&Sample::new(), |form, _, store| {
        let mut session = store.session().unwrap();
        insert(&mut *session, (0..40).rev().map(|i| i * 2));
        for fields in [Fields::All, Fields::Named, Fields::One(4)] {
            for (key, limit, records) in [
                (0, 10, 10),
                (0, 100, 40),
                (70, 100, 5),
                (71, 3, 3),
                (71, 100, 4),
                (78, 9, 1),
                (79, 9, 0),
                (3, 0, 0),
            ] {
                let scan = Request { limit, fields, ..request(Verb::Scan, key) };
                assert_eq!(session.execute(&scan), ok(records, None), "{form} {key} {limit}");
            }
        }
    });
}

#[test]
fn what_is_deleted_is_gone() {
    each(&Sample::new(), |form, _, store| {
        let mut session = store.session().unwrap();
        insert(&mut *session, 0..5);
        assert_eq!(session.execute(&request(Verb::Delete, 2)), ok(0, None), "{form}");
        assert_eq!(session.execute(&request(Verb::Delete, 2)), not_found(), "{form}");
        assert_eq!(read(&mut *session, 2), not_found(), "{form}");
        for fields in [Fields::All, Fields::One(1)] {
            let update = Request { fields, ..request(Verb::Update, 2) };
            assert_eq!(session.execute(&update), not_found(), "{form}");
        }
        assert_eq!(session.execute(&request(Verb::Scan, 0)), ok(4, None), "{form}");
        assert_eq!(store.count(), Ok(Some(4)), "{form}");
        insert(&mut *session, [2]);
        assert_eq!(read(&mut *session, 2), ok(1, RIGHT), "{form}");
    });
}

#[test]
fn a_missing_field_is_a_mismatch() {
    for form in stores() {
        let directory = tempfile::tempdir().unwrap();
        drop(open(form, directory.path(), Sample::new()));
        if has_columns(form, directory.path(), Sample { writes: 3, ..Sample::new() }) {
            continue;
        }
        {
            // Writes three of the ten fields. Its own idea of a record has three, so this one is whole to it.
            let short = open(form, directory.path(), Sample { writes: 3, ..Sample::new() });
            let mut session = short.session().unwrap();
            insert(&mut *session, [1]);
            assert_eq!(session.execute(&request(Verb::Read, 1)), ok(1, RIGHT), "{form}");
        }
        let store = open(form, directory.path(), Sample::new());
        let mut session = store.session().unwrap();
        assert_eq!(read(&mut *session, 1), ok(1, WRONG), "{form}");
        assert_eq!(read_one(&mut *session, 1, 2), ok(1, RIGHT), "{form}");
        assert_eq!(read_one(&mut *session, 1, 3), ok(1, WRONG), "{form}");
        let add = Request { fields: Fields::One(3), ..request(Verb::Update, 1) };
        assert_eq!(session.execute(&add), ok(0, None), "{form}");
        assert_eq!(read_one(&mut *session, 1, 3), ok(1, RIGHT), "{form}");
        assert_eq!(read(&mut *session, 1), ok(1, WRONG), "{form}");
    }
}

#[test]
fn a_partial_update_leaves_the_other_fields() {
    for form in stores() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(form, directory.path(), Sample::new());
        insert(&mut *store.session().unwrap(), [1]);
        drop(store);
        if has_columns(form, directory.path(), Sample { writes: 4, ..Sample::new() }) {
            continue;
        }
        let store = open(form, directory.path(), Sample { writes: 4, ..Sample::new() });
        let mut session = store.session().unwrap();
        let update = Request { fields: Fields::Named, seed: 3, ..request(Verb::Update, 1) };
        assert_eq!(session.execute(&update), ok(0, None), "{form}");
        drop((session, store));
        let store = open(form, directory.path(), Sample::new());
        let mut session = store.session().unwrap();
        for field in 0..10 {
            let expected = if field < 4 { WRONG } else { RIGHT };
            assert_eq!(read_one(&mut *session, 1, field), ok(1, expected), "{form} {field}");
        }
    }
}

#[test]
fn a_batch_is_one_transaction() {
    each(&Sample::new(), |form, _, store| {
        let mut session = store.session().unwrap();
        let batch: Vec<Request> = (0..50).map(|key| request(Verb::Insert, key)).collect();
        assert_eq!(session.execute_batch(&batch), ok(0, None), "{form}: {}", session.last_error());
        assert_eq!(session.execute_batch(&[]), ok(0, None), "{form}");
        assert_eq!(store.count(), Ok(Some(50)), "{form}");
        assert_eq!(read(&mut *session, 49), ok(1, RIGHT), "{form}");
        let mixed = [request(Verb::Read, 3), request(Verb::Scan, 45), request(Verb::Delete, 0)];
        assert_eq!(session.execute_batch(&mixed), ok(6, None), "{form}: {}", session.last_error());
        // The session is usable after a batch that failed.
        let failing = [request(Verb::Insert, 60), request(Verb::Update, 99)];
        assert_eq!(session.execute_batch(&failing), not_found(), "{form}");
        insert(&mut *session, [61]);
        // SQLite without a journal and fjall with other requests than inserts cannot roll back.
        if !form.contains("journal=off") && !form.contains("fjall") {
            assert_eq!(read(&mut *session, 60), not_found(), "{form}");
        }
    });
}

#[test]
fn inserts_of_existing_keys_can_fail() {
    let schemes = dyno_db_embedded::KINDS.iter().filter(|kind| kind.built && kind.form.ends_with("PATH"));
    for form in schemes.map(|kind| format!("{}:{{}}/db?insert=fail", kind.scheme)) {
        let form = form.as_str();
        let directory = tempfile::tempdir().unwrap();
        let store = open(form, directory.path(), Sample::new());
        let mut session = store.session().unwrap();
        insert(&mut *session, [1]);
        let again = Request { seed: 1, ..request(Verb::Insert, 1) };
        assert_eq!(session.execute(&again).outcome, Outcome::Duplicate, "{form}");
        assert!(!session.last_error().is_empty(), "{form}");
        let batch = [request(Verb::Insert, 2), request(Verb::Insert, 1)];
        assert_eq!(session.execute_batch(&batch).outcome, Outcome::Duplicate, "{form}");
        let twice = [request(Verb::Insert, 3), request(Verb::Insert, 3)];
        assert_eq!(session.execute_batch(&twice).outcome, Outcome::Duplicate, "{form}");
        assert_eq!(read(&mut *session, 1), ok(1, RIGHT), "{form}");
        assert_eq!(store.count(), Ok(Some(1)), "{form}");
    }
}

#[test]
fn data_survives_closing() {
    for form in stores() {
        let directory = tempfile::tempdir().unwrap();
        for round in 0..3 {
            let store = open(form, directory.path(), Sample::new());
            let mut session = store.session().unwrap();
            for key in 0..round {
                assert_eq!(read(&mut *session, key), ok(1, RIGHT), "{form}");
            }
            insert(&mut *session, [round]);
            // A session may outlive its store.
            drop(store);
            assert_eq!(read(&mut *session, round), ok(1, RIGHT), "{form}");
        }
    }
}

#[test]
fn sessions_work_side_by_side() {
    each(&Sample::new(), |form, _, store| {
        const USERS: u64 = 8;
        const EACH: u64 = 20;
        insert(&mut *store.session().unwrap(), [999_999]);
        let start = Barrier::new(USERS as usize);
        std::thread::scope(|scope| {
            for user in 0..USERS {
                let mut session = store.session().unwrap();
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    for i in 0..EACH {
                        let key = user * EACH + i;
                        insert(&mut *session, [key]);
                        assert_eq!(read(&mut *session, key), ok(1, RIGHT), "{form}");
                        // All users write their own field of one record, over and over.
                        let mine = Fields::One(user as u16);
                        let seed = EACH - 1 - i;
                        let update = Request { fields: mine, seed, ..request(Verb::Update, 999_999) };
                        assert_eq!(session.execute(&update), ok(0, None), "{form}: {}", session.last_error());
                        assert_eq!(session.execute(&request(Verb::Scan, key)).outcome, Outcome::Ok, "{form}");
                    }
                });
            }
        });
        assert_eq!(store.count(), Ok(Some(USERS * EACH + 1)), "{form}");
        // The last write of each was one that verifies: no update has been lost.
        assert_eq!(read(&mut *store.session().unwrap(), 999_999), ok(1, RIGHT), "{form}");
    });
}

#[test]
fn a_hundred_and_twenty_eight_sessions() {
    each(&Sample::new(), |form, _, store| {
        let sessions: Vec<_> = (0..128).map(|_| store.session().unwrap()).collect();
        std::thread::scope(|scope| {
            for (user, mut session) in sessions.into_iter().enumerate() {
                scope.spawn(move || {
                    assert_eq!(read(&mut *session, user as u64), not_found(), "{form}");
                });
            }
        });
    });
}

#[test]
fn any_name_is_safe() {
    let names = [
        "a\"b",
        "select",
        "",
        "'; DROP TABLE usertable; --",
        "KEY",
        "key_",
        "fünf",
        "a b",
        "[x]",
        "`y`",
        "?1",
    ];
    let sample = Sample { table: "my \"table\"; --".to_owned(), ..Sample::named(&names) };
    each(&sample, |form, _, store| {
        let mut session = store.session().unwrap();
        insert(&mut *session, 0..3);
        for field in 0..names.len() as u16 {
            let update = Request { fields: Fields::One(field), ..request(Verb::Update, 1) };
            assert_eq!(session.execute(&update), ok(0, None), "{form}");
            assert_eq!(read_one(&mut *session, 1, field), ok(1, RIGHT), "{form}");
        }
        assert_eq!(read(&mut *session, 1), ok(1, RIGHT), "{form}");
        assert_eq!(session.execute(&request(Verb::Scan, 1)), ok(2, None), "{form}");
        assert_eq!(session.execute(&request(Verb::Delete, 1)), ok(0, None), "{form}");
    });
}

#[test]
fn empty_and_large_values() {
    for value_len in [0, 200_000] {
        each(&Sample { value_len, ..Sample::new() }, |form, _, store| {
            let mut session = store.session().unwrap();
            insert(&mut *session, 0..3);
            assert_eq!(read(&mut *session, 2), ok(1, RIGHT), "{form}");
            let shorter = Request { fields: Fields::One(0), ..request(Verb::Update, 2) };
            assert_eq!(session.execute(&shorter), ok(0, None), "{form}");
            assert_eq!(read(&mut *session, 2), ok(1, RIGHT), "{form}");
        });
    }
}

#[test]
fn engines_and_durability_have_words() {
    each(&Sample::new(), |form, _, store| {
        let engine = store.engine();
        let version = engine.split(' ').nth(1).unwrap();
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{form}: {engine}");
        assert!(store.durability().contains("sync"), "{form}: {}", store.durability());
    });
}
