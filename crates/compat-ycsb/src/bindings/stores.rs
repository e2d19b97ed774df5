//! The properties of the embedded stores, `<store>.path` and `<store>.<option>`, and of the mock, `basicdb.*`: all
//! become a URI for `dyno-db-embedded`, whose own tables say which options there are.
//!
//! A value is checked here as far as its table tells, so that a refusal can name the place where it was set; what is
//! left (sizes, paths) the store itself refuses when it is opened.

use crate::property::DescribedProperty;
use dyno_config::settings::{BadSetting, PropertySettings};
use dyno_db_embedded::KINDS;
use dyno_db_embedded::kind::StoreKind;
use dyno_db_embedded::options::OptionSpec;
use dyno_types::percent::{self, AsciiSet, RESERVED};
use dyno_types::units::parse_duration_ns;
use dyno_workload::ycsb::properties::PropertyReader;
use std::fmt::Write;

/// Help on a property that is the path of a store.
const PATH: &str = "the store's file or directory, created if there is none";

/// The path's name in YCSB's own binding.
const ROCKSDB_DIR: &str = "rocksdb.dir";

/// The kinds of store that keep something, and so have a path.
fn kept() -> impl Iterator<Item = &'static StoreKind> {
    KINDS.iter().filter(|kind| kind.form.ends_with("PATH"))
}

/// The properties for help.
pub(super) fn properties() -> impl Iterator<Item = DescribedProperty> {
    kept()
        .flat_map(|kind| {
            let path = DescribedProperty {
                group: kind.scheme,
                name: format!("{}.path", kind.scheme).into(),
                default: "",
                doc: PATH.into(),
            };
            let options = kind.options.iter().map(|spec| DescribedProperty {
                group: kind.scheme,
                name: format!("{}.{}", kind.scheme, spec.name).into(),
                default: spec.default,
                doc: format!("{} ({})", spec.about, spec.values).into(),
            });
            std::iter::once(path).chain(options)
        })
        .chain([DescribedProperty {
            group: "rocksdb",
            name: ROCKSDB_DIR.into(),
            default: "",
            doc: "YCSB's name of rocksdb.path".into(),
        }])
}

/// The URI of the store with this scheme.
pub(super) fn file_uri(scheme: &str, settings: &PropertySettings) -> Result<String, BadSetting> {
    let key = format!("{scheme}.path");
    let other = if scheme == "rocksdb" { settings.text_of(ROCKSDB_DIR) } else { None };
    let path = settings.text_of(&key).or(other).filter(|path| !path.trim().is_empty());
    let expected = || format!("{PATH}, such as -p {key}=/tmp/bench.{scheme}");
    let path = path.ok_or_else(|| settings.refuse_value(&key, expected()))?;
    if path.contains('\0') {
        return Err(settings.refuse_value(&key, expected()));
    }
    let mut uri = format!("{scheme}:{}", encode_path(path));
    let specs = kept().find(|kind| kind.scheme == scheme).map_or(&[][..], |kind| kind.options);
    let mut options = Vec::new();
    for spec in specs {
        let key = format!("{scheme}.{}", spec.name);
        let Some(value) = settings.text_of(&key).map(str::trim) else { continue };
        if !plausible(spec, value) {
            return Err(settings.refuse_value(&key, spec.values));
        }
        options.push((spec.name, value.to_owned()));
    }
    add_options(&mut uri, &options);
    Ok(uri)
}

/// Returns whether the table of options allows `value`. Sizes are only looked at: their units are the stores' affair.
fn plausible(spec: &OptionSpec, value: &str) -> bool {
    if spec.values.starts_with("SIZE") {
        return value.starts_with(|c: char| c.is_ascii_digit());
    }
    if spec.values.starts_with("DURATION") {
        return parse_duration_ns(value, 1_000_000).is_ok();
    }
    // Alternatives such as `wal|delete` or `fsync|none (also syncall)`.
    let words = spec.values.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')));
    words.filter(|word| !word.is_empty()).any(|word| word.eq_ignore_ascii_case(value))
}

/// The URI of YCSB's mock.
pub(super) fn basic_uri(settings: &PropertySettings, notes: &mut Vec<String>) -> Result<String, BadSetting> {
    let mut lookup = settings.property_lookup();
    let mut r = PropertyReader::new(&mut lookup);
    let blame = |bad| settings.blame_source(bad);
    let mut options = Vec::new();
    for (key, name) in [("basicdb.verbose", "verbose"), ("basicdb.randomizedelay", "randomizedelay")] {
        let value = r.read_flag(key, true).map_err(blame)?;
        if settings.get(key).is_some() {
            options.push((name, value.to_string()));
        }
    }
    let delay_ms = r.count("basicdb.simulatedelay", 0, 0..=i32::MAX as u64).map_err(blame)?;
    if delay_ms > 0 {
        options.push(("simulatedelay", format!("{delay_ms}ms")));
    }
    if r.read_flag("basicdb.count", false).map_err(blame)? {
        notes
            .push("basicdb.count=true has no effect: this mock does not count operations per key".to_owned());
    }
    let mut uri = "basic:".to_owned();
    add_options(&mut uri, &options);
    Ok(uri)
}

