//! The kernel's network: non-blocking sockets, one epoll a thread, nanosecond time-outs.

use super::hardware::NicClocks;
use super::monotonic::monotonic_ns;
use super::socket::Socket;
use super::stamps::Clocks;
use super::tls::TlsConfig;
use super::{Net, Ready, Received};
use crate::files::OutOfFiles;
use dyno_types::Endpoint;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Events that are always watched. Edges, not levels: with levels the kernel asks every socket once more, in the next
/// wait, whether what was received was all. A receive that does not fill the buffer was all, as epoll(7) says, unless
/// the other side has closed.
const WATCHED: EventFlags = EventFlags::IN.union(EventFlags::RDHUP).union(EventFlags::ET);

/// One thread's epoll.
pub struct Epoll {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    tls: Option<Arc<TlsConfig>>,
    spin: bool,
    clocks: Clocks,
}

impl Epoll {
    /// A new epoll; with `spin` it never sleeps. Arrivals by these cards are stamped by their clocks.
    pub fn new(tls: Option<Arc<TlsConfig>>, spin: bool, cards: &NicClocks) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|e| OutOfFiles::name_limit(e.into()))?;
        Ok(Epoll { epoll, events: Vec::with_capacity(1024), tls, spin, clocks: Clocks::new(cards) })
    }

    fn poll(&mut self, timeout: &Timespec, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut self.events), Some(timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        for event in &self.events {
            // Copies, because the event is packed.
            let (flags, data) = (event.flags, event.data);
            let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
            ready.push(Ready {
                token: data.u64() as u32,
                read: failed || flags.intersects(EventFlags::IN | EventFlags::RDHUP),
                write: failed || flags.contains(EventFlags::OUT),
                last: failed || flags.contains(EventFlags::RDHUP),
            });
        }
        Ok(())
    }
}

impl Net for Epoll {
    type Socket = Socket;

    #[inline]
    fn now(&mut self) -> u64 {
        monotonic_ns()
    }

    fn connect(&mut self, to: &Endpoint, token: u32, stamped: bool) -> io::Result<Socket> {
        let socket = Socket::connect(to, self.tls.as_deref(), stamped.then_some(&self.clocks))?;
        let flags = WATCHED | EventFlags::OUT;
        epoll::add(&self.epoll, socket.fd(), EventData::new_u64(u64::from(token)), flags)?;
        Ok(socket)
    }

    fn established(&mut self, socket: &mut Socket, token: u32) -> io::Result<bool> {
        let done = socket.established()?;
        // A TCP connection that is still being made shows by being writable.
        let wants = !done && (socket.is_plain() || socket.wants_write());
        self.watch_write(socket, token, wants)?;
        Ok(done)
    }

    #[inline]
    fn send(&mut self, socket: &mut Socket, bytes: &[u8]) -> io::Result<usize> {
        socket.send(bytes)
    }

    #[inline]
    fn has_unsent(&self, socket: &Socket) -> bool {
        socket.wants_write()
    }

    #[inline]
    fn recv(&mut self, socket: &mut Socket, into: &mut [u8]) -> io::Result<Received> {
        socket.recv_stamped(into, &mut self.clocks)
    }

    fn woken(&mut self) {
        self.clocks.woken();
    }

    fn watch_write(&mut self, socket: &mut Socket, token: u32, on: bool) -> io::Result<()> {
        let write = if on { EventFlags::OUT } else { EventFlags::empty() };
        Ok(epoll::modify(&self.epoll, socket.fd(), EventData::new_u64(u64::from(token)), WATCHED | write)?)
    }

    fn close(&mut self, mut socket: Socket) {
        socket.say_goodbye();
        // Closing the descriptor takes it out of the epoll.
    }

    fn wait(&mut self, now_ns: u64, until_ns: u64, ready: &mut Vec<Ready>) -> io::Result<()> {
        let left = if self.spin { 0 } else { until_ns.saturating_sub(now_ns) };
        let timeout =
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as _ };
        self.poll(&timeout, ready)
    }
}
