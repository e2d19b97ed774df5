//! A collection as a list of documents, and what requests mean to it: the measure of the stores of documents.

use dyno_types::bson::{self, Element, kind};
use dyno_types::document::{
    Action, Change, Compare, DocumentFilter, FieldTest, Modify, Projection, SortOrder,
};
use std::cmp::Ordering;

/// A value. Numbers of both kinds are equal by worth; values of different classes have the order of the variants.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Int(i32),
    Double(f64),
    Text(String),
    Pair(i32, i32),
    List(Vec<Value>),
}

impl Value {
    fn class(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Int(_) | Value::Double(_) => 1,
            Value::Text(_) => 2,
            Value::Pair(..) => 3,
            Value::List(_) => 4,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(f64::from(*n)),
            Value::Double(n) => Some(*n),
            _ => None,
        }
    }

    pub fn compare(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Pair(a, b), Value::Pair(c, d)) => (a, b).cmp(&(c, d)),
            (Value::List(a), Value::List(b)) => {
                let first = a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|order| order.is_ne());
                first.unwrap_or(a.len().cmp(&b.len()))
            }
            (a, b) => match (a.number(), b.number()) {
                (Some(a), Some(b)) => a.partial_cmp(&b).unwrap(),
                _ => a.class().cmp(&b.class()),
            },
        }
    }

    pub fn write(&self, name: &str, out: &mut Vec<u8>) {
        match self {
            Value::Null => bson::put_null(out, name),
            Value::Int(n) => bson::put_int32(out, name, *n),
            Value::Double(n) => bson::put_double(out, name, *n),
            Value::Text(text) => bson::put_string(out, name, text),
            Value::Pair(w, i) => {
                bson::put_head(out, kind::DOCUMENT, name);
                let at = bson::open(out);
                bson::put_int32(out, "w", *w);
                bson::put_int32(out, "i", *i);
                bson::close(out, at);
            }
            Value::List(items) => {
                bson::put_head(out, kind::ARRAY, name);
                let at = bson::open(out);
                items.iter().enumerate().for_each(|(number, item)| item.write(&number.to_string(), out));
                bson::close(out, at);
            }
        }
    }

    fn read(element: &Element<'_>) -> Value {
        match element.kind {
            kind::NULL => Value::Null,
            kind::INT32 | kind::INT64 => Value::Int(element.as_i64().unwrap() as i32),
            kind::DOUBLE => Value::Double(element.as_f64().unwrap()),
            kind::STRING => Value::Text(element.as_str().unwrap().to_owned()),
            kind::DOCUMENT => {
                let part = |name| bson::find_element(element.value, name).unwrap().as_i64().unwrap() as i32;
                Value::Pair(part("w"), part("i"))
            }
            kind::ARRAY => Value::List(
                bson::read_elements(element.value).unwrap().map(|e| Value::read(&e.unwrap())).collect(),
            ),
            other => panic!("type {other}"),
        }
    }
}

/// A document: fields in order.
pub type Document = Vec<(String, Value)>;

pub fn field<'d>(document: &'d Document, name: &str) -> Option<&'d Value> {
    document.iter().find(|(field, _)| field == name).map(|(_, value)| value)
}

pub fn write(document: &Document, out: &mut Vec<u8>) {
    let at = bson::open(out);
    document.iter().for_each(|(name, value)| value.write(name, out));
    bson::close(out, at);
}

pub fn read(bytes: &[u8]) -> Document {
    bson::check(bytes).unwrap();
    let name = |element: &Element<'_>| String::from_utf8(element.name.to_vec()).unwrap();
    bson::read_elements(bytes).unwrap().map(|e| e.unwrap()).map(|e| (name(&e), Value::read(&e))).collect()
}

/// The operands and the documents of one request.
#[derive(Clone, Debug, Default)]
pub struct Given {
    pub operands: Vec<Value>,
    pub documents: Vec<Document>,
}

/// What a request has come to: an error changes nothing.
pub type Answer = Result<(u32, Vec<Document>), &'static str>;

