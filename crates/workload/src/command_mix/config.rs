//! The workload as described.

use crate::template::{NumberDistribution, ValueTemplate};
use crate::ycsb::BadProperty;
use dyno_types::command::{KeptReply, ReplyExpectation, SentStamp};
use dyno_types::metric::{DELIVERY, HITS, MISSES, OWN, WAIT};
use std::collections::HashSet;

/// Operations that a mix may have.
const OPERATIONS: usize = 20_000;
/// Commands that read several elements and answer each, with nil where it is not there.
const BY_ELEMENT: [&[u8]; 6] = [b"MGET", b"HMGET", b"ZMSCORE", b"GEOPOS", b"GEOHASH", b"JSON.MGET"];
/// Commands that subscribe to messages.
const SUBSCRIBING: [&[u8]; 3] = [b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE"];
/// Names that operations beside the mix may have.
const OWN_NAMES: usize = 50;

/// A part of the name of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberedText {
    /// These bytes.
    Literal(Vec<u8>),
    /// The key's number, with at least so many digits.
    Number(usize),
}

/// A key space: keys with numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedKeys {
    /// Name in the file.
    pub name: String,
    /// Number of keys.
    pub count: u64,
    /// Number of the first key.
    pub first: u64,
    /// How keys are called.
    pub format: Vec<NumberedText>,
    /// Distribution by which keys are drawn, unless an argument has its own.
    pub spread: NumberDistribution,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum TextPart {
    /// These bytes.
    Literal(Vec<u8>),
    /// A value that is drawn here.
    Value(ValueTemplate),
    /// A value that the operation has drawn once, by its number.
    Bound(u16),
    /// A kept part of an earlier reply, by its number.
    Reply(u16),
    /// Number of the user.
    User,
    /// The time at which it is sent, nanoseconds since 1970.
    Sent,
}

/// An argument: its parts, one after the other.
pub type ArgumentText = Vec<TextPart>;

/// Meaning of an empty reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissRule {
    /// The outcome `not_found`, if the server says that the command only reads.
    #[default]
    Reads,
    /// Nothing in particular; a later step may depend on it.
    Accepted,
    /// The outcome `not_found`, whatever the command is.
    NotFound,
}

/// Condition of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepCondition {
    /// The step before it found nothing.
    Miss,
    /// The step before it found something.
    Hit,
}

/// A command of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandStep {
    /// Name within the operation.
    pub name: String,
    /// The command's name and its arguments.
    pub arguments: Vec<ArgumentText>,
    /// Numbers of the arguments that are keys; `None`: the server is asked.
    pub keys: Option<Vec<u16>>,
    /// Demands on its reply.
    pub expect: ReplyExpectation,
    /// Meaning of an empty reply.
    pub miss: MissRule,
    /// Condition on which it is sent.
    pub when: Option<StepCondition>,
    /// Parts of its reply that later steps use.
    pub keeps: Vec<KeptReply>,
    /// Number of the script that it calls, where it calls one by its digest.
    pub script: Option<usize>,
    /// Where messages in its reply have the time at which they were sent.
    pub delivery: Option<SentStamp>,
}

impl CommandStep {
    /// Returns whether each element of its reply is one that was asked for, found or not.
    pub fn answers_by_element(&self) -> bool {
        match self.arguments.first().map(Vec::as_slice) {
            Some([TextPart::Literal(name)]) => BY_ELEMENT.iter().any(|one| name.eq_ignore_ascii_case(one)),
            _ => false,
        }
    }

    /// Returns whether it subscribes to messages.
    pub fn subscribes(&self) -> bool {
        match self.arguments.first().map(Vec::as_slice) {
            Some([TextPart::Literal(name)]) => SUBSCRIBING.iter().any(|one| name.eq_ignore_ascii_case(one)),
            _ => false,
        }
    }
}

/// How the commands of an operation follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StepMode {
    /// Each is sent after the reply to the one before.
    #[default]
    Ordered,
    /// All are sent at once.
    Pipelined,
    /// All are one transaction, `MULTI` to `EXEC`.
    Atomic,
}

/// A named operation.
#[derive(Clone, Debug, PartialEq)]
pub struct MixOperation {
    /// Name, which no other operation has.
    pub name: String,
    /// Name under which it is measured together with others of the same commands; `None`: by itself, under its own.
    pub group: Option<String>,
    /// Weight among all.
    pub weight: f64,
    /// Values that are drawn once and used by several arguments.
    pub bound: Vec<ArgumentText>,
    /// True if these differ from each other: one that is like an earlier one is drawn again.
    pub different: bool,
    /// Its commands, in order.
    pub steps: Vec<CommandStep>,
    /// How they follow each other.
    pub mode: StepMode,
    /// True if it was written as a list: its steps have names in results.
    pub has_steps: bool,
    /// Users or a rate of its own, beside the mix.
    pub own: Option<OwnLoad>,
}

/// Load of an operation that is not part of the mix.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OwnLoad {
    /// Users, or connections where there is a rate.
    pub users: Option<u32>,
    /// Operations per second; `None`: each user sends the next one after the reply to the one before.
    pub rate: Option<f64>,
    /// True if its commands wait for data at the server.
    pub blocking: bool,
}

impl MixOperation {
    /// Returns whether its commands are requests of their own, each measured.
    pub(super) fn is_script(&self) -> bool {
        self.has_steps && self.mode == StepMode::Ordered
    }

