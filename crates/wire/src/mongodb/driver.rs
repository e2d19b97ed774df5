//! The MongoDB protocol of one load thread.
//!
//! An operation is one command (0) and, where its result does not fit one reply, further ones (1, 2 ...) that ask for
//! the rest on the same node. A batch of inserts is one command with many documents and an outcome for each.

use super::command::Writer;
use super::compress::{Codec, Compressor};
use super::deployment::Deployment;
use super::exchange::Exchange;
use super::greeting::{self, Credentials, Talk};
use super::message::{self, HEADER, NotMessage, code};
use super::options::MongoOptions;
use super::reply;
use super::selection::ReadPreference;
use super::session::{self, Session};
use dyno_types::driver::NOWHERE;
use dyno_types::{Content, Decoded, Driver, Endpoint, Hello, Outcome, Refused, Request, Then, Verb};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

/// The driver.
pub struct MongoDriver {
    options: Arc<MongoOptions>,
    credentials: Arc<Credentials>,
    content: Arc<dyn Content>,
    deployment: Deployment,
    talks: HashMap<u32, Talk>,
    id: i32,
    turn: u16,
    compressor: Option<Compressor>,
    sessions: bool,
    codec: Option<Box<Codec>>,
    plain: Vec<u8>,
    packed: Vec<u8>,
    name: Vec<u8>,
    error: String,
}

impl MongoDriver {
    /// A driver for one load thread.
    pub fn new(
        options: Arc<MongoOptions>,
        content: Arc<dyn Content>,
        deployment: Deployment,
    ) -> Result<Self, Refused> {
        options.check()?;
        let codec = (!options.compressors.is_empty()).then(|| Box::new(Codec::new(options.zlib_level)));
        Ok(MongoDriver {
            options,
            credentials: Arc::new(Credentials::new()),
            content,
            deployment,
            talks: HashMap::new(),
            id: 0,
            turn: 0,
            compressor: None,
            sessions: false,
            codec,
            plain: Vec::new(),
            packed: Vec::new(),
            name: Vec::new(),
            error: String::new(),
        })
    }

    fn next_id(&mut self) -> i32 {
        self.id = self.id.wrapping_add(1);
        self.id
    }

    fn writes(&self, request: &Request) -> bool {
        self.content.writes(request) || self.content.in_transaction(request)
    }

    /// The node for an operation.
    fn choose(&mut self, request: &Request) -> u16 {
        self.turn = self.turn.wrapping_add(1);
        let Some(primary) = self.deployment.primary else {
            // Routers take turns.
            return self.deployment.router(&mut self.turn);
        };
        // A primary that has gone is asked until another one is known: every failure counts.
        let reads_there = self.options.read_preference == ReadPreference::Primary;
        if !self.deployment.is_set() || reads_there || self.writes(request) {
            return primary;
        }
        match self.deployment.readable() {
            [] => {
                self.error.clear();
                let mode = self.options.read_preference.name();
                let _ = write!(
                    self.error,
                    "no member of the replica set may be read from (readPreference={mode})"
                );
                NOWHERE
            }
            readable => readable[usize::from(self.turn) % readable.len()],
        }
    }

    /// The reply at the start of `input`, unpacked: bytes used and document.
    fn open<'i>(
        codec: &mut Option<Box<Codec>>,
        packed: &'i mut Vec<u8>,
        input: &'i [u8],
    ) -> Result<Option<(usize, &'i [u8])>, NotMessage> {
        let Some(header) = message::frame(input)? else { return Ok(None) };
        let body = &input[HEADER..header.bytes];
        if header.code != code::COMPRESSED {
            return Ok(Some((header.bytes, message::document(header.code, body)?)));
        }
        let codec = codec.as_mut().ok_or(NotMessage)?;
        let inner = codec.expand(header, body, packed)?;
        Ok(Some((header.bytes, message::document(inner, packed)?)))
    }
}

impl Driver for MongoDriver {
    type Exchange = Exchange;

    fn endpoints(&self) -> &[Endpoint] {
        &self.deployment.endpoints
    }

    fn wanted(&self) -> Vec<u16> {
        // All that answer: when the primary is lost, another member must be there to be asked who follows it.
        self.deployment.known()
    }

    fn hello(&mut self, _node: u16, connection: u32, out: &mut Vec<u8>) -> bool {
        self.talks.insert(connection, Talk::Hello);
        let id = self.next_id();
        greeting::hello(&self.options, id, out);
        true
    }

    fn greeted(&mut self, node: u16, connection: u32, _reply: u16, input: &[u8], out: &mut Vec<u8>) -> Hello {
        let id = self.next_id();
        let talk = self.talks.entry(connection).or_insert(Talk::Hello);
        let (heard, agreed) = greeting::heard(&self.options, &self.credentials, talk, input, id, out);
        if let Some(agreed) = agreed {
            (self.compressor, self.sessions) = (agreed.compressor, agreed.sessions);
            let learns = self.deployment.is_set() || self.deployment.is_routers();
            if let (true, Ok(Some((_, hello)))) = (learns, greeting::split(input)) {
                self.deployment.learn(node, hello, None, &self.options);
            }
        }
        if !matches!(heard, Hello::Need | Hello::Reply { more: true, .. }) {
            self.talks.remove(&connection);
        }
        heard
    }

