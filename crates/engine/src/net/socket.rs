//! One non-blocking connection: TCP or Unix, plain or TLS.

use super::stamps::{Clocks, StampSource, Times, ask_for_stamps, recv_with_times};
use super::tls::TlsConfig;
use super::{Received, Stamp};
use crate::files::OutOfFiles;
use dyno_types::Endpoint;
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, socket_with,
};
use rustls::ClientConnection;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A connection.
pub struct Socket {
    fd: OwnedFd,
    tls: Option<Box<ClientConnection>>,
    /// Source of the times at which bytes arrived.
    source: StampSource,
    /// When the last bytes of TLS records arrived.
    record: Times,
}

/// The descriptor as a reader and writer for rustls.
struct Raw<'a> {
    fd: BorrowedFd<'a>,
    source: StampSource,
    /// When the last bytes arrived.
    times: Times,
}

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.source == StampSource::None {
            return Ok(rustix::net::recv(self.fd, into, RecvFlags::empty())?.0);
        }
        let (n, times) = recv_with_times(self.fd, into)?;
        self.times = times;
        Ok(n)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.fd, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

impl Socket {
    /// Begins to connect; with `stamped` the kernel or the network card of these clocks stamps arrivals.
    pub fn connect(to: &Endpoint, tls: Option<&TlsConfig>, stamped: Option<&Clocks>) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = match to {
            Endpoint::Tcp { address, .. } if address.is_ipv6() => AddressFamily::INET6,
            Endpoint::Tcp { .. } => AddressFamily::INET,
            Endpoint::Unix(_) => AddressFamily::UNIX,
        };
        let fd = socket_with(family, SocketType::STREAM, flags, None)
            .map_err(|e| OutOfFiles::name_limit(e.into()))?;
        let begun = match to {
            Endpoint::Tcp { address, .. } => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                rustix::net::connect(&fd, address)
            }
            Endpoint::Unix(path) => rustix::net::connect(&fd, &SocketAddrUnix::new(path.as_path())?),
        };
        match begun {
            // A Unix socket whose backlog is full says AGAIN: the caller backs off and tries again.
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let source = match (stamped, to) {
            (Some(clocks), Endpoint::Tcp { .. }) => ask_for_stamps(&fd, clocks),
            _ => StampSource::None,
        };
        let tls = tls.map(|config| config.begin(to)).transpose()?.map(Box::new);
        Ok(Socket { fd, tls, source, record: Times::default() })
    }

    /// A connection that a server has accepted, with the kernel's stamps where it gives them.
    pub fn from_accepted(fd: OwnedFd) -> io::Result<Self> {
        sockopt::set_tcp_nodelay(&fd, true)?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        let source = ask_for_stamps(&fd, &Clocks::default());
        Ok(Socket { fd, tls: None, source, record: Times::default() })
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns whether TLS has bytes that could not be sent yet.
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Returns whether it has no TLS.
    pub fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// True once connected, TLS handshake included.
    pub fn established(&mut self) -> io::Result<bool> {
        if let Err(error) = sockopt::socket_error(&self.fd)? {
            return Err(error.into());
        }
        // Not yet decided: a TCP connection has no peer before.
        if rustix::net::getpeername(&self.fd).is_err() {
            return Ok(false);
        }
        let Some(tls) = &mut self.tls else { return Ok(true) };
        let (open, _) = pump(tls, self.fd.as_fd(), self.source)?;
        match (tls.is_handshaking(), open) {
            (true, false) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection during the TLS handshake",
            )),
            (handshaking, _) => Ok(!handshaking),
        }
    }

    /// Sends what can be sent.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return match rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL) {
                Ok(n) => Ok(n),
                Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                Err(error) => Err(error.into()),
            };
        };
        let taken = if bytes.is_empty() { 0 } else { tls.writer().write(bytes)? };
        flush_tls(tls, self.fd.as_fd())?;
        Ok(taken)
    }

    /// Receives what is there, whenever it arrived.
    pub fn recv(&mut self, into: &mut [u8]) -> io::Result<Received> {
        self.recv_stamped(into, &mut Clocks::default())
    }

    /// Receives what is there, and maps its time of arrival by `clocks`.
    #[inline]
    pub(super) fn recv_stamped(&mut self, into: &mut [u8], clocks: &mut Clocks) -> io::Result<Received> {
        let source = self.source;
        let Some(tls) = &mut self.tls else {
            let received = if source == StampSource::None {
                let received = rustix::net::recv(&self.fd, &mut *into, RecvFlags::empty());
                received.map(|(n, _)| (n, Stamp::Unasked)).map_err(io::Error::from)
            } else {
                recv_with_times(self.fd.as_fd(), into).map(|(n, times)| (n, clocks.stamp(source, times)))
            };
            return match received {
                Ok((0, _)) => Ok(Received::Closed),
                Ok((n, stamp)) => Ok(Received::Bytes { n, more: n == into.len(), stamp }),
                Err(error) if would_block(&error) => Ok(Received::Empty),
                Err(error) => Err(error),
            };
        };
        // Plaintext first, then the socket, then plaintext again.
        let mut found = read_plain(tls, into)?;
        if found.is_none() {
            let (_, times) = pump(tls, self.fd.as_fd(), source)?;
            if times != Times::default() {
                self.record = times;
            }
            found = read_plain(tls, into)?;
        }
        Ok(match found {
            Some(Received::Bytes { n, more, .. }) if source != StampSource::None => {
                Received::Bytes { n, more, stamp: clocks.stamp(source, self.record) }
            }
            other => other.unwrap_or(Received::Empty),
        })
    }

    /// Tells the other side that this is the end, as far as that is possible without waiting.
    pub fn say_goodbye(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            // The connection is being closed: a failure here changes nothing.
            let _ = flush_tls(tls, self.fd.as_fd());
        }
    }
}

fn read_plain(tls: &mut ClientConnection, into: &mut [u8]) -> io::Result<Option<Received>> {
    match tls.reader().read(into) {
        Ok(0) => Ok(Some(Received::Closed)),
        Ok(n) => Ok(Some(Received::Bytes { n, more: true, stamp: Stamp::Unasked })),
        Err(error) if would_block(&error) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(Received::Closed)),
        Err(error) => Err(error),
    }
}

fn flush_tls(tls: &mut ClientConnection, fd: BorrowedFd<'_>) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(&mut Raw { fd, source: StampSource::None, times: Times::default() }) {
            Ok(_) => {}
            Err(error) if would_block(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Moves records both ways as far as the socket lets us. False once the other side has closed; and when the last bytes arrived.
fn pump(tls: &mut ClientConnection, fd: BorrowedFd<'_>, source: StampSource) -> io::Result<(bool, Times)> {
    let mut open = true;
    let mut raw = Raw { fd, source, times: Times::default() };
    while tls.wants_read() {
        match tls.read_tls(&mut raw) {
            Ok(0) => {
                open = false;
                break;
            }
            Ok(_) => {
                tls.process_new_packets().map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            }
            Err(error) if would_block(&error) => break,
            Err(error) => return Err(error),
        }
    }
    flush_tls(tls, fd)?;
    Ok((open, raw.times))
}
