//! Requests into commands, replies into outcomes.
//!
//! Commands of one exchange: an insert, a read, a removal and an update of all fields are one. An update of some fields is two
//! round trips: the value with its version (command 0), then the changed value on condition of that version (1). Where another
//! client was faster, both follow again (2 and 3, 4 and 5 ...), at most [`TRIES`] times. A batch is one insert for each record.

use super::command::{SentKey, WriteCondition};
use super::errors::{classify_error, loses_step};
use super::facts;
use super::ketama::Servers;
use super::options::{Layout, MemcachedOptions, Protocol, Update};
use super::own::{self, OwnTemplate};
use super::reply::{NotMemcached, Reply, read_reply};
use super::traffic::{CommandGroup, ReplyReader, ReplyShape};
use super::{meta, records, text};
use dyno_db::command_traffic::Unreported;
use dyno_types::driver::UNSENDABLE;
use dyno_types::{
    Content, Decoded, Driver, Endpoint, GreetingStep, Outcome, RefusalCode, Refused, Request, Then, Verb,
};
use std::sync::Arc;

/// Number of times that an update of some fields is tried before it ends as [`Outcome::Busy`]. With 8 users on 2,000 records
/// (YCSB's zipfian choice, half of it updates) 4 tries fail for 2 of 10,000 updates and 8 for none. With 128 updates under way by
/// pipelining 5 % fail, and 16 tries help little: those that read the same version move in step.
const TRIES: u32 = 8;

/// State of one operation in flight.
#[derive(Debug, Default)]
pub struct Exchange {
    pub(super) request: Request,
    pub(super) place: KeySpan,
    /// Replies still awaited.
    pub(super) waiting: u32,
    outcome: Outcome,
    verified: Option<Outcome>,
    pub(super) records: u32,
    /// Of a recorded command: its group, and the number of its keys.
    pub(super) recorded: (CommandGroup, u16),
    pub(super) batched: bool,
    /// True if an update reads the record first.
    merges: bool,
    /// The version of the value that an update has read.
    version: u64,
    /// The record's key; of a batch the keys of all, end to end. Of commands of one's own all of their bytes.
    pub(super) keys: Vec<u8>,
    /// Apart, so that what all operations touch fills few cache lines.
    pub(super) more: Box<UpdateState>,
}

/// Where a record is, and where its key ends among the keys of the exchange; or a command of one's own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KeySpan {
    pub(super) server: u16,
    pub(super) encoded: bool,
    pub(super) begin: u32,
    pub(super) end: u32,
}

/// State that only batches, updates of some fields and commands of one's own need.
#[derive(Debug, Default)]
pub(super) struct UpdateState {
    /// The changed value of an update.
    merged: Vec<u8>,
    pub(super) batch: Vec<(Request, KeySpan, Outcome)>,
    /// Replies that later steps use, by their numbers.
    pub(super) replies: Vec<Vec<u8>>,
}

impl Exchange {
    /// The request and the place of a command.
    pub(super) fn part(&self, command: u32) -> (&Request, KeySpan) {
        if self.batched {
            let (request, place, _) = &self.more.batch[command as usize];
            return (request, *place);
        }
        (&self.request, self.place)
    }
}

/// The memcached protocol of one load thread.
pub struct MemcachedDriver {
    options: Arc<MemcachedOptions>,
    pub(super) content: Arc<dyn Content>,
    pub(super) servers: Servers,
    /// Number of fields of a record.
    fields: usize,
    error: String,
    pub(super) value: Vec<u8>,
    scratch: [Vec<u8>; 2],
    pub(super) reader: ReplyReader,
    /// Commands of one's own, by the number of their template.
    pub(super) own: Vec<OwnTemplate>,
    pub(super) traffic: Unreported,
}

