//! dyno's own TCP proxy: makes the way to a server slow, narrow or shut where no network namespace is at hand.
//!
//! One thread waits for all connections (poll). What is received gets the time at which it is due, and is passed on no sooner
//! and in its order; what is held back is bounded, so that senders are slowed down as by a real link.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes that one direction of a connection may hold back.
const HELD: usize = 1 << 20;

/// Bytes that are received at once.
const CHUNK: usize = 64 << 10;

/// Burst of a limited direction, as a part of a second.
const BURST_S: f64 = 0.01;

/// Treatment of the bytes that pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Treatment {
    /// By how much later what goes to the server comes.
    pub delay: Duration,
    /// Bytes a second in each direction, of all connections together.
    pub bytes_per_s: Option<u64>,
    /// Nothing passes.
    pub shut: bool,
}

#[derive(Debug, Default)]
struct ProxyControl {
    treatment: Treatment,
    ends: bool,
}

/// A proxy in front of one server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    target: SocketAddr,
    control: Arc<Mutex<ProxyControl>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Listens on a free loopback port.
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let control = Arc::new(Mutex::new(ProxyControl::default()));
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?);
        let mut proxy_loop = ProxyLoop {
            listener,
            target,
            control: control.clone(),
            wake: wake.clone(),
            treatment: Treatment::default(),
            buckets: [TokenBucket::new(), TokenBucket::new()],
            pairs: Vec::new(),
        };
        let thread = std::thread::Builder::new().name("proxy".into()).spawn(move || proxy_loop.run())?;
        Ok(Proxy { address, target, control, wake, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// In words, for the record.
    pub fn describe(&self) -> String {
        format!("dyno's own TCP proxy, {} to {}, in the way of every operation", self.address, self.target)
    }

    /// Changes what is done from now on.
    pub fn treat(&self, change: impl FnOnce(&mut Treatment)) {
        change(&mut self.control.lock().unwrap_or_else(PoisonError::into_inner).treatment);
        self.awake();
    }

    fn awake(&self) {
        // It can only fail where it is awake already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.lock().unwrap_or_else(PoisonError::into_inner).ends = true;
        self.awake();
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has closed its connections.
            let _ = thread.join();
        }
    }
}

/// Bytes that one direction of all connections may still send.
#[derive(Debug)]
struct TokenBucket {
    left: f64,
    at: Instant,
}

impl TokenBucket {
    fn new() -> Self {
        TokenBucket { left: 0.0, at: Instant::now() }
    }

    fn fill(&mut self, now: Instant, bytes_per_s: u64) {
        let rate = bytes_per_s as f64;
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * rate;
        self.left = (self.left + gained).min((rate * BURST_S).max(1.0));
        self.at = now;
    }
}

/// One direction of a connection: 0 goes to the server.
#[derive(Debug, Default)]
struct Direction {
    held: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// The sender has said that nothing more comes; and that has been passed on.
    ended: bool,
    closed: bool,
    /// The receiver's socket is full.
    full: bool,
}

#[derive(Debug)]
struct ConnectionPair {
    /// The client's, the server's.
    ends: [TcpStream; 2],
    directions: [Direction; 2],
    broken: bool,
}

struct ProxyLoop {
    listener: TcpListener,
    target: SocketAddr,
    control: Arc<Mutex<ProxyControl>>,
    wake: Arc<OwnedFd>,
    treatment: Treatment,
    buckets: [TokenBucket; 2],
    pairs: Vec<ConnectionPair>,
}

impl ProxyLoop {
    fn run(&mut self) {
        let mut buffer = vec![0; CHUNK];
        loop {
            let Ok(ready) = self.wait() else { return };
            {
                let control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
                if control.ends {
                    return;
                }
                self.treatment = control.treatment;
            }
            if ready[0] {
                let mut count = [0; 8];
                // Empty: another thread already took it.
                let _ = rustix::io::read(&self.wake, &mut count);
            }
            if self.treatment.shut {
                continue;
            }
            if ready[1] {
                self.accept();
            }
            let now = Instant::now();
            for (number, pair) in self.pairs.iter_mut().enumerate() {
                for from in 0..2 {
                    let there = ready.get(2 + 2 * number + from).copied().unwrap_or(true);
                    if there {
                        pair.receive(from, now, &self.treatment, &mut buffer);
                    }
                }
            }
            self.pass_on();
            self.pairs
                .retain(|pair| !pair.broken && !pair.directions.iter().all(|direction| direction.closed));
        }
    }

