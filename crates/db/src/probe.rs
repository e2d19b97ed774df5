//! Asks a server, once and waiting, whether it is there and what it is.

use crate::protocol::ProtocolMark;
use crate::protocol_detection::{DetectedProtocol, detect_protocol, wrong_protocol};
use crate::target_error::TargetError;
use dyno_engine::files::OutOfFiles;
use dyno_engine::net::{Patience, Received, Socket, TlsConfig, monotonic_ns};
use dyno_types::address::Address;
use dyno_types::limits::ANSWER_BYTES;
use dyno_types::{Endpoint, Outcome, RefusalCode, Refused};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustls::AlertDescription;
use std::io::ErrorKind::{
    BrokenPipe, ConnectionRefused, ConnectionReset, InvalidData, NotFound, UnexpectedEof,
};
use std::net::ToSocketAddrs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that a server may take to answer.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Time without a byte before it is looked for what else the server may speak, nanoseconds.
const SILENCE_NS: u64 = 300_000_000;

/// Returns true once the caller has given up.
pub type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// A `Stop` that never fires: for waits that are short or cannot be cancelled.
pub const NEVER: Stop<'static> = &|| false;

/// Interval between looks at whether the caller still waits, nanoseconds.
const LOOK_NS: u64 = 20_000_000;

/// Words for a wait that was stopped.
pub const STOPPED: &str = "no longer waited for";

/// Asks each address in turn until one answers.
pub fn first_that_answers<T>(
    addresses: &[Address],
    stop: Stop<'_>,
    ask: impl Fn(&Endpoint) -> Result<T, ProbeFailure>,
) -> Result<T, TargetError> {
    let mut failures = Vec::new();
    for address in addresses {
        if stop() {
            failures.push(STOPPED.into());
            break;
        }
        let endpoint = match resolve_address(address) {
            Ok(endpoint) => endpoint,
            Err(error) => {
                failures.push(error.to_string());
                continue;
            }
        };
        let begun = Instant::now();
        tracing::debug!(%endpoint, "a server is asked what it is");
        match ask(&endpoint) {
            Ok(found) => {
                tracing::debug!(%endpoint, after_ms = begun.elapsed().as_millis() as u64, "the server has answered");
                return Ok(found);
            }
            Err(failure @ (ProbeFailure::Final(_) | ProbeFailure::Own(_))) => {
                let error = failure.into_target_error(&endpoint);
                tracing::debug!(%endpoint, %error, "the server cannot be used");
                return Err(error);
            }
            Err(failure) => {
                let error = failure.at_endpoint(&endpoint).to_string();
                let after_ms = begun.elapsed().as_millis() as u64;
                // Callers that wait for a server to be ready ask often: they say themselves what comes of it.
                tracing::debug!(%endpoint, after_ms, error, "the server has not answered");
                failures.push(error);
            }
        }
    }
    Err(TargetError::Unreachable(failures.join("; ")))
}

/// Why a host's name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// It cannot be looked up.
    #[error("{host}: {source}")]
    LookUp {
        /// The name.
        host: String,
        /// Words of the resolver.
        source: std::io::Error,
    },
    /// It has no address.
    #[error("{0}: the name has no address")]
    NoAddress(String),
}

impl From<ResolveError> for TargetError {
    fn from(error: ResolveError) -> Self {
        TargetError::Unreachable(error.to_string())
    }
}

/// Looks a server's address up: the first that the resolver names, IPv4 before IPv6.
///
/// # Errors
/// The name cannot be looked up, or has no address.
pub fn resolve_address(address: &Address) -> Result<Endpoint, ResolveError> {
    match address {
        Address::Unix(path) => Ok(Endpoint::Unix(path.clone())),
        Address::Tcp(host, port) => {
            let unknown = |source| ResolveError::LookUp { host: host.clone(), source };
            let found = (host.as_str(), *port).to_socket_addrs().map_err(unknown)?;
            let mut found: Vec<_> = found.collect();
            // The order of the resolver, but an address that is likely to be listened on first.
            found.sort_by_key(|a| !a.is_ipv4());
            let address = found.first().ok_or_else(|| ResolveError::NoAddress(host.clone()))?;
            Ok(Endpoint::Tcp { host: host.clone(), address: *address })
        }
    }
}

