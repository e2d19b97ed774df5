//! Generators of values: a mapping whose only key begins with `$`; anything else is meant as it stands.

use crate::template::fields::{Bad, Fields, bad, count, number, range, text, whole};
use crate::yaml::{Yaml, YamlNode};
use dyno_types::bson::{self, kind};
use dyno_types::limits::{BSON_BYTES, VALUE_BYTES};
use dyno_types::suggest::hint;
use dyno_workload::template::{AddressableDocuments, NumberDistribution, ValueTemplate, constant_text};

/// A key space, for generators.
pub(super) struct KeySpaceName {
    /// Name.
    pub name: String,
    /// Distribution where a generator says none.
    pub spread: NumberDistribution,
}

/// A data file, for generators.
pub(super) struct TableName {
    /// Name.
    pub name: String,
    /// Names of its columns.
    pub columns: Vec<String>,
}

/// Names that generators may refer to, and their bounds.
pub(super) struct Scope {
    /// Collections of documents.
    collections: Vec<String>,
    /// Of commands: key spaces and data files.
    commands: Option<(Vec<KeySpaceName>, Vec<TableName>)>,
    /// Bytes of the longest text.
    longest: i64,
}

impl Scope {
    /// Names of documents.
    pub fn of_documents(collections: Vec<String>) -> Self {
        Scope { collections, commands: None, longest: VALUE_BYTES }
    }

    /// Names of commands.
    pub fn of_commands(keys: Vec<KeySpaceName>, tables: Vec<TableName>, longest: i64) -> Self {
        Scope { collections: Vec::new(), commands: Some((keys, tables)), longest }
    }

    /// The number of a collection.
    pub fn find_collection(&self, node: &YamlNode, name: &str) -> Result<usize, Bad> {
        find(node, "collection", name, self.collections.iter().map(String::as_str))
    }

    /// Returns whether there is a generator of this name.
    pub fn knows(name: &str) -> bool {
        KNOWN.contains(&name)
    }

    /// The names of all generators, without the sign.
    pub fn generators() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|name| &name[1..])
    }
}

/// The number of a name of this kind.
fn find<'a>(
    node: &YamlNode,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, Bad> {
    known.clone().position(|one| one == name).map_or_else(
        || {
            let near = hint(name, known.clone());
            let all = known.clone().collect::<Vec<_>>().join(", ");
            bad(node, format!("there is no {what} {name:?}{near}; names of the file: {all}"))
        },
        Ok,
    )
}

/// All generators.
pub(super) const KNOWN: [&str; 15] = [
    "$sequence",
    "$int",
    "$long",
    "$double",
    "$bool",
    "$string",
    "$binary",
    "$date",
    "$objectId",
    "$oneOf",
    "$array",
    "$key",
    "$of",
    "$row",
    "$vector",
];

/// Numbers that a vector may have.
const DIMENSIONS: i64 = 65_536;

/// A value, or how it is drawn.
pub(super) fn value(node: &YamlNode, names: &Scope) -> Result<ValueTemplate, Bad> {
    match node.value() {
        Yaml::List(all) => {
            Ok(ValueTemplate::List(all.iter().map(|one| value(one, names)).collect::<Result<_, _>>()?))
        }
        Yaml::Map(all) => match &all[..] {
            [(name, how)] if name.starts_with('$') => generator(name, how, node, names),
            _ => {
                if let Some((name, at)) = all.iter().find(|(name, _)| name.starts_with('$')) {
                    return bad(at, format!("{name:?} beside other keys: a generator stands alone"));
                }
                let field = |(name, node): &(String, YamlNode)| Ok((name.clone(), value(node, names)?));
                Ok(ValueTemplate::Document(all.iter().map(field).collect::<Result<_, _>>()?))
            }
        },
        _ => Ok(constant(node)),
    }
}

