//! Whose clock ends a service time: a server that answers soon, and a client that is kept from its work for 100 ms at a time.

use dyno_databases::registry;
use dyno_engine::{Clock, Control, End, Pacing, RunError};
use dyno_record::{Scale, Totals};
use dyno_session::oracle::ping_job;
use dyno_types::{Content, Request};
use dyno_workload::{Draw, Frontier, Workload};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

const OPERATIONS: u64 = 60;

/// Far more than the server takes, and less than the client is kept.
const LATE_NS: u64 = 60_000_000;

/// One operation in five keeps the load thread for so long.
const KEPT: Duration = Duration::from_millis(100);

/// Pings whose drawing keeps the thread from everything else.
struct Keeping(Arc<dyn Workload>);

impl Workload for Keeping {
    fn metrics(&self) -> &[String] {
        self.0.metrics()
    }
    fn content(&self) -> Arc<dyn Content> {
        self.0.content()
    }
    fn draw(&self, index: u64) -> Draw {
        if index % 5 == 4 {
            std::thread::sleep(KEPT);
        }
        self.0.draw(index)
    }
    fn bind(&self, draw: &Draw, frontier: &Frontier) -> Request {
        self.0.bind(draw, frontier)
    }
    fn is_pure(&self) -> bool {
        true
    }
}

/// How a read is answered.
#[derive(Clone, Copy)]
enum Manner {
    /// On every second connection at once, and on the others after 20 ms: their users wait for it while the thread draws for
    /// the others.
    Slow,
    /// By 64 KiB in pieces, 2 ms apart.
    Pieces,
}

/// Bytes of a piece, how many there are, and how far apart they are.
const PIECE: usize = 4 << 10;
const PIECES: u32 = 16;
const APART: Duration = Duration::from_millis(2);

/// A Redis of this manner.
fn server(manner: Manner) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (at, stream) in listener.incoming().flatten().enumerate() {
            std::thread::spawn(move || answer(&stream, manner, at));
        }
    });
    format!("redis://{place}")
}

fn answer(stream: &TcpStream, manner: Manner, connection: usize) -> Option<()> {
    stream.set_nodelay(true).ok()?;
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
        let info = "redis_version:7.2.0\r\nredis_mode:standalone\r\nrole:master\r\n";
        let reply = match String::from_utf8_lossy(&first).trim() {
            "INFO" => format!("${}\r\n{info}\r\n", info.len()),
            "HGETALL" => match manner {
                Manner::Slow => {
                    std::thread::sleep(Duration::from_millis(if connection.is_multiple_of(2) {
                        20
                    } else {
                        0
                    }));
                    "*2\r\n$1\r\na\r\n$1\r\nb\r\n".to_owned()
                }
                Manner::Pieces => {
                    let bytes = PIECE * PIECES as usize;
                    let reply = format!("*2\r\n$1\r\na\r\n${bytes}\r\n{}\r\n", "x".repeat(bytes));
                    let (first, last) = reply.as_bytes().split_at(reply.len() - PIECE);
                    for piece in first.chunks(PIECE) {
                        writer.write_all(piece).ok()?;
                        std::thread::sleep(APART);
                    }
                    String::from_utf8_lossy(last).into_owned()
                }
            },
            "CONFIG" => "*0\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        writer.write_all(reply.as_bytes()).ok()?;
    }
}

/// Two users, one thread; the totals, how many answers were late, and how long it took in seconds.
fn run(uri: &str, stamps: Clock) -> (Totals, u64, f64) {
    let end = End { operations: Some(OPERATIONS), duration_ns: None };
    let mut job = ping_job(Pacing::Closed { think_ns: 0 }, 2, 1, end);
    job.workload = Arc::new(Keeping(job.workload.clone()));
    job.raw_samples = true;
    job.stamps = stamps;
    let opened = registry::parse(uri).unwrap().open(job.workload.content(), &|| false).unwrap();
    let mut totals = Totals::new(1, Scale::Ns64);
    let finished = opened
        .run(job, Arc::new(Control::default()), &mut |second| {
            totals.merge(&second.totals);
            totals.samples.extend_from_slice(&second.totals.samples);
        })
        .unwrap();
    let late = totals.samples.iter().filter(|sample| sample.service_ns >= LATE_NS).count() as u64;
    (totals, late, finished.elapsed_ns as f64 / 1e9)
}

#[test]
fn a_client_that_is_late_is_no_part_of_the_kernels_service_times() {
    let uri = server(Manner::Slow);
    for stamps in [Clock::Client, Clock::Kernel] {
        let (totals, late, elapsed_s) = run(&uri, stamps);
        assert_eq!((totals.count_ok(), totals.samples.len() as u64), (OPERATIONS, OPERATIONS));
        let by = totals.stamps;
        match stamps {
            // The other user's answer waits while the thread is kept.
            Clock::Client => {
                assert!(late >= 5, "{late} late");
                assert_eq!(by.kernel + by.client, 0);
            }
            Clock::Kernel | Clock::Hardware => {
                assert_eq!(by.kernel + by.client, OPERATIONS);
                assert!(by.kernel > 0, "the kernel has stamped nothing");
                assert!(late <= by.client, "{late} late, {by:?}");
                // What the client was late is told apart.
                assert!(totals.receive_lag.max_ns() >= LATE_NS, "{}", totals.receive_lag.max_ns());
            }
        }
        // What is no service is turnaround: users are all there all the time (Little's law), but for the very end.
        let service_s = totals.ok_slot(0).unwrap().service.sum_ns() as f64 / 1e9;
        let users = (service_s + totals.turnaround.sum_ns() as f64 / 1e9) / elapsed_s;
        assert!((1.8..2.01).contains(&users), "{users} users");
    }
}

#[test]
fn a_reply_in_many_segments_has_the_time_of_its_last() {
    let (totals, _, _) = run(&server(Manner::Pieces), Clock::Kernel);
    assert_eq!((totals.count_ok(), totals.stamps.kernel + totals.stamps.client), (OPERATIONS, OPERATIONS));
    assert!(totals.stamps.kernel > 0 && totals.stamps.shared == 0, "{:?}", totals.stamps);
    let least = APART * PIECES;
    let service = &totals.ok_slot(0).unwrap().service;
    assert!(service.min_ns() >= least.as_nanos() as u64, "{} of {least:?}", service.min_ns());
}

#[test]
fn hardware_stamps_are_refused_where_there_are_none() {
    for uri in [server(Manner::Slow).as_str(), "null:"] {
        let mut job =
            ping_job(Pacing::Closed { think_ns: 0 }, 2, 1, End { operations: Some(9), duration_ns: None });
        job.stamps = Clock::Hardware;
        let opened = registry::parse(uri).unwrap().open(job.workload.content(), &|| false).unwrap();
        let refused = opened.run(job, Arc::new(Control::default()), &mut |_| {}).unwrap_err();
        assert!(
            matches!(&refused, RunError::Refused(why) if why.to_string().contains("--stamps hardware")),
            "{refused}"
        );
    }
}
