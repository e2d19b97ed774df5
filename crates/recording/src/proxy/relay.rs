//! The thread that passes bytes on between clients and their server.
//!
//! Sockets are watched at their edges: what is readable or writable is remembered, and a direction goes on as far as both sides
//! allow. A side that takes nothing holds 64 KiB at most; then the other one is no longer read.

use super::settings::ProxySettings;
use super::stream::{Received, Stream, StreamTls};
use super::traffic_queue::{TrafficEvent, TrafficRecord, TrafficSender};
use dyno_engine::net::monotonic_ns;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes received at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Receives of a direction before others have their turn.
const TURNS: usize = 16;

/// Longest wait, nanoseconds: then it is looked whether the end was asked for.
const LOOK_NS: u64 = 50_000_000;

/// Pause in accepting after there were no more descriptors, nanoseconds.
const ACCEPT_PAUSE_NS: u64 = 100_000_000;

const WATCHED: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// The listener's number in the epoll.
const LISTENER: u64 = u64::MAX;

/// Counts of a relay.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RelayCounts {
    pub accepted: u64,
    pub unreachable: u64,
    pub too_many: u64,
    pub tls_failures: u64,
    pub overflow_bytes: u64,
}

/// One side of a pair.
struct Side {
    stream: Stream,
    /// Bytes for it that it has not taken.
    unsent: Vec<u8>,
    /// Something may be received.
    readable: bool,
    /// Its end was told: it is received until nothing is left.
    last: bool,
    /// It sends no more.
    ended: bool,
    /// It was told that no more comes.
    told: bool,
}

impl Side {
    fn new(stream: Stream) -> Self {
        Side { stream, unsent: Vec::new(), readable: false, last: false, ended: false, told: false }
    }
}

/// A client and its connection to the server.
struct Pair {
    /// The client, and the server.
    sides: [Side; 2],
    number: u32,
    connected: bool,
    queued: bool,
}

/// Why a pair ends.
enum PairEnd {
    /// Both sides have ended, or one is gone.
    Closed,
    Unreachable,
    Tls,
}

/// The relay.
pub(super) struct Relay<'a> {
    epoll: OwnedFd,
    listener: TcpListener,
    settings: &'a ProxySettings,
    pairs: Vec<Option<Box<Pair>>>,
    free: Vec<usize>,
    /// Pairs that go on in the next turn, though nothing new has come.
    again: Vec<usize>,
    traffic: Option<TrafficSender>,
    begins_ns: u64,
    buffer: Box<[u8]>,
    counts: RelayCounts,
    /// Accepting goes on then.
    paused_until_ns: Option<u64>,
}

impl<'a> Relay<'a> {
    /// Takes clients of the listener. Times count from `begins_ns` on.
    pub fn new(
        listener: TcpListener,
        settings: &'a ProxySettings,
        traffic: Option<TrafficSender>,
        begins_ns: u64,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        Ok(Relay {
            epoll,
            listener,
            settings,
            pairs: Vec::new(),
            free: Vec::new(),
            again: Vec::new(),
            traffic,
            begins_ns,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            counts: RelayCounts::default(),
            paused_until_ns: None,
        })
    }

    /// Counts so far.
    pub fn counts(&self) -> RelayCounts {
        let overflow_bytes = self.traffic.as_ref().map_or(0, TrafficSender::lost_bytes);
        RelayCounts { overflow_bytes, ..self.counts }
    }