    /// Returns whether each request of it is one command.
    pub(super) fn has_requests(&self) -> bool {
        self.is_script() || !self.has_steps
    }

    /// Steps whose elements are counted, with their numbers: of those that are requests by themselves.
    pub(super) fn steps_by_element(&self) -> impl Iterator<Item = (usize, &CommandStep)> {
        let steps = self.steps.iter().enumerate().filter(|_| self.has_requests());
        steps.filter(|(_, step)| step.answers_by_element())
    }

    /// Returns whether messages in its replies have stamps: their times are the last metric of it.
    pub(super) fn has_deliveries(&self) -> bool {
        self.own.is_some() && self.steps.iter().any(|step| step.delivery.is_some())
    }

    /// Names under which it is measured: its own, and those of steps that are measured.
    pub(super) fn metrics(&self) -> Vec<String> {
        let name = self.group.as_ref().unwrap_or(&self.name);
        let whole = match &self.own {
            None => name.clone(),
            Some(own) => format!("{name}.{}", if own.blocking { WAIT } else { OWN }),
        };
        let steps = self.steps.iter().filter(|_| self.is_script());
        let mut all: Vec<String> = steps.map(|step| format!("{whole}.{}", step.name)).collect();
        all.insert(0, whole);
        for (number, _) in self.steps_by_element() {
            let of = &all[if self.is_script() { number + 1 } else { 0 }];
            let counts = [format!("{of}.{HITS}"), format!("{of}.{MISSES}")];
            all.extend(counts);
        }
        all.extend(self.has_deliveries().then(|| format!("{name}.{DELIVERY}")));
        all
    }
}

/// A command of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadItem {
    /// Number of the key space for each key of which it is sent; `None`: once.
    pub each: Option<usize>,
    /// The command.
    pub step: CommandStep,
}

/// Rows of a data file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataTable {
    /// Name in the file.
    pub name: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<Vec<u8>>>,
    /// True if rows are taken in order, else drawn.
    pub in_order: bool,
}

/// A script that the server must have before it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Name in the file.
    pub name: String,
    /// Its text.
    pub body: Vec<u8>,
    /// True if it is a library of functions, else a script that is called by its digest.
    pub function: bool,
}

/// A workload of commands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandMix {
    /// Key spaces.
    pub keys: Vec<NamedKeys>,
    /// Data files.
    pub tables: Vec<DataTable>,
    /// Scripts.
    pub scripts: Vec<Script>,
    /// The mix.
    pub operations: Vec<MixOperation>,
    /// Commands that fill the database first.
    pub load: Vec<LoadItem>,
    /// Seed of all draws.
    pub seed: u64,
}

impl CommandMix {
    /// All commands: those of the operations, then those of the load.
    pub fn steps(&self) -> impl Iterator<Item = &CommandStep> {
        let load = self.load.iter().map(|item| &item.step);
        self.operations.iter().flat_map(|operation| &operation.steps).chain(load)
    }

    /// The name of the operation or the part of the load that command number `number` belongs to.
    pub fn owner(&self, number: usize) -> &str {
        let owners = self.operations.iter().flat_map(|one| one.steps.iter().map(|_| one.name.as_str()));
        owners.chain(self.load.iter().map(|_| "load")).nth(number).unwrap_or_default()
    }

    /// Returns whether an argument has the number of the user in it.
    pub fn uses_users(&self) -> bool {
        let bound = self.operations.iter().flat_map(|operation| &operation.bound);
        let arguments =
            self.operations.iter().flat_map(|one| one.steps.iter().flat_map(|step| &step.arguments));
        bound.chain(arguments).flatten().any(|part| *part == TextPart::User)
    }

    /// Refuses what cannot be run; keys are those of the file.
    pub fn check(&self) -> Result<(), BadProperty> {
        if self.operations.is_empty() || self.operations.len() > OPERATIONS {
            let expected = format!("1 to {OPERATIONS} commands");
            return Err(BadProperty::new("commands", self.operations.len(), expected));
        }
        let own: usize =
            self.operations.iter().filter(|one| one.own.is_some()).map(|one| one.metrics().len()).sum();
        if own > OWN_NAMES {
            let expected =
                format!("at most {OWN_NAMES} names of commands and steps with users or a rate of their own");
            return Err(BadProperty::new("commands", own, expected));
        }
        let names: Vec<&str> = self.operations.iter().map(|one| one.name.as_str()).collect();
        let mixed = || self.operations.iter().filter(|one| one.own.is_none());
        if mixed().next().is_none() {
            let expected = "at least one command without users or a rate of its own";
            return Err(BadProperty::new("commands", names.join(", "), expected));
        }
        let sum: f64 = mixed().map(|one| one.weight).sum();
        if !sum.is_finite() || sum <= 0.0 || self.operations.iter().any(|one| one.weight < 0.0) {
            return Err(BadProperty::new("weight", sum, "weights from 0 on, not all of them 0"));
        }
        let mut known = HashSet::new();
        if let Some(name) = names.iter().find(|name| !known.insert(**name)) {
            return Err(BadProperty::new("name", name, "names that differ"));
        }
        let empty = |one: &&MixOperation| {
            one.steps.is_empty() || one.steps.iter().any(|step| step.arguments.is_empty())
        };
        match self.operations.iter().find(empty) {
            Some(one) => {
                Err(BadProperty::new("command", &one.name, "at least one command of at least one word"))
            }
            None => Ok(()),
        }
    }
}
