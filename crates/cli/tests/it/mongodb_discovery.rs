//! What a scripted deployment says of itself over several heartbeats: servers that know only `isMaster`, two that claim to be
//! primary, one that freezes, limits of messages, and servers that shed load.

use dyno_testkit::fake_mongo::{FakeCommand, Script, cursor, error, hang_up, serve};
use dyno_testkit::{Dyno, arrivals, assert_exit, outcome, phase, stderr};
use dyno_types::bson::{self, kind};
use serde_json::Value;
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A member as its hello describes it.
#[derive(Clone, Default)]
struct Member {
    /// It claims to be the primary.
    primary: bool,
    /// Number of the election that made it primary.
    election: Option<u8>,
    /// Commands that it has answered, by name.
    answered: Vec<String>,
    /// It answers nothing more.
    frozen: bool,
}

/// A member of the configuration whose name does not resolve.
const NOWHERE: &str = "nowhere.invalid:27017";

/// A scripted replica set of a version.
struct Set {
    names: Arc<OnceLock<Vec<String>>>,
    members: Arc<(Mutex<Vec<Member>>, Condvar)>,
    /// `maxWireVersion`.
    wire: i32,
    /// The version knows `hello`.
    knows_hello: bool,
    /// The configuration has [`NOWHERE`] in it.
    has_nowhere: bool,
}

impl Set {
    /// Starts the members.
    fn start(wire: i32, members: Vec<Member>) -> Arc<Set> {
        Set::start_with(wire, members, false)
    }

    fn start_with(wire: i32, members: Vec<Member>, has_nowhere: bool) -> Arc<Set> {
        let set = Arc::new(Set {
            has_nowhere,
            names: Arc::default(),
            members: Arc::new((Mutex::new(members.clone()), Condvar::new())),
            wire,
            knows_hello: wire >= 9,
        });
        let names = (0..members.len()).map(|number| {
            let set = set.clone();
            serve(move |_| -> Script { Arc::new(move |command, out| set.answer(number, command, out)) })
        });
        set.names.set(names.collect()).unwrap();
        set
    }

