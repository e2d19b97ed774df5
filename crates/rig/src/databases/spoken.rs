//! What a port speaks, found out by asking in each protocol: a target whose URI names another one is told so at once.

use dyno_types::bson;
use dyno_types::driver::Endpoint;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long an answer is awaited.
const PATIENCE: Duration = Duration::from_millis(300);

/// A database's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Redis,
    MongoDb,
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Protocol::Redis => "Redis'",
            Protocol::MongoDb => "MongoDB's",
        }
    }

    fn scheme(self) -> &'static str {
        match self {
            Protocol::Redis => "redis",
            Protocol::MongoDb => "mongodb",
        }
    }

    /// A question that every server answers, also before a login.
    fn question(self) -> Vec<u8> {
        if self == Protocol::Redis {
            return b"*1\r\n$4\r\nPING\r\n".to_vec();
        }
        let mut out = vec![0; 16];
        out[4] = 1;
        out[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
        // No flags, one section with a document.
        out.extend_from_slice(&[0; 5]);
        let document = bson::open(&mut out);
        bson::int32(&mut out, "isMaster", 1);
        bson::string(&mut out, "$db", "admin");
        bson::close(&mut out, document);
        let length = out.len() as i32;
        out[..4].copy_from_slice(&length.to_le_bytes());
        out
    }

    fn is_answer(self, answer: &[u8]) -> bool {
        match self {
            Protocol::Redis => matches!(answer, [b'+' | b'-', .., b'\n']),
            Protocol::MongoDb => answer.get(12..16) == Some(&OP_MSG.to_le_bytes()),
        }
    }
}

const OP_MSG: i32 = 2013;

/// What was found at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// It answered in this protocol.
    Known(Protocol),
    /// It answered nothing that is known.
    Unknown,
    /// Nothing listens there (any more).
    Gone,
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

fn connect(endpoint: &Endpoint) -> io::Result<Box<dyn Stream>> {
    match endpoint {
        Endpoint::Tcp { address, .. } => {
            let stream = TcpStream::connect_timeout(address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(Box::new(stream))
        }
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(Box::new(stream))
        }
    }
}

/// The protocol of an endpoint; asks without TLS, at most 0.6 s.
pub(crate) fn spoken(endpoint: &Endpoint) -> Spoken {
    for protocol in [Protocol::Redis, Protocol::MongoDb] {
        let Ok(mut stream) = connect(endpoint) else { return Spoken::Gone };
        let mut answer = [0; 512];
        let asked = stream.write_all(&protocol.question()).and_then(|()| stream.read(&mut answer));
        if asked.is_ok_and(|n| protocol.is_answer(&answer[..n])) {
            return Spoken::Known(protocol);
        }
    }
    Spoken::Unknown
}

/// That somebody wrote a URI of one protocol for a server of another.
pub(crate) fn mistaken(asked: Protocol, found: Protocol, endpoint: &Endpoint) -> String {
    format!(
        "what answers there speaks {} protocol, not {}: write {}://{endpoint}",
        found.name(),
        asked.name(),
        found.scheme()
    )
}
