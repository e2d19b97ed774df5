//! Values of documents and of operations' parameters.

use crate::distributions::RejectionInversion;
use dyno_types::bson::{self, kind};
use dyno_types::rng::{self, Purpose, Stream};

/// Distribution by which a number out of `0..n` is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum NumberDistribution {
    /// All equally often.
    #[default]
    Uniform,
    /// The first ones most often: the true zipfian distribution of this exponent, any number from 0 on.
    Zipfian(RejectionInversion),
    /// A share `operations` of the draws falls on the first `data` of the numbers, both from 0 to 1.
    Hotspot {
        /// Share of the numbers that is hot.
        data: f64,
        /// Share of the draws that it takes.
        operations: f64,
    },
    /// Some of the numbers at a time, all of these equally often, each for a while, in the order of the numbers: sessions that
    /// come and go. Of keys alone.
    Active(ActiveNumbers),
}

/// Numbers that are drawn for a while each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActiveNumbers {
    /// How many are drawn at a time, at least 1.
    pub at_a_time: u64,
    /// Operations for which each is drawn, at least 1.
    pub operations: u64,
}

impl ActiveNumbers {
    /// A number of `0..n` for operation `operation`. Numbers change one after the other, and after the last comes the first.
    pub fn draw_number(self, operation: u64, n: u64, stream: &mut Stream) -> u64 {
        let (n, at_a_time) = (n.max(1), self.at_a_time.clamp(1, n.max(1)));
        let place = stream.next_below(at_a_time);
        let moved = (u128::from(place) * u128::from(self.operations) / u128::from(at_a_time)) as u64;
        let before = operation.saturating_add(moved) / self.operations.max(1);
        ((u128::from(before) * u128::from(at_a_time) + u128::from(place)) % u128::from(n)) as u64
    }
}

impl NumberDistribution {
    /// The zipfian distribution with this exponent.
    pub fn with_exponent(theta: f64) -> Self {
        NumberDistribution::Zipfian(RejectionInversion::new(theta))
    }

    /// A number of `0..n`; `n` of 0 counts as 1.
    pub fn draw_number(&self, n: u64, stream: &mut Stream) -> u64 {
        let n = n.max(1);
        match self {
            NumberDistribution::Uniform => stream.next_below(n),
            NumberDistribution::Zipfian(zipf) => zipf.rank(n, stream),
            NumberDistribution::Hotspot { data, operations } => {
                let hot = ((n as f64 * data) as u64).clamp(1, n);
                match stream.next_unit() < *operations || hot == n {
                    true => stream.next_below(hot),
                    false => hot + stream.next_below(n - hot),
                }
            }
            // Without an operation it is the first one's.
            NumberDistribution::Active(active) => active.draw_number(0, n, stream),
        }
    }
}

/// Documents of a collection that may be addressed.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressableDocuments {
    /// Number of the collection.
    pub collection: usize,
    /// Distribution by which its documents are chosen. Popular ones are scattered over the collection.
    pub spread: NumberDistribution,
}

/// A value, or how it is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueTemplate {
    /// Always the same: the type and the bytes of a BSON element.
    Constant(u8, Vec<u8>),
    /// The document's number, 64 bits.
    Sequence,
    /// A whole number from `min` to `max`, 64 bits if `wide`, else 32.
    Int {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
        /// Distribution by which it is drawn.
        spread: NumberDistribution,
        /// True if it takes 64 bits.
        wide: bool,
    },
    /// A number from `min` up to `max`, with `decimals` places if given.
    Double {
        /// Least.
        min: f64,
        /// Upper end.
        max: f64,
        /// Places behind the point.
        decimals: Option<u32>,
    },
    /// True with this probability.
    Bool(f64),
    /// Letters and digits.
    Text {
        /// Least and greatest length, bytes.
        length: (u32, u32),
        /// Different values; `None` for as many as there are draws.
        distinct: Option<u64>,
        /// Distribution by which a distinct value is chosen.
        spread: NumberDistribution,
        /// About so many times smaller when compressed.
        ratio: u32,
    },
    /// Bytes.
    Binary {
        /// Least and greatest length, bytes.
        length: (u32, u32),
        /// About so many times smaller when compressed.
        ratio: u32,
    },
    /// A vector of so many numbers from -1 to 1, 32 bits each, little endian. Only commands have vectors.
    Vector(u32),
    /// A time, milliseconds since 1970, from the first up to the second.
    Date(i64, i64),
    /// Twelve bytes that follow from the document's number.
    ObjectId,
    /// One of several, by weight: (sum of the weights up to and with it, value).
    OneOf(Vec<(f64, ValueTemplate)>),
    /// An array of so many values, least and greatest.
    Array((u32, u32), Box<ValueTemplate>),
    /// An array of just these values.
    List(Vec<ValueTemplate>),
    /// An embedded document.
    Document(Vec<(String, ValueTemplate)>),
    /// The `_id` of a document that was loaded.
    Key(AddressableDocuments),
    /// The value that a field of a loaded document has: its dotted name.
    Of(AddressableDocuments, String),
    /// A field of a data file's row: numbers of the file and of the column. Only commands have data files.
    Row(usize, usize),
}

