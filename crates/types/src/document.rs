//! Operations on documents, as shapes that a driver or a store compiles once, before the run.
//!
//! A workload of documents lists its [`OperationShape`]s; a [`crate::Request`] with [`crate::Verb::Document`] names one by its
//! number. What differs from request to request are the *operands*: the shape numbers them, and
//! [`crate::Content::operand`] renders them as BSON elements. A database that cannot express a shape refuses it before
//! any load is sent.

/// One named operation.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationShape {
    /// Name of the operation in messages.
    pub name: String,
    /// Action.
    pub action: Action,
}

/// The number by which [`crate::Content::operand`] is asked for a value.
pub type Operand = u16;

/// Action of an operation. `documents(request)` of the content says how many documents or statements a request carries.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Inserts `documents(request)` documents by one command.
    Insert {
        /// True if the first failure ends the batch.
        ordered: bool,
    },
    /// Reads documents.
    Find {
        /// Which.
        filter: DocumentFilter,
        /// The fields returned; empty for all.
        fields: Projection,
        /// Order, by these fields.
        sort: Vec<(String, SortOrder)>,
        /// At most so many; 0 for all, `None` for the request's own limit.
        limit: Option<u32>,
        /// No cursor: everything in the first reply.
        single_batch: bool,
    },
    /// The sum of a field over the documents found.
    Sum {
        /// Which documents.
        filter: DocumentFilter,
        /// Field added up.
        field: String,
        /// Name of the result.
        result: String,
    },
    /// The different values of a field among the documents found.
    Distinct {
        /// Which documents.
        filter: DocumentFilter,
        /// Field.
        field: String,
    },
    /// Any other aggregation, stage by stage.
    Aggregate {
        /// The stages, in order.
        pipeline: Vec<AggregationStage>,
    },
    /// Changes documents, `documents(request)` statements in one command.
    Update {
        /// Which.
        filter: DocumentFilter,
        /// Change made to the documents.
        change: Change,
        /// All that match, not only the first.
        many: bool,
        /// Insert it if none matches.
        upsert: bool,
        /// True if the first failure ends the batch.
        ordered: bool,
    },
    /// Removes documents, `documents(request)` statements in one command.
    Delete {
        /// Which.
        filter: DocumentFilter,
        /// All that match, not only the first.
        many: bool,
        /// True if the first failure ends the batch.
        ordered: bool,
    },
    /// Changes one document and returns it.
    FindAndModify {
        /// Which.
        filter: DocumentFilter,
        /// Change made to the document.
        change: Change,
        /// The fields returned; empty for all.
        fields: Projection,
        /// Order in which the first match is found.
        sort: Vec<(String, SortOrder)>,
        /// Insert it if none matches.
        upsert: bool,
        /// Return the document after the change, not before it.
        returns_new: bool,
    },
    /// A command of MongoDB's own: the document that an operand is.
    Command {
        /// The first field of the document.
        name: String,
        /// It may change data.
        changes: bool,
        /// Documents that it can insert, at most.
        inserts: u32,
        /// Documents of a batch of its cursor; `None` for as many as the server sends.
        batch_size: Option<u32>,
        /// The document.
        body: Operand,
    },
    /// Makes what the requests before it in the same transaction did permanent: see
    /// [`crate::Content::in_transaction`].
    Commit,
    /// Undoes it.
    Abort,
}

impl Action {
    /// Returns whether it changes data.
    pub fn changes_data(&self) -> bool {
        match self {
            Action::Find { .. } | Action::Sum { .. } | Action::Distinct { .. } => false,
            Action::Command { changes, .. } => *changes,
            Action::Aggregate { pipeline } => {
                pipeline.last().is_some_and(AggregationStage::writes_collection)
            }
            Action::Insert { .. }
            | Action::Update { .. }
            | Action::Delete { .. }
            | Action::FindAndModify { .. }
            | Action::Commit
            | Action::Abort => true,
        }
    }

    /// Returns whether it ends a transaction.
    pub fn ends_transaction(&self) -> bool {
        matches!(self, Action::Commit | Action::Abort)
    }
}

impl Action {
    /// Returns whether one document is meant, so that finding none is worth telling: a search of many may well find nothing.
    pub fn means_one(&self) -> bool {
        match self {
            Action::Find { limit, .. } => *limit == Some(1),
            Action::Update { many, .. } | Action::Delete { many, .. } => !many,
            Action::FindAndModify { .. } => true,
            Action::Insert { .. }
            | Action::Sum { .. }
            | Action::Distinct { .. }
            | Action::Aggregate { .. }
            | Action::Command { .. }
            | Action::Commit
            | Action::Abort => false,
        }
    }

