//! Commands by their form: what stays of one to the next, and what the values at each place are like.

use super::super::yaml_text::quoted;
use super::value_stats::ValueStats;
use dyno_types::bson::{self, Element, kind};
use std::fmt::Write as _;

/// Longest form of a command, as it is written here, bytes.
const FORM: usize = 16 << 10;

/// Longest text that is a part of a form, bytes.
const WORD: usize = 1_000;

/// Elements that are alike and stand one after the other, at most.
const ALIKE: u32 = 1_000;

/// Kinds of elements that hold code.
const CODE: u8 = 0x0D;
const CODE_WITH_SCOPE: u8 = 0x0F;

/// Fields of commands that belong to a moment, or to a target: what a run sends of them its address says.
const OF_TARGET: [&str; 14] = [
    "$clusterTime",
    "$db",
    "$readPreference",
    "_openedBy",
    "apiDeprecationErrors",
    "apiStrict",
    "apiVersion",
    "autocommit",
    "comment",
    "lsid",
    "readConcern",
    "startTransaction",
    "txnNumber",
    "writeConcern",
];

/// Operators whose arguments are patterns, code or searches.
const PATTERNS: [&[u8]; 13] = [
    b"$accumulator",
    b"$function",
    b"$geoIntersects",
    b"$geoNear",
    b"$geoWithin",
    b"$jsonSchema",
    b"$near",
    b"$nearSphere",
    b"$regex",
    b"$search",
    b"$text",
    b"$vectorSearch",
    b"$where",
];

/// Where an element stands: what is meant by it.
#[derive(Clone, Debug, PartialEq)]
enum Role {
    Command,
    Statement,
    Stage,
    /// What else a command says: names and texts stay.
    Option,
    Filter,
    /// What a field must be.
    Condition(Meaning),
    Update,
    /// Fields and values of an operator of an update; whether these are what the fields hold then.
    Changed(bool),
    Data(Meaning),
}

/// What a value says of a collection's documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Nothing,
    /// Documents are asked for by this field.
    Asked(String),
    /// This field gets it.
    Set(String),
}

/// A part of a command's form.
#[derive(Clone, Debug)]
pub(super) enum FormPart {
    Document(Vec<(String, FormPart)>),
    List(Vec<FormPart>),
    /// So many elements that are alike.
    Alike(Box<FormPart>, u32),
    /// What stays as it is, as a workload writes it.
    Fixed(String),
    Value(ValueStats, Meaning),
}

/// Values that a command shows of a collection's documents.
pub(super) trait SeenValues {
    /// A document is asked for by a field's value.
    fn note_asked(&mut self, path: &str, value: &Element<'_>);

    /// A field gets a value.
    fn note_set(&mut self, path: &str, value: &Element<'_>);
}

/// Why no form of a command is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unlearned {
    Pattern,
    TooLong,
}

fn elements(document: &[u8]) -> impl Iterator<Item = Element<'_>> {
    bson::read_elements(document).into_iter().flatten().flatten()
}

fn name_of<'a>(element: &Element<'a>) -> &'a str {
    std::str::from_utf8(element.name).unwrap_or_default()
}

fn begins_with_operator(element: &Element<'_>) -> bool {
    let first = element.as_document().filter(|_| element.kind == kind::DOCUMENT);
    let first = first.and_then(|document| elements(document).next());
    first
        .is_some_and(|first| first.name.starts_with(b"$") && !matches!(first.name, b"$ref" | b"$id" | b"$db"))
}

