//! A look at the whole recording before it is replayed: users, names and times.

use super::expiry::has_relative_time;
use super::memcached::memcached_rules::only_reads;
use super::mongodb::mongodb_rules;
use super::options::ReplayOptions;
use super::redis_rules::{is_end, listens, may_wait, sets_state, waits_for_data};
use super::selection::Chooser;
use super::slots::{Placement, Placer};
use crate::entry::Entry;
use crate::format::{RecordedEvent, RecordingError, RecordingHeader, RecordingReader};
use crate::protocol::RecordedProtocol;
use dyno_types::limits::METRICS;
use dyno_types::metric::{MULTI_EXEC, WAIT};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::Path;

/// Names that are told apart; the rest is one metric, and the waits are another.
const NAMES: usize = METRICS - 2;

/// The metric of names that are not told apart.
pub(super) const OTHER: &str = "OTHER";

/// Longest name of a command that is told apart.
const NAME_BYTES: usize = 40;

/// Connections that users replay one after the other, where there are more than this.
pub const USERS: usize = 10_000;

/// Most names of databases that are known.
pub const DATABASES: usize = 10_000;

/// A connection without a user.
pub(super) const NO_USER: u32 = u32::MAX;

/// What is left out of commands that wait for data.
const ENDLESS: &str = "commands that wait for data, of which it is not recorded how long they did";

/// What is left out of commands that are sent.
const TIMED: &str = "times of then in read concerns (afterClusterTime); their commands are sent";

/// What a recording holds, of what is replayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordingSurvey {
    /// Commands that are sent.
    pub commands: u64,
    /// Time of the last of them, from the part's begin on, nanoseconds, at the recorded speed.
    pub length_ns: u64,
    /// Users: connections of then, or several of them one after the other.
    pub users: u32,
    /// Connections whose commands are sent.
    pub connections: u32,
    /// Names of commands that are sent, in capitals, and their numbers: the most frequent first.
    pub names: Vec<(String, u64)>,
    /// The same of the commands of transactions, which are among them.
    pub steps: BTreeMap<String, u64>,
    /// Commands with relative times to live.
    pub times_to_live: u64,
    /// The same of commands that wait for data.
    pub waits: BTreeMap<String, u64>,
    /// What is not sent, by its reason.
    pub left_out: BTreeMap<String, u64>,
    /// Of each name, the words of one of its commands.
    pub examples: BTreeMap<String, Vec<Vec<u8>>>,
    /// Commands that are not sent because their keys are in several slots of the cluster, by name.
    pub crossing: BTreeMap<String, u64>,
    /// Commands with a recorded reply.
    pub replies: u64,
    /// Databases that connections select.
    pub databases: BTreeSet<u32>,
    /// Of a recording of MongoDB: commands that may write, by name, in capitals.
    pub writes: BTreeMap<String, u64>,
    /// Of a recording of MongoDB: databases that its commands name, but for those of the servers' own; at most
    /// [`DATABASES`] and one more.
    pub database_names: BTreeSet<String>,
    /// Commands with the number of a retryable write or of a transaction, which single servers refuse.
    pub numbered: u64,
    /// True if the file was cut off.
    pub cut_off: bool,
    /// By connection: its user.
    pub(super) user_of: Vec<u32>,
    /// The same over all workers, where this is the survey of one of several.
    all_user_of: Option<Vec<u32>>,
}

/// The time that a command waited for data then, nanoseconds.
pub(super) fn recorded_wait_ns(entry: &Entry) -> Option<u64> {
    entry.reply.as_ref().and_then(|reply| reply.after_ns)
}

/// The name under which a command is recorded: what would be no name is none.
pub(super) fn metric_name(entry: &Entry) -> String {
    let name = entry.arguments.command_name();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    match name.len() <= NAME_BYTES && !name.is_empty() && name.chars().all(is_name) {
        // A dot would make it a part of another metric.
        true => name.replace('.', "_"),
        false => OTHER.into(),
    }
}

/// The name under which a command of a transaction is recorded.
pub(super) fn step_name(name: &str) -> String {
    format!("{MULTI_EXEC}.{name}")
}

/// The name under which a command that waits for data is recorded: it is in no total.
pub(super) fn wait_name(name: &str) -> String {
    format!("{name}.{WAIT}")
}

impl RecordingSurvey {
    /// Returns whether a command of the recording is sent.
    pub(crate) fn sends(&self, options: &ReplayOptions, chooser: &mut Chooser<'_>, entry: &Entry) -> bool {
        let user = self.user_of.get(entry.connection as usize);
        user.is_some_and(|user| *user != NO_USER)
            && options.is_in_part(entry.at_ns)
            && chooser.reason_against(entry).is_none()
    }