/// The same in a command, where operators are literal: a mapping is a generator if its only key is one's name.
pub(super) fn command_value(node: &YamlNode, names: &Scope) -> Result<ValueTemplate, Bad> {
    match node.value() {
        Yaml::List(all) => {
            let all = all.iter().map(|one| command_value(one, names));
            Ok(ValueTemplate::List(all.collect::<Result<_, _>>()?))
        }
        Yaml::Map(all) => match &all[..] {
            [(name, how)] if Scope::knows(name) => generator(name, how, node, names),
            _ => {
                let field =
                    |(name, node): &(String, YamlNode)| Ok((name.clone(), command_value(node, names)?));
                Ok(ValueTemplate::Document(all.iter().map(field).collect::<Result<_, _>>()?))
            }
        },
        _ => Ok(constant(node)),
    }
}

/// A scalar as BSON has it: whole numbers take 32 bits where they fit.
fn constant(node: &YamlNode) -> ValueTemplate {
    let mut out = Vec::new();
    element(node, "", &mut out);
    // Type byte and the end of the empty name come first.
    ValueTemplate::Constant(out[0], out[2..].to_vec())
}

/// A scalar as text.
pub(super) fn constant_bytes(node: &YamlNode) -> Vec<u8> {
    let mut out = Vec::new();
    if let ValueTemplate::Constant(kind, bytes) = constant(node) {
        constant_text(kind, &bytes, &mut out);
    }
    out
}

/// Refuses whole numbers that no document can hold: BSON has 64 bits with a sign.
pub(super) fn refuse_wide(node: &YamlNode) -> Result<(), Bad> {
    match node.value() {
        Yaml::Int(n) if i64::try_from(*n).is_err() => bad(node, format!("{n} is above {}", i64::MAX)),
        Yaml::List(all) => all.iter().try_for_each(refuse_wide),
        Yaml::Map(all) => all.iter().try_for_each(|(_, one)| refuse_wide(one)),
        _ => Ok(()),
    }
}

/// Appends a value as it stands.
pub(super) fn element(node: &YamlNode, name: &str, out: &mut Vec<u8>) {
    match node.value() {
        Yaml::Null => bson::put_null(out, name),
        Yaml::Bool(flag) => bson::put_boolean(out, name, *flag),
        Yaml::Int(n) => match i32::try_from(*n) {
            Ok(n) => bson::put_int32(out, name, n),
            // `refuse_wide` has seen every number of the file.
            Err(_) => bson::put_int64(out, name, *n as i64),
        },
        Yaml::Float(n) => bson::put_double(out, name, *n),
        Yaml::Text(text) => bson::put_string(out, name, text),
        Yaml::List(all) => {
            bson::put_head(out, kind::ARRAY, name);
            let at = bson::open(out);
            all.iter().enumerate().for_each(|(i, one)| element(one, &i.to_string(), out));
            bson::close(out, at);
        }
        Yaml::Map(all) => {
            bson::put_head(out, kind::DOCUMENT, name);
            let at = bson::open(out);
            all.iter().for_each(|(name, one)| element(one, name, out));
            bson::close(out, at);
        }
    }
}

