//! The MongoDB protocol of one load thread.
//!
//! An operation is one command (0) and, where its result does not fit one reply, further ones (1, 2 ...) that ask for
//! the rest on the same node. A batch of inserts is one command with many documents and an outcome for each.

use super::command::Writer;
use super::compress::{Codec, Compressor};
use super::greeting::{self, Credentials, Talk};
use super::message::{self, HEADER, NotMessage, code};
use super::options::{MongoOptions, ReadPreference};
use super::reply;
use super::session::{self, Session};
use dyno_types::bson;
use dyno_types::{Content, Decoded, Driver, Endpoint, Hello, Outcome, Refused, Request, Then, Verb};
use std::collections::HashMap;
use std::sync::Arc;

/// State of one operation in flight.
#[derive(Debug, Default)]
pub struct Exchange {
    pub(super) request: Request,
    /// The inserts of a batch; empty for a single operation.
    pub(super) batch: Vec<Request>,
    /// Where the operation goes, and the rest of its result comes from.
    node: u16,
    pub(super) cursor: i64,
    pub(super) records: u32,
    pub(super) verified: Option<Outcome>,
    /// Statements that failed, by number.
    pub(super) failed: Vec<(u32, Outcome)>,
    /// The reply has been read to its end.
    answered: bool,
    /// Kept from operation to operation, where the server expects one.
    session: Option<Session>,
    /// A retryable write, and whether it has been sent again.
    numbered: bool,
    retried: bool,
}

/// The nodes of a deployment, and which does what.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// All that can be spoken to.
    pub endpoints: Vec<Endpoint>,
    /// The node that takes writes; several routers (`mongos`) take turns where there is none.
    pub primary: Option<u16>,
}

impl Deployment {
    /// The node that a member's hello names as primary.
    fn named(&self, hello: &[u8]) -> Option<u16> {
        let primary = bson::find(hello, "primary")?.as_str()?;
        self.endpoints.iter().position(|endpoint| endpoint.to_string() == primary).map(|at| at as u16)
    }
}

/// The driver.
pub struct MongoDriver {
    options: Arc<MongoOptions>,
    credentials: Arc<Credentials>,
    content: Arc<dyn Content>,
    deployment: Deployment,
    talks: HashMap<u32, Talk>,
    id: i32,
    turn: u16,
    stale: bool,
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
            stale: false,
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

    /// The node for an operation.
    fn choose(&mut self, request: &Request) -> u16 {
        let nodes = self.deployment.endpoints.len() as u16;
        let writes = match request.verb {
            Verb::Document => self.content.shapes()[usize::from(request.shape)].action.writes(),
            verb => verb.writes(),
        };
        self.turn = (self.turn + 1) % nodes.max(1);
        match (self.deployment.primary, self.options.read_preference) {
            // Routers take turns.
            (None, _) => self.turn,
            (Some(primary), _) if writes || nodes == 1 => primary,
            (Some(primary), ReadPreference::Primary | ReadPreference::PrimaryPreferred) => primary,
            (Some(_), ReadPreference::Nearest) => self.turn,
            (Some(primary), ReadPreference::Secondary | ReadPreference::SecondaryPreferred) => {
                if self.turn == primary { (primary + 1) % nodes } else { self.turn }
            }
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
        // All of them: when the primary is lost, another member must be there to be asked who follows it.
        (0..self.deployment.endpoints.len() as u16).collect()
    }

    fn hello(&mut self, _node: u16, connection: u32, out: &mut Vec<u8>) -> bool {
        self.talks.insert(connection, Talk::Hello);
        let id = self.next_id();
        greeting::hello(&self.options, id, out);
        true
    }

    fn greeted(
        &mut self,
        _node: u16,
        connection: u32,
        _reply: u16,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Hello {
        let id = self.next_id();
        let talk = self.talks.entry(connection).or_insert(Talk::Hello);
        let (heard, agreed) = greeting::heard(&self.options, &self.credentials, talk, input, id, out);
        if let Some(agreed) = agreed {
            (self.compressor, self.sessions) = (agreed.compressor, agreed.sessions);
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
        x.numbered = self.options.retry_writes
            && self.sessions
            && session::is_retryable(self.content.as_ref(), request);
        if let (true, Some(session)) = (x.numbered, &mut x.session) {
            session.next_write();
        }
        x.retried = false;
        x.request = *request;
        x.batch.clear();
        x.failed.clear();
        (x.cursor, x.records, x.verified, x.answered) = (0, 0, None, false);
        x.node = self.choose(request);
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
            if let Some(primary) = self.deployment.named(document) {
                // A member that does not know of the change yet names the old one, which says no once more.
                self.deployment.primary = Some(primary);
                self.stale = false;
            }
            return Decoded::Reply { used, then: Then::Finish(Outcome::Ok) };
        }
        match reply::take(self.content.as_ref(), x, command, document, &mut self.error) {
            Ok(then) => {
                if let Then::Finish(outcome) = then {
                    x.answered = true;
                    // A primary that has stepped down: somebody else takes writes now.
                    self.stale |= outcome == Outcome::ReadOnly;
                    let again = x.numbered && !x.retried && x.session.is_some() && !outcome.is_ok();
                    if again && session::may_retry(document) {
                        // The same number: a server that has done it already only answers again.
                        (x.retried, x.answered, x.records) = (true, false, 0);
                        x.failed.clear();
                        x.node = self.choose(&x.request);
                        return Decoded::Reply { used, then: Then::Redirect { node: x.node, ask: false } };
                    }
                }
                Decoded::Reply { used, then }
            }
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
        self.stale |= self.deployment.primary == Some(node);
    }

    fn wants_topology(&self) -> bool {
        self.stale && self.deployment.primary.is_some() && self.deployment.endpoints.len() > 1
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
