//! One non-blocking connection: TCP or Unix, plain or TLS.

use super::tls::TlsConfig;
use super::wall_clock::{Reading, WallClock};
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
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A connection.
pub struct Socket {
    fd: OwnedFd,
    tls: Option<Box<ClientConnection>>,
    /// Whether the kernel says when bytes arrived.
    stamped: bool,
    /// When the last bytes of TLS records arrived, CLOCK_REALTIME in nanoseconds, if the kernel has said it.
    record_ns: Option<u64>,
}

/// The descriptor as a reader and writer for rustls.
struct Raw<'a> {
    fd: BorrowedFd<'a>,
    stamped: bool,
    /// When the last bytes arrived.
    stamp_ns: Option<u64>,
}

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.stamped {
            return Ok(rustix::net::recv(self.fd, into, RecvFlags::empty())?.0);
        }
        let (n, stamp_ns) = recv_with_stamp(self.fd, into)?;
        self.stamp_ns = stamp_ns;
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
    /// Begins to connect.
    pub fn connect(to: &Endpoint, tls: Option<&TlsConfig>, stamped: bool) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = match to {
            Endpoint::Tcp { address, .. } if address.is_ipv6() => AddressFamily::INET6,
            Endpoint::Tcp { .. } => AddressFamily::INET,
            Endpoint::Unix(_) => AddressFamily::UNIX,
        };
        let fd =
            socket_with(family, SocketType::STREAM, flags, None).map_err(|e| OutOfFiles::named(e.into()))?;
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
        let stamped = stamped && matches!(to, Endpoint::Tcp { .. }) && ask_for_stamps(&fd);
        let tls = tls.map(|config| config.begin(to)).transpose()?.map(Box::new);
        Ok(Socket { fd, tls, stamped, record_ns: None })
    }

    /// A connection that a server has accepted, with the kernel's stamps where it gives them.
    pub fn accepted(fd: OwnedFd) -> io::Result<Self> {
        sockopt::set_tcp_nodelay(&fd, true)?;
        rustix::io::ioctl_fionbio(&fd, true)?;
        let stamped = ask_for_stamps(&fd);
        Ok(Socket { fd, tls: None, stamped, record_ns: None })
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Whether TLS has bytes that could not be sent yet.
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Whether it has no TLS.
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
        let (open, _) = pump(tls, self.fd.as_fd(), self.stamped)?;
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
        self.recv_stamped(into, &mut WallClock::default())
    }

    /// Receives what is there, and maps the kernel's time of arrival by `wall`.
    #[inline]
    pub(super) fn recv_stamped(&mut self, into: &mut [u8], wall: &mut WallClock) -> io::Result<Received> {
        let mut stamp = |stamp_ns: Option<u64>| match stamp_ns.map(|ns| wall.arrived_ns(ns, Reading::now)) {
            Some(Some(at_ns)) => Stamp::At(at_ns),
            _ => Stamp::Missing,
        };
        let Some(tls) = &mut self.tls else {
            let received = match self.stamped {
                true => recv_with_stamp(self.fd.as_fd(), into).map(|(n, stamp_ns)| (n, stamp(stamp_ns))),
                false => {
                    let received = rustix::net::recv(&self.fd, &mut *into, RecvFlags::empty());
                    received.map(|(n, _)| (n, Stamp::Unasked)).map_err(io::Error::from)
                }
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
            let (_, record_ns) = pump(tls, self.fd.as_fd(), self.stamped)?;
            self.record_ns = record_ns.or(self.record_ns);
            found = read_plain(tls, into)?;
        }
        Ok(match found {
            Some(Received::Bytes { n, more, .. }) if self.stamped => {
                Received::Bytes { n, more, stamp: stamp(self.record_ns) }
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
        match tls.write_tls(&mut Raw { fd, stamped: false, stamp_ns: None }) {
            Ok(_) => {}
            Err(error) if would_block(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Moves records both ways as far as the socket lets us. False once the other side has closed; and when the last bytes arrived.
fn pump(tls: &mut ClientConnection, fd: BorrowedFd<'_>, stamped: bool) -> io::Result<(bool, Option<u64>)> {
    let mut open = true;
    let mut raw = Raw { fd, stamped, stamp_ns: None };
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
    Ok((open, raw.stamp_ns))
}

/// Asks for the kernel's times of arrival (`SO_TIMESTAMPING`, Linux Documentation/networking/timestamping.rst); false where it
/// does not offer them.
#[expect(unsafe_code, reason = "rustix has no SO_TIMESTAMPING")]
fn ask_for_stamps(fd: &OwnedFd) -> bool {
    let flags: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the descriptor is open, and the pointer and length describe a live c_uint.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            size_of::<libc::c_uint>() as libc::socklen_t,
        ) == 0
    }
}

/// Receives, with the time at which the last of the bytes arrived: CLOCK_REALTIME in nanoseconds.
#[expect(unsafe_code, reason = "rustix does not hand out SCM_TIMESTAMPING")]
fn recv_with_stamp(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    // Room for a header and three times: software, and two of hardware.
    #[repr(align(8))]
    struct Control([u8; 128]);
    let mut control = Control([0; 128]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a valid msghdr; the fields set below point to live buffers of the stated lengths. The kernel says
    // by the header's length that a time is there before it is read.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let n = libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0);
        let n = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        let holds_time = !head.is_null()
            && (*head).cmsg_level == libc::SOL_SOCKET
            && (*head).cmsg_type == libc::SCM_TIMESTAMPING
            && (*head).cmsg_len as usize >= libc::CMSG_LEN(size_of::<libc::timespec>() as _) as usize;
        if !holds_time {
            return Ok((n, None));
        }
        let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(head).cast());
        let stamp_ns = time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64;
        Ok((n, Some(stamp_ns).filter(|ns| *ns > 0)))
    }
}
