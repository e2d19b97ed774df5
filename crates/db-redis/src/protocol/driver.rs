//! Requests into commands, replies into outcomes.
//!
//! Commands of one exchange: a read, an update and a topology question are one; an insert is the record (0) and its
//! index entry (1), sent together; a delete likewise; a scan asks the index (0) and then for record i (1 + i), with a
//! window of records under way.

use super::cluster::{ClusterTopology, key_slot};
use super::command_templates::compile;
use super::exchange::RedisExchange;
use super::index::{INDEX_KEY, put_score};
use super::options::{Index, ReadFrom, RecordLayout, RedisOptions};
use super::recorded::slot_of_user;
use super::resp::{NotResp, Token, put_bulk, put_command, read_token, skip_reply};
use super::state::RedisDriver;
use super::{documents, facts};
use dyno_db::command_traffic::Unreported;
use dyno_types::command::RecordedPlace;
use dyno_types::{
    ConnectionStep, Content, Decoded, Driver, Endpoint, GreetingStep, Outcome, ReceivedMessage, RefusalCode,
    Refused, Request, Then, Verb,
};
use std::collections::HashSet;
use std::sync::Arc;

/// Pause before a node is asked again whose answer named one that is not known yet, nanoseconds.
const LOOK_NS: u64 = 1_000_000;
/// Time that a name may take to be looked up, nanoseconds.
const NAME_NS: u64 = 10_000_000_000;

impl RedisDriver {
    /// A driver for one load thread. Refuses a workload that the layout cannot hold; `verbs` are those it will use.
    pub fn new(
        options: Arc<RedisOptions>,
        content: Arc<dyn Content>,
        mut topology: ClusterTopology,
        verbs: &[Verb],
    ) -> Result<Self, Refused> {
        if options.index == Index::None && verbs.contains(&Verb::Scan) {
            return Err(Refused::new(
                RefusalCode::Missing,
                "index",
                "scans need the index of keys: use index=zset (redis.index=zset), which layout=hash has by default",
            ));
        }
        let all = Request { verb: Verb::Insert, ..Request::default() };
        if options.layout == RecordLayout::String && verbs.contains(&Verb::Update) && content.fields(&all) > 1
        {
            return Err(Refused::new(
                RefusalCode::Conflict,
                "layout",
                "layout=string keeps a record as one value: updates need fieldcount=1, or use layout=hash",
            ));
        }
        documents::check(content.as_ref())?;
        topology.in_load();
        Ok(RedisDriver {
            options,
            commands: compile(content.as_ref()),
            traffic: Unreported::new(&content),
            content,
            topology,
            stale: false,
            error: String::new(),
            scratch: Vec::new(),
            batch_key: Vec::new(),
            index_slot: key_slot(INDEX_KEY),
            subscribed: HashSet::new(),
            stamp: None,
            messages: Vec::new(),
        })
    }

    /// The slot of the command's key.
    fn slot_of(&mut self, x: &RedisExchange, command: u32) -> u16 {
        if x.batched {
            return self.batched_slot(x, command);
        }
        if x.request.verb == Verb::Document {
            return self.document_slot(&x.request, command);
        }
        // The record's key, the index's, or a scanned record's.
        match (x.request.verb, command) {
            (Verb::Scan, 0) => self.index_slot,
            (Verb::Insert | Verb::Delete, 1) if self.indexes(x.request.verb) => self.index_slot,
            (Verb::Scan, n) => key_slot(x.scan_key(n - 1)),
            _ => {
                self.batch_key.clear();
                self.content.key(&x.request, &mut self.batch_key);
                key_slot(&self.batch_key)
            }
        }
    }

    /// Returns whether a request of this kind has a command about the index of keys: number 1.
    fn indexes(&self, verb: Verb) -> bool {
        self.options.index == Index::Zset && matches!(verb, Verb::Insert | Verb::Delete)
    }

    /// Returns whether a request of this kind ends with a command about the record's time to live. A string's is in its `SET`.
    fn expires(&self, verb: Verb) -> bool {
        self.options.ttl_ms.is_some()
            && self.options.layout == RecordLayout::Hash
            && matches!(verb, Verb::Insert | Verb::Update)
    }

