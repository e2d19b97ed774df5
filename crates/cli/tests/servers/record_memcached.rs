//! memcached's traffic, recorded by a proxy and by tcpdump before a real server, and replayed on another: what is recorded and
//! sent is what the servers have counted.

use crate::memcached::Memcached;
use crate::record_capture::{Tcpdump, skip_capture};
use crate::record_proxy::{read_recording, start_proxy};
use dyno_recording::{Entry, RecordedKind, RecordedProtocol, RecordingReader};
use dyno_testkit::{Dyno, arrivals, assert_exit, outcome, phase, skip_because, stderr, stdout};
use dyno_types::command::ReplyKind;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// A recording becomes a workload that another server serves alike: what it is asked for, found and stores.
#[test]
fn a_workload_is_learned_from_traffic_of_memcached() {
    let (Some(server), Some(other)) = (Memcached::start("learn", &[]), Memcached::start("learn", &[])) else {
        return;
    };
    let dyno = Dyno::new();
    let proxy = start_proxy(&dyno, &format!("memcached://127.0.0.1:{}", server.port), &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    let mut before = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    exchange(&mut before, "set hits 0 0 1\r\n0\r\n", "STORED\r\n");
    // Every sixth key is not there; values are of 100 to 104 bytes.
    for n in 0..3_000u64 {
        let key = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) % 600;
        match n % 4 {
            0 if key % 6 != 0 => {
                let (length, value) = (100 + key % 5, "v".repeat(100 + key as usize % 5));
                exchange(&mut stream, &format!("set user:{key} 0 300 {length}\r\n{value}\r\n"), "STORED\r\n");
            }
            1 => drop(exchange(&mut stream, "incr hits 1\r\n", "\r\n")),
            _ => drop(exchange(&mut stream, &format!("get user:{key}\r\n"), "END\r\n")),
        }
    }
    drop(stream);
    proxy.end();
    let learned = dyno.run(&["learn", "traffic.dyno", "-o", "work.yaml"]);
    assert_exit(&learned, &[0]);
    let text = std::fs::read_to_string(dyno.path("work.yaml")).unwrap();
    assert!(text.contains("[\"get\", { $key: k") && text.contains("[\"incr\", \"hits\", \"1\"]"), "{text}");
    assert!(text.contains("\"0\", \"300\", { $oneOf: "), "{text}");
    let uri = format!("memcached://127.0.0.1:{}", other.port);
    let run = ["run", &uri, "--workload", "work.yaml", "--users", "2", "--ops", "3000", "--out", "r"];
    assert_exit(&dyno.run(&run), &[0, 5]);
    let summary = dyno.summary("r");
    // Counters are there, as they were.
    assert_eq!((other.stat("incr_misses"), server.stat("incr_misses")), (0, 0));
    let share = |server: &Memcached, name: &str| {
        let all: u64 =
            ["cmd_get", "cmd_set", "incr_hits", "incr_misses"].iter().map(|name| server.stat(name)).sum();
        server.stat(name) as f64 / all as f64
    };
    assert_eq!(arrivals(phase(&summary, "measure")), 3_000);
    // A load, if there is one, has set each key once, and looked for 128 of them: what was not there at first is not loaded.
    let phases = summary["phases"].as_array().unwrap();
    let loaded = phases.iter().find(|phase| phase["name"] == "load").map_or(0, |load| outcome(load, "ok"));
    let sets = other.stat("cmd_set") - loaded;
    let gets = other.stat("cmd_get") as f64 / 3_000.0;
    assert!((gets - share(&server, "cmd_get")).abs() < 0.05 + 128.0 / 3_000.0, "{gets}");
    assert!((sets as f64 / 3_000.0 - share(&server, "cmd_set")).abs() < 0.03, "{sets}");
    let per_item = |server: &Memcached| server.stat("bytes") as f64 / server.stat("curr_items") as f64;
    assert!(
        (per_item(&other) / per_item(&server) - 1.0).abs() < 0.05,
        "{} {}",
        per_item(&other),
        per_item(&server)
    );
}

