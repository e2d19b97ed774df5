//! Hub and pods in one process, with shells for programs.

use crate::protocol::service::Service;
use crate::remote::relay::frames::*;
use crate::remote::relay::hub::serve_hub;
use crate::remote::relay::pod::listen_on;
use crate::remote::relay::seal::{Side, meet};
use crate::remote::relay::*;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

const HELD: &[u8] = b"0123456789abcdef0123456789abcdef";

/// A program that says its words, then what it is told, and something for people.
fn program(folder: &Path) -> PathBuf {
    let path = folder.join("program");
    std::fs::write(&path, "#!/bin/sh\necho \"$@\"\necho hush >&2\ncat\nexit 3\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path
}

/// A hub, spoken to by the controller's end of a socket.
fn a_hub() -> UnixStream {
    let (near, agent) = UnixStream::pair().unwrap();
    let output = agent.try_clone().unwrap();
    std::thread::spawn(move || serve_hub(agent, output, HELD.to_vec()));
    near.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut near = near;
    write(&mut near, 0, Kind::Hello, &hello().unwrap()).unwrap();
    greeted(&read(&mut near).unwrap()).unwrap();
    near
}

fn open(to: &mut UnixStream, channel: u32, address: SocketAddr) {
    let address = SocketAddr::new([127, 0, 0, 1].into(), address.port());
    let open = Open { address, service: Service::Host { directory: Some("/a b".into()) } };
    write(to, channel, Kind::Open, &serde_json::to_vec(&open).unwrap()).unwrap();
}

/// Output of a channel until it ends.
fn heard(from: &mut UnixStream, channel: u32) -> (String, String, String) {
    let (mut data, mut words) = (Vec::new(), Vec::new());
    loop {
        let piece = read(from).unwrap();
        match piece.kind {
            _ if piece.channel != channel => {}
            Kind::Data => data.extend(piece.bytes),
            Kind::Words => words.extend(piece.bytes),
            Kind::End => {
                let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
                return (text(data), text(words), text(piece.bytes));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn programs_in_pods_hear_and_are_heard() {
    let folder = tempfile::tempdir().unwrap();
    let pod = listen_on(0, HELD.to_vec(), &program(folder.path())).unwrap();
    let mut near = a_hub();
    // All is said before the pod is there; it is more than fits a piece.
    let long = "x".repeat(PIECE);
    open(&mut near, 7, pod.address);
    write(&mut near, 7, Kind::Data, long.as_bytes()).unwrap();
    write(&mut near, 7, Kind::Data, b"end\n").unwrap();
    open(&mut near, 8, pod.address);
    let (mut said, mut ended) = ([String::new(), String::new()], [String::new(), String::new()]);
    let mut to = near.try_clone().unwrap();
    let mut both_are_there = false;
    while ended.iter().any(String::is_empty) {
        let piece = read(&mut near).unwrap();
        let Some(at) = [7, 8].iter().position(|one| *one == piece.channel) else { continue };
        let text = String::from_utf8(piece.bytes).unwrap();
        let told = if piece.kind == Kind::End { &mut ended } else { &mut said };
        told[at].push_str(&text);
        if !both_are_there && said[0].contains("end\n") && said[1].contains("host --stdio") {
            both_are_there = true;
            assert_eq!(pod.count_programs(), 2);
            // Only who was spoken to hears what is said to all.
            write(&mut to, 0, Kind::All, b"all\n").unwrap();
            write(&mut to, 7, Kind::Close, &[]).unwrap();
            write(&mut to, 8, Kind::Close, &[]).unwrap();
        }
    }
    assert!(said[0].contains("host --stdio --directory /a b\n") && said[0].contains("hush"));
    assert!(said[0].replace("hush\n", "").contains(&format!("{long}end\nall\n")));
    assert!(!said[1].contains("all"), "{}", said[1]);
    assert!(ended.iter().all(|how| how == "exit status: 3"), "{ended:?}");
}

#[test]
fn what_is_lost_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let other = listen_on(0, vec![b'x'; 32], &program(folder.path())).unwrap();
    let pod = listen_on(0, HELD.to_vec(), &program(folder.path())).unwrap();
    let mut near = a_hub();
    open(&mut near, 1, other.address);
    let how = heard(&mut near, 1).2;
    assert!(how.contains("does not take the token"), "{how}");
    assert_eq!(other.count_programs(), 0);
    open(&mut near, 2, pod.address);
    write(&mut near, 2, Kind::Data, b"a\n").unwrap();
    write(&mut near, 2, Kind::Abort, &[]).unwrap();
    let how = heard(&mut near, 2).2;
    assert!(how.contains("signal: 9") || how.contains("given up"), "{how}");
    // A controller that is gone takes its programs with it: their input closes.
    open(&mut near, 3, pod.address);
    write(&mut near, 3, Kind::Data, b"a\n").unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    let wait = |wanted: usize| {
        while pod.count_programs() != wanted {
            assert!(Instant::now() < end, "{} programs", pod.count_programs());
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    wait(1);
    near.shutdown(std::net::Shutdown::Both).unwrap();
    wait(0);
}

#[test]
fn records_that_are_not_of_the_other_end_do_not_open() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let agent = listener.accept().unwrap().0;
    let there = std::thread::spawn(move || meet(&agent, HELD, Side::Pod, None).map_err(|e| e.to_string()));
    let (mut hub_says, mut hub_hears) = meet(&near, HELD, Side::Hub, None).unwrap();
    let (mut pod_says, mut pod_hears) = there.join().unwrap().unwrap();
    hub_says.send(Kind::Data, b"one").unwrap();
    assert_eq!(pod_hears.receive().unwrap(), (Kind::Data, b"one".to_vec()));
    pod_says.send(Kind::Words, &vec![1; PIECE + 1]).unwrap();
    assert_eq!(hub_hears.receive().unwrap().1.len(), PIECE);
    assert_eq!(hub_hears.receive().unwrap(), (Kind::Words, vec![1]));
    (&near).write_all(&[&[0, 20][..], &[7; 20]].concat()).unwrap();
    assert!(pod_hears.receive().unwrap_err().to_string().contains("relay record rejected"));
}

#[test]
fn frames_of_strangers_and_short_tokens_are_refused() {
    for bytes in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &[5, 0, 0, 0, 0, 0, 0, 0, 99], &[0; 9], &[9, 0]] {
        let mut from = bytes;
        assert!(read(&mut from).is_err(), "{bytes:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, crate::kubernetes::manifests::NO_TOKEN).unwrap();
    assert!(token(&path).unwrap_err().to_string().contains("32 characters"));
    std::fs::write(&path, [HELD, b"\n"].concat()).unwrap();
    assert_eq!(token(&path).unwrap(), HELD);
    let other =
        ChannelPiece { channel: 0, kind: Kind::Hello, bytes: br#"{"version":9,"dyno":"9.9"}"#.to_vec() };
    assert!(greeted(&other).unwrap_err().to_string().contains("dyno 9.9"));
}

#[test]
fn a_client_without_the_token_is_sent_away_and_keeps_no_other_out() {
    let folder = tempfile::tempdir().unwrap();
    let knock = Duration::from_millis(500);
    let pod = pod::listen_for(0, HELD.to_vec(), &program(folder.path()), knock).unwrap();
    let address = SocketAddr::new([127, 0, 0, 1].into(), pod.address.port());
    let ends = |mut stream: std::net::TcpStream| {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // A pod says nothing to who has not greeted it.
        std::io::copy(&mut stream, &mut std::io::sink()).is_ok_and(|bytes| bytes == 0)
    };
    // One that says nothing, and one that says a byte now and then, for much longer than it may.
    let silent = std::net::TcpStream::connect(address).unwrap();
    let slow = std::net::TcpStream::connect(address).unwrap();
    let mut dribble = slow.try_clone().unwrap();
    let begun = Instant::now();
    let dribbling = std::thread::spawn(move || {
        // The length of a greeting, and slowly what could be one.
        let hello = [0, 48].iter().chain(std::iter::repeat(&7));
        for byte in hello {
            if begun.elapsed() > Duration::from_secs(15) || dribble.write_all(&[*byte]).is_err() {
                return begun.elapsed();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        begun.elapsed()
    });
    assert!(ends(silent));
    drop(slow);
    assert!(dribbling.join().unwrap() < Duration::from_secs(10), "a byte now and then keeps it open");
    // More strangers than may knock at a time, and more patience than the test has: the oldest goes, and holders of the token
    // come in beside the others.
    let pod = pod::listen_for(0, HELD.to_vec(), &program(folder.path()), Duration::from_secs(600)).unwrap();
    let address = SocketAddr::new([127, 0, 0, 1].into(), pod.address.port());
    let mut strangers: Vec<_> = (0..129).map(|_| std::net::TcpStream::connect(address).unwrap()).collect();
    assert!(ends(strangers.remove(0)));
    let mut near = a_hub();
    open(&mut near, 1, pod.address);
    write(&mut near, 1, Kind::Data, b"a\n").unwrap();
    write(&mut near, 1, Kind::Close, &[]).unwrap();
    let (said, _, how) = heard(&mut near, 1);
    assert!(said.contains("a\n"), "{said}: {how}");
    let last = strangers.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    assert!(last.read_exact(&mut [0]).is_err_and(|why| why.kind() == io::ErrorKind::WouldBlock));
}
