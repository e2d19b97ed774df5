//! Meaning of an error reply.

use dyno_types::Outcome;

/// Sorts an error reply (a line without its end) into an outcome by its first words.
pub fn classify_error(text: &[u8]) -> Outcome {
    let begins = |message: &str| text.starts_with(message.as_bytes());
    match () {
        () if begins("SERVER_ERROR out of memory") => Outcome::OutOfMemory,
        // So it says of values that fill several slabs.
        () if begins("SERVER_ERROR Out of memory") => Outcome::OutOfMemory,
        // The value is at fault: larger than `item_size_max` (1 MB by default).
        () if begins("SERVER_ERROR object too large") => Outcome::BadRequest,
        () if begins("CLIENT_ERROR unauthenticated") => Outcome::Forbidden,
        () if begins("CLIENT_ERROR authentication failure") => Outcome::Forbidden,
        () if begins("CLIENT_ERROR") => Outcome::BadRequest,
        () if begins("ERROR Too many open connections") => Outcome::Unreachable,
        // A command that the server does not know.
        () if text == b"ERROR" => Outcome::NotImplemented,
        () => Outcome::ServerError,
    }
}

/// Returns whether what follows an error reply to a command that carried a value can be anything. The server may have
/// read the value's bytes as a command, and may answer that as well. It discards them where it says `SERVER_ERROR`.
pub(super) fn loses_step(text: &[u8]) -> bool {
    !text.starts_with(b"SERVER_ERROR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_real_servers() {
        let cases: [(&str, Outcome, bool); 10] = [
            ("SERVER_ERROR Out of memory during read", Outcome::OutOfMemory, false),
            ("SERVER_ERROR out of memory storing object", Outcome::OutOfMemory, false),
            ("SERVER_ERROR object too large for cache", Outcome::BadRequest, false),
            ("SERVER_ERROR backend failure", Outcome::ServerError, false),
            ("CLIENT_ERROR unauthenticated", Outcome::Forbidden, true),
            ("CLIENT_ERROR authentication failure", Outcome::Forbidden, true),
            ("CLIENT_ERROR bad data chunk", Outcome::BadRequest, true),
            ("CLIENT_ERROR bad command line format", Outcome::BadRequest, true),
            ("ERROR Too many open connections", Outcome::Unreachable, true),
            ("ERROR", Outcome::NotImplemented, true),
        ];
        for (text, outcome, lost) in cases {
            assert_eq!(
                (classify_error(text.as_bytes()), loses_step(text.as_bytes())),
                (outcome, lost),
                "{text}"
            );
        }
    }
}
