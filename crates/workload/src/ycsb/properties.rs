//! Reading YCSB's properties: typed, with a range for each, and an error that names what is accepted.
//!
//! Where the properties come from (files, command line) and how layers override each other is the caller's business;
//! here a property is what a lookup function returns. Numbers, booleans and names of choices lose surrounding white
//! space (YCSB fails on it); free text keeps it, as in Java.

use dyno_types::units::parse_count;

/// A property with a value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}={value}: expected {expected}")]
pub struct BadProperty {
    /// The property.
    pub key: String,
    /// Value (its default, if it was not set).
    pub value: String,
    /// Form that is accepted.
    pub expected: String,
}

impl BadProperty {
    /// A fault of `key`.
    pub fn new(key: &str, value: impl ToString, expected: impl Into<String>) -> Self {
        BadProperty { key: key.into(), value: value.to_string(), expected: expected.into() }
    }
}

/// Largest count accepted: leaves room for sums and products of counts in 64 bits.
pub const MAX_COUNT: u64 = 1 << 60;

/// Where properties are looked up: `None` if a property is not set.
pub type Lookup<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// Typed reading of properties.
pub struct PropertyReader<'a> {
    lookup: Lookup<'a>,
}

impl<'a> PropertyReader<'a> {
    /// Reads from `lookup`.
    pub fn new(lookup: Lookup<'a>) -> Self {
        PropertyReader { lookup }
    }

    /// The text of `key`, if set.
    pub fn raw_text(&mut self, key: &str) -> Option<String> {
        (self.lookup)(key)
    }

    /// The text of `key`, white space kept.
    pub fn read_text(&mut self, key: &str, default: &str) -> String {
        self.raw_text(key).unwrap_or_else(|| default.to_owned())
    }

    /// The text of `key` without surrounding white space.
    pub fn read_word(&mut self, key: &str, default: &str) -> String {
        self.raw_text(key).map_or_else(|| default.to_owned(), |v| v.trim().to_owned())
    }

    /// A whole number in `range`, if set.
    pub fn count_if_set(
        &mut self,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, BadProperty> {
        let Some(value) = self.raw_text(key) else { return Ok(None) };
        match parse_count(&value) {
            Ok(n) if range.contains(&n) => Ok(Some(n)),
            _ => {
                let (low, high) = range.into_inner();
                let upper = if high == MAX_COUNT { " or more".to_owned() } else { format!(" to {high}") };
                Err(BadProperty::new(key, value, format!("a whole number, {low}{upper}")))
            }
        }
    }

    /// A whole number in `range`.
    pub fn count(
        &mut self,
        key: &str,
        default: u64,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, BadProperty> {
        Ok(self.count_if_set(key, range)?.unwrap_or(default))
    }

    /// A number that `accepted` accepts, if set; `expected` says which those are.
    pub fn number_if_set(
        &mut self,
        key: &str,
        accepted: fn(f64) -> bool,
        expected: &str,
    ) -> Result<Option<f64>, BadProperty> {
        let Some(value) = self.raw_text(key) else { return Ok(None) };
        match value.trim().parse::<f64>() {
            Ok(x) if x.is_finite() && accepted(x) => Ok(Some(x)),
            _ => Err(BadProperty::new(key, value, expected)),
        }
    }

    /// A number that `accepted` accepts; `expected` says which those are.
    pub fn read_number(
        &mut self,
        key: &str,
        default: f64,
        accepted: fn(f64) -> bool,
        expected: &str,
    ) -> Result<f64, BadProperty> {
        Ok(self.number_if_set(key, accepted, expected)?.unwrap_or(default))
    }

    /// The weight of an operation: a number of at least 0.
    pub fn read_proportion(&mut self, key: &str, default: f64) -> Result<f64, BadProperty> {
        self.read_number(
            key,
            default,
            |x| (0.0..=1e9).contains(&x),
            "a number from 0 on (a weight, usually 0 to 1)",
        )
    }

    /// A boolean. YCSB takes everything that is not `true` for false; the usual words for true and false are told
    /// apart here, and the words for true that YCSB would misread are refused.
    pub fn read_flag(&mut self, key: &str, default: bool) -> Result<bool, BadProperty> {
        let Some(value) = self.raw_text(key) else { return Ok(default) };
        match value.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" | "no" | "off" | "0" => Ok(false),
            _ => Err(BadProperty::new(key, value, "true or false")),
        }
    }

    /// One of several words, case-sensitive.
    pub fn read_choice<T: Copy>(
        &mut self,
        key: &str,
        default: &str,
        choices: &[(&str, T)],
    ) -> Result<T, BadProperty> {
        let value = self.read_word(key, default);
        choices.iter().find(|(name, _)| *name == value).map(|&(_, choice)| choice).ok_or_else(|| {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            BadProperty::new(key, &value, one_of(&names))
        })
    }
}

/// "a, b or c".
pub fn one_of(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_accepted_values() {
        let mut lookup = |key: &str| match key {
            "n" => Some(" 12 ".to_owned()),
            "neg" => Some("-1".to_owned()),
            "yes" => Some("yes".to_owned()),
            "no" => Some("FALSE".to_owned()),
            "x" => Some("b".to_owned()),
            _ => None,
        };
        let mut reader = PropertyReader::new(&mut lookup);
        assert_eq!(reader.count("n", 0, 0..=MAX_COUNT), Ok(12));
        assert_eq!(reader.count("none", 7, 0..=MAX_COUNT), Ok(7));
        let text = reader.count("neg", 0, 0..=MAX_COUNT).unwrap_err().to_string();
        assert_eq!(text, "neg=-1: expected a whole number, 0 or more");
        let text = reader.count("n", 0, 1..=10).unwrap_err().to_string();
        assert_eq!(text, "n= 12 : expected a whole number, 1 to 10");
        assert_eq!(
            reader.read_flag("yes", false).unwrap_err().to_string(),
            "yes=yes: expected true or false"
        );
        assert_eq!(reader.read_flag("no", true), Ok(false));
        let text = reader.read_choice("x", "a", &[("a", 1), ("c", 2)]).unwrap_err().to_string();
        assert_eq!(text, "x=b: expected a or c");
        assert!(reader.read_proportion("neg", 0.0).is_err());
    }
}
