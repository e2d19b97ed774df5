//! Traffic of other programs, as recordings see it.

use dyno_db_mongodb::protocol::recorded_reply::classify_reply;
use dyno_recording::Arguments;
use dyno_recording::exchange::IDLE_NS;
use dyno_recording::exchange::{ExchangeSettings, ExchangeSink, PairedProtocol};
use dyno_recording::replay::{ReplayOptions, sent_document};
use dyno_recording::sources::NewRecording;
use dyno_recording::sources::capture::{CaptureOptions, record_capture};
use dyno_recording::{Entry, RecordedReply, RecordingError, RecordingHeader, RecordingWriter};
use dyno_types::bson;
use dyno_types::command::ReplyKind;
use std::io::{Cursor, Read};

/// Checks that each reply goes to one command that awaits it.
#[derive(Default)]
struct Checked {
    /// Of each command: true while its reply may come.
    awaits: Vec<bool>,
    left_out: u64,
}

impl ExchangeSink for Checked {
    fn take_entry(&mut self) -> Entry {
        Entry::default()
    }

    fn push_command(&mut self, entry: Entry, awaits: bool) -> Result<u64, RecordingError> {
        assert!(!entry.arguments.is_empty() && entry.reply.is_none());
        self.awaits.push(awaits);
        Ok(self.awaits.len() as u64 - 1)
    }

    fn push_reply(&mut self, ticket: u64, _reply: RecordedReply) -> Result<(), RecordingError> {
        assert!(std::mem::take(&mut self.awaits[ticket as usize]), "a second reply");
        Ok(())
    }

    fn give_up(&mut self, ticket: u64) {
        assert!(std::mem::take(&mut self.awaits[ticket as usize]), "it was not awaited");
    }

    fn leave_out(&mut self, _reason: &str, count: u64) {
        self.left_out += count;
    }
}

/// Requests and replies of a connection: pieces of at most 63 bytes, each behind a byte of its length, its direction (64) and
/// whether nothing came before it for a while (128).
pub fn redis_exchange(data: &[u8]) {
    feed_exchange(PairedProtocol::Redis, data);
}

/// The same of memcached.
pub fn memcached_exchange(data: &[u8]) {
    feed_exchange(PairedProtocol::Memcached, data);
}

/// The same of MongoDB.
pub fn mongodb_exchange(data: &[u8]) {
    feed_exchange(PairedProtocol::Mongodb, data);
}

fn feed_exchange(protocol: PairedProtocol, data: &[u8]) {
    let Some((first, mut rest)) = data.split_first() else { return };
    let mut sink = Checked::default();
    let settings = ExchangeSettings::new(protocol, usize::from(first >> 1));
    let mut exchange = settings.open_exchange(0, first & 1 == 0);
    let mut now_ns = 0;
    while let Some((head, after)) = rest.split_first() {
        let (piece, behind) = after.split_at(usize::from(head & 63).min(after.len()));
        now_ns += if head & 128 == 0 { 1_000 } else { IDLE_NS };
        let fed = if head & 64 == 0 {
            exchange.feed_request(now_ns, piece, &mut sink)
        } else {
            exchange.feed_reply(now_ns, piece, &mut sink)
        };
        fed.expect("the sink takes everything");
        rest = behind;
    }
    exchange.finish(&mut sink).expect("the sink takes everything");
    assert!(!sink.awaits.contains(&true), "every command has its reply, or none is awaited");
}

/// A document as the reply to a recorded command, and as the body of one.
pub fn mongodb_replay(data: &[u8]) {
    if let Ok(class) = classify_reply(data) {
        assert!(class.kind.is_some() || (class.size == 0 && !class.error.is_empty()));
        assert!(class.size <= data.len() as u64 || class.kind == Some(ReplyKind::Status));
    }
    let name = data.get(5..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
    let options = ReplayOptions { include: vec!["DROP".into()], ..ReplayOptions::default() };
    let arguments = Arguments::from_words([name, b"shop", data]);
    if let Ok(sent) = sent_document(&options, &arguments) {
        assert!(bson::check(&sent).is_ok(), "what is sent is a document");
        for gone in ["_openedBy", "$clusterTime"] {
            assert!(bson::find_element(&sent, gone).is_none(), "{gone} is sent");
        }
    }
}

/// Captures of network traffic.
pub fn capture(data: &[u8]) {
    let input: Box<dyn Read + Send> = Box::new(Cursor::new(data.to_vec()));
    let begin = |header: &RecordingHeader| RecordingWriter::new(Vec::new(), header);
    let mut new = NewRecording::new(64, begin);
    if let Ok(totals) = record_capture(vec![input], &mut new, &CaptureOptions::default()) {
        assert!(totals.commands > 0 && totals.replies <= totals.commands);
    }
}