    /// A command about one record, whose key is `key`.
    fn put_record(&mut self, x: &RedisExchange, command: u32, key: &[u8], out: &mut Vec<u8>) {
        match (x.request.verb, command) {
            (Verb::Read, _) => self.put_read(&x.request, key, out),
            (Verb::Scan, _) => self.put_scan(&x.request, key, out),
            (Verb::Insert | Verb::Update, 0) => self.put_write(&x.request, key, out),
            (Verb::Insert | Verb::Update, n) if n > u32::from(self.indexes(x.request.verb)) => {
                self.put_expiry(key, out);
            }
            (Verb::Delete, 0) => put_command(out, &[b"DEL", key]),
            (Verb::Delete, _) => put_command(out, &[b"ZREM", INDEX_KEY, key]),
            _ => {
                out.extend_from_slice(b"*4\r\n$4\r\nZADD\r\n");
                put_bulk(out, INDEX_KEY);
                put_score(out, key);
                put_bulk(out, key);
            }
        }
    }

    /// A record read or found by a scan: there or not, and verified where the content can. Returns the position after
    /// it.
    fn take_record(
        &mut self,
        x: &mut RedisExchange,
        command: u32,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let Some((head, next)) = read_token(input, 0)? else { return Ok(None) };
        let whole = match head {
            Token::Array(0) | Token::Map(0) | Token::Null => return Ok(Some((Outcome::NotFound, next))),
            Token::Error(text) => return Ok(Some((self.fail(text), next))),
            Token::Bulk(value) => {
                if self.content.verifies() && x.request.verb == Verb::Read {
                    let good = self.holds_all(&x.request, value);
                    x.verified = Some(if good { Outcome::Ok } else { Outcome::Mismatch });
                }
                return Ok(Some((Outcome::Ok, next)));
            }
            Token::Array(_) | Token::Map(_) => skip_reply(input, 0)?,
            _ => return Err(NotResp),
        };
        let Some(end) = whole else { return Ok(None) };
        let fields = self.content.fields(&x.request);
        let verify = self.content.verifies() && x.request.verb == Verb::Read;
        let watched = x.request.verb == Verb::Scan && self.content.watches_scans();
        debug_assert!(!watched || command > 0, "a scan's first reply has keys, not a record");
        if fields == 0 && !verify && !watched {
            return Ok(Some((Outcome::Ok, end)));
        }
        let mut at = next;
        let (mut found, mut number, mut good) = (false, 0, true);
        while at < end {
            if fields == 0 || verify || watched {
                self.scratch.clear();
            }
            if fields == 0 {
                if let Some((Token::Bulk(name), next)) = read_token(input, at)? {
                    self.scratch.extend_from_slice(name);
                    at = next;
                }
            } else if verify || watched {
                self.content.name(&x.request, number, &mut self.scratch);
            }
            let Some((value, next)) = read_token(input, at)? else { return Err(NotResp) };
            if let Token::Bulk(value) = value {
                found = true;
                good &= !verify || self.content.verify(&x.request, &self.scratch, value);
                if watched {
                    self.content.scanned(command - 1, &self.scratch, value);
                }
            } else {
                good &= !verify;
            }
            number += 1;
            at = next;
        }
        if verify && found {
            x.verified = Some(if good { Outcome::Ok } else { Outcome::Mismatch });
        }
        Ok(Some((if found { Outcome::Ok } else { Outcome::NotFound }, end)))
    }

    /// Returns whether a string holds the values of all fields of a record, end to end.
    fn holds_all(&mut self, request: &Request, mut value: &[u8]) -> bool {
        let whole = Request { verb: Verb::Insert, ..*request };
        let mut good = true;
        for field in 0..self.content.fields(&whole) {
            let length = self.content.value_len(&whole, field).min(value.len());
            let (own, rest) = value.split_at(length);
            self.scratch.clear();
            self.content.name(&whole, field, &mut self.scratch);
            good &= self.content.verify(request, &self.scratch, own);
            value = rest;
        }
        good && value.is_empty()
    }

