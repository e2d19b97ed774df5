//! Members of a scripted replica set: who is read from, connections that are lost, and members that are new.

use dyno_testkit::fake_mongo::{FakeCommand, cursor, cut, error, hang_up, hello, serve};
use dyno_testkit::{Dyno, arrivals, assert_exit, outcome, phase, stderr};
use dyno_types::bson::{self, kind};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// What a set of scripted members shares.
#[derive(Default)]
struct State {
    /// Numbers of the members that belong to the set, and of the one that takes writes.
    members: Vec<usize>,
    primary: usize,
    /// Members that close every connection.
    dead: Vec<usize>,
    /// Seconds that each member is behind.
    behind_s: Vec<i64>,
    /// Commands that were carried out, by member.
    done: Vec<u64>,
    /// Numbered writes that were carried out, with their members.
    numbered: BTreeMap<(Vec<u8>, i64), usize>,
    /// Commands answered by nothing but the end of the connection: how many, and every how many of them.
    cut: u64,
    cut_every: u64,
    heard: u64,
    /// When member 1 was last read from, and when it fell behind.
    last_read: Option<Instant>,
    fell_behind: Option<Instant>,
    preference: Vec<u8>,
}

struct Set {
    names: Vec<String>,
    state: Arc<Mutex<State>>,
}

fn greet(state: &State, number: usize, names: &[String], out: &mut Vec<u8>) {
    let hosts: Vec<String> = state.members.iter().map(|at| names[*at].clone()).collect();
    bson::put_head(out, kind::DOCUMENT, "tags");
    let tags = bson::open(out);
    bson::put_string(out, "dc", ["ny", "ny", "sf", "sf"][number]);
    bson::close(out, tags);
    bson::put_head(out, kind::DOCUMENT, "lastWrite");
    let wrote = bson::open(out);
    bson::put_date(out, "lastWriteDate", (1_000_000 - state.behind_s.get(number).unwrap_or(&0)) * 1_000);
    bson::close(out, wrote);
    bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
    hello(&names[state.primary], &hosts, &names[number], out);
}

/// A write is done once for each number; what is sent again is only answered.
fn write(state: &mut State, number: usize, command: &FakeCommand) {
    let session = bson::element_at_path(&command.document, "lsid.id").map(|id| id.value.to_vec());
    let txn = bson::find_element(&command.document, "txnNumber").and_then(|e| e.as_i64());
    match (session, txn) {
        (Some(session), Some(txn)) if state.numbered.contains_key(&(session.clone(), txn)) => {}
        (Some(session), Some(txn)) => {
            state.numbered.insert((session, txn), number);
            state.done[number] += 1;
        }
        _ => state.done[number] += 1,
    }
}

fn work(state: &mut State, number: usize, command: &FakeCommand, out: &mut Vec<u8>) {
    let writes = command.name() == "update";
    if writes && state.primary != number {
        return error(10_107, "not primary", out);
    }
    state.heard += 1;
    let cut = state.cut_every > 0 && state.heard.is_multiple_of(state.cut_every);
    // Of two cut writes one is done and one is not.
    let lost_before = cut && state.cut.is_multiple_of(2);
    if writes && !lost_before {
        write(state, number, command);
    } else if !writes {
        state.done[number] += 1;
        if number == 1 {
            state.last_read = Some(Instant::now());
        }
        let preference = bson::find_element(&command.document, "$readPreference");
        state.preference = preference.map(|e| e.value.to_vec()).unwrap_or_default();
    }
    state.cut += u64::from(cut);
    match (cut, writes) {
        (true, _) => hang_up(out),
        (_, true) => {
            bson::put_int32(out, "n", 1);
            bson::put_double(out, "ok", 1.0);
        }
        _ => cursor(0, "firstBatch", 1, out),
    }
}

