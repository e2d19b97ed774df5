//! Values as text: arguments of commands. Numbers are decimal, documents and arrays are JSON.

use super::value::{AddressableDocuments, ValueTemplate, between, letters, noise};
use crate::keys::push_signed;
use dyno_types::bson::kind;
use dyno_types::rng::{self, Purpose, Stream};
use std::io::Write;

/// Place of a value in a command: what it may depend on beside its stream.
#[derive(Clone, Copy)]
pub struct TextContext<'a> {
    /// Number of the operation.
    pub number: u64,
    /// Salt of the argument: the choice among distinct texts differs from argument to argument.
    pub salt: u64,
    /// Keys and files that a value may come from.
    pub source: &'a dyn TextSource,
}

/// Keys and files that a value may come from.
pub trait TextSource {
    /// Appends a key of a key space, drawn.
    fn key(&self, keys: &AddressableDocuments, stream: &mut Stream, out: &mut Vec<u8>);

    /// Appends a field of the operation's row of a data file.
    fn cell(&self, file: usize, column: usize, out: &mut Vec<u8>);
}

impl ValueTemplate {
    /// Appends the value as text.
    pub fn render_text(&self, place: TextContext<'_>, stream: &mut Stream, out: &mut Vec<u8>) {
        match self {
            ValueTemplate::Constant(kind, bytes) => constant_text(*kind, bytes, out),
            ValueTemplate::Sequence => push_signed(place.number as i64, out),
            ValueTemplate::Int { .. } => push_signed(self.draw_int(stream), out),
            ValueTemplate::Double { decimals, .. } => {
                let value = self.draw_double(stream);
                // Writing to a vector cannot fail.
                drop(match decimals {
                    Some(places) => write!(out, "{value:.*}", *places as usize),
                    None => write!(out, "{value}"),
                });
            }
            ValueTemplate::Bool(probability) => {
                out.push(if stream.next_unit() < *probability { b'1' } else { b'0' })
            }
            ValueTemplate::Text { length, distinct, spread, ratio } => {
                let mut own = match distinct {
                    Some(n) => Stream::new(place.salt, spread.draw_number(*n, stream), Purpose::Value),
                    None => Stream::from_bits(stream.next_u64()),
                };
                let bytes = between(*length, &mut own);
                letters(bytes, *ratio, &mut own, out);
            }
            ValueTemplate::Binary { length, ratio } => {
                let bytes = between(*length, stream);
                noise(bytes, *ratio, stream, out);
            }
            ValueTemplate::Vector(dimensions) => {
                for _ in 0..*dimensions {
                    let number = stream.next_unit() * 2.0 - 1.0;
                    out.extend_from_slice(&(number as f32).to_le_bytes());
                }
            }
            ValueTemplate::Date(from, to) => {
                let span = to.saturating_sub(*from).max(1) as u64;
                push_signed(from + stream.next_below(span) as i64, out);
            }
            ValueTemplate::ObjectId => {
                let first = rng::mix_bits(place.salt ^ rng::mix_bits(place.number));
                let last = rng::mix_bits(first ^ place.number) as u32;
                drop(write!(out, "{first:016x}{last:08x}"));
            }
            ValueTemplate::OneOf(choices) => {
                if let Some(chosen) = choose(choices, stream) {
                    chosen.render_text(place, stream, out);
                }
            }
            ValueTemplate::Key(keys) => place.source.key(keys, stream, out),
            ValueTemplate::Row(file, column) => place.source.cell(*file, *column, out),
            // Only documents have fields of other documents.
            ValueTemplate::Of(..) => {}
            ValueTemplate::Array(..) | ValueTemplate::List(_) | ValueTemplate::Document(_) => {
                self.render_json(place, stream, out)
            }
        }
    }

    /// Appends the value as JSON.
    fn render_json(&self, place: TextContext<'_>, stream_: &mut Stream, out: &mut Vec<u8>) {
        match self {
            ValueTemplate::Document(fields) => {
                out.push(b'{');
                for (number, (name, value)) in fields.iter().enumerate() {
                    if number > 0 {
                        out.push(b',');
                    }
                    quote(name.as_bytes(), out);
                    out.push(b':');
                    // A stream of its own, so that no field shifts the others.
                    let mut own = Stream::from_bits(stream_.next_u64());
                    let salt = rng::mix_bits(place.salt.wrapping_add(number as u64 + 1));
                    value.render_json(TextContext { salt, ..place }, &mut own, out);
                }
                out.push(b'}');
            }
            ValueTemplate::Array(length, value) => {
                let count = between(*length, stream_);
                list((0..count).map(|_| &**value), place, stream_, out);
            }
            ValueTemplate::List(values) => list(values.iter(), place, stream_, out),
            ValueTemplate::OneOf(choices) => {
                if let Some(chosen) = choose(choices, stream_) {
                    chosen.render_json(place, stream_, out);
                }
            }
            ValueTemplate::Vector(dimensions) => {
                out.push(b'[');
                for number in 0..*dimensions {
                    let mark = if number > 0 { "," } else { "" };
                    drop(write!(out, "{mark}{}", (stream_.next_unit() * 2.0 - 1.0) as f32));
                }
                out.push(b']');
            }
            ValueTemplate::Constant(kind::NULL, _) => out.extend_from_slice(b"null"),
            ValueTemplate::Bool(probability) => {
                let text: &[u8] = if stream_.next_unit() < *probability { b"true" } else { b"false" };
                out.extend_from_slice(text);
            }
            ValueTemplate::Constant(kind::INT32 | kind::INT64 | kind::DOUBLE | kind::BOOLEAN, _)
            | ValueTemplate::Sequence
            | ValueTemplate::Int { .. }
            | ValueTemplate::Double { .. }
            | ValueTemplate::Date(..) => self.render_text(place, stream_, out),
            _ => {
                let mut text = Vec::new();
                self.render_text(place, stream_, &mut text);
                quote(&text, out);
            }
        }
    }
}

