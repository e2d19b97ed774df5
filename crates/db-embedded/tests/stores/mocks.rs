//! The stores that store nothing: `basic` and `null`.

use crate::content::{Sample, request};
use dyno_db_embedded::basic::Sink;
use dyno_db_embedded::basic::{Basic, MockSettings};
use dyno_db_embedded::{open, open_with_sink};
use dyno_types::{Executed, Fields, Outcome, Request, Store, Verb};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn sample() -> Sample {
    Sample { value_len: 0, ..Sample::named(&["field0", "field1"]) }
}

fn lines(options: &str, requests: &[Request]) -> String {
    let text = Arc::new(Mutex::new(Vec::new()));
    let store = open_with_sink(&format!("basic:{options}"), sample().arc(), Some(text.clone())).unwrap();
    let mut session = store.session().unwrap();
    for request in requests {
        assert_eq!(session.execute(request), Executed::new(Outcome::Ok, 0));
    }
    String::from_utf8(text.lock().unwrap().clone()).unwrap()
}

#[test]
fn basic_writes_the_lines_of_ycsb() {
    let one = Fields::One(1);
    let text = lines(
        "",
        &[
            request(Verb::Read, 1),
            Request { fields: one, ..request(Verb::Read, 1) },
            Request { fields: Fields::Named, ..request(Verb::Read, 1) },
            Request { fields: one, ..request(Verb::Update, 2) },
            request(Verb::Insert, 3),
            Request { limit: 42, ..request(Verb::Scan, 4) },
            Request { limit: 42, fields: one, ..request(Verb::Scan, 4) },
            request(Verb::Delete, 5),
        ],
    );
    let expected = [
        "READ usertable user000001 [ <all fields>]",
        "READ usertable user000001 [ field1 ]",
        "READ usertable user000001 [ field0 field1 ]",
        "UPDATE usertable user000002 [ field1=2/1/0/ ]",
        "INSERT usertable user000003 [ field0=3/0/0/ field1=3/1/0/ ]",
        "SCAN usertable user000004 42 [ <all fields>]",
        "SCAN usertable user000004 42 [ field1 ]",
        "DELETE usertable user000005",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    assert!(text.ends_with('\n'));
}

#[test]
fn basic_can_be_silent() {
    assert_eq!(lines("?verbose=false", &[request(Verb::Read, 1)]), "");
    let store = open("basic:", sample().arc()).unwrap();
    assert_eq!(store.session().unwrap().execute(&request(Verb::Read, 1)).outcome, Outcome::Ok);
    assert_eq!(store.count(), Ok(None));
}

#[test]
fn basic_takes_its_time() {
    let time = |options: &str, requests: u64| {
        let begun = Instant::now();
        lines(options, &(0..requests).map(|key| request(Verb::Read, key)).collect::<Vec<_>>());
        begun.elapsed()
    };
    assert!(time("?simulatedelay=30&randomizedelay=false", 2) >= Duration::from_millis(60));
    // 0 to 9 ms each: below 200 x 9 ms, and beyond 200 x 2 ms with certainty for fixed draws.
    assert!(time("?simulatedelay=10ms", 200) >= Duration::from_millis(400));
    // Whole milliseconds below 1 are 0.
    assert!(time("?simulatedelay=1", 100) < Duration::from_millis(100));
}

#[test]
fn lines_of_many_sessions_stay_whole() {
    let text = Arc::new(Mutex::new(Vec::new()));
    let store = Basic::new(sample().arc(), MockSettings::default(), Some(text.clone()));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let mut session = store.session().unwrap();
            scope.spawn(move || {
                (0..100).for_each(|key| assert!(session.execute(&request(Verb::Delete, key)).outcome.is_ok()))
            });
        }
    });
    let text = String::from_utf8(text.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), 800);
    assert!(text.lines().all(|line| line.starts_with("DELETE usertable user") && line.len() == 27), "{text}");
}

struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_line_that_cannot_be_written_is_an_error() {
    let sink: Sink = Arc::new(Mutex::new(Broken));
    let store = open_with_sink("basic:", sample().arc(), Some(sink)).unwrap();
    let mut session = store.session().unwrap();
    assert_eq!(session.execute(&request(Verb::Read, 1)).outcome, Outcome::ServerError);
    assert!(session.last_error().contains("broken pipe"), "{}", session.last_error());
}

#[test]
fn null_does_nothing_well() {
    let store = open("null:", sample().arc()).unwrap();
    let mut session = store.session().unwrap();
    for verb in [Verb::Read, Verb::Insert, Verb::Update, Verb::Scan, Verb::Delete] {
        assert_eq!(session.execute(&request(verb, 1)), Executed::new(Outcome::Ok, 0));
    }
    assert_eq!(session.execute_batch(&[request(Verb::Insert, 1)]), Executed::new(Outcome::Ok, 0));
    assert_eq!((store.engine().as_str(), store.count()), ("null", Ok(None)));
}
