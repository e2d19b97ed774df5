//! The workload as described.

use crate::distributions::RejectionInversion;
use crate::ycsb::BadProperty;
use dyno_types::command::{CommandArgument, CommandForm, CommandTemplate};
use dyno_types::limits::METRICS;
use std::sync::Arc;

/// Way in which the numbers of keys follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// All equally often.
    Uniform,
    /// Each user counts through all of them.
    Sequential,
    /// Each user counts through a part of its own.
    Parallel,
    /// A normal distribution about `median`, drawn anew until it lies within.
    Gaussian {
        /// Centre.
        median: f64,
        /// Standard deviation.
        deviation: f64,
    },
    /// The lowest ones most often.
    Zipfian(RejectionInversion),
}

/// Keys that an operation asks for: numbers from `min` to `max`, both of them included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeySpace {
    /// Least number.
    pub min: u64,
    /// Greatest number.
    pub max: u64,
    /// How they follow each other.
    pub pattern: Pattern,
}

impl KeySpace {
    /// Number of keys, at least 1.
    pub fn count(&self) -> u64 {
        self.max.saturating_sub(self.min).saturating_add(1)
    }

    /// Keys of a user, of which there are `users`: the least and the greatest.
    pub fn of_user(&self, user: u64, users: u64) -> (u64, u64) {
        if self.pattern != Pattern::Parallel {
            return (self.min, self.max);
        }
        let part = self.max.saturating_sub(self.min) / users.max(1) + 1;
        let min = (self.min + part * user).min(self.max);
        (min, if user + 1 >= users { self.max } else { (min + part - 1).min(self.max) })
    }
}

/// Length of a value, bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum DataSize {
    /// From the first to the second.
    Uniform(u32, u32),
    /// From the first for the least key to the second for the greatest.
    ByKey(u32, u32),
    /// Each so many times in turn.
    Turns(Vec<(u32, u64)>),
}

impl DataSize {
    /// The longest one.
    pub fn most(&self) -> u32 {
        match self {
            DataSize::Uniform(_, most) | DataSize::ByKey(_, most) => *most,
            DataSize::Turns(all) => all.iter().map(|(size, _)| *size).max().unwrap_or(0),
        }
    }
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentPart {
    /// These bytes.
    Literal(Vec<u8>),
    /// The number of a key, with at least so many digits.
    Key(usize),
    /// A number from the first to the second, with at least so many digits; those of one group are equal within an operation.
    Number {
        /// Least and greatest.
        range: (u64, u64),
        /// Least number of digits.
        digits: usize,
        /// Group; `None`: a number of its own.
        group: Option<u16>,
    },
    /// A number from the first to the second, those in the middle most often: normally distributed, six standard deviations
    /// wide.
    Middling(u64, u64),
    /// The value.
    Data,
    /// Where the user's last reply ended.
    Cursor,
    /// Of the record whose turn it is: its key.
    RecordKey,
    /// The same: its value.
    RecordValue,
    /// The same: the seconds that it lives.
    RecordExpiry,
    /// The key of the record that has the number of the key: 1 is the first.
    KeyOfRecord,
}

/// A record that is written as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportedRecord {
    /// Key.
    pub key: Vec<u8>,
    /// Value.
    pub value: Vec<u8>,
    /// Seconds that it lives; 0: for ever.
    pub expiry_s: u32,
}

/// Records that users write in order, each user all of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImportedRecords {
    /// The records.
    pub all: Arc<[ImportedRecord]>,
    /// Number of the operation that takes the first one's place for records that do not live for ever; it has no turns.
    pub expiring: Option<usize>,
    /// True if replies to the first operation must be the value of its record.
    pub verify: bool,
}

/// A named operation.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandOperation {
    /// Name under which it is measured.
    pub name: String,
    /// How often in a row a user does it.
    pub turns: u64,
    /// Its commands, in order: arguments, each of parts.
    pub commands: Vec<Vec<Vec<ArgumentPart>>>,
    /// Number of the argument that is the key, of each command.
    pub keys: Vec<Option<u16>>,
    /// True if it changes data.
    pub writes: bool,
    /// True if an empty answer means that nothing was found.
    pub misses: bool,
    /// Keys that it asks for.
    pub space: KeySpace,
    /// Its keys go on where those of the operation before it end: both count through the same ones.
    pub goes_on: bool,
}

/// An operation that a user does first, and then after each so many of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// Its number; it has no turns of its own.
    pub operation: usize,
    /// Number of the other one.
    pub after: usize,
    /// So many of the other one, from 1 on.
    pub every: u64,
}