    /// Returns whether documents are rendered for it: to be inserted, or as a change.
    pub fn renders_documents(&self) -> bool {
        match self {
            Action::Insert { .. } => true,
            Action::Update { change, .. } | Action::FindAndModify { change, .. } => {
                matches!(change, Change::SetDocument | Change::Replace)
            }
            _ => false,
        }
    }

    /// The operands that are rendered for it, of the filter first.
    pub fn rendered_operands(&self) -> Vec<Operand> {
        let mut operands = Vec::new();
        match self {
            Action::Insert { .. } | Action::Commit | Action::Abort => {}
            Action::Command { body, .. } => operands.push(*body),
            Action::Find { filter, .. }
            | Action::Sum { filter, .. }
            | Action::Distinct { filter, .. }
            | Action::Delete { filter, .. } => filter.operands(&mut operands),
            Action::Aggregate { pipeline } => {
                for stage in pipeline {
                    if let AggregationStage::Match(filter) = stage {
                        filter.operands(&mut operands);
                    }
                }
            }
            Action::Update { filter, change, .. } | Action::FindAndModify { filter, change, .. } => {
                filter.operands(&mut operands);
                if let Change::Fields(fields) = change {
                    operands.extend(fields.iter().map(|(_, _, operand)| *operand));
                }
            }
        }
        operands
    }
}

/// Which documents are meant: all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DocumentFilter(pub Vec<FieldCondition>);

impl DocumentFilter {
    /// The documents whose `field` equals an operand.
    pub fn field_equals(field: &str, operand: Operand) -> Self {
        DocumentFilter(vec![FieldCondition { field: field.into(), test: FieldTest::Equal(operand) }])
    }

    /// The documents whose `field` lies between two operands, both included.
    pub fn field_between(field: &str, from: Operand, to: Operand) -> Self {
        let test = FieldTest::Range(vec![(Compare::AtLeast, from), (Compare::AtMost, to)]);
        DocumentFilter(vec![FieldCondition { field: field.into(), test }])
    }

    fn operands(&self, out: &mut Vec<Operand>) {
        for condition in &self.0 {
            match &condition.test {
                FieldTest::Equal(operand) => out.push(*operand),
                FieldTest::Range(tests) => out.extend(tests.iter().map(|(_, operand)| *operand)),
                FieldTest::In(operands) => out.extend_from_slice(operands),
            }
        }
    }
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCondition {
    /// Dotted name of the field.
    pub field: String,
    /// Test.
    pub test: FieldTest,
}

/// Test of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FieldTest {
    /// It equals the operand.
    Equal(Operand),
    /// All these comparisons hold, in this order on the wire.
    Range(Vec<(Compare, Operand)>),
    /// It equals one of the operands.
    In(Vec<Operand>),
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `$gt`
    Above,
    /// `$gte`
    AtLeast,
    /// `$lt`
    Below,
    /// `$lte`
    AtMost,
}

impl Compare {
    /// MongoDB's name.
    pub fn mongodb_operator(self) -> &'static str {
        match self {
            Compare::Above => "$gt",
            Compare::AtLeast => "$gte",
            Compare::Below => "$lt",
            Compare::AtMost => "$lte",
        }
    }
}

/// Direction of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortOrder {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

/// The fields that are returned: (name, shown), in this order on the wire; empty for all fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Projection(pub Vec<(String, bool)>);

/// Change of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// By operators, in this order on the wire.
    Fields(Vec<(Modify, String, Operand)>),
    /// The fields of the document that [`crate::Content::document`] renders are set.
    SetDocument,
    /// The whole document is replaced by the one that [`crate::Content::document`] renders.
    Replace,
}

/// Change of one field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modify {
    /// Takes the operand's value.
    Set,
    /// The operand is added to it.
    Increment,
    /// The operand is appended to the array.
    Push,
    /// The field is removed; the operand's value is ignored.
    Unset,
}

impl Modify {
    /// MongoDB's name.
    pub fn mongodb_operator(self) -> &'static str {
        match self {
            Modify::Set => "$set",
            Modify::Increment => "$inc",
            Modify::Push => "$push",
            Modify::Unset => "$unset",
        }
    }
}

/// One stage of an aggregation.
#[derive(Clone, Debug, PartialEq)]
pub enum AggregationStage {
    /// `$match`
    Match(DocumentFilter),
    /// `$sort`
    Sort(Vec<(String, SortOrder)>),
    /// `$limit`
    Limit(u32),
    /// Any other stage, a BSON document without operands.
    Raw(Vec<u8>),
}

impl AggregationStage {
    /// Returns whether the stage writes its result into a collection: `$merge`, `$out`. Only the last of a pipeline may.
    pub fn writes_collection(&self) -> bool {
        let AggregationStage::Raw(document) = self else { return false };
        let first = crate::bson::read_elements(document).ok().and_then(|mut all| all.next()?.ok());
        first.is_some_and(|stage| matches!(stage.name, b"$merge" | b"$out"))
    }
}
