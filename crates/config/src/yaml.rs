//! YAML as it is written: values with their lines, maps in order.

use dyno_types::limits::ENTRIES;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;
use std::fmt;
use std::ops::Range;

/// A value and where it stands.
#[derive(Debug, Deserialize)]
pub(crate) struct YamlNode(Spanned<Yaml>);

/// A value.
#[derive(Debug)]
pub(crate) enum Yaml {
    Null,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(String, YamlNode)>),
}

impl YamlNode {
    /// The value.
    pub fn value(&self) -> &Yaml {
        &self.0.value
    }

    /// Line, from 1.
    pub fn line(&self) -> u64 {
        self.0.referenced.line()
    }

    /// Column, from 1.
    pub fn column(&self) -> u64 {
        self.0.referenced.column()
    }

    /// Bytes in the text: where it is used, and where an anchor names it.
    pub fn bytes(&self) -> [Range<usize>; 2] {
        [self.0.referenced, self.0.defined].map(|at| {
            let span = at.span();
            let (start, len) =
                (span.byte_offset().unwrap_or(0) as usize, span.byte_len().unwrap_or(0) as usize);
            start..start + len
        })
    }

    /// The value in words.
    pub fn word(&self) -> String {
        match self.value() {
            Yaml::Null => "nothing".into(),
            Yaml::Bool(b) => b.to_string(),
            Yaml::Int(n) => n.to_string(),
            Yaml::Float(n) => n.to_string(),
            Yaml::Text(text) => format!("{text:?}"),
            Yaml::List(_) => "a list".into(),
            Yaml::Map(_) => "a mapping".into(),
        }
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlReader)
    }
}

fn bounded<E: serde::de::Error>(entries: usize) -> Result<(), E> {
    match entries {
        0..=ENTRIES => Ok(()),
        _ => Err(E::custom(format!("more than {ENTRIES} entries"))),
    }
}

struct YamlReader;

impl<'de> Visitor<'de> for YamlReader {
    type Value = Yaml;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a mapping")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
        Ok(Yaml::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Yaml, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element()? {
            all.push(one);
            bounded(all.len())?;
        }
        Ok(Yaml::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Yaml, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = map.next_entry()? {
            all.push(one);
            bounded(all.len())?;
        }
        Ok(Yaml::Map(all))
    }
}
