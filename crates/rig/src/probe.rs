//! Asks a server, once and waiting, whether it is there and what it is.

use crate::target::TargetError;
use dyno_engine::net::{Epoll, Net, Ready, Received, TlsConfig, monotonic_ns};
use dyno_types::{Endpoint, Outcome};
use dyno_wire::place::Address;
use dyno_wire::redis::{Facts, FactsStep, RedisOptions, Topology};
use std::net::ToSocketAddrs;
use std::sync::Arc;

/// How long a server may take to answer.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Tries the seed addresses in order; the first that answers tells facts and topology.
pub(crate) fn redis(
    options: &RedisOptions,
    tls: Option<&Arc<TlsConfig>>,
) -> Result<(Topology, Facts), TargetError> {
    first_that_answers(&options.addresses, |endpoint| {
        let (mut topology, mut facts) = (Topology::single(endpoint.clone()), Facts::default());
        let mut questions = Vec::new();
        Facts::ask_all(options, &mut questions);
        converse(tls, endpoint, questions, &mut |received, _| match Facts::take(
            options,
            &mut topology,
            received,
            &mut facts,
        ) {
            FactsStep::Need => Heard::Need,
            FactsStep::Done => Heard::Done,
            FactsStep::Refused(outcome, words) => Heard::Refused(advise(outcome, &words)),
        })?;
        Ok((topology, facts))
    })
}

/// Asks each address in turn until one answers.
pub(crate) fn first_that_answers<T>(
    addresses: &[Address],
    ask: impl Fn(&Endpoint) -> Result<T, Failure>,
) -> Result<T, TargetError> {
    let mut failures = Vec::new();
    for address in addresses {
        let endpoint = match resolve(address) {
            Ok(endpoint) => endpoint,
            Err(why) => {
                failures.push(why);
                continue;
            }
        };
        match ask(&endpoint) {
            Ok(found) => return Ok(found),
            Err(Failure::Final(why)) => return Err(TargetError::Unreachable(format!("{endpoint}: {why}"))),
            Err(Failure::Absent(why)) => failures.push(format!("{endpoint}: {why}")),
        }
    }
    Err(TargetError::Unreachable(failures.join("; ")))
}

pub(crate) fn resolve(address: &Address) -> Result<Endpoint, String> {
    match address {
        Address::Unix(path) => Ok(Endpoint::Unix(path.clone())),
        Address::Tcp(host, port) => {
            let found = (host.as_str(), *port).to_socket_addrs().map_err(|e| format!("{host}: {e}"))?;
            let mut found: Vec<_> = found.collect();
            // The order of the resolver, but an address that is likely to be listened on first.
            found.sort_by_key(|a| !a.is_ipv4());
            let address = found.first().ok_or_else(|| format!("{host}: the name has no address"))?;
            Ok(Endpoint::Tcp { host: host.clone(), address: *address })
        }
    }
}

/// Why a server was not found.
pub(crate) enum Failure {
    /// Nobody there: another seed may answer.
    Absent(String),
    /// Somebody there who will not have us.
    Final(String),
}

/// What has been heard.
pub(crate) enum Heard {
    /// More must come.
    Need,
    /// All there is to know.
    Done,
    /// The server will not have us, in its words.
    Refused(String),
}

/// Connects, says `opening`, and hands all that is received to `hear` until it has heard enough. `hear` takes away what
/// it has used and appends what is to be said next.
pub(crate) fn converse(
    tls: Option<&Arc<TlsConfig>>,
    endpoint: &Endpoint,
    opening: Vec<u8>,
    hear: &mut dyn FnMut(&mut Vec<u8>, &mut Vec<u8>) -> Heard,
) -> Result<(), Failure> {
    let absent = |e: std::io::Error| Failure::Absent(explain(&e, tls.is_some()));
    let mut net = Epoll::new(tls.cloned(), false).map_err(absent)?;
    let mut socket = net.connect(endpoint, 0, false).map_err(absent)?;
    let deadline = monotonic_ns() + PATIENCE_NS;
    let mut ready: Vec<Ready> = Vec::new();
    let (mut established, mut received, mut words) = (false, Vec::new(), opening);
    let mut buffer = vec![0; 64 << 10];
    loop {
        let now = monotonic_ns();
        if now >= deadline {
            let hint = if established { "" } else { hint(tls.is_some()) };
            return Err(Failure::Absent(format!("no answer within 5 s{hint}")));
        }
        net.wait(now, deadline, &mut ready).map_err(absent)?;
        ready.clear();
        if !established {
            if !net.established(&mut socket, 0).map_err(absent)? {
                continue;
            }
            established = true;
            net.send(&mut socket, &words).map_err(absent)?;
            words.clear();
        }
        let mut closed = false;
        loop {
            match net.recv(&mut socket, &mut buffer).map_err(absent)? {
                Received::Empty => break,
                Received::Closed => {
                    closed = true;
                    break;
                }
                Received::Bytes { n, .. } => received.extend_from_slice(&buffer[..n]),
            }
        }
        let heard = hear(&mut received, &mut words);
        if !words.is_empty() {
            net.send(&mut socket, &words).map_err(absent)?;
            words.clear();
        }
        match heard {
            Heard::Need if closed => {
                let hint = hint(tls.is_some());
                return Err(Failure::Final(format!("the server closed the connection{hint}")));
            }
            Heard::Need => {}
            Heard::Done => return Ok(()),
            Heard::Refused(words) => return Err(Failure::Final(words)),
        }
    }
}

fn advise(outcome: Outcome, words: &str) -> String {
    match outcome {
        Outcome::Forbidden if words.starts_with("NOAUTH") => {
            format!("{words} (give a password: redis://user:password@host, or redis.password)")
        }
        _ => words.to_owned(),
    }
}

fn explain(error: &std::io::Error, tls: bool) -> String {
    use std::io::ErrorKind::{
        BrokenPipe, ConnectionRefused, ConnectionReset, InvalidData, NotFound, UnexpectedEof,
    };
    match error.kind() {
        ConnectionRefused => "connection refused: nothing listens there".into(),
        NotFound => "no such socket".into(),
        InvalidData if tls => {
            let words = error.to_string();
            let hint =
                if words.contains("CertificateRequired") { " (give cert=FILE and key=FILE)" } else { "" };
            format!("TLS: {words}{hint}")
        }
        ConnectionReset | BrokenPipe | UnexpectedEof => format!("{error}{}", hint(tls)),
        _ => error.to_string(),
    }
}

/// What often lies behind a connection that is cut or stays silent: one side speaks TLS and the other does not, or a
/// client certificate is missing.
fn hint(tls: bool) -> &'static str {
    if tls {
        " (does it speak TLS, and does it ask for a client certificate? then give cert=FILE and key=FILE)"
    } else {
        " (does it expect TLS? then write rediss://, or tls=true for mongodb://)"
    }
}
