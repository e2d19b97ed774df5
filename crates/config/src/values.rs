//! Values of experiment files: sizes, durations, counts and lists of cores, as people write them.
//!
//! Each is read from a number or a text, written back as it was meant, and described in the JSON Schema with its unit.

use dyno_types::units::{
    parse_bytes, parse_cores, parse_count, parse_duration_ns, parse_number, parse_rate, parse_share,
    written_cores, written_duration,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Reads a number or a text.
struct QuantityVisitor<T>(fn(&str) -> Option<T>, &'static str);

impl<T> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<T, E> {
        (self.0)(&n.to_string()).ok_or_else(|| E::invalid_value(Unexpected::Unsigned(n), &self))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<T, E> {
        (self.0)(&n.to_string()).ok_or_else(|| E::invalid_value(Unexpected::Signed(n), &self))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<T, E> {
        (self.0)(&n.to_string()).ok_or_else(|| E::invalid_value(Unexpected::Float(n), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        (self.0)(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $read:expr, $write:expr, $unit:literal, $expects:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, PartialOrd)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(QuantityVisitor($read, $expects)).map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let write: fn(&$inner) -> String = $write;
                f.pad(&write(&self.0))
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_string())
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": ["string", "number"],
                    "description": concat!("Expected ", $expects, "."),
                    "x-unit": $unit,
                })
            }
        }
    };
}

quantity!(
    /// A size in bytes. A bare number counts bytes; `k`, `M`, `G` are powers of 1000, `KiB`, `MiB`, `GiB` of 1024.
    Bytes(u64),
    |text| parse_bytes(text).ok(),
    |bytes| written_bytes(*bytes),
    "bytes",
    "a size such as 512MiB or 8GiB"
);

quantity!(
    /// A duration in nanoseconds. A bare number counts seconds.
    Span(u64),
    |text| parse_duration_ns(text, 1_000_000_000).ok(),
    |ns| written_duration(*ns),
    "duration; a bare number counts seconds",
    "a duration such as 500ms, 30s or 2h"
);

quantity!(
    /// A duration in nanoseconds, ahead or back (`-30s`). A bare number counts seconds.
    Shift(i64),
    parse_shift,
    |ns| format!("{}{}", if *ns < 0 { "-" } else { "" }, written_duration(ns.unsigned_abs())),
    "duration; a bare number counts seconds",
    "a duration such as 90s, or back in time such as -1h"
);

quantity!(
    /// A count such as `1000`, `100k` or `2.5M`.
    Count(u64),
    |text| parse_count(text).ok(),
    |n| n.to_string(),
    "count",
    "a whole number, also 10k, 2.5M or 1G"
);

quantity!(
    /// A rate such as `1000`, `20k` or `20k/s`.
    PerSecond(f64),
    |text| parse_rate(text).ok(),
    |rate| rate.to_string(),
    "operations per second",
    "a rate such as 1000, 20k or 2.5M/s"
);

quantity!(
    /// A number such as `0.5`, `2000` or `2k`.
    Number(f64),
    |text| parse_number(text).ok(),
    |number| number.to_string(),
    "number",
    "a number, such as 2000 or 2k"
);

quantity!(
    /// A share such as `0.02` or `2%`.
    Share(f64),
    |text| parse_share(text).ok(),
    |share| share.to_string(),
    "share",
    "a number, such as 0.02 or 2%"
);

quantity!(
    /// How many times as fast as recorded; infinite: as fast as the server answers.
    ReplaySpeed(f64),
    parse_speed,
    |speed| if speed.is_finite() { speed.to_string() } else { "max".into() },
    "times",
    "a number above 0 such as 2 or 0.5, or max"
);

fn parse_speed(text: &str) -> Option<f64> {
    let text = text.trim();
    if text == "max" {
        return Some(f64::INFINITY);
    }
    let speed: f64 = text.strip_suffix(['x', 'X']).unwrap_or(text).parse().ok()?;
    (speed > 0.0 && speed.is_finite()).then_some(speed)
}

/// Reads a [`Count`] into a field that is a plain number.
pub(crate) fn read_count<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    let Count(n) = Count::deserialize(deserializer)?;
    T::try_from(n).map_err(|_| D::Error::custom(format!("{n}: expected a smaller number")))
}

/// Reads a [`Number`] into a field that is a plain number.
pub(crate) fn read_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Number::deserialize(deserializer).map(|Number(n)| n)
}