    fn begin(&mut self, x: &mut Exchange, request: &Request) -> u32 {
        // An operation that was given up may go on at the server: its session is not used again.
        if !x.answered || !self.sessions {
            x.session = None;
        }
        if self.sessions && x.session.is_none() {
            x.session = Session::begin();
        }
        let in_transaction = self.content.in_transaction(request);
        x.numbered = self.options.retry_writes
            && !in_transaction
            && self.sessions
            && session::is_retryable(self.content.as_ref(), request);
        if let (true, Some(session)) = (x.numbered || (in_transaction && request.step == 0), &mut x.session) {
            session.next_write();
        }
        let reads = self.options.retry_reads
            && !in_transaction
            && session::is_retryable_read(self.content.as_ref(), request);
        (x.retryable, x.retried, x.lost) = (reads || (x.numbered && x.session.is_some()), false, false);
        x.request = *request;
        x.batch.clear();
        x.failed.clear();
        (x.cursor, x.records, x.verified, x.answered) = (0, 0, None, false);
        if !in_transaction || request.step == 0 {
            x.node = self.choose(request);
        }
        1
    }

    fn batches(&self) -> bool {
        true
    }

    fn begin_batch(&mut self, x: &mut Exchange, requests: &[Request]) -> u32 {
        self.begin(x, &requests[0]);
        x.batch.extend_from_slice(requests);
        1
    }

    fn batch_outcome(&self, x: &Exchange, number: u32, outcome: Outcome) -> Outcome {
        if !x.answered || x.failed.is_empty() {
            return outcome;
        }
        x.failed.iter().find(|(failed, _)| *failed == number).map_or(Outcome::Ok, |(_, own)| *own)
    }

    fn route(&mut self, x: &Exchange, _command: u32) -> u16 {
        x.node
    }

    fn encode(&mut self, x: &Exchange, command: u32, out: &mut Vec<u8>) {
        let id = self.next_id();
        let mut name = std::mem::take(&mut self.name);
        let mut writer = Writer {
            options: &self.options,
            content: self.content.as_ref(),
            name: &mut name,
            session: x.session.as_ref(),
            numbered: x.numbered,
            transaction: self.content.in_transaction(&x.request).then_some(x.request.step == 0),
        };
        match (self.compressor, self.codec.as_mut()) {
            (Some(by), Some(codec)) => {
                self.plain.clear();
                writer.put(x, command, id, &mut self.plain);
                codec.compress(by, &self.plain, out);
            }
            _ => writer.put(x, command, id, out),
        }
        self.name = name;
    }

    fn decode(&mut self, x: &mut Exchange, command: u32, input: &[u8]) -> Decoded {
        let (used, document) = match Self::open(&mut self.codec, &mut self.packed, input) {
            Ok(None) => return Decoded::Need,
            Ok(Some(found)) => found,
            Err(NotMessage) => return Decoded::Broken,
        };
        if x.request.verb == Verb::Topology {
            self.deployment.learn(x.node, document, Some(x.asked_ms), &self.options);
            return Decoded::Reply { used, then: Then::Finish(Outcome::Ok) };
        }
        match reply::take(self.content.as_ref(), x, command, document, &mut self.error) {
            Ok(Then::Finish(outcome)) => {
                x.answered = true;
                if outcome == Outcome::ReadOnly {
                    // A primary that has stepped down: somebody else takes writes now.
                    self.deployment.doubt(x.node, &self.options);
                }
                let may_retry =
                    !outcome.is_ok() && x.retryable && command == 0 && session::may_retry(document);
                let then = match (may_retry, x.retried, x.lost) {
                    (true, false, _) => {
                        x.forget();
                        Then::Again(outcome)
                    }
                    // The second try was not done; whether the first was, nobody knows.
                    (true, true, true) if x.numbered => Then::Finish(Outcome::Disconnected),
                    _ => Then::Finish(outcome),
                };
                Decoded::Reply { used, then }
            }
            Ok(then) => Decoded::Reply { used, then },
            Err(_) => Decoded::Broken,
        }
    }

    fn skip(&mut self, input: &[u8]) -> Decoded {
        match message::frame(input) {
            Ok(None) => Decoded::Need,
            Ok(Some(header)) => Decoded::Reply { used: header.bytes, then: Then::Wait },
            Err(NotMessage) => Decoded::Broken,
        }
    }

    fn records(&self, x: &Exchange) -> u32 {
        x.records
    }

    fn verified(&self, x: &Exchange) -> Option<Outcome> {
        x.verified
    }

    fn lost(&mut self, node: u16) {
        self.deployment.doubt(node, &self.options);
    }

    fn lost_command(&mut self, x: &mut Exchange, command: u32) -> bool {
        // A cursor's further batches are where it is, and nowhere else.
        if !x.retryable || x.retried || command > 0 {
            return false;
        }
        x.forget();
        x.lost = true;
        true
    }

    fn again(&mut self, x: &mut Exchange) -> Option<u16> {
        let to_primary = self.options.read_preference == ReadPreference::Primary || self.writes(&x.request);
        if to_primary && self.deployment.lacks_primary() {
            return None;
        }
        let (failed, request) = (x.node, x.request);
        let mut node = self.choose(&request);
        if node == failed && !self.deployment.is_set() {
            // Another router, where there is one.
            node = self.choose(&request);
        }
        x.node = node;
        (node != NOWHERE).then_some(node)
    }

    fn patience_ns(&self) -> u64 {
        self.options.selection.patience_ns()
    }

    fn wants_topology(&self) -> bool {
        self.deployment.is_unclear()
    }

    fn may_tell(&self, node: u16) -> bool {
        self.deployment.lacks_primary() || self.deployment.is_unsure(node)
    }

    fn heartbeat_ns(&self) -> Option<u64> {
        let watched = self.deployment.is_set() || self.deployment.is_routers();
        watched.then(|| self.options.selection.heartbeat_ns())
    }

    fn begin_topology(&mut self, x: &mut Exchange, request: &Request, node: u16, now_ns: u64) {
        self.begin(x, request);
        (x.node, x.asked_ms) = (node, (now_ns / 1_000_000) as i64);
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
