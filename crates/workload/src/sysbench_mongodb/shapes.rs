//! The commands, as shapes.

use dyno_types::document::{
    Action, Change, DocumentFilter, Modify, Operand, OperationShape, Projection, SortOrder,
};

/// A command of the workload; its number is that of its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    /// One document's `c` by `_id`.
    PointSelect = 0,
    /// `c` of a range.
    SimpleRange = 1,
    /// Sum of `k` over a range; the result is called `average` all the same.
    SumRange = 2,
    /// `c` of a range, ordered.
    OrderRange = 3,
    /// Different `c` of a range.
    DistinctRange = 4,
    /// `k` goes up by 1.
    IndexUpdate = 5,
    /// A new `c`.
    NonIndexUpdate = 6,
    /// Everything with this `_id` goes.
    Delete = 7,
    /// A new document with the `_id` just deleted.
    Insert = 8,
    /// The loader's batch.
    Load = 9,
}

/// Operand: the `_id`, or the first of a range.
pub(super) const ID: Operand = 0;
/// Operand: the last `_id` of a range.
pub(super) const LAST: Operand = 1;
/// Operand: the number 1.
pub(super) const ONE: Operand = 2;
/// Operand: a new `c`.
pub(super) const C: Operand = 3;

/// Operand: the `shardKey`; `ID` and `LAST` are `orderId`s where there is one.
pub(super) const SHARD: Operand = 4;

impl Command {
    /// All commands by number.
    pub const ALL: [Command; 10] = [
        Command::PointSelect,
        Command::SimpleRange,
        Command::SumRange,
        Command::OrderRange,
        Command::DistinctRange,
        Command::IndexUpdate,
        Command::NonIndexUpdate,
        Command::Delete,
        Command::Insert,
        Command::Load,
    ];

    /// The command of a shape.
    pub fn of_shape(shape: u16) -> Command {
        Self::ALL.get(usize::from(shape)).copied().unwrap_or(Command::Load)
    }

    /// Metric.
    pub fn metric_name(self) -> &'static str {
        match self {
            Command::PointSelect => "POINT-SELECT",
            Command::SimpleRange => "SIMPLE-RANGE",
            Command::SumRange => "SUM-RANGE",
            Command::OrderRange => "ORDER-RANGE",
            Command::DistinctRange => "DISTINCT-RANGE",
            Command::IndexUpdate => "INDEX-UPDATE",
            Command::NonIndexUpdate => "NON-INDEX-UPDATE",
            Command::Delete => "DELETE",
            Command::Insert => "INSERT",
            Command::Load => super::LOAD_METRIC,
        }
    }

    fn action(self, sharded: bool) -> Action {
        let of_shard = |filter: DocumentFilter| match sharded {
            true => DocumentFilter([DocumentFilter::field_equals("shardKey", SHARD).0, filter.0].concat()),
            false => filter,
        };
        let field = if sharded { "orderId" } else { "_id" };
        let one = || of_shard(DocumentFilter::field_equals(field, ID));
        let only_c = || Projection(vec![("c".into(), true), ("_id".into(), false)]);
        let range = || of_shard(DocumentFilter::field_between(field, ID, LAST));
        let find = |filter, sort, limit, single_batch| Action::Find {
            filter,
            fields: only_c(),
            sort,
            limit,
            single_batch,
        };
        let update = |modify, field: &str, operand| Action::Update {
            filter: one(),
            change: Change::Fields(vec![(modify, field.into(), operand)]),
            many: false,
            upsert: false,
            ordered: true,
        };
        match self {
            Command::PointSelect => find(one(), Vec::new(), Some(1), true),
            Command::SimpleRange => find(range(), Vec::new(), Some(0), false),
            Command::SumRange => Action::Sum { filter: range(), field: "k".into(), result: "average".into() },
            Command::OrderRange => find(range(), vec![("c".into(), SortOrder::Ascending)], Some(0), false),
            Command::DistinctRange => Action::Distinct { filter: range(), field: "c".into() },
            Command::IndexUpdate => update(Modify::Increment, "k", ONE),
            Command::NonIndexUpdate => update(Modify::Set, "c", C),
            Command::Delete => Action::Delete { filter: one(), many: true, ordered: true },
            Command::Insert | Command::Load => Action::Insert { ordered: true },
        }
    }
}

/// The shapes by number.
pub(super) fn shapes(sharded: bool) -> Vec<OperationShape> {
    let shape = |command: Command| {
        let name = if command == Command::Load { "LOAD" } else { command.metric_name() };
        OperationShape { name: name.into(), action: command.action(sharded) }
    };
    Command::ALL.into_iter().map(shape).collect()
}
