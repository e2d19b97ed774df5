//! Captures that are made here, packet by packet: what tcpdump writes is tested on real servers.

use super::*;
use crate::exchange::reason as exchange_reason;
use crate::sources::tests::recorded;
use etherparse::PacketBuilder;
use std::io::Cursor;

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];
const PORT: u16 = 6_379;

/// What is special about a segment.
#[derive(Clone, Copy, Default)]
struct Flags {
    syn: bool,
    fin: bool,
    reset: bool,
    no_ack: bool,
}

const PLAIN: Flags = Flags { syn: false, fin: false, reset: false, no_ack: false };

/// Packets of one connection, with their times: numbers of bytes count from 1,000 and 5,000 on.
struct Traced {
    packets: Vec<(u64, Vec<u8>)>,
    client_port: u16,
    server_port: u16,
    /// Next numbers of client and server.
    next: [u32; 2],
    now_ns: u64,
}

impl Traced {
    fn new(client_port: u16) -> Self {
        Traced {
            packets: Vec::new(),
            client_port,
            server_port: PORT,
            next: [1_000, 5_000],
            now_ns: 1_700_000_000_000_000_000,
        }
    }

    /// IP and what is in it.
    fn packet(&mut self, from: usize, number: u32, flags: Flags, payload: &[u8]) -> Vec<u8> {
        let (source, target) = if from == 0 { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let (from_port, to_port) = if from == 0 {
            (self.client_port, self.server_port)
        } else {
            (self.server_port, self.client_port)
        };
        let mut builder = PacketBuilder::ipv4(source, target, 64).tcp(from_port, to_port, number, 65_000);
        if !flags.no_ack {
            builder = builder.ack(self.next[1 - from]);
        }
        if flags.syn {
            builder = builder.syn();
        }
        if flags.fin {
            builder = builder.fin();
        }
        if flags.reset {
            builder = builder.rst();
        }
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        bytes
    }

    fn push(&mut self, bytes: Vec<u8>) -> &mut Self {
        self.now_ns += 1_000_000;
        self.packets.push((self.now_ns, bytes));
        self
    }

    /// A segment in order.
    fn sent(&mut self, from: usize, flags: Flags, payload: &[u8]) -> &mut Self {
        let number = self.next[from];
        self.next[from] += payload.len() as u32 + u32::from(flags.syn || flags.fin);
        let packet = self.packet(from, number, flags, payload);
        self.push(packet)
    }

    fn begin(&mut self) -> &mut Self {
        self.sent(0, Flags { syn: true, no_ack: true, ..PLAIN }, b"");
        self.sent(1, Flags { syn: true, ..PLAIN }, b"").sent(0, PLAIN, b"")
    }

    fn both(&mut self, command: &str, reply: &str) -> &mut Self {
        self.sent(0, PLAIN, &resp(command)).sent(1, PLAIN, reply.as_bytes())
    }

    fn pause(&mut self) -> &mut Self {
        self.now_ns += 30_000_000;
        self
    }

    /// A pcap file of raw IP, times in microseconds.
    fn file(&self) -> Vec<u8> {
        pcap(101, &self.packets, false, false, u32::MAX)
    }
}

fn resp(command: &str) -> Vec<u8> {
    let words: Vec<&str> = command.split(' ').collect();
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    bytes
}

/// A pcap file.
fn pcap(link: u32, packets: &[(u64, Vec<u8>)], is_big: bool, is_nano: bool, snap: u32) -> Vec<u8> {
    let four = |number: u32| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let magic = if is_nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let mut bytes = four(magic).to_vec();
    let version = if is_big { [0, 2, 0, 4] } else { [2, 0, 4, 0] };
    bytes.extend(version);
    [0, 0, 262_144, link].iter().for_each(|number| bytes.extend(four(*number)));
    for (at_ns, packet) in packets {
        let part = at_ns % 1_000_000_000 / if is_nano { 1 } else { 1_000 };
        let kept = packet.len().min(snap as usize);
        for number in [(at_ns / 1_000_000_000) as u32, part as u32, kept as u32, packet.len() as u32] {
            bytes.extend(four(number));
        }
        bytes.extend(&packet[..kept]);
    }
    bytes
}

/// A pcapng file with one interface.
fn pcapng(link: u16, packets: &[(u64, Vec<u8>)], is_big: bool, is_nano: bool) -> Vec<u8> {
    let four = |number: u32| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let two = |number: u16| if is_big { number.to_be_bytes() } else { number.to_le_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let length = 12 + body.len() as u32;
        [&four(kind)[..], &four(length), body, &four(length)].concat()
    };
    let mut bytes = block(0x0a0d_0d0a, &[&four(0x1a2b_3c4d)[..], &two(1), &two(0), &[0xff; 8]].concat());
    let resolution = [&two(9)[..], &two(1), &[9, 0, 0, 0], &two(0), &two(0)].concat();
    let options = if is_nano { resolution } else { Vec::new() };
    bytes.extend(block(1, &[&two(link)[..], &two(0), &four(0), &options].concat()));
    for (at_ns, packet) in packets {
        let units = if is_nano { *at_ns } else { at_ns / 1_000 };
        let mut body = four(0).to_vec();
        for number in [(units >> 32) as u32, units as u32, packet.len() as u32, packet.len() as u32] {
            body.extend(four(number));
        }
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        bytes.extend(block(6, &body));
    }
    bytes
}

/// Commands with their replies, and what was left out.
fn read(files: &[Vec<u8>], options: &CaptureOptions) -> (Vec<String>, Vec<(String, u64)>) {
    let inputs = |files: &[Vec<u8>]| -> Vec<Box<dyn Read + Send>> {
        files.iter().map(|file| Box::new(Cursor::new(file.clone())) as Box<dyn Read + Send>).collect()
    };
    let (all, totals, header) = recorded(|new| record_capture(inputs(files), new, options));
    assert_eq!((header.source.as_str(), header.protocol.protocol_name()), ("capture", "redis"));
    let shown = all.iter().map(|entry| {
        let words: Vec<_> = entry.arguments.words().map(String::from_utf8_lossy).collect();
        let reply = entry.reply.as_ref().map_or("none".to_owned(), |reply| {
            format!("{} {}", reply.size, reply.after_ns.unwrap_or_default() / 1_000)
        });
        format!("{} {}: {reply}", entry.connection, words.join(" "))
    });
    (shown.collect(), totals.left_out.into_iter().collect())
}

fn read_one(trace: &Traced) -> (Vec<String>, Vec<(String, u64)>) {
    read(&[trace.file()], &CaptureOptions::default())
}

fn refused(files: &[Vec<u8>], options: &CaptureOptions) -> String {
    let mut new = NewRecording::new(1 << 16, |header: &RecordingHeader| {
        crate::format::RecordingWriter::new(Vec::new(), header)
    });
    let inputs = files.iter().map(|file| Box::new(Cursor::new(file.clone())) as Box<dyn Read + Send>);
    match record_capture(inputs.collect(), &mut new, options) {
        Ok(totals) => panic!("{totals:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn file_formats_and_link_layers_are_read_alike() {
    let mut trace = Traced::new(50_000);
    trace.begin().both("set a b", "+OK\r\n").both("get a", "$1\r\nb\r\n");
    let expected = (vec!["0 set a b: 0 1000".to_owned(), "0 get a: 1 1000".to_owned()], vec![]);
    for (is_big, is_nano) in [(false, false), (false, true), (true, false), (true, true)] {
        for file in [
            pcap(101, &trace.packets, is_big, is_nano, u32::MAX),
            pcapng(101, &trace.packets, is_big, is_nano),
        ] {
            assert!(is_capture(&file));
            assert_eq!(read(&[file], &CaptureOptions::default()), expected, "{is_big} {is_nano}");
        }
    }
    let heads: [(u32, &[u8]); 9] = [
        (0, &[2, 0, 0, 0]),
        (108, &[0, 0, 0, 2]),
        (1, &[1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7, 8, 0]),
        (1, &[1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7, 0x81, 0, 0, 5, 8, 0]),
        (1, &[1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 7, 0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0]),
        (113, &[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0]),
        (276, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0]),
        (12, &[]),
        (228, &[]),
    ];
    for (link, head) in heads {
        let packets: Vec<_> =
            trace.packets.iter().map(|(at, packet)| (*at, [head, packet].concat())).collect();
        let file = pcap(link, &packets, false, false, u32::MAX);
        assert_eq!(read(&[file], &CaptureOptions::default()), expected, "link layer {link}");
    }
    let unknown = pcap(147, &trace.packets, false, false, u32::MAX);
    assert!(refused(&[unknown], &CaptureOptions::default()).contains("no commands"));
}

#[test]
fn segments_of_ipv6_are_found() {
    let mut bytes = Vec::new();
    let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(50_000, PORT, 7, 65_000).ack(9);
    builder.write(&mut bytes, &resp("get a")).unwrap();
    let Found::Segment(segment) = find_segment(229, &bytes) else { panic!("a segment") };
    assert_eq!((segment.to.port(), segment.payload, segment.missing), (PORT, &resp("get a")[..], 0));
    assert!(segment.to.is_ipv6());
    let Found::Segment(cut) = find_segment(101, &bytes[..bytes.len() - 5]) else { panic!("a segment") };
    assert_eq!((cut.missing, cut.payload.len()), (5, resp("get a").len() - 5));
}

#[test]
fn repeated_and_reordered_segments_change_nothing() {
    let mut trace = Traced::new(50_000);
    trace.begin().both("set a b", "+OK\r\n").both("get a", "$1\r\nb\r\n");
    let long = format!("set c {}", "x".repeat(3_000));
    let bytes = resp(&long);
    for part in bytes.chunks(1_000) {
        trace.sent(0, PLAIN, part);
    }
    trace.sent(1, PLAIN, b"+OK\r\n").both("get d", "$-1\r\n");
    trace.sent(0, Flags { fin: true, ..PLAIN }, b"").sent(1, Flags { fin: true, ..PLAIN }, b"");
    let (expected, left) = read_one(&trace);
    assert_eq!((expected.len(), left.len()), (4, 0));
    // Each packet twice, as a capture of all interfaces has them.
    let mut twice = Traced::new(50_000);
    twice.packets = trace.packets.iter().flat_map(|one| [one.clone(), one.clone()]).collect();
    assert_eq!(read_one(&twice), (expected.clone(), vec![]));
    // Neighbours change places: times stay in order.
    for first in 3..trace.packets.len() - 3 {
        let mut changed = Traced::new(50_000);
        changed.packets = trace.packets.clone();
        let (a, b) = (changed.packets[first].1.clone(), changed.packets[first + 1].1.clone());
        (changed.packets[first].1, changed.packets[first + 1].1) = (b, a);
        let (shown, left) = read_one(&changed);
        let commands = |all: &[String]| -> Vec<String> {
            all.iter().map(|line| line.split(": ").next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!((commands(&shown), left.len()), (commands(&expected), 0), "after packet {first}");
        assert!(!shown.iter().any(|line| line.ends_with("none")), "{shown:?}");
    }
}

#[test]
fn lost_segments_are_counted_and_the_connection_is_read_again_when_idle() {
    let mut trace = Traced::new(50_000);
    trace.begin().both("get a", "$1\r\na\r\n").both("get b", "$1\r\nb\r\n").both("get c", "$1\r\nc\r\n");
    trace.pause().pause().both("get d", "$1\r\nd\r\n").pause().both("get e", "$1\r\ne\r\n");
    // Packet 5 is the request for b, packet 6 its reply.
    for lost in [5, 6] {
        let mut cut = Traced::new(50_000);
        cut.packets = trace.packets.clone();
        cut.packets.remove(lost);
        let (shown, left) = read_one(&cut);
        assert_eq!(shown[0], "0 get a: 1 1000");
        assert_eq!(shown.last().unwrap(), "0 get e: 1 1000", "{shown:?}");
        assert!(!shown.iter().any(|line| line.contains("get c: 1")), "{shown:?}");
        let gaps = left.iter().find(|(name, _)| name == exchange_reason::GAPS);
        assert_eq!(gaps.map(|(_, count)| *count), Some(1), "{left:?}");
    }
}

#[test]
fn a_connection_that_began_before_the_capture_is_read_from_an_idle_moment_on() {
    let mut trace = Traced::new(50_000);
    trace.sent(1, PLAIN, b"of a value\r\n").pause().both("get a", "$1\r\na\r\n");
    trace.sent(0, Flags { reset: true, ..PLAIN }, b"");
    assert_eq!(read_one(&trace).0, ["0 get a: 1 1000"]);
}

#[test]
fn a_port_may_be_used_again() {
    let mut trace = Traced::new(50_000);
    trace.begin().both("get a", "$1\r\na\r\n");
    // Its end was lost.
    trace.next = [900_000, 700_000];
    trace.begin().both("get b", "$1\r\nb\r\n");
    trace.sent(0, Flags { fin: true, ..PLAIN }, b"").sent(1, Flags { fin: true, ..PLAIN }, b"");
    trace.next = [900, 400];
    trace.begin().both("get c", "$1\r\nc\r\n").sent(1, Flags { reset: true, ..PLAIN }, b"");
    let (shown, left) = read_one(&trace);
    assert_eq!(shown, ["0 get a: 1 1000", "1 get b: 1 1000", "2 get c: 1 1000"]);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_port_of_a_connection_that_began_before_may_be_used_again() {
    // Numbers before and behind those of the connection before.
    for next in [[10, 20], [900_000, 700_000], [999, 20]] {
        let mut trace = Traced::new(50_000);
        trace.sent(0, PLAIN, &resp("get a")).sent(1, PLAIN, b"$1\r\na\r\n");
        trace.next = next;
        trace.begin().both("get b", "$1\r\nb\r\n");
        let expected: &[&str] = if next[0] == 999 { &[] } else { &["1 get b: 1 1000"] };
        if expected.is_empty() {
            // One before the first number that was seen: its own SYN, which came late.
            assert!(refused(&[trace.file()], &CaptureOptions::default()).contains("no commands"));
        } else {
            assert_eq!(read_one(&trace).0, expected);
        }
    }
}

#[test]
fn a_fin_that_is_acknowledged_is_no_gap() {
    let fin = Flags { fin: true, ..PLAIN };
    // The client ends right after its last command: the reply acknowledges its end.
    let mut trace = Traced::new(50_000);
    trace.begin().both("get a", "$1\r\na\r\n").sent(0, PLAIN, &resp("quit")).sent(0, fin, b"");
    trace.sent(1, PLAIN, b"+OK\r\n").sent(1, fin, b"").sent(0, PLAIN, b"");
    let expected = (vec!["0 get a: 1 1000".to_owned(), "0 quit: 0 2000".to_owned()], vec![]);
    assert_eq!(read_one(&trace), expected);
    // The same, with the reply before that end in the file.
    let mut changed = Traced::new(50_000);
    changed.packets = trace.packets.clone();
    let (end, reply) = (trace.packets[6].1.clone(), trace.packets[7].1.clone());
    (changed.packets[6].1, changed.packets[7].1) = (reply, end);
    assert_eq!(read_one(&changed), expected);
    // The server ends an idle connection; the client goes on for a while.
    let mut trace = Traced::new(50_000);
    trace.begin().both("get a", "$1\r\na\r\n").sent(1, fin, b"").sent(0, PLAIN, b"");
    trace.pause().pause().pause().sent(0, PLAIN, b"").sent(0, fin, b"").sent(1, PLAIN, b"");
    assert_eq!(read_one(&trace), (vec!["0 get a: 1 1000".to_owned()], vec![]));
}

#[test]
fn a_connection_behind_a_translated_address_is_the_same() {
    let mut trace = Traced::new(50_000);
    trace.begin().both("get a", "$1\r\na\r\n").both("get b", "$1\r\nb\r\n");
    // The published address of the server, and the one behind it; then the same client with another number.
    let translated = |packet: &(u64, Vec<u8>)| {
        let mut other = packet.clone();
        let at = if other.1[12..16] == SERVER { 12 } else { 16 };
        other.1[at..at + 4].copy_from_slice(&[172, 17, 0, 2]);
        (other.0 + 40_000, other.1)
    };
    let mut twice = Traced::new(50_000);
    twice.packets = trace.packets.iter().flat_map(|one| [one.clone(), translated(one)]).collect();
    let mut again = Traced::new(50_000);
    (again.next, again.now_ns) = ([70_000, 90_000], trace.now_ns);
    again.begin().both("get c", "$1\r\nc\r\n");
    twice.packets.extend(again.packets.iter().map(translated));
    let (shown, left) = read_one(&twice);
    assert_eq!(shown, ["0 get a: 1 1000", "0 get b: 1 1000", "1 get c: 1 1000"]);
    assert_eq!(left, [(reason::TRANSLATED.to_owned(), 1)]);
}

#[test]
fn packets_that_were_cut_are_said() {
    let mut trace = Traced::new(50_000);
    trace.begin().both("get a", "$1\r\na\r\n").both(&format!("set b {}", "x".repeat(500)), "+OK\r\n");
    trace.pause().both("get c", "$1\r\nc\r\n");
    let file = pcap(101, &trace.packets, false, false, 120);
    let (shown, left) = read(&[file], &CaptureOptions::default());
    assert_eq!(shown, ["0 get a: 1 1000", "0 get c: 1 1000"]);
    assert!(left.iter().any(|(name, count)| name == reason::CUT && *count == 1), "{left:?}");
}

#[test]
fn files_are_merged_by_their_times() {
    let (mut one, mut other) = (Traced::new(50_000), Traced::new(50_001));
    one.begin().both("get a", "$1\r\na\r\n").pause().both("get c", "$1\r\nc\r\n");
    other.now_ns += 10_000_000;
    other.begin().both("get b", "$1\r\nb\r\n");
    let (shown, _) = read(&[other.file(), one.file()], &CaptureOptions::default());
    assert_eq!(shown, ["0 get a: 1 1000", "1 get b: 1 1000", "0 get c: 1 1000"]);
}

#[test]
fn the_end_of_a_file_may_be_lost() {
    let mut trace = Traced::new(50_000);
    trace.begin().both("get a", "$1\r\na\r\n").both("get b", "$1\r\nb\r\n");
    let file = trace.file();
    let (shown, left) = read(&[file[..file.len() - 3].to_vec()], &CaptureOptions::default());
    assert_eq!(shown, ["0 get a: 1 1000", "0 get b: none"]);
    assert_eq!(left, [(reason::CUT_OFF.to_owned(), 1)]);
    assert!(refused(&[file[..10].to_vec()], &CaptureOptions::default()).contains("capture"));
    assert!(
        refused(&[b"OK\n1339518083.1 [0 127.0.0.1:1]".to_vec()], &CaptureOptions::default())
            .contains("no capture")
    );
}

#[test]
fn ports_are_found_and_wrong_ones_are_told() {
    let mut redis = Traced::new(50_000);
    redis.begin().both("get a", "$1\r\na\r\n").both("lrange l 0 1", "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    let named = |ports: &[u16]| CaptureOptions { ports: ports.to_vec(), point: None };
    let said = refused(&[redis.file()], &named(&[7_000]));
    assert!(said.contains("port 7000 carries no commands") && said.contains("port 6379: Redis"), "{said}");
    let mut tls = Traced::new(50_001);
    tls.server_port = 6_380;
    tls.begin().sent(0, PLAIN, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    tls.sent(1, PLAIN, b"\x16\x03\x03\x00\x7a\x02");
    for options in [named(&[]), named(&[6_380])] {
        let said = refused(&[tls.file()], &options);
        assert!(said.contains("port 6380 carries TLS") && said.contains("--to rediss://"), "{said}");
    }
    // TLS beside Redis on another port does not matter.
    assert_eq!(read(&[redis.file(), tls.file()], &named(&[])).0.len(), 2);
    let mut other = Traced::new(50_002);
    other.server_port = 6_390;
    other.begin().both("get b", "$1\r\nb\r\n").both("get c", "$1\r\nc\r\n");
    let said = refused(&[redis.file(), other.file()], &named(&[]));
    assert!(said.contains("ports 6379, 6390 carry commands"), "{said}");
    assert_eq!(read(&[redis.file(), other.file()], &named(&[6_390])).0.len(), 2);
    assert_eq!(read(&[redis.file(), other.file()], &named(&[6_379, 6_390])).0.len(), 4);
    let mut web = Traced::new(50_003);
    web.server_port = 80;
    web.begin().sent(0, PLAIN, b"GET / HTTP/1.1\r\n\r\n");
    assert!(refused(&[web.file()], &named(&[])).contains("port 80: HTTP"));
}