/// Operations that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Commands {
    /// The operations, in the order of a user's turn.
    pub operations: Vec<CommandOperation>,
    /// One that comes between them.
    pub between: Option<Between>,
    /// Users.
    pub users: u64,
    /// Length of values.
    pub size: DataSize,
    /// True if values are random bytes, else all are `x`.
    pub random: bool,
    /// The value that all operations have instead.
    pub fixed: Option<Vec<u8>>,
    /// Most of the second operation in a row, 0 for any number, where it goes on from where the replies to the first one and its
    /// own end: until they end at 0. It has no turns of its own.
    pub iterates: Option<u64>,
    /// True if it is kept what each user came to.
    pub by_user: bool,
    /// Records that are written as they are.
    pub records: ImportedRecords,
    /// Seed of keys, sizes and values.
    pub seed: u64,
    /// True if every user draws its own, else all draw the same.
    pub apart: bool,
    /// The only operation stands for the first one of others: it draws what that one drew.
    pub stands_for: Option<FirstOf>,
}

/// The first of the operations of others, as another workload does them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstOf {
    /// Operations of a whole turn there.
    pub cycle: u64,
    /// Users there, of whom the first one is followed.
    pub users: u64,
}

impl Commands {
    /// Operations of a whole turn.
    pub fn cycle(&self) -> u64 {
        self.operations.iter().map(|operation| operation.turns).sum()
    }

    /// Refuses what cannot be run.
    ///
    /// # Errors
    /// Names what is wrong.
    pub fn check(&self) -> Result<(), BadProperty> {
        if self.operations.is_empty() || self.operations.len() > METRICS - 2 {
            return Err(BadProperty::new(
                "commands",
                self.operations.len(),
                format!("1 to {} operations", METRICS - 2),
            ));
        }
        if self.cycle() == 0 {
            return Err(BadProperty::new("ratio", 0, "one above 0"));
        }
        let records = [
            ArgumentPart::RecordKey,
            ArgumentPart::RecordValue,
            ArgumentPart::RecordExpiry,
            ArgumentPart::KeyOfRecord,
        ];
        let parts = || self.operations.iter().flat_map(|operation| &operation.commands).flatten().flatten();
        if self.records.all.is_empty() && parts().any(|part| records.contains(part)) {
            return Err(BadProperty::new("records", 0, "at least one"));
        }
        if let Some(between) = self.between.filter(|between| between.every == 0) {
            return Err(BadProperty::new("between", between.every, "after 1 or more"));
        }
        for operation in &self.operations {
            let (min, max) = (operation.space.min, operation.space.max);
            if min > max {
                return Err(BadProperty::new(
                    "keys",
                    format!("{min} to {max}"),
                    "a least one below the greatest",
                ));
            }
        }
        Ok(())
    }

    /// The operations as a driver compiles them.
    pub(super) fn templates(&self) -> Vec<CommandTemplate> {
        let argument = |parts: &Vec<ArgumentPart>| match parts.as_slice() {
            [] => CommandArgument::Literal(Vec::new()),
            [ArgumentPart::Literal(bytes)] => CommandArgument::Literal(bytes.clone()),
            _ if self.is_fixed(parts) => {
                let mut whole = Vec::new();
                for part in parts {
                    match part {
                        ArgumentPart::Literal(bytes) => whole.extend_from_slice(bytes),
                        _ => whole.extend_from_slice(self.fixed.as_deref().unwrap_or_default()),
                    }
                }
                CommandArgument::Literal(whole)
            }
            _ => CommandArgument::Rendered,
        };
        let form = |operation: &CommandOperation, (number, arguments): (usize, &Vec<Vec<ArgumentPart>>)| {
            CommandForm {
                arguments: arguments.iter().map(argument).collect(),
                key: operation.keys.get(number).copied().flatten(),
                writes: operation.writes,
                misses: operation.misses,
                ..CommandForm::default()
            }
        };
        let template = |operation: &CommandOperation| CommandTemplate {
            name: operation.name.clone(),
            commands: operation.commands.iter().enumerate().map(|one| form(operation, one)).collect(),
            atomic: false,
        };
        self.operations.iter().map(template).collect()
    }

    fn is_fixed(&self, parts: &[ArgumentPart]) -> bool {
        parts.iter().all(|part| match part {
            ArgumentPart::Literal(_) => true,
            ArgumentPart::Data => self.fixed.is_some(),
            _ => false,
        })
    }
}