/// Why a server was not found.
#[derive(Debug, thiserror::Error)]
pub enum ProbeFailure {
    /// No server listens there: another seed may answer.
    #[error("{0}")]
    Absent(String),
    /// A server is there and has not answered in time.
    #[error("{0}")]
    Silent(String),
    /// A server is there and has closed the connection without an answer.
    #[error("{0}")]
    Closed(String),
    /// A server answered and refused the login or TLS, or its answer cannot be used.
    #[error("{0}")]
    Final(String),
    /// This process may not open a connection: nothing is known of the server.
    #[error(transparent)]
    Own(OutOfFiles),
}

/// A server that was not found, and where it was looked for.
#[derive(Debug, thiserror::Error)]
#[error("{endpoint}: {source}")]
pub struct Unreached {
    endpoint: Endpoint,
    source: ProbeFailure,
}

impl ProbeFailure {
    /// The same of a server there.
    pub fn at_endpoint(self, endpoint: &Endpoint) -> Unreached {
        Unreached { endpoint: endpoint.clone(), source: self }
    }

    /// The same as the end of an attempt to use a target.
    pub fn into_target_error(self, endpoint: &Endpoint) -> TargetError {
        match self {
            ProbeFailure::Own(limit) => {
                TargetError::Refused(Refused::new(RefusalCode::Limit, "target", limit.to_string()))
            }
            other => TargetError::Unreachable(other.at_endpoint(endpoint).to_string()),
        }
    }
}

/// Next step in the conversation that asks a server for its facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactsStep {
    /// More bytes are needed.
    Need,
    /// The answer is complete.
    Done,
    /// The server refused, with its class and words.
    Refused(Outcome, String),
}

/// State of reading: more to come, done, or refused.
pub enum ReadStatus {
    /// More must come.
    Need,
    /// All there is to know.
    Done,
    /// The server will not have us, in its words.
    Refused(String),
}