/// A generator by its name, and how it draws.
pub(super) fn generator(
    name: &str,
    how: &YamlNode,
    node: &YamlNode,
    names: &Scope,
) -> Result<ValueTemplate, Bad> {
    match name {
        "$sequence" => Ok(ValueTemplate::Sequence),
        "$objectId" => Ok(ValueTemplate::ObjectId),
        "$int" if names.commands.is_none() => int(how, i64::from(i32::MIN), i64::from(i32::MAX), false),
        "$int" | "$long" => int(how, i64::MIN, i64::MAX, true),
        "$double" => double(how),
        "$bool" => match how.value() {
            Yaml::Null => Ok(ValueTemplate::Bool(0.5)),
            _ => share(how).map(ValueTemplate::Bool),
        },
        "$string" => string(how, names),
        "$binary" => {
            let (length, ratio) = match how.value() {
                Yaml::Map(_) => {
                    let mut fields = Fields::of_mapping(how, name)?;
                    let length =
                        length(fields.need_value("length", "bytes, N or [LEAST, GREATEST]")?, names)?;
                    let ratio = ratio(fields.take_value("compressible"))?;
                    fields.end(&["length", "compressible"])?;
                    (length, ratio)
                }
                _ => (length(how, names)?, 1),
            };
            Ok(ValueTemplate::Binary { length, ratio })
        }
        "$vector" if names.commands.is_none() => bad(node, "$vector: only commands have vectors"),
        "$vector" => whole(how, 1, DIMENSIONS).map(|dimensions| ValueTemplate::Vector(dimensions as u32)),
        "$date" => {
            let (from, to) = range(how, instant)?;
            if to < from {
                return bad(how, "the second date lies before the first");
            }
            Ok(ValueTemplate::Date(from, to))
        }
        "$oneOf" => one_of(how, names),
        "$array" => {
            let mut fields = Fields::of_mapping(how, name)?;
            let length = length(fields.need_value("length", "elements, N or [LEAST, GREATEST]")?, names)?;
            let of = value(fields.need_value("of", "what the elements are")?, names)?;
            fields.end(&["length", "of"])?;
            let array = ValueTemplate::Array(length, Box::new(of));
            match array.longest_value() > BSON_BYTES.max(names.longest as u64) {
                true => bad(how, format!("an array of more than {BSON_BYTES} bytes: no document holds it")),
                false => Ok(array),
            }
        }
        "$key" => match &names.commands {
            Some((keys, _)) => key(how, keys),
            None => {
                let (collection, spread) = reference(how, "collection")?;
                let collection = names.find_collection(how, &collection)?;
                let spread = spread.unwrap_or_default();
                Ok(ValueTemplate::Key(AddressableDocuments { collection, spread }))
            }
        },
        "$row" => {
            let Some((_, tables)) = &names.commands else {
                return bad(node, "$row: only commands have data files");
            };
            let path = text(how)?;
            let Some((name, column)) = path.split_once('.') else {
                return bad(how, format!("{path:?}: expected DATA.COLUMN"));
            };
            let number = find(how, "data file", name, tables.iter().map(|one| one.name.as_str()))?;
            let columns = tables[number].columns.iter().map(String::as_str);
            Ok(ValueTemplate::Row(number, find(how, "column", column, columns)?))
        }
        "$of" if names.commands.is_some() => {
            bad(node, "$of: only documents have fields; expected $key or $row")
        }
        "$of" => {
            let (path, spread) = reference(how, "field")?;
            let spread = spread.unwrap_or_default();
            let Some((collection, field)) = path.split_once('.') else {
                return bad(how, format!("{path:?}: expected COLLECTION.FIELD"));
            };
            let keys = AddressableDocuments { collection: names.find_collection(how, collection)?, spread };
            Ok(ValueTemplate::Of(keys, field.to_owned()))
        }
        _ => {
            let near = hint(name, KNOWN);
            bad(node, format!("unknown generator {name:?}{near}; accepted: {}", KNOWN.join(", ")))
        }
    }
}

fn int(how: &YamlNode, least: i64, most: i64, wide: bool) -> Result<ValueTemplate, Bad> {
    let bound = |node: &YamlNode| whole(node, least, most);
    let ((min, max), spread) = match how.value() {
        Yaml::Map(_) => {
            let mut fields = Fields::of_mapping(how, "$int")?;
            let min = fields.take_value("min").map_or(Ok(0), bound)?;
            let max = bound(fields.need_value("max", "the greatest value")?)?;
            let spread = spread(fields.take_value("distribution"))?;
            fields.end(&["min", "max", "distribution"])?;
            ((min, max), spread)
        }
        Yaml::Null => ((0, most), NumberDistribution::Uniform),
        _ => (range(how, bound)?, NumberDistribution::Uniform),
    };
    if max < min {
        return bad(how, format!("from {min} to {max} there is no number"));
    }
    Ok(ValueTemplate::Int { min, max, spread, wide })
}