/// The role of an element inside of another.
fn inner_role(outer: &Role, name: &str) -> Role {
    match (outer, name) {
        (Role::Command, "filter" | "query") | (Role::Statement, "q") | (Role::Stage, "$match") => {
            Role::Filter
        }
        (Role::Command, "update") | (Role::Statement, "u") => Role::Update,
        (Role::Command, "updates" | "deletes") => Role::Statement,
        (Role::Command, "pipeline") => Role::Stage,
        (Role::Command | Role::Statement, "arrayFilters") => Role::Data(Meaning::Nothing),
        (Role::Command | Role::Statement | Role::Stage | Role::Option, _) => Role::Option,
        (Role::Filter, "$and" | "$or" | "$nor") => Role::Filter,
        (Role::Filter, "$expr") => Role::Option,
        (Role::Filter, name) if name.starts_with('$') => Role::Data(Meaning::Nothing),
        (Role::Filter, field) => Role::Condition(Meaning::Asked(field.to_owned())),
        (Role::Condition(of), "$eq" | "$in") => Role::Data(of.clone()),
        (Role::Condition(_), "$not" | "$elemMatch") => Role::Condition(Meaning::Nothing),
        (Role::Condition(_), "$type") => Role::Option,
        (Role::Condition(_), _) => Role::Data(Meaning::Nothing),
        (Role::Update, "$rename" | "$currentDate") => Role::Option,
        (Role::Update, name) => Role::Changed(["$set", "$setOnInsert"].contains(&name)),
        (Role::Changed(_), "$each") => Role::Data(Meaning::Nothing),
        (Role::Changed(_), name) if name.starts_with('$') => Role::Option,
        (Role::Changed(true), field) => Role::Data(Meaning::Set(field.to_owned())),
        (Role::Changed(false), _) => Role::Data(Meaning::Nothing),
        (Role::Data(_), _) => Role::Data(Meaning::Nothing),
    }
}

/// The role of the elements of a list.
fn list_role(role: &Role) -> Role {
    match role {
        // A pipeline in place of an update's operators.
        Role::Update => Role::Stage,
        other => other.clone(),
    }
}

/// How an element is looked at.
enum Form {
    Parts,
    Fixed(String),
    Value(Meaning),
}

fn form_of(element: &Element<'_>, role: &Role) -> Result<Form, Unlearned> {
    let has_operator = begins_with_operator(element);
    let fixed =
        |text: &str| if text.len() > WORD { Err(Unlearned::TooLong) } else { Ok(Form::Fixed(quoted(text))) };
    match role {
        Role::Condition(_) if has_operator => Ok(Form::Parts),
        Role::Data(meaning) | Role::Condition(meaning) => Ok(Form::Value(meaning.clone())),
        // `$push: { FIELD: { $each: ... } }`
        Role::Changed(_) if has_operator => Ok(Form::Parts),
        // A document that takes the place of another.
        Role::Update if element.kind == kind::DOCUMENT && !has_operator => Ok(Form::Value(Meaning::Nothing)),
        _ if element.as_document().is_some() => Ok(Form::Parts),
        _ => match element.kind {
            kind::STRING => fixed(element.as_str().unwrap_or_default()),
            kind::BOOLEAN => Ok(Form::Fixed((element.value == [1]).to_string())),
            kind::NULL => Ok(Form::Fixed("null".into())),
            _ => Ok(Form::Value(Meaning::Nothing)),
        },
    }
}

/// Number of elements that are alike, rounded where there are many.
fn rounded_count(count: usize) -> u32 {
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    if count <= 8 { count } else { count.checked_next_power_of_two().unwrap_or(count) }
}

/// The role of an element of a document: a field that is changed by operators (`$push: { FIELD: { $each: ... } }`) holds these.
fn role_in(outer: &Role, element: &Element<'_>) -> Role {
    match outer {
        Role::Changed(_) if begins_with_operator(element) => outer.clone(),
        _ => inner_role(outer, name_of(element)),
    }
}

/// Makes the form of an element, and writes it down.
fn build_part(element: &Element<'_>, role: &Role, written: &mut String) -> Result<FormPart, Unlearned> {
    if written.len() > FORM {
        return Err(Unlearned::TooLong);
    }
    check_value(element)?;
    match form_of(element, role)? {
        Form::Fixed(text) => {
            written.push_str(&text);
            Ok(FormPart::Fixed(text))
        }
        Form::Value(meaning) => {
            written.push('?');
            Ok(FormPart::Value(ValueStats::default(), meaning))
        }
        Form::Parts if element.kind == kind::ARRAY => build_list(element, role, written),
        Form::Parts => {
            written.push('{');
            let mut parts = Vec::new();
            for inner in elements(element.value) {
                let _ = write!(written, "{}:", quoted(name_of(&inner)));
                parts
                    .push((name_of(&inner).to_owned(), build_part(&inner, &role_in(role, &inner), written)?));
                written.push(',');
            }
            written.push('}');
            Ok(FormPart::Document(parts))
        }
    }
}