/// Connects, says `opening`, and hands all that is received to `hear` until it has heard enough. `hear` takes away what
/// it has used and appends what is to be said next. Where nothing comes back, or the server closes the connection, it is
/// looked for what else it may speak than `protocol`.
pub fn open_conversation(
    protocol: &'static ProtocolMark,
    (tls, stop): (Option<&Arc<TlsConfig>>, Stop<'_>),
    endpoint: &Endpoint,
    opening: Vec<u8>,
    hear: &mut dyn FnMut(&mut Vec<u8>, &mut Vec<u8>) -> ReadStatus,
) -> Result<(), ProbeFailure> {
    let mut line = ProbeConnection::open(tls, endpoint)?;
    if tls.is_some() {
        return line.continue_conversation(opening, (PATIENCE_NS, stop), hear);
    }
    match line.continue_conversation(opening, (SILENCE_NS, stop), hear) {
        Err(ProbeFailure::Silent(_)) if !stop() => match detect_protocol(endpoint) {
            DetectedProtocol::Known(found) if found != protocol => {
                Err(ProbeFailure::Final(wrong_protocol(protocol, found, endpoint)))
            }
            // It is slow: what it says may still come.
            _ => line.continue_conversation(Vec::new(), (PATIENCE_NS, stop), hear),
        },
        Err(ProbeFailure::Closed(why)) => Err(match detect_protocol(endpoint) {
            DetectedProtocol::Known(found) if found != protocol => {
                ProbeFailure::Final(wrong_protocol(protocol, found, endpoint))
            }
            DetectedProtocol::Known(_) => ProbeFailure::Absent(why),
            DetectedProtocol::Gone => {
                ProbeFailure::Absent(format!("{why}, and nothing listens there any more"))
            }
            DetectedProtocol::Unknown => ProbeFailure::Final(format!("{why}{EXPECTS_TLS}")),
        }),
        ended => ended,
    }
}

/// A connection for questions that are waited for.
pub struct ProbeConnection {
    socket: Socket,
    tls: bool,
    established: bool,
    /// Bytes still to be sent.
    unsent: Vec<u8>,
    received: Vec<u8>,
    buffer: Vec<u8>,
}

impl ProbeConnection {
    /// Begins to connect.
    pub fn open(tls: Option<&Arc<TlsConfig>>, endpoint: &Endpoint) -> Result<Self, ProbeFailure> {
        let socket = Socket::connect(endpoint, tls.map(Arc::as_ref), None);
        let socket = socket.map_err(|e| match OutOfFiles::limit_behind(&e) {
            Some(limit) => ProbeFailure::Own(limit),
            None => ProbeFailure::Absent(explain(&e, tls.is_some())),
        })?;
        Ok(ProbeConnection {
            socket,
            tls: tls.is_some(),
            established: false,
            unsent: Vec::new(),
            received: Vec::new(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Says `words` once connected, and hands all that is received to `hear` until it has heard enough, for so many
    /// nanoseconds and until the caller stops it.
    pub fn continue_conversation(
        &mut self,
        words: Vec<u8>,
        (patience_ns, stop): (u64, Stop<'_>),
        hear: &mut dyn FnMut(&mut Vec<u8>, &mut Vec<u8>) -> ReadStatus,
    ) -> Result<(), ProbeFailure> {
        let tls = self.tls;
        let mut patience = Patience::new(monotonic_ns(), patience_ns, LOOK_NS);
        self.unsent.extend(words);
        loop {
            self.send()?;
            self.advance(&mut patience, (patience_ns, stop))?;
            if !self.established {
                continue;
            }
            // Bytes that came with the end of the handshake are there already and wake no thread.
            let closed = self.receive().map_err(|e| self.failed(&e))?;
            if self.received.len() > ANSWER_BYTES {
                return Err(ProbeFailure::Final(format!("its answer is longer than {ANSWER_BYTES} bytes")));
            }
            match hear(&mut self.received, &mut self.unsent) {
                ReadStatus::Need if closed && tls => {
                    return Err(ProbeFailure::Final(format!("the server closed the connection{SPEAKS_TLS}")));
                }
                ReadStatus::Need if closed => {
                    return Err(ProbeFailure::Closed("the server closed the connection".into()));
                }
                ReadStatus::Need => {}
                ReadStatus::Done => return Ok(()),
                ReadStatus::Refused(message) => return Err(ProbeFailure::Final(message)),
            }
        }
    }

    /// Says `words` once connected, within so many nanoseconds and until the caller stops it. Nothing is awaited but the
    /// connection.
    pub fn send_words(
        &mut self,
        words: Vec<u8>,
        (patience_ns, stop): (u64, Stop<'_>),
    ) -> Result<(), ProbeFailure> {
        let mut patience = Patience::new(monotonic_ns(), patience_ns, LOOK_NS);
        self.unsent = words;
        loop {
            self.send()?;
            if self.established && self.unsent.is_empty() && !self.socket.wants_write() {
                return Ok(());
            }
            self.advance(&mut patience, (patience_ns, stop))?;
        }
    }

    /// Sends what can be sent, once connected.
    fn send(&mut self) -> Result<(), ProbeFailure> {
        if self.established {
            let taken = self.socket.send(&self.unsent).map_err(|e| self.failed(&e))?;
            self.unsent.drain(..taken);
        }
        Ok(())
    }

    /// Waits until something can be done, and looks whether it is connected by then.
    fn advance(
        &mut self,
        patience: &mut Patience,
        (patience_ns, stop): (u64, Stop<'_>),
    ) -> Result<(), ProbeFailure> {
        if !self.wait(patience, stop).map_err(|e| self.failed(&e))? {
            if stop() {
                return Err(ProbeFailure::Silent(STOPPED.into()));
            }
            let hint = if self.tls && !self.established { SPEAKS_TLS } else { "" };
            let seconds = patience_ns as f64 / 1e9;
            return Err(ProbeFailure::Silent(format!("no answer within {seconds} s{hint}")));
        }
        if !self.established {
            self.established = self.socket.established().map_err(|e| self.failed(&e))?;
        }
        Ok(())
    }

    fn failed(&self, error: &std::io::Error) -> ProbeFailure {
        match error.kind() {
            // A plain connection that is cut says nothing of the reason: the server may have died.
            ConnectionReset | BrokenPipe | UnexpectedEof if !self.tls => {
                ProbeFailure::Closed(error.to_string())
            }
            _ => ProbeFailure::Absent(explain(error, self.tls)),
        }
    }

    /// Waits until something can be done; false if nothing can in that time, or the caller stops it.
    fn wait(&self, patience: &mut Patience, stop: Stop<'_>) -> std::io::Result<bool> {
        let more = if self.established { !self.unsent.is_empty() } else { !self.tls };
        let writes = more || self.socket.wants_write();
        let wanted = if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        loop {
            let left = patience.count_wait(monotonic_ns());
            if left == 0 || stop() {
                return Ok(false);
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: left.min(LOOK_NS) as _ };
            let mut watched = [PollFd::from_borrowed_fd(self.socket.fd(), wanted)];
            match poll(&mut watched, Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    // A Unix socket whose backlog is full hangs up at once, again and again.
                    if !self.established && watched[0].revents().contains(PollFlags::HUP) {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    return Ok(true);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes everything that has come, up to just over the longest answer; true if nothing more will.
    fn receive(&mut self) -> std::io::Result<bool> {
        while self.received.len() <= ANSWER_BYTES {
            match self.socket.recv(&mut self.buffer)? {
                Received::Empty => return Ok(false),
                Received::Closed => return Ok(true),
                Received::Bytes { n, .. } => self.received.extend_from_slice(&self.buffer[..n]),
            }
        }
        Ok(false)
    }
}

/// Adds to a refused login what to do about it.
pub fn add_login_advice(outcome: Outcome, message: &str) -> String {
    match outcome {
        Outcome::Forbidden if message.starts_with("NOAUTH") => {
            format!(
                "{message} (give a password: --password-from env:NAME or file:PATH, or redis.password for `dyno ycsb`)"
            )
        }
        _ => message.to_owned(),
    }
}

fn explain(error: &std::io::Error, tls: bool) -> String {
    match error.kind() {
        ConnectionRefused => "connection refused: nothing listens there".into(),
        NotFound => "no such socket".into(),
        InvalidData if tls => {
            let why = error.get_ref().and_then(|why| why.downcast_ref::<rustls::Error>());
            let hint = match why {
                Some(rustls::Error::AlertReceived(AlertDescription::CertificateRequired)) => {
                    " (give cert=FILE and key=FILE, or tlsCertificateKeyFile=FILE for mongodb://)"
                }
                _ => "",
            };
            format!("TLS: {error}{hint}")
        }
        ConnectionReset | BrokenPipe | UnexpectedEof if tls => format!("{error}{SPEAKS_TLS}"),
        _ => error.to_string(),
    }
}

/// Hint at the usual cause of a TLS connection that is cut or stays silent.
const SPEAKS_TLS: &str = " (does it speak TLS, and does it ask for a client certificate? then give cert=FILE and key=FILE, or \
                          tlsCertificateKeyFile=FILE for mongodb://)";

/// Hint at the usual cause of a server that listens and closes plain connections.
const EXPECTS_TLS: &str =
    " (does it expect TLS? then write rediss:// or memcacheds://, or tls=true for mongodb://)";

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that was killed with words of ours unread has cut the connection: nothing speaks of TLS there.
    #[test]
    fn a_plain_connection_that_is_cut_is_not_asked_for_tls() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), address };
        let Ok(mut line) = ProbeConnection::open(None, &endpoint) else { panic!("no connection") };
        let mut need = |_: &mut Vec<u8>, _: &mut Vec<u8>| ReadStatus::Need;
        let silent = line.continue_conversation(b"hello".to_vec(), (1_000_000, NEVER), &mut need);
        assert!(matches!(silent, Err(ProbeFailure::Silent(_))));
        // Unread words make the end of the connection a reset.
        drop(listener.accept().unwrap());
        drop(listener);
        let cut =
            line.continue_conversation(b"again".to_vec(), (1_000_000_000, NEVER), &mut need).unwrap_err();
        assert!(matches!(cut, ProbeFailure::Closed(_)), "not told apart");
        assert!(!cut.to_string().contains("TLS"));
    }
}
