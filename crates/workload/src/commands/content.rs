//! Requests into arguments.

use super::clients::Clients;
use super::config::{ArgumentPart, CommandOperation, Commands, DataSize, ImportedRecord, KeySpace, Pattern};
use crate::keys::push_decimal;
use dyno_types::command::{CommandTemplate, Traffic};
use dyno_types::rng::{self, Purpose, Stream};
use dyno_types::{Content, Request};
use std::f64::consts::TAU;
use std::sync::atomic::{AtomicU64, Ordering};

/// Draws that a normal distribution gets to hit the keys, before the nearest one is taken.
const TRIES: usize = 1_000;

/// Renders the arguments of commands.
#[derive(Debug)]
pub struct CommandContent {
    commands: Commands,
    templates: Vec<CommandTemplate>,
    /// Bytes sent, bytes received, hits and misses, of each operation.
    traffic: Vec<[AtomicU64; 4]>,
    /// How each operation counts through its keys.
    counts: Vec<Count>,
    /// What each user came to.
    pub(super) clients: Option<Clients>,
    /// Of each user: where its last reply ended, and how often in a row it has gone on from there.
    cursors: Vec<[AtomicU64; 2]>,
}

/// Numbers of an operation that counts through its keys.
#[derive(Clone, Copy, Debug)]
struct Count {
    /// Numbers that one of it uses.
    keys: u64,
    /// How often it comes in a turn.
    turns: u64,
    /// Numbers of a turn that others use before it, and all of a turn.
    before: u64,
    whole: u64,
}

/// Returns whether a part uses a number of the keys.
fn is_key(part: &ArgumentPart) -> bool {
    matches!(part, ArgumentPart::Key(_) | ArgumentPart::KeyOfRecord)
}

/// How operations count: those that go on share what they count through.
fn counts(operations: &[CommandOperation]) -> Vec<Count> {
    let keys = |operation: &CommandOperation| {
        let parts = operation.commands.iter().flatten().flatten();
        (parts.filter(|part| is_key(part)).count() as u64).max(1)
    };
    let mut all: Vec<Count> = Vec::new();
    let mut first = 0;
    for (number, operation) in operations.iter().enumerate() {
        if !operation.goes_on {
            first = number;
        }
        let (keys, turns) = (keys(operation), operation.turns.max(1));
        let before = all[first..].iter().map(|count| count.keys * count.turns).sum();
        all.push(Count { keys, turns, before, whole: 0 });
        let whole = before + keys * turns;
        all[first..].iter_mut().for_each(|count| count.whole = whole);
    }
    all
}

impl CommandContent {
    /// Of checked commands.
    pub(super) fn new(commands: &Commands) -> Self {
        let traffic = commands.operations.iter().map(|_| Default::default()).collect();
        CommandContent {
            counts: counts(&commands.operations),
            clients: commands.by_user.then(|| Clients::new(commands.users, commands.operations.len())),
            cursors: commands
                .iterates
                .map_or(0..0, |_| 0..commands.users)
                .map(|_| Default::default())
                .collect(),
            templates: commands.templates(),
            commands: commands.clone(),
            traffic,
        }
    }

    pub(super) fn commands_of(&self) -> &Commands {
        &self.commands
    }

    /// What was exchanged for the operations of this number so far.
    pub(super) fn traffic(&self, operation: usize) -> Traffic {
        let [sent, received, hits, misses] =
            self.traffic[operation].each_ref().map(|sum| sum.load(Ordering::Relaxed));
        Traffic { sent, received, hits, misses }
    }

    /// The number of a request's key, of which it has several.
    fn number(&self, request: &Request, place: u64) -> u64 {
        let operation = usize::from(request.shape);
        let space = &self.commands.operations[operation].space;
        let user = u64::from(request.collection);
        let (min, max) = space.of_user(user, self.commands.users);
        let count = max - min + 1;
        match space.pattern {
            Pattern::Sequential | Pattern::Parallel => {
                let own = self.counts[operation];
                let cycles = (request.key / own.turns).wrapping_mul(own.whole);
                let within = own.before + request.key % own.turns * own.keys;
                min + cycles.wrapping_add(within).wrapping_add(place) % count
            }
            _ => drawn(space, &mut Stream::new(request.seed, place, Purpose::Key)),
        }
    }

