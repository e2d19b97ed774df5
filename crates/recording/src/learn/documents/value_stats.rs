//! What the values at one place of documents or commands are like, and a generator that makes such values.

use super::super::yaml_text::{one_of, quoted, text_of};
use dyno_types::bson::{self, Element, kind};
use std::collections::BTreeMap;

/// Different values of a place that are told apart.
const VALUES: usize = 12;

/// Longest text that stands in a workload as it is, bytes.
const LITERAL: usize = 100;

/// Fields of a document that are told apart.
const FIELDS: usize = 200;

/// Depth to which documents in documents are looked at.
const DEPTH: usize = 16;

/// Values of one kind of BSON's.
#[derive(Clone, Debug)]
struct KindStats {
    count: u64,
    /// Values as they are written and how often each came, while there are few.
    values: Option<BTreeMap<String, u64>>,
    /// Least and greatest, of whole numbers and dates.
    whole: Option<(i64, i64)>,
    /// The same of other numbers.
    broken: Option<(f64, f64)>,
    /// How often each length came, of texts and bytes.
    lengths: BTreeMap<u32, u64>,
    /// Least and greatest number of elements, of arrays.
    elements: Option<(u32, u32)>,
    /// Elements of all arrays.
    items: Option<Box<ValueStats>>,
    fields: BTreeMap<String, ValueStats>,
}

impl Default for KindStats {
    fn default() -> Self {
        KindStats {
            count: 0,
            values: Some(BTreeMap::new()),
            whole: None,
            broken: None,
            lengths: BTreeMap::new(),
            elements: None,
            items: None,
            fields: BTreeMap::new(),
        }
    }
}

/// Values of a place.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueStats {
    kinds: BTreeMap<u8, KindStats>,
}

fn widened<T: PartialOrd + Copy>(range: Option<(T, T)>, value: T) -> Option<(T, T)> {
    let (least, most) = range.unwrap_or((value, value));
    Some((if value < least { value } else { least }, if value > most { value } else { most }))
}

/// A length, rounded to about one in two hundred, so that there are few of them.
fn rounded(length: usize) -> u32 {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let shift = (32 - length.leading_zeros()).saturating_sub(8);
    length >> shift << shift
}

/// A value as a workload writes it, where it can be.
fn literal(element: &Element<'_>) -> Option<String> {
    match element.kind {
        kind::STRING => {
            let text = element.as_str().filter(|text| text.len() <= LITERAL)?;
            (!text.chars().any(char::is_control)).then(|| quoted(text))
        }
        kind::BOOLEAN => Some((element.value == [1]).to_string()),
        kind::NULL => Some("null".into()),
        kind::INT32 => Some(element.as_i64()?.to_string()),
        // A whole number that is small would take 32 bits.
        kind::INT64 => element.as_i64().map(|n| format!("{{ $long: [{n}, {n}] }}")),
        kind::DOUBLE => element.as_f64().filter(|n| n.is_finite()).map(|n| format!("{n:?}")),
        _ => None,
    }
}

impl KindStats {
    fn note(&mut self, element: &Element<'_>, depth: usize) {
        self.count += 1;
        match element.kind {
            kind::INT32 | kind::INT64 | kind::DATE => {
                self.whole = element.as_i64().map_or(self.whole, |n| widened(self.whole, n));
            }
            kind::DOUBLE => {
                let number = element.as_f64().filter(|n| n.is_finite());
                self.broken = number.map_or(self.broken, |n| widened(self.broken, n));
            }
            kind::STRING => {
                *self.lengths.entry(rounded(element.value.len().saturating_sub(5))).or_default() += 1;
            }
            kind::BINARY => {
                *self.lengths.entry(rounded(element.value.len().saturating_sub(5))).or_default() += 1;
            }
            kind::ARRAY if depth < DEPTH => {
                let items = self.items.get_or_insert_default();
                let mut count = 0;
                for item in elements(element.value) {
                    items.note_at(&item, depth + 1);
                    count += 1;
                }
                self.elements = widened(self.elements, count);
            }
            kind::DOCUMENT if depth < DEPTH => {
                for field in elements(element.value) {
                    let Ok(name) = std::str::from_utf8(field.name) else { continue };
                    if self.fields.len() >= FIELDS && !self.fields.contains_key(name) {
                        continue;
                    }
                    self.fields.entry(name.to_owned()).or_default().note_at(&field, depth + 1);
                }
            }
            _ => {}
        }
        let written = literal(element);
        match (&mut self.values, written) {
            (Some(values), Some(written)) => {
                *values.entry(written).or_default() += 1;
                if values.len() > VALUES {
                    self.values = None;
                }
            }
            (values, _) => *values = None,
        }
    }