    /// Returns whether a worker has a connection's commands, this one or another.
    pub(super) fn has_user(&self, connection: u32) -> bool {
        let all = self.all_user_of.as_ref().unwrap_or(&self.user_of);
        all.get(connection as usize).is_some_and(|user| *user != NO_USER)
    }

    /// Notes what a command of MongoDB that is sent does.
    fn note_document(&mut self, entry: &Entry) {
        let facts = mongodb_rules::facts_of(&entry.arguments);
        if facts.writes {
            *self.writes.entry(entry.arguments.command_name()).or_default() += 1;
        }
        if self.database_names.len() <= DATABASES {
            self.database_names.extend(facts.databases);
        }
        self.numbered += u64::from(facts.numbered);
        if facts.timed {
            *self.left_out.entry(TIMED.into()).or_default() += 1;
        }
    }

    /// The same with the names of the whole recording: the metrics of a worker are those of all.
    pub fn with_names_of(self, whole: &RecordingSurvey) -> Self {
        let steps = whole.steps.clone();
        let waits = whole.waits.clone();
        RecordingSurvey {
            steps,
            waits,
            names: whole.names.clone(),
            all_user_of: Some(whole.user_of.clone()),
            ..self
        }
    }

    /// Names of the metrics of a replay: commands by frequency, also those of transactions, then the rest.
    pub fn metrics(&self) -> Vec<String> {
        let in_steps = |name: &str| {
            self.steps.get(name).copied().unwrap_or(0) + self.waits.get(name).copied().unwrap_or(0)
        };
        // What was only sent in transactions, or always waits, is none by itself.
        let alone = self.names.iter().map(|(name, count)| (name.replace('.', "_"), *count));
        let alone = alone.filter(|(name, count)| in_steps(name) == 0 || in_steps(name) < *count);
        let steps = self.steps.iter().map(|(name, count)| (step_name(name), *count));
        let waits = self.waits.iter().map(|(name, count)| (wait_name(name), *count));
        let mut named: Vec<(String, u64)> = alone.chain(steps).chain(waits).collect();
        named.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        let mut all: Vec<String> = Vec::new();
        if !self.steps.is_empty() {
            all.push(MULTI_EXEC.into());
        }
        for name in named.into_iter().map(|(name, _)| name).filter(|name| name != OTHER) {
            if !all.contains(&name) && all.len() < NAMES - 1 {
                all.push(name);
            }
        }
        all.push(OTHER.into());
        all
    }
}