fn double(how: &YamlNode) -> Result<ValueTemplate, Bad> {
    let ((min, max), decimals) = match how.value() {
        Yaml::Map(_) => {
            let mut fields = Fields::of_mapping(how, "$double")?;
            let min = fields.take_value("min").map_or(Ok(0.0), number)?;
            let max = number(fields.need_value("max", "the upper end")?)?;
            let decimals = fields.take_value("decimals").map(|node| whole(node, 0, 15)).transpose()?;
            fields.end(&["min", "max", "decimals"])?;
            ((min, max), decimals.map(|n| n as u32))
        }
        Yaml::Null => ((0.0, 1.0), None),
        _ => (range(how, number)?, None),
    };
    if max < min {
        return bad(how, format!("from {min} to {max} there is no number"));
    }
    Ok(ValueTemplate::Double { min, max, decimals })
}

/// A key of a key space; where none is named, of the only one, or of the one called `key`.
fn key(how: &YamlNode, keys: &[KeySpaceName]) -> Result<ValueTemplate, Bad> {
    let all = keys.iter().map(|one| one.name.as_str());
    let (collection, spread) = match (how.value(), keys) {
        (Yaml::Null, [_]) => (0, None),
        (Yaml::Null, _) if keys.iter().any(|one| one.name == "key") => {
            (find(how, "key space", "key", all)?, None)
        }
        (Yaml::Null, _) => {
            let names = all.collect::<Vec<_>>().join(", ");
            return bad(how, format!("$key: which keys are meant; names of the file: {names}"));
        }
        _ => {
            let (name, spread) = reference(how, "keys")?;
            (find(how, "key space", &name, all)?, spread)
        }
    };
    let spread = spread.unwrap_or(keys[collection].spread);
    Ok(ValueTemplate::Key(AddressableDocuments { collection, spread }))
}

fn string(how: &YamlNode, names: &Scope) -> Result<ValueTemplate, Bad> {
    if !matches!(how.value(), Yaml::Map(_)) {
        return Ok(ValueTemplate::Text {
            length: length(how, names)?,
            distinct: None,
            spread: NumberDistribution::Uniform,
            ratio: 1,
        });
    }
    let mut fields = Fields::of_mapping(how, "$string")?;
    let length = length(fields.need_value("length", "bytes, N or [LEAST, GREATEST]")?, names)?;
    let distinct = fields.take_value("distinct").map(count).transpose()?;
    let skew = fields.take_value("distribution");
    if let (Some(node), None) = (skew, distinct) {
        return bad(node, "distribution chooses among distinct values: give distinct too");
    }
    let value = ValueTemplate::Text {
        length,
        distinct,
        spread: spread(skew)?,
        ratio: ratio(fields.take_value("compressible"))?,
    };
    fields.end(&["length", "distinct", "distribution", "compressible"])?;
    Ok(value)
}

fn one_of(how: &YamlNode, names: &Scope) -> Result<ValueTemplate, Bad> {
    let (list, weights) = match how.value() {
        Yaml::Map(_) => {
            let mut fields = Fields::of_mapping(how, "$oneOf")?;
            let list = fields.need_value("values", "a list")?;
            let weights = fields.need_value("weights", "a number for each value")?;
            fields.end(&["values", "weights"])?;
            (list, Some(weights))
        }
        _ => (how, None),
    };
    let Yaml::List(all) = list.value() else {
        return bad(list, format!("{}: expected a list of values", list.word()));
    };
    let weights: Vec<f64> = match weights.map(YamlNode::value) {
        None => vec![1.0; all.len()],
        Some(Yaml::List(weights)) if weights.len() == all.len() => {
            weights.iter().map(number).collect::<Result<_, _>>()?
        }
        Some(_) => return bad(how, format!("weights: expected a list of {} numbers", all.len())),
    };
    let mut sum = 0.0;
    let mut choices = Vec::new();
    for (node, weight) in all.iter().zip(weights) {
        if weight < 0.0 {
            return bad(node, format!("weight {weight}: expected 0 or more"));
        }
        sum += weight;
        choices.push((sum, value(node, names)?));
    }
    if sum <= 0.0 {
        return bad(how, "expected at least one value with a weight above 0");
    }
    Ok(ValueTemplate::OneOf(choices))
}