/// The server's counts of what a session of [`talk`] and a load may do.
const COUNTS: [&str; 11] = [
    "cmd_get",
    "get_hits",
    "get_misses",
    "cmd_set",
    "cmd_touch",
    "delete_hits",
    "delete_misses",
    "incr_hits",
    "incr_misses",
    "decr_hits",
    "total_items",
];

fn counts(server: &Memcached) -> BTreeMap<&'static str, u64> {
    COUNTS.iter().map(|name| (*name, server.stat(name))).collect()
}

/// Says something and hears until the answer ends so.
fn exchange(stream: &mut TcpStream, text: &str, end: &str) -> String {
    stream.write_all(text.as_bytes()).unwrap();
    let mut heard = Vec::new();
    let mut part = [0; 65_536];
    while !heard.ends_with(end.as_bytes()) {
        let count = stream.read(&mut part).unwrap();
        assert!(count > 0, "the server has closed: {:?}", String::from_utf8_lossy(&heard));
        heard.extend_from_slice(&part[..count]);
    }
    String::from_utf8(heard).unwrap()
}

/// Commands of both text protocols, in pipelines, without replies and quiet.
fn talk(port: u16) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let long = "v".repeat(100_000);
    exchange(&mut stream, &format!("set long 0 0 100000\r\n{long}\r\n"), "STORED\r\n");
    exchange(
        &mut stream,
        "set a 0 0 1\r\n1\r\nadd a 0 0 1\r\n2\r\nreplace b 0 0 1\r\n3\r\nappend a 0 0 1\r\n0\r\n",
        "NOT_STORED\r\nNOT_STORED\r\nSTORED\r\n",
    );
    let found = exchange(&mut stream, "gets a\r\n", "END\r\n");
    let unique = found.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
    exchange(&mut stream, &format!("cas a 0 0 2 {unique}\r\n20\r\n"), "STORED\r\n");
    exchange(&mut stream, &format!("cas a 0 0 2 {unique}\r\n30\r\n"), "EXISTS\r\n");
    exchange(&mut stream, "get a long none\r\n", "END\r\n");
    exchange(&mut stream, "incr a 5\r\ndecr a 1\r\nincr none 1\r\n", "25\r\n24\r\nNOT_FOUND\r\n");
    exchange(&mut stream, "touch a 1000\r\ngat 1000 a\r\n", "24\r\nEND\r\n");
    exchange(
        &mut stream,
        "set q 0 0 1 noreply\r\nx\r\ndelete q noreply\r\ndelete q\r\ndelete a\r\n",
        "NOT_FOUND\r\nDELETED\r\n",
    );
    exchange(&mut stream, "ms m 3 T60\r\nabc\r\nmg m v t\r\nmg none v\r\nmd m\r\n", "HD\r\n");
    exchange(&mut stream, "mg none v q k\r\nmg long s v q k\r\nmn\r\n", "MN\r\n");
    exchange(&mut stream, "incr long 1\r\n", "value\r\n");
}

fn replies(entries: &[Entry], name: &str) -> Vec<String> {
    let of = entries.iter().filter(|entry| entry.arguments.word(0) == name.as_bytes());
    let shown = |entry: &Entry| match &entry.reply {
        None => "none".into(),
        Some(reply) => match reply.kind {
            RecordedKind::Error => reply.error.clone(),
            RecordedKind::Reply(kind) => format!("{} {}", kind.kind_name(), reply.size),
        },
    };
    of.map(shown).collect()
}

