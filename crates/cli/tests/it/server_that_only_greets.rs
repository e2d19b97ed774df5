//! Servers that answer greetings and questions about themselves, and nothing else: every command gives them up by itself, and
//! ends soon after two signals.

use dyno_testkit::{Dyno, assert_exit, fake_mongo, finish, signal, stderr};
use dyno_types::bson;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// No command takes longer, with what runs beside it.
const BOUND: Duration = Duration::from_secs(60);

/// Questions that were not answered.
type Unanswered = Arc<AtomicUsize>;

const INFO: &str = "# Server\r\nredis_version:7.2.0\r\nredis_mode:standalone\r\nrole:master\r\ntcp_port:1\r\n\
                    connected_clients:1\r\ntotal_commands_processed:1\r\n";

/// A message that a server sends unasked.
const PUSH: &str = ">2\r\n$7\r\nmessage\r\n$1\r\nx\r\n";

/// A Redis that answers no command on keys; returns `127.0.0.1:PORT`.
fn redis() -> (String, Unanswered) {
    greeting(|_| None)
}

/// A Redis that answers commands on keys with what `otherwise` does.
fn greeting(otherwise: fn(&TcpStream) -> Option<()>) -> (String, Unanswered) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let unanswered = Unanswered::default();
    let count = unanswered.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let count = count.clone();
            std::thread::spawn(move || greet(&stream, &count, otherwise));
        }
    });
    (place, unanswered)
}

fn greet(
    stream: &TcpStream,
    unanswered: &AtomicUsize,
    otherwise: fn(&TcpStream) -> Option<()>,
) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let number = |reader: &mut BufReader<&TcpStream>| {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            line.get(1..)?.trim().parse::<usize>().ok()
        };
        let words = number(&mut reader)?;
        let mut first = Vec::new();
        for at in 0..words {
            let mut word = vec![0; number(&mut reader)? + 2];
            reader.read_exact(&mut word).ok()?;
            if at == 0 {
                first = word;
            }
        }
        let reply = match String::from_utf8_lossy(&first).trim().to_uppercase().as_str() {
            "PING" => "+PONG\r\n".to_owned(),
            "HELLO" => "*2\r\n$5\r\nproto\r\n:2\r\n".to_owned(),
            "AUTH" | "SELECT" | "CLIENT" => "+OK\r\n".to_owned(),
            "CONFIG" => "*0\r\n".to_owned(),
            "INFO" => format!("${}\r\n{INFO}\r\n", INFO.len()),
            _ => {
                unanswered.fetch_add(1, Ordering::SeqCst);
                otherwise(stream);
                continue;
            }
        };
        writer.write_all(reply.as_bytes()).ok()?;
    }
}

/// A MongoDB that answers no command on collections; returns `127.0.0.1:PORT`.
fn mongo() -> (String, Unanswered) {
    let unanswered = Unanswered::default();
    let count = unanswered.clone();
    let place = fake_mongo::serve(move |me| {
        Arc::new(move |command, out| match command.name().as_str() {
            "hello" | "isMaster" | "ismaster" => fake_mongo::hello(&me, &[], &me, out),
            "buildInfo" | "serverStatus" => {
                bson::put_string(out, "version", "7.0.0");
                bson::put_double(out, "ok", 1.0);
            }
            "ping" | "hostInfo" | "getParameter" | "getCmdLineOpts" => bson::put_double(out, "ok", 1.0),
            _ => {
                count.fetch_add(1, Ordering::SeqCst);
                // The connection stays open for as long as this process lives.
                loop {
                    std::thread::park();
                }
            }
        })
    });
    (place, unanswered)
}

/// Commands by the server that they speak to: `PLACE` and `PORT` are put in.
const COMMANDS: [(&str, &str); 14] = [
    ("redis", "run redis://PLACE -n 1000 --ops 1000"),
    ("redis", "run redis://PLACE -n 1000 --reload --duration 1s"),
    ("redis", "run redis://PLACE -n 1000 --ops 1000 --no-load --timeout 1s"),
    ("redis", "run redis.yaml --out o"),
    ("redis", "prove ingest redis://PLACE --duration 5s --copies 1 --out o"),
    (
        "redis",
        "ycsb load redis -p redis.host=127.0.0.1 -p redis.port=PORT -p recordcount=1000 -p workload=core",
    ),
    (
        "redis",
        "ycsb run redis -p redis.host=127.0.0.1 -p redis.port=PORT -p recordcount=9 -p operationcount=1000 -p workload=core",
    ),
    ("redis", "memtier -u redis://PLACE -n 1000 -c 2 -t 1"),
    ("redis", "redis-benchmark -u redis://PLACE -n 1000 -t get"),
    ("mongo", "run mongodb://PLACE/t -n 1000 --ops 1000"),
    ("mongo", "run mongo.yaml --out o"),
    ("mongo", "prove ingest mongodb://PLACE/t --duration 5s --copies 1 --out o"),
    ("mongo", "pocdriver -c mongodb://PLACE -d 600"),
    (
        "mongo",
        "sysbench-mongodb --target mongodb://PLACE NUM_COLLECTIONS=1 NUM_DOCUMENTS_PER_COLLECTION=1000 RUN_TIME_SECONDS=5",
    ),
];

/// Starts a command against a server of its own.
fn start(server: &str, sentence: &str) -> (Dyno, std::process::Child, String, Unanswered) {
    let (place, unanswered) = if server == "redis" { redis() } else { mongo() };
    let dyno = Dyno::new();
    let port = place.rsplit(':').next().unwrap();
    let sentence = sentence.replace("PLACE", &place).replace("PORT", port);
    let scheme = if server == "redis" { "redis" } else { "mongodb" };
    let text = format!("target: {scheme}://{place}\nphases: {{load: {{}}, measure: {{operations: 100}}}}\n");
    std::fs::write(dyno.path(&format!("{server}.yaml")), text).unwrap();
    let child = dyno.start(&sentence.split(' ').collect::<Vec<_>>());
    (dyno, child, place, unanswered)
}