/// A name, or a mapping of it and a distribution.
fn reference(how: &YamlNode, key: &str) -> Result<(String, Option<NumberDistribution>), Bad> {
    if let Yaml::Map(_) = how.value() {
        let mut fields = Fields::of_mapping(how, "the reference")?;
        let name = text(fields.need_value(key, "whose documents are meant")?)?.to_owned();
        let spread = fields.take_value("distribution").map(|node| spread(Some(node))).transpose()?;
        fields.end(&[key, "distribution"])?;
        return Ok((name, spread));
    }
    Ok((text(how)?.to_owned(), None))
}

/// `uniform`, `zipfian`, `zipfian:THETA`, `hotspot:DATA:OPERATIONS`.
pub(super) fn spread(node: Option<&YamlNode>) -> Result<NumberDistribution, Bad> {
    let Some(node) = node else { return Ok(NumberDistribution::Uniform) };
    let words: Vec<&str> = text(node)?.split(':').collect();
    let share = |word: &str| word.parse::<f64>().ok().filter(|s| (0.0..=1.0).contains(s));
    let found = match words[..] {
        ["uniform"] => Some(NumberDistribution::Uniform),
        ["zipfian"] => Some(NumberDistribution::with_exponent(0.99)),
        ["zipfian", theta] => theta
            .parse()
            .ok()
            .filter(|t: &f64| (0.0..=100.0).contains(t))
            .map(NumberDistribution::with_exponent),
        ["hotspot", data, operations] => share(data)
            .zip(share(operations))
            .map(|(data, operations)| NumberDistribution::Hotspot { data, operations }),
        _ => None,
    };
    let expected =
        "expected uniform, zipfian, zipfian:THETA or hotspot:DATA:OPERATIONS such as hotspot:0.1:0.9";
    found.map_or_else(|| bad(node, format!("distribution {}: {expected}", node.word())), Ok)
}

fn share(node: &YamlNode) -> Result<f64, Bad> {
    match number(node)? {
        share if (0.0..=1.0).contains(&share) => Ok(share),
        other => bad(node, format!("{other}: expected a number from 0 to 1")),
    }
}

fn length(node: &YamlNode, names: &Scope) -> Result<(u32, u32), Bad> {
    let (least, most) = range(node, |node| whole(node, 0, names.longest))?;
    if most < least {
        return bad(node, format!("from {least} to {most} there is no length"));
    }
    Ok((least as u32, most as u32))
}

fn ratio(node: Option<&YamlNode>) -> Result<u32, Bad> {
    Ok(node.map_or(Ok(1), |node| whole(node, 1, 1_000))? as u32)
}

/// A date such as 2024-01-31, or with a time, UTC; milliseconds since 1970.
fn instant(node: &YamlNode) -> Result<i64, Bad> {
    let text = text(node)?;
    let day = text.parse::<jiff::civil::Date>().map(|date| date.to_datetime(jiff::civil::Time::midnight()));
    let parsed = text.parse::<jiff::Timestamp>().or_else(|_| {
        day.or_else(|_| text.parse::<jiff::civil::DateTime>())
            .and_then(|civil| civil.to_zoned(jiff::tz::TimeZone::UTC))
            .map(|zoned| zoned.timestamp())
    });
    match parsed {
        Ok(instant) => Ok(instant.as_millisecond()),
        Err(_) => bad(node, format!("{text:?}: expected a date such as 2024-01-31 or 2024-01-31T12:00:00Z")),
    }
}
