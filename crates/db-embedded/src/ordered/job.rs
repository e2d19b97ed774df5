//! A request on documents and what it is about: its operands, filters and plans.

use super::OrderedFailure;
use super::collection::Collection;
use super::query::{Query, QueryPlan};
use dyno_types::document::{Action, DocumentFilter, SortOrder};
use dyno_types::{Content, Request};

/// A request and what it is about.
pub(super) struct Job<'j> {
    pub(super) collection: &'j Collection,
    pub(super) content: &'j dyn Content,
    pub(super) request: &'j Request,
    pub(super) action: &'j Action,
}

impl<'j> Job<'j> {
    /// Renders the operands of statement `number`.
    pub(super) fn render(&self, number: u32) -> impl FnMut(u16, &mut Vec<u8>) {
        move |operand, out: &mut Vec<u8>| self.content.operand(self.request, number, operand, "v", out)
    }

    /// A filter with the operands of statement `number`.
    pub(super) fn query(&self, filter: &'j DocumentFilter, number: u32) -> Result<Query<'j>, OrderedFailure> {
        Ok(Query::new(filter, &mut self.render(number))?)
    }

    pub(super) fn plan(&self, query: &Query<'_>, sort: &[(String, SortOrder)]) -> QueryPlan {
        let fields: Vec<&str> = self.collection.indexes.iter().map(|index| index.field.as_str()).collect();
        query.plan(&fields, sort)
    }
}
