use super::*;
use crate::format::{RecordedEvent, RecordingReader};
use crate::{Entry, RecordedKind};
use dyno_types::Endpoint;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;

/// A proxy in a thread of its own, which is ended by [`Proxied::end`].
struct Proxied<W> {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Result<ProxyTotals, ProxyError>, W)>,
}

/// A writer that keeps what it gets, and fails when it is full.
struct Limited {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for &mut Limited {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::Tcp { host: address.ip().to_string(), address }
}

fn proxied(to: SocketAddr, connections: usize, limit: usize) -> Proxied<Limited> {
    proxied_by(to, StreamTls::default(), connections, limit)
}

fn proxied_by(to: SocketAddr, tls: StreamTls, connections: usize, limit: usize) -> Proxied<Limited> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let thread = std::thread::spawn(move || {
        let settings = ProxySettings {
            protocol: PairedProtocol::Redis,
            to: endpoint(to),
            tls,
            connections,
            duration: None,
            value_limit: 64 << 10,
        };
        let mut kept = Limited { bytes: Vec::new(), limit };
        let writer = RecordingWriter::new(&mut kept, &proxy_header(PairedProtocol::Redis, 64 << 10)).unwrap();
        let ended = run_proxy(listener, &settings, Some(writer), &stopped);
        (ended, kept)
    });
    Proxied { address, stop, thread }
}

impl Proxied<Limited> {
    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    fn end(self) -> (Result<ProxyTotals, ProxyError>, Vec<u8>) {
        self.stop.store(true, Ordering::Relaxed);
        let (ended, kept) = self.thread.join().unwrap();
        (ended, kept.bytes)
    }
}

fn entries(bytes: &[u8]) -> Vec<Entry> {
    let mut reader = RecordingReader::new(bytes).unwrap();
    let (mut all, mut entry) = (Vec::new(), Entry::default());
    while let Some(event) = reader.next_event(&mut entry).unwrap() {
        match event {
            RecordedEvent::Entry => all.push(entry.clone()),
            RecordedEvent::LateReply { number, reply } => all[number as usize].reply = Some(reply),
        }
    }
    all
}

/// A server that does `serve` with each connection, in threads that end with it.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

#[test]
fn a_client_that_has_said_all_still_gets_its_replies() {
    // It answers when the client sends no more.
    let to = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"*1\r\n$4\r\nPING\r\nget a\r\n");
        stream.write_all(b"+PONG\r\n$2\r\nxy\r\n").unwrap();
    });
    let proxy = proxied(to, 10, usize::MAX);
    let mut client = proxy.connect();
    client.write_all(b"*1\r\n$4\r\nPING\r\nget a\r\n").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    assert_eq!(all, b"+PONG\r\n$2\r\nxy\r\n");
    let (ended, bytes) = proxy.end();
    let totals = ended.unwrap().recording.unwrap();
    assert_eq!((totals.commands, totals.replies, totals.connections), (2, 2, 1));
    let found = entries(&bytes);
    assert!(found[1].overlaps && !found[0].overlaps);
    assert!(found.iter().all(|entry| entry.reply.as_ref().is_some_and(|reply| reply.after_ns.is_some())));
}