/// Where a value stands: what it may depend on beside its stream.
#[derive(Clone, Copy)]
pub struct ValueContext<'a> {
    /// Number of the document; of an operation: its index.
    pub number: u64,
    /// Salt of the field: the choice among distinct texts differs from field to field.
    pub salt: u64,
    /// Documents of other collections.
    pub source: &'a dyn ReferenceSource,
}

/// Documents of other collections, which a value may depend on.
pub trait ReferenceSource {
    /// The number of a document out of `keys`, drawn.
    fn choose(&self, keys: &AddressableDocuments, stream: &mut Stream) -> u64;

    /// Appends the `_id` of a document as an element.
    fn id(&self, collection: usize, number: u64, name: &str, out: &mut Vec<u8>);

    /// Appends a field of a document as an element; null if it has none.
    fn field(&self, collection: usize, number: u64, path: &str, name: &str, out: &mut Vec<u8>);
}

impl ValueTemplate {
    /// Bytes of the longest value, without its name; of a key or another's field, which are as long as they are there, the least.
    pub fn longest_value(&self) -> u64 {
        let named = |value: &ValueTemplate| value.longest_value().saturating_add(8);
        match self {
            ValueTemplate::Constant(_, bytes) => bytes.len() as u64,
            ValueTemplate::Binary { length, .. } | ValueTemplate::Text { length, .. } => u64::from(length.1),
            ValueTemplate::Vector(dimensions) => 4 * u64::from(*dimensions),
            ValueTemplate::OneOf(all) => {
                all.iter().map(|(_, value)| value.longest_value()).max().unwrap_or(0)
            }
            ValueTemplate::Array(length, value) => u64::from(length.1).saturating_mul(named(value)),
            ValueTemplate::List(all) => all.iter().map(named).fold(0, u64::saturating_add),
            ValueTemplate::Document(all) => {
                let field =
                    |(name, value): &(String, ValueTemplate)| named(value).saturating_add(name.len() as u64);
                all.iter().map(field).fold(0, u64::saturating_add)
            }
            _ => 8,
        }
    }

