//! Pushers against receivers that take, refuse, come late or never.

use super::*;
use dyno_monitor::prometheus::{Families, FamilyKind, MetricHistogram, SeriesValue};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

pub(crate) fn sender() -> Sender {
    Sender { host: "h".into(), run: "r".into(), target: "redis://h".into(), version: "1.2".into() }
}

/// So many milliseconds after 1970; the load began at 1 s.
pub(crate) fn snapshot(at_ms: u64, operations: u64) -> Snapshot {
    let since = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
    let mut families = Families::with_labels(&[]);
    families.begin("dyno_operations_total", FamilyKind::Counter, "1", "Ended operations.");
    families.add_series(&[("phase", "load"), ("empty", "")], since, SeriesValue::Number(operations as f64));
    families.begin("dyno_service_seconds", FamilyKind::Histogram, "s", "Times.");
    let histogram = MetricHistogram { up_to: vec![(0.001, 5), (0.1, 6)], count: 7, sum: 0.5 };
    families.add_series(&[("phase", "load")], since, SeriesValue::Histogram(histogram));
    families.add_number(("dyno_users", FamilyKind::Gauge, "1"), "Users.", None, 3.0);
    Snapshot { at: SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms), families: families.into_vec() }
}

/// A request as a receiver has it: head in lower case, body.
type ReceivedRequest = (String, Vec<u8>);

fn read(reader: &mut impl BufRead) -> Option<ReceivedRequest> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line.to_ascii_lowercase());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?.trim().parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Answers one request after the other with these; the last of them again and again.
fn receiver(answers: &'static [&'static str]) -> (String, mpsc::Receiver<ReceivedRequest>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (told, requests) = mpsc::channel();
    std::thread::spawn(move || {
        let mut answered = 0;
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            while let Some(request) = read(&mut reader) {
                let answer = answers[answered.min(answers.len() - 1)];
                answered += 1;
                if reader.get_mut().write_all(answer.as_bytes()).is_err() || told.send(request).is_err() {
                    return;
                }
            }
        }
    });
    (url, requests)
}

const FINE: &str = "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n";
const REFUSED: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 14\r\n\r\nout of order\n\n";
const LATER: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 0\r\ncontent-length: 0\r\n\r\n";
const ELSEWHERE: &str =
    "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n";

const LONG: Duration = Duration::from_secs(30);

fn pusher(protocol: PushProtocol, url: &str) -> Pusher {
    let headers = vec![("authorization".to_owned(), "Bearer of-the-tests".to_owned())];
    Pusher::start(Receiver::parse(protocol, url, headers).unwrap(), sender()).unwrap()
}

fn end() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000)
}

