//! One non-blocking connection: TCP or Unix, plain or TLS.

use super::Received;
use super::tls::TlsConfig;
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
    stamped: bool,
}

/// The descriptor as a reader and writer for rustls.
struct Raw<'a>(BorrowedFd<'a>);

impl Read for Raw<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::net::recv(self.0, into, RecvFlags::empty())?.0)
    }
}

impl Write for Raw<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::net::send(self.0, bytes, SendFlags::NOSIGNAL)?)
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
        let stamped = stamped && tls.is_none() && matches!(to, Endpoint::Tcp { .. }) && ask_for_stamps(&fd);
        let tls = tls.map(|config| config.begin(to)).transpose()?.map(Box::new);
        Ok(Socket { fd, tls, stamped })
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
        let open = pump(tls, self.fd.as_fd())?;
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

    /// Receives what is there.
    #[inline]
    pub fn recv(&mut self, into: &mut [u8]) -> io::Result<Received> {
        let Some(tls) = &mut self.tls else {
            if self.stamped {
                return recv_stamped(&self.fd, into);
            }
            return match rustix::net::recv(&self.fd, &mut *into, RecvFlags::empty()) {
                Ok((0, _)) => Ok(Received::Closed),
                Ok((n, _)) => Ok(Received::Bytes { n, more: n == into.len(), lag_ns: None }),
                Err(Errno::AGAIN | Errno::INTR) => Ok(Received::Empty),
                Err(error) => Err(error.into()),
            };
        };
        // Plaintext first, then the socket, then plaintext again.
        if let Some(found) = read_plain(tls, into)? {
            return Ok(found);
        }
        pump(tls, self.fd.as_fd())?;
        Ok(read_plain(tls, into)?.unwrap_or(Received::Empty))
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
        Ok(n) => Ok(Some(Received::Bytes { n, more: true, lag_ns: None })),
        Err(error) if would_block(&error) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Some(Received::Closed)),
        Err(error) => Err(error),
    }
}

fn flush_tls(tls: &mut ClientConnection, fd: BorrowedFd<'_>) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(&mut Raw(fd)) {
            Ok(_) => {}
            Err(error) if would_block(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Moves records both ways as far as the socket lets us; false once the other side has closed.
fn pump(tls: &mut ClientConnection, fd: BorrowedFd<'_>) -> io::Result<bool> {
    let mut open = true;
    while tls.wants_read() {
        match tls.read_tls(&mut Raw(fd)) {
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
    Ok(open)
}

/// Switches SO_TIMESTAMPNS on; false where the kernel does not offer it.
#[expect(unsafe_code, reason = "rustix has no SO_TIMESTAMPNS")]
fn ask_for_stamps(fd: &OwnedFd) -> bool {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the pointer and length describe a live c_int.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        ) == 0
    }
}

/// Receives with the kernel's time of arrival and turns it into a lag.
#[expect(unsafe_code, reason = "rustix does not hand out SCM_TIMESTAMPNS")]
fn recv_stamped(fd: &OwnedFd, into: &mut [u8]) -> io::Result<Received> {
    #[repr(align(8))]
    struct Control([u8; 64]);
    let mut control = Control([0; 64]);
    let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    // SAFETY: all-zero is a valid msghdr; the fields set below point to live buffers of the stated lengths.
    let (n, stamp) = unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = control.0.len() as _;
        let n = libc::recvmsg(fd.as_raw_fd(), &raw mut message, 0);
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        let stamp = if n > 0 && !head.is_null() && (*head).cmsg_type == libc::SCM_TIMESTAMPNS {
            let time: libc::timespec = std::ptr::read_unaligned(libc::CMSG_DATA(head).cast());
            Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
        } else {
            None
        };
        (n, stamp)
    };
    match n {
        0 => Ok(Received::Closed),
        n if n > 0 => {
            let wall = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
            let wall = wall.tv_sec as u64 * 1_000_000_000 + wall.tv_nsec as u64;
            let n = n as usize;
            Ok(Received::Bytes { n, more: n == into.len(), lag_ns: stamp.map(|s| wall.saturating_sub(s)) })
        }
        _ => match io::Error::last_os_error() {
            error if would_block(&error) => Ok(Received::Empty),
            error => Err(error),
        },
    }
}