    fn uri(&self, query: &str) -> String {
        format!("mongodb://{}/t?replicaSet=rs0&{query}", self.names.get().unwrap().join(","))
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Member>)) {
        change(&mut self.members.0.lock().unwrap());
        self.members.1.notify_all();
    }

    fn answered(&self, number: usize, name: &str) -> usize {
        let members = self.members.0.lock().unwrap();
        members[number].answered.iter().filter(|answered| *answered == name).count()
    }

    fn answer(&self, number: usize, command: &FakeCommand, out: &mut Vec<u8>) {
        let mut members = self.members.0.lock().unwrap();
        while members[number].frozen {
            members = self.members.1.wait(members).unwrap();
        }
        let name = command.name();
        members[number].answered.push(name.clone());
        // Greetings name the client, and the questions before a run no `helloOk`.
        let has = |field: &str| bson::find_element(&command.document, field).is_some();
        if has("helloOk") && !has("client") {
            members[number].answered.push(format!("check by {name}"));
        }
        match name.as_str() {
            "hello" if !self.knows_hello => error(59, "no such command: 'hello'", out),
            "hello" | "isMaster" => self.greet(number, &members, command, out),
            "find" => cursor(0, "firstBatch", 1, out),
            "count" => {
                bson::put_int32(out, "n", 10);
                bson::put_double(out, "ok", 1.0);
            }
            "aggregate" => {
                let concern =
                    bson::element_at_path(&command.document, "writeConcern.w").and_then(|w| w.as_str());
                let kind = if concern == Some("majority") {
                    "aggregate that writes"
                } else {
                    "aggregate that reads"
                };
                members[number].answered.push(kind.to_owned());
                cursor(0, "firstBatch", 0, out);
            }
            "update" if !members[number].primary => error(10_107, "not master", out),
            "update" => {
                bson::put_int32(out, "n", 1);
                bson::put_double(out, "ok", 1.0);
            }
            name => error(59, &format!("no such command: '{name}'"), out),
        }
    }

    fn greet(&self, number: usize, members: &[Member], command: &FakeCommand, out: &mut Vec<u8>) {
        let (member, names) = (&members[number], self.names.wait());
        let primary = if command.name() == "hello" { "isWritablePrimary" } else { "ismaster" };
        bson::put_boolean(out, primary, member.primary);
        bson::put_boolean(out, "secondary", !member.primary);
        bson::put_string(out, "setName", "rs0");
        bson::put_int32(out, "setVersion", 1);
        bson::put_string(out, "me", &names[number]);
        bson::put_head(out, kind::ARRAY, "hosts");
        let list = bson::open(out);
        for (index, name) in names.iter().enumerate() {
            bson::put_item_head(out, kind::STRING, index as u32);
            bson::put_text_value(out, name.as_bytes());
        }
        if self.has_nowhere {
            bson::put_item_head(out, kind::STRING, names.len() as u32);
            bson::put_text_value(out, NOWHERE.as_bytes());
        }
        bson::close(out, list);
        if let Some(election) = member.election {
            bson::put_head(out, kind::OBJECT_ID, "electionId");
            out.extend_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, election]);
        }
        // A member that claims to be primary names itself; the others name the newest.
        let newest = members
            .iter()
            .enumerate()
            .filter(|(_, other)| other.primary)
            .max_by_key(|(_, other)| other.election);
        let named = if member.primary { Some(number) } else { newest.map(|(at, _)| at) };
        if let Some(named) = named {
            bson::put_string(out, "primary", &names[named]);
        }
        if self.knows_hello && bson::find_element(&command.document, "helloOk").is_some() {
            bson::put_boolean(out, "helloOk", true);
        }
        bson::put_int32(out, "maxWireVersion", self.wire);
        bson::put_int32(out, "minWireVersion", 0);
        bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
        bson::put_double(out, "ok", 1.0);
    }
}

const READS: &[&str] = &["--workload", "c"];
const UPDATES: &[&str] = &["-p", "readproportion=0", "-p", "updateproportion=1"];

fn run(uri: &str, more: &[&[&str]]) -> Value {
    let dyno = Dyno::new();
    let common = ["run", uri, "--no-load", "--records", "100", "--warmup", "0", "--out", "d"];
    let output = dyno.run(&[&common[..], &more.concat()].concat());
    dyno.assert_ran_but(&output, &["errors", "samples", "steady", "outage", "gone", "connections", "target"]);
    phase(&dyno.summary("d"), "measure").clone()
}

/// Constant arrivals for some seconds.
fn open(seconds: &'static str) -> [&'static str; 8] {
    ["--rate", "200", "--arrivals", "constant", "--connections", "4", "--duration", seconds]
}

fn primary(election: u8) -> Member {
    Member { primary: true, election: Some(election), ..Member::default() }
}