fn matches(document: &Document, filter: &DocumentFilter, given: &Given) -> bool {
    filter.0.iter().all(|condition| {
        let value = field(document, &condition.field).cloned().unwrap_or(Value::Null);
        let mut values = vec![value.clone()];
        if let Value::List(items) = &value {
            values.extend(items.iter().cloned());
        }
        let equal = |operand: &u16| {
            values.iter().any(|value| value.compare(&given.operands[usize::from(*operand)]).is_eq())
        };
        match &condition.test {
            FieldTest::Equal(operand) => equal(operand),
            FieldTest::In(operands) => operands.iter().any(equal),
            FieldTest::Range(all) => all.iter().all(|(compare, operand)| {
                let bound = &given.operands[usize::from(*operand)];
                values.iter().any(|value| {
                    let order = value.compare(bound);
                    value.class() == bound.class()
                        && match compare {
                            Compare::Above => order.is_gt(),
                            Compare::AtLeast => order.is_ge(),
                            Compare::Below => order.is_lt(),
                            Compare::AtMost => order.is_le(),
                        }
                })
            }),
        }
    })
}

fn sorted(documents: &mut [Document], sort: &[(String, SortOrder)]) {
    documents.sort_by(|a, b| {
        let one = |(name, order): &(String, SortOrder)| {
            let value = |d: &Document| field(d, name).cloned().unwrap_or(Value::Null);
            let compared = value(a).compare(&value(b));
            if *order == SortOrder::Ascending { compared } else { compared.reverse() }
        };
        sort.iter().map(one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
}

fn projected(document: &Document, projection: &Projection) -> Document {
    let named = |name: &str| projection.0.iter().find(|(field, _)| field == name).map(|(_, shown)| *shown);
    let shows = projection.0.iter().any(|(name, shown)| *shown && name != "_id");
    let keep = |name: &str| named(name).unwrap_or(if name == "_id" { true } else { !shows });
    document.iter().filter(|(name, _)| keep(name)).cloned().collect()
}

fn set(document: &mut Document, name: &str, value: Value) {
    match document.iter_mut().find(|(field, _)| field == name) {
        Some((_, old)) => *old = value,
        None => document.push((name.to_owned(), value)),
    }
}

fn change(
    document: &mut Document,
    change: &Change,
    given: &Given,
    number: usize,
) -> Result<(), &'static str> {
    match change {
        Change::SetDocument => {
            for (name, value) in given.documents[number].iter().filter(|(name, _)| name != "_id") {
                set(document, name, value.clone());
            }
        }
        Change::Replace => {
            document.retain(|(name, _)| name == "_id");
            document.extend(given.documents[number].iter().filter(|(name, _)| name != "_id").cloned());
        }
        Change::Fields(all) => {
            for (modify, name, operand) in all {
                let value = given.operands[usize::from(*operand)].clone();
                match (modify, field(document, name).cloned()) {
                    (Modify::Set, _) => set(document, name, value),
                    (Modify::Unset, _) => document.retain(|(field, _)| field != name),
                    (Modify::Push, None) => set(document, name, Value::List(vec![value])),
                    (Modify::Push, Some(Value::List(mut items))) => {
                        items.push(value);
                        set(document, name, Value::List(items));
                    }
                    (Modify::Push, _) => return Err("no array"),
                    (Modify::Increment, None) if value.number().is_some() => set(document, name, value),
                    (Modify::Increment, Some(Value::Int(a))) if matches!(value, Value::Int(_)) => {
                        let Value::Int(b) = value else { return Err("no number") };
                        set(document, name, Value::Int(a + b));
                    }
                    (Modify::Increment, Some(old)) => {
                        let (Some(a), Some(b)) = (old.number(), value.number()) else {
                            return Err("no number");
                        };
                        set(document, name, Value::Double(a + b));
                    }
                    (Modify::Increment, None) => return Err("no number"),
                }
            }
        }
    }
    Ok(())
}

/// A collection.
#[derive(Clone, Debug, Default)]
pub struct Model(pub Vec<Document>);

impl Model {
    fn there(&self, id: &Value) -> bool {
        self.0.iter().any(|document| field(document, "_id").unwrap().compare(id).is_eq())
    }

    fn insert(&mut self, document: Document) -> Result<(), &'static str> {
        if self.there(field(&document, "_id").ok_or("no _id")?) {
            return Err("duplicate");
        }
        self.0.push(document);
        Ok(())
    }

    /// What `action` comes to; after an error the caller puts the old model back.
    pub fn execute(&mut self, action: &Action, given: &Given) -> Answer {
        let found = |all: &[Document], filter: &DocumentFilter| -> Vec<Document> {
            all.iter().filter(|document| matches(document, filter, given)).cloned().collect()
        };
        match action {
            Action::Insert { ordered } => {
                let mut count = 0;
                for document in &given.documents {
                    match self.insert(document.clone()) {
                        Err(why) if *ordered => return Err(why),
                        done => count += u32::from(done.is_ok()),
                    }
                }
                Ok((count, Vec::new()))
            }
            Action::Find { filter, fields, sort, limit, .. } => {
                let mut all = found(&self.0, filter);
                sorted(&mut all, sort);
                all.truncate(match limit.unwrap_or(0) {
                    0 => usize::MAX,
                    most => most as usize,
                });
                let shown: Vec<Document> = all.iter().map(|document| projected(document, fields)).collect();
                Ok((shown.len() as u32, shown))
            }
            Action::Sum { filter, field: name, result } => {
                let all = found(&self.0, filter);
                let sum = all.iter().filter_map(|d| field(d, name)?.number()).sum();
                Ok((1, vec![vec![(result.clone(), Value::Double(sum))]]))
            }
            Action::Distinct { filter, field: name } => {
                let mut values: Vec<Value> = Vec::new();
                for value in found(&self.0, filter).iter().filter_map(|d| field(d, name)) {
                    let items =
                        if let Value::List(items) = value { items.clone() } else { vec![value.clone()] };
                    for item in items {
                        if !values.iter().any(|known| known.compare(&item).is_eq()) {
                            values.push(item);
                        }
                    }
                }
                let shown: Vec<Document> = values.into_iter().map(|v| vec![("v".to_owned(), v)]).collect();
                Ok((shown.len() as u32, shown))
            }
            Action::Delete { filter, .. } => {
                let before = self.0.len();
                self.0.retain(|document| !matches(document, filter, given));
                Ok(((before - self.0.len()) as u32, Vec::new()))
            }
            Action::Update { filter, change: how, upsert, .. } => {
                let mut count = 0;
                for document in self.0.iter_mut().filter(|document| matches(document, filter, given)) {
                    change(document, how, given, 0)?;
                    count += 1;
                }
                if count == 0 && *upsert {
                    self.upsert(filter, how, given)?;
                    count = 1;
                }
                Ok((count, Vec::new()))
            }
            Action::Commit | Action::Abort => {
                unreachable!("these stores refuse transactions of several requests")
            }
            Action::FindAndModify { filter, change: how, fields, sort, upsert, returns_new } => {
                let mut all = found(&self.0, filter);
                sorted(&mut all, sort);
                let Some(old) = all.first() else {
                    if !*upsert {
                        return Ok((0, Vec::new()));
                    }
                    let new = self.upsert(filter, how, given)?;
                    let shown = if *returns_new { vec![projected(&new, fields)] } else { Vec::new() };
                    return Ok((1, shown));
                };
                let mut new = old.clone();
                change(&mut new, how, given, 0)?;
                let id = field(old, "_id").unwrap();
                let place = self.0.iter_mut().find(|d| field(d, "_id").unwrap().compare(id).is_eq());
                *place.unwrap() = new.clone();
                Ok((1, vec![projected(if *returns_new { &new } else { old }, fields)]))
            }
            Action::Aggregate { .. } => Err("no aggregations"),
            Action::Command { .. } => Err("no commands"),
        }
    }

    fn upsert(
        &mut self,
        filter: &DocumentFilter,
        how: &Change,
        given: &Given,
    ) -> Result<Document, &'static str> {
        let mut new = Document::new();
        for condition in &filter.0 {
            if let FieldTest::Equal(operand) = condition.test {
                set(&mut new, &condition.field, given.operands[usize::from(operand)].clone());
            }
        }
        change(&mut new, how, given, 0)?;
        self.insert(new.clone())?;
        Ok(new)
    }
}
