//! Commands on their way from the file to users: a thread reads ahead of the load.

use super::compare::DivergenceCounts;
use super::expiry::{has_absolute_times, move_expiry};
use super::mongodb::cursors::LiveCursors;
use super::mongodb::{CommandReader, Document, LeftOut, ReadCommand, command_words};
use super::options::ReplayOptions;
use super::redis_rules::{is_comparable, sets_state};
use super::selection::Chooser;
use super::slots::{Placement, Placer, take_part};
use super::survey::{NO_USER, OTHER, RecordingSurvey, metric_name};
use crate::entry::{Arguments, Entry, RecordedReply};
use crate::format::{Lack, RecordedEvent, RecordingError, RecordingHeader, RecordingPoint, RecordingReader};
use crate::long::put_long;
use crate::protocol::RecordedProtocol;
use dyno_db_redis::protocol::resp::{put_array, put_bulk};
use dyno_types::command::RecordedPlace;
use dyno_workload::ReplayedReplies;
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Bytes of commands that are read ahead of the load, and the most where a user has nothing to send meanwhile.
const AHEAD_BYTES: (u64, u64) = (256 << 20, 1 << 30);

/// Most commands whose late reply is waited for.
const UNANSWERED: usize = 1 << 20;

/// Shares of the recorded times.
const SHARES: usize = 16;

/// Pause of the reader when it is far enough ahead.
const PAUSE: Duration = Duration::from_micros(500);

/// Memory that a command takes beside its bytes.
const OVERHEAD: u64 = 128;

/// What a command does to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// It chooses a database, or a version of the protocol.
    State,
    /// It begins a transaction.
    Begins,
    /// It ends one.
    Ends,
}

fn effect(arguments: &Arguments) -> Effect {
    match arguments {
        all if sets_state(all) => Effect::State,
        all if all.is_named("MULTI") => Effect::Begins,
        all if all.is_named("EXEC") || all.is_named("DISCARD") => Effect::Ends,
        _ => Effect::None,
    }
}

/// What follows from a command's name.
#[derive(Clone, Copy, Debug)]
struct NameTraits {
    metric: u16,
    /// Replies to it can be compared.
    is_comparable: bool,
    effect: Effect,
    /// It may hold an absolute time.
    may_expire: bool,
}

impl NameTraits {
    /// Of a command that dyno adds.
    fn added(metric: u16, effect: Effect) -> Self {
        NameTraits { metric, is_comparable: false, effect, may_expire: false }
    }
}

/// What is sent of a command.
#[derive(Clone, Debug, Default)]
pub(super) struct CommandText {
    /// As it goes over the wire; empty where a value must be made first.
    pub bytes: Box<[u8]>,
    pub made: Option<Box<Arguments>>,
}

impl CommandText {
    fn of_arguments(arguments: &Arguments) -> Self {
        let is_kept = (0..arguments.count()).all(|number| arguments.long_value(number).is_none());
        if !is_kept {
            return CommandText { bytes: Box::default(), made: Some(Box::new(arguments.clone())) };
        }
        let mut bytes = Vec::new();
        put_command(arguments, &mut bytes);
        CommandText { bytes: bytes.into_boxed_slice(), made: None }
    }

    fn put_wire(&self, out: &mut Vec<u8>) {
        match &self.made {
            None => out.extend_from_slice(&self.bytes),
            Some(arguments) => put_command(arguments, out),
        }
    }

    fn memory(&self) -> u64 {
        let made = self.made.as_ref().map_or(0, |made| made.words().map(|word| word.len() as u64).sum());
        self.bytes.len() as u64 + made
    }
}

/// A part of a command that is split over the slots of a cluster.
#[derive(Clone, Debug)]
pub(super) struct PlayedPart {
    pub slot: u16,
    pub text: CommandText,
}

/// A command to be sent.
#[derive(Clone, Debug)]
pub(super) struct PlayedCommand {
    pub at_ns: u64,
    pub metric: u16,
    pub waits: bool,
    /// True if it is sent once more, to bring a new connection into the state of the one before.
    pub restores: bool,
    pub effect: Effect,
    pub text: CommandText,
    /// What it is sent as where it is split over the slots of a cluster.
    pub parts: Box<[PlayedPart]>,
    /// Where it is sent in a cluster.
    pub place: RecordedPlace,
    /// It belongs to a transaction.
    pub stays: bool,
    /// Of a command of MongoDB, whose bytes are its body.
    pub document: Option<Box<Document>>,
    /// The reply of then, where it can be compared.
    pub then: Option<Box<RecordedReply>>,
    /// Time that the reply took then, nanoseconds.
    pub after_ns: Option<u64>,
}

