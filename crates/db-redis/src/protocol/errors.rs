//! Meaning of an error reply.

use dyno_types::Outcome;

/// Sorts an error reply (without its leading `-`) into an outcome by its first word.
pub fn classify_error(text: &[u8]) -> Outcome {
    let code = text.split(|&b| b == b' ').next().unwrap_or_default();
    match code {
        b"OOM" => Outcome::OutOfMemory,
        b"LOADING" => Outcome::Loading,
        // Dragonfly has no codes for these.
        b"ERR" if text.starts_with(b"ERR Out of memory") => Outcome::OutOfMemory,
        b"ERR" if text.starts_with(b"ERR Cluster is not yet configured") => Outcome::ClusterDown,
        b"CLUSTERDOWN" | b"TRYAGAIN" | b"MASTERDOWN" | b"MOVED" | b"ASK" => Outcome::ClusterDown,
        b"CROSSSLOT" => Outcome::CrossSlot,
        b"READONLY" => Outcome::ReadOnly,
        b"BUSY" | b"BUSYKEY" => Outcome::Busy,
        b"NOAUTH" | b"WRONGPASS" | b"NOPERM" | b"DENIED" => Outcome::Forbidden,
        b"WRONGTYPE" => Outcome::BadRequest,
        b"ERR" if text.starts_with(b"ERR unknown command") => Outcome::NotImplemented,
        b"ERR" if text.starts_with(b"ERR invalid password") || text.starts_with(b"ERR AUTH") => {
            Outcome::Forbidden
        }
        b"ERR" if text.starts_with(b"ERR wrong number of arguments") => Outcome::BadRequest,
        b"ERR" if text.starts_with(b"ERR max number of clients") => Outcome::Unreachable,
        _ => Outcome::ServerError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_real_servers() {
        let cases: [(&str, Outcome); 12] = [
            ("CROSSSLOT Keys in request don't hash to the same slot", Outcome::CrossSlot),
            ("OOM command not allowed when used memory > 'maxmemory'.", Outcome::OutOfMemory),
            ("ERR Out of memory", Outcome::OutOfMemory),
            ("ERR Cluster is not yet configured", Outcome::ClusterDown),
            ("LOADING Redis is loading the dataset in memory", Outcome::Loading),
            ("CLUSTERDOWN The cluster is down", Outcome::ClusterDown),
            ("NOAUTH Authentication required.", Outcome::Forbidden),
            ("WRONGPASS invalid username-password pair or user is disabled.", Outcome::Forbidden),
            ("ERR unknown command 'FOO', with args beginning with:", Outcome::NotImplemented),
            ("WRONGTYPE Operation against a key holding the wrong kind of value", Outcome::BadRequest),
            ("READONLY You can't write against a read only replica.", Outcome::ReadOnly),
            ("ERR something else", Outcome::ServerError),
        ];
        for (text, outcome) in cases {
            assert_eq!(classify_error(text.as_bytes()), outcome, "{text}");
        }
    }
}