/// A member whose name leads nowhere, and one that refuses, are said and left out; the others serve for three heartbeats.
#[test]
fn a_member_that_cannot_be_reached_is_said_and_the_others_are_measured() {
    let set = Set::start_with(21, vec![primary(1), Member::default()], true);
    for mode in ["primary", "nearest"] {
        let uri = set.uri(&format!("readPreference={mode}&heartbeatFrequencyMS=500&localThresholdMS=1000"));
        let dyno = Dyno::new();
        let load = ["--no-load", "--records", "100", "--warmup", "0", "--out", "d", "--workload", "c"];
        let output = dyno.run(&[&["run", &uri], &load[..], &open("2s")].concat());
        dyno.assert_ran_but(&output, &["target"]);
        assert_eq!(outcome(phase(&dyno.summary("d"), "measure"), "ok"), 400, "{mode}");
        let run: Value =
            serde_json::from_str(&std::fs::read_to_string(dyno.path("d/run.json")).unwrap()).unwrap();
        let down = run["facts"]["members_down"].as_str().unwrap();
        assert!(down.starts_with(NOWHERE), "{down}");
        let message = "members or routers that do not answer are left out until they do: nowhere.invalid";
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
}

/// Servers before 4.4.2 do not know `hello`. Three heartbeats and more pass for each read preference.
#[test]
fn members_that_know_only_the_old_name_stay_members() {
    for (wire, command) in [(6, "check by isMaster"), (21, "check by hello")] {
        let set = Set::start(wire, vec![primary(1), Member::default(), Member::default()]);
        for mode in ["primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest"] {
            let before = [0, 1, 2].map(|at| set.answered(at, command));
            let uri =
                set.uri(&format!("readPreference={mode}&heartbeatFrequencyMS=500&localThresholdMS=1000"));
            let measured = run(&uri, &[READS, &open("2s")]);
            assert_eq!(outcome(&measured, "ok"), 400, "{wire} {mode}: {measured}");
            for (at, before) in before.into_iter().enumerate() {
                let checks = set.answered(at, command) - before;
                assert!(checks >= 3, "{wire} {mode}: member {at} was checked {checks} times");
            }
        }
        // Checks go by the new name once the server has said that it knows it, and by no other.
        let checks =
            [0, 1, 2].map(|at| (set.answered(at, "check by hello"), set.answered(at, "check by isMaster")));
        for (hello, old) in checks {
            assert!(
                if wire < 9 { hello == 0 && old >= 15 } else { hello >= 15 && old == 0 },
                "{wire}: {checks:?}"
            );
        }
    }
}

#[test]
fn a_primary_of_an_older_election_gets_no_writes() {
    // From 6.0 on the election decides, before it the configuration, which is the same here.
    for wire in [6, 9, 21] {
        let set = Set::start(wire, vec![primary(1), primary(2), Member::default()]);
        let measured = run(&set.uri("heartbeatFrequencyMS=500"), &[UPDATES, &open("2s")]);
        assert_eq!((outcome(&measured, "ok"), set.answered(0, "update")), (400, 0), "{wire}: {measured}");
        assert_eq!(set.answered(1, "update"), 400, "{wire}");
    }
}

/// The answer of a heartbeat may fail: the member is unknown until the next one, and never something else for good.
#[test]
fn a_heartbeat_that_fails_makes_a_member_unknown_for_a_while() {
    let checks = Arc::new(Mutex::new(Vec::new()));
    let count = checks.clone();
    let member = serve(move |me| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "isMaster" => {
                // Greetings name the client, heartbeats do not; every second of these fails.
                let has = |name: &str| bson::find_element(&command.document, name).is_some();
                let mut checks = count.lock().unwrap();
                if has("helloOk") && !has("client") {
                    checks.push(Instant::now());
                }
                if has("helloOk") && !has("client") && checks.len().is_multiple_of(2) {
                    return error(11_600, "interrupted at shutdown", out);
                }
                bson::put_boolean(out, "ismaster", true);
                bson::put_string(out, "setName", "rs0");
                bson::put_string(out, "primary", &me);
                bson::put_head(out, kind::ARRAY, "hosts");
                let list = bson::open(out);
                bson::put_item_head(out, kind::STRING, 0);
                bson::put_text_value(out, me.as_bytes());
                bson::close(out, list);
                bson::put_int32(out, "maxWireVersion", 6);
                bson::put_double(out, "ok", 1.0);
            }
            "find" => cursor(0, "firstBatch", 1, out),
            name => error(59, &format!("no such command: '{name}'"), out),
        })
    });
    let uri = format!("mongodb://{member}/t?replicaSet=rs0&readPreference=nearest&heartbeatFrequencyMS=500");
    let measured = run(&uri, &[READS, &open("4s")]);
    assert_eq!(outcome(&measured, "ok"), 800, "{measured}");
    // One that fails is followed by another one soon, one that succeeds by the next heartbeat.
    let checks = checks.lock().unwrap();
    let pauses: Vec<Duration> = checks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.iter().any(|pause| *pause < Duration::from_millis(300)), "{pauses:?}");
    assert!(pauses.iter().any(|pause| *pause > Duration::from_millis(450)), "{pauses:?}");
}