fn build_list(element: &Element<'_>, role: &Role, written: &mut String) -> Result<FormPart, Unlearned> {
    let (mut parts, mut first): (Vec<FormPart>, String) = (Vec::new(), String::new());
    // Documents that are alike are looked at as one.
    let (mut count, mut are_alike) = (0usize, true);
    written.push('[');
    for inner in elements(element.value) {
        let mut own = String::new();
        let part = build_part(&inner, &list_role(role), &mut own)?;
        count += 1;
        are_alike &= inner.kind == kind::DOCUMENT;
        if count > 1 && are_alike && own == first {
            continue;
        }
        if count == 1 {
            first.clone_from(&own);
        } else if are_alike {
            // All before it were like the first.
            let same = parts[0].clone();
            parts.resize(count - 1, same);
            (2..count).for_each(|_| written.push_str(&first));
            are_alike = false;
        }
        written.push_str(&own);
        written.push(',');
        parts.push(part);
        if written.len() > FORM || parts.len() > FORM {
            return Err(Unlearned::TooLong);
        }
    }
    if are_alike && count > 1 {
        let count = rounded_count(count);
        if count > ALIKE {
            return Err(Unlearned::TooLong);
        }
        let _ = write!(written, "*{count}]");
        return Ok(FormPart::Alike(Box::new(parts.remove(0)), count));
    }
    written.push(']');
    Ok(FormPart::List(parts))
}

/// Refuses patterns, code and searches.
fn check_value(element: &Element<'_>) -> Result<(), Unlearned> {
    if PATTERNS.contains(&element.name) || matches!(element.kind, kind::REGEX | CODE | CODE_WITH_SCOPE) {
        return Err(Unlearned::Pattern);
    }
    elements(element.as_document().unwrap_or_default()).try_for_each(|inner| check_value(&inner))
}

/// The form of a command of this body, and how it is written.
pub(super) fn build_form(body: &[u8]) -> Result<(String, FormPart), Unlearned> {
    let mut written = String::new();
    let mut parts = Vec::new();
    for element in elements(body) {
        let name = name_of(&element);
        if OF_TARGET.contains(&name) {
            continue;
        }
        let _ = write!(written, "{}:", quoted(name));
        parts.push((name.to_owned(), build_part(&element, &inner_role(&Role::Command, name), &mut written)?));
        written.push(',');
    }
    Ok((written, FormPart::Document(parts)))
}

/// Notes the values of a command of this form.
pub(super) fn note_body(form: &mut FormPart, body: &[u8], seen: &mut dyn SeenValues) {
    let FormPart::Document(parts) = form else { return };
    let kept = elements(body).filter(|element| !OF_TARGET.contains(&name_of(element)));
    for ((name, part), element) in parts.iter_mut().zip(kept) {
        note_part(part, &element, &inner_role(&Role::Command, name), seen);
    }
}

fn note_part(part: &mut FormPart, element: &Element<'_>, role: &Role, seen: &mut dyn SeenValues) {
    let inner = || elements(element.as_document().unwrap_or_default());
    match part {
        FormPart::Fixed(_) => {}
        FormPart::Value(stats, meaning) => {
            stats.note(element);
            match meaning {
                Meaning::Nothing => {}
                Meaning::Asked(path) => seen.note_asked(path, element),
                Meaning::Set(path) => seen.note_set(path, element),
            }
        }
        FormPart::Document(parts) => {
            for ((_, part), element) in parts.iter_mut().zip(inner()) {
                note_part(part, &element, &role_in(role, &element), seen);
            }
        }
        FormPart::List(parts) => {
            for (part, element) in parts.iter_mut().zip(inner()) {
                note_part(part, &element, &list_role(role), seen);
            }
        }
        FormPart::Alike(part, _) => {
            inner().for_each(|element| note_part(part, &element, &list_role(role), seen));
        }
    }
}