#[test]
fn a_slow_reader_holds_its_server_and_no_memory() {
    const TOTAL: usize = 64 << 20;
    let sent = Arc::new(AtomicU64::new(0));
    let counted = sent.clone();
    let to = server(move |mut stream| {
        let mut command = [0; 11];
        stream.read_exact(&mut command).unwrap();
        stream.write_all(format!("${TOTAL}\r\n").as_bytes()).unwrap();
        let part: Vec<u8> = (0..1 << 16).map(|n: u32| (n % 251) as u8).collect();
        for _ in 0..TOTAL / part.len() {
            stream.write_all(&part).unwrap();
            counted.fetch_add(part.len() as u64, Ordering::Relaxed);
        }
        stream.write_all(b"\r\n").unwrap();
    });
    let proxy = proxied(to, 10, usize::MAX);
    let mut client = proxy.connect();
    client.write_all(b"get large\r\n").unwrap();
    // Until the server can send no more: buffers of sockets take some megabytes.
    let mut before = u64::MAX;
    while before != sent.load(Ordering::Relaxed) || before == 0 {
        before = sent.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(before < TOTAL as u64 / 2, "{before} bytes were taken from the server");
    let mut all = Vec::new();
    let head = format!("${TOTAL}\r\n");
    while all.len() < head.len() + TOTAL + 2 {
        let mut part = vec![0; 1 << 20];
        let count = client.read(&mut part).unwrap();
        assert!(count > 0);
        all.extend_from_slice(&part[..count]);
    }
    let wrong = all[head.len()..all.len() - 2]
        .chunks(1 << 16)
        .find(|part| part.iter().enumerate().any(|(at, byte)| *byte != (at % 251) as u8));
    assert!(wrong.is_none() && all.ends_with(b"\r\n"));
    let (ended, bytes) = proxy.end();
    assert!(ended.is_ok());
    let reply = entries(&bytes)[0].reply.clone().unwrap();
    assert_eq!(reply.size, TOTAL as u64);
}

#[test]
fn a_server_that_is_gone_closes_clients_and_is_counted() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let proxy = proxied(gone, 10, usize::MAX);
    for _ in 0..3 {
        let mut client = proxy.connect();
        let _ = client.write_all(b"ping\r\n");
        let mut all = Vec::new();
        // Closed or reset, as the kernel sees it.
        let _ = client.read_to_end(&mut all);
        assert_eq!(all, b"");
    }
    let (ended, _) = proxy.end();
    let totals = ended.unwrap();
    assert_eq!(totals.accepted, 3);
    assert_eq!(totals.recording.unwrap().left_out.get(reason::UNREACHABLE), Some(&3));
}

#[test]
fn clients_above_the_limit_are_closed() {
    let to = server(|mut stream| {
        let mut part = [0; 64];
        while stream.read(&mut part).is_ok_and(|count| count > 0) {
            stream.write_all(b"+PONG\r\n").unwrap();
        }
    });
    let proxy = proxied(to, 1, usize::MAX);
    let ping = |client: &mut TcpStream| {
        let _ = client.write_all(b"ping\r\n");
        let mut reply = [0; 7];
        client.read_exact(&mut reply).is_ok()
    };
    let mut first = proxy.connect();
    assert!(ping(&mut first));
    assert!(!ping(&mut proxy.connect()));
    assert!(ping(&mut first));
    let (ended, _) = proxy.end();
    let totals = ended.unwrap();
    let recording = totals.recording.unwrap();
    assert_eq!((recording.commands, recording.left_out.get(reason::TOO_MANY)), (2, Some(&1)));
}

