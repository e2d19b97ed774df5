//! A connection of the proxy's, plain or by TLS, that never waits.

use dyno_engine::net::{TlsConfig, tls_config};
use dyno_types::address::Tls;
use dyno_types::limits::SECRET_BYTES;
use dyno_types::{Endpoint, RefusalCode, Refused, bounded};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketAddrUnix, SocketFlags, SocketType, socket_with,
    sockopt,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::{Connection, RootCertStore, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Plain bytes that TLS holds at most before they are sent.
const TLS_BUFFER: usize = 64 << 10;

/// Silence after which the other side is asked whether it is still there.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);

/// Interval of further questions.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Questions without an answer after which a connection has ended.
const KEEP_ALIVE_PROBES: u32 = 3;

/// TLS on either side.
#[derive(Clone, Default)]
pub struct StreamTls {
    /// Towards clients.
    pub clients: Option<Arc<ServerConfig>>,
    /// Towards the server.
    pub server: Option<Arc<TlsConfig>>,
}

/// Files for TLS towards clients, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerTls {
    /// The certificate chain that is shown to clients.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities of clients' certificates; without them none is asked for.
    pub client_ca: Option<PathBuf>,
}

impl StreamTls {
    /// Reads the files.
    ///
    /// # Errors
    /// A file cannot be read, or holds something else.
    pub fn load(clients: Option<&ListenerTls>, server: Option<&Tls>) -> Result<Self, Refused> {
        let clients = clients.map(server_config).transpose()?.map(Arc::new);
        Ok(StreamTls { clients, server: server.map(tls_config).transpose()?.map(Arc::new) })
    }
}

fn refuse(path: &Path, why: impl std::fmt::Display) -> Refused {
    Refused::new(RefusalCode::BadFile, path.display().to_string(), format!("{}: {why}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Refused> {
    let text = bounded::bytes_file(path, SECRET_BYTES).map_err(|why| refuse(path, why))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|why| refuse(path, why))?;
    if found.is_empty() { Err(refuse(path, "no certificate in it")) } else { Ok(found) }
}

fn server_config(files: &ListenerTls) -> Result<ServerConfig, Refused> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let chain = certificates(&files.cert)?;
    let key = bounded::bytes_file(&files.key, SECRET_BYTES).map_err(|why| refuse(&files.key, why))?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(|why| refuse(&files.key, why))?;
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|why| refuse(&files.cert, why))?;
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for one in certificates(path)? {
                roots.add(one).map_err(|why| refuse(path, why))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|why| refuse(path, why))?)
        }
    };
    builder.with_single_cert(chain, key).map_err(|why| refuse(&files.cert, why))
}

/// Result of receiving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// So many bytes.
    Bytes(usize),
    /// Nothing for now.
    Empty,
    /// The other side sends no more.
    Ended,
}

/// A connection.
pub(super) struct Stream {
    fd: OwnedFd,
    tls: Option<Box<Connection>>,
}

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

