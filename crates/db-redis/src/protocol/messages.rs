//! Messages: those of subscriptions, and the times in messages of streams, lists and channels.

use super::exchange::RedisExchange;
use super::resp::{NotResp, Token, read_token, skip_reply};
use super::state::RedisDriver;
use dyno_types::command::SentStamp;
use dyno_types::{Decoded, Outcome, ReceivedMessage, Then};
use std::time::{SystemTime, UNIX_EPOCH};

/// Digits of a time: nanoseconds since 1970, from 2001 to 2286.
const DIGITS: usize = 19;

/// A reply on a connection that has subscribed.
enum ChannelReply<'a> {
    /// A message.
    Message(&'a [u8]),
    /// The answer to a subscription.
    Confirmed,
    /// The server has ended a subscription.
    Ended,
}

fn wall_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

/// The time that a text begins with.
fn stamp_of(text: &[u8]) -> Option<u64> {
    let digits = text.get(..DIGITS).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    if text.get(DIGITS).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Calls `each` with the times in a whole reply.
fn each_stamp(place: &SentStamp, reply: &[u8], each: &mut dyn FnMut(u64)) {
    let (mut at, mut named) = (0, false);
    while at < reply.len() {
        let Ok(Some((token, next))) = read_token(reply, at) else { return };
        at = next;
        // Elements follow the head of what they are in.
        let Token::Bulk(text) = token else {
            named = false;
            continue;
        };
        match place {
            SentStamp::Message => stamp_of(text).into_iter().for_each(&mut *each),
            SentStamp::Field(name) => {
                if named && let Some(sent_ns) = stamp_of(text) {
                    each(sent_ns);
                }
                // A value may be called as the field is.
                named = text == name;
            }
        }
    }
}

/// What a whole reply says; `None` for one of another kind.
fn read_channel_reply(reply: &[u8]) -> Option<ChannelReply<'_>> {
    let Ok(Some((Token::Array(count) | Token::Push(count), mut at))) = read_token(reply, 0) else {
        return None;
    };
    let mut text = || match read_token(reply, at) {
        Ok(Some((Token::Bulk(text) | Token::Simple(text), next))) => {
            at = next;
            Some(text)
        }
        _ => None,
    };
    let before = match (text()?, count) {
        (b"message" | b"smessage", 3) => 1,
        (b"pmessage", 4) => 2,
        (b"subscribe" | b"psubscribe" | b"ssubscribe", 3) => return Some(ChannelReply::Confirmed),
        (b"unsubscribe" | b"punsubscribe" | b"sunsubscribe", 3) => return Some(ChannelReply::Ended),
        _ => return None,
    };
    for _ in 0..before {
        text()?;
    }
    text().map(ChannelReply::Message)
}

impl RedisDriver {
    /// Returns whether a command request subscribes.
    pub(super) fn is_subscription(&self, x: &RedisExchange) -> bool {
        let template = self.commands.get(usize::from(x.request.shape));
        template.and_then(|template| template.commands.first()).is_some_and(|own| own.subscribes)
    }

    /// What has come on a connection that has subscribed: a message ends the wait for it.
    pub(super) fn take_message(&mut self, x: &mut RedisExchange, input: &[u8]) -> Result<Decoded, NotResp> {
        let Some(used) = skip_reply(input, 0)? else { return Ok(Decoded::Need) };
        let outcome = match read_channel_reply(&input[..used]) {
            Some(ChannelReply::Message(text)) => {
                self.note_message(text, false);
                x.records = 1;
                Outcome::Ok
            }
            Some(ChannelReply::Confirmed) => return Ok(Decoded::Push { used }),
            Some(ChannelReply::Ended) => {
                self.subscribed.remove(&x.request.collection);
                self.say("the server has ended the subscription");
                Outcome::ServerError
            }
            None if input[0] == b'>' => return Ok(Decoded::Push { used }),
            None => return Err(NotResp),
        };
        Ok(Decoded::Reply { used, then: Then::Finish(outcome) })
    }

