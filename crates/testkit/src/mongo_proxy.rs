//! A proxy before a server that speaks MongoDB's protocol: it writes down every message of the clients.
//!
//! It also changes two answers, so that the official driver speaks to servers of tests. A wire version of 8 becomes 9:
//! mongo-java-server 1.47.0 reports 8, which the driver refuses, although everything used here works. The answer that
//! ends SCRAM says that it does: FerretDB 1.24.2 wants an empty exchange after it, which the driver does not offer.

use dyno_types::bson::{self, kind};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Most connections, and most bytes kept of their messages.
const CONNECTIONS: usize = 256;
const KEPT: usize = 64 << 20;

#[derive(Default)]
struct ProxyState {
    stopping: AtomicBool,
    messages: Mutex<Vec<Vec<u8>>>,
    streams: Mutex<Vec<TcpStream>>,
}

/// Listens on a port of its own until it is dropped.
pub struct MongoProxy {
    pub port: u16,
    shared: Arc<ProxyState>,
    acceptor: Option<JoinHandle<()>>,
}

impl MongoProxy {
    /// Before the server on a port of this host.
    pub fn start(server: u16) -> MongoProxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(ProxyState::default());
        let of_acceptor = shared.clone();
        let acceptor = std::thread::spawn(move || accept(&listener, server, &of_acceptor));
        MongoProxy { port, shared, acceptor: Some(acceptor) }
    }

    /// The target in a database of its own.
    pub fn uri(&self, database: &str) -> String {
        format!("mongodb://127.0.0.1:{}/{database}", self.port)
    }

    /// What clients have sent since the last time, message by message.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.shared.messages.lock().unwrap())
    }
}

impl Drop for MongoProxy {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        // Wakes the acceptor.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn accept(listener: &TcpListener, server: u16, shared: &Arc<ProxyState>) {
    let mut threads = Vec::new();
    for client in listener.incoming().take(CONNECTIONS).flatten() {
        if shared.stopping.load(Ordering::Acquire) {
            break;
        }
        let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        shared.streams.lock().unwrap().extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
        let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let of_client = shared.clone();
        threads.push(std::thread::spawn(move || {
            pass(from_client, to_server, |message| {
                let mut kept = of_client.messages.lock().unwrap();
                assert!(kept.iter().map(Vec::len).sum::<usize>() < KEPT, "too much to keep");
                kept.push(message.clone());
            });
        }));
        threads.push(std::thread::spawn(move || pass(server, client, |message| mend(message))));
    }
    for stream in shared.streams.lock().unwrap().drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Passes messages on until one side ends.
fn pass(mut from: TcpStream, mut to: TcpStream, see: impl Fn(&mut Vec<u8>)) {
    let mut head = [0; 4];
    while from.read_exact(&mut head).is_ok() {
        let bytes = i32::from_le_bytes(head) as usize;
        assert!((16..=48_000_000).contains(&bytes), "a message of {bytes} bytes");
        let mut message = head.to_vec();
        message.resize(bytes, 0);
        if from.read_exact(&mut message[4..]).is_err() {
            break;
        }
        see(&mut message);
        if to.write_all(&message).is_err() {
            break;
        }
    }
    let _ = (to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both));
}

fn mend(message: &mut [u8]) {
    let not_done = b"\x08done\0\0";
    let at = message.windows(not_done.len()).position(|window| window == not_done);
    if let (Some(at), true) = (at, message.windows(2).any(|window| window == b"v=")) {
        message[at + not_done.len() - 1] = 1;
    }
    let name = b"\x10maxWireVersion\0";
    if let Some(at) = message.windows(name.len()).position(|window| window == name) {
        let value = &mut message[at + name.len()..][..4];
        if *value == 8i32.to_le_bytes() {
            value.copy_from_slice(&9i32.to_le_bytes());
        }
    }
}

/// An element as its bytes: type, name, value.
pub type WireElement = (u8, String, Vec<u8>);

/// A command as it went over the wire.
#[derive(Clone, Debug, PartialEq)]
pub struct WireCommand {
    /// The elements of its document, in order.
    pub body: Vec<WireElement>,
    /// Sections of kind 1: name and documents.
    pub sequences: Vec<(String, Vec<Vec<u8>>)>,
}

impl WireCommand {
    /// Name.
    pub fn name(&self) -> &str {
        &self.body[0].1
    }

    /// The command of an OP_MSG; `None` for other messages.
    pub fn parse(message: &[u8]) -> Option<WireCommand> {
        let int = |at: usize| i32::from_le_bytes(message[at..at + 4].try_into().unwrap());
        if int(12) != 2013 {
            return None;
        }
        assert_eq!(int(16), 0, "flags");
        let (mut body, mut sequences, mut at) = (Vec::new(), Vec::new(), 20);
        while at < message.len() {
            let section = &message[at + 1..at + 1 + int(at + 1) as usize];
            match message[at] {
                0 => body = elements(section),
                1 => {
                    let end = 4 + section[4..].iter().position(|&b| b == 0).unwrap();
                    let name = String::from_utf8(section[4..end].to_vec()).unwrap();
                    let (mut documents, mut from) = (Vec::new(), end + 1);
                    while from < section.len() {
                        let bytes = bson::document_length(&section[from..]).unwrap().unwrap();
                        documents.push(section[from..from + bytes].to_vec());
                        from += bytes;
                    }
                    sequences.push((name, documents));
                }
                other => panic!("section of kind {other}"),
            }
            at += 1 + section.len();
        }
        Some(WireCommand { body, sequences })
    }

    /// An array of the command's document as the section of kind 1 that it may travel in as well.
    pub fn array_as_sequence(&mut self, name: &str) {
        if let Some(at) = self.body.iter().position(|(kind, own, _)| *kind == kind::ARRAY && own == name) {
            let (_, _, array) = self.body.remove(at);
            let documents = elements(&array).into_iter().map(|(_, _, value)| value).collect();
            self.sequences.push((name.to_owned(), documents));
        }
    }
}

/// The elements of a document.
pub fn elements(document: &[u8]) -> Vec<WireElement> {
    let all = bson::read_elements(document).unwrap().map(Result::unwrap);
    all.map(|e| (e.kind, String::from_utf8(e.name.to_vec()).unwrap(), e.value.to_vec())).collect()
}
