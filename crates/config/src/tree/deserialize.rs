//! A tree as a source of serde's data: errors gain the path and the origin of the value they are about.

use crate::tree::{Node, TreeError, Value};
use dyno_types::suggest;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use std::fmt::Display;

impl Node {
    /// Reads the tree into a typed value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, TreeError> {
        T::deserialize(NodeReader(self)).map_err(|mut error| {
            error.origin.get_or_insert_with(|| self.origin.clone());
            error
        })
    }
}

impl Error for TreeError {
    fn custom<T: Display>(words: T) -> Self {
        TreeError { origin: None, path: String::new(), text: words.to_string() }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let hint = suggest::hint(field, expected.iter().copied());
        let known = expected.join(", ");
        Self::custom(format_args!("unknown key {field:?}{hint}; known keys: {known}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let hint = suggest::hint(variant, expected.iter().copied());
        let known = expected.join(", ");
        Self::custom(format_args!("{variant:?}{hint}; expected one of {known}"))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self::custom(format_args!("{}: expected {}", describe_found(&found), wanted(&expected.to_string())))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self::custom(format_args!("{}: expected {}", describe_found(&found), wanted(&expected.to_string())))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::custom(format_args!("key {field:?} is missing"))
    }
}

/// Form that is wanted, in the words of a file instead of the program's types.
fn wanted(expected: &str) -> &str {
    match expected {
        "usize" | "u64" | "u32" | "u16" | "u8" => "a whole number, 0 or more",
        "isize" | "i64" | "i32" | "i16" | "i8" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a mapping",
        "a string" => "a text",
        other if other.starts_with("struct ") || other.starts_with("internally tagged") => "a mapping",
        other if other.starts_with("enum ") => "a name",
        other => other,
    }
}

/// Value that was found, as it was written.
fn describe_found(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(b) => b.to_string(),
        Unexpected::Unsigned(n) => n.to_string(),
        Unexpected::Signed(n) => n.to_string(),
        Unexpected::Float(n) => n.to_string(),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Unit | Unexpected::Option => "nothing".into(),
        Unexpected::Seq => "a list".into(),
        Unexpected::Map => "a mapping".into(),
        other => other.to_string(),
    }
}

/// The error of a value below `key`, told where it was written.
fn below(mut error: TreeError, key: &str, node: &Node) -> TreeError {
    error.origin.get_or_insert_with(|| node.origin.clone());
    error.path = match error.path.is_empty() {
        true => key.to_owned(),
        false => format!("{key}.{}", error.path),
    };
    error
}

/// Reads from a node.
pub(super) struct NodeReader<'a>(pub &'a Node);

impl<'de> Deserializer<'de> for NodeReader<'_> {
    type Error = TreeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Int(n) => match u64::try_from(*n) {
                Ok(n) => visitor.visit_u64(n),
                Err(_) => match i64::try_from(*n) {
                    Ok(n) => visitor.visit_i64(n),
                    Err(_) => Err(Error::invalid_value(Unexpected::Other(&n.to_string()), &visitor)),
                },
            },
            Value::Float(n) => visitor.visit_f64(*n),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(all) => visitor.visit_seq(Items { all, at: 0 }),
            Value::Map(all) => visitor.visit_map(Entries { all, at: 0 }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    /// A number or a truth value where a text is wanted is its text.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        match &self.0.value {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => visitor.visit_string(self.0.to_label()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, TreeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        match &self.0.value {
            Value::Text(_) | Value::Int(_) | Value::Bool(_) | Value::Null => {
                visitor.visit_enum(Variant(self.0.to_label(), None))
            }
            Value::Map(all) if all.len() == 1 => {
                visitor.visit_enum(Variant(all[0].0.clone(), Some(&all[0].1)))
            }
            _ => Err(TreeError::custom("expected a name")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char bytes byte_buf unit unit_struct seq tuple tuple_struct map
        struct identifier ignored_any
    }
}

struct Items<'a> {
    all: &'a [Node],
    at: usize,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = TreeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, TreeError> {
        let Some(node) = self.all.get(self.at) else { return Ok(None) };
        self.at += 1;
        let number = self.at.to_string();
        seed.deserialize(NodeReader(node)).map(Some).map_err(|error| below(error, &number, node))
    }
}

struct Entries<'a> {
    all: &'a [(String, Node)],
    at: usize,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = TreeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, TreeError> {
        let Some((key, node)) = self.all.get(self.at) else { return Ok(None) };
        let text: StrDeserializer<'_, TreeError> = key.as_str().into_deserializer();
        seed.deserialize(text).map(Some).map_err(|mut error| {
            error.origin.get_or_insert_with(|| node.origin.clone());
            error
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, TreeError> {
        let Some((key, node)) = self.all.get(self.at) else {
            return Err(TreeError::custom("a value without a key"));
        };
        self.at += 1;
        seed.deserialize(NodeReader(node)).map_err(|error| below(error, key, node))
    }
}

/// A variant's name and what belongs to it.
struct Variant<'a>(String, Option<&'a Node>);

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = TreeError;
    type Variant = VariantContent<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, VariantContent<'a>), TreeError> {
        let name: serde::de::value::StringDeserializer<TreeError> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, VariantContent(self.1)))
    }
}

struct VariantContent<'a>(Option<&'a Node>);

impl<'de> VariantAccess<'de> for VariantContent<'_> {
    type Error = TreeError;

    fn unit_variant(self) -> Result<(), TreeError> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(TreeError::custom("expected the name alone")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, TreeError> {
        match self.0 {
            Some(node) => seed.deserialize(NodeReader(node)),
            None => Err(TreeError::custom("expected a mapping with one key, the name")),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, TreeError> {
        match self.0 {
            Some(node) => NodeReader(node).deserialize_any(visitor),
            None => Err(TreeError::custom("expected a mapping with one key, the name")),
        }
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, TreeError> {
        self.tuple_variant(0, visitor)
    }
}