/// Starts four members; `before` each command may change the state.
fn set(state: State, before: impl Fn(&mut State) + Send + Sync + 'static) -> Set {
    let (names, before) = (Arc::new(OnceLock::<Vec<String>>::new()), Arc::new(before));
    let state = Arc::new(Mutex::new(State { done: vec![0; 4], ..state }));
    let member = |number: usize| {
        let (names, state, before) = (names.clone(), state.clone(), before.clone());
        serve(move |_| {
            Arc::new(move |command, out| {
                let mut state = state.lock().unwrap();
                before(&mut state);
                match command.name().as_str() {
                    _ if state.dead.contains(&number) => hang_up(out),
                    "hello" | "isMaster" => greet(&state, number, names.wait(), out),
                    "find" | "update" => work(&mut state, number, command, out),
                    name => error(59, &format!("no such command: {name}"), out),
                }
            })
        })
    };
    let all: Vec<String> = (0..4).map(member).collect();
    names.set(all.clone()).unwrap();
    Set { names: all, state }
}

impl Set {
    /// Runs an operation of one kind against the set; member 0 is the seed.
    fn run(&self, query: &str, verb: &str, more: &[&str]) -> (Value, String) {
        let dyno = Dyno::new();
        let uri = format!("mongodb://{}/t?replicaSet=rs0&{query}", self.names[0]);
        let workload = if verb == "read" { ["--workload", "c"].to_vec() } else { vec![] };
        let updates = ["-p", "readproportion=0", "-p", "updateproportion=1"];
        let mix = if verb == "read" { &[][..] } else { &updates[..] };
        let common = ["run", &uri, "--no-load", "--records", "100", "--out", "d"];
        let output = dyno.run(&[&common[..], &workload, mix, more].concat());
        dyno.assert_ran_but(&output, &["errors", "samples", "gone", "connections"]);
        let measured = phase(&dyno.summary("d"), "measure").clone();
        (measured, stderr(&output) + &dyno_testkit::stdout(&output))
    }
}

fn three() -> State {
    State { members: vec![0, 1, 2], ..State::default() }
}

const CLOSED: &[&str] = &["--ops", "400", "--users", "4"];

#[test]
fn writes_cut_off_are_sent_once_more_and_done_once() {
    let cut = set(State { cut_every: 20, ..three() }, |_| {});
    let (measured, _) = cut.run("retryWrites=true", "update", CLOSED);
    let state = cut.state.lock().unwrap();
    assert!(state.cut >= 20, "{}", state.cut);
    // A second try that is cut too is an outcome: it may have been done.
    let (ok, lost) = (outcome(&measured, "ok"), outcome(&measured, "disconnected"));
    assert_eq!(
        (arrivals(&measured), measured["redirects"].as_u64()),
        (400, Some(state.cut - lost)),
        "{measured}"
    );
    assert_eq!(ok + lost, 400, "{measured}");
    assert!(lost <= state.cut / 4, "{measured}");
    let done = state.done[0];
    assert!((ok..=ok + lost).contains(&done), "{done} done, {ok} acknowledged, {lost} unknown");
    assert_eq!(done, state.numbered.len() as u64);
}

#[test]
fn there_is_a_second_try_and_no_third() {
    for (query, verb) in [("retryWrites=true", "update"), ("retryReads=true", "read")] {
        let cut = set(State { cut_every: 1, ..three() }, |_| {});
        let (measured, _) = cut.run(query, verb, &["--ops", "20", "--users", "1"]);
        let state = cut.state.lock().unwrap();
        let lost = outcome(&measured, "disconnected");
        // What finds no connection when it begins is not sent at all.
        assert_eq!((lost + outcome(&measured, "unreachable"), lost > 0), (20, true), "{measured}");
        assert_eq!(
            (state.heard, measured["redirects"].as_u64()),
            (2 * lost, Some(lost)),
            "{query}: {measured}"
        );
    }
}