/// Does something with each command, all of them beside each other.
fn each(look: impl Fn(&str, &str) + Sync) {
    std::thread::scope(|scope| {
        for (server, message) in COMMANDS {
            let look = &look;
            scope.spawn(move || look(server, message));
        }
    });
}

#[test]
fn it_is_given_up_by_every_command() {
    each(|server, message| {
        let begun = Instant::now();
        let (_dyno, child, place, _) = start(server, message);
        let ended = finish(child);
        assert!(begun.elapsed() < BOUND, "{message}: {:?}", begun.elapsed());
        assert_exit(&ended, &[3]);
        let said = stderr(&ended);
        assert!(said.contains(&place), "{message} does not name {place}: {said}");
    });
}

/// A server that sends unasked messages without end is given up, too: time-outs and signals come in between.
#[test]
fn it_is_given_up_while_it_talks() {
    let flood = |mut stream: &TcpStream| {
        let much = PUSH.repeat(10_000);
        loop {
            stream.write_all(much.as_bytes()).ok()?;
        }
    };
    for (end, code) in [(None, 3), (Some("INT"), 130)] {
        let (place, unanswered) = greeting(flood);
        let dyno = Dyno::new();
        let uri = format!("redis://{place}?protocol=3");
        let begun = Instant::now();
        let child = dyno.start(&[
            "run",
            &uri,
            "-n",
            "1000",
            "--no-load",
            "--ops",
            "1000",
            "--timeout",
            "1s",
            "--no-out",
        ]);
        if let Some(name) = end {
            while unanswered.load(Ordering::SeqCst) == 0 {
                assert!(begun.elapsed() < BOUND, "nothing is asked for");
                std::thread::sleep(Duration::from_millis(5));
            }
            signal(child.id(), name);
        }
        let ended = finish(child);
        assert!(begun.elapsed() < BOUND, "{:?}", begun.elapsed());
        assert_exit(&ended, &[code]);
    }
}

#[test]
fn it_is_watched_for_as_long_as_was_asked_for() {
    let (place, _) = redis();
    let dyno = Dyno::new();
    let ended = dyno.run(&["top", &format!("redis://{place}"), "-n", "2", "--interval", "100ms"]);
    assert_exit(&ended, &[0]);
    let (place, unanswered) = mongo();
    let ended = dyno.run(&["top", &format!("mongodb://{place}"), "-n", "2", "--interval", "100ms"]);
    assert_exit(&ended, &[0, 3]);
    assert!(unanswered.load(Ordering::SeqCst) < 10);
}

#[test]
fn two_signals_end_every_command() {
    for name in ["INT", "TERM"] {
        each(|server, message| {
            // Nothing times out, so that signals alone end it.
            let message = message.replace("--timeout 1s", "--timeout 0");
            let (_dyno, mut child, _, unanswered) = start(server, &message);
            let begun = Instant::now();
            while unanswered.load(Ordering::SeqCst) == 0 && child.try_wait().unwrap().is_none() {
                assert!(begun.elapsed() < BOUND, "{message} asks for nothing");
                std::thread::sleep(Duration::from_millis(5));
            }
            let begun = Instant::now();
            signal(child.id(), name);
            std::thread::sleep(Duration::from_millis(100));
            if child.try_wait().unwrap().is_none() {
                signal(child.id(), name);
            }
            let ended = finish(child);
            assert!(begun.elapsed() < Duration::from_secs(8), "{message}: {:?}", begun.elapsed());
            assert_eq!(ended.status.code(), Some(130), "{message}: {}", stderr(&ended));
        });
    }
}

/// Before a run, too: servers that do not even greet, and a replica set that elects no primary. One signal is enough.
#[test]
fn who_stops_waits_for_no_greeting_and_no_election() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = silent.local_addr().unwrap();
    let reached = Unanswered::default();
    let (counted, greeted) = (reached.clone(), reached.clone());
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in silent.incoming().flatten() {
            counted.fetch_add(1, Ordering::SeqCst);
            held.push(stream);
        }
    });
    let without_primary = fake_mongo::serve(move |me| {
        Arc::new(move |command, out| {
            greeted.fetch_add(1, Ordering::SeqCst);
            match command.name().as_str() {
                "hello" | "isMaster" | "ismaster" => {
                    fake_mongo::hello("127.0.0.1:1", &[me.clone(), "127.0.0.1:1".into()], &me, out);
                }
                _ => bson::put_double(out, "ok", 1.0),
            }
        })
    });
    // Each of them alone is given up after 5 s.
    let all = vec![place.to_string(); 20].join(",");
    let elected = format!("mongodb://{without_primary}/t?replicaSet=rs0&serverSelectionTimeoutMS=100000");
    for uri in [format!("redis://{all}"), format!("mongodb://{all}/t"), elected] {
        let dyno = Dyno::new();
        let before = reached.load(Ordering::SeqCst);
        let child = dyno.start(&["run", &uri, "-n", "1000", "--ops", "1000", "--no-out"]);
        let begun = Instant::now();
        while reached.load(Ordering::SeqCst) == before {
            assert!(begun.elapsed() < BOUND, "{uri} is not asked");
            std::thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        signal(child.id(), "INT");
        assert_exit(&finish(child), &[130]);
        assert!(begun.elapsed() < Duration::from_secs(10), "{uri}: {:?}", begun.elapsed());
    }
}