    /// Counts a message that nothing waits for; false if it is none.
    pub(super) fn count_unawaited(&mut self, input: &[u8]) -> bool {
        match read_channel_reply(input) {
            Some(ChannelReply::Message(text)) => {
                self.note_message(text, true);
                true
            }
            Some(ChannelReply::Confirmed) => true,
            Some(ChannelReply::Ended) => {
                // Users subscribe anew.
                self.subscribed.clear();
                true
            }
            None => false,
        }
    }

    fn note_message(&mut self, text: &[u8], unawaited: bool) {
        let stamped = self.stamp.as_ref().and_then(|_| stamp_of(text));
        let delivery_ns = stamped.map(|sent_ns| wall_ns().saturating_sub(sent_ns).max(1));
        if unawaited || delivery_ns.is_some() {
            self.messages.push(ReceivedMessage { delivery_ns, unawaited });
        }
    }

    /// Keeps the times from the stamps in a whole reply until now.
    pub(super) fn note_stamps(&mut self, place: &SentStamp, reply: &[u8], unawaited: bool) {
        let mut now_ns = None;
        let messages = &mut self.messages;
        each_stamp(place, reply, &mut |sent_ns| {
            let now_ns = *now_ns.get_or_insert_with(wall_ns);
            let delivery_ns = Some(now_ns.saturating_sub(sent_ns).max(1));
            messages.push(ReceivedMessage { delivery_ns, unawaited });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(place: &SentStamp, reply: &str) -> Vec<u64> {
        let mut all = Vec::new();
        each_stamp(place, reply.as_bytes(), &mut |sent_ns| all.push(sent_ns));
        all
    }

    const STAMP: &str = "1700000000123456789";

    #[test]
    fn stamps_are_found_where_they_are_looked_for() {
        // As XREADGROUP answers: two messages, of which the second has no stamp, and a field whose value is called as the field.
        let stream = format!(
            "*1\r\n*2\r\n$4\r\njobs\r\n*3\r\n*2\r\n$3\r\n1-0\r\n*4\r\n$1\r\nk\r\n$1\r\nt\r\n$1\r\nt\r\n$19\r\n{STAMP}\r\n\
             *2\r\n$3\r\n2-0\r\n*2\r\n$1\r\nt\r\n$1\r\n5\r\n*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nt\r\n$23\r\n{STAMP}:abc\r\n"
        );
        let field = SentStamp::Field(b"t".to_vec());
        let sent = 1_700_000_000_123_456_789;
        assert_eq!(stamps(&field, &stream), [sent, sent]);
        assert_eq!(stamps(&SentStamp::Field(b"u".to_vec()), &stream), Vec::<u64>::new());
        let list = format!("*2\r\n$1\r\nq\r\n$19\r\n{STAMP}\r\n");
        assert_eq!(stamps(&SentStamp::Message, &list), [sent]);
        for other in [
            "$-1\r\n",
            "*-1\r\n",
            "$5\r\n17000\r\n",
            "$20\r\n17000000001234567890\r\n",
            ":1700000000123456789\r\n",
        ] {
            assert_eq!(stamps(&SentStamp::Message, other), Vec::<u64>::new(), "{other}");
        }
    }

    #[test]
    fn replies_of_subscriptions_are_told_apart_in_both_versions() {
        let message = |reply: &str| match read_channel_reply(reply.as_bytes()) {
            Some(ChannelReply::Message(text)) => String::from_utf8_lossy(text).into_owned(),
            Some(ChannelReply::Confirmed) => "confirmed".into(),
            Some(ChannelReply::Ended) => "ended".into(),
            None => "none".into(),
        };
        for head in ["*", ">"] {
            assert_eq!(message(&format!("{head}3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n")), "hi");
            assert_eq!(
                message(&format!("{head}4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\nc\r\n$2\r\nhi\r\n")),
                "hi"
            );
            assert_eq!(message(&format!("{head}3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")), "confirmed");
            assert_eq!(message(&format!("{head}3\r\n$12\r\nsunsubscribe\r\n$1\r\nc\r\n:0\r\n")), "ended");
            assert_eq!(message(&format!("{head}2\r\n$10\r\ninvalidate\r\n*0\r\n")), "none");
        }
        assert_eq!(message("+OK\r\n"), "none");
    }
}