impl MemcachedDriver {
    /// A driver for one load thread. Refuses a workload that memcached or the layout cannot hold; `verbs` are those that it will
    /// use.
    pub fn new(
        options: Arc<MemcachedOptions>,
        content: Arc<dyn Content>,
        servers: Servers,
        verbs: &[Verb],
    ) -> Result<Self, Refused> {
        let refused =
            |code: RefusalCode, place: &str, message: String| Err(Refused::new(code, place, message));
        if verbs.contains(&Verb::Scan) {
            let message = "memcached has no scans: its keys have no order (use scanproportion=0)";
            return refused(RefusalCode::Unsupported, "scanproportion", message.into());
        }
        if let Some(shape) = content.shapes_used().first() {
            let name = &shape.name;
            let message = format!("memcached has no documents: it cannot do {name:?} (use Redis or MongoDB)");
            return refused(RefusalCode::Unsupported, "", message);
        }
        let fields = content.fields(&Request { verb: Verb::Insert, ..Request::default() });
        if options.layout == Layout::String && verbs.contains(&Verb::Update) && fields > 1 {
            return refused(
                RefusalCode::Conflict,
                "layout",
                "layout=string keeps a record as its values end to end: updates need fieldcount=1, or use layout=json"
                    .into(),
            );
        }
        let (error, value, scratch) = Default::default();
        let own = own::compile(content.commands(), servers.server_endpoints().len())?;
        let traffic = Unreported::new(&content);
        let mut driver = MemcachedDriver {
            options,
            content,
            servers,
            fields,
            error,
            value,
            scratch,
            reader: ReplyReader::default(),
            own,
            traffic,
        };
        let mut key = Vec::new();
        // What was recorded has keys of its own.
        if verbs != [Verb::Recorded] && driver.place(&Request::default(), &mut key).server == UNSENDABLE {
            return refused(RefusalCode::Unsupported, "", driver.error);
        }
        Ok(driver)
    }

    /// Appends the key of a request to `keys` and looks for its server: [`UNSENDABLE`], and words, if it cannot be a key.
    fn place(&mut self, request: &Request, keys: &mut Vec<u8>) -> KeySpan {
        if request.verb == Verb::Recorded {
            // There is one server, or the replay is refused.
            return KeySpan::default();
        }
        let begin = keys.len();
        keys.extend_from_slice(self.options.prefix.as_bytes());
        self.content.key(request, keys);
        let key = &keys[begin..];
        let mut server = self.servers.server_of(key);
        let encoded = key.iter().any(|&b| b <= b' ' || b == 0x7f);
        let fits = if encoded {
            self.servers.server_protocol(server) != Protocol::Text && meta::fits_base64(key.len())
        } else {
            (1..=meta::KEY_BYTES).contains(&key.len())
        };
        if !fits {
            server = UNSENDABLE;
            self.say_key(&keys[begin..]);
        }
        let count = self.servers.server_endpoints().len();
        debug_assert!(
            server == UNSENDABLE || usize::from(server) < count,
            "a key is on a server that there is"
        );
        debug_assert!(u32::try_from(keys.len()).is_ok(), "places of keys have 32 bits");
        KeySpan { server, encoded, begin: begin as u32, end: keys.len() as u32 }
    }

    #[cold]
    fn say_key(&mut self, key: &[u8]) {
        let shown: String = String::from_utf8_lossy(&key[..key.len().min(40)]).escape_debug().collect();
        self.error = format!(
            "memcached cannot have the key \"{shown}\" of {} bytes: 1 to {} without spaces and control characters (186 with, \
             by the meta protocol)",
            key.len(),
            meta::KEY_BYTES,
        );
    }

    #[cold]
    fn say_word(&mut self, word: &[u8]) {
        let shown: String = String::from_utf8_lossy(&word[..word.len().min(40)]).escape_debug().collect();
        self.error = format!(
            "memcached cannot have the word \"{shown}\" of {} bytes in a command: expected no spaces and control characters, \
             no noreply and q, and at most {} bytes of a key",
            word.len(),
            meta::KEY_BYTES,
        );
    }

    pub(super) fn fail(&mut self, text: &[u8]) -> Outcome {
        self.error.clear();
        self.error.push_str(&String::from_utf8_lossy(&text[..text.len().min(400)]));
        classify_error(text)
    }

    pub(super) fn say(&mut self, message: &str) {
        self.error.clear();
        self.error.push_str(message);
    }

    /// Appends a write of the value that `request` has.
    fn put_write(&mut self, x: &Exchange, command: u32, key: SentKey<'_>, classic: bool, out: &mut Vec<u8>) {
        let (request, _) = x.part(command);
        let mut value = std::mem::take(&mut self.value);
        let (mode, bytes) = if x.merges {
            (WriteCondition::Swap(x.version), &x.more.merged)
        } else {
            value.clear();
            match self.options.layout {
                Layout::Json => {
                    records::put_json(self.content.as_ref(), request, &mut self.scratch[0], &mut value)
                }
                Layout::String => records::put_string(self.content.as_ref(), request, &mut value),
            }
            (if request.verb == Verb::Insert { WriteCondition::Add } else { WriteCondition::Replace }, &value)
        };
        let expiry_s = self.options.expiry_s;
        if classic {
            text::put_write(key.bytes, mode, expiry_s, bytes, out);
        } else {
            meta::put_write(key, mode, expiry_s, bytes, out);
        }
        self.value = value;
    }