    /// Appends the value as an element called `name`.
    pub fn render_element(
        &self,
        name: &str,
        place: ValueContext<'_>,
        stream: &mut Stream,
        out: &mut Vec<u8>,
    ) {
        match self {
            ValueTemplate::Constant(kind, bytes) => {
                bson::put_head(out, *kind, name);
                out.extend_from_slice(bytes);
            }
            ValueTemplate::Sequence => bson::put_int64(out, name, place.number as i64),
            ValueTemplate::Int { wide, .. } => {
                let value = self.draw_int(stream);
                match wide {
                    true => bson::put_int64(out, name, value),
                    false => bson::put_int32(out, name, value as i32),
                }
            }
            ValueTemplate::Double { .. } => bson::put_double(out, name, self.draw_double(stream)),
            ValueTemplate::Bool(probability) => {
                bson::put_boolean(out, name, stream.next_unit() < *probability)
            }
            ValueTemplate::Text { length, distinct, spread, ratio } => {
                let mut own = match distinct {
                    // The same number gives the same text wherever the field occurs.
                    Some(n) => Stream::new(place.salt, spread.draw_number(*n, stream), Purpose::Value),
                    None => Stream::from_bits(stream.next_u64()),
                };
                bson::put_head(out, kind::STRING, name);
                let bytes = between(*length, &mut own);
                out.extend_from_slice(&(bytes as i32 + 1).to_le_bytes());
                letters(bytes, *ratio, &mut own, out);
                out.push(0);
            }
            ValueTemplate::Binary { length, ratio } => {
                bson::put_head(out, kind::BINARY, name);
                let bytes = between(*length, stream);
                out.extend_from_slice(&(bytes as i32).to_le_bytes());
                out.push(0);
                noise(bytes, *ratio, stream, out);
            }
            ValueTemplate::Date(from, to) => {
                let span = to.saturating_sub(*from).max(1) as u64;
                bson::put_date(out, name, from + stream.next_below(span) as i64);
            }
            ValueTemplate::ObjectId => {
                bson::put_head(out, kind::OBJECT_ID, name);
                let first = rng::mix_bits(place.salt ^ rng::mix_bits(place.number));
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&(rng::mix_bits(first ^ place.number) as u32).to_be_bytes());
            }
            ValueTemplate::OneOf(choices) => {
                let all = choices.last().map_or(0.0, |(sum, _)| *sum);
                let at = stream.next_unit() * all;
                let chosen = choices.iter().find(|(sum, _)| at < *sum).or(choices.last());
                if let Some((_, value)) = chosen {
                    value.render_element(name, place, stream, out);
                }
            }
            ValueTemplate::Key(keys) => {
                let number = place.source.choose(keys, stream);
                place.source.id(keys.collection, number, name, out);
            }
            ValueTemplate::Of(keys, path) => {
                let number = place.source.choose(keys, stream);
                place.source.field(keys.collection, number, path, name, out);
            }
            ValueTemplate::Row(..) | ValueTemplate::Vector(_) => bson::put_null(out, name),
            ValueTemplate::Array(..) | ValueTemplate::List(_) | ValueTemplate::Document(_) => {
                self.nested(name, place, stream, out)
            }
        }
    }

    /// Draws a whole number; 0 for another kind of value.
    pub(super) fn draw_int(&self, stream: &mut Stream) -> i64 {
        let ValueTemplate::Int { min, max, spread, .. } = self else { return 0 };
        let choices = (max.wrapping_sub(*min) as u64).saturating_add(1);
        min.wrapping_add(spread.draw_number(choices, stream) as i64)
    }

    /// Draws a number, rounded to its places; 0 for another kind of value.
    pub(super) fn draw_double(&self, stream: &mut Stream) -> f64 {
        let ValueTemplate::Double { min, max, decimals } = self else { return 0.0 };
        let value = min + stream.next_unit() * (max - min);
        decimals.map_or(value, |places| {
            let unit = 10f64.powi(places as i32);
            (value * unit).round() / unit
        })
    }

    fn nested(&self, name: &str, place: ValueContext<'_>, stream: &mut Stream, out: &mut Vec<u8>) {
        let is_document = matches!(self, ValueTemplate::Document(_));
        bson::put_head(out, if is_document { kind::DOCUMENT } else { kind::ARRAY }, name);
        let at = bson::open(out);
        match self {
            ValueTemplate::Document(fields) => fields_of(fields, place, stream, out),
            ValueTemplate::Array(length, value) => {
                for index in 0..between(*length, stream) {
                    value.render_element(&index.to_string(), place, stream, out);
                }
            }
            ValueTemplate::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    value.render_element(&index.to_string(), place, stream, out);
                }
            }
            _ => {}
        }
        bson::close(out, at);
    }

    /// Returns whether it depends on documents, its own included: these may not be what a document is found by.
    pub fn refers_to_documents(&self) -> bool {
        match self {
            ValueTemplate::Key(_) | ValueTemplate::Of(..) => true,
            ValueTemplate::OneOf(choices) => choices.iter().any(|(_, value)| value.refers_to_documents()),
            ValueTemplate::Array(_, value) => value.refers_to_documents(),
            ValueTemplate::List(values) => values.iter().any(ValueTemplate::refers_to_documents),
            ValueTemplate::Document(fields) => fields.iter().any(|(_, value)| value.refers_to_documents()),
            _ => false,
        }
    }
}

/// Appends the fields of a document; each draws from a stream of its own, so that none shifts the others.
pub(super) fn fields_of(
    fields: &[(String, ValueTemplate)],
    place: ValueContext<'_>,
    stream: &mut Stream,
    out: &mut Vec<u8>,
) {
    for (number, (name, value)) in fields.iter().enumerate() {
        let mut own = Stream::from_bits(stream.next_u64());
        let salt = rng::mix_bits(place.salt.wrapping_add(number as u64 + 1));
        value.render_element(name, ValueContext { salt, ..place }, &mut own, out);
    }
}

pub(super) fn between((least, most): (u32, u32), stream: &mut Stream) -> u32 {
    least + stream.next_below(u64::from(most.saturating_sub(least)) + 1) as u32
}

/// One part in `ratio` random, the rest a repetition of one character.
pub(super) fn letters(bytes: u32, ratio: u32, stream: &mut Stream, out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -";
    let end = out.len() + bytes as usize;
    let mut random = bytes.div_ceil(ratio.max(1));
    while random > 0 {
        let bits = stream.next_u64();
        let count = random.min(10);
        let ten: [u8; 10] = std::array::from_fn(|i| LETTERS[(bits >> (6 * i)) as usize & 63]);
        out.extend_from_slice(&ten[..count as usize]);
        random -= count;
    }
    out.resize(end, b'.');
}

pub(super) fn noise(bytes: u32, ratio: u32, stream: &mut Stream, out: &mut Vec<u8>) {
    let end = out.len() + bytes as usize;
    let mut random = bytes.div_ceil(ratio.max(1));
    while random > 0 {
        let count = random.min(8);
        out.extend_from_slice(&stream.next_u64().to_le_bytes()[..count as usize]);
        random -= count;
    }
    out.resize(end, 0);
}