impl PlayedCommand {
    fn of_entry(entry: &Entry, traits: NameTraits, placement: &Placement) -> Self {
        let arguments = &entry.arguments;
        let parts = match placement {
            Placement::Split(parts) => parts
                .iter()
                .map(|(slot, keys)| PlayedPart {
                    slot: *slot,
                    text: CommandText::of_arguments(&take_part(arguments, keys)),
                })
                .collect(),
            _ => Vec::new(),
        };
        let text =
            if parts.is_empty() { CommandText::of_arguments(arguments) } else { CommandText::default() };
        PlayedCommand {
            at_ns: entry.at_ns,
            metric: traits.metric,
            waits: !entry.overlaps,
            restores: false,
            effect: traits.effect,
            text,
            parts: parts.into_boxed_slice(),
            place: if let Placement::Sent(place) = placement { *place } else { RecordedPlace::AnyNode },
            stays: false,
            document: None,
            then: entry.reply.as_ref().filter(|_| traits.is_comparable).cloned().map(Box::new),
            after_ns: entry.reply.as_ref().and_then(|reply| reply.after_ns),
        }
    }

    /// A command of MongoDB.
    fn of_document(entry: &Entry, read: ReadCommand, metric: u16) -> Self {
        PlayedCommand {
            at_ns: entry.at_ns,
            metric,
            waits: read.waits,
            restores: false,
            effect: Effect::None,
            text: CommandText { bytes: read.bytes.into_boxed_slice(), made: None },
            parts: Box::default(),
            place: RecordedPlace::AnyNode,
            stays: false,
            document: Some(Box::new(read.document)),
            then: entry.reply.as_ref().filter(|_| read.is_comparable).cloned().map(Box::new),
            after_ns: entry.reply.as_ref().and_then(|reply| reply.after_ns),
        }
    }

    /// Appends the command as it goes over the wire, or part number `number` of it; or its body, which the driver puts into a
    /// message.
    pub fn put_wire(&self, number: u32, out: &mut Vec<u8>) {
        if let Some(part) = self.parts.get(number as usize) {
            return part.text.put_wire(out);
        }
        let from = out.len();
        self.text.put_wire(out);
        if let Some(cursor) = self.document.as_ref().and_then(|document| document.cursor) {
            out[from + cursor.at..][..8].copy_from_slice(&cursor.number.to_le_bytes());
        }
    }

    /// Its name and its first argument, for messages: values stay out of them.
    pub fn first_words(&self) -> String {
        let shown = |line: &str| {
            line.chars().take(60).map(|c| if c.is_control() { '.' } else { c }).collect::<String>()
        };
        if self.document.is_some() {
            return shown(&command_words(&self.text.bytes));
        }
        let text = self.parts.first().map_or(&self.text, |part| &part.text);
        let words: Vec<&[u8]> = match &text.made {
            None => bulk_strings(&text.bytes).take(2).collect(),
            Some(arguments) => arguments.words().take(2).collect(),
        };
        shown(&String::from_utf8_lossy(&words.join(&b' ')))
    }

    fn memory(&self) -> u64 {
        self.text.memory()
            + self.parts.iter().map(|part| part.text.memory() + OVERHEAD).sum::<u64>()
            + OVERHEAD
    }
}

/// The words of a command as it goes over the wire, one after the other.
fn bulk_strings(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    std::iter::from_fn(move || {
        let head = bytes.get(at + 1..)?;
        let end = head.iter().position(|byte| *byte == b'\r')?;
        let length: usize = std::str::from_utf8(&head[..end]).ok()?.parse().ok()?;
        let from = at + 1 + end + 2;
        at = from + length + 2;
        bytes.get(from..from + length)
    })
}

/// Nanoseconds since 1970.
fn since_1970_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
}

fn put_command(arguments: &Arguments, out: &mut Vec<u8>) {
    put_array(out, arguments.count());
    let mut made = Vec::new();
    for (number, word) in arguments.words().enumerate() {
        match arguments.long_value(number) {
            None => put_bulk(out, word),
            Some(value) => {
                made.clear();
                put_long(value, &mut made);
                put_bulk(out, &made);
            }
        }
    }
}

