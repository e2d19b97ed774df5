//! The MongoDB protocol of one load thread.
//!
//! An operation is one command (0) and, where its result does not fit one reply or its statements do not fit one message,
//! further ones (1, 2 ...) on the same node. A batch of inserts is one operation with an outcome for each.

use super::command::CommandWriter;
use super::compress::{Codec, Compressor};
use super::deployment::Deployment;
use super::description::{Limits, ServerType};
use super::errors::{StateChange, is_ok};
use super::exchange::MongoExchange;
use super::greeting::{self, Credentials, Talk};
use super::message::{self, HEADER, Header, NotMessage, code};
use super::options::MongoOptions;
use super::reply;
use super::retry::{RetryAdvice, Retryable};
use super::selection::ReadPreference;
use super::session::{self, LogicalSession};
use super::topology::{ApplicationError, Handshake, TopologyType};
use dyno_types::bson;
use dyno_types::document::Action;
use dyno_types::driver::NOWHERE;
use dyno_types::{
    ConnectionStep, Content, Decoded, Driver, Endpoint, GreetingStep, Outcome, Refused, Request, Then, Verb,
    rng,
};
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
    /// Generation of each connection's server when the connection was greeted.
    generations: Vec<u32>,
    /// Limits of the servers.
    limits: Limits,
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
            generations: Vec::new(),
            limits: Limits::default(),
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

    /// Appends hello for a new connection.
    fn begin_talk(&mut self, node: u16, connection: u32, talk: Talk, out: &mut Vec<u8>) -> bool {
        self.talks.insert(connection, talk);
        let at = connection as usize;
        self.generations.resize(self.generations.len().max(at + 1), 0);
        self.generations[at] = self.deployment.generation(node);
        let id = self.next_id();
        greeting::hello(&self.options, id, out);
        true
    }

    /// The node for an operation.
    fn choose(&mut self, writes: bool) -> u16 {
        self.turn = self.turn.wrapping_add(1);
        let mode = self.options.read_preference;
        let node = self.deployment.select(self.turn, writes, mode);
        if node == NOWHERE {
            self.error.clear();
            if self.deployment.topology().topology_type() == TopologyType::Sharded {
                self.error.push_str("none of the servers named is a router (mongos) any more");
            } else if mode == ReadPreference::Primary || writes {
                self.error.push_str("no primary of the replica set is known");
            } else {
                let mode = mode.name();
                let _ = write!(
                    self.error,
                    "no member of the replica set may be read from (readPreference={mode})"
                );
            }
        }
        node
    }

    /// Returns whether statements behind one that failed are not carried out.
    fn is_ordered(&self, x: &MongoExchange) -> bool {
        if !x.batch.is_empty() {
            return false;
        }
        match x.request.verb {
            Verb::Document => match self.content.shapes()[usize::from(x.request.shape)].action {
                Action::Insert { ordered }
                | Action::Update { ordered, .. }
                | Action::Delete { ordered, .. } => ordered,
                _ => true,
            },
            _ => true,
        }
    }

    /// Number of statements of a request that go out in sequences.
    fn statements(&self, request: &Request) -> u32 {
        match request.verb {
            Verb::Insert | Verb::Update | Verb::Delete => 1,
            Verb::Document => match self.content.shapes()[usize::from(request.shape)].action {
                Action::Insert { .. } | Action::Update { .. } | Action::Delete { .. } => {
                    self.content.documents(request)
                }
                _ => 0,
            },
            Verb::Read | Verb::Scan | Verb::Command | Verb::Recorded | Verb::Topology => 0,
        }
    }

    /// A command has failed by this reply: whether it is sent once more, else the outcome of its operation.
    fn failed(&mut self, x: &mut MongoExchange, command: u32, outcome: Outcome, reply: &[u8]) -> Then {
        if StateChange::from_reply(reply).is_some() && self.deployment.is_single_member() {
            let hint = " (the members of its replica set are followed with replicaSet=NAME and without directConnection)";
            self.error.push_str(hint);
        }
        let kind = if x.writes { Retryable::Write } else { Retryable::Read };
        // What it was when it answered: it may be unknown by now.
        let advice = RetryAdvice::from_reply(reply, kind, self.deployment.spoke(x.node));
        let generation = self.deployment.generation(x.node);
        self.deployment.failed(x.node, generation, ApplicationError::Reply(reply), &self.options);
        let is_first = command == 0 || x.statements > 0;
        if (x.retryable && is_first && advice.passes) || (x.sheddable && advice.sheds_load) {
            x.tries.pinned = !is_first || x.in_transaction;
            if !advice.nothing_written {
                x.tries.wrote = Some(outcome);
            }
            if self.may_try_again(x, advice.overloaded) {
                x.forget_reply();
                let jitter = rng::unit_interval(rng::mix_bits(x.request.seed ^ u64::from(x.tries.failed)));
                return Then::Again { outcome, pause_ns: advice.pause_ns(x.tries.failed, jitter) };
            }
            if x.tries.lost && x.numbered {
                // The last try was not done; the lost one may have been.
                return Then::Finish(Outcome::Disconnected);
            }
        }
        match x.tries.wrote {
            Some(earlier) if advice.nothing_written => Then::Finish(earlier),
            _ => Then::Finish(outcome),
        }
    }

    /// A try has failed: returns whether there is another one, for which servers that failed come last.
    fn may_try_again(&mut self, x: &mut MongoExchange, overloaded: bool) -> bool {
        x.tries.failed += 1;
        x.tries.overloaded |= overloaded;
        let most = if x.tries.overloaded { self.options.max_adaptive_retries } else { 1 };
        let sharded = self.deployment.topology().topology_type() == TopologyType::Sharded;
        if sharded || (overloaded && self.options.overload_retargeting) {
            x.tries.deprioritized.push(x.node);
        }
        x.tries.failed <= most
    }

    /// A command of a write has been carried out with this outcome: the next statements follow, or the operation ends. With
    /// `in_doubt` those without an error of their own have it too: they did not reach the members asked for.
    fn next_part(&mut self, x: &mut MongoExchange, command: u32, outcome: Outcome, in_doubt: bool) -> Then {
        let first = x.part.0;
        let stops = x.failed.last().is_some_and(|(number, _)| *number >= first) && self.is_ordered(x);
        if in_doubt {
            let own: Vec<u32> = x.failed.iter().map(|(number, _)| *number).filter(|n| *n >= first).collect();
            let others = (first..x.part.1).filter(|number| !own.contains(number));
            x.failed.extend(others.map(|number| (number, outcome)));
        }
        debug_assert!(x.settled <= x.part.1, "what has its result keeps it");
        x.settled = x.part.1;
        x.found |= outcome.is_ok();
        if x.failed.last().is_some_and(|(number, _)| *number >= first) {
            x.first_failure.get_or_insert(outcome);
        }
        if x.part.1 >= x.statements || stops {
            // Statements that found nothing are a failure only where none has found anything.
            let otherwise = if x.found { Outcome::Ok } else { outcome };
            return Then::Finish(x.first_failure.unwrap_or(otherwise));
        }
        x.part.0 = x.part.1;
        x.next_command();
        if let (true, Some(session)) = (x.numbered, &mut x.session) {
            session.next_write();
        }
        Then::Send { first: command + 1, count: 1 }
    }

    /// The reply at the start of `input`, unpacked: bytes used and document.
    fn open<'i>(
        codec: &mut Option<Box<Codec>>,
        packed: &'i mut Vec<u8>,
        input: &'i [u8],
    ) -> Result<Option<(Header, &'i [u8])>, NotMessage> {
        let Some(header) = message::read_header(input)? else { return Ok(None) };
        let body = &input[HEADER..header.bytes];
        if header.code != code::COMPRESSED {
            return Ok(Some((header, message::read_document(header.code, body)?)));
        }
        let codec = codec.as_mut().ok_or(NotMessage)?;
        let inner = codec.expand_body(header, body, packed)?;
        Ok(Some((header, message::read_document(inner, packed)?)))
    }
}