    /// The index's reply to a scan: keeps the keys and says which records to ask for first.
    fn take_keys(&mut self, x: &mut RedisExchange, input: &[u8]) -> Result<Option<(Then, usize)>, NotResp> {
        let Some(end) = skip_reply(input, 0)? else { return Ok(None) };
        let (count, mut at) = match read_token(input, 0)? {
            Some((Token::Array(n), next)) => (n, next),
            Some((Token::Error(text), _)) => return Ok(Some((Then::Finish(self.fail(text)), end))),
            _ => return Err(NotResp),
        };
        x.more.keys.clear();
        x.more.ends.clear();
        for _ in 0..count {
            let Some((Token::Bulk(key), next)) = read_token(input, at)? else { return Err(NotResp) };
            x.more.keys.extend_from_slice(key);
            x.more.ends.push(x.more.keys.len() as u32);
            at = next;
        }
        debug_assert_eq!(x.more.ends.len(), count, "each key has its end");
        debug_assert_eq!(x.more.ends.last().map_or(0, |end| *end as usize), x.more.keys.len());
        let first = (count as u32).min(self.options.scan_window);
        x.more.asked = first;
        x.waiting = first;
        let then = if first == 0 { Then::Finish(Outcome::Ok) } else { Then::Send { first: 1, count: first } };
        Ok(Some((then, end)))
    }

    /// A simple acknowledgement: `+OK` or a number.
    fn take_ack(&mut self, x: &mut RedisExchange, input: &[u8]) -> Result<Option<(Outcome, usize)>, NotResp> {
        const OK: &[u8] = b"+OK\r\n";
        if input.starts_with(OK) {
            return Ok(Some((Outcome::Ok, OK.len())));
        }
        let Some((found, next)) = read_token(input, 0)? else { return Ok(None) };
        Ok(Some(match found {
            Token::Simple(_) => (Outcome::Ok, next),
            Token::Int(n) => {
                x.removed |= n > 0;
                (Outcome::Ok, next)
            }
            Token::Error(text) => (self.fail(text), next),
            _ => return Err(NotResp),
        }))
    }

    /// One of several replies has come: folds its outcome and says what follows.
    fn fold(&mut self, x: &mut RedisExchange, command: u32, outcome: Outcome) -> Then {
        let scanned = x.request.verb == Verb::Scan && command > 0;
        if x.batched && !outcome.is_ok() {
            x.more.batch.note_failure(command, outcome);
        }
        match outcome {
            Outcome::Ok => x.records += u32::from(scanned || x.request.verb == Verb::Read),
            // A record removed since the index was read is no failure of the scan.
            Outcome::NotFound if scanned => {}
            failed if x.outcome.is_ok() => x.outcome = failed,
            _ => {}
        }
        debug_assert!(x.waiting > 0, "no more replies than commands");
        x.waiting -= 1;
        debug_assert!(!scanned || x.more.asked as usize <= x.more.ends.len(), "no more records than keys");
        if scanned && x.more.asked < x.more.ends.len() as u32 {
            x.more.asked += 1;
            x.waiting += 1;
            return Then::Send { first: x.more.asked, count: 1 };
        }
        if x.waiting > 0 {
            return Then::Wait;
        }
        if x.request.verb == Verb::Delete && x.outcome.is_ok() && !x.removed {
            x.outcome = Outcome::NotFound;
        }
        Then::Finish(x.outcome)
    }

    fn redirect(&mut self, text: &[u8]) -> Option<Then> {
        let text = std::str::from_utf8(text).ok()?;
        let (rest, moved) = match text.split_once(' ')? {
            ("MOVED", rest) => (rest, true),
            ("ASK", rest) => (rest, false),
            _ => return None,
        };
        let Some(node) = self.topology.follow_redirect(rest, 0, moved) else {
            // The next answer names the same node, and by then its address is known.
            let again = Then::Again { outcome: Outcome::Unreachable, pause_ns: LOOK_NS };
            return self.topology.awaits_name().then_some(again);
        };
        // One moved slot usually means that others moved with it.
        self.stale |= moved;
        Some(Then::Redirect { node, ask: !moved })
    }

