//! A server of MongoDB's protocol that answers every command at once, so that the client is what is measured.

use crate::disturbance::{KilledGroup, on_core};
use anyhow::{Context, Result};
use dyno_db_mongodb::protocol::message::{self, HEADER, code};
use dyno_types::bson::{self, kind};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{RecvFlags, SendFlags};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;

struct ResponderClient {
    stream: TcpStream,
    input: Vec<u8>,
}

/// A server of this crate on a core of its own; killed when dropped.
pub struct Responder {
    _child: KilledGroup,
    /// Loopback port.
    pub port: u16,
}

impl Responder {
    /// Starts this program with one word, which prints its port.
    pub fn start(core: usize, word: &str) -> Result<Self> {
        let me = std::env::current_exe()?.display().to_string();
        let mut command = on_core(core, &me, &[word.to_owned()]);
        let mut child = KilledGroup(command.stdout(Stdio::piped()).spawn()?);
        let mut line = String::new();
        BufReader::new(child.0.stdout.take().context("stdout")?).read_line(&mut line)?;
        Ok(Responder { _child: child, port: line.trim().parse().context("the responder's port")? })
    }
}

/// What says that a new client has come.
pub const LISTENER: u64 = u64::MAX;

/// Listens on a free port, prints it, and watches for clients.
pub fn listen() -> Result<(TcpListener, OwnedFd)> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    Ok((listener, epoll))
}

/// `responder`: listens on a free port, prints it, and serves until it is killed.
pub fn run() -> Result<()> {
    let (listener, epoll) = listen()?;
    let mut clients: Vec<Option<ResponderClient>> = Vec::new();
    let mut events: Vec<epoll::Event> = Vec::with_capacity(1024);
    let (mut buffer, mut out) = (vec![0u8; 256 << 10], Vec::new());
    let record = record();
    loop {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let data = event.data;
            if data.u64() == LISTENER {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                epoll::add(&epoll, &stream, EventData::new_u64(clients.len() as u64), EventFlags::IN)?;
                clients.push(Some(ResponderClient { stream, input: Vec::new() }));
                continue;
            }
            let place = &mut clients[data.u64() as usize];
            let Some(client) = place else { continue };
            let n = rustix::net::recv(client.stream.as_fd(), &mut buffer, RecvFlags::empty())
                .map_or(0, |(n, _)| n);
            if n == 0 {
                *place = None;
                continue;
            }
            client.input.extend_from_slice(&buffer[..n]);
            out.clear();
            let used = answer_all(&client.input, &record, &mut out)?;
            client.input.drain(..used);
            let mut sent = 0;
            while sent < out.len() {
                sent += rustix::net::send(client.stream.as_fd(), &out[sent..], SendFlags::NOSIGNAL)?;
            }
        }
    }
}

/// A record as YCSB writes it: ten fields of 100 bytes.
fn record() -> Vec<u8> {
    let mut out = Vec::new();
    let at = bson::open(&mut out);
    bson::put_string(&mut out, "_id", "user6284781860667377211");
    for field in 0..10 {
        bson::put_binary(&mut out, &format!("field{field}"), &[b'x'; 100]);
    }
    bson::close(&mut out, at);
    out
}

fn int(bytes: &[u8], at: usize) -> i32 {
    bytes.get(at..).and_then(|b| b.first_chunk::<4>()).map_or(0, |b| i32::from_le_bytes(*b))
}

/// Answers all whole messages; returns the bytes used.
fn answer_all(input: &[u8], record: &[u8], out: &mut Vec<u8>) -> Result<usize> {
    let mut at = 0;
    while input.len() - at >= HEADER {
        let bytes = int(input, at) as usize;
        if input.len() - at < bytes {
            break;
        }
        answer(&input[at..at + bytes], record, out)?;
        at += bytes;
    }
    Ok(at)
}

fn answer(whole: &[u8], record: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (id, old) = (int(whole, 4), int(whole, 12) == code::QUERY);
    let from = HEADER + if old { 4 + "admin.$cmd".len() + 1 + 8 } else { 5 };
    let command = whole.get(from..).context("a command")?;
    let name = command.get(5..).and_then(|c| c.split(|b| *b == 0).next()).context("a command's name")?;
    let at = out.len();
    if old {
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&code::REPLY.to_le_bytes());
        out.extend_from_slice(&[0; 16]);
        out.extend_from_slice(&1i32.to_le_bytes());
    } else {
        message::begin(out, 1);
        out[at + 8..at + 12].copy_from_slice(&id.to_le_bytes());
    }
    let body = bson::open(out);
    match name {
        b"find" => {
            bson::put_head(out, kind::DOCUMENT, "cursor");
            let cursor = bson::open(out);
            bson::put_head(out, kind::ARRAY, "firstBatch");
            let batch = bson::open(out);
            bson::put_item_head(out, kind::DOCUMENT, 0);
            out.extend_from_slice(record);
            bson::close(out, batch);
            bson::put_int64(out, "id", 0);
            bson::put_string(out, "ns", "ycsb.usertable");
            bson::close(out, cursor);
        }
        b"update" | b"insert" | b"delete" => {
            bson::put_int32(out, "n", 1);
            bson::put_int32(out, "nModified", 1);
        }
        b"hello" | b"isMaster" | b"ismaster" => {
            bson::put_boolean(out, "ismaster", true);
            bson::put_boolean(out, "isWritablePrimary", true);
            bson::put_boolean(out, "helloOk", true);
            bson::put_int32(out, "maxBsonObjectSize", 16 << 20);
            bson::put_int32(out, "maxMessageSizeBytes", 48_000_000);
            bson::put_int32(out, "maxWriteBatchSize", 100_000);
            bson::put_int32(out, "minWireVersion", 0);
            bson::put_int32(out, "maxWireVersion", 21);
        }
        _ => {}
    }
    bson::put_double(out, "ok", 1.0);
    bson::close(out, body);
    message::end(&mut out[at..], 0);
    Ok(())
}