/// A primary that answers nothing more is left for the one that is elected, with what is under way there; also where it was
/// given up before the election.
#[test]
fn a_frozen_primary_is_left_for_the_one_that_is_elected() {
    let early = "connectTimeoutMS=500&heartbeatFrequencyMS=500";
    for (query, election_s, lost) in [
        (String::new(), 1, 4),
        ("retryWrites=true".to_owned(), 1, 0),
        (early.to_owned(), 3, 4),
        (format!("{early}&retryWrites=true"), 3, 0),
    ] {
        let set = Set::start(21, vec![primary(1), Member::default(), Member::default()]);
        let at = set.clone();
        let fault = std::thread::spawn(move || {
            while at.answered(0, "update") < 200 {
                std::thread::sleep(Duration::from_millis(5));
            }
            at.change(|members| members[0].frozen = true);
            // The others elect one of them.
            std::thread::sleep(Duration::from_secs(election_s));
            at.change(|members| (members[1].primary, members[1].election) = (true, Some(2)));
            let (elected, before) = (Instant::now(), at.answered(1, "update"));
            while at.answered(1, "update") == before && elected.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
            elected.elapsed()
        });
        // By default a heartbeat comes every 10 s, and an operation has 10 s.
        let measured = run(&set.uri(&query), &[UPDATES, &open("7s")]);
        let took = fault.join().unwrap();
        assert!(took < Duration::from_secs(1), "{query}: writes went on {took:?} after the election");
        // Those that were under way are lost, or have been sent to the new primary.
        let unsent = outcome(&measured, "unreachable");
        assert_eq!(outcome(&measured, "disconnected"), lost, "{query}: {measured}");
        assert_eq!(outcome(&measured, "ok") + lost + unsent, arrivals(&measured), "{query}: {measured}");
        // Those that wait to be sent again hold all connections.
        assert_eq!(unsent > 0, election_s > 1 && lost > 0, "{query}: {measured}");
        set.change(|members| members[0].frozen = false);
    }
}

/// A secondary that freezes is left after `connectTimeoutMS`.
#[test]
fn a_frozen_secondary_is_left_when_its_check_is_not_answered() {
    let set = Set::start(21, vec![primary(1), Member::default(), Member::default()]);
    let at = set.clone();
    let fault = std::thread::spawn(move || {
        while at.answered(1, "find") < 100 {
            std::thread::sleep(Duration::from_millis(5));
        }
        at.change(|members| members[1].frozen = true);
    });
    let query =
        "readPreference=secondary&heartbeatFrequencyMS=500&connectTimeoutMS=700&localThresholdMS=1000";
    let measured = run(&set.uri(query), &[READS, &open("5s")]);
    fault.join().unwrap();
    let lost = outcome(&measured, "disconnected");
    assert!(lost <= 4, "{measured}");
    assert_eq!(outcome(&measured, "ok") + lost, 1_000, "{measured}");
    set.change(|members| members[1].frozen = false);
}