    /// Where a user's last reply ended.
    pub(super) fn cursor(&self, user: u32) -> u64 {
        self.cursors.get(user as usize).map_or(0, |[at, _]| at.load(Ordering::Relaxed))
    }

    /// The record whose turn it is.
    pub(super) fn record(&self, request: &Request) -> &ImportedRecord {
        let all = &self.commands.records.all;
        &all[(request.key % all.len().max(1) as u64) as usize]
    }

    /// The key of the record of this number, from 1 on.
    fn key_of_record(&self, number: u64) -> &[u8] {
        let all = &self.commands.records.all;
        &all[(number.saturating_sub(1) % all.len().max(1) as u64) as usize].key
    }

    fn size(&self, request: &Request, place: u64) -> u32 {
        match &self.commands.size {
            DataSize::Uniform(least, most) if least == most => *least,
            DataSize::Uniform(least, most) => {
                let mut stream = Stream::new(request.seed, place, Purpose::Choice);
                least + stream.next_below(u64::from(most - least) + 1) as u32
            }
            DataSize::ByKey(least, most) => {
                let space = &self.commands.operations[usize::from(request.shape)].space;
                let (min, max) = space.of_user(u64::from(request.collection), self.commands.users);
                let part = (self.number(request, 0) - min) as f64 / (max - min).max(1) as f64;
                least + (f64::from(most - least) * part) as u32
            }
            DataSize::Turns(all) => {
                let whole: u64 = all.iter().map(|(_, count)| count).sum();
                let mut at = request.key % whole.max(1);
                let found = all.iter().find(|(_, count)| match at.checked_sub(*count) {
                    Some(rest) => {
                        at = rest;
                        false
                    }
                    None => true,
                });
                found.map_or(0, |(size, _)| *size)
            }
        }
    }

    fn value(&self, request: &Request, place: u64, out: &mut Vec<u8>) {
        if let Some(fixed) = &self.commands.fixed {
            return out.extend_from_slice(fixed);
        }
        let end = out.len() + self.size(request, place) as usize;
        if self.commands.random {
            let mut stream = Stream::new(request.seed, place, Purpose::Value);
            while out.len() < end {
                let bytes = stream.next_u64().to_le_bytes();
                out.extend_from_slice(&bytes[..(end - out.len()).min(8)]);
            }
        } else {
            out.resize(end, b'x');
        }
    }
}

/// The number of a key, drawn.
fn drawn(space: &KeySpace, stream: &mut Stream) -> u64 {
    match &space.pattern {
        Pattern::Gaussian { median, deviation } => {
            normal((*median, *deviation), (space.min, space.max), stream)
        }
        Pattern::Zipfian(zipf) => {
            // Rank 1 is the least key above 0.
            let min = space.min.max(1).min(space.max);
            min + zipf.rank(space.max - min + 1, stream)
        }
        _ => space.min + stream.next_below(space.count()),
    }
}

/// A normally distributed number from `min` to `max`.
fn normal((median, deviation): (f64, f64), (min, max): (u64, u64), stream: &mut Stream) -> u64 {
    for _ in 0..TRIES {
        // Box and Muller (1958); the logarithm is of 1 or less, and not of 0.
        let radius = (-2.0 * (1.0 - stream.next_unit()).ln()).sqrt();
        let number = median + deviation * radius * (TAU * stream.next_unit()).cos();
        if number >= min as f64 && number < max as f64 + 1.0 {
            return number as u64;
        }
    }
    (median as u64).clamp(min, max)
}

fn padded(number: u64, digits: usize, out: &mut Vec<u8>) {
    let at = out.len();
    push_decimal(number, out);
    let written = out.len() - at;
    if written < digits {
        out.splice(at..at, std::iter::repeat_n(b'0', digits - written));
    }
}