    /// Takes a reply and returns what it means for its exchange; [`Err`] if it cannot be the reply to its command.
    #[inline]
    fn take(&mut self, x: &mut Exchange, command: u32, found: Reply<'_>) -> Result<Then, NotMemcached> {
        let verb = x.request.verb;
        let reads = verb == Verb::Read || (x.merges && command.is_multiple_of(2));
        let outcome = match (found, verb) {
            (Reply::Error(text), _) => {
                let carried = !reads && verb != Verb::Delete;
                if carried && loses_step(text) {
                    return Err(NotMemcached);
                }
                self.fail(text)
            }
            (Reply::Value { data, .. }, Verb::Read) => {
                if self.content.verifies() {
                    x.verified = Some(self.verify(&x.request, data));
                }
                x.records += 1;
                Outcome::Ok
            }
            (Reply::Value { data, cas }, _) if reads => return Ok(self.change(x, command, data, cas)),
            (Reply::Miss, _) if reads => Outcome::NotFound,
            (_, _) if reads => return Err(NotMemcached),
            (Reply::Done, _) => Outcome::Ok,
            (Reply::NotStored, Verb::Insert) => {
                self.say("the key is there already");
                Outcome::Duplicate
            }
            (Reply::NotStored, Verb::Update) | (Reply::NotFound, Verb::Update | Verb::Delete) => {
                Outcome::NotFound
            }
            (Reply::Changed, Verb::Update) if x.merges => {
                if command + 1 < 2 * TRIES {
                    return Ok(Then::Send { first: command + 1, count: 1 });
                }
                self.say("the record was changed by others between every read and write of an update");
                Outcome::Busy
            }
            _ => return Err(NotMemcached),
        };
        Ok(self.fold(x, command, outcome))
    }

    /// One of the replies that are awaited has come.
    #[inline]
    fn fold(&mut self, x: &mut Exchange, command: u32, outcome: Outcome) -> Then {
        debug_assert!(x.waiting > 0, "no more replies than commands");
        x.waiting -= 1;
        if x.batched {
            x.more.batch[command as usize].2 = outcome;
        }
        if x.outcome.is_ok() {
            x.outcome = outcome;
        }
        if x.waiting > 0 { Then::Wait } else { Then::Finish(x.outcome) }
    }

    /// The record that an update changes has come.
    fn change(&mut self, x: &mut Exchange, command: u32, record: &[u8], version: Option<u64>) -> Then {
        debug_assert!(x.merges, "other updates read nothing");
        debug_assert!(command.is_multiple_of(2), "reads and writes take turns");
        debug_assert!(command + 1 < 2 * TRIES, "each read is followed by a write");
        let merged = &mut x.more.merged;
        match records::merge(self.content.as_ref(), &x.request, record, &mut self.scratch, merged) {
            Ok(()) => {
                x.version = version.unwrap_or(0);
                Then::Send { first: command + 1, count: 1 }
            }
            // Another client has written it in another layout.
            Err(records::NotRecord) => self.fold(x, command, Outcome::Mismatch),
        }
    }

    fn verify(&mut self, request: &Request, record: &[u8]) -> Outcome {
        let content = self.content.as_ref();
        let good = match self.options.layout {
            Layout::Json => records::holds(content, request, record, &mut self.scratch),
            Layout::String => records::holds_string(content, request, record, &mut self.scratch[0]),
        };
        if good { Outcome::Ok } else { Outcome::Mismatch }
    }
}

impl Driver for MemcachedDriver {
    type Exchange = Exchange;

    fn endpoints(&self) -> &[Endpoint] {
        self.servers.server_endpoints()
    }

    fn hello(&mut self, _node: u16, _connection: u32, out: &mut Vec<u8>) -> bool {
        facts::greeting(&self.options, out);
        true
    }

    fn greeted(
        &mut self,
        node: u16,
        _connection: u32,
        reply: u16,
        input: &[u8],
        _out: &mut Vec<u8>,
    ) -> GreetingStep {
        let (hello, protocol) = facts::greeting_reply(&self.options, reply, input);
        if let Some(protocol) = protocol {
            self.servers.set_protocol(node, protocol);
        }
        hello
    }

