//! Commands on their way from the file to users: a thread reads ahead of the load.

use super::against::{AgainstReplies, ReplaySide};
use super::compare::DivergenceCounts;
use super::expiry::{has_absolute_times, move_expiry, scale_expiry};
use super::memcached::memcached_rules;
use super::mongodb::cursors::LiveCursors;
use super::mongodb::{CommandReader, LeftOut};
use super::options::{ReplayOptions, ReplayPace};
use super::played_command::{Effect, NameTraits, Pauses, PlayedCommand, RecordedPause, effect};
use super::redis_rules::{is_comparable, may_wait, sets_state, waits_for_data};
use super::selection::Chooser;
use super::slots::{Placement, Placer};
use super::survey::{NO_USER, OTHER, RecordingSurvey, metric_name, recorded_wait_ns, step_name, wait_name};
use crate::entry::{Arguments, Entry};
use crate::format::{Lack, RecordedEvent, RecordingError, RecordingHeader, RecordingPoint, RecordingReader};
use crate::protocol::RecordedProtocol;
use dyno_types::request::{FIRST_STEP, INNER_STEP, LAST_STEP};
use dyno_workload::{RecordedDue, ReplayedReplies};
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
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

/// Nanoseconds since 1970.
fn since_1970_ns() -> i128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128)
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
    /// Which of two servers this is of, and the replies of both, where they are compared.
    pub against: Option<(ReplaySide, Arc<AgainstReplies>)>,
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
    /// Commands that waited for data for as long as they may, and were ended.
    pub cut_waits: AtomicU64,
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
        against: Option<(ReplaySide, Arc<AgainstReplies>)>,
    ) -> Self {
        Feed {
            against,
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
            cut_waits: AtomicU64::new(0),
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
            cut_waits: self.cut_waits.load(Ordering::Relaxed),
            pace: self.options.pace_name().into(),
            point: point.into(),
            then,
            left_out,
            crossing: self.survey.crossing.clone(),
            recorded: self.survey.commands + self.survey.crossing.values().sum::<u64>(),
            against: self.against.as_ref().map(|(_, replies)| Box::new(replies.so_far())),
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
        let due_ns = self.options.due_ns(self.read_ns.load(Ordering::Relaxed));
        due_ns.filter(|_| self.options.has_times()).unwrap_or(0)
    }

    /// When a command is due.
    pub fn due_of(&self, command: &PlayedCommand) -> RecordedDue {
        let options = &self.options;
        match (options.due_ns(command.at_ns), command.pause) {
            (None, _) => RecordedDue::AtOnce,
            (Some(at_ns), None) => RecordedDue::At(at_ns),
            (_, Some(RecordedPause::AfterReply(ns))) => RecordedDue::AfterEnd(options.pause_ns(ns)),
            (_, Some(RecordedPause::AfterDue(ns))) => RecordedDue::AfterDue(options.pause_ns(ns)),
        }
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
        let numbers: HashMap<&str, usize> = metrics.iter().map(String::as_str).zip(0..).collect();
        let number_of = |name: &str| numbers.get(name).copied();
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
        let mut pauses = Pauses::default();
        // Connections that have waited for data.
        let mut waiting: HashSet<u32> = HashSet::new();
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
                let pause = pauses.note_sent(&entry).filter(|_| self.options.pace == ReplayPace::Think);
                let is_read =
                    self.read_document(user, &entry, (number, metric, pause), commands - 1, documents);
                if is_read && entry.reply.is_none() && self.has_replies && unanswered.len() < UNANSWERED {
                    unanswered.insert(commands - 1, metric);
                }
                if !self.await_load() {
                    return Ok(());
                }
                continue;
            }
            if self.protocol == RecordedProtocol::Memcached {
                let metric = number_of(&metric_name(&entry)).map_or(other, |number| number as u16);
                if entry.reply.is_none() && self.has_replies && unanswered.len() < UNANSWERED {
                    unanswered.insert(commands - 1, metric);
                }
                let is_comparable = memcached_rules::is_comparable(&entry.arguments);
                let traits = NameTraits { is_comparable, ..NameTraits::added(metric, Effect::None) };
                let by_ns = self.moved_by(&entry, recorded_ns, begun_ns);
                let pause = pauses.note_sent(&entry).filter(|_| self.options.pace == ReplayPace::Think);
                let number = is_comparable.then_some(commands - 1);
                let command = PlayedCommand::of_memcached(&entry, by_ns, traits);
                self.push(user, PlayedCommand { pause, number, ..command });
                if !self.await_load() {
                    return Ok(());
                }
                continue;
            }
            let facts = match known.get(entry.arguments.word(0)) {
                Some(facts) => *facts,
                None => {
                    let of = |name: &str| number_of(name).map_or(other, |number| number as u16);
                    let name = metric_name(&entry);
                    let facts = NameTraits {
                        metric: of(&name),
                        step_metric: of(&step_name(&name)),
                        wait_metric: of(&wait_name(&name)),
                        may_wait: may_wait(&entry.arguments),
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
            let step = match (facts.effect, open.contains_key(&entry.connection)) {
                (Effect::Ends, true) => Some(LAST_STEP),
                (_, true) => Some(INNER_STEP),
                (Effect::Begins, false) => Some(FIRST_STEP),
                _ => None,
            };
            if facts.effect == Effect::Ends {
                match open.remove(&entry.connection) {
                    // Its begin is not in the part that is replayed: alone it would be an error.
                    None => continue,
                    // Something of it was not sent: its reply is another.
                    Some(true) => entry.reply = None,
                    Some(false) => {}
                }
            } else if step == Some(FIRST_STEP) {
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
            if self.options.scale_ttl
                && let Some(arguments) =
                    self.options.speed.and_then(|speed| scale_expiry(&entry.arguments, speed))
            {
                entry.arguments = arguments;
            }
            let waits = facts.may_wait && step.is_none() && waits_for_data(&entry.arguments);
            let mut command = PlayedCommand::of_entry(&entry, facts, &placement);
            if waits {
                let Some(wait_ns) = recorded_wait_ns(&entry) else { continue };
                command.wait_ms = self.options.longest_wait_ms(wait_ns);
                (command.metric, command.then, command.after_ns) = (facts.wait_metric, None, None);
                waiting.insert(entry.connection);
            }
            if step.is_some() {
                (command.step, command.metric) = (step, facts.step_metric);
            }
            let pause = pauses.note_sent(&entry);
            // Behind a wait the times of then say nothing: it may end earlier or later.
            // A rate has times of its own.
            let has_waited = self.options.schedule.is_none() && waiting.contains(&entry.connection);
            let thinks = self.options.pace == ReplayPace::Think || has_waited;
            command.pause = pause.filter(|_| thinks);
            command.number = (facts.is_comparable && !waits).then_some(commands - 1);
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
        move_expiry(&entry.arguments, self.moved_by(entry, recorded_ns, begun_ns)?)
    }

    /// From when a command was sent then to when it is due now, nanoseconds; `None` where it is not known when then was.
    fn moved_by(&self, entry: &Entry, recorded_ns: u64, begun_ns: i128) -> Option<i128> {
        let then_ns = i128::from(self.begins_ns?) + i128::from(recorded_ns);
        let now_ns = match self.options.due_ns(entry.at_ns) {
            Some(due_ns) => begun_ns + i128::from(due_ns),
            None => since_1970_ns(),
        };
        Some(now_ns - then_ns)
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

    /// Takes a command of MongoDB; false if it is not sent. The number is that of the command on its connection, `place` that in
    /// the file.
    fn read_document(
        &self,
        user: u32,
        entry: &Entry,
        (number, metric, pause): (i64, u16, Option<RecordedPause>),
        place: u64,
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
        let number = read.is_comparable.then_some(place);
        self.push(user, PlayedCommand { pause, number, ..PlayedCommand::of_document(entry, read, metric) });
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
            self.push(user, PlayedCommand { step: (effect == Effect::Ends).then_some(LAST_STEP), ..command });
        }
    }

    fn push(&self, user: u32, command: PlayedCommand) {
        self.held.fetch_add(command.memory(), Ordering::Relaxed);
        self.user(u64::from(user)).waiting.push_back(command);
    }
}