#[test]
fn without_the_option_a_lost_connection_is_an_outcome() {
    for (query, verb) in
        [("", "update"), ("retryReads=true", "update"), ("", "read"), ("retryWrites=true", "read")]
    {
        let cut = set(State { cut_every: 20, ..three() }, |_| {});
        let (measured, _) = cut.run(query, verb, CLOSED);
        let state = cut.state.lock().unwrap();
        assert_eq!(outcome(&measured, "disconnected"), state.cut, "{query} {verb}: {measured}");
        assert_eq!(
            (arrivals(&measured), &measured["redirects"]),
            (400, &serde_json::json!(0)),
            "{query} {verb}"
        );
    }
}

#[test]
fn reads_cut_off_are_done_once_more() {
    let cut = set(State { cut_every: 20, ..three() }, |_| {});
    let (measured, _) = cut.run("retryReads=true&readPreference=secondary", "read", CLOSED);
    let state = cut.state.lock().unwrap();
    let (ok, lost) = (outcome(&measured, "ok"), outcome(&measured, "disconnected"));
    assert_eq!((ok + lost, measured["redirects"].as_u64()), (400, Some(state.cut - lost)), "{measured}");
    assert!(state.cut >= 20 && lost <= state.cut / 4, "{measured}");
}

#[test]
fn a_member_that_is_new_takes_writes_when_it_becomes_primary() {
    // After 300 writes member 0 is gone, and member 3, which was unknown until then, is the primary.
    let moved = set(three(), |state| {
        if state.done[0] >= 300 {
            (state.members, state.primary, state.dead) = (vec![1, 2, 3], 3, vec![0]);
        }
    });
    let open = [
        "--rate",
        "500",
        "--arrivals",
        "constant",
        "--connections",
        "4",
        "--duration",
        "3s",
        "--warmup",
        "0",
    ];
    let (measured, _) = moved.run("retryWrites=true", "update", &open);
    let state = moved.state.lock().unwrap();
    assert_eq!(arrivals(&measured), 1_500);
    let counts = ["ok", "unreachable", "disconnected"].map(|name| outcome(&measured, name));
    assert_eq!(counts.iter().sum::<u64>(), 1_500, "{measured}");
    // Operations under way were sent to the new primary; those that found no primary were not sent.
    assert_eq!((counts[2], state.done[0], state.done[1] + state.done[2]), (0, 300, 0), "{measured}");
    assert_eq!(counts[0], state.numbered.len() as u64, "{measured}");
    assert!(state.done[3] > 700 && measured["redirects"].as_u64() > Some(0), "{:?} {measured}", state.done);
}

#[test]
fn members_with_the_tags_are_read_from() {
    let tagged = set(State { members: vec![0, 1, 2, 3], ..State::default() }, |_| {});
    let tags = "readPreferenceTags=dc:tokyo&readPreferenceTags=dc:sf&maxStalenessSeconds=120";
    let (measured, _) =
        tagged.run(&format!("readPreference=nearest&localThresholdMS=1000&{tags}"), "read", CLOSED);
    assert_eq!(outcome(&measured, "ok"), 400);
    let state = tagged.state.lock().unwrap();
    assert!(state.done[..2] == [0, 0] && state.done[2] > 100 && state.done[3] > 100, "{:?}", state.done);
    let said = |path: &str| bson::element_at_path(&state.preference, path);
    assert_eq!(said("mode").unwrap().as_str(), Some("nearest"));
    assert_eq!(said("tags.1.dc").unwrap().as_str(), Some("sf"));
    assert_eq!(said("maxStalenessSeconds").unwrap().as_i64(), Some(120));
    drop(state);
    // No member has these tags: nothing is sent, and dyno says why.
    let before: u64 = tagged.state.lock().unwrap().done.iter().sum();
    let (measured, message) =
        tagged.run("readPreference=secondary&readPreferenceTags=dc:tokyo", "read", &["--ops", "5"]);
    assert_eq!(outcome(&measured, "unreachable"), 5, "{measured}");
    assert!(message.contains("no member of the replica set may be read from"), "{message}");
    assert_eq!(tagged.state.lock().unwrap().done.iter().sum::<u64>(), before);
}

