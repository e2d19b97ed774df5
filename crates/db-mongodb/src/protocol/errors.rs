//! Meaning of a server's error.

use dyno_types::Outcome;
use dyno_types::bson::{self, Element};

/// The outcome of an error code (`error_codes.yml` of the server).
pub fn classify_code(code: i64) -> Outcome {
    match code {
        11_000 | 11_001 | 12_582 => Outcome::Duplicate,
        // Unauthorized, AuthenticationFailed.
        13 | 18 => Outcome::Forbidden,
        // NotWritablePrimary, NotPrimaryNoSecondaryOk, NotPrimaryOrSecondary, PrimarySteppedDown, the ends of a server.
        10_107 | 10_058 | 13_435 | 13_436 | 189 | 91 | 11_600 | 11_602 => Outcome::ReadOnly,
        // IngressRequestRateLimitExceeded: the server sheds load.
        462 => Outcome::Busy,
        // WriteConflict, LockTimeout, LockBusy.
        112 | 24 | 46 => Outcome::Busy,
        // CommandNotFound, CommandNotSupported, NotImplemented.
        59 | 115 | 238 => Outcome::NotImplemented,
        // BadValue, FailedToParse, TypeMismatch, InvalidOptions, IDLFailedToParse, unknown field.
        2 | 9 | 14 | 72 | 40_414 | 40_415 => Outcome::BadRequest,
        // ExceededMemoryLimit, OutOfDiskSpace.
        146 | 14_031 => Outcome::OutOfMemory,
        _ => Outcome::ServerError,
    }
}

/// Error of a command that a server refuses, in its words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ServerError {
    /// Code; 0 where it gives none.
    pub code: i64,
    /// The code's name, where the server gives one.
    pub code_name: Option<String>,
    /// Name, code and message.
    pub text: String,
}

/// Reads an error document (a failed reply, a write error, a write-concern error).
pub fn describe_error(document: &[u8]) -> ServerError {
    let code = bson::find_element(document, "code").and_then(|e| e.as_i64()).unwrap_or(0);
    let message = bson::find_element(document, "errmsg").and_then(|e| e.as_str()).unwrap_or("no words");
    let name = bson::find_element(document, "codeName").and_then(|e| e.as_str());
    let text = match name {
        Some(name) => format!("{name} ({code}): {message}"),
        None => format!("{code}: {message}"),
    };
    ServerError { code, code_name: name.map(str::to_owned), text }
}

/// Returns whether a reply says that its command was done.
pub fn is_ok(ok: Option<Element<'_>>) -> bool {
    ok.is_some_and(|e| e.is_true())
}

/// Labels of an error reply.
pub fn error_labels(reply: &[u8]) -> impl Iterator<Item = &str> {
    let list = bson::find_element(reply, "errorLabels").and_then(|e| e.as_document()).unwrap_or_default();
    bson::read_elements(list).into_iter().flatten().flatten().filter_map(|label| label.as_str())
}

/// A server's word that it is not what it was taken for ("Server Discovery and Monitoring", error handling).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// It takes no writes.
    NotPrimary,
    /// It can neither be written to nor read from now.
    Recovering,
    /// It ends.
    Shutdown,
}

impl StateChange {
    /// Reads the reply to any command, or its write concern error. Errors of single statements say nothing of the server.
    pub fn from_reply(reply: &[u8]) -> Option<Self> {
        if is_ok(bson::find_element(reply, "ok")) {
            return Self::of_error(bson::find_element(reply, "writeConcernError")?.as_document()?);
        }
        Self::of_error(reply)
    }

    fn of_error(error: &[u8]) -> Option<Self> {
        if let Some(code) =
            bson::find_element(error, "code").and_then(|e| e.as_i64()).filter(|code| *code != 0)
        {
            return match code {
                91 | 11_600 => Some(Self::Shutdown),
                11_602 | 13_436 | 189 => Some(Self::Recovering),
                10_107 | 13_435 | 10_058 => Some(Self::NotPrimary),
                _ => None,
            };
        }
        let message = bson::find_element(error, "errmsg").and_then(|e| e.as_str())?;
        if message.contains("not master or secondary") || message.contains("node is recovering") {
            return Some(Self::Recovering);
        }
        message.contains("not master").then_some(Self::NotPrimary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        assert_eq!(classify_code(11_000), Outcome::Duplicate);
        assert_eq!(classify_code(18), Outcome::Forbidden);
        assert_eq!(classify_code(10_107), Outcome::ReadOnly);
        assert_eq!(classify_code(112), Outcome::Busy);
        assert_eq!(classify_code(59), Outcome::NotImplemented);
        assert_eq!(classify_code(50), Outcome::ServerError);
    }
}
