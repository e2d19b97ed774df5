//! The options of a store's URI: their description, their check and their reading. What each store offers is declared
//! in its own folder; every refusal names the option, the accepted ones with their values, and the nearest name.

use crate::uri::StoreUri;
use dyno_types::units::parse_duration_ns;
use dyno_types::{RefusalCode, Refused, suggest};
use std::fmt::Write;

/// One option of a store's URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionSpec {
    /// Name.
    pub name: &'static str,
    /// The values it accepts: alternatives separated by `|`, or a word in capitals with an example.
    pub values: &'static str,
    /// Value where it is not given.
    pub default: &'static str,
    /// Effect of the option, in one sentence.
    pub about: &'static str,
}

/// The accepted form of a size, as written in [`OptionSpec::values`].
pub(crate) const SIZE: &str = "SIZE such as 64MiB";
/// The accepted form of a duration, as written in [`OptionSpec::values`].
pub(crate) const DURATION: &str = "DURATION such as 500ms";
/// The accepted values of a switch, as written in [`OptionSpec::values`].
pub(crate) const SWITCH: &str = "true|false";

/// Option for what an insert does when the key exists already: the same for every store.
pub(crate) const INSERT: OptionSpec = OptionSpec {
    name: "insert",
    values: "replace|fail",
    default: "replace",
    about: "what an insert does when its key exists already: replace the record, or fail as duplicate",
};

/// The options given in a URI, checked to be known and given once.
#[derive(Debug)]
pub(crate) struct GivenOptions<'a> {
    uri: &'a StoreUri,
    specs: &'static [OptionSpec],
}

impl<'a> GivenOptions<'a> {
    /// Refuses unknown and repeated options.
    pub(crate) fn check(uri: &'a StoreUri, specs: &'static [OptionSpec]) -> Result<Self, Refused> {
        for (i, (name, _)) in uri.options.iter().enumerate() {
            if !specs.iter().any(|spec| spec.name == name) {
                let hint = nearest(name, specs.iter().map(|spec| spec.name));
                return Err(Refused::new(
                    RefusalCode::UnknownName,
                    name,
                    format!("{}: unknown option {name:?}{hint}; {}", uri.scheme, accepted(specs)),
                ));
            }
            if uri.options[..i].iter().any(|(earlier, _)| earlier == name) {
                return Err(Refused::new(
                    RefusalCode::Conflict,
                    name,
                    format!("{}: option {name:?} is given twice", uri.scheme),
                ));
            }
        }
        Ok(GivenOptions { uri, specs })
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        debug_assert!(self.specs.iter().any(|spec| spec.name == name), "{name} is not declared");
        self.uri.options.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    fn bad_value(&self, name: &str, value: &str, hint: &str) -> Refused {
        let values = self.specs.iter().find(|spec| spec.name == name).map_or("", |spec| spec.values);
        Refused::new(
            RefusalCode::BadValue,
            name,
            format!(
                "{}: option {name}={value} is not accepted{hint}; accepted: {name}={values}",
                self.uri.scheme
            ),
        )
    }

    /// One of several words; the first of `choices` is the default.
    pub(crate) fn choice<T: Copy>(&self, name: &str, choices: &[(&str, T)]) -> Result<T, Refused> {
        let Some(value) = self.text(name) else { return Ok(choices[0].1) };
        let found = choices.iter().find(|(word, _)| word.eq_ignore_ascii_case(value));
        let hint = || nearest(value, choices.iter().map(|(word, _)| *word));
        found.map(|(_, choice)| *choice).ok_or_else(|| self.bad_value(name, value, &hint()))
    }

    /// A switch.
    pub(crate) fn switch(&self, name: &str, default: bool) -> Result<bool, Refused> {
        match self.text(name) {
            None => Ok(default),
            Some(_) => self.choice(name, &[("true", true), ("false", false)]),
        }
    }

    /// Returns whether an insert of an existing key replaces the record ([`INSERT`]).
    pub(crate) fn replaces(&self) -> Result<bool, Refused> {
        self.choice(INSERT.name, &[("replace", true), ("fail", false)])
    }

    /// A size in bytes, at most `most`.
    pub(crate) fn bytes(&self, name: &str, most: u64) -> Result<Option<u64>, Refused> {
        let Some(value) = self.text(name) else { return Ok(None) };
        match parse_bytes(value) {
            None => Err(self.bad_value(name, value, " (units: B, kB, MB, GB, KiB, MiB, GiB)")),
            Some(bytes) if bytes > most => {
                Err(self.bad_value(name, value, &format!(" (at most {most} bytes)")))
            }
            some => Ok(some),
        }
    }

    /// A duration in whole milliseconds, at most 2^31 - 1 (24 days); a bare number counts in milliseconds.
    pub(crate) fn milliseconds(&self, name: &str, default: u32) -> Result<u32, Refused> {
        let Some(value) = self.text(name) else { return Ok(default) };
        let ns = parse_duration_ns(value, 1_000_000).map_err(|_| self.bad_value(name, value, ""))?;
        match i32::try_from(ns / 1_000_000) {
            Ok(ms) if ns % 1_000_000 == 0 => Ok(ms.unsigned_abs()),
            _ => Err(self.bad_value(name, value, " (whole milliseconds up to 2147483647)")),
        }
    }
}

/// A size such as `4096`, `64MiB` or `1.5GB`, in bytes.
fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number: f64 = text[..at].replace('_', "").parse().ok()?;
    let unit = match text[at..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * unit;
    (bytes.fract() == 0.0 && bytes < 2f64.powi(53)).then_some(bytes as u64)
}

/// The accepted options in one line.
fn accepted(specs: &[OptionSpec]) -> String {
    if specs.is_empty() {
        return "it accepts none".to_owned();
    }
    let mut line = "accepted: ".to_owned();
    for (i, spec) in specs.iter().enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let _ = write!(line, "{comma}{}={}", spec.name, spec.values);
    }
    line
}

/// `; did you mean "x"?` for the name nearest to `word`, or nothing if none is near.
pub(crate) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> String {
    suggest::nearest(word, names).map_or(String::new(), |name| format!(" (did you mean {name:?}?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("4096"), Some(4096));
        assert_eq!(parse_bytes("64MiB"), Some(64 << 20));
        assert_eq!(parse_bytes("1.5 GB"), Some(1_500_000_000));
        assert_eq!(parse_bytes("1_000 kb"), Some(1_000_000));
        for bad in ["", "MiB", "64M", "-1", "0.3", "1e3", "99999999999GiB"] {
            assert_eq!(parse_bytes(bad), None, "{bad}");
        }
    }

    #[test]
    fn declared_values_and_defaults_are_accepted() {
        for kind in crate::KINDS {
            let mut names: Vec<_> = kind.options.iter().map(|spec| spec.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), kind.options.len(), "{} declares an option twice", kind.scheme);
            assert!(kind.form.starts_with(kind.scheme));
        }
    }
}