impl Driver for MongoDriver {
    type Exchange = MongoExchange;

    fn endpoints(&self) -> &[Endpoint] {
        &self.deployment.endpoints
    }

    fn wanted(&self) -> Vec<u16> {
        self.deployment.known()
    }

    fn hello(&mut self, node: u16, connection: u32, out: &mut Vec<u8>) -> bool {
        self.begin_talk(node, connection, Talk::Hello, out)
    }

    fn hello_for_checks(&mut self, node: u16, connection: u32, out: &mut Vec<u8>) -> bool {
        self.begin_talk(node, connection, Talk::HelloAlone, out)
    }

    fn greeted(
        &mut self,
        node: u16,
        connection: u32,
        _reply: u16,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> GreetingStep {
        let id = self.next_id();
        let talk = self.talks.entry(connection).or_insert(Talk::Hello);
        let (heard, agreed) = greeting::heard(&self.options, &self.credentials, talk, input, id, out);
        if let (Some(agreed), Ok(Some((_, hello)))) = (agreed, greeting::split(input)) {
            self.deployment.learn_hello(node, hello, None, &self.options);
            // An arbiter has no sessions.
            if self.deployment.description(node).is_some_and(|server| server.kind.bears_data()) {
                self.limits = Limits::from_hello(hello);
                (self.compressor, self.sessions) = (agreed.compressor, agreed.sessions);
            }
        }
        if let (GreetingStep::Refused(..), Ok(Some((_, reply)))) = (&heard, greeting::split(input)) {
            let generation = self.generations.get(connection as usize).copied().unwrap_or(0);
            let error = ApplicationError::HandshakeReply(reply);
            self.deployment.failed(node, generation, error, &self.options);
        }
        if !matches!(heard, GreetingStep::Need | GreetingStep::Reply { more: true, .. }) {
            self.talks.remove(&connection);
        }
        heard
    }

    fn begin(&mut self, x: &mut MongoExchange, request: &Request) -> u32 {
        // An operation that was given up may go on at the server: its session is not used again.
        if !x.answered || !self.sessions {
            x.session = None;
        }
        if self.sessions && x.session.is_none() {
            x.session = LogicalSession::begin();
        }
        let in_transaction = self.content.in_transaction(request);
        (x.in_transaction, x.writes) = (in_transaction, in_transaction || self.content.writes(request));
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
        x.retryable = reads || (x.numbered && x.session.is_some());
        // What was recorded is sent once: a reply is compared as it comes.
        let is_recorded = request.verb == Verb::Recorded;
        x.sheddable =
            !is_recorded && if x.writes { self.options.retry_writes } else { self.options.retry_reads };
        x.request = *request;
        x.batch.clear();
        x.failed.clear();
        (x.cursor, x.records, x.verified, x.answered) = (0, 0, None, false);
        x.next_command();
        (x.statements, x.part, x.settled) = (self.statements(request), (0, 0), 0);
        (x.first_failure, x.found) = (None, false);
        if !in_transaction || request.step == 0 {
            x.node = self.choose(x.writes);
        }
        1
    }

    fn batches(&self) -> bool {
        true
    }

    fn begin_batch(&mut self, x: &mut MongoExchange, requests: &[Request]) -> u32 {
        self.begin(x, &requests[0]);
        x.batch.extend_from_slice(requests);
        x.statements = requests.len() as u32;
        1
    }

    fn batch_outcome(&self, x: &MongoExchange, number: u32, outcome: Outcome) -> Outcome {
        if number >= x.settled {
            return outcome;
        }
        x.failed.iter().find(|(failed, _)| *failed == number).map_or(Outcome::Ok, |(_, own)| *own)
    }

    fn route(&mut self, x: &MongoExchange, _command: u32) -> u16 {
        x.node
    }

    fn encode(&mut self, x: &mut MongoExchange, _command: u32, out: &mut Vec<u8>) {
        let id = self.next_id();
        x.id = id;
        let mut name = std::mem::take(&mut self.name);
        let knows_hello = self.options.server_api.is_some()
            || self.deployment.description(x.node).is_some_and(|server| server.knows_hello);
        let mut writer = CommandWriter {
            options: &self.options,
            content: self.content.as_ref(),
            name: &mut name,
            session: x.session,
            limits: self.limits,
            knows_hello,
            numbered: x.numbered,
            transaction: x.in_transaction.then_some(x.request.step == 0),
            single: self.deployment.topology().topology_type() == TopologyType::Single
                && self.deployment.description(x.node).is_some_and(|server| {
                    !matches!(server.kind, ServerType::Mongos | ServerType::Standalone | ServerType::Unknown)
                }),
        };
        match (self.compressor, self.codec.as_mut()) {
            // Hello is never compressed.
            (Some(by), Some(codec)) if x.request.verb != Verb::Topology => {
                self.plain.clear();
                writer.append_command(x, id, &mut self.plain);
                codec.compress_message(by, &self.plain, out);
            }
            _ => writer.append_command(x, id, out),
        }
        self.name = name;
    }

    fn decode(&mut self, x: &mut MongoExchange, command: u32, input: &[u8]) -> Decoded {
        let (header, document) = match Self::open(&mut self.codec, &mut self.packed, input) {
            Ok(None) => return Decoded::Need,
            // 0: it does not say what it answers.
            Ok(Some((header, _))) if ![0, x.id].contains(&header.to) => return Decoded::Unexpected,
            Ok(Some(found)) => found,
            Err(NotMessage) => return Decoded::Broken,
        };
        let used = header.bytes;
        if x.request.verb == Verb::Topology {
            self.deployment.learn_hello(x.node, document, Some(x.asked_ms), &self.options);
            return Decoded::Reply { used, then: Then::Finish(Outcome::Ok) };
        }
        if x.request.verb == Verb::Recorded {
            let taken = reply::take_recorded(self.content.as_ref(), x, document, &mut self.error);
            let Ok(outcome) = taken else { return Decoded::Broken };
            if !reply::is_done(document) {
                // Also where it was so then: what the error says of the server is heard.
                let reply = document.to_vec();
                self.failed(x, command, outcome, &reply);
            }
            return Decoded::Reply { used, then: Then::Finish(outcome) };
        }
        let then = match reply::take(self.content.as_ref(), x, command, document, &mut self.error) {
            Ok(Then::Finish(outcome)) => {
                x.answered = true;
                if !outcome.is_ok() && !reply::is_done(document) {
                    // The reply borrows the buffer that a compressed one was expanded into.
                    let reply = document.to_vec();
                    let carried_out = x.statements > 0 && is_ok(bson::find_element(&reply, "ok"));
                    match self.failed(x, command, outcome, &reply) {
                        Then::Finish(outcome) if carried_out => self.next_part(x, command, outcome, true),
                        then => then,
                    }
                } else if x.statements > 0 {
                    self.next_part(x, command, outcome, false)
                } else {
                    Then::Finish(outcome)
                }
            }
            Ok(then) => then,
            Err(_) => return Decoded::Broken,
        };
        Decoded::Reply { used, then }
    }

    fn skip(&mut self, input: &[u8]) -> Decoded {
        match message::read_header(input) {
            Ok(None) => Decoded::Need,
            Ok(Some(header)) => Decoded::Reply { used: header.bytes, then: Then::Wait },
            Err(NotMessage) => Decoded::Broken,
        }
    }

    fn records(&self, x: &MongoExchange) -> u32 {
        x.records
    }

    fn verified(&self, x: &MongoExchange) -> Option<Outcome> {
        x.verified
    }

    fn lost(&mut self, node: u16, connection: u32, step: ConnectionStep) {
        let generation = self.generations.get(connection as usize).copied().unwrap_or(0);
        let step = match step {
            ConnectionStep::Opening => Handshake::Hello,
            ConnectionStep::Login => Handshake::Login,
            ConnectionStep::Ready => Handshake::Complete,
            ConnectionStep::Check => {
                let message = "the connection on which it is checked was lost or refused";
                return self.deployment.check_failed(node, message, &self.options);
            }
        };
        self.deployment.failed(node, generation, ApplicationError::Network(step), &self.options);
    }

    fn timed_out(&mut self, node: u16) {
        self.deployment.timed_out(node, &self.options);
    }

    fn lost_command(&mut self, x: &mut MongoExchange, command: u32, sent: bool) -> bool {
        // A cursor's further batches are where it is, and nowhere else.
        if !x.retryable || (command > 0 && x.statements == 0) || !self.may_try_again(x, false) {
            return false;
        }
        x.forget_reply();
        if sent {
            x.tries.lost = true;
            x.tries.wrote = Some(Outcome::Disconnected);
        }
        true
    }

    fn again(&mut self, x: &mut MongoExchange) -> Option<u16> {
        if x.tries.pinned {
            return Some(x.node);
        }
        self.turn = self.turn.wrapping_add(1);
        let failed = &x.tries.deprioritized;
        let node = self.deployment.select_again(self.turn, x.writes, &self.options, failed)?;
        x.node = node;
        Some(node)
    }

    fn patience_ns(&self) -> u64 {
        self.options.selection.patience_ns()
    }

    fn heartbeat_ns(&self) -> Option<u64> {
        self.deployment.is_monitored().then(|| self.options.selection.heartbeat_ns())
    }

    fn is_checked(&self, node: u16) -> bool {
        self.deployment.is_checked(node)
    }

    fn is_checked_soon(&self, node: u16) -> bool {
        self.deployment.is_checked_soon(node)
    }

    fn check_timeout_ns(&self, node: u16) -> u64 {
        self.deployment.check_timeout_ns(node, &self.options)
    }

    fn checked(&mut self, node: u16, round_trip_ns: u64) {
        self.deployment.note_round_trip(node, round_trip_ns / 1_000, &self.options);
    }

    fn check_failed(&mut self, node: u16) {
        self.deployment.check_failed(node, "hello was not answered in time", &self.options);
    }

    fn begin_topology(&mut self, x: &mut MongoExchange, request: &Request, node: u16, now_ns: u64) {
        // The session is left for the operations that come after it.
        (x.request, x.statements, x.cursor, x.in_transaction) = (*request, 0, 0, false);
        (x.node, x.asked_ms, x.answered) = (node, (now_ns / 1_000_000) as i64, true);
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