    #[inline(always)]
    fn reply(&mut self, x: &mut RedisExchange, command: u32, input: &[u8]) -> Result<Decoded, NotResp> {
        if x.request.verb == Verb::Command && self.is_subscription(x) {
            match input.first() {
                // It is sent again.
                Some(b'-') => drop(self.subscribed.remove(&x.request.collection)),
                _ => return self.take_message(x, input),
            }
        }
        match input.first() {
            None => return Ok(Decoded::Need),
            Some(b'>') => {
                return Ok(skip_reply(input, 0)?.map_or(Decoded::Need, |used| Decoded::Push { used }));
            }
            Some(b'-') => {
                if let Some((Token::Error(text), used)) = read_token(input, 0)? {
                    let is_command = x.request.verb == Verb::Command;
                    if is_command && self.has_lost_script(x, command, text) {
                        x.sends_script = true;
                        return Ok(Decoded::Reply { used, then: Then::Send { first: command, count: 1 } });
                    }
                    // A transaction that has lost a command to another node is refused as a whole.
                    let stays = match x.request.verb {
                        Verb::Command => self.is_in_transaction(&x.request),
                        Verb::Recorded => self.content.recorded_stays(&x.request),
                        _ => false,
                    };
                    self.stale |= stays && text.starts_with(b"MOVED");
                    if !stays && let Some(then) = self.redirect(text) {
                        return Ok(Decoded::Reply { used, then });
                    }
                }
            }
            _ => {}
        }
        let found = match (x.request.verb, command) {
            (Verb::Topology, _) => {
                let Some(used) = skip_reply(input, 0)? else { return Ok(Decoded::Need) };
                let taken = self.topology.take_slots(&input[..used], 0)?;
                // Who serves the slots of a name that is not known yet is asked once more.
                self.stale = self.topology.awaits_name();
                let then = Then::Finish(if taken { Outcome::Ok } else { Outcome::ServerError });
                return Ok(Decoded::Reply { used, then });
            }
            (Verb::Scan, 0) => {
                return Ok(self
                    .take_keys(x, input)?
                    .map_or(Decoded::Need, |(then, used)| Decoded::Reply { used, then }));
            }
            (Verb::Document, _) => self.take_document(x, input)?,
            (Verb::Command, _) => self.take_own(x, command, input)?,
            (Verb::Recorded, _) => self.take_recorded(x, input)?,
            (Verb::Read | Verb::Scan, _) => self.take_record(x, command, input)?,
            _ => self.take_ack(x, input)?,
        };
        Ok(match found {
            None => Decoded::Need,
            Some((outcome, used)) => Decoded::Reply { used, then: self.fold(x, command, outcome) },
        })
    }
}

impl Driver for RedisDriver {
    type Exchange = RedisExchange;

    fn endpoints(&self) -> &[Endpoint] {
        self.topology.known_endpoints()
    }

    fn wanted(&self) -> Vec<u16> {
        self.topology.serving_nodes(self.options.reads != ReadFrom::Primary)
    }

    fn hello(&mut self, _node: u16, _connection: u32, out: &mut Vec<u8>) -> bool {
        facts::greeting(&self.options, out);
        true
    }

    fn greeted(
        &mut self,
        _node: u16,
        _connection: u32,
        reply: u16,
        input: &[u8],
        _out: &mut Vec<u8>,
    ) -> GreetingStep {
        facts::greeting_reply(&self.options, reply, input)
    }

    fn begin(&mut self, x: &mut RedisExchange, request: &Request) -> u32 {
        x.request = *request;
        x.outcome = Outcome::Ok;
        x.verified = None;
        x.records = 0;
        x.removed = false;
        x.elements = (0, 0);
        x.batched = false;
        match request.verb {
            Verb::Topology => {}
            Verb::Document => {
                x.waiting = self.document_commands(request);
                return x.waiting;
            }
            Verb::Command => {
                x.sends_script = false;
                x.waiting = self.begin_own(x);
                return x.waiting;
            }
            Verb::Recorded => {
                x.waiting = self.begin_recorded(x);
                return x.waiting;
            }
            _ => {}
        }
        x.waiting = 1 + u32::from(self.indexes(request.verb)) + u32::from(self.expires(request.verb));
        x.waiting
    }

    fn batches(&self) -> bool {
        true
    }

    fn begin_batch(&mut self, x: &mut RedisExchange, requests: &[Request]) -> u32 {
        self.begin(x, &requests[0]);
        x.batched = true;
        let (verb, records) = (requests[0].verb, requests.len() as u32);
        x.more.batch.begin(requests, self.indexes(verb));
        // Each record by itself (and its time to live), the index (where there is one) for all.
        x.waiting = records * (1 + u32::from(self.expires(verb))) + u32::from(self.indexes(verb));
        x.waiting
    }