/// Looks at a file: as `options` have it replayed.
///
/// # Errors
/// The file cannot be read, or holds nothing that could be sent.
pub fn survey_file(
    path: &Path,
    options: &ReplayOptions,
) -> Result<(RecordingHeader, RecordingSurvey), RecordingError> {
    let mut reader = RecordingReader::open_file(path)?;
    let header = reader.header().clone();
    let mut found = RecordingSurvey::default();
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    // Of each connection: its first and last time, and whether it listens.
    let mut spans: Vec<(u64, u64)> = Vec::new();
    let mut waiting: BTreeSet<u32> = BTreeSet::new();
    // Of each connection: commands that would be sent, by name, for those that turn out to wait.
    let mut sent: Vec<u64> = Vec::new();
    let mut chooser = Chooser::new(options, header.protocol);
    let is_redis = header.protocol == RecordedProtocol::Redis;
    // Connections with an open transaction.
    let mut open: BTreeSet<u32> = BTreeSet::new();
    let is_scaled = is_redis && (options.speed != Some(1.0) || options.schedule.is_some());
    let mut placer = options.cluster.as_deref().map(Placer::new);
    let mut entry = Entry::default();
    while let Some(event) = reader.next_event(&mut entry)? {
        let is_entry = event == RecordedEvent::Entry;
        let placement = match &mut placer {
            Some(placer) if is_entry && !entry.arguments.is_empty() => placer.place(&entry),
            _ => Placement::SINGLE,
        };
        if is_redis
            && is_entry
            && entry.at_ns < options.from_ns
            && sets_state(&entry.arguments)
            && placement.is_sent()
        {
            // It may be sent at the part's begin.
            counts.entry(entry.arguments.command_name()).or_default();
        }
        let may_wait = is_redis && is_entry && may_wait(&entry.arguments);
        if is_redis && is_entry && options.is_own(entry.connection) {
            // Also before the part: a connection that listens goes on to.
            if may_wait && listens(&entry.arguments) {
                waiting.insert(entry.connection);
            }
            if entry.arguments.is_named("SELECT") && entry.arguments.count() == 2 && placement.is_sent() {
                let chosen: Option<u32> =
                    std::str::from_utf8(entry.arguments.word(1)).ok().and_then(|text| text.parse().ok());
                found.databases.extend(chosen);
            }
        }
        let is_asked = || options.is_in_part(entry.at_ns) && options.is_own(entry.connection);
        if !is_entry || !is_asked() {
            continue;
        }
        if let Some(reason) = chooser.reason_against(&entry) {
            *found.left_out.entry(reason.into()).or_default() += 1;
            continue;
        }
        let waits = may_wait && !open.contains(&entry.connection) && waits_for_data(&entry.arguments);
        if waits && recorded_wait_ns(&entry).is_none() {
            *found.left_out.entry(ENDLESS.into()).or_default() += 1;
            continue;
        }
        match placement {
            Placement::LeftOut(reason) => {
                *found.left_out.entry(reason.into()).or_default() += 1;
                continue;
            }
            Placement::Crosses => {
                *found.crossing.entry(metric_name(&entry)).or_default() += 1;
                continue;
            }
            Placement::Sent(_) | Placement::Split(_) => {}
        }
        let place = entry.connection as usize;
        if place >= spans.len() {
            spans.resize(place + 1, (u64::MAX, 0));
            sent.resize(place + 1, 0);
        }
        sent[place] += 1;
        let (first, last) = &mut spans[place];
        (*first, *last) = ((*first).min(entry.at_ns), (*last).max(entry.at_ns));
        let name = entry.arguments.command_name();
        match counts.get_mut(&name) {
            Some(count) => *count += 1,
            None if !is_redis => drop(counts.insert(name, 1)),
            None => {
                found.examples.insert(name.clone(), entry.arguments.words().map(<[u8]>::to_vec).collect());
                counts.insert(name, 1);
            }
        }
        // They are counted where the speed makes them others.
        found.times_to_live += u64::from(is_scaled && has_relative_time(&entry.arguments));
        if waits {
            *found.waits.entry(metric_name(&entry)).or_default() += 1;
        }
        if header.protocol == RecordedProtocol::Mongodb {
            found.note_document(&entry);
        } else if header.protocol == RecordedProtocol::Memcached {
            if !only_reads(&entry.arguments) {
                *found.writes.entry(entry.arguments.command_name()).or_default() += 1;
            }
        } else if entry.arguments.is_named("MULTI") {
            open.insert(entry.connection);
            *found.steps.entry("MULTI".into()).or_default() += 1;
        } else if open.contains(&entry.connection) {
            *found.steps.entry(metric_name(&entry)).or_default() += 1;
            if is_end(&entry.arguments) {
                open.remove(&entry.connection);
            }
        }
        found.replies += u64::from(entry.reply.is_some());
        found.length_ns = found.length_ns.max(entry.at_ns - options.from_ns);
    }
    found.cut_off = reader.was_cut_off();
    let of_waiting: u64 = waiting.iter().filter_map(|place| sent.get(*place as usize)).sum();
    if of_waiting > 0 {
        found.left_out.insert("commands of connections that listen for messages".into(), of_waiting);
    }
    for connection in &waiting {
        if let Some(span) = spans.get_mut(*connection as usize) {
            *span = (u64::MAX, 0);
        }
    }
    found.commands = sent.iter().sum::<u64>() - of_waiting;
    (found.user_of, found.users, found.connections) = users_of(&spans, USERS);
    if is_redis && found.users < found.connections && options.cluster.is_none() {
        // A user that goes on with another connection goes back to its database.
        counts.entry("SELECT".into()).or_default();
    }
    found.names = counts.into_iter().collect();
    found.names.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    if found.commands == 0 { Err(RecordingError::Empty) } else { Ok((header, found)) }
}

/// The user of each connection, given their first and last times; the number of users, and that of connections. More connections
/// than `limit` share users, one after the other, so that no two are used at a time.
fn users_of(spans: &[(u64, u64)], limit: usize) -> (Vec<u32>, u32, u32) {
    let mut order: Vec<usize> = (0..spans.len()).filter(|place| spans[*place].0 != u64::MAX).collect();
    order.sort_by_key(|place| spans[*place].0);
    let mut user_of = vec![NO_USER; spans.len()];
    let mut users = 0u32;
    let mut free: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    for place in &order {
        let (first, last) = spans[*place];
        let again = match free.peek() {
            Some(Reverse((ended, user))) if order.len() > limit && *ended < first => Some(*user),
            _ => None,
        };
        let user = again.unwrap_or(users);
        if again.is_some() {
            free.pop();
        } else {
            users += 1;
        }
        free.push(Reverse((last, user)));
        user_of[*place] = user;
    }
    (user_of, users, order.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_share_users_only_where_there_are_too_many() {
        let spans = [(0, 10), (5, 6), (u64::MAX, 0), (7, 20), (11, 12)];
        assert_eq!(users_of(&spans, 4), (vec![0, 1, NO_USER, 2, 3], 4, 4));
        // The second ends before the third begins, and the first before the fourth.
        assert_eq!(users_of(&spans, 3), (vec![0, 1, NO_USER, 1, 0], 2, 4));
    }
}