#[test]
fn a_member_that_falls_behind_is_read_from_no_more() {
    let falling = set(three(), |state| {
        if state.done.iter().sum::<u64>() >= 300 && state.fell_behind.is_none() {
            (state.behind_s, state.fell_behind) = (vec![0, 500, 0], Some(Instant::now()));
        }
    });
    let open = [
        "--rate",
        "400",
        "--arrivals",
        "constant",
        "--connections",
        "2",
        "--duration",
        "3s",
        "--warmup",
        "0",
    ];
    let query =
        "readPreference=secondary&maxStalenessSeconds=90&heartbeatFrequencyMS=500&localThresholdMS=1000";
    let (measured, _) = falling.run(query, "read", &open);
    assert_eq!(outcome(&measured, "ok"), 1_200, "{measured}");
    let state = falling.state.lock().unwrap();
    assert!(state.done[1] > 100 && state.done[2] > state.done[1] && state.done[0] == 0, "{:?}", state.done);
    let after = state.last_read.unwrap().saturating_duration_since(state.fell_behind.unwrap());
    assert!(after < Duration::from_millis(1_500), "read from it {after:?} after it had fallen behind");
}

#[test]
fn a_replica_set_that_was_asked_for_must_be_there() {
    let alone = serve(|me| {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" => hello(&me, &[], &me, out),
            name => error(59, &format!("no such command: {name}"), out),
        })
    });
    let member = set(three(), |_| {}).names[1].clone();
    for (host, message) in [(alone, "is a single server"), (member, "belongs to replica set \"rs0\"")] {
        for more in ["", "&directConnection=true"] {
            let refused =
                Dyno::new().run(&["run", &format!("mongodb://{host}/t?replicaSet=other{more}"), "--no-out"]);
            assert_exit(&refused, &[3]);
            assert!(
                stderr(&refused).contains(message) && stderr(&refused).contains("replicaSet=other"),
                "{}",
                stderr(&refused)
            );
        }
    }
}

#[test]
fn a_reply_that_is_cut_is_a_lost_connection() {
    for (query, again) in [("", false), ("?retryReads=true", true)] {
        let cuts = Arc::new(Mutex::new((0u64, 0u64)));
        let count = cuts.clone();
        let server = serve(|me| {
            Arc::new(move |command, out| match command.name().as_str() {
                "hello" | "isMaster" => hello(&me, &[], &me, out),
                "find" => {
                    cursor(0, "firstBatch", 1, out);
                    let mut count = count.lock().unwrap();
                    count.0 += 1;
                    if count.0.is_multiple_of(10) {
                        count.1 += 1;
                        cut(out);
                    }
                }
                name => error(59, &format!("no such command: {name}"), out),
            })
        });
        let dyno = Dyno::new();
        let uri = format!("mongodb://{server}/t{query}");
        let common = ["run", &uri, "--no-load", "--records", "100", "--workload", "c", "--out", "d"];
        dyno.assert_ran_but(
            &dyno.run(&[&common[..], &["--ops", "300", "--users", "1"]].concat()),
            &["errors", "connections"],
        );
        let measured = phase(&dyno.summary("d"), "measure").clone();
        let (asked, cut) = *cuts.lock().unwrap();
        let (ok, lost) = (outcome(&measured, "ok"), outcome(&measured, "disconnected"));
        assert_eq!(
            (arrivals(&measured), ok + lost + outcome(&measured, "unreachable")),
            (300, 300),
            "{measured}"
        );
        assert_eq!((ok, cut > 20), (asked - cut, true), "{query}: {measured}");
        assert_eq!(lost, if again { 0 } else { cut }, "{query}: {measured}");
    }
}