    fn batch_outcome(&self, x: &RedisExchange, number: u32, outcome: Outcome) -> Outcome {
        // Answered to the end: each has its own. Cut short: it is unknown which were done.
        if x.waiting == 0 { x.more.batch.request_outcome(number) } else { outcome }
    }

    #[inline]
    fn route(&mut self, x: &RedisExchange, command: u32) -> u16 {
        let any = self.options.reads == ReadFrom::Any;
        let primary = self.options.reads == ReadFrom::Primary || self.content.writes(&x.request);
        if !self.topology.is_cluster() {
            return if primary { 0 } else { self.topology.reader_of(0, any) };
        }
        if x.request.verb == Verb::Topology {
            return self.topology.next_node();
        }
        let slot = match x.request.verb {
            Verb::Command => match self.own_slot(x, command) {
                Some(slot) => slot,
                // All nodes know all messages, and a subscription stays where it is.
                None if self.is_subscription(x) => 0,
                None => return self.topology.next_node(),
            },
            Verb::Recorded => match self.content.recorded_place(&x.request, command) {
                RecordedPlace::Slot(slot) => slot,
                RecordedPlace::AnyNode => slot_of_user(x.request.collection),
                RecordedPlace::EveryNode => {
                    let nodes = self.topology.serving_nodes(false);
                    return nodes.get(command as usize).copied().unwrap_or(0);
                }
            },
            _ => self.slot_of(x, command),
        };
        if primary { self.topology.primary_of(slot) } else { self.topology.reader_of(slot, any) }
    }

    fn encode(&mut self, x: &mut RedisExchange, command: u32, out: &mut Vec<u8>) {
        match (x.request.verb, command) {
            _ if x.batched => self.put_batched(x, command, out),
            (Verb::Scan, n) if n > 0 => self.put_read(&x.request, x.scan_key(n - 1), out),
            (Verb::Document, _) => self.put_document(&x.request, command, out),
            (Verb::Command, _) => self.put_own(x, command, out),
            (Verb::Recorded, _) => self.content.recorded_command(&x.request, command, out),
            (Verb::Topology, _) => put_command(out, &[b"CLUSTER", b"SLOTS"]),
            _ => {
                // Rendered where it is needed: kept in every operation it would cost a cache line.
                let mut key = std::mem::take(&mut self.batch_key);
                key.clear();
                self.content.key(&x.request, &mut key);
                self.put_record(x, command, &key, out);
                self.batch_key = key;
            }
        }
    }

    fn asking(&mut self, out: &mut Vec<u8>) {
        put_command(out, &[b"ASKING"]);
    }

    #[inline]
    fn decode(&mut self, x: &mut RedisExchange, command: u32, input: &[u8]) -> Decoded {
        self.reply(x, command, input).unwrap_or(Decoded::Broken)
    }

    fn skip(&mut self, input: &[u8]) -> Decoded {
        match skip_reply(input, 0) {
            Ok(None) => Decoded::Need,
            Ok(Some(used)) if !self.subscribed.is_empty() && self.count_unawaited(input) => {
                Decoded::Push { used }
            }
            Ok(Some(used)) if input[0] == b'>' => Decoded::Push { used },
            Ok(Some(used)) => Decoded::Reply { used, then: Then::Wait },
            Err(NotResp) => Decoded::Broken,
        }
    }

    fn records(&self, x: &RedisExchange) -> u32 {
        x.records
    }

    fn elements(&self, x: &RedisExchange) -> (u32, u32) {
        x.elements
    }

    fn take_messages(&mut self, each: &mut dyn FnMut(ReceivedMessage)) {
        self.messages.drain(..).for_each(each);
    }

    fn verified(&self, x: &RedisExchange) -> Option<Outcome> {
        x.verified
    }

    fn lost(&mut self, _node: u16, _connection: u32, _step: ConnectionStep) {
        self.stale |= self.topology.is_cluster();
        // Whose connection it was is not known; to subscribe twice does no harm.
        self.subscribed.clear();
    }

    fn timed_out(&mut self, _node: u16) {
        self.stale |= self.topology.is_cluster();
    }

    fn again(&mut self, _: &mut RedisExchange) -> Option<u16> {
        (!self.topology.awaits_name()).then(|| self.topology.next_node())
    }

    fn patience_ns(&self) -> u64 {
        NAME_NS
    }

    fn wants_topology(&self) -> bool {
        self.stale && !self.topology.awaits_name()
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}
