//! Commands of MongoDB, with other words in place of the application's.

use super::document_words::DocumentWords;
use super::mongodb_expressions::{EXPRESSIONS, PLAIN_EXPRESSIONS};
use super::mongodb_grammar::{
    COMMANDS, COMMON, CONDITION, FILTER, MATCHED, PUSH, Rule, STAGES, Table, UPDATE,
};
use crate::entry::{Arguments, LongValue, OPENED_BY};
use dyno_types::bson::{self, Element, kind};

/// Reasons for which a command is left out.
pub(super) mod reason {
    pub const UNKNOWN: &str =
        "commands, fields and operators that dyno does not know, which anonymising leaves out";
    pub const SCRIPTS: &str =
        "commands with code, patterns or searches in texts, which anonymising leaves out";
    pub const DAMAGED: &str = "commands that are no well-formed documents, which anonymising leaves out";
    pub const CURSOR: &str = "getMore and killCursors of commands that anonymising has left out";
}

/// Kinds of elements that documents no longer have, or that hold code.
mod old_kind {
    pub const UNDEFINED: u8 = 0x06;
    pub const CODE: u8 = 0x0D;
    pub const SYMBOL: u8 = 0x0E;
    pub const CODE_WITH_SCOPE: u8 = 0x0F;
    pub const LEAST: u8 = 0xFF;
    pub const GREATEST: u8 = 0x7F;
}

/// A subtype of bytes that repeats their length.
const OLD_BINARY: u8 = 2;

/// Orders of a language.
const ORDERS: [&str; 14] = [
    "big5han",
    "compat",
    "dictionary",
    "ducet",
    "eor",
    "gb2312han",
    "phonebook",
    "phonetic",
    "pinyin",
    "reformed",
    "search",
    "standard",
    "stroke",
    "traditional",
];

type Outcome = Result<(), &'static str>;

/// The words that stand for those of a command; the reason why nothing stands for it. `number_now`: the number that an entry
/// of a connection has where others are left out.
pub(super) fn change_words(
    arguments: &Arguments,
    words: &mut DocumentWords,
    keep_scripts: bool,
    number_now: impl Fn(u32, u64) -> Option<u64>,
) -> Result<Arguments, &'static str> {
    if arguments.count() != 3 {
        return Err(reason::DAMAGED);
    }
    let name = std::str::from_utf8(arguments.word(0)).map_err(|_| reason::DAMAGED)?;
    let database = std::str::from_utf8(arguments.word(1)).map_err(|_| reason::DAMAGED)?;
    let table = table_of(name).ok_or(reason::UNKNOWN)?;
    let mut made = Arguments::from_words([name, &words.permute_database(database)]);
    if let Some(body) = arguments.long_value(2) {
        made.push_long(LongValue { hash: words.number_of(&body.hash.to_le_bytes()), ..body });
        return Ok(made);
    }
    let body = arguments.word(2);
    bson::check(body).map_err(|_| reason::DAMAGED)?;
    if first_element(body).is_none_or(|first| first.name != name.as_bytes()) {
        return Err(reason::DAMAGED);
    }
    let mut out = Vec::with_capacity(body.len() + 64);
    let mut walk = Walk { words, keep_scripts };
    let at = bson::open(&mut out);
    for element in elements(body) {
        if element.name == OPENED_BY.as_bytes() {
            put_opened_by(&element, &number_now, &mut out)?;
        } else {
            walk.put_field(&element, [table, COMMON], &mut out)?;
        }
    }
    bson::close(&mut out, at);
    made.push_word(&out);
    Ok(made)
}

fn table_of(name: &str) -> Option<Table> {
    COMMANDS.iter().find(|(names, _)| names.contains(&name)).map(|(_, table)| *table)
}

fn elements(document: &[u8]) -> impl Iterator<Item = Element<'_>> {
    bson::read_elements(document).into_iter().flatten().flatten()
}

fn first_element(document: &[u8]) -> Option<Element<'_>> {
    elements(document).next()
}

fn find_rule(table: Table, name: &str) -> Option<Rule> {
    table.iter().find(|(known, _)| *known == name).map(|(_, rule)| *rule)
}