/// Finds out that the other side has vanished: it would hold its place for ever.
fn keep_alive(fd: &OwnedFd) -> io::Result<()> {
    sockopt::set_tcp_keepidle(fd, KEEP_ALIVE_AFTER)?;
    sockopt::set_tcp_keepintvl(fd, KEEP_ALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(fd, KEEP_ALIVE_PROBES)?;
    Ok(sockopt::set_socket_keepalive(fd, true)?)
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl Stream {
    /// A client's connection, which was accepted without blocking.
    pub fn from_accepted(fd: OwnedFd, tls: &StreamTls) -> io::Result<Self> {
        sockopt::set_tcp_nodelay(&fd, true)?;
        keep_alive(&fd)?;
        let tls = match &tls.clients {
            None => None,
            Some(config) => {
                let mut connection =
                    Connection::Server(ServerConnection::new(config.clone()).map_err(io::Error::other)?);
                connection.set_buffer_limit(Some(TLS_BUFFER));
                Some(Box::new(connection))
            }
        };
        Ok(Stream { fd, tls })
    }

    /// Begins to connect to the server.
    pub fn begin_connect(to: &Endpoint, tls: &StreamTls) -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = match to {
            Endpoint::Tcp { address, .. } if address.is_ipv6() => AddressFamily::INET6,
            Endpoint::Tcp { .. } => AddressFamily::INET,
            Endpoint::Unix(_) => AddressFamily::UNIX,
        };
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        let begun = match to {
            Endpoint::Tcp { address, .. } => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                keep_alive(&fd)?;
                rustix::net::connect(&fd, address)
            }
            Endpoint::Unix(path) => rustix::net::connect(&fd, &SocketAddrUnix::new(path.as_path())?),
        };
        match begun {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let tls = match &tls.server {
            None => None,
            Some(config) => {
                let mut connection = Connection::Client(config.begin(to)?);
                connection.set_buffer_limit(Some(TLS_BUFFER));
                Some(Box::new(connection))
            }
        };
        Ok(Stream { fd, tls })
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// True once connected, the TLS handshake left aside.
    pub fn is_connected(&self) -> io::Result<bool> {
        if let Err(error) = sockopt::socket_error(&self.fd)? {
            return Err(error.into());
        }
        Ok(rustix::net::getpeername(&self.fd).is_ok())
    }

    /// Returns whether a short receive says nothing about what else is there.
    pub fn has_records(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether the TLS handshake is still under way.
    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Receives what is there.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Received> {
        let mut raw = Raw(self.fd.as_fd());
        let Some(tls) = &mut self.tls else {
            return match raw.read(into) {
                Ok(0) => Ok(Received::Ended),
                Ok(count) => Ok(Received::Bytes(count)),
                Err(error) if would_block(&error) => Ok(Received::Empty),
                Err(error) => Err(error),
            };
        };
        loop {
            match tls.reader().read(into) {
                Ok(0) => return Ok(Received::Ended),
                Ok(count) => return Ok(Received::Bytes(count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Closed without a goodbye.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Received::Ended),
                Err(error) => return Err(error),
            }
            match tls.read_tls(&mut raw) {
                Ok(_) => {}
                Err(error) if would_block(&error) => return Ok(Received::Empty),
                Err(error) => return Err(error),
            }
            let processed = tls.process_new_packets();
            // Answers of the handshake, and alerts.
            while tls.wants_write() {
                match tls.write_tls(&mut raw) {
                    Ok(_) => {}
                    Err(error) if would_block(&error) => break,
                    Err(error) => return Err(error),
                }
            }
            processed.map_err(|why| io::Error::new(ErrorKind::InvalidData, why))?;
        }
    }

    /// Hands over what TLS holds; true if nothing is left.
    pub fn flush(&mut self) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        let mut raw = Raw(self.fd.as_fd());
        while tls.wants_write() {
            match tls.write_tls(&mut raw) {
                Ok(_) => {}
                Err(error) if would_block(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Sends what can be sent; returns the number of bytes that were taken.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return match Raw(self.fd.as_fd()).write(bytes) {
                Err(error) if would_block(&error) => Ok(0),
                sent => sent,
            };
        };
        let mut taken = 0;
        while taken < bytes.len() {
            let count = tls.writer().write(&bytes[taken..])?;
            taken += count;
            let mut raw = Raw(self.fd.as_fd());
            let mut written = 0;
            while tls.wants_write() {
                match tls.write_tls(&mut raw) {
                    Ok(count) => written += count,
                    Err(error) if would_block(&error) => break,
                    Err(error) => return Err(error),
                }
            }
            if count == 0 && written == 0 {
                break;
            }
        }
        Ok(taken)
    }

    /// Says that no more is sent, once everything was; true if that is done.
    pub fn end_sending(&mut self) -> io::Result<bool> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            if !self.flush()? {
                return Ok(false);
            }
        }
        // The other side may be gone already.
        let _ = rustix::net::shutdown(&self.fd, Shutdown::Write);
        Ok(true)
    }
}
