//! Which documents a request means: filters made into ranges of keys, the way to the documents, sorting, projection.
//!
//! Every condition becomes a list of half-open ranges of encoded values ([`super::key`]), so that testing a document,
//! walking over keys and walking over an index use the same bounds. As in MongoDB a comparison holds for values of the
//! operand's class only, a field that is not there is null, and an array meets a condition where one of its items does.

use super::{RequestError, key};
use dyno_types::bson::{self, Element, kind};
use dyno_types::document::{self, Compare, FieldTest, Operand, SortOrder};

/// From the first bytes on, below the second; empty second bytes are beyond all keys.
pub(super) type Range = (Vec<u8>, Vec<u8>);

/// A condition with its operands.
pub(super) struct QueryCondition<'s> {
    pub(super) field: &'s str,
    /// In ascending order, none overlapping.
    ranges: Vec<Range>,
    /// Of a range: what each comparison alone allows.
    alone: Vec<Range>,
    /// The ranges are single values.
    points: bool,
}

/// A filter with its operands.
pub(super) struct Query<'s>(Vec<QueryCondition<'s>>);

/// Path by which documents are reached; it meets one condition by itself.
pub(super) enum AccessPath {
    /// By the keys of documents.
    Points(Vec<Vec<u8>>),
    /// Along the documents.
    Documents(Vec<Range>),
    /// Along an index.
    Index(usize, Vec<Range>),
}

/// Plan by which the documents are found.
pub(super) struct QueryPlan {
    pub(super) access: AccessPath,
    /// In which direction.
    pub(super) order: SortOrder,
    /// True if they are reached in the order asked for.
    pub(super) sorted: bool,
    /// The condition that needs no test.
    met: Option<usize>,
}

/// Renders an operand as the element `v` of a document of its own.
pub(super) type Render<'r> = dyn FnMut(Operand, &mut Vec<u8>) + 'r;

/// The element that `render` makes of an operand.
pub(super) fn operand<'b>(
    render: &mut Render<'_>,
    operand: Operand,
    bytes: &'b mut Vec<u8>,
) -> Result<Element<'b>, RequestError> {
    bytes.clear();
    let at = bson::open(bytes);
    render(operand, bytes);
    bson::close(bytes, at);
    bson::find_element(bytes, "v").ok_or(RequestError::Operand)
}

impl<'s> Query<'s> {
    pub(super) fn new(
        filter: &'s document::DocumentFilter,
        render: &mut Render<'_>,
    ) -> Result<Self, RequestError> {
        let mut bytes = Vec::new();
        let mut encoded = |wanted: Operand| -> Result<Vec<u8>, RequestError> {
            let mut out = Vec::new();
            key::encode(&operand(render, wanted, &mut bytes)?, &mut out)?;
            Ok(out)
        };
        let mut conditions = Vec::with_capacity(filter.0.len());
        for condition in &filter.0 {
            let (mut ranges, mut alone, mut points) = (Vec::new(), Vec::new(), true);
            match &condition.test {
                FieldTest::Equal(one) => ranges.push(single(encoded(*one)?)),
                FieldTest::In(all) => {
                    for one in all {
                        ranges.push(single(encoded(*one)?));
                    }
                    ranges.sort_unstable();
                    ranges.dedup();
                }
                FieldTest::Range(all) => {
                    for (compare, bound) in all {
                        alone.push(compared(*compare, encoded(*bound)?));
                    }
                    ranges.extend(common(&alone));
                    points = false;
                }
            }
            conditions.push(QueryCondition { field: &condition.field, ranges, alone, points });
        }
        Ok(Query(conditions))
    }

    /// Returns whether `document` meets the conditions that `plan` has not met. `value` is a buffer.
    pub(super) fn meets(
        &self,
        document: &[u8],
        plan: &QueryPlan,
        value: &mut Vec<u8>,
    ) -> Result<bool, RequestError> {
        self.rest(document, plan.met, value)
    }

