//! The driver's documents, made of what a content renders.

use crate::official_driver::errors::OfficialFailure;
use dyno_types::bson as bytes;
use dyno_types::document::{
    AggregationStage, Change, DocumentFilter, FieldTest, Modify, Operand, Projection, SortOrder,
};
use dyno_types::{Content, Request};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Bson, Document, RawDocument, RawDocumentBuf, doc};

/// Renders the operands of one statement of a request.
pub(crate) struct Statement<'a> {
    pub content: &'a dyn Content,
    pub request: &'a Request,
    pub number: u32,
}

fn parsed(bytes: &[u8]) -> Result<Document, OfficialFailure> {
    let raw = RawDocument::from_bytes(bytes).map_err(|e| OfficialFailure::malformed(e.to_string()))?;
    Document::try_from(raw).map_err(|e| OfficialFailure::malformed(e.to_string()))
}

fn utf8(bytes: Vec<u8>) -> Result<String, OfficialFailure> {
    String::from_utf8(bytes).map_err(|_| OfficialFailure::malformed("a name is not UTF-8"))
}

impl Statement<'_> {
    fn operand(&self, operand: Operand) -> Result<Bson, OfficialFailure> {
        let mut out = Vec::new();
        let at = bytes::open(&mut out);
        self.content.operand(self.request, self.number, operand, "v", &mut out);
        bytes::close(&mut out, at);
        parsed(&out)?.remove("v").ok_or_else(|| OfficialFailure::malformed("an operand without a value"))
    }

    /// The document of the statement, as it is stored.
    pub fn stored_document(&self) -> Result<RawDocumentBuf, OfficialFailure> {
        let mut out = Vec::new();
        self.content.document(self.request, self.number, &mut out);
        RawDocumentBuf::from_bytes(out).map_err(|e| OfficialFailure::malformed(e.to_string()))
    }

    /// A filter.
    pub fn render_filter(&self, filter: &DocumentFilter) -> Result<Document, OfficialFailure> {
        let mut out = Document::new();
        for condition in &filter.0 {
            let test = match &condition.test {
                FieldTest::Equal(operand) => self.operand(*operand)?,
                FieldTest::Range(comparisons) => {
                    let mut range = Document::new();
                    for (compare, operand) in comparisons {
                        range.insert(compare.mongodb_operator(), self.operand(*operand)?);
                    }
                    range.into()
                }
                FieldTest::In(operands) => {
                    let list: Result<Vec<Bson>, OfficialFailure> =
                        operands.iter().map(|operand| self.operand(*operand)).collect();
                    doc! { "$in": list? }.into()
                }
            };
            if out.insert(&condition.field, test).is_some() {
                return Err(OfficialFailure::malformed(format!("two conditions on {}", condition.field)));
            }
        }
        Ok(out)
    }

    /// The operators of a change that is no replacement.
    pub fn render_change(&self, change: &Change) -> Result<Document, OfficialFailure> {
        let mut out = Document::new();
        match change {
            Change::Replace => return Err(OfficialFailure::malformed("a replacement has no operators")),
            Change::SetDocument => {
                let document = self.stored_document()?;
                out.insert("$set", parsed(document.as_bytes())?);
            }
            Change::Fields(changes) => {
                for (modify, field, operand) in changes {
                    self.modify(&mut out, *modify, field, *operand)?;
                }
            }
        }
        Ok(out)
    }

    /// Each operator stands once, where it first appears.
    fn modify(
        &self,
        out: &mut Document,
        modify: Modify,
        field: &str,
        operand: Operand,
    ) -> Result<(), OfficialFailure> {
        let value = self.operand(operand)?;
        match out.get_mut(modify.mongodb_operator()) {
            Some(Bson::Document(fields)) => drop(fields.insert(field, value)),
            _ => drop(out.insert(modify.mongodb_operator(), doc! { field: value })),
        }
        Ok(())
    }

    /// The stages of an aggregation.
    pub fn render_pipeline(&self, stages: &[AggregationStage]) -> Result<Vec<Document>, OfficialFailure> {
        let stage = |stage: &AggregationStage| match stage {
            AggregationStage::Match(filter) => Ok(doc! { "$match": self.render_filter(filter)? }),
            AggregationStage::Sort(by) => Ok(doc! { "$sort": sort(by) }),
            AggregationStage::Limit(limit) => Ok(doc! { "$limit": i64::from(*limit) }),
            AggregationStage::Raw(document) => parsed(document),
        };
        stages.iter().map(stage).collect()
    }

    /// The stages that add up a field.
    pub fn sum(
        &self,
        filter: &DocumentFilter,
        field: &str,
        result: &str,
    ) -> Result<Vec<Document>, OfficialFailure> {
        Ok(vec![
            doc! { "$match": self.render_filter(filter)? },
            doc! { "$project": { field: 1, "_id": 0 } },
            doc! { "$group": { "_id": Bson::Null, result: { "$sum": format!("${field}") } } },
        ])
    }
}

/// The fields that are returned; `None` for all.
pub(crate) fn projection(fields: &Projection) -> Option<Document> {
    let shown = |(name, shown): &(String, bool)| (name.clone(), Bson::from(i32::from(*shown)));
    (!fields.0.is_empty()).then(|| fields.0.iter().map(shown).collect())
}

/// An order; `None` for any.
pub(crate) fn sort_option(by: &[(String, SortOrder)]) -> Option<Document> {
    (!by.is_empty()).then(|| sort(by))
}

fn sort(by: &[(String, SortOrder)]) -> Document {
    let direction = |order: &SortOrder| if *order == SortOrder::Ascending { 1 } else { -1 };
    by.iter().map(|(field, order)| (field.clone(), Bson::from(direction(order)))).collect()
}

fn name(content: &dyn Content, request: &Request, field: usize) -> Result<String, OfficialFailure> {
    let mut out = Vec::new();
    content.name(request, field, &mut out);
    utf8(out)
}

/// The projection of a request that names fields; `None` where it does not.
pub(crate) fn named(content: &dyn Content, request: &Request) -> Result<Option<Document>, OfficialFailure> {
    let mut out = Document::new();
    for field in 0..content.fields(request) {
        out.insert(name(content, request, field)?, 1);
    }
    Ok((!out.is_empty()).then_some(out))
}

/// The fields that a request writes, each as bytes of the generic subtype.
pub(crate) fn written(content: &dyn Content, request: &Request) -> Result<Document, OfficialFailure> {
    let mut out = Document::new();
    for field in 0..content.fields(request) {
        let mut bytes = Vec::with_capacity(content.value_len(request, field));
        content.value(request, field, &mut bytes);
        out.insert(name(content, request, field)?, Binary { subtype: BinarySubtype::Generic, bytes });
    }
    Ok(out)
}

/// A value as the content verifies it.
pub(crate) fn shown(value: &Bson) -> &[u8] {
    match value {
        Bson::Binary(binary) => &binary.bytes,
        Bson::String(text) => text.as_bytes(),
        _ => &[],
    }
}
