//! The workload as described.

use super::value::Value;
use crate::ycsb::BadProperty;
use dyno_types::document::Action;
use dyno_types::limits::METRICS;

/// An index: its name, and its fields, ascending (1) or descending (-1).
pub type Index = (String, Vec<(String, i32)>);

/// A collection and its documents.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// Documents that are loaded: numbers 0 to `count` - 1.
    pub count: u64,
    /// `_id` of each.
    pub id: Value,
    /// The other fields, in order.
    pub fields: Vec<(String, Value)>,
    /// Indexes.
    pub indexes: Vec<Index>,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Inserts so many new documents by one command.
    Insert(u32),
    /// Anything else: an action whose operands are `values`, by their numbers.
    Action(Box<Action>),
}

/// A named operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The name under which it is measured.
    pub name: String,
    /// Its weight among all.
    pub weight: f64,
    /// Number of the collection it works on.
    pub collection: usize,
    /// What it does.
    pub kind: Kind,
    /// Its operands.
    pub values: Vec<Value>,
}

/// A workload of one's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The data.
    pub collections: Vec<Collection>,
    /// The mix.
    pub operations: Vec<Operation>,
    /// Seed of data and operations.
    pub seed: u64,
    /// Documents of one insert of the load.
    pub batch: u32,
}

impl Template {
    /// Refuses what cannot be run; keys are those of the file.
    pub fn check(&self) -> Result<(), BadProperty> {
        let bad = |key: &str, value: &dyn std::fmt::Display, expected: String| {
            Err(BadProperty::new(key, value, expected))
        };
        if self.collections.is_empty() {
            return bad("collections", &"none", "at least one collection".into());
        }
        if self.operations.is_empty() || self.operations.len() > METRICS - 2 {
            let expected = format!("1 to {} operations", METRICS - 2);
            return bad("operations", &self.operations.len(), expected);
        }
        let sum: f64 = self.operations.iter().map(|o| o.weight).sum();
        if !sum.is_finite() || sum <= 0.0 || self.operations.iter().any(|o| o.weight < 0.0) {
            return bad("weight", &sum, "weights from 0 on, not all of them 0".into());
        }
        for (number, operation) in self.operations.iter().enumerate() {
            if self.operations[..number].iter().any(|other| other.name == operation.name) {
                return bad("name", &operation.name, "names that differ".into());
            }
        }
        for collection in &self.collections {
            if collection.id.refers() {
                return bad("_id", &collection.name, "a value that depends on no other document".into());
            }
        }
        if self.batch == 0 {
            return bad("batch", &0, "1 or more documents".into());
        }
        Ok(())
    }
}