    /// Returns whether `document` meets all conditions. `value` is a buffer.
    pub(super) fn meets_all(&self, document: &[u8], value: &mut Vec<u8>) -> Result<bool, RequestError> {
        self.rest(document, None, value)
    }

    fn rest(&self, document: &[u8], met: Option<usize>, value: &mut Vec<u8>) -> Result<bool, RequestError> {
        for (number, condition) in self.0.iter().enumerate() {
            if met != Some(number) && !condition.meets(document, value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The best access path: a condition on `_id`, then one on an indexed field, then all documents. `indexes` are the fields
    /// that have one.
    pub(super) fn plan(&self, indexes: &[&str], sort: &[(String, SortOrder)]) -> QueryPlan {
        let by = match sort {
            [(field, order)] => Some((field.as_str(), *order)),
            _ => None,
        };
        let make = |access, field: &str, met| {
            let sorted = sort.is_empty() || by.is_some_and(|(by, _)| by == field);
            let order = by.filter(|_| sorted).map_or(SortOrder::Ascending, |(_, order)| order);
            QueryPlan { access, order, sorted, met }
        };
        let of = |field: &str| {
            let all = self.0.iter().enumerate().filter(move |(_, c)| c.field == field);
            // Single values first.
            all.min_by_key(|(_, c)| !c.points)
        };
        if let Some((number, condition)) = of("_id") {
            let keys = || condition.ranges.iter().map(|range| range.0.clone()).collect();
            let access = match condition.points {
                true => AccessPath::Points(keys()),
                false => AccessPath::Documents(condition.ranges.clone()),
            };
            return make(access, "_id", Some(number));
        }
        let usable = indexes.iter().enumerate().filter_map(|(index, field)| Some((index, of(field)?)));
        if let Some((index, (number, condition))) = usable.min_by_key(|(_, (_, c))| !c.points) {
            return make(AccessPath::Index(index, condition.ranges.clone()), condition.field, Some(number));
        }
        let all = || vec![(Vec::new(), Vec::new())];
        match by.and_then(|(by, _)| indexes.iter().position(|field| *field == by)) {
            Some(index) => make(AccessPath::Index(index, all()), indexes[index], None),
            None => make(AccessPath::Documents(all()), "_id", None),
        }
    }
}

impl QueryCondition<'_> {
    fn meets(&self, document: &[u8], value: &mut Vec<u8>) -> Result<bool, RequestError> {
        let field = bson::element_at_path(document, self.field);
        value.clear();
        key::encode_field(field.as_ref(), value)?;
        if within(&self.ranges, value) {
            return Ok(true);
        }
        let Some(array) = field.filter(|field| field.kind == kind::ARRAY) else { return Ok(false) };
        let mut open = self.alone.clone();
        for item in bson::read_elements(array.value).into_iter().flatten().flatten() {
            value.clear();
            key::encode(&item, value)?;
            if self.points && within(&self.ranges, value) {
                return Ok(true);
            }
            // Each comparison may be met by an item of its own.
            open.retain(|range| !within(std::slice::from_ref(range), value));
        }
        Ok(!self.points && open.is_empty())
    }
}

fn within(ranges: &[Range], value: &[u8]) -> bool {
    ranges.iter().any(|(low, high)| value >= &low[..] && (high.is_empty() || value < &high[..]))
}

fn single(key: Vec<u8>) -> Range {
    let after = key::after(&key);
    (key, after)
}

/// Range that a comparison allows: values of the operand's class.
fn compared(compare: Compare, bound: Vec<u8>) -> Range {
    let class = bound[0];
    let below = vec![class + 1];
    // Below any number there is what is not a number, which no comparison means.
    let least = key::least(class);
    match compare {
        Compare::Above => (key::after(&bound), below),
        Compare::AtLeast => (bound, below),
        Compare::Below => (least, bound),
        Compare::AtMost => (least, key::after(&bound)),
    }
}

/// Range that all of `ranges` allow.
fn common(ranges: &[Range]) -> Option<Range> {
    let low = ranges.iter().map(|range| &range.0).max()?;
    let high = ranges.iter().map(|range| &range.1).min()?;
    (low < high).then(|| (low.clone(), high.clone()))
}

/// Appends bytes that compare as `sort` wants documents ordered. `value` is a buffer.
pub(super) fn sort_key(
    document: &[u8],
    sort: &[(String, SortOrder)],
    value: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), RequestError> {
    for (field, order) in sort {
        let element = bson::element_at_path(document, field);
        let at = out.len();
        match element.filter(|element| element.kind == kind::ARRAY) {
            Some(array) => extreme(array.value, *order, value, out)?,
            None => key::encode_field(element.as_ref(), out)?,
        }
        if *order == SortOrder::Descending {
            out[at..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
    Ok(())
}

/// An array sorts as its least item, or downwards as its largest; an empty one below null.
fn extreme(
    array: &[u8],
    order: SortOrder,
    value: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), RequestError> {
    let mut best: Option<Vec<u8>> = None;
    for item in bson::read_elements(array).into_iter().flatten().flatten() {
        value.clear();
        key::encode(&item, value)?;
        let better = best.as_ref().is_none_or(|best| (order == SortOrder::Ascending) == (*value < *best));
        if better {
            best = Some(value.clone());
        }
    }
    out.extend_from_slice(&best.unwrap_or_else(|| vec![key::NULL - 1]));
    Ok(())
}

/// Appends what `projection` shows of `document`.
pub(super) fn project(document: &[u8], projection: &document::Projection, out: &mut Vec<u8>) {
    let fields = &projection.0;
    if fields.is_empty() {
        return out.extend_from_slice(document);
    }
    let others = || fields.iter().filter(|(name, _)| name != "_id");
    let id = fields.iter().find(|(name, _)| name == "_id").map(|(_, shown)| *shown);
    let shows = others().next().map_or(id == Some(true), |(_, shown)| *shown);
    let mut paths: Vec<&str> = others().map(|(name, _)| name.as_str()).collect();
    if id.unwrap_or(true) == shows {
        paths.push("_id");
    }
    part(document, &paths, shows, out);
}

fn part(document: &[u8], paths: &[&str], shows: bool, out: &mut Vec<u8>) {
    let at = bson::open(out);
    for member in bson::read_elements(document).into_iter().flatten().flatten() {
        let whole = paths.iter().any(|path| path.as_bytes() == member.name);
        let inner: Vec<&str> = paths.iter().filter_map(|path| below(path, member.name)).collect();
        match member.as_document() {
            Some(document) if !whole && !inner.is_empty() => {
                out.push(member.kind);
                out.extend_from_slice(member.name);
                out.push(0);
                if member.kind == kind::ARRAY {
                    items(document, &inner, shows, out);
                } else {
                    part(document, &inner, shows, out);
                }
            }
            _ if whole == shows => super::change::element(out, member.name, &member),
            _ => {}
        }
    }
    bson::close(out, at);
}

/// Of the documents of an array the same parts are shown as of a document.
fn items(array: &[u8], paths: &[&str], shows: bool, out: &mut Vec<u8>) {
    let at = bson::open(out);
    let mut number = 0;
    for item in bson::read_elements(array).into_iter().flatten().flatten() {
        let document = item.as_document().filter(|_| item.kind == kind::DOCUMENT);
        if document.is_none() && shows {
            continue;
        }
        bson::put_item_head(out, item.kind, number);
        match document {
            Some(document) => part(document, paths, shows, out),
            None => out.extend_from_slice(item.value),
        }
        number += 1;
    }
    bson::close(out, at);
}

/// Rest of `path` behind `name` and a dot.
fn below<'p>(path: &'p str, name: &[u8]) -> Option<&'p str> {
    let (first, rest) = path.split_once('.')?;
    (first.as_bytes() == name).then_some(rest)
}
