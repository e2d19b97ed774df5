//! The floor: a minimal epoll loop that sends the same commands from the same generators and only counts replies.
//! Nothing is stamped, recorded, decoded beyond its length, or handled when it goes wrong.

use anyhow::{Context, Result, bail};
use dyno_types::{Content, Request, Verb};
use dyno_workload::Workload;
use dyno_workload::ycsb::{CoreConfig, CoreWorkload};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with, sockopt};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

struct FloorConnection {
    fd: OwnedFd,
    /// Bytes of replies still to come, by request.
    expected: std::collections::VecDeque<usize>,
    got: usize,
}

/// `floor PORT OPERATIONS CONNECTIONS PIPELINE RECORDS VALUE`
pub fn run(arguments: &[String]) -> Result<()> {
    let number = |at: usize| -> Result<u64> {
        arguments.get(at).context("too few arguments")?.parse().context("a number")
    };
    let (port, operations, connections) = (number(0)? as u16, number(1)?, number(2)? as usize);
    let (pipeline, records) = (number(3)? as usize, number(4)?);
    let workload = workload(records, arguments.get(5).context("too few arguments")?)?;
    let content = workload.content();
    let frontier = workload.frontier();
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut all: Vec<FloorConnection> =
        (0..connections).map(|i| connect(port, &epoll, i)).collect::<Result<_>>()?;
    let (mut next, mut done) = (0u64, 0u64);
    let (mut out, mut key, mut buffer) = (Vec::new(), Vec::new(), vec![0u8; 256 << 10]);
    let mut events: Vec<epoll::Event> = Vec::with_capacity(1024);
    let mut send = |c: &mut FloorConnection, count: usize, next: &mut u64| -> Result<()> {
        out.clear();
        for _ in 0..count.min((operations - *next) as usize) {
            let request = workload.bind(&workload.draw(*next), &frontier);
            *next += 1;
            c.expected.push_back(encode(content.as_ref(), &request, &mut key, &mut out));
        }
        if !out.is_empty() && rustix::net::send(&c.fd, &out, SendFlags::NOSIGNAL)? != out.len() {
            bail!("the socket buffer is full");
        }
        Ok(())
    };
    for c in &mut all {
        send(c, pipeline, &mut next)?;
    }
    while done < operations {
        events.clear();
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let data = event.data;
            let c = &mut all[data.u64() as usize];
            let (n, _) = rustix::net::recv(&c.fd, &mut buffer, RecvFlags::empty())?;
            if n == 0 {
                bail!("the server closed the connection");
            }
            c.got += n;
            let mut ended = 0;
            while let Some(&expected) = c.expected.front() {
                if c.got < expected {
                    break;
                }
                c.got -= expected;
                c.expected.pop_front();
                ended += 1;
            }
            done += ended as u64;
            send(c, ended, &mut next)?;
        }
    }
    Ok(())
}

/// The properties of the benchmark's workload: one field of 1000 bytes, reads and updates 1:1, uniform keys.
pub const PROPERTIES: [(&str, &str); 5] = [
    ("fieldcount", "1"),
    ("fieldlength", "1000"),
    ("readproportion", "0.5"),
    ("updateproportion", "0.5"),
    ("requestdistribution", "uniform"),
];

fn workload(records: u64, value: &str) -> Result<CoreWorkload> {
    let mut lookup = |key: &str| match key {
        "recordcount" => Some(records.to_string()),
        "dyno.value" => Some(value.to_owned()),
        _ => PROPERTIES.iter().find(|(k, _)| *k == key).map(|(_, v)| (*v).to_owned()),
    };
    let config = CoreConfig::from_lookup(&mut lookup).context("the benchmark's workload")?;
    CoreWorkload::run(&config).context("the benchmark's workload")
}

fn connect(port: u16, epoll: &OwnedFd, number: usize) -> Result<FloorConnection> {
    let fd = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    rustix::net::connect(&fd, &SocketAddr::from(([127, 0, 0, 1], port)))?;
    sockopt::set_tcp_nodelay(&fd, true)?;
    epoll::add(epoll, &fd, EventData::new_u64(number as u64), EventFlags::IN)?;
    Ok(FloorConnection { fd, expected: std::collections::VecDeque::new(), got: 0 })
}

/// Appends GET or SET; returns the length of its reply.
fn encode(content: &dyn Content, request: &Request, key: &mut Vec<u8>, out: &mut Vec<u8>) -> usize {
    key.clear();
    content.key(request, key);
    let write = request.verb == Verb::Update;
    out.extend_from_slice(if write { b"*3\r\n$3\r\nSET\r\n$" } else { b"*2\r\n$3\r\nGET\r\n$" });
    out.extend_from_slice(key.len().to_string().as_bytes());
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
    if !write {
        return "$1000\r\n".len() + 1000 + 2;
    }
    out.extend_from_slice(b"$1000\r\n");
    content.value(request, 0, out);
    out.extend_from_slice(b"\r\n");
    "+OK\r\n".len()
}