/// One host without `replicaSet` is spoken to alone, as drivers do.
#[test]
fn one_host_is_spoken_to_alone_unless_its_set_is_named() {
    let set = Set::start(21, vec![primary(1), Member::default(), Member::default()]);
    let hosts = set.names.get().unwrap().clone();
    let refused = Dyno::new().run(&["run", &format!("mongodb://{}/t", hosts[1]), "--no-out", "-n", "10"]);
    assert_exit(&refused, &[2]);
    let output = stderr(&refused);
    for part in ["a secondary", "replicaSet=rs0", "directConnection"] {
        assert!(output.contains(part), "{part}: {output}");
    }
    let measured = run(&format!("mongodb://{}/t", hosts[1]), &[READS, &["--ops", "100", "--users", "1"]]);
    assert_eq!((outcome(&measured, "ok"), set.answered(1, "find")), (100, 100), "{measured}");
    // The members are looked for where the URI says so.
    let uri = format!("mongodb://{}/t?directConnection=false", hosts[1]);
    let measured = run(&uri, &[UPDATES, &["--ops", "100", "--users", "1"]]);
    assert_eq!((outcome(&measured, "ok"), set.answered(0, "update")), (100, 100), "{measured}");
}

/// An aggregation that ends in `$merge` or `$out` is a write: the primary gets it, with the write concern.
#[test]
fn an_aggregation_that_writes_goes_to_the_primary() {
    for (stage, writes) in [("$merge: { into: b }", true), ("$out: b", true), ("$count: n", false)] {
        let set = Set::start(21, vec![primary(1), Member::default(), Member::default()]);
        let dyno = Dyno::new();
        let file = format!(
            "collections:\n  a: {{ count: 10, document: {{ n: 1 }} }}\noperations:\n  sum: {{ aggregate: a, pipeline: [ \
             {{ $match: {{ n: 1 }} }}, {{ {stage} }} ] }}\n"
        );
        std::fs::write(dyno.path("sum.yaml"), file).unwrap();
        let uri = set.uri("readPreference=secondary&w=majority&localThresholdMS=1000&retryReads=true");
        let output =
            dyno.run(&["run", &uri, "--workload", "sum.yaml", "--no-load", "--ops", "60", "--out", "d"]);
        dyno.assert_ran_but(&output, &["samples"]);
        let (writing, reading) = ("aggregate that writes", "aggregate that reads");
        let counts = [0, 1, 2].map(|at| (set.answered(at, writing), set.answered(at, reading)));
        if writes {
            assert_eq!(counts, [(60, 0), (0, 0), (0, 0)], "{stage}");
        } else {
            assert_eq!((counts[0], counts[1].1 + counts[2].1), ((0, 0), 60), "{stage}: {counts:?}");
        }
    }
}

/// The limits that a server greets with.
struct Limited {
    message_bytes: i32,
    batch: i32,
    most_bytes: usize,
    most_documents: usize,
    documents: usize,
}

/// A server that hangs up, as servers do, on what is beyond its limits.
fn limited(message_bytes: i32, batch: i32) -> (String, Arc<Mutex<Limited>>) {
    let limits = Limited { message_bytes, batch, most_bytes: 0, most_documents: 0, documents: 0 };
    let state = Arc::new(Mutex::new(limits));
    let shared = state.clone();
    let name = serve(move |_| -> Script {
        Arc::new(move |command, out| {
            let mut state = shared.lock().unwrap();
            match command.name().as_str() {
                "hello" | "isMaster" => {
                    bson::put_boolean(out, "ismaster", true);
                    bson::put_int32(out, "maxBsonObjectSize", 16 << 20);
                    bson::put_int32(out, "maxMessageSizeBytes", state.message_bytes);
                    bson::put_int32(out, "maxWriteBatchSize", state.batch);
                    bson::put_int32(out, "maxWireVersion", 21);
                    bson::put_double(out, "ok", 1.0);
                }
                "find" => cursor(0, "firstBatch", 0, out),
                "insert" => {
                    // Kind, length, name and its end go before the documents.
                    let mut rest = &command.sequences[5 + "documents\0".len()..];
                    let mut count = 0;
                    while let Some(bytes) = rest.first_chunk::<4>() {
                        rest = &rest[i32::from_le_bytes(*bytes) as usize..];
                        count += 1;
                    }
                    let bytes = command.document.len() + command.sequences.len() + 21;
                    if bytes > state.message_bytes as usize || count > state.batch as usize {
                        return hang_up(out);
                    }
                    state.most_bytes = state.most_bytes.max(bytes);
                    state.most_documents = state.most_documents.max(count);
                    state.documents += count;
                    bson::put_int32(out, "n", count as i32);
                    bson::put_double(out, "ok", 1.0);
                }
                name => error(59, &format!("no such command: '{name}'"), out),
            }
        })
    });
    (name, state)
}

