//! A Redis whose replies take times that it draws, and that records how long each took: the truth that a client's figures are
//! held against.

use crate::responder::{LISTENER, listen};
use anyhow::{Result, anyhow, bail};
use dyno_db_redis::protocol::resp::{Token, put_array, put_bulk, read_token};
use dyno_engine::net::{Received, Socket, Stamp, monotonic_ns};
use dyno_record::{Buckets, Histogram, Scale};
use dyno_types::rng::{Purpose, draw_at, unit_interval};
use rustix::event::epoll::{self, EventData, EventFlags};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::TcpListener;
use std::os::fd::OwnedFd;

/// The least time of a reply, the mean of what is drawn on top of it, and the most, nanoseconds.
const DELAY_NS: (u64, f64, u64) = (200_000, 800_000.0, 20_000_000);

/// Answers that take no time, by their command; every other one is `OK`.
const AT_ONCE: [(&str, &str); 2] =
    [("INFO", "redis_version:7.0.0\r\nredis_mode:standalone\r\nrole:master\r\n"), ("CONFIG", "")];

struct DelayClient {
    socket: Socket,
    input: Vec<u8>,
}

/// A reply that leaves when its time has come.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    came_ns: u64,
    client: usize,
    whole: bool,
}

struct DelayServer {
    epoll: OwnedFd,
    clients: Vec<Option<DelayClient>>,
    due: BinaryHeap<Reverse<Due>>,
    /// From a command's arrival, by the kernel's clock, to its reply's sending.
    truth: Histogram,
    answered: u64,
    value: Vec<u8>,
    record: Vec<u8>,
}

/// `delays`: listens on a free port, prints it, and serves until it is killed. It never sleeps, so that it is never late.
pub fn run() -> Result<()> {
    let (listener, epoll) = listen()?;
    let mut record = b"*20\r\n".to_vec();
    (0..10).for_each(|field| {
        record.extend_from_slice(format!("$6\r\nfield{field}\r\n$100\r\n{}\r\n", "x".repeat(100)).as_bytes());
    });
    let mut server = DelayServer {
        epoll,
        clients: Vec::new(),
        due: BinaryHeap::new(),
        truth: Histogram::new(Scale::Ns64),
        answered: 0,
        value: format!("$1000\r\n{}\r\n", "x".repeat(1000)).into_bytes(),
        record,
    };
    let mut events: Vec<epoll::Event> = Vec::with_capacity(1024);
    let mut buffer = vec![0u8; 256 << 10];
    loop {
        events.clear();
        let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&server.epoll, rustix::buffer::spare_capacity(&mut events), Some(&at_once))?;
        for event in &events {
            let data = event.data;
            match data.u64() {
                LISTENER => server.accept(&listener)?,
                at => server.receive(at as usize, &mut buffer)?,
            }
        }
        server.answer_due();
    }
}

impl DelayServer {
    fn accept(&mut self, listener: &TcpListener) -> Result<()> {
        let socket = Socket::from_accepted(listener.accept()?.0.into())?;
        let number = EventData::new_u64(self.clients.len() as u64);
        epoll::add(&self.epoll, socket.fd(), number, EventFlags::IN)?;
        self.clients.push(Some(DelayClient { socket, input: Vec::new() }));
        Ok(())
    }

    fn receive(&mut self, at: usize, buffer: &mut [u8]) -> Result<()> {
        let Some(client) = &mut self.clients[at] else { return Ok(()) };
        let (n, came_ns) = match client.socket.recv(buffer) {
            Ok(Received::Bytes { n, stamp: Stamp::At { at_ns, .. }, .. }) => (n, at_ns),
            Ok(Received::Bytes { n, .. }) => (n, monotonic_ns()),
            Ok(Received::Empty) => return Ok(()),
            Ok(Received::Closed) | Err(_) => {
                self.clients[at] = None;
                return Ok(());
            }
        };
        client.input.extend_from_slice(&buffer[..n]);
        let mut input = std::mem::take(&mut client.input);
        while let Some((used, name)) = command(&input)? {
            self.obey(at, &name, came_ns);
            input.drain(..used);
        }
        if let Some(client) = &mut self.clients[at] {
            client.input = input;
        }
        Ok(())
    }

    fn obey(&mut self, client: usize, name: &str, came_ns: u64) {
        if matches!(name, "GET" | "HGETALL") {
            let u = unit_interval(draw_at(1, self.answered, Purpose::Service));
            self.answered += 1;
            let drawn = (-(1.0 - u).ln() * DELAY_NS.1) as u64;
            let at_ns = came_ns + (DELAY_NS.0 + drawn).min(DELAY_NS.2);
            return self.due.push(Reverse(Due { at_ns, came_ns, client, whole: name == "HGETALL" }));
        }
        let mut reply = Vec::new();
        match AT_ONCE.iter().find(|(known, _)| *known == name) {
            _ if name == "TRUTH" => put_bulk(&mut reply, self.truth().as_bytes()),
            Some((_, "")) => put_array(&mut reply, 0),
            Some((_, text)) => put_bulk(&mut reply, text.as_bytes()),
            None => reply.extend_from_slice(b"+OK\r\n"),
        }
        self.send(client, &reply);
    }

    /// p50, p99 and p99.9 of what was answered since this was last asked, nanoseconds, and how many that were.
    fn truth(&mut self) -> String {
        let mut all = Buckets::new(Scale::Ns64);
        all.add(&self.truth);
        self.truth.reset();
        let of = |percentile: f64| all.percentile_ns(percentile);
        format!("{} {} {} {}", of(50.0), of(99.0), of(99.9), all.count())
    }

    fn answer_due(&mut self) {
        while let Some(Reverse(due)) = self.due.peek() {
            let now_ns = monotonic_ns();
            if due.at_ns > now_ns {
                return;
            }
            self.truth.record(now_ns - due.came_ns);
            let Some(Reverse(due)) = self.due.pop() else { return };
            let reply =
                if due.whole { std::mem::take(&mut self.record) } else { std::mem::take(&mut self.value) };
            self.send(due.client, &reply);
            *(if due.whole { &mut self.record } else { &mut self.value }) = reply;
        }
    }

    /// A client that does not take its reply is gone.
    fn send(&mut self, client: usize, reply: &[u8]) {
        let Some(to) = &mut self.clients[client] else { return };
        if to.socket.send(reply).is_ok_and(|n| n == reply.len()) {
            return;
        }
        self.clients[client] = None;
    }
}

/// The first whole command: how many bytes it has, and its name.
fn command(input: &[u8]) -> Result<Option<(usize, String)>> {
    let read = |at: usize| read_token(input, at).map_err(|_| anyhow!("not a command of Redis"));
    let Some((head, mut at)) = read(0)? else { return Ok(None) };
    let Token::Array(words) = head else { bail!("not a command of Redis") };
    let mut name = String::new();
    for word in 0..words {
        let Some((Token::Bulk(text), next)) = read(at)? else { return Ok(None) };
        if word == 0 {
            name = String::from_utf8_lossy(text).to_ascii_uppercase();
        }
        at = next;
    }
    Ok(Some((at, name)))
}