/// The same of one that may be absent.
pub(crate) fn read_number_if_any<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Number>::deserialize(deserializer)?.map(|Number(n)| n))
}

/// Reads a [`Share`] into a field that is a plain number.
pub(crate) fn read_share<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Share::deserialize(deserializer).map(|Share(n)| n)
}

quantity!(
    /// Numbers of cores or of memory nodes, such as `0-3,8`.
    Cores(Vec<usize>),
    parse_cores,
    |cores| written_cores(cores),
    "numbers",
    "a list of numbers such as 0-3,8"
);

fn written_bytes(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(size, _)| bytes > 0 && bytes.is_multiple_of(*size)) {
        Some((size, unit)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

fn parse_shift(text: &str) -> Option<i64> {
    let text = text.trim();
    let (back, length) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let ns = parse_duration_ns(length, 1_000_000_000).ok()?;
    let ns = i64::try_from(ns).ok()?;
    Some(if back { -ns } else { ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_as_they_are_read() {
        for text in ["8GiB", "512MiB", "100", "3KiB"] {
            let bytes: Bytes = serde_json::from_value(text.into()).unwrap();
            assert_eq!(bytes.to_string(), text);
        }
        for text in ["30s", "2h", "500ms", "1us", "90s", "0s"] {
            let span: Span = serde_json::from_value(text.into()).unwrap();
            assert_eq!(span.to_string(), text);
        }
        for text in ["30s", "-2h", "-1500ms", "0s"] {
            let shift: Shift = serde_json::from_value(text.into()).unwrap();
            assert_eq!(shift.to_string(), text);
        }
        assert_eq!(serde_json::from_value::<Shift>((-90).into()).unwrap(), Shift(-90_000_000_000));
        assert_eq!(serde_json::from_value::<Shift>("+1m".into()).unwrap(), Shift(60_000_000_000));
        for text in ["0-3,8", "5", "1,3,5-7"] {
            let cores: Cores = serde_json::from_value(text.into()).unwrap();
            assert_eq!(cores.to_string(), text);
        }
        assert_eq!(serde_json::from_value::<Count>("2.5M".into()).unwrap(), Count(2_500_000));
        assert_eq!(serde_json::from_value::<PerSecond>("20k/s".into()).unwrap().to_string(), "20000");
        assert_eq!(serde_json::from_value::<PerSecond>(0.5.into()).unwrap(), PerSecond(0.5));
        assert_eq!(serde_json::from_value::<Span>(30.into()).unwrap(), Span(30_000_000_000));
        assert_eq!(serde_json::from_value::<Cores>(2.into()).unwrap(), Cores(vec![2]));
        for (text, written) in [("2", "2"), ("0.5x", "0.5"), ("max", "max")] {
            let speed: ReplaySpeed = serde_json::from_value(text.into()).unwrap();
            assert_eq!(speed.to_string(), written);
        }
        for text in ["0", "-1", "inf", "fast", "NaN"] {
            assert!(serde_json::from_value::<ReplaySpeed>(text.into()).is_err(), "{text}");
        }
        for (text, number) in [("2k", 2_000.0), ("0.5", 0.5), ("-3", -3.0), ("1e3", 1_000.0)] {
            assert_eq!(serde_json::from_value::<Number>(text.into()).unwrap(), Number(number));
        }
        assert_eq!(serde_json::from_value::<Share>("2%".into()).unwrap(), Share(0.02));
        assert_eq!(serde_json::from_value::<Share>(0.02.into()).unwrap(), Share(0.02));
    }

    #[test]
    fn refusals_say_what_is_accepted() {
        let wrong = serde_json::from_value::<Bytes>("many".into()).unwrap_err().to_string();
        assert!(wrong.contains("\"many\"") && wrong.contains("512MiB"), "{wrong}");
        assert!(serde_json::from_value::<Cores>("3-1".into()).is_err());
        assert!(serde_json::from_value::<Count>((-1).into()).is_err());
        assert!(serde_json::from_value::<Number>("6x".into()).is_err());
        assert!(serde_json::from_value::<Share>("2k".into()).is_err());
        assert!(serde_json::from_value::<Share>((-0.1).into()).is_err());
        assert!(serde_json::from_value::<Span>(true.into()).is_err());
        assert!(serde_json::from_value::<Shift>("--1s".into()).is_err());
    }
}