fn name_of<'a>(element: &Element<'a>) -> Result<&'a str, &'static str> {
    std::str::from_utf8(element.name).map_err(|_| reason::DAMAGED)
}

/// The first name of a document, where it is an operator's.
fn first_operator<'a>(element: &Element<'a>) -> Option<&'a str> {
    let document = element.as_document().filter(|_| element.kind == kind::DOCUMENT)?;
    let name = std::str::from_utf8(first_element(document)?.name).ok()?;
    (name.starts_with('$') && !["$ref", "$id", "$db"].contains(&name)).then_some(name)
}

fn is_plain(kind: u8) -> bool {
    [
        kind::DOUBLE,
        kind::BOOLEAN,
        kind::DATE,
        kind::NULL,
        kind::INT32,
        kind::INT64,
        kind::TIMESTAMP,
        kind::DECIMAL,
        old_kind::UNDEFINED,
        old_kind::LEAST,
        old_kind::GREATEST,
    ]
    .contains(&kind)
}

/// A pattern of a time in a text: letters behind percent signs, and what stands between numbers.
fn is_format(text: &str) -> bool {
    let mut rest = text.chars();
    while let Some(one) = rest.next() {
        let stays = match one {
            '%' => rest.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '%'),
            other => "-/:., TZ".contains(other),
        };
        if !stays {
            return false;
        }
    }
    true
}

fn is_time_zone(text: &str) -> bool {
    let is_offset = text.starts_with(['+', '-'])
        && text.len() <= 6
        && text[1..].bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    is_offset || jiff::tz::TimeZone::get(text).is_ok()
}

/// A language of two or three letters, a country or a script, and one of the orders that it may have.
fn is_locale(text: &str) -> bool {
    let (place, order) = text.split_once("@collation=").map_or((text, None), |(at, order)| (at, Some(order)));
    let mut parts = place.split(['_', '-']);
    let is_language = parts.next().is_some_and(|part| [2, 3].contains(&part.len()));
    let letters = |part: &str| part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_place = is_language && place.len() <= 11 && place.split(['_', '-']).all(letters);
    text == "simple" || (is_place && order.is_none_or(|order| ORDERS.contains(&order)))
}

/// Appends the opener of a cursor by the number that it has now.
fn put_opened_by(
    element: &Element<'_>,
    number_now: impl Fn(u32, u64) -> Option<u64>,
    out: &mut Vec<u8>,
) -> Outcome {
    let document = element.as_document().ok_or(reason::DAMAGED)?;
    let number = |name| bson::find_element(document, name).and_then(|found| found.as_i64());
    let connection = number("connection").and_then(|number| u32::try_from(number).ok());
    let command = number("command").and_then(|number| u64::try_from(number).ok());
    let (connection, command) = connection.zip(command).ok_or(reason::DAMAGED)?;
    let now = number_now(connection, command).ok_or(reason::CURSOR)?;
    let opener = bson::build_document(|out| {
        bson::put_int32(out, "connection", connection as i32);
        bson::put_int64(out, "command", now as i64);
    });
    bson::put_document(out, OPENED_BY, &opener);
    Ok(())
}

/// Writes a body with other words.
struct Walk<'a> {
    words: &'a mut DocumentWords,
    keep_scripts: bool,
}

fn put_value(name: &str, kind: u8, value: &[u8], out: &mut Vec<u8>) {
    bson::put_head(out, kind, name);
    out.extend_from_slice(value);
}

fn put_text(name: &str, kind: u8, text: &str, out: &mut Vec<u8>) {
    bson::put_head(out, kind, name);
    bson::put_text_value(out, text.as_bytes());
}