fn list<'a>(
    values: impl Iterator<Item = &'a ValueTemplate>,
    place: TextContext<'_>,
    stream: &mut Stream,
    out: &mut Vec<u8>,
) {
    out.push(b'[');
    for (number, value) in values.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        value.render_json(place, stream, out);
    }
    out.push(b']');
}

fn choose<'a>(choices: &'a [(f64, ValueTemplate)], stream: &mut Stream) -> Option<&'a ValueTemplate> {
    let all = choices.last().map_or(0.0, |(sum, _)| *sum);
    let at = stream.next_unit() * all;
    choices.iter().find(|(sum, _)| at < *sum).or(choices.last()).map(|(_, value)| value)
}

/// Appends text as a string of JSON; bytes that are no text are replaced, as JSON has none.
fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '"' | '\\' => drop(write!(out, "\\{c}")),
            c if u32::from(c) < 0x20 => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => drop(write!(out, "{c}")),
        }
    }
    out.push(b'"');
}

/// A value of BSON as text: its kind and its bytes.
pub fn constant_text(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    let eight = bytes.first_chunk::<8>();
    match kind {
        kind::STRING => out.extend_from_slice(&bytes[4..bytes.len() - 1]),
        kind::BOOLEAN => out.extend_from_slice(if bytes == [1] { b"true" } else { b"false" }),
        kind::DOUBLE => drop(write!(out, "{}", eight.map_or(0.0, |bytes| f64::from_le_bytes(*bytes)))),
        kind::INT32 => {
            push_signed(bytes.first_chunk::<4>().map_or(0, |bytes| i32::from_le_bytes(*bytes).into()), out)
        }
        kind::INT64 => push_signed(eight.map_or(0, |bytes| i64::from_le_bytes(*bytes)), out),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::NumberDistribution;

    struct Nowhere;

    impl TextSource for Nowhere {
        fn key(&self, _keys: &AddressableDocuments, _words: &mut Stream, out: &mut Vec<u8>) {
            out.extend_from_slice(b"key\"1");
        }

        fn cell(&self, file: usize, column: usize, out: &mut Vec<u8>) {
            drop(write!(out, "{file}.{column}"));
        }
    }

    fn text(value: &ValueTemplate) -> String {
        let mut out = Vec::new();
        let place = TextContext { number: 7, salt: 1, source: &Nowhere };
        value.render_text(place, &mut Stream::new(1, 2, Purpose::Choice), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_text() {
        let int = |min, max| ValueTemplate::Int { min, max, spread: NumberDistribution::Uniform, wide: true };
        assert_eq!(text(&ValueTemplate::Sequence), "7");
        assert_eq!(text(&int(-5, -5)), "-5");
        assert_eq!(text(&ValueTemplate::Double { min: 1.5, max: 1.5, decimals: Some(3) }), "1.500");
        assert_eq!(
            (text(&ValueTemplate::Bool(1.0)), text(&ValueTemplate::Bool(0.0))),
            ("1".into(), "0".into())
        );
        assert_eq!(text(&ValueTemplate::Row(2, 3)), "2.3");
        assert_eq!(text(&ValueTemplate::Date(86_400_000, 86_400_001)), "86400000");
        assert_eq!(text(&ValueTemplate::ObjectId).len(), 24);
        let long = ValueTemplate::Text {
            length: (9, 9),
            distinct: None,
            spread: NumberDistribution::Uniform,
            ratio: 1,
        };
        assert_eq!(text(&long).len(), 9);
        assert_eq!(text(&ValueTemplate::OneOf(vec![(0.0, int(1, 1)), (1.0, int(2, 2))])), "2");
    }

    #[test]
    fn documents_are_json() {
        let keys = AddressableDocuments { collection: 0, spread: NumberDistribution::Uniform };
        let one = ValueTemplate::Int { min: 1, max: 1, spread: NumberDistribution::Uniform, wide: true };
        let document = ValueTemplate::Document(vec![
            ("a".into(), one.clone()),
            ("k".into(), ValueTemplate::Key(keys)),
            ("l".into(), ValueTemplate::Array((2, 2), Box::new(one.clone()))),
            ("n".into(), ValueTemplate::Constant(kind::NULL, Vec::new())),
            ("t".into(), ValueTemplate::List(vec![ValueTemplate::Bool(1.0), one])),
        ]);
        assert_eq!(text(&document), r#"{"a":1,"k":"key\"1","l":[1,1],"n":null,"t":[true,1]}"#);
    }
}
