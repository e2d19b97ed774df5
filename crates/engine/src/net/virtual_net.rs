//! Networks that exist only inside the process.
//!
//! [`VirtualNet`] runs on a virtual clock against the simulated server: time moves only while the load thread waits.
//! [`EchoNet`] runs on the real clock and answers every byte at once: what is left is the engine.

use super::monotonic::monotonic_ns;
use super::{Net, Ready, Received, Stamp};
use crate::sim::{SimOptions, SimServer};
use dyno_types::Endpoint;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// A socket of a network inside the process: known by its token.
#[derive(Debug)]
pub struct InProcess {
    token: u32,
    stamped: bool,
}

/// A virtual clock and a simulated server.
pub struct VirtualNet {
    now_ns: u64,
    server: SimServer,
    /// Replies under way: (time, token).
    replies: BinaryHeap<Reverse<(u64, u32)>>,
    /// By token: bytes that have arrived, and when the last of them did.
    arrived: Vec<(usize, u64)>,
    opened: Vec<u32>,
}

impl VirtualNet {
    /// Time 0 and an idle server.
    pub fn new(options: SimOptions) -> Self {
        VirtualNet {
            now_ns: 0,
            server: SimServer::new(options),
            replies: BinaryHeap::new(),
            arrived: Vec::new(),
            opened: Vec::new(),
        }
    }
}

impl Net for VirtualNet {
    type Socket = InProcess;

    const VIRTUAL: bool = true;

    fn now(&mut self) -> u64 {
        self.now_ns
    }

    fn connect(&mut self, _to: &Endpoint, token: u32, stamped: bool) -> io::Result<InProcess> {
        if self.arrived.len() <= token as usize {
            self.arrived.resize(token as usize + 1, (0, 0));
        }
        self.opened.push(token);
        Ok(InProcess { token, stamped })
    }

    fn established(&mut self, _socket: &mut InProcess, _token: u32) -> io::Result<bool> {
        Ok(true)
    }

    fn send(&mut self, socket: &mut InProcess, bytes: &[u8]) -> io::Result<usize> {
        for _ in bytes {
            let done = self.server.accept_request(self.now_ns);
            self.replies.push(Reverse((done, socket.token)));
        }
        Ok(bytes.len())
    }

    fn recv(&mut self, socket: &mut InProcess, into: &mut [u8]) -> io::Result<Received> {
        let (left, at_ns) = &mut self.arrived[socket.token as usize];
        let n = (*left).min(into.len());
        *left -= n;
        into[..n].fill(1);
        let stamp = if socket.stamped { Stamp::At { at_ns: *at_ns, by_card: false } } else { Stamp::Unasked };
        Ok(if n == 0 { Received::Empty } else { Received::Bytes { n, more: false, stamp } })
    }

    fn watch_write(&mut self, _socket: &mut InProcess, _token: u32, _on: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, socket: InProcess) {
        // Replies that are still to come find no socket; the server has the work all the same.
        self.arrived[socket.token as usize].0 = 0;
        self.replies.retain(|Reverse((_, token))| *token != socket.token);
    }

    fn wait(&mut self, now_ns: u64, until_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        debug_assert_eq!(now_ns, self.now_ns);
        if !self.opened.is_empty() {
            ready.extend(self.opened.drain(..).map(|token| Ready {
                token,
                read: false,
                write: true,
                last: false,
            }));
            return Ok(());
        }
        let next = self.replies.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        self.now_ns = self.server.runs_ns(self.now_ns.max(next.min(until_ns)));
        debug_assert!(self.now_ns >= now_ns, "virtual time never goes back");
        while let Some(&Reverse((at, token))) = self.replies.peek() {
            if at > self.now_ns {
                break;
            }
            self.replies.pop();
            let (arrived, at_ns) = &mut self.arrived[token as usize];
            (*arrived, *at_ns) = (*arrived + 1, at);
            ready.push(Ready { token, read: true, write: false, last: false });
        }
        Ok(())
    }
}

/// A network that answers at once.
#[derive(Default)]
pub struct EchoNet {
    pending: Vec<Ready>,
    waiting: Vec<usize>,
}

impl Net for EchoNet {
    type Socket = InProcess;

    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    fn connect(&mut self, _to: &Endpoint, token: u32, _stamped: bool) -> io::Result<InProcess> {
        if self.waiting.len() <= token as usize {
            self.waiting.resize(token as usize + 1, 0);
        }
        self.pending.push(Ready { token, read: false, write: true, last: false });
        Ok(InProcess { token, stamped: false })
    }

    fn established(&mut self, _socket: &mut InProcess, _token: u32) -> io::Result<bool> {
        Ok(true)
    }

    fn send(&mut self, socket: &mut InProcess, bytes: &[u8]) -> io::Result<usize> {
        self.waiting[socket.token as usize] += bytes.len();
        self.pending.push(Ready { token: socket.token, read: true, write: false, last: false });
        Ok(bytes.len())
    }

    fn recv(&mut self, socket: &mut InProcess, into: &mut [u8]) -> io::Result<Received> {
        let n = self.waiting[socket.token as usize].min(into.len());
        self.waiting[socket.token as usize] -= n;
        into[..n].fill(1);
        Ok(if n == 0 { Received::Empty } else { Received::Bytes { n, more: false, stamp: Stamp::Unasked } })
    }

    fn watch_write(&mut self, _socket: &mut InProcess, _token: u32, _on: bool) -> io::Result<()> {
        Ok(())
    }

    fn close(&mut self, _socket: InProcess) {}

    fn wait(&mut self, now_ns: u64, until_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        if self.pending.is_empty() {
            let left = until_ns.saturating_sub(now_ns);
            std::thread::sleep(std::time::Duration::from_nanos(left));
        }
        ready.append(&mut self.pending);
        Ok(())
    }
}
