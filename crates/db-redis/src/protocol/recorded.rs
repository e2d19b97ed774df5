//! Recorded commands: how many there are of one in a cluster, and what their replies are like.

use super::commands::reply_facts;
use super::exchange::{JoinedReply, RedisExchange};
use super::resp::{NotResp, Token, read_token, skip_reply};
use super::state::RedisDriver;
use dyno_types::Outcome;
use dyno_types::command::{RecordedPlace, ReplyKind};

/// The slot whose node gets the commands of a user that have no keys: always the same one, so that their order is kept.
pub(super) fn slot_of_user(user: u32) -> u16 {
    // Neighbours are far from each other.
    (user.wrapping_mul(0x9e37_79b1) >> 18) as u16
}

impl RedisDriver {
    /// Begins a recorded command; returns how many commands it is sent as.
    pub(super) fn begin_recorded(&mut self, x: &mut RedisExchange) -> u32 {
        let count = match self.topology.is_cluster() {
            false => 1,
            true if self.content.recorded_place(&x.request, 0) == RecordedPlace::EveryNode => {
                self.topology.count_primaries() as u32
            }
            true => self.content.recorded_commands(&x.request),
        };
        debug_assert!(count > 0, "a command is sent");
        x.more.joined = (count > 1).then(JoinedReply::default);
        count
    }

    /// The reply to a recorded command, or to a part of it, and the position after it. An error as it was then is no failure.
    pub(super) fn take_recorded(
        &mut self,
        x: &mut RedisExchange,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let Some(end) = skip_reply(input, 0)? else { return Ok(None) };
        let facts = reply_facts(&input[..end]);
        let error = match read_token(input, 0)? {
            Some((Token::Error(text), _)) => Some(text),
            _ => None,
        };
        let as_then = match &mut x.more.joined {
            None => self.content.compare_reply(&x.request, &facts),
            Some(joined) => {
                joined.add_part(&facts);
                // The others are still to come.
                x.waiting == 1 && self.content.compare_reply(&x.request, &joined.facts())
            }
        };
        if as_then {
            x.outcome = Outcome::Ok;
        }
        x.records += 1;
        if facts.kind == Some(ReplyKind::Nil) && self.content.recorded_stays(&x.request) {
            // Only EXEC answers so in a transaction.
            return Ok(Some((Outcome::Conflict, end)));
        }
        let outcome = error.filter(|_| !as_then).map_or(Outcome::Ok, |text| self.fail(text));
        Ok(Some((outcome, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(parts: &[&[u8]]) -> (Option<ReplyKind>, u64, String) {
        let mut whole = JoinedReply::default();
        parts.iter().for_each(|part| whole.add_part(&reply_facts(part)));
        let facts = whole.facts();
        (facts.kind, facts.size, String::from_utf8_lossy(facts.error).into_owned())
    }

    #[test]
    fn parts_are_joined_to_the_reply_of_a_single_server() {
        let values: &[&[u8]] = &[b"*2\r\n$1\r\na\r\n$-1\r\n", b"*1\r\n$1\r\nb\r\n"];
        assert_eq!(joined(values), (Some(ReplyKind::Array), 3, String::new()));
        assert_eq!(joined(&[b":1\r\n", b":2\r\n"]), (Some(ReplyKind::Integer), 0, String::new()));
        assert_eq!(joined(&[b"+OK\r\n", b"-OOM x\r\n", b"-ERR y\r\n"]), (None, 0, "OOM".into()));
    }
}
