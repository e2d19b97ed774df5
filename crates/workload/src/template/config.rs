//! The workload as described.

use super::value::ValueTemplate;
use crate::ycsb::BadProperty;
use dyno_types::document::{Action, Change};
use dyno_types::limits::METRICS;

/// An index: its name, and its fields, ascending (1) or descending (-1).
pub type TemplateIndex = (String, Vec<(String, i32)>);

/// A collection and its documents.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateCollection {
    /// Name.
    pub name: String,
    /// Documents that are loaded: numbers 0 to `count` - 1.
    pub count: u64,
    /// `_id` of each.
    pub id: ValueTemplate,
    /// The other fields, in order.
    pub fields: Vec<(String, ValueTemplate)>,
    /// Indexes.
    pub indexes: Vec<TemplateIndex>,
}

/// Action of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationKind {
    /// Inserts so many new documents by one command.
    Insert(u32),
    /// Anything else: an action whose operands are `values`, by their numbers.
    Action(Box<Action>),
}

/// A named operation.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateOperation {
    /// The name under which it is measured.
    pub name: String,
    /// Weight among all.
    pub weight: f64,
    /// Steps of the operation: one request, or those of a transaction.
    pub steps: Vec<OperationStep>,
    /// True if the steps are one transaction.
    pub transaction: bool,
}

/// One request of an operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationStep {
    /// Name within a transaction.
    pub name: String,
    /// Number of the collection it works on.
    pub collection: usize,
    /// Action of the step.
    pub kind: OperationKind,
    /// Operands.
    pub values: Vec<ValueTemplate>,
}

impl TemplateOperation {
    /// Documents that its steps before number `step` insert.
    pub(super) fn inserts_before(&self, step: usize) -> u64 {
        let count = |step: &OperationStep| {
            if let OperationKind::Insert(count) = step.kind { u64::from(count) } else { 0 }
        };
        self.steps[..step].iter().map(count).sum()
    }

    /// Names under which it is measured: its own, and those of a transaction's requests.
    pub(super) fn metrics(&self) -> Vec<String> {
        let mut all = vec![self.name.clone()];
        if self.transaction {
            let steps = self.steps.iter().map(|step| step.name.as_str()).chain(["commit", "abort"]);
            all.extend(steps.map(|step| format!("{}.{step}", self.name)));
        }
        all
    }
}

/// A workload of one's own.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadTemplate {
    /// The data.
    pub collections: Vec<TemplateCollection>,
    /// The mix.
    pub operations: Vec<TemplateOperation>,
    /// Seed of data and operations.
    pub seed: u64,
    /// Documents of one insert of the load.
    pub batch: u32,
}

impl WorkloadTemplate {
    /// Documents that one of each operation can insert, by the operation's name.
    pub fn inserts(&self) -> impl Iterator<Item = (&str, u64)> {
        let inserts = |step: &OperationStep| match &step.kind {
            OperationKind::Insert(count) => u64::from(*count),
            OperationKind::Action(action) => match &**action {
                Action::Update { upsert, .. } | Action::FindAndModify { upsert, .. } => u64::from(*upsert),
                Action::Command { inserts, .. } => u64::from(*inserts),
                _ => 0,
            },
        };
        let of = move |one: &TemplateOperation| one.steps.iter().map(inserts).sum::<u64>();
        self.operations.iter().map(move |one| (one.name.as_str(), of(one)))
    }

    /// Returns whether an operation is a command of the database that may change what is there, in ways that are not known.
    pub fn has_changing_commands(&self) -> bool {
        let mut steps = self.operations.iter().flat_map(|operation| &operation.steps);
        steps.any(|step| {
            matches!(&step.kind, OperationKind::Action(action) if matches!(**action, Action::Command { changes: true, .. }))
        })
    }

    /// Fields of a collection that operations change, by the first part of their names; an empty name is all of them.
    pub fn changed_fields(&self, collection: usize) -> Vec<String> {
        let steps = self.operations.iter().flat_map(|operation| &operation.steps);
        let mut all = Vec::new();
        for step in steps.filter(|step| step.collection == collection) {
            let OperationKind::Action(action) = &step.kind else { continue };
            match &**action {
                Action::Update { change, .. } | Action::FindAndModify { change, .. } => match change {
                    Change::Fields(fields) => all.extend(
                        fields.iter().map(|(_, name, _)| name.split('.').next().unwrap_or(name).to_owned()),
                    ),
                    Change::SetDocument | Change::Replace => all.push(String::new()),
                },
                Action::Command { changes: true, .. } => all.push(String::new()),
                _ => {}
            }
        }
        all
    }

    /// Refuses what cannot be run; keys are those of the file.
    pub fn check(&self) -> Result<(), BadProperty> {
        let bad = |key: &str, value: &dyn std::fmt::Display, expected: String| {
            Err(BadProperty::new(key, value, expected))
        };
        if self.collections.is_empty() {
            return bad("collections", &"none", "at least one collection".into());
        }
        let names: Vec<String> = self.operations.iter().flat_map(TemplateOperation::metrics).collect();
        if names.is_empty() || names.len() > METRICS - 2 {
            let expected = format!("1 to {} names of operations and steps", METRICS - 2);
            return bad("operations", &names.len(), expected);
        }
        let sum: f64 = self.operations.iter().map(|o| o.weight).sum();
        if !sum.is_finite() || sum <= 0.0 || self.operations.iter().any(|o| o.weight < 0.0) {
            return bad("weight", &sum, "weights from 0 on, not all of them 0".into());
        }
        for (number, name) in names.iter().enumerate() {
            if names[..number].contains(name) {
                return bad("name", name, "names that differ".into());
            }
        }
        for one in self.operations.iter().map(|one| &one.name) {
            let whole = self.operations.iter().find(|whole| {
                one.strip_prefix(whole.name.as_str()).is_some_and(|rest| rest.starts_with('.'))
            });
            if let Some(whole) = whole {
                return bad("name", one, format!("another name: it looks like a step of {:?}", whole.name));
            }
        }
        for collection in &self.collections {
            if collection.id.refers_to_documents() {
                return bad("_id", &collection.name, "a value that depends on no other document".into());
            }
        }
        if self.batch == 0 {
            return bad("batch", &0, "1 or more documents".into());
        }
        Ok(())
    }
}