/// Commands of a user: those that wait, and those that are under way.
#[derive(Debug, Default)]
pub(super) struct UserFeed {
    pub waiting: VecDeque<PlayedCommand>,
    pub under_way: Vec<Option<PlayedCommand>>,
    pub free: Vec<u32>,
    /// The last of the commands that have set the state of its connection, by their names.
    pub state: Vec<(String, PlayedCommand)>,
    /// A transaction has begun and not ended.
    pub in_transaction: bool,
    /// Its connection was lost within one: the rest of it is not sent.
    pub skips: bool,
    /// A reply on its connection has differed.
    pub has_differed: bool,
    /// The server has refused to bring its connection into the state of then: nothing more is sent, it would go elsewhere.
    pub refused: bool,
    /// Its connection was lost, and the next one is to be brought into its state.
    pub restores: bool,
    /// Not before this time, and the pause that led to it: the last try has failed.
    pub pause: Option<(Instant, Duration)>,
}

/// State that the reader, the load threads and the workload share.
#[derive(Debug)]
pub(super) struct Feed {
    path: PathBuf,
    pub options: ReplayOptions,
    survey: Arc<RecordingSurvey>,
    users: Vec<Mutex<UserFeed>>,
    pub divergence: DivergenceCounts,
    /// Cursors that are open now.
    pub cursors: LiveCursors,
    /// Bytes that were read and are not done with.
    held: AtomicU64,
    /// A user had nothing to send since the reader last looked.
    starved: AtomicBool,
    over: AtomicBool,
    stopped: AtomicBool,
    /// Commands that were not sent because a connection was lost within a transaction, and because a server refused a database.
    pub cut: AtomicU64,
    pub refused: AtomicU64,
    /// Commands that were not sent because their cursor is not open, and because their transaction was not begun.
    pub without_cursor: AtomicU64,
    without_transaction: AtomicU64,
    /// Time of what was read last, nanoseconds of the recording.
    read_ns: AtomicU64,
    failure: Mutex<Option<String>>,
    /// Where times were taken then, and whether replies have any.
    point: RecordingPoint,
    has_replies: bool,
    protocol: RecordedProtocol,
    /// Begin of the recording, nanoseconds since 1970, where it is known.
    begins_ns: Option<u64>,
    /// Recorded times from command to reply, by metric, nanoseconds: those of commands that are sent. In shares of the users, so
    /// that load threads do not wait for each other.
    then: [Mutex<Vec<Histogram<u32>>>; SHARES],
}

impl Feed {
    pub fn new(
        path: &Path,
        options: ReplayOptions,
        header: &RecordingHeader,
        survey: Arc<RecordingSurvey>,
    ) -> Self {
        Feed {
            point: header.point,
            has_replies: !header.is_without(Lack::Replies),
            protocol: header.protocol,
            begins_ns: header.begins_ns,
            then: Default::default(),
            path: path.to_owned(),
            users: (0..survey.users).map(|_| Mutex::default()).collect(),
            options,
            survey,
            divergence: DivergenceCounts::default(),
            cursors: LiveCursors::default(),
            without_cursor: AtomicU64::new(0),
            without_transaction: AtomicU64::new(0),
            held: AtomicU64::new(0),
            starved: AtomicBool::new(false),
            over: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            cut: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            read_ns: AtomicU64::new(0),
            failure: Mutex::new(None),
        }
    }

    pub fn user(&self, user: u64) -> MutexGuard<'_, UserFeed> {
        self.users[user as usize % self.users.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of users.
    pub fn user_count(&self) -> u64 {
        self.users.len() as u64
    }

    /// Replies of now beside those of then, so far; `metrics`: names of all metrics.
    pub fn replayed(&self, metrics: &[String]) -> ReplayedReplies {
        let mut then: BTreeMap<String, BTreeMap<u64, u64>> = BTreeMap::new();
        for share in &self.then {
            let share = share.lock().unwrap_or_else(PoisonError::into_inner);
            for (name, times) in metrics.iter().zip(share.iter()).filter(|(_, times)| !times.is_empty()) {
                let own = then.entry(name.clone()).or_default();
                for step in times.iter_recorded() {
                    *own.entry(step.value_iterated_to()).or_default() += u64::from(step.count_at_value());
                }
            }
        }
        let mut left_out = self.survey.left_out.clone();
        for (reason, count) in [
            ("commands of transactions whose connection was lost", &self.cut),
            ("commands behind a SELECT or HELLO that the server refused", &self.refused),
            ("getMore and killCursors of cursors that are not open now", &self.without_cursor),
            ("commands of transactions whose begin is not sent", &self.without_transaction),
        ] {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                left_out.insert(reason.into(), count);
            }
        }
        let point = match self.point {
            RecordingPoint::Server => "server",
            RecordingPoint::Client => "client",
            RecordingPoint::Proxy => "proxy",
            RecordingPoint::Unknown => "unknown",
        };
        ReplayedReplies {
            point: point.into(),
            then,
            left_out,
            crossing: self.survey.crossing.clone(),
            recorded: self.survey.commands + self.survey.crossing.values().sum::<u64>(),
            failure: self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..self.divergence.so_far()
        }
    }