    /// Waits until there is something to do; which descriptors can be read: the wake-up, the listener, both ends of each.
    fn wait(&mut self) -> io::Result<Vec<bool>> {
        let patience = self.patience().map(|left| Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let shut = self.treatment.shut;
        let mut watched = vec![PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
        if !shut {
            watched.push(PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN));
            for pair in &self.pairs {
                for end in 0..2 {
                    let (own, other) = (&pair.directions[end], &pair.directions[1 - end]);
                    let mut flags = PollFlags::empty();
                    flags.set(PollFlags::IN, !own.ended && own.bytes < HELD);
                    flags.set(PollFlags::OUT, other.full);
                    watched.push(PollFd::from_borrowed_fd(pair.ends[end].as_fd(), flags));
                }
            }
        }
        match poll(&mut watched, patience.as_ref()) {
            Err(rustix::io::Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let bad = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        let mut ready: Vec<bool> = watched.iter().map(|one| one.revents().intersects(bad)).collect();
        ready.resize(ready.len().max(2), false);
        Ok(ready)
    }

    /// Returns the time until something is due; `None`: until something is received.
    fn patience(&self) -> Option<Duration> {
        if self.treatment.shut {
            return None;
        }
        let now = Instant::now();
        let limited = self.treatment.bytes_per_s.is_some();
        let waits = |direction: &Direction| {
            let (due, _) = direction.held.front().filter(|_| !direction.full)?;
            let left = due.saturating_duration_since(now);
            Some(if limited { left.max(Duration::from_millis(1)) } else { left })
        };
        self.pairs.iter().flat_map(|pair| &pair.directions).filter_map(waits).min()
    }

    fn accept(&mut self) {
        while let Ok((client, _)) = self.listener.accept() {
            // A server that is not there: the client's connection ends.
            let Ok(server) = TcpStream::connect_timeout(&self.target, Duration::from_secs(1)) else {
                continue;
            };
            let set = |end: &TcpStream| end.set_nodelay(true).and_then(|()| end.set_nonblocking(true));
            if set(&client).and_then(|()| set(&server)).is_ok() {
                self.pairs.push(ConnectionPair {
                    ends: [client, server],
                    directions: Default::default(),
                    broken: false,
                });
            }
        }
    }

    fn pass_on(&mut self) {
        let now = Instant::now();
        if let Some(bytes_per_s) = self.treatment.bytes_per_s {
            self.buckets.iter_mut().for_each(|bucket| bucket.fill(now, bytes_per_s));
        }
        let limited = self.treatment.bytes_per_s.is_some();
        for pair in &mut self.pairs {
            for from in 0..2 {
                pair.send(from, now, limited.then_some(&mut self.buckets[from]));
            }
        }
        // Each has its turn of being the first.
        if limited && self.pairs.len() > 1 {
            self.pairs.rotate_left(1);
        }
    }
}

impl ConnectionPair {
    fn receive(&mut self, from: usize, now: Instant, treatment: &Treatment, buffer: &mut [u8]) {
        let direction = &mut self.directions[from];
        if direction.ended || direction.bytes >= HELD {
            // Nothing is read any more: an error would be told again and again.
            self.broken |= !matches!(self.ends[from].take_error(), Ok(None));
            return;
        }
        match (&self.ends[from]).read(buffer) {
            Ok(0) => direction.ended = true,
            Ok(count) => {
                let due = if from == 0 { now + treatment.delay } else { now };
                direction.held.push_back((due, buffer[..count].to_vec()));
                direction.bytes += count;
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.broken = true,
        }
    }

    fn send(&mut self, from: usize, now: Instant, mut bucket: Option<&mut TokenBucket>) {
        let direction = &mut self.directions[from];
        direction.full = false;
        while let Some((_, bytes)) = direction.held.front_mut().filter(|(due, _)| *due <= now) {
            let most = bucket.as_ref().map_or(bytes.len(), |bucket| (bucket.left as usize).min(bytes.len()));
            if most == 0 {
                return;
            }
            match (&self.ends[1 - from]).write(&bytes[..most]) {
                Ok(count) => {
                    direction.bytes -= count;
                    if let Some(bucket) = &mut bucket {
                        bucket.left -= count as f64;
                    }
                    bytes.drain(..count);
                    if bytes.is_empty() {
                        direction.held.pop_front();
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    direction.full = true;
                    return;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    return;
                }
            }
        }
        if direction.ended && !direction.closed && direction.held.is_empty() {
            direction.closed = true;
            // The other side may be gone already.
            let _ = self.ends[1 - from].shutdown(Shutdown::Write);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends back what it gets.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let mut own = stream.try_clone().unwrap();
                    let _ = io::copy(&mut own, &mut stream);
                    let _ = stream.shutdown(Shutdown::Write);
                });
            }
        });
        address
    }

    fn round_trip(stream: &mut TcpStream, bytes: &[u8]) -> Duration {
        let begun = Instant::now();
        let mut own = stream.try_clone().unwrap();
        let sent = bytes.to_vec();
        let sender = std::thread::spawn(move || own.write_all(&sent).unwrap());
        let mut back = vec![0; bytes.len()];
        stream.read_exact(&mut back).unwrap();
        sender.join().unwrap();
        assert!(back == bytes, "every byte in its order");
        begun.elapsed()
    }

    #[test]
    fn it_passes_delays_narrows_and_shuts() {
        let proxy = Proxy::start(echo()).unwrap();
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        round_trip(&mut stream, &large);
        proxy.treat(|now| now.delay = Duration::from_millis(80));
        let slow = round_trip(&mut stream, b"x");
        assert!(slow >= Duration::from_millis(80), "{slow:?}");
        proxy.treat(|now| *now = Treatment { bytes_per_s: Some(200_000), ..Treatment::default() });
        let narrow = round_trip(&mut stream, &large[..100_000]);
        assert!(narrow >= Duration::from_millis(400), "{narrow:?}");
        proxy.treat(|now| *now = Treatment { shut: true, ..Treatment::default() });
        // Bytes that were on their way when the way was shut are received before.
        std::thread::sleep(Duration::from_millis(20));
        stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        stream.write_all(b"held").unwrap();
        let mut back = [0; 4];
        assert!(stream.read_exact(&mut back).is_err(), "nothing passes");
        proxy.treat(|now| *now = Treatment::default());
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"held", "the connection stays, and so does what it holds");
    }

    #[test]
    fn ends_are_passed_on_and_a_server_that_is_gone_ends_the_connection() {
        let proxy = Proxy::start(echo()).unwrap();
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.write_all(b"last").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"last");
        let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let proxy = Proxy::start(gone).unwrap();
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let ended = stream.read(&mut [0; 1]);
        assert!(matches!(ended, Ok(0)) || ended.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset));
    }
}