    /// The values, where they are so few that they come again and again.
    fn few_values(&self, kind: u8) -> Option<Vec<(String, u64)>> {
        let values = self.values.as_ref().filter(|values| !values.is_empty())?;
        // A text that came but a few times may be one of very many.
        let are_words = kind == kind::STRING && self.count < 4 * values.len() as u64;
        (!are_words).then(|| values.iter().map(|(value, count)| (value.clone(), *count)).collect())
    }

    fn generator(&self, kind: u8) -> Option<String> {
        if let Some(values) = self.few_values(kind) {
            return Some(one_of(&values));
        }
        let instant = |ms: i64| jiff::Timestamp::from_millisecond(ms).map(|at| quoted(&at.to_string())).ok();
        match (kind, self.whole, self.broken) {
            (kind::INT32, Some((least, most)), _) => Some(format!("{{ $int: [{least}, {most}] }}")),
            (kind::INT64, Some((least, most)), _) => Some(format!("{{ $long: [{least}, {most}] }}")),
            (kind::DATE, Some((first, last)), _) => {
                Some(format!("{{ $date: [{}, {}] }}", instant(first)?, instant(last)?))
            }
            (kind::DOUBLE, _, Some((least, most))) => Some(format!("{{ $double: [{least:?}, {most:?}] }}")),
            (kind::STRING, ..) => Some(text_of(&self.lengths)),
            (kind::BINARY, ..) => {
                let (first, last) = (self.lengths.first_key_value()?.0, self.lengths.last_key_value()?.0);
                Some(format!("{{ $binary: [{first}, {last}] }}"))
            }
            (kind::OBJECT_ID, ..) => Some("{ $objectId: ~ }".into()),
            (kind::ARRAY, ..) => {
                let (least, most) = self.elements.unwrap_or((0, 0));
                let items = self.items.as_ref().filter(|_| most > 0).and_then(|items| items.generator());
                Some(match items {
                    Some(items) => format!("{{ $array: {{ length: [{least}, {most}], of: {items} }} }}"),
                    None => "[]".into(),
                })
            }
            (kind::DOCUMENT, ..) => {
                let fields = self.usual_fields().map(|(name, stats)| {
                    format!("{}: {}", quoted(name), stats.generator().unwrap_or_else(|| "null".into()))
                });
                let fields: Vec<String> = fields.collect();
                Some(if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) })
            }
            _ => None,
        }
    }

    /// Fields that half of the documents or more have, and whose names a document may have.
    fn usual_fields(&self) -> impl Iterator<Item = (&String, &ValueStats)> {
        self.fields.iter().filter(|(name, stats)| {
            stats.count() * 2 >= self.count && !name.starts_with('$') && !name.is_empty()
        })
    }
}

fn elements(document: &[u8]) -> impl Iterator<Item = Element<'_>> {
    bson::read_elements(document).into_iter().flatten().flatten()
}

impl ValueStats {
    /// Notes a value.
    pub fn note(&mut self, element: &Element<'_>) {
        self.note_at(element, 0);
    }

    fn note_at(&mut self, element: &Element<'_>, depth: usize) {
        self.kinds.entry(element.kind).or_default().note(element, depth);
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.kinds.values().map(|one| one.count).sum()
    }

    /// The kind of most of the values.
    pub fn usual_kind(&self) -> Option<u8> {
        self.kinds.iter().max_by_key(|(_, one)| one.count).map(|(kind, _)| *kind)
    }

    /// Returns whether the values are too many to be told apart.
    pub fn is_diverse(&self) -> bool {
        self.kinds.iter().any(|(kind, one)| {
            ![kind::ARRAY, kind::DOCUMENT].contains(kind) && one.few_values(*kind).is_none()
        })
    }

    /// Least and greatest length, of texts.
    pub fn text_lengths(&self) -> Option<(u32, u32)> {
        let lengths = &self.kinds.get(&kind::STRING)?.lengths;
        Some((*lengths.first_key_value()?.0, *lengths.last_key_value()?.0))
    }

