//! Times of arrival on real sockets: what is said, what is not, and of which bytes.

use super::*;
use crate::net::{Received, Socket, monotonic_ns, tls_config};
use dyno_types::Endpoint;
use dyno_types::address::Tls;
use rustix::time::{ClockId, clock_gettime};
use rustls::{ServerConfig, ServerConnection, crypto::ring};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

/// CLOCK_REALTIME so long ago.
fn ago(ns_ago: u64) -> u64 {
    ns(clock_gettime(ClockId::Realtime)) - ns_ago
}

#[test]
fn a_card_that_says_nothing_leaves_the_kernel_s_time() {
    let mut clocks = Clocks::default();
    clocks.cards.push((
        IpAddr::from([127, 0, 0, 1]),
        Arc::new(CardClock::of_nothing()),
        WallClock::default(),
    ));
    let (before, day) = (monotonic_ns(), 86_400_000_000_000);
    let mut stamp = |source, kernel_ns, card_ns| clocks.stamp(source, Times { kernel_ns, card_ns });
    assert_eq!(stamp(StampSource::Kernel, 0, 0), Stamp::Missing);
    assert_eq!(stamp(StampSource::Card(0), 0, 0), Stamp::Missing);
    // The card's clock cannot be read.
    assert_eq!(stamp(StampSource::Card(0), 0, day), Stamp::Missing);
    for card_ns in [0, day] {
        let Stamp::At { at_ns, by_card: false } = stamp(StampSource::Card(0), ago(1_000_000), card_ns) else {
            panic!("the kernel's time")
        };
        assert!(at_ns < monotonic_ns() && at_ns + 500_000_000 > before, "{at_ns} {before}");
    }
}

/// A card whose clock is the monotonic one plus an hour, as far as the test says.
#[test]
fn a_card_s_time_is_mapped_by_its_own_clock() {
    let mut known = WallClock::default();
    let hour = 3_600_000_000_000;
    let mut now_ns = 5_000_000_000;
    for _ in 0..100 {
        known.note_wake();
        let read = || ClockReading { before_ns: now_ns, wall_ns: now_ns + 50 + hour, after_ns: now_ns + 100 };
        let at_ns = known.arrived_ns(now_ns + hour - 9_000, read).unwrap();
        assert_eq!(at_ns, now_ns - 9_000);
        now_ns += 1_000_000;
    }
}

#[test]
fn where_the_kernel_refuses_there_are_no_stamps() {
    let (reader, _writer) = std::io::pipe().unwrap();
    assert_eq!(ask_for_stamps(&OwnedFd::from(reader), &Clocks::default()), StampSource::None);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    assert_eq!(ask_for_stamps(&OwnedFd::from(connected), &Clocks::default()), StampSource::Kernel);
}

#[test]
fn a_connection_knows_the_card_of_its_own_address() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connected = || OwnedFd::from(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
    let cards =
        |address: [u8; 4]| NicClocks(vec![(IpAddr::from(address), Arc::new(CardClock::of_nothing()))]);
    assert_eq!(ask_for_stamps(&connected(), &Clocks::new(&cards([127, 0, 0, 1]))), StampSource::Card(0));
    assert_eq!(ask_for_stamps(&connected(), &Clocks::new(&cards([127, 0, 0, 9]))), StampSource::Kernel);
}

/// Bytes of a reply.
const REPLY: usize = 64 << 10;
/// Number of bytes that are sent at a time: pieces end within records and within each other's segments.
const PIECE: usize = 5_000;

/// Answers one byte with a reply in pieces, a while apart; gives the time just before the last piece.
fn in_pieces(mut stream: TcpStream, bytes: &[u8]) -> u64 {
    let mut last_ns = 0;
    for piece in bytes.chunks(PIECE) {
        sleep(Duration::from_millis(2));
        last_ns = monotonic_ns();
        stream.write_all(piece).unwrap();
    }
    last_ns
}

fn plain_server(listener: TcpListener) -> JoinHandle<u64> {
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_nodelay(true).unwrap();
        stream.read_exact(&mut [0]).unwrap();
        in_pieces(stream, &[7; REPLY])
    })
}

fn tls_server(listener: TcpListener) -> JoinHandle<u64> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.set_nodelay(true).unwrap();
        let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
        tls.set_buffer_limit(None);
        rustls::Stream::new(&mut tls, &mut stream).read_exact(&mut [0]).unwrap();
        tls.writer().write_all(&[7; REPLY]).unwrap();
        let mut records = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut records).unwrap();
        }
        in_pieces(stream, &records)
    })
}

/// A reply that comes in many segments, over plain TCP and in TLS records that end in the middle of them: each receive has the
/// time of what came last, and the reply that of its last byte, whether the client was waiting or came late. On a busy host a
/// reading of the clocks may be interrupted, and what is received then has no time: such a reply says nothing of its end.
#[test]
fn a_long_reply_ends_with_its_last_byte() {
    for (encrypted, late) in [(false, false), (false, true), (true, false), (true, true)] {
        assert!(
            (0..20).any(|_| has_its_end(encrypted, late)),
            "encrypted {encrypted}, late {late}: never known"
        );
    }
}

/// Asks for a reply, and says whether the time of its end is known: then it is right.
fn has_its_end(encrypted: bool, late: bool) -> bool {
    let what = format!("encrypted {encrypted}, late {late}");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = if encrypted { tls_server(listener) } else { plain_server(listener) };
    let tls = encrypted.then(|| tls_config(&Tls { insecure: true, ..Tls::default() }).unwrap());
    let to = Endpoint::Tcp { host: "localhost".into(), address };
    let mut clocks = Clocks::default();
    let mut socket = Socket::connect(&to, tls.as_ref(), Some(&clocks)).unwrap();
    let begun_ns = monotonic_ns();
    let patience = |what: &str| {
        assert!(monotonic_ns() < begun_ns + 60_000_000_000, "{what}");
        sleep(Duration::from_micros(200));
    };
    while !socket.established().unwrap() {
        patience(&what);
    }
    assert_eq!(socket.send(b"?").unwrap(), 1);
    let mut server = Some(server);
    let mut last_ns = late.then(|| server.take().unwrap().join().unwrap());
    // Smaller than a record and than a segment.
    let (mut buffer, mut total, mut before_ns, mut known) = ([0; 1_500], 0, begun_ns, false);
    while total < REPLY {
        clocks.woken();
        match socket.recv_stamped(&mut buffer, &mut clocks).unwrap() {
            Received::Empty => patience(&what),
            Received::Closed => break,
            Received::Bytes { n, stamp: Stamp::At { at_ns, by_card: false }, .. } => {
                total += n;
                // Readings of the two clocks are as near as this to each other.
                assert!(at_ns + 100_000 >= before_ns && at_ns <= monotonic_ns() + 100_000, "{what}");
                (before_ns, known) = (at_ns, true);
            }
            Received::Bytes { n, stamp: Stamp::Missing, .. } => (total, known) = (total + n, false),
            other => panic!("{what}: {other:?}"),
        }
    }
    if let Some(server) = server {
        last_ns = Some(server.join().unwrap());
    }
    assert_eq!(total, REPLY, "{what}");
    let last_ns = last_ns.unwrap();
    let ends = before_ns + 100_000 >= last_ns;
    assert!(ends || !known, "{what}: {before_ns} is before the last piece at {last_ns}");
    known
}