fn add_options(uri: &mut String, options: &[(&str, String)]) {
    for (i, (name, value)) in options.iter().enumerate() {
        let mark = if i == 0 { '?' } else { '&' };
        let _ = write!(uri, "{mark}{name}={}", encode(value));
    }
}

/// Percent-encodes a path. A path that starts with `//` would be read as a host.
fn encode_path(path: &str) -> String {
    let encoded = encode(path);
    match encoded.strip_prefix("//") {
        Some(rest) => format!("/%2F{rest}"),
        None => encoded,
    }
}

/// Percent-encodes everything but letters, digits and what has no meaning in a store's URI.
fn encode(text: &str) -> String {
    const SET: &AsciiSet = &RESERVED.remove(b'/').remove(b':').remove(b'@').remove(b'+').remove(b',');
    percent::percent_encode(text, SET)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::{Binding, BindingTarget, resolve};
    use dyno_config::settings::Source;
    use dyno_db_embedded::uri::StoreUri;
    use proptest::prelude::*;

    fn bound(binding: Binding, pairs: &[(&str, &str)]) -> Result<(String, Vec<String>), String> {
        let mut settings = PropertySettings::new();
        for (key, value) in pairs {
            settings.set_property(key, *value, Source::CommandLine);
        }
        let bound = resolve(binding, &settings).map_err(|bad| bad.to_string())?;
        match bound.target {
            BindingTarget::Store { uri } => Ok((uri, bound.notes)),
            other => panic!("{other:?}"),
        }
    }

    fn uri(binding: Binding, pairs: &[(&str, &str)]) -> String {
        bound(binding, pairs).unwrap().0
    }

    #[test]
    fn stores() {
        let pairs = [("sqlite.path", "a b/x?.db"), ("sqlite.journal", "WAL"), ("sqlite.cache", "64MiB ")];
        assert_eq!(uri(Binding::Sqlite, &pairs), "sqlite:a%20b/x%3F.db?journal=WAL&cache=64MiB");
        assert_eq!(uri(Binding::Redb, &[("redb.path", "/tmp/x")]), "redb:/tmp/x");
        let pairs = [("fjall.path", "x"), ("fjall.durability", "fdatasync")];
        assert_eq!(uri(Binding::Fjall, &pairs), "fjall:x?durability=fdatasync");
        assert_eq!(
            uri(Binding::Rocksdb, &[("rocksdb.dir", "/d"), ("rocksdb.wal", "off")]),
            "rocksdb:/d?wal=off"
        );
        let pairs = [("sqlite.path", "x"), ("sqlite.busy_timeout", "500ms")];
        assert_eq!(uri(Binding::Sqlite, &pairs), "sqlite:x?busy_timeout=500ms");
    }

    #[test]
    fn the_mock() {
        assert_eq!(uri(Binding::Basic, &[]), "basic:");
        let pairs = [("basicdb.verbose", "False"), ("basicdb.simulatedelay", "5"), ("basicdb.count", "true")];
        let (text, notes) = bound(Binding::BasicTs, &pairs).unwrap();
        assert_eq!(text, "basic:?verbose=false&simulatedelay=5ms");
        assert_eq!(notes.len(), 1);
        let text = bound(Binding::Basic, &[("basicdb.simulatedelay", "x")]).unwrap_err();
        assert!(text.starts_with("-p basicdb.simulatedelay=x: expected a whole number"), "{text}");
    }

    #[test]
    fn refusals() {
        let text = bound(Binding::Sqlite, &[]).unwrap_err();
        assert!(text.starts_with("sqlite.path is not set: expected the store's file"), "{text}");
        let path = ("sqlite.path", "x");
        let text = bound(Binding::Sqlite, &[path, ("sqlite.journal", "wall")]).unwrap_err();
        assert_eq!(text, "-p sqlite.journal=wall: expected wal|delete|memory|off");
        assert!(bound(Binding::Sqlite, &[path, ("sqlite.cache", "much")]).is_err());
        assert!(bound(Binding::Sqlite, &[path, ("sqlite.busy_timeout", "soon")]).is_err());
    }

    #[test]
    fn every_declared_default_that_is_a_word_is_plausible() {
        for spec in KINDS.iter().flat_map(|kind| kind.options) {
            let words = spec.values.contains('|');
            assert!(!words || plausible(spec, spec.default), "{}={}", spec.name, spec.default);
        }
    }

    proptest! {
        #[test]
        fn any_path_arrives_as_typed(path in "[^\0]{1,40}") {
            prop_assume!(!path.trim().is_empty());
            let text = uri(Binding::Sqlite, &[("sqlite.path", &path), ("sqlite.insert", "fail")]);
            let read = StoreUri::parse(&text).unwrap();
            prop_assert_eq!(read.path.to_str().unwrap(), path);
            prop_assert_eq!(read.options, [("insert".to_owned(), "fail".to_owned())]);
        }
    }
}
