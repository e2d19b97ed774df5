//! Rough rates of one user per store, printed; not a test of anything. Run it with
//! `cargo test --release -p dyno-db-embedded -- --ignored --nocapture rates`.

use crate::content::{Sample, request};
use dyno_types::{Fields, Request, StoreSession, Verb};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const LASTING: Duration = Duration::from_millis(1500);

/// Requests per second of one user for [`LASTING`].
fn rate(session: &mut dyn StoreSession, make: impl Fn(u64) -> Request) -> f64 {
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < LASTING {
        let result = session.execute(&make(done));
        assert!(result.outcome.is_ok(), "{:?}: {}", result.outcome, session.last_error());
        done += 1;
    }
    done as f64 / begun.elapsed().as_secs_f64()
}

/// What the disk gives: overwrites of 4 KiB, each synced, per second. It may change by itself from second to second.
fn syncs(directory: &Path) -> f64 {
    let file = File::create(directory.join("probe")).unwrap();
    let begun = Instant::now();
    let mut done = 0;
    while begun.elapsed() < Duration::from_millis(200) {
        file.write_all_at(&[0; 4096], done % 64 * 4096).unwrap();
        file.sync_data().unwrap();
        done += 1;
    }
    done as f64 / begun.elapsed().as_secs_f64()
}

/// Bytes of all files below `path`.
fn size(path: &Path) -> u64 {
    let below = path.read_dir().unwrap().map(|entry| entry.unwrap());
    below.map(|e| if e.path().is_dir() { size(&e.path()) } else { e.metadata().unwrap().len() }).sum()
}

#[test]
#[ignore = "measures, does not test"]
#[allow(clippy::print_stdout)]
fn rates() {
    const RECORDS: u64 = 20_000;
    let head = ["load/s", "read/s", "scan10/s", "disk/s", "update/s", "disk/s", "insert/s", "disk/s", "MiB"];
    println!("{:34}{}", "store", head.map(|name| format!(" {name:>9}")).concat());
    for form in [
        "null:",
        "sqlite:{}/db",
        "sqlite:{}/db?synchronous=normal",
        "sqlite:{}/db?journal=delete",
        "redb:{}/db",
        "redb:{}/db?durability=none",
        "fjall:{}/db",
        "fjall:{}/db?durability=fdatasync",
        "fjall:{}/db?durability=none",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let uri = form.replace("{}", directory.path().to_str().unwrap());
        let store = dyno_db_embedded::open(&uri, Sample { verifies: false, ..Sample::new() }.arc()).unwrap();
        let mut session = store.session().unwrap();
        let begun = Instant::now();
        for block in 0..RECORDS / 1000 {
            let batch: Vec<_> = (0..1000).map(|i| request(Verb::Insert, block * 1000 + i)).collect();
            assert!(session.execute_batch(&batch).outcome.is_ok(), "{}", session.last_error());
        }
        let load = RECORDS as f64 / begun.elapsed().as_secs_f64();
        // A permutation, so that an update never writes the value that is already there.
        let key = |i: u64| i * 7_919 % RECORDS;
        let session = &mut *session;
        let read = rate(session, |i| request(Verb::Read, key(i)));
        let scan = rate(session, |i| request(Verb::Scan, key(i)));
        let before = syncs(directory.path());
        let update = rate(session, |i| Request {
            fields: Fields::One(3),
            // SQLite writes, and syncs, nothing where the value is the one already there.
            seed: 1 + i / RECORDS % 9,
            ..request(Verb::Update, key(i))
        });
        let between = syncs(directory.path());
        let insert = rate(session, |i| request(Verb::Insert, RECORDS + i));
        let after = syncs(directory.path());
        let mib = (size(directory.path()) >> 20) as f64;
        let row = [load, read, scan, before, update, between, insert, after, mib];
        println!("{form:34}{}", row.map(|value| format!(" {value:>9.0}")).concat());
    }
}