impl Content for CommandContent {
    fn table(&self) -> &'static str {
        ""
    }

    fn key(&self, request: &Request, out: &mut Vec<u8>) {
        push_decimal(self.number(request, 0), out);
    }

    fn fields(&self, _request: &Request) -> usize {
        0
    }

    fn name(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn value_len(&self, _request: &Request, _field: usize) -> usize {
        0
    }

    fn value(&self, _request: &Request, _field: usize, _out: &mut Vec<u8>) {}

    fn commands(&self) -> &[CommandTemplate] {
        &self.templates
    }

    fn expected(&self, request: &Request) -> Option<&[u8]> {
        let verifies = self.commands.records.verify && request.shape == 0;
        verifies.then(|| self.record(request).value.as_slice())
    }

    fn follows(&self, _request: &Request) -> bool {
        self.commands.iterates.is_some()
    }

    fn ends_at(&self, request: &Request, cursor: Option<u64>) {
        let Some(most) = self.commands.iterates else { return };
        let [at, times] = &self.cursors[request.collection as usize];
        let cursor = cursor.unwrap_or(0);
        let gone_on = times.load(Ordering::Relaxed) + u64::from(request.shape == 1);
        let goes_on = cursor != 0 && (most == 0 || gone_on < most);
        at.store(if goes_on { cursor } else { 0 }, Ordering::Relaxed);
        times.store(if goes_on { gone_on } else { 0 }, Ordering::Relaxed);
    }

    fn counts_each(&self) -> bool {
        self.clients.is_some()
    }

    fn exchanged_for(&self, request: &Request, traffic: Traffic) {
        if let Some(clients) = &self.clients {
            clients.exchanged(request.collection, traffic);
        }
    }

    fn exchanged(&self, template: u16, more: Traffic) {
        let sums = &self.traffic[usize::from(template)];
        for (sum, count) in sums.iter().zip([more.sent, more.received, more.hits, more.misses]) {
            sum.fetch_add(count, Ordering::Relaxed);
        }
    }

    fn argument(&self, request: &Request, command: u32, argument: u16, out: &mut Vec<u8>) {
        let operation = &self.commands.operations[usize::from(request.shape)];
        let commands = &operation.commands;
        let parts = &commands[command as usize][usize::from(argument)];
        // Of several keys each has its own place in the turn.
        let mut place = None;
        for (at, part) in parts.iter().enumerate() {
            match part {
                ArgumentPart::Literal(bytes) => out.extend_from_slice(bytes),
                ArgumentPart::Data => {
                    self.value(request, u64::from(command) << 16 | u64::from(argument), out)
                }
                ArgumentPart::Key(_) | ArgumentPart::KeyOfRecord => {
                    let first = place.get_or_insert_with(|| {
                        let before = commands[..command as usize].iter().flatten();
                        let beside = &commands[command as usize][..usize::from(argument)];
                        before.chain(beside).flatten().filter(|part| is_key(part)).count() as u64
                    });
                    let number = self.number(request, *first);
                    *first += 1;
                    match part {
                        ArgumentPart::Key(digits) => padded(number, *digits, out),
                        _ => out.extend_from_slice(self.key_of_record(number)),
                    }
                }
                ArgumentPart::Cursor => push_decimal(self.cursor(request.collection), out),
                ArgumentPart::RecordKey => out.extend_from_slice(&self.record(request).key),
                ArgumentPart::RecordValue => out.extend_from_slice(&self.record(request).value),
                ArgumentPart::RecordExpiry => push_decimal(u64::from(self.record(request).expiry_s), out),
                ArgumentPart::Middling(least, most) => {
                    let own = u64::from(command) << 32 | u64::from(argument) << 16 | at as u64;
                    let (middle, width) = ((least + most) as f64 / 2.0, (most - least) as f64);
                    let mut stream = Stream::new(request.seed, own, Purpose::Choice);
                    let number = match least == most {
                        true => *least,
                        false => normal((middle, width / 6.0), (*least, *most), &mut stream),
                    };
                    push_decimal(number, out);
                }
                ArgumentPart::Number { range: (least, most), digits, group } => {
                    let own = u64::from(command) << 32 | u64::from(argument) << 16 | at as u64;
                    let number = group.map_or(own, |group| 1 << 63 | u64::from(group));
                    let bits = rng::draw_at(request.seed, number, Purpose::Choice);
                    let span = u128::from(most - least) + 1;
                    padded(least + ((u128::from(bits) * span) >> 64) as u64, *digits, out);
                }
            }
        }
    }
}
