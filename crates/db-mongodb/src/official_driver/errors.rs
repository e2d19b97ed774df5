//! The driver's errors as outcomes: the same as those of the event loop, whose codes are looked up in the same table.

use crate::protocol::classify_code;
use dyno_types::Outcome;
use mongodb::error::{Error, ErrorKind, InsertManyError, WriteFailure};
use std::io;
use std::time::Duration;

/// Longest text kept of an error, characters.
const WORDS: usize = 400;

/// Why an operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfficialFailure {
    /// The outcome.
    pub outcome: Outcome,
    /// The server's code, where it has refused.
    pub code: Option<i64>,
    /// The name of that code, where the server gives one.
    pub code_name: Option<String>,
    /// The server's or the driver's words.
    pub message: String,
    /// Documents that were written all the same.
    pub records: u32,
}

impl OfficialFailure {
    /// A failure of this kind.
    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        let message: String = message.into();
        OfficialFailure {
            outcome,
            code: None,
            code_name: None,
            message: message.chars().take(WORDS).collect(),
            records: 0,
        }
    }

    /// An error of the server with its code.
    pub(crate) fn of_code(code: i64, name: Option<&str>, message: &str) -> Self {
        let name = name.filter(|name| !name.is_empty());
        let message = match name {
            Some(name) => format!("{name} ({code}): {message}"),
            None => format!("{code}: {message}"),
        };
        let code_name = name.map(str::to_owned);
        OfficialFailure { code: Some(code), code_name, ..OfficialFailure::new(classify_code(code), message) }
    }

    /// No reply within the time-out.
    pub(crate) fn timed_out(limit: Duration) -> Self {
        OfficialFailure::new(Outcome::TimedOut, format!("no reply within {limit:?}"))
    }

    /// A request that has no form in the driver's interface.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        OfficialFailure::new(Outcome::BadRequest, message)
    }
}

impl From<Error> for OfficialFailure {
    fn from(error: Error) -> Self {
        match &*error.kind {
            ErrorKind::Command(e) => OfficialFailure::of_code(e.code.into(), Some(&e.code_name), &e.message),
            ErrorKind::Write(WriteFailure::WriteError(e)) => {
                OfficialFailure::of_code(e.code.into(), e.code_name.as_deref(), &e.message)
            }
            ErrorKind::Write(WriteFailure::WriteConcernError(e)) => {
                OfficialFailure::of_code(e.code.into(), Some(&e.code_name), &e.message)
            }
            ErrorKind::InsertMany(e) => of_insert(e),
            ErrorKind::Authentication { message, .. } => {
                OfficialFailure::new(Outcome::Forbidden, message.as_str())
            }
            ErrorKind::Io(e) => OfficialFailure::new(of_io(e), format!("I/O error: {e}")),
            ErrorKind::ConnectionPoolCleared { message, .. } => {
                OfficialFailure::new(Outcome::Disconnected, message.as_str())
            }
            ErrorKind::ServerSelection { message, .. }
            | ErrorKind::DnsResolve { message, .. }
            | ErrorKind::InvalidTlsConfig { message, .. } => {
                OfficialFailure::new(Outcome::Unreachable, message.as_str())
            }
            ErrorKind::InvalidResponse { message, .. } => {
                OfficialFailure::new(Outcome::Protocol, message.as_str())
            }
            ErrorKind::BsonDeserialization(e) => OfficialFailure::new(Outcome::Protocol, e.to_string()),
            ErrorKind::InvalidArgument { message, .. } => OfficialFailure::malformed(message.as_str()),
            ErrorKind::BsonSerialization(e) => OfficialFailure::malformed(e.to_string()),
            ErrorKind::SessionsNotSupported | ErrorKind::IncompatibleServer { .. } => {
                OfficialFailure::new(Outcome::NotImplemented, error.kind.to_string())
            }
            ErrorKind::Shutdown => OfficialFailure::new(Outcome::Aborted, "the client has been shut down"),
            kind => OfficialFailure::new(Outcome::ServerError, kind.to_string()),
        }
    }
}

/// The outcome of a bulk is that of its first failure.
fn of_insert(error: &InsertManyError) -> OfficialFailure {
    if let Some(e) = error.write_errors.as_ref().and_then(|all| all.first()) {
        return OfficialFailure::of_code(e.code.into(), e.code_name.as_deref(), &e.message);
    }
    match &error.write_concern_error {
        Some(e) => OfficialFailure::of_code(e.code.into(), Some(&e.code_name), &e.message),
        None => OfficialFailure::new(Outcome::ServerError, "insert failed without words"),
    }
}

fn of_io(error: &io::Error) -> Outcome {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::TimedOut => Outcome::TimedOut,
        Kind::ConnectionRefused | Kind::NotFound | Kind::AddrNotAvailable | Kind::HostUnreachable => {
            Outcome::Unreachable
        }
        _ => Outcome::Disconnected,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: ErrorKind) -> OfficialFailure {
        OfficialFailure::from(Error::from(kind))
    }

    #[test]
    fn codes_and_words_are_those_of_the_event_loop() {
        let duplicate = OfficialFailure::of_code(11_000, None, "E11000 duplicate key");
        assert_eq!(
            (duplicate.outcome, duplicate.message.as_str()),
            (Outcome::Duplicate, "11000: E11000 duplicate key")
        );
        let named = OfficialFailure::of_code(18, Some("AuthenticationFailed"), "no");
        assert_eq!(
            (named.outcome, named.message.as_str()),
            (Outcome::Forbidden, "AuthenticationFailed (18): no")
        );
        assert_eq!(OfficialFailure::of_code(112, Some(""), "x").message, "112: x");
        assert_eq!(OfficialFailure::new(Outcome::Ok, "x".repeat(1_000)).message.len(), WORDS);
    }

    #[test]
    fn connections_that_fail() {
        let io = |kind: io::ErrorKind| of(ErrorKind::Io(io::Error::from(kind).into())).outcome;
        assert_eq!(io(io::ErrorKind::TimedOut), Outcome::TimedOut);
        assert_eq!(io(io::ErrorKind::ConnectionRefused), Outcome::Unreachable);
        assert_eq!(io(io::ErrorKind::UnexpectedEof), Outcome::Disconnected);
        assert_eq!(io(io::ErrorKind::ConnectionReset), Outcome::Disconnected);
        assert_eq!(of(ErrorKind::Shutdown).outcome, Outcome::Aborted);
    }
}
