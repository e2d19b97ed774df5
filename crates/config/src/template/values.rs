//! Generators of values: a mapping whose only key begins with `$`; anything else is meant as it stands.

use crate::template::fields::{Bad, Fields, bad, count, number, range, text, whole};
use crate::yaml::{Yaml, YamlNode};
use dyno_types::bson::{self, kind};
use dyno_types::limits::{BSON_BYTES, VALUE_BYTES};
use dyno_types::suggest::hint;
use dyno_workload::template::{AddressableDocuments, NumberDistribution, ValueTemplate};

/// Names of the collections.
pub(super) struct CollectionNames(pub Vec<String>);

impl CollectionNames {
    /// The number of a collection.
    pub fn find_collection(&self, node: &YamlNode, name: &str) -> Result<usize, Bad> {
        self.0.iter().position(|known| known == name).map_or_else(
            || {
                let near = hint(name, self.0.iter().map(String::as_str));
                bad(node, format!("there is no collection {name:?}{near} Collections: {}", self.0.join(", ")))
            },
            Ok,
        )
    }
}

/// All generators.
pub(super) const KNOWN: [&str; 13] = [
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
];

/// A value, or how it is drawn.
pub(super) fn value(node: &YamlNode, names: &CollectionNames) -> Result<ValueTemplate, Bad> {
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

/// A scalar as BSON has it: whole numbers take 32 bits where they fit.
fn constant(node: &YamlNode) -> ValueTemplate {
    let mut out = Vec::new();
    element(node, "", &mut out);
    // Type byte and the end of the empty name come first.
    ValueTemplate::Constant(out[0], out[2..].to_vec())
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

fn generator(
    name: &str,
    how: &YamlNode,
    node: &YamlNode,
    names: &CollectionNames,
) -> Result<ValueTemplate, Bad> {
    match name {
        "$sequence" => Ok(ValueTemplate::Sequence),
        "$objectId" => Ok(ValueTemplate::ObjectId),
        "$int" => int(how, i64::from(i32::MIN), i64::from(i32::MAX), false),
        "$long" => int(how, i64::MIN, i64::MAX, true),
        "$double" => double(how),
        "$bool" => match how.value() {
            Yaml::Null => Ok(ValueTemplate::Bool(0.5)),
            _ => share(how).map(ValueTemplate::Bool),
        },
        "$string" => string(how),
        "$binary" => {
            let (length, ratio) = match how.value() {
                Yaml::Map(_) => {
                    let mut fields = Fields::of_mapping(how, name)?;
                    let length = length(fields.need_value("length", "bytes, N or [LEAST, GREATEST]")?)?;
                    let ratio = ratio(fields.take_value("compressible"))?;
                    fields.end(&["length", "compressible"])?;
                    (length, ratio)
                }
                _ => (length(how)?, 1),
            };
            Ok(ValueTemplate::Binary { length, ratio })
        }
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
            let length = length(fields.need_value("length", "elements, N or [LEAST, GREATEST]")?)?;
            let of = value(fields.need_value("of", "what the elements are")?, names)?;
            fields.end(&["length", "of"])?;
            let array = ValueTemplate::Array(length, Box::new(of));
            match array.longest_value() > BSON_BYTES {
                true => bad(how, format!("an array of more than {BSON_BYTES} bytes: no document holds it")),
                false => Ok(array),
            }
        }
        "$key" => {
            let (collection, spread) = reference(how, "collection")?;
            Ok(ValueTemplate::Key(AddressableDocuments {
                collection: names.find_collection(how, &collection)?,
                spread,
            }))
        }
        "$of" => {
            let (path, spread) = reference(how, "field")?;
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

fn string(how: &YamlNode) -> Result<ValueTemplate, Bad> {
    if !matches!(how.value(), Yaml::Map(_)) {
        return Ok(ValueTemplate::Text {
            length: length(how)?,
            distinct: None,
            spread: NumberDistribution::Uniform,
            ratio: 1,
        });
    }
    let mut fields = Fields::of_mapping(how, "$string")?;
    let length = length(fields.need_value("length", "bytes, N or [LEAST, GREATEST]")?)?;
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

fn one_of(how: &YamlNode, names: &CollectionNames) -> Result<ValueTemplate, Bad> {
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
fn reference(how: &YamlNode, key: &str) -> Result<(String, NumberDistribution), Bad> {
    if let Yaml::Map(_) = how.value() {
        let mut fields = Fields::of_mapping(how, "the reference")?;
        let name = text(fields.need_value(key, "whose documents are meant")?)?.to_owned();
        let spread = spread(fields.take_value("distribution"))?;
        fields.end(&[key, "distribution"])?;
        return Ok((name, spread));
    }
    Ok((text(how)?.to_owned(), NumberDistribution::Uniform))
}

/// `uniform`, `zipfian`, `zipfian:THETA`, `hotspot:DATA:OPERATIONS`.
fn spread(node: Option<&YamlNode>) -> Result<NumberDistribution, Bad> {
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

fn length(node: &YamlNode) -> Result<(u32, u32), Bad> {
    let (least, most) = range(node, |node| whole(node, 0, VALUE_BYTES))?;
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
