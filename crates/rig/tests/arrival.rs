//! Whose clock ends a service time: a server that answers soon, and a client that is kept from its work for 100 ms at a time.

use dyno_engine::{Clock, Control, End, Pacing};
use dyno_record::{Scale, Totals};
use dyno_rig::Target;
use dyno_rig::oracle::job;
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

/// A Redis that answers a read on every second connection at once, and on the others after 20 ms: their users wait for it while
/// the thread draws for the others.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for (at, stream) in listener.incoming().flatten().enumerate() {
            let after = Duration::from_millis(if at % 2 == 0 { 20 } else { 0 });
            std::thread::spawn(move || answer(&stream, after));
        }
    });
    format!("redis://{place}")
}

fn answer(stream: &TcpStream, after: Duration) -> Option<()> {
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
            "HGETALL" => {
                std::thread::sleep(after);
                "*2\r\n$1\r\na\r\n$1\r\nb\r\n".to_owned()
            }
            "CONFIG" => "*0\r\n".to_owned(),
            _ => "+OK\r\n".to_owned(),
        };
        writer.write_all(reply.as_bytes()).ok()?;
    }
}

/// Two users, one thread; the totals, how many answers were late, and how long it took in seconds.
fn run(uri: &str, stamps: Clock) -> (Totals, u64, f64) {
    let end = End { operations: Some(OPERATIONS), duration_ns: None };
    let mut job = job(Pacing::Closed { think_ns: 0 }, 2, 1, end);
    job.workload = Arc::new(Keeping(job.workload.clone()));
    job.raw_samples = true;
    job.stamps = stamps;
    let opened = Target::parse(uri).unwrap().open(job.workload.content(), &|| false).unwrap();
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
    let uri = server();
    for stamps in [Clock::Client, Clock::Kernel] {
        let (totals, late, elapsed_s) = run(&uri, stamps);
        assert_eq!((totals.ok(), totals.samples.len() as u64), (OPERATIONS, OPERATIONS));
        let by = totals.stamps;
        match stamps {
            // The other user's answer waits for whoever is kept.
            Clock::Client => {
                assert!(late >= 5, "{late} late");
                assert_eq!(by.kernel + by.client, 0);
            }
            Clock::Kernel => {
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