    /// Notes the time that a reply took then.
    pub fn note_then(&self, user: u64, metric: u16, after_ns: u64) {
        let mut then = self.then[user as usize % SHARES].lock().unwrap_or_else(PoisonError::into_inner);
        let number = usize::from(metric);
        while then.len() <= number {
            // Three digits, and as long as it needs: it cannot be refused.
            match Histogram::new(3) {
                Ok(new) => then.push(new),
                Err(_) => return,
            }
        }
        // It grows with what it holds: only memory could refuse it.
        let _ = then[number].record(after_ns.max(1));
    }

    /// A user has nothing that is known to be its next: whether there will be something.
    pub fn expects_more(&self) -> bool {
        let more = !self.over.load(Ordering::Acquire);
        if more {
            self.starved.store(true, Ordering::Relaxed);
        }
        more
    }

    /// When what was not read yet is due at the earliest, nanoseconds after the epoch.
    pub fn not_before_ns(&self) -> u64 {
        self.options.due_ns(self.read_ns.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// A command is done with. One that restores a state was never read.
    pub fn forget(&self, command: &PlayedCommand) {
        if command.restores {
            return;
        }
        self.held.fetch_sub(command.memory(), Ordering::Relaxed);
        // Without a reply to it no cursor has come of it.
        if let Some(key) = command.document.as_ref().and_then(|document| document.opens) {
            self.cursors.settle_opener(key);
        }
    }

    /// The reader ends.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Reads the whole file, at most so far ahead of the load as memory allows.
    pub fn read(&self) {
        if let Err(error) = self.try_read() {
            let text = format!("{}: {error}", self.path.display());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
        }
        self.over.store(true, Ordering::Release);
    }

    fn try_read(&self) -> Result<(), RecordingError> {
        let mut reader = RecordingReader::open_file(&self.path)?;
        let metrics = self.survey.metrics();
        let number_of = |name: &str| metrics.iter().position(|one| one == name);
        let other = number_of(OTHER).unwrap_or(0) as u16;
        let mut chooser = Chooser::new(&self.options, self.protocol);
        let mut placer = self.options.cluster.as_deref().map(Placer::new);
        let mut documents = (self.protocol == RecordedProtocol::Mongodb)
            .then(|| CommandReader::new(self.options.replay_number));
        // By the command's name as it was written.
        let mut known: HashMap<Vec<u8>, NameTraits> = HashMap::new();
        // Of connections: commands before the part that set their state.
        let mut before: HashMap<u32, Vec<(String, Entry)>> = HashMap::new();
        // Of connections with an open transaction: whether something of it is left out.
        let mut open: HashMap<u32, bool> = HashMap::new();
        // Of users: the connection whose commands it sends.
        let mut connection_of = vec![NO_USER; self.users.len()];
        // Commands without a reply, by their numbers in the file: it may come late.
        let mut unanswered: HashMap<u64, u16> = HashMap::new();
        let mut commands = 0u64;
        let mut schedule = self.options.schedule.map(|schedule| schedule.begin());
        let begun_ns = since_1970_ns();
        let mut entry = Entry::default();
        while let Some(event) = reader.next_event(&mut entry)? {
            if let RecordedEvent::LateReply { number, reply } = &event {
                if let (Some(metric), Some(after_ns)) = (unanswered.remove(number), reply.after_ns) {
                    self.note_then(0, metric, after_ns);
                }
                continue;
            }
            commands += 1;
            let placement = match &mut placer {
                Some(placer) if !entry.arguments.is_empty() => placer.place(&entry),
                _ => Placement::SINGLE,
            };
            let number = documents.as_mut().map_or(0, |documents| documents.take_number(entry.connection));
            let (recorded_ns, is_in_part) = (entry.at_ns, self.options.is_in_part(entry.at_ns));
            if let Some(schedule) = &mut schedule {
                let is_sent = is_in_part
                    && self.survey.has_user(entry.connection)
                    && placement.is_sent()
                    && chooser.reason_against(&entry).is_none();
                if is_sent {
                    self.read_ns.store(self.options.from_ns + schedule.peek_arrival().1, Ordering::Relaxed);
                    schedule.advance_arrival();
                }
                entry.at_ns = self.read_ns.load(Ordering::Relaxed);
            }
            self.read_ns.store(entry.at_ns, Ordering::Relaxed);
            if entry.arguments.is_empty() {
                continue;
            }
            let user = self.survey.user_of.get(entry.connection as usize).copied().unwrap_or(NO_USER);
            if user == NO_USER {
                // A transaction may begin on a connection of another worker.
                if let Some(documents) = &mut documents
                    && is_in_part
                    && chooser.reason_against(&entry).is_none()
                {
                    documents.note_transaction(&entry.arguments);
                }
                continue;
            }
            if !is_in_part {
                if recorded_ns < self.options.from_ns
                    && documents.is_none()
                    && sets_state(&entry.arguments)
                    && placement.is_sent()
                {
                    let name = entry.arguments.command_name();
                    if name == "RESET" {
                        before.remove(&entry.connection);
                        continue;
                    }
                    let all = before.entry(entry.connection).or_default();
                    all.retain(|(other, _)| *other != name);
                    all.push((name, entry.clone()));
                }
                continue;
            }
            if !placement.is_sent() || chooser.reason_against(&entry).is_some() {
                if let Some(left_out) = open.get_mut(&entry.connection) {
                    *left_out = true;
                }
                continue;
            }
            if let Some(documents) = &mut documents {
                let metric = number_of(&metric_name(&entry)).map_or(other, |number| number as u16);
                let is_read = self.read_document(user, &entry, (number, metric), documents);
                if is_read && entry.reply.is_none() && self.has_replies && unanswered.len() < UNANSWERED {
                    unanswered.insert(commands - 1, metric);
                }
                if !self.await_load() {
                    return Ok(());
                }
                continue;
            }
            let facts = match known.get(entry.arguments.word(0)) {
                Some(facts) => *facts,
                None => {
                    let metric = number_of(&metric_name(&entry)).map_or(other, |number| number as u16);
                    let facts = NameTraits {
                        metric,
                        is_comparable: is_comparable(&entry.arguments),
                        effect: effect(&entry.arguments),
                        may_expire: has_absolute_times(&entry.arguments),
                    };
                    known.insert(entry.arguments.word(0).to_vec(), facts);
                    facts
                }
            };
            let held = &mut connection_of[user as usize];
            if *held != entry.connection {
                // Another connection takes over: it begins as a new one does.
                let is_first = std::mem::replace(held, entry.connection) == NO_USER;
                let mut all = before.remove(&entry.connection).unwrap_or_default();
                let selects = |(name, _): &(String, Entry)| name == "SELECT";
                if !is_first
                    && placer.is_none()
                    && !entry.arguments.is_named("SELECT")
                    && !all.iter().any(selects)
                {
                    let database = self.options.database.to_string();
                    let arguments = Arguments::from_words(["SELECT", &database]);
                    all.push(("SELECT".into(), Entry { arguments, ..Entry::default() }));
                }
                for (_, mut one) in all {
                    (one.at_ns, one.implied, one.overlaps, one.reply) = (entry.at_ns, true, false, None);
                    let metric = number_of(&metric_name(&one)).map_or(other, |number| number as u16);
                    let traits = NameTraits::added(metric, Effect::State);
                    self.push(user, PlayedCommand::of_entry(&one, traits, &Placement::SINGLE));
                }
            }
            if entry.reply.is_none() && self.has_replies && unanswered.len() < UNANSWERED {
                unanswered.insert(commands - 1, facts.metric);
            }
            if facts.effect == Effect::Ends {
                match open.remove(&entry.connection) {
                    // Its begin is not in the part that is replayed: alone it would be an error.
                    None => continue,
                    // Something of it was not sent: its reply is another.
                    Some(true) => entry.reply = None,
                    Some(false) => {}
                }
            } else if facts.effect == Effect::Begins {
                open.insert(entry.connection, false);
            }
            if entry.arguments.is_named("RESET") {
                let in_transaction = open.remove(&entry.connection).is_some();
                self.put_reset(user, &entry, in_transaction, other, &placement);
                continue;
            }
            if facts.may_expire
                && let Some(arguments) = self.moved_expiry(&entry, recorded_ns, begun_ns)
            {
                entry.arguments = arguments;
            }
            let stays = facts.effect == Effect::Ends || open.contains_key(&entry.connection);
            let command = PlayedCommand { stays, ..PlayedCommand::of_entry(&entry, facts, &placement) };
            self.push(user, command);
            if !self.await_load() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// A command with an absolute expiry that is as far from now as it was from then; `None` where it has none, or it is not
    /// known when then was. The replay began at `begun_ns`, nanoseconds since 1970.
    fn moved_expiry(&self, entry: &Entry, recorded_ns: u64, begun_ns: i128) -> Option<Arguments> {
        let then_ns = i128::from(self.begins_ns?) + i128::from(recorded_ns);
        let now_ns = match self.options.due_ns(entry.at_ns) {
            Some(due_ns) => begun_ns + i128::from(due_ns),
            None => since_1970_ns(),
        };
        move_expiry(&entry.arguments, now_ns - then_ns)
    }

    /// Waits until the load has come nearer; false if the reader is to end.
    fn await_load(&self) -> bool {
        while self.is_far_ahead() {
            if self.stopped.load(Ordering::Relaxed) {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
        true
    }

    /// Takes a command of MongoDB; false if it is not sent. The number is that of the command on its connection.
    fn read_document(
        &self,
        user: u32,
        entry: &Entry,
        (number, metric): (i64, u16),
        documents: &mut CommandReader,
    ) -> bool {
        let read = match documents.read_command(entry, number, &self.cursors) {
            Ok(read) => read,
            Err(reason) => {
                let count = match reason {
                    LeftOut::NoCursor => &self.without_cursor,
                    LeftOut::NoTransaction => &self.without_transaction,
                };
                count.fetch_add(1, Ordering::Relaxed);
                return false;
            }
        };
        if let Some(key) = read.document.opens {
            self.cursors.await_opener(key);
        }
        self.push(user, PlayedCommand::of_document(entry, read, metric));
        true
    }

    fn is_far_ahead(&self) -> bool {
        let held = self.held.load(Ordering::Relaxed);
        let starved = held > AHEAD_BYTES.0 && self.starved.swap(false, Ordering::Relaxed);
        held > if starved { AHEAD_BYTES.1 } else { AHEAD_BYTES.0 } || self.stopped.load(Ordering::Relaxed)
    }

    /// What a `RESET` does, without losing the login: the transaction ends, and the connection goes back to its first database.
    fn put_reset(&self, user: u32, entry: &Entry, in_transaction: bool, metric: u16, placement: &Placement) {
        let database = self.options.database.to_string();
        let discards = in_transaction.then(|| (vec!["DISCARD"], Effect::Ends));
        let selects = self.options.cluster.is_none().then(|| (vec!["SELECT", &database], Effect::State));
        for (words, effect) in discards.into_iter().chain(selects) {
            let one =
                Entry { at_ns: entry.at_ns, arguments: Arguments::from_words(words), ..Entry::default() };
            let command = PlayedCommand::of_entry(&one, NameTraits::added(metric, effect), placement);
            self.push(user, PlayedCommand { stays: effect == Effect::Ends, ..command });
        }
    }

    fn push(&self, user: u32, command: PlayedCommand) {
        self.held.fetch_add(command.memory(), Ordering::Relaxed);
        self.user(u64::from(user)).waiting.push_back(command);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_key_and_not_the_value() {
        for (key, shown) in
            [("k", "SET k"), ("$k", "SET $k"), ("*1", "SET *1"), ("", "SET "), ("a\r\n*b", "SET a..*b")]
        {
            let arguments = Arguments::from_words(["SET", key, "secret"]);
            let entry = Entry { arguments, ..Entry::default() };
            assert_eq!(
                PlayedCommand::of_entry(&entry, NameTraits::added(0, Effect::None), &Placement::SINGLE)
                    .first_words(),
                shown
            );
        }
    }
}
