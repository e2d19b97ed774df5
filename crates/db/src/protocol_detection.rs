//! Protocol that a port speaks, found out by asking in each protocol: a target whose URI names another one is told so at once.

use crate::protocol::{self, ProtocolMark};
use dyno_types::driver::Endpoint;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Time that an answer is awaited.
const PATIENCE: Duration = Duration::from_millis(300);

/// Protocol found at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DetectedProtocol {
    /// It answered in this protocol.
    Known(&'static ProtocolMark),
    /// It answered nothing that is known.
    Unknown,
    /// Nothing listens there (any more).
    Gone,
}

trait ProbedStream: Read + Write {}
impl<T: Read + Write> ProbedStream for T {}

fn connect(endpoint: &Endpoint) -> io::Result<Box<dyn ProbedStream>> {
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

/// The protocol of an endpoint; asks without TLS, at most 0.3 s for each protocol that dyno knows.
pub fn detect_protocol(endpoint: &Endpoint) -> DetectedProtocol {
    for protocol in protocol::ALL {
        let Ok(mut stream) = connect(endpoint) else { return DetectedProtocol::Gone };
        let mut answer = [0; 512];
        let asked = stream.write_all(&(protocol.question)()).and_then(|()| stream.read(&mut answer));
        if asked.is_ok_and(|n| (protocol.is_answer)(&answer[..n])) {
            return DetectedProtocol::Known(protocol);
        }
    }
    DetectedProtocol::Unknown
}

/// Returns the error text for a URI whose scheme does not match the server's protocol.
pub fn wrong_protocol(asked: &ProtocolMark, found: &ProtocolMark, endpoint: &Endpoint) -> String {
    format!(
        "what answers there speaks {} protocol, not {}: write {}://{endpoint}",
        found.name, asked.name, found.scheme
    )
}