    /// Least and greatest number of elements, where all values are arrays, and the elements.
    pub fn as_array(&self) -> Option<((u32, u32), &ValueStats)> {
        let array = self.kinds.get(&kind::ARRAY).filter(|array| array.count == self.count())?;
        Some((array.elements?, array.items.as_deref()?))
    }

    /// Fields of documents that are usual.
    pub fn usual_fields(&self) -> Vec<(&String, &ValueStats)> {
        self.kinds.get(&kind::DOCUMENT).into_iter().flat_map(KindStats::usual_fields).collect()
    }

    /// Fields that fewer than half of the documents have.
    pub fn rare_fields(&self) -> usize {
        self.kinds.get(&kind::DOCUMENT).map_or(0, |one| one.fields.len() - one.usual_fields().count())
    }

    /// A generator of such values; `None` where no kind of them can be made.
    pub fn generator(&self) -> Option<String> {
        let all: Vec<(String, u64)> =
            self.kinds.iter().filter_map(|(kind, one)| Some((one.generator(*kind)?, one.count))).collect();
        if all.is_empty() { None } else { Some(one_of(&all)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::bson::{Bson, Document, doc};

    fn stats_of(values: impl IntoIterator<Item = impl Into<Bson>>) -> ValueStats {
        let mut stats = ValueStats::default();
        for value in values {
            let mut document = Document::new();
            document.insert("v", value.into());
            let bytes = document.to_vec().unwrap();
            stats.note(&bson::find_element(&bytes, "v").unwrap());
        }
        stats
    }

    #[test]
    fn values_are_generators_of_their_kind() {
        let made = |stats: ValueStats| stats.generator().unwrap();
        assert_eq!(made(stats_of([5, 5, 5])), "5");
        assert_eq!(made(stats_of(0..100)), "{ $int: [0, 99] }");
        assert_eq!(
            made(stats_of((0..100i64).map(|n| n << 33))),
            format!("{{ $long: [0, {}] }}", 99i64 << 33)
        );
        assert_eq!(made(stats_of(["a"; 8])), "\"a\"");
        assert_eq!(
            made(stats_of(["a", "b", "a", "b", "a", "b", "a", "a"])),
            "{ $oneOf: { values: [\"a\", \"b\"], weights: [5, 3] } }"
        );
        // A text that came once may be a secret, and one of very many.
        assert_eq!(made(stats_of(["Almeida"])), "{ $string: 7 }");
        assert_eq!(made(stats_of((0..100).map(|n| format!("user:{n:04}")))), "{ $string: 9 }");
        assert_eq!(
            made(stats_of([true, true, false])),
            "{ $oneOf: { values: [false, true], weights: [1, 2] } }"
        );
        assert_eq!(made(stats_of([2.5, 2.5])), "2.5");
        assert_eq!(made(stats_of((0..40).map(|n| f64::from(n) / 4.0))), "{ $double: [0.0, 9.75] }");
        let dates = (0..100).map(|n| ::bson::DateTime::from_millis(n * 1_000));
        assert_eq!(made(stats_of(dates)), "{ $date: [\"1970-01-01T00:00:00Z\", \"1970-01-01T00:01:39Z\"] }");
        assert_eq!(made(stats_of([::bson::oid::ObjectId::from_bytes([7; 12])])), "{ $objectId: ~ }");
        let mixed = (0..100).map(|n| if n % 4 == 0 { Bson::Null } else { Bson::Int32(n) });
        assert_eq!(
            made(stats_of(mixed)),
            "{ $oneOf: { values: [null, { $int: [1, 99] }], weights: [25, 75] } }"
        );
    }

    #[test]
    fn documents_have_their_usual_fields_and_arrays_their_elements() {
        let stats = stats_of((0..100).map(|n| {
            let mut document =
                doc! { "n": n, "tags": (0..n % 3).map(|k| format!("tag-{n}-{k}")).collect::<Vec<_>>() };
            if n % 10 == 0 {
                document.insert("rare", 1);
            }
            document
        }));
        let made = stats.generator().unwrap();
        let tags = "{ $array: { length: [0, 2], of: { $oneOf: { values: [{ $string: 7 }, { $string: 8 }], weights: [";
        assert!(made.starts_with(&format!("{{ \"n\": {{ $int: [0, 99] }}, \"tags\": {tags}")), "{made}");
        assert_eq!((stats.rare_fields(), stats.usual_fields().len()), (1, 2));
    }
}