    fn begin(&mut self, x: &mut Exchange, request: &Request) -> u32 {
        x.request = *request;
        x.outcome = Outcome::Ok;
        x.verified = None;
        x.records = 0;
        x.batched = false;
        x.waiting = 1;
        x.merges = request.verb == Verb::Update
            && self.options.update == Update::Merge
            && self.content.fields(request) < self.fields;
        x.keys.clear();
        if request.verb == Verb::Command {
            return self.begin_own(x);
        }
        x.place = self.place(request, &mut x.keys);
        1
    }

    fn batches(&self) -> bool {
        true
    }

    fn begin_batch(&mut self, x: &mut Exchange, requests: &[Request]) -> u32 {
        self.begin(x, &requests[0]);
        (x.batched, x.merges) = (true, false);
        x.keys.clear();
        x.more.batch.clear();
        for request in requests {
            let place = self.place(request, &mut x.keys);
            x.more.batch.push((*request, place, Outcome::Ok));
        }
        x.waiting = requests.len() as u32;
        x.waiting
    }

    fn batch_outcome(&self, x: &Exchange, number: u32, outcome: Outcome) -> Outcome {
        // Answered to the end: each has its own. Cut short: it is unknown which were done.
        if x.waiting == 0 { x.more.batch[number as usize].2 } else { outcome }
    }

    #[inline]
    fn route(&mut self, x: &Exchange, command: u32) -> u16 {
        let (request, place) = x.part(command);
        if place.server == UNSENDABLE {
            let at_fault = &x.keys[place.begin as usize..place.end as usize];
            match request.verb {
                Verb::Command => self.say_word(at_fault),
                _ => self.say_key(at_fault),
            }
        }
        place.server
    }

    fn encode(&mut self, x: &mut Exchange, command: u32, out: &mut Vec<u8>) {
        match x.request.verb {
            Verb::Command => return self.put_own(x, command, out),
            Verb::Recorded => return self.put_recorded(x, out),
            _ => {}
        }
        let (request, place) = x.part(command);
        let key =
            SentKey { bytes: &x.keys[place.begin as usize..place.end as usize], encoded: place.encoded };
        // An encoded key has been meant for the meta protocol.
        let classic = self.servers.server_protocol(place.server) == Protocol::Text && !key.encoded;
        let version = x.merges && command.is_multiple_of(2);
        match request.verb {
            Verb::Delete if classic => text::put_delete(key.bytes, out),
            Verb::Delete => meta::put_delete(key, out),
            Verb::Insert | Verb::Update if !version => self.put_write(x, command, key, classic, out),
            _ if classic => text::put_read(key.bytes, version, out),
            _ => meta::put_read(key, version, out),
        }
    }

    #[inline]
    fn decode(&mut self, x: &mut Exchange, command: u32, input: &[u8]) -> Decoded {
        let taken = match x.request.verb {
            Verb::Command => Some(self.take_own(x, command, input)),
            Verb::Recorded => Some(self.take_recorded(x, input)),
            _ => None,
        };
        if let Some(taken) = taken {
            return match taken {
                Ok(None) => Decoded::Need,
                Ok(Some((outcome, used))) => Decoded::Reply { used, then: self.fold(x, command, outcome) },
                Err(NotMemcached) => Decoded::Broken,
            };
        }
        match read_reply(input) {
            Ok(None) => Decoded::Need,
            Ok(Some((found, used))) => match self.take(x, command, found) {
                Ok(then) => Decoded::Reply { used, then },
                Err(NotMemcached) => Decoded::Broken,
            },
            Err(NotMemcached) => Decoded::Broken,
        }
    }

    fn skip(&mut self, input: &[u8]) -> Decoded {
        let mut used = 0;
        self.reader.reset();
        match self.reader.read_reply(input, &mut used) {
            Ok(None) => Decoded::Need,
            // It is unknown by now whether its command carried a value.
            Ok(Some(reply)) if reply.shape == ReplyShape::Error && loses_step(self.reader.first_line()) => {
                Decoded::Broken
            }
            Ok(Some(_)) => Decoded::Reply { used, then: Then::Wait },
            Err(NotMemcached) => Decoded::Broken,
        }
    }

    fn records(&self, x: &Exchange) -> u32 {
        x.records
    }

    fn verified(&self, x: &Exchange) -> Option<Outcome> {
        x.verified
    }

    fn last_error(&self) -> &str {
        &self.error
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
pub(super) mod tests;