fn complaint(pusher: &Pusher) -> String {
    let end = Instant::now() + LONG;
    while Instant::now() < end {
        if let Some(message) = pusher.complaint() {
            return message;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no push was refused");
}

#[test]
fn requests_have_the_heads_that_the_specifications_ask_for() {
    let (url, requests) = receiver(&[FINE]);
    let written = pusher(PushProtocol::RemoteWrite, &url);
    written.push(Arc::new(snapshot(1_000, 1)));
    written.push(Arc::new(snapshot(2_000, 2)));
    assert_eq!(written.finish(end(), LONG), Delivery { taken: 3, lost: 0, first: None });
    let (head, body) = requests.recv().unwrap();
    assert!(head.starts_with("post /api/v1/write http/1.1\r\n"), "{head}");
    for line in [
        "content-type: application/x-protobuf",
        "content-encoding: snappy",
        "x-prometheus-remote-write-version: 0.1.0",
        "authorization: bearer of-the-tests",
    ] {
        assert!(
            head.contains(&format!("\r\n{line}\r\n")) || head.contains(&format!("\n{line}\r\n")),
            "{head}"
        );
    }
    assert!(head.contains("user-agent: dyno/"), "{head}");
    assert!(!body.is_empty());
    let otlp = pusher(PushProtocol::Otlp, &url);
    otlp.push(Arc::new(snapshot(1_000, 1)));
    assert_eq!(otlp.finish(end(), LONG).taken, 1);
    let (head, _) = requests.iter().find(|(head, _)| head.starts_with("post /v1/metrics ")).unwrap();
    assert!(
        head.contains("content-type: application/x-protobuf") && !head.contains("content-encoding"),
        "{head}"
    );
}

#[test]
fn what_is_refused_is_told_once_and_counted() {
    for (protocol, lost) in [(PushProtocol::RemoteWrite, 4), (PushProtocol::Otlp, 3)] {
        let (url, _requests) = receiver(&[REFUSED]);
        let pusher = pusher(protocol, &url);
        (1..=3).for_each(|n| pusher.push(Arc::new(snapshot(n * 1_000, n))));
        let message = "answered 400 Bad Request: out of order";
        assert_eq!(complaint(&pusher), message);
        assert_eq!(pusher.finish(end(), LONG), Delivery { taken: 0, lost, first: Some(message.into()) });
        assert_eq!(pusher.complaint(), None);
    }
    let (url, _requests) = receiver(&[ELSEWHERE]);
    let pusher = pusher(PushProtocol::Otlp, &url);
    pusher.push(Arc::new(snapshot(1_000, 1)));
    assert_eq!(complaint(&pusher), "answered 307 Temporary Redirect", "headers do not go elsewhere");
}

#[test]
fn what_is_refused_for_now_is_sent_again_in_order() {
    let (url, requests) = receiver(&[LATER, LATER, FINE]);
    let pusher = pusher(PushProtocol::Otlp, &url);
    (1..=3).for_each(|n| pusher.push(Arc::new(snapshot(n * 1_000, n))));
    let bodies: Vec<Vec<u8>> = (0..5).map(|_| requests.recv_timeout(LONG).unwrap().1).collect();
    let body = |n: u64| otlp::encode(&sender(), &snapshot(n * 1_000, n));
    assert_eq!(bodies, [body(1), body(1), body(1), body(2), body(3)]);
    let delivery = pusher.finish(end(), LONG);
    assert_eq!((delivery.taken, delivery.lost), (3, 0));
    assert_eq!(delivery.first.as_deref(), Some("answered 503 Service Unavailable"));
}

#[test]
fn a_part_that_is_rejected_is_lost() {
    // partial_success { rejected_data_points: 2, error_message: "old" }
    const PARTLY: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n\x0a\x07\x08\x02\x12\x03old";
    let (url, _requests) = receiver(&[PARTLY]);
    let pusher = pusher(PushProtocol::Otlp, &url);
    pusher.push(Arc::new(snapshot(1_000, 1)));
    let delivery = pusher.finish(end(), LONG);
    assert_eq!((delivery.taken, delivery.lost), (0, 1));
    assert_eq!(delivery.first.as_deref(), Some("did not take 2 data points: old"));
}

#[test]
fn an_absent_receiver_loses_all_but_what_the_queue_holds_and_delays_no_end() {
    // Bound and not listened on: no other process gets the port, and no receiver answers.
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let pusher = pusher(PushProtocol::RemoteWrite, &format!("http://{closed}"));
    (1..=100).for_each(|n| pusher.push(Arc::new(snapshot(n * 1_000, n))));
    assert!(complaint(&pusher).starts_with("no answer: Connection refused"));
    let delivery = pusher.finish(end(), LONG);
    assert_eq!((delivery.taken, delivery.lost), (0, 101));
}

#[test]
fn one_that_never_answers_is_waited_for_no_longer_than_was_said() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let pusher = pusher(PushProtocol::Otlp, &format!("http://{}", listener.local_addr().unwrap()));
    pusher.push(Arc::new(snapshot(1_000, 1)));
    pusher.push(Arc::new(snapshot(2_000, 2)));
    let delivery = pusher.finish(end(), Duration::from_millis(50));
    assert_eq!((delivery.taken, delivery.lost), (0, 2));
}