fn check_talk(path: &Path) {
    let (entries, totals) = read_recording(path);
    assert_eq!(RecordingReader::open_file(path).unwrap().header().protocol, RecordedProtocol::Memcached);
    let talked = entries.iter().find(|entry| entry.arguments.is_named("touch")).unwrap().connection;
    let own: Vec<Entry> = entries.iter().filter(|entry| entry.connection == talked).cloned().collect();
    for (name, expected) in [
        ("cas", &["status 0", "nil 0"][..]),
        ("gets", &["string 2"]),
        ("incr", &["integer 0", "nil 0", "CLIENT_ERROR"]),
        ("touch", &["status 0"]),
        ("gat", &["string 2"]),
        ("delete", &["none", "nil 0", "status 0"]),
        ("mg", &["string 3", "nil 0", "nil 0", "string 100000"]),
        ("mn", &["status 0"]),
    ] {
        assert_eq!(replies(&own, name), expected, "{name}");
    }
    assert!(replies(&own, "get").contains(&"array 2".to_owned()));
    let left: Vec<&String> = totals.left_out.keys().filter(|name| !name.starts_with("times")).collect();
    assert!(left.is_empty(), "{:?}", totals.left_out);
    let long = own.iter().find_map(|entry| entry.arguments.long_value(entry.arguments.count() - 1)).unwrap();
    assert_eq!(long.length, 100_000, "longer than the limit of values that are kept");
    let ok = |entry: &Entry| {
        entry.reply.as_ref().is_some_and(|reply| reply.kind == RecordedKind::Reply(ReplyKind::Status))
    };
    assert!(
        own.iter().filter(|entry| entry.arguments.is_named("set")).filter(|entry| ok(entry)).count() >= 2
    );
}

/// A load of dyno's own through an address, and what was said by hand.
fn load(dyno: &Dyno, port: u16) {
    let uri = format!("memcached://127.0.0.1:{port}");
    dyno.assert_ran(&dyno.run(&[
        "run",
        &uri,
        "--records",
        "300",
        "--ops",
        "2000",
        "--users",
        "1",
        "--no-out",
        "--reload",
    ]));
    talk(port);
}

/// Replays a recording on a fresh server, whose counts grow as those of the first did.
fn replay(dyno: &Dyno, recording: &str, grown: &BTreeMap<&str, u64>) {
    let Some(other) = Memcached::start("a replay on memcached", &["-m", "256"]) else { return };
    let before = counts(&other);
    let out = format!("{recording}.again");
    let output = dyno.run(&["replay", recording, &other.uri(), "--out", &out]);
    dyno.assert_ran(&output);
    let after = counts(&other);
    // A cas that fitted is sent as replace, which the server counts alike. What depends on the order of connections is in the
    // replies.
    let sum = |all: &dyn Fn(&str) -> u64, names: &[&str]| names.iter().map(|name| all(name)).sum::<u64>();
    for names in [
        &["cmd_get"][..],
        &["cmd_set"],
        &["cmd_touch"],
        &["delete_hits", "delete_misses"],
        &["incr_hits", "incr_misses"],
    ] {
        let now = sum(&|name| after[name] - before[name], names);
        assert_eq!(now, sum(&|name| grown[name], names), "{names:?}");
    }
    let summary = dyno.summary(&out);
    let replayed = &phase(&summary, "measure")["replay"];
    assert_eq!(replayed["missing"], 0, "{replayed}");
    let differs: u64 = ["error", "kind", "size"].iter().map(|way| replayed[*way].as_u64().unwrap()).sum();
    // A host that stalls may send something of one connection behind the begin of the next.
    assert!(differs * 20 <= replayed["compared"].as_u64().unwrap(), "{replayed}");
    // The server holds data now.
    let output = dyno.run(&["replay", recording, &other.uri(), "--no-out"]);
    assert_exit(&output, &[2]);
    assert!(stderr(&output).contains("--yes-write"), "{}", stderr(&output));
    assert_exit(
        &dyno.run(&["replay", recording, &other.uri(), "--no-out", "--only", "reads", "--speed", "max"]),
        &[0, 5],
    );
}