#[test]
fn a_load_is_split_at_the_limits_of_the_server() {
    // Documents of about 1,050 bytes: 9 fit a message; or 7 a batch.
    for (message_bytes, batch, most) in [(10_000, 100_000, 9), (48_000_000, 7, 7)] {
        let (name, state) = limited(message_bytes, batch);
        let dyno = Dyno::new();
        let uri = format!("mongodb://{name}/t");
        let arguments = ["--records", "500", "--fields", "1", "--field-length", "1000", "--ops", "10"];
        let output = dyno.run(&[&["run", &uri, "--out", "d"][..], &arguments].concat());
        dyno.assert_ran_but(&output, &["errors", "samples", "gone", "connections"]);
        let load = phase(&dyno.summary("d"), "load").clone();
        assert_eq!(outcome(&load, "ok"), 500, "{load}");
        let state = state.lock().unwrap();
        assert_eq!((state.documents, state.most_documents), (500, most), "{} bytes", state.most_bytes);
    }
}

/// Servers from 8.2 on refuse commands while they are overloaded.
#[test]
fn an_overloaded_server_is_asked_again_after_a_pause() {
    let commands = Arc::new(Mutex::new(Vec::new()));
    let seen = commands.clone();
    let name = serve(move |_| -> Script {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" => {
                bson::put_boolean(out, "ismaster", true);
                bson::put_int32(out, "maxWireVersion", 27);
                bson::put_double(out, "ok", 1.0);
            }
            "find" => {
                let mut seen = seen.lock().unwrap();
                seen.push(Instant::now());
                // Every operation's first two tries.
                if !seen.len().is_multiple_of(3) {
                    error(462, "rate limiter exceeded", out);
                    bson::put_head(out, kind::ARRAY, "errorLabels");
                    let list = bson::open(out);
                    for (at, label) in ["SystemOverloadedError", "RetryableError"].iter().enumerate() {
                        bson::put_item_head(out, kind::STRING, at as u32);
                        bson::put_text_value(out, label.as_bytes());
                    }
                    return bson::close(out, list);
                }
                cursor(0, "firstBatch", 1, out);
            }
            name => error(59, &format!("no such command: '{name}'"), out),
        })
    });
    // Of every three tries the third is answered: with two more tries for each operation all succeed, with one more every second
    // (whose first try it is), else one in three.
    for (query, operations, ok, redirects) in [
        ("retryReads=true", "10", 10, 20),
        ("retryReads=true&maxAdaptiveRetries=1", "20", 10, 10),
        ("retryReads=true&maxAdaptiveRetries=0", "30", 10, 0),
        ("", "30", 10, 0),
    ] {
        commands.lock().unwrap().clear();
        let uri = format!("mongodb://{name}/t?{query}");
        let measured = run(&uri, &[READS, &["--ops", operations, "--users", "1"]]);
        assert_eq!(
            (outcome(&measured, "ok"), measured["redirects"].as_u64()),
            (ok, Some(redirects)),
            "{query}: {measured}"
        );
        let seen = commands.lock().unwrap();
        assert_eq!(seen.len(), 30, "{query}");
        // The pauses are drawn up to 200 ms, and up to 400 ms before a second further try: 1 s and 3 s on average.
        let took = *seen.last().unwrap() - seen[0];
        assert!(redirects == 0 || took > Duration::from_millis(300), "{query}: {took:?}");
    }
}
