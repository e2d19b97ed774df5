//! The keys that a struct of serde reads.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;
use std::fmt::{self, Display};

/// The keys of a struct; none of other types.
pub fn keys_of<T: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    T::deserialize(Probe).map_or_else(|Keys(keys)| keys, |_| &[])
}

/// Hands out no value, but the keys as its error.
struct Probe;

#[derive(Debug)]
struct Keys(&'static [&'static str]);

impl<'de> Deserializer<'de> for Probe {
    type Error = Keys;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Keys> {
        Err(Keys(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        keys: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Keys> {
        Err(Keys(keys))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl Error for Keys {
    fn custom<T: Display>(_: T) -> Self {
        Keys(&[])
    }
}

impl std::error::Error for Keys {}

impl Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;

    #[test]
    fn structs_have_keys() {
        let keys = keys_of::<Experiment>();
        assert!(keys.contains(&"phases") && !keys.contains(&"phase"), "{keys:?}");
        assert!(keys_of::<u64>().is_empty());
    }
}