#[test]
fn a_proxy_before_memcached_records_what_it_counts() {
    let Some(server) = Memcached::start("a proxy before memcached", &["-m", "256"]) else { return };
    let dyno = Dyno::new();
    let proxy = start_proxy(&dyno, &server.uri(), &[]);
    let before = counts(&server);
    load(&dyno, proxy.port);
    let after = counts(&server);
    assert_exit(&proxy.end(), &[0]);
    check_talk(&dyno.path("traffic.dyno"));
    let grown: BTreeMap<&str, u64> = COUNTS.iter().map(|name| (*name, after[name] - before[name])).collect();
    replay(&dyno, "traffic.dyno", &grown);
}

#[test]
fn a_capture_of_memcached_records_what_it_counts() {
    let Some(server) = Memcached::start("a capture of memcached", &["-m", "256"]) else { return };
    let dyno = Dyno::new();
    let file = dyno.path("traffic.pcap");
    let Some(dump) = Tcpdump::start("lo", server.port, &file, &[]) else {
        return skip_capture("a capture of memcached");
    };
    let before = counts(&server);
    load(&dyno, server.port);
    let after = counts(&server);
    if dump.end(&file) > 0 {
        return skip_because("a capture of memcached", "the host is too busy: packets were dropped");
    }
    assert_exit(&dyno.run(&["record", "traffic.pcap", "--point", "server"]), &[0]);
    check_talk(&dyno.path("traffic.dyno"));
    // The counts are asked for on connections of their own, which are in the capture.
    let grown: BTreeMap<&str, u64> = COUNTS.iter().map(|name| (*name, after[name] - before[name])).collect();
    replay(&dyno, "traffic.dyno", &grown);
    // Without a word of the application's it is the same traffic.
    let anonymised =
        ["record", "traffic.pcap", "--point", "server", "--anonymise", "key", "-o", "others.dyno"];
    assert_exit(&dyno.run(&anonymised), &[0]);
    let entries = |name: &str| read_recording(&dyno.path(name)).0;
    let (then, now) = (entries("traffic.dyno"), entries("others.dyno"));
    assert_eq!(then.len(), now.len());
    let names =
        |entries: &[Entry]| entries.iter().map(|one| one.arguments.command_name()).collect::<Vec<_>>();
    assert_eq!(names(&then), names(&now));
    let is_said = |entry: &Entry| {
        entry.arguments.words().any(|word| word.starts_with(b"user") || word.starts_with(b"long"))
    };
    assert!(then.iter().any(is_said) && !now.iter().any(is_said));
    replay(&dyno, "others.dyno", &grown);
    // Its keys are in no slots, whatever the traffic is recorded from; nothing is left of what is refused.
    let listen = ["--listen", "127.0.0.1:0", "--to", &server.uri()];
    for source in [&["traffic.pcap"][..], &listen] {
        let kept = ["--anonymise", "key", "--keep-slots", "-o", "no.dyno"];
        let refused = dyno.run(&[&["record"], source, &kept].concat());
        assert_exit(&refused, &[2]);
        assert!(stderr(&refused).contains("keys of memcached are in no slots"), "{}", stderr(&refused));
        assert!(!dyno.path("no.dyno").exists(), "{source:?}");
    }
    // Every command of both protocols is learned, and another server takes them.
    assert_exit(&dyno.run(&["learn", "traffic.dyno", "-o", "own.yaml"]), &[0]);
    let Some(other) = Memcached::start("learn", &[]) else { return };
    let uri = format!("memcached://127.0.0.1:{}", other.port);
    let run =
        dyno.run(&["run", &uri, "--workload", "own.yaml", "--users", "2", "--ops", "4000", "--out", "l"]);
    assert_exit(&run, &[0, 5]);
    let summary = dyno.summary("l");
    let measured = phase(&summary, "measure");
    assert_eq!(arrivals(measured), 4_000, "{measured}");
    for wrong in ["not_implemented", "protocol", "disconnected", "unreachable", "timed_out"] {
        assert_eq!(outcome(measured, wrong), 0, "{wrong}: {}", stdout(&run));
    }
    // Then, too, a text was counted up, which the server refused; a word that cannot be sent there is none.
    assert!(!stdout(&run).contains("cannot have the word"), "{}", stdout(&run));
}