    /// Relays until the end is asked for, the duration has passed, or the recorder has failed.
    pub fn relay_until(&mut self, stop: &AtomicBool, failed: &dyn Fn() -> bool) -> io::Result<()> {
        let until_ns = self.settings.duration.map(|time| self.begins_ns + time.as_nanos() as u64);
        let mut events = Vec::with_capacity(512);
        let mut now_ns = monotonic_ns();
        while !stop.load(Ordering::Relaxed) && !failed() && until_ns.is_none_or(|until| now_ns < until) {
            let mut wait_ns = if self.again.is_empty() { LOOK_NS } else { 0 };
            if let Some(until) = until_ns {
                wait_ns = wait_ns.min(until - now_ns);
            }
            if let Some(due_ns) = self.traffic.as_ref().and_then(TrafficSender::due_ns) {
                wait_ns = wait_ns.min((self.begins_ns + due_ns).saturating_sub(now_ns));
            }
            let timeout = Timespec {
                tv_sec: (wait_ns / 1_000_000_000) as i64,
                tv_nsec: (wait_ns % 1_000_000_000) as _,
            };
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let (flags, data): (EventFlags, EventData) = (event.flags, event.data);
                self.take_event(flags, data.u64())?;
            }
            for index in std::mem::take(&mut self.again) {
                if let Some(pair) = &mut self.pairs[index] {
                    pair.queued = false;
                    self.advance(index);
                }
            }
            now_ns = monotonic_ns();
            self.resume_accepting(now_ns)?;
            if let Some(traffic) = &mut self.traffic
                && traffic.due_ns().is_some_and(|due| self.begins_ns + due <= now_ns)
            {
                traffic.hand_over(now_ns - self.begins_ns);
            }
        }
        Ok(())
    }

    fn take_event(&mut self, flags: EventFlags, number: u64) -> io::Result<()> {
        if number == LISTENER {
            return self.accept_clients();
        }
        let (index, side) = ((number >> 1) as usize, (number & 1) as usize);
        // One that has ended in this turn is gone; its place is given away in the next.
        let Some(pair) = self.pairs.get_mut(index).and_then(Option::as_mut) else { return Ok(()) };
        let failed = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let place = &mut pair.sides[side];
        place.last |= failed || flags.contains(EventFlags::RDHUP);
        place.readable |= place.last || flags.contains(EventFlags::IN);
        self.advance(index);
        Ok(())
    }

    fn accept_clients(&mut self) -> io::Result<()> {
        loop {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let fd = match rustix::net::accept_with(&self.listener, flags) {
                Ok(fd) => fd,
                Err(Errno::AGAIN) => return Ok(()),
                // The client was gone before it was accepted.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => continue,
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    self.paused_until_ns = Some(monotonic_ns() + ACCEPT_PAUSE_NS);
                    let data = EventData::new_u64(LISTENER);
                    return Ok(epoll::modify(&self.epoll, &self.listener, data, EventFlags::empty())?);
                }
                Err(error) => return Err(error.into()),
            };
            if self.pairs.len() - self.free.len() >= self.settings.connections {
                self.counts.too_many += 1;
                continue;
            }
            let number = self.counts.accepted as u32;
            self.counts.accepted += 1;
            if self.add_pair(fd, number, &self.settings.tls).is_err() {
                self.counts.unreachable += 1;
            }
        }
    }

    fn resume_accepting(&mut self, now_ns: u64) -> io::Result<()> {
        if self.paused_until_ns.is_some_and(|until| until <= now_ns) {
            self.paused_until_ns = None;
            epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        }
        Ok(())
    }

    fn add_pair(&mut self, fd: OwnedFd, number: u32, tls: &StreamTls) -> io::Result<()> {
        let client = Stream::from_accepted(fd, tls)?;
        let server = Stream::begin_connect(&self.settings.to, tls)?;
        let index = self.free.pop().unwrap_or(self.pairs.len());
        let token = 2 * index as u64;
        let added = epoll::add(&self.epoll, client.fd(), EventData::new_u64(token), WATCHED)
            .and_then(|()| epoll::add(&self.epoll, server.fd(), EventData::new_u64(token + 1), WATCHED));
        if index == self.pairs.len() {
            self.pairs.push(None);
        }
        if let Err(error) = added {
            self.free.push(index);
            return Err(error.into());
        }
        let sides = [Side::new(client), Side::new(server)];
        self.pairs[index] = Some(Box::new(Pair { sides, number, connected: false, queued: false }));
        self.note_event(TrafficEvent::Opened, index, number);
        Ok(())
    }

    fn note_event(&mut self, event: TrafficEvent, index: usize, connection: u32) {
        let at_ns = monotonic_ns() - self.begins_ns;
        if let Some(traffic) = &mut self.traffic {
            traffic.push_event(TrafficRecord { event, slot: index as u32, connection, at_ns });
        }
    }

    /// Goes on with a pair as far as it can.
    fn advance(&mut self, index: usize) {
        let Some(mut pair) = self.pairs[index].take() else { return };
        let ended = self.advance_pair(index, &mut pair);
        match ended {
            Ok(()) => self.pairs[index] = Some(pair),
            Err(end) => {
                self.note_event(TrafficEvent::Closed, index, pair.number);
                self.free.push(index);
                match end {
                    PairEnd::Closed => {}
                    PairEnd::Unreachable => self.counts.unreachable += 1,
                    PairEnd::Tls => self.counts.tls_failures += 1,
                }
            }
        }
    }

    fn advance_pair(&mut self, index: usize, pair: &mut Pair) -> Result<(), PairEnd> {
        if !pair.connected {
            match pair.sides[1].stream.is_connected() {
                Ok(true) => pair.connected = true,
                Ok(false) => return Ok(()),
                Err(_) => return Err(PairEnd::Unreachable),
            }
            // A handshake begins with the client's first message.
            pair.sides[1].stream.flush().map_err(|_| PairEnd::Unreachable)?;
        }
        let handshakes = pair.sides.each_ref().map(|side| side.stream.is_handshaking());
        let failed = |_| if handshakes.contains(&true) { PairEnd::Tls } else { PairEnd::Closed };
        for side in &mut pair.sides {
            side.stream.flush().map_err(failed)?;
        }
        let mut more = false;
        for from in [0, 1] {
            more |= self.pass_on(index, pair, from).map_err(failed)?;
        }
        // A handshake that was completed here lets wait nothing any more, and no event tells of it.
        let is_completed = |side: usize| handshakes[side] && !pair.sides[side].stream.is_handshaking();
        more |= is_completed(0) || is_completed(1);
        if pair.sides.iter().all(|side| side.told) {
            return Err(PairEnd::Closed);
        }
        if more && !pair.queued {
            pair.queued = true;
            self.again.push(index);
        }
        Ok(())
    }

    /// Passes on what side `from` sends; true if there may be more at once.
    fn pass_on(&mut self, index: usize, pair: &mut Pair, from: usize) -> io::Result<bool> {
        let number = pair.number;
        let [client, server] = &mut pair.sides;
        let (source, target) = if from == 0 { (client, server) } else { (server, client) };
        for _ in 0..TURNS {
            if !target.unsent.is_empty() {
                let taken = target.stream.send(&target.unsent)?;
                target.unsent.drain(..taken);
                if !target.unsent.is_empty() {
                    return Ok(false);
                }
                // One slow reader's buffer is not kept by all.
                target.unsent = Vec::new();
            }
            if source.ended {
                target.told = target.told || target.stream.end_sending()?;
                return Ok(false);
            }
            if !source.readable {
                return Ok(false);
            }
            let count = match source.stream.receive(&mut self.buffer)? {
                Received::Empty => {
                    source.readable = false;
                    return Ok(false);
                }
                Received::Ended => {
                    source.ended = true;
                    continue;
                }
                Received::Bytes(count) => count,
            };
            let at_ns = monotonic_ns() - self.begins_ns;
            let bytes = &self.buffer[..count];
            let taken = target.stream.send(bytes)?;
            if taken < count {
                target.unsent.extend_from_slice(&bytes[taken..]);
            }
            if let Some(traffic) = &mut self.traffic {
                let event = match from {
                    0 => TrafficEvent::Request(count as u32),
                    _ => TrafficEvent::Reply(count as u32),
                };
                let record = TrafficRecord { event, slot: index as u32, connection: number, at_ns };
                traffic.push_bytes(record, bytes);
            }
            // A receive that does not fill the buffer was all, as epoll(7) says, unless the other side has ended.
            if count < self.buffer.len() && !source.last && !source.stream.has_records() {
                source.readable = false;
            }
        }
        Ok(true)
    }
}