#[test]
fn a_full_disk_ends_the_proxy_with_an_error() {
    let to = server(|mut stream| {
        let mut part = vec![0; 1 << 20];
        while stream.read(&mut part).is_ok_and(|count| count > 0) {}
    });
    let proxy = proxied(to, 10, 100_000);
    let mut client = proxy.connect();
    let mut draws = 1u64;
    // Values that cannot be packed, until the proxy closes the connection.
    let ended = loop {
        let value: Vec<u8> = (0..50_000)
            .map(|_| {
                draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (draws >> 56) as u8
            })
            .collect();
        let command = [b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$50000\r\n", &value[..], b"\r\n"].concat();
        if let Err(error) = client.write_all(&command) {
            break error;
        }
    };
    assert!(matches!(ended.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset));
    let (ended, _) = proxy.end();
    assert!(matches!(ended, Err(ProxyError::Recording(RecordingError::Io(_)))), "{ended:?}");
}

#[test]
fn commands_of_many_connections_keep_their_order_and_their_numbers() {
    let to = server(|mut stream| {
        let mut part = vec![0; 4_096];
        while let Ok(count) = stream.read(&mut part) {
            // One reply to each line.
            let lines = part[..count].iter().filter(|byte| **byte == b'\n').count();
            if count == 0 || stream.write_all(&b":1\r\n".repeat(lines)).is_err() {
                return;
            }
        }
    });
    let proxy = proxied(to, 100, usize::MAX);
    std::thread::scope(|scope| {
        for user in 0..8 {
            let mut client = proxy.connect();
            scope.spawn(move || {
                for n in 0..200 {
                    client.write_all(format!("incr u{user}:{n}\r\n").as_bytes()).unwrap();
                    let mut reply = [0; 4];
                    client.read_exact(&mut reply).unwrap();
                }
            });
        }
    });
    let (ended, bytes) = proxy.end();
    assert_eq!(ended.unwrap().recording.unwrap().replies, 1_600);
    let found = entries(&bytes);
    assert!(found.is_sorted_by_key(|entry| entry.at_ns) && found.len() == 1_600);
    for connection in 0..8 {
        let own: Vec<String> = found
            .iter()
            .filter(|entry| entry.connection == connection)
            .map(|entry| String::from_utf8_lossy(entry.arguments.word(1)).into_owned())
            .collect();
        let user = own[0].split(':').next().unwrap();
        let expected: Vec<String> = (0..200).map(|n| format!("{user}:{n}")).collect();
        assert_eq!(own, expected);
    }
    let is_number = |entry: &Entry| {
        entry
            .reply
            .as_ref()
            .is_some_and(|reply| reply.kind == RecordedKind::Reply(dyno_types::command::ReplyKind::Integer))
    };
    assert!(found.iter().all(is_number));
}

#[test]
fn both_sides_are_asked_whether_they_are_still_there() {
    use super::stream::Stream;
    use rustix::net::sockopt;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let to_server = Stream::begin_connect(&endpoint(address), &StreamTls::default()).unwrap();
    let accepted = listener.accept().unwrap().0;
    let to_client = Stream::from_accepted(accepted.into(), &StreamTls::default()).unwrap();
    for stream in [to_server, to_client] {
        assert!(sockopt::socket_keepalive(stream.fd()).unwrap());
        assert_eq!(sockopt::tcp_keepidle(stream.fd()).unwrap(), Duration::from_secs(60));
        assert_eq!(sockopt::tcp_keepintvl(stream.fd()).unwrap(), Duration::from_secs(10));
        assert_eq!(sockopt::tcp_keepcnt(stream.fd()).unwrap(), 3);
    }
}

#[test]
fn what_waits_for_a_handshake_goes_on_when_it_is_completed() {
    const TOTAL: usize = 200_000;
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    // Tickets would wake the relay.
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    let to = server(move |mut stream| {
        // By then the client has sent more than TLS holds before its handshake.
        std::thread::sleep(Duration::from_millis(500));
        let mut tls = rustls::ServerConnection::new(config.clone()).unwrap();
        let mut stream = rustls::Stream::new(&mut tls, &mut stream);
        let mut all = vec![0; TOTAL];
        if stream.read_exact(&mut all).is_ok() {
            stream.write_all(b"+OK\r\n").unwrap();
        }
    });
    let trusting = dyno_types::address::Tls {
        ca: None,
        cert: None,
        key: None,
        insecure: true,
        any_name: false,
        server_name: None,
    };
    let tls = StreamTls::load(None, Some(&trusting)).unwrap();
    let proxy = proxied_by(to, tls, 10, usize::MAX);
    let mut client = proxy.connect();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$199969\r\n";
    let command = [head.as_bytes(), &vec![b'x'; TOTAL - head.len() - 2], b"\r\n"].concat();
    client.write_all(&command).unwrap();
    let mut reply = [0; 5];
    client.read_exact(&mut reply).unwrap();
    drop(client);
    let (ended, _) = proxy.end();
    assert_eq!(ended.unwrap().recording.unwrap().replies, 1);
}
