//! Which errors let a command be sent once more, and after which pause (MongoDB's "Retryable Reads", "Retryable Writes" and
//! "Client Backpressure" specifications).

use super::errors::error_labels;
use dyno_types::bson;

/// Codes of errors that pass. Servers from 4.4 on label those of writes themselves.
const PASSING: [i64; 12] = [6, 7, 89, 91, 189, 262, 9_001, 10_107, 11_600, 11_602, 13_435, 13_436];
/// The code of one that passes for reads alone: ReadConcernMajorityNotAvailableYet.
const PASSING_READ: i64 = 134;
/// Wire version from which servers label errors of writes (MongoDB 4.4).
const LABELS: i64 = 9;
/// First and longest pause after an overload, nanoseconds, before jitter.
const BACKOFF_NS: (u64, u64) = (100_000_000, 10_000_000_000);

/// A command that may be sent once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retryable {
    /// It reads.
    Read,
    /// It writes, and carries a number by which it is done at most once.
    Write,
}

/// What a failed reply says of another try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RetryAdvice {
    /// The error passes: a retryable command may be sent once more.
    pub passes: bool,
    /// The server is overloaded and has done nothing: any command may be sent once more, after a pause.
    pub sheds_load: bool,
    /// The server is overloaded.
    pub overloaded: bool,
    /// Nothing was written.
    pub nothing_written: bool,
    /// First pause that the server asks for, nanoseconds.
    pub backoff_ns: Option<u64>,
}

impl RetryAdvice {
    /// Reads a reply that failed, of a server with this greatest wire version that is a router or not.
    pub fn from_reply(reply: &[u8], command: Retryable, (wire, routes): (i64, bool)) -> Self {
        let has = |label: &str| error_labels(reply).any(|found| found == label);
        let overloaded = has("SystemOverloadedError");
        let code_of = |document: &[u8]| bson::find_element(document, "code").and_then(|e| e.as_i64());
        let passing = |code: Option<i64>| code.is_some_and(|code| PASSING.contains(&code));
        let passes = match command {
            Retryable::Read => {
                let code = code_of(reply);
                passing(code) || code == Some(PASSING_READ)
            }
            Retryable::Write if has("RetryableWriteError") => true,
            Retryable::Write if wire >= LABELS => false,
            // A router has tried again itself what a write concern error tells.
            Retryable::Write if routes => passing(code_of(reply)),
            Retryable::Write => {
                let concern = bson::find_element(reply, "writeConcernError").and_then(|e| e.as_document());
                passing(code_of(reply)) || passing(concern.and_then(code_of))
            }
        };
        let backoff =
            bson::find_element(reply, "baseBackoffMS").and_then(|e| e.as_i64()).filter(|ms| *ms > 0);
        RetryAdvice {
            passes,
            sheds_load: overloaded && has("RetryableError"),
            overloaded,
            nothing_written: has("NoWritesPerformed"),
            backoff_ns: backoff.map(|ms| ms.unsigned_abs().saturating_mul(1_000_000)),
        }
    }

    /// Pause before try number `attempt` (1 is the first that is one more), nanoseconds. `jitter` is drawn from 0 to 1.
    pub fn pause_ns(&self, attempt: u32, jitter: f64) -> u64 {
        debug_assert!((0.0..=1.0).contains(&jitter));
        if !self.overloaded {
            return 0;
        }
        let (first, most) = BACKOFF_NS;
        let growth = 1u64.checked_shl(attempt).unwrap_or(u64::MAX);
        let pause = self.backoff_ns.unwrap_or(first).saturating_mul(growth).min(most);
        (pause as f64 * jitter) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(fields: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        bson::build_document(|out| {
            bson::put_double(out, "ok", 0.0);
            fields(out);
        })
    }

    fn labelled(names: &[&str], code: i32) -> Vec<u8> {
        error(|out| {
            bson::put_int32(out, "code", code);
            bson::put_head(out, bson::kind::ARRAY, "errorLabels");
            let list = bson::open(out);
            for (at, name) in names.iter().enumerate() {
                bson::put_item_head(out, bson::kind::STRING, at as u32);
                bson::put_text_value(out, name.as_bytes());
            }
            bson::close(out, list);
        })
    }

    fn passes(reply: &[u8], command: Retryable, routes: bool, wire: i64) -> bool {
        RetryAdvice::from_reply(reply, command, (wire, routes)).passes
    }

    /// The tables of the specifications.
    #[test]
    fn codes_count_where_servers_give_no_labels() {
        use Retryable::{Read, Write};
        let (router, member) = (true, false);
        let coded = |code| error(|out| bson::put_int32(out, "code", code));
        for code in [11_600, 11_602, 10_107, 13_435, 13_436, 189, 91, 7, 6, 89, 9_001, 262] {
            assert!(
                passes(&coded(code), Write, member, 8) && passes(&coded(code), Write, router, 8),
                "{code}"
            );
            assert!(!passes(&coded(code), Write, member, 9), "{code}");
            assert!(
                passes(&coded(code), Read, member, 6) && passes(&coded(code), Read, member, 21),
                "{code}"
            );
        }
        assert!(passes(&coded(134), Read, member, 21) && !passes(&coded(134), Write, member, 8));
        assert!(!passes(&coded(11_000), Read, member, 8) && !passes(&coded(11_000), Write, member, 8));
        assert!(passes(&labelled(&["RetryableWriteError"], 112), Write, member, 21));
        assert!(!passes(&labelled(&["RetryableWriteError"], 112), Read, member, 21));
        let concern = bson::build_document(|out| {
            bson::put_double(out, "ok", 1.0);
            bson::put_document(
                out,
                "writeConcernError",
                &bson::build_document(|out| bson::put_int32(out, "code", 91)),
            );
        });
        assert!(passes(&concern, Write, member, 8));
        assert!(!passes(&concern, Write, router, 8) && !passes(&concern, Write, member, 9));
    }

    #[test]
    fn an_overloaded_server_gets_a_pause() {
        let reply = labelled(&["SystemOverloadedError", "RetryableError"], 462);
        let advice = RetryAdvice::from_reply(&reply, Retryable::Write, (27, false));
        assert!(advice.sheds_load && advice.overloaded && !advice.passes);
        // 100 ms doubled with each try, up to 10 s.
        let at = |attempt| advice.pause_ns(attempt, 1.0) / 1_000_000;
        assert_eq!([at(1), at(2), at(6), at(7), at(90)], [200, 400, 6_400, 10_000, 10_000]);
        assert_eq!(advice.pause_ns(1, 0.5), 100_000_000);
        let asked = error(|out| bson::put_int32(out, "baseBackoffMS", 7));
        let advice = RetryAdvice::from_reply(&asked, Retryable::Read, (27, false));
        assert_eq!(
            (advice.backoff_ns, advice.sheds_load, advice.pause_ns(1, 1.0)),
            (Some(7_000_000), false, 0)
        );
        assert!(
            !RetryAdvice::from_reply(&labelled(&["RetryableError"], 1), Retryable::Read, (27, true))
                .sheds_load
        );
    }
}