impl Walk<'_> {
    /// A field of a document whose fields are known: by the first of the tables that has it.
    fn put_field<const N: usize>(
        &mut self,
        element: &Element<'_>,
        tables: [Table; N],
        out: &mut Vec<u8>,
    ) -> Outcome {
        let name = name_of(element)?;
        let rule = tables.iter().find_map(|table| find_rule(table, name)).ok_or(reason::UNKNOWN)?;
        self.put_by_rule(name, element, rule, out)
    }

    /// All elements of a document or an array, each as `put` says.
    fn put_inner(
        &mut self,
        name: &str,
        element: &Element<'_>,
        out: &mut Vec<u8>,
        mut put: impl FnMut(&mut Self, &Element<'_>, &mut Vec<u8>) -> Outcome,
    ) -> Outcome {
        let document = element.as_document().ok_or(reason::UNKNOWN)?;
        bson::put_head(out, element.kind, name);
        let at = bson::open(out);
        for inner in elements(document) {
            put(self, &inner, out)?;
        }
        bson::close(out, at);
        Ok(())
    }

    /// Elements of an array, or of a document whose names are paths.
    fn put_named(&mut self, name: &str, element: &Element<'_>, rule: Rule, out: &mut Vec<u8>) -> Outcome {
        let is_array = element.kind == kind::ARRAY;
        self.put_inner(name, element, out, |walk, inner, out| {
            let inner_name = name_of(inner)?;
            // Names of an array are numbers, which stay.
            let is_index = is_array && inner_name.bytes().all(|byte| byte.is_ascii_digit());
            match is_index {
                true => walk.put_by_rule(inner_name, inner, rule, out),
                false => {
                    let path = walk.words.permute_path(inner_name);
                    walk.put_by_rule(&path, inner, rule, out)
                }
            }
        })
    }

    fn put_fields(&mut self, name: &str, element: &Element<'_>, table: Table, out: &mut Vec<u8>) -> Outcome {
        if element.kind != kind::DOCUMENT {
            return Err(reason::UNKNOWN);
        }
        self.put_inner(name, element, out, |walk, inner, out| walk.put_field(inner, [table], out))
    }

    fn put_script(&self, name: &str, element: &Element<'_>, out: &mut Vec<u8>) -> Outcome {
        if !self.keep_scripts {
            return Err(reason::SCRIPTS);
        }
        put_value(name, element.kind, element.value, out);
        Ok(())
    }

    /// A value of the application's.
    fn put_data(&mut self, name: &str, element: &Element<'_>, out: &mut Vec<u8>) -> Outcome {
        let value = element.value;
        match element.kind {
            kind if is_plain(kind) => put_value(name, kind, value, out),
            kind::STRING | old_kind::SYMBOL => {
                let text = value.get(4..value.len().saturating_sub(1)).unwrap_or_default();
                match std::str::from_utf8(text) {
                    Ok(text) => put_text(name, element.kind, &self.words.permute_text(text), out),
                    // Texts that are none: servers keep them all the same.
                    Err(_) => {
                        bson::put_head(out, element.kind, name);
                        bson::put_text_value(out, &self.words.permute_bytes(text));
                    }
                }
            }
            kind::BINARY => {
                let (head, bytes) = value.split_at_checked(5).ok_or(reason::DAMAGED)?;
                bson::put_head(out, kind::BINARY, name);
                out.extend_from_slice(head);
                let inner = bytes.first_chunk::<4>().map(|length| u32::from_le_bytes(*length) as usize);
                let kept = if head[4] == OLD_BINARY && inner == bytes.len().checked_sub(4) { 4 } else { 0 };
                out.extend_from_slice(&bytes[..kept]);
                out.extend_from_slice(&self.words.permute_bytes(&bytes[kept..]));
            }
            kind::OBJECT_ID => {
                // Its time stays, as other times do: by it documents are in an order.
                let (time, rest) = value.split_at_checked(4).ok_or(reason::DAMAGED)?;
                bson::put_head(out, kind::OBJECT_ID, name);
                out.extend_from_slice(time);
                out.extend_from_slice(&self.words.permute_bytes(rest));
            }
            kind::ARRAY => self.put_named(name, element, Rule::Data, out)?,
            kind::DOCUMENT => self.put_inner(name, element, out, |walk, inner, out| match inner.name {
                b"$ref" => walk.put_by_rule("$ref", inner, Rule::Collection, out),
                b"$db" => walk.put_by_rule("$db", inner, Rule::Database, out),
                _ => {
                    let path = walk.words.permute_path(name_of(inner)?);
                    walk.put_data(&path, inner, out)
                }
            })?,
            kind::REGEX | old_kind::CODE | old_kind::CODE_WITH_SCOPE => {
                self.put_script(name, element, out)?
            }
            _ => return Err(reason::UNKNOWN),
        }
        Ok(())
    }

    /// A document of operators of a table, and of fields where a rule says what these are.
    fn put_operators(
        &mut self,
        name: &str,
        element: &Element<'_>,
        (table, fields): (Table, Option<Rule>),
        out: &mut Vec<u8>,
    ) -> Outcome {
        self.put_inner(name, element, out, |walk, inner, out| {
            let inner_name = name_of(inner)?;
            if inner_name.starts_with('$') {
                return walk.put_field(inner, [table], out);
            }
            let rule = fields.ok_or(reason::UNKNOWN)?;
            let path = walk.words.permute_path(inner_name);
            walk.put_by_rule(&path, inner, rule, out)
        })
    }

    fn put_expression(&mut self, name: &str, element: &Element<'_>, out: &mut Vec<u8>) -> Outcome {
        if let Some(text) = element.as_str() {
            put_text(name, kind::STRING, &self.words.permute_expression(text), out);
            return Ok(());
        }
        if element.as_document().is_none() {
            return self.put_data(name, element, out);
        }
        if first_operator(element).is_none() {
            return self.put_named(name, element, Rule::Expression, out);
        }
        self.put_inner(name, element, out, |walk, inner, out| {
            let operator = name_of(inner)?;
            let rule = match find_rule(EXPRESSIONS, operator) {
                Some(rule) => rule,
                None if PLAIN_EXPRESSIONS.contains(&operator) => Rule::Expression,
                None => return Err(reason::UNKNOWN),
            };
            walk.put_by_rule(operator, inner, rule, out)
        })
    }

    /// A text of few letters that says how something is written, where it is one.
    fn put_notation(
        &mut self,
        name: &str,
        element: &Element<'_>,
        is_one: fn(&str) -> bool,
        out: &mut Vec<u8>,
    ) -> Outcome {
        match element.as_str() {
            Some(text) if text.starts_with('$') => self.put_expression(name, element, out),
            Some(text) if is_one(text) => {
                put_value(name, element.kind, element.value, out);
                Ok(())
            }
            _ => Err(reason::UNKNOWN),
        }
    }

    /// A name: of a collection, a field and so on. In place of some a number may stand.
    fn put_name(
        &mut self,
        name: &str,
        element: &Element<'_>,
        change: impl FnOnce(&mut DocumentWords, &str) -> String,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if is_plain(element.kind) {
            put_value(name, element.kind, element.value, out);
            return Ok(());
        }
        let text = element.as_str().ok_or(reason::UNKNOWN)?;
        put_text(name, kind::STRING, &change(self.words, text), out);
        Ok(())
    }

    fn put_by_rule(&mut self, name: &str, element: &Element<'_>, rule: Rule, out: &mut Vec<u8>) -> Outcome {
        let is_document = element.kind == kind::DOCUMENT;
        let operator = first_operator(element);
        match rule {
            Rule::Plain if is_plain(element.kind) => put_value(name, element.kind, element.value, out),
            Rule::Bytes if is_plain(element.kind) || element.kind == kind::BINARY => {
                put_value(name, element.kind, element.value, out);
            }
            Rule::Word(known) => {
                let is_known = element.as_str().is_some_and(|text| known.contains(&text));
                if !is_known && !is_plain(element.kind) {
                    return Err(reason::UNKNOWN);
                }
                put_value(name, element.kind, element.value, out);
            }
            Rule::Dropped => {}
            Rule::Data => self.put_data(name, element, out)?,
            Rule::Each(rule) if element.kind == kind::ARRAY => self.put_named(name, element, *rule, out)?,
            Rule::Each(rule) => self.put_by_rule(name, element, *rule, out)?,
            Rule::Fields(table) => self.put_fields(name, element, table, out)?,
            Rule::Args(table) if is_document && operator.is_none() => {
                self.put_fields(name, element, table, out)?;
            }
            // What looks like an operator may be a field of the table.
            Rule::Args(table) if operator.is_some_and(|first| find_rule(table, first).is_some()) => {
                self.put_fields(name, element, table, out)?;
            }
            Rule::Args(_) | Rule::Expression => self.put_expression(name, element, out)?,
            Rule::Named(rule) if is_document => self.put_named(name, element, *rule, out)?,
            Rule::Named(_) if is_plain(element.kind) => put_value(name, element.kind, element.value, out),
            Rule::Collection => self.put_name(name, element, DocumentWords::permute_collection, out)?,
            Rule::Database => self.put_name(name, element, DocumentWords::permute_database, out)?,
            Rule::Namespace => self.put_name(name, element, DocumentWords::permute_namespace, out)?,
            Rule::Path => self.put_name(name, element, DocumentWords::permute_path, out)?,
            Rule::Variable => {
                self.put_name(name, element, |words, text| words.permute_variable(text), out)?;
            }
            Rule::Hint if is_document => self.put_named(name, element, Rule::Plain, out)?,
            Rule::Hint | Rule::IndexName => {
                let change = |words: &mut DocumentWords, text: &str| match ["_id_", "*"].contains(&text) {
                    true => text.to_owned(),
                    false => words.permute_text(text),
                };
                self.put_name(name, element, change, out)?;
            }
            Rule::Variables => self.put_inner(name, element, out, |walk, inner, out| {
                let variable = walk.words.permute_variable(name_of(inner)?);
                walk.put_expression(&variable, inner, out)
            })?,
            Rule::Filter if is_document => {
                self.put_operators(name, element, (FILTER, Some(Rule::Condition)), out)?;
            }
            Rule::ElementFilter if is_document => {
                self.put_inner(name, element, out, |walk, inner, out| {
                    let inner_name = name_of(inner)?;
                    match inner_name {
                        "$and" | "$or" | "$nor" => {
                            walk.put_by_rule(inner_name, inner, Rule::Each(&Rule::ElementFilter), out)
                        }
                        _ => {
                            let path = walk.words.permute_element_path(inner_name);
                            walk.put_by_rule(&path, inner, Rule::Condition, out)
                        }
                    }
                })?
            }
            Rule::Condition if operator.is_some() => {
                self.put_operators(name, element, (CONDITION, None), out)?;
            }
            Rule::Pulled if operator.is_some_and(|first| find_rule(CONDITION, first).is_some()) => {
                self.put_operators(name, element, (CONDITION, None), out)?;
            }
            Rule::Pulled if is_document => self.put_by_rule(name, element, Rule::Filter, out)?,
            Rule::Pushed if operator.is_some() => self.put_operators(name, element, (PUSH, None), out)?,
            Rule::Condition | Rule::Pulled | Rule::Pushed => self.put_data(name, element, out)?,
            Rule::Update if element.kind == kind::ARRAY => {
                self.put_by_rule(name, element, Rule::Pipeline, out)?
            }
            Rule::Update if operator.is_some() => self.put_operators(name, element, (UPDATE, None), out)?,
            Rule::Update if is_document => self.put_data(name, element, out)?,
            Rule::Pipeline if element.kind == kind::ARRAY => {
                self.put_inner(name, element, out, |walk, stage, out| {
                    walk.put_fields(name_of(stage)?, stage, STAGES, out)
                })?;
            }
            Rule::CollectionOr(table) if is_document => self.put_fields(name, element, table, out)?,
            Rule::CollectionOr(_) => self.put_by_rule(name, element, Rule::Collection, out)?,
            Rule::Matched if element.kind == kind::ARRAY => {
                self.put_by_rule(name, element, Rule::Pipeline, out)?
            }
            Rule::Matched => self.put_by_rule(name, element, Rule::Word(MATCHED), out)?,
            Rule::Command if is_document => {
                let first = first_element(element.value).ok_or(reason::DAMAGED)?;
                let table = table_of(name_of(&first)?).ok_or(reason::UNKNOWN)?;
                self.put_inner(name, element, out, |walk, inner, out| {
                    walk.put_field(inner, [table, COMMON, &[("$db", Rule::Database)]], out)
                })?;
            }
            Rule::Script => self.put_script(name, element, out)?,
            Rule::Locale => self.put_notation(name, element, is_locale, out)?,
            Rule::Format => self.put_notation(name, element, is_format, out)?,
            Rule::TimeZone => self.put_notation(name, element, is_time_zone, out)?,
            _ => return Err(reason::UNKNOWN),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
