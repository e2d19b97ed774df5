//! The URI of a store, taken apart: scheme, path, options. What the options mean is `options`' and the stores'
//! affair; nothing here touches the file system except `StoreUri::create_file`, which the stores call.

use dyno_types::{RefusalCode, Refused, percent};
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A store's URI, `SCHEME:PATH?name=value&name=value`, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUri {
    /// Text before the first colon.
    pub scheme: String,
    /// The path, percent-decoded; empty if none was given.
    pub path: PathBuf,
    /// The options in the order given, percent-decoded.
    pub options: Vec<(String, String)>,
}

impl StoreUri {
    /// Takes `text` apart. `sqlite:a/b`, `sqlite:/a/b` and `sqlite:///a/b` are understood; a `?` that belongs to the
    /// path is written `%3F`, a `%` is written `%25`.
    pub fn parse(text: &str) -> Result<Self, Refused> {
        let bad = |why: &str| {
            Refused::new(RefusalCode::BadValue, "target", format!("{text:?} is not a store's URI: {why}"))
        };
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| bad("expected SCHEME:PATH?name=value, such as sqlite:bench.db?journal=wal"))?;
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let path = match path.strip_prefix("//") {
            None => path,
            Some(absolute) if absolute.starts_with('/') => absolute,
            Some(_) => return Err(bad("after // a host would follow; write sqlite:PATH or sqlite:///PATH")),
        };
        let path = decode(path).map_err(|why| bad(&why.to_string()))?;
        if path.contains(&0) {
            return Err(bad("a path cannot hold %00"));
        }
        let mut options = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| bad(&format!("option {pair:?} has no value; expected {pair}=VALUE")))?;
            let text = |part: &str| {
                let bytes = decode(part).map_err(|why| bad(&why.to_string()))?;
                String::from_utf8(bytes).map_err(|_| bad(&format!("option {pair:?} is not UTF-8")))
            };
            options.push((text(name)?, text(value)?));
        }
        Ok(StoreUri { scheme: scheme.to_owned(), path: OsString::from_vec(path).into(), options })
    }

    /// Refuses a URI without a path.
    pub(crate) fn has_path(&self) -> Result<(), Refused> {
        let scheme = &self.scheme;
        match self.path.as_os_str().is_empty() {
            true => Err(Refused::new(
                RefusalCode::Missing,
                "target",
                format!("{scheme}: no path given; expected {scheme}:PATH?name=value"),
            )),
            false => Ok(()),
        }
    }

    /// The absolute path, refused if none was given or if its directory does not exist.
    pub(crate) fn required_path(&self) -> Result<PathBuf, Refused> {
        self.has_path()?;
        let scheme = &self.scheme;
        let path = std::path::absolute(&self.path).map_err(|error| {
            Refused::new(
                RefusalCode::BadFile,
                self.path.display().to_string(),
                format!("{scheme}: {}: {error}", self.path.display()),
            )
        })?;
        match path.parent() {
            Some(parent) if !parent.is_dir() => Err(Refused::new(
                RefusalCode::BadFile,
                parent.display().to_string(),
                format!(
                    "{scheme}: cannot create {}: there is no directory {}; create it first",
                    path.display(),
                    parent.display()
                ),
            )),
            _ => Ok(path),
        }
    }

    /// Makes sure that `path` is a file that can be read and written, creating an empty one if there is none, so that
    /// the refusal names the operating system's reason. Engines take an empty file for a new database.
    pub(crate) fn create_file(&self, path: &Path) -> Result<(), Refused> {
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        opened.map(drop).map_err(|error| self.cannot_open(path, &error))
    }

    /// The refusal for a path that cannot be opened.
    pub(crate) fn cannot_open(&self, path: &Path, why: &dyn std::fmt::Display) -> Refused {
        Refused::new(
            RefusalCode::BadFile,
            path.display().to_string(),
            format!("{}: cannot open {} for reading and writing: {why}", self.scheme, path.display()),
        )
    }
}

/// A text has a `%` that no two hexadecimal digits follow.
#[derive(Debug, thiserror::Error)]
#[error("% in {0:?} needs two hexadecimal digits; % is %25")]
struct NotEncoded(String);

/// Decodes `%XX`; everything else stands for itself.
fn decode(text: &str) -> Result<Vec<u8>, NotEncoded> {
    percent::decode(text).ok_or_else(|| NotEncoded(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn taken_apart() {
        let uri = StoreUri::parse("sqlite:a%20b/%3F.db?journal=wal&cache=64%4DiB&").unwrap();
        assert_eq!(uri.scheme, "sqlite");
        assert_eq!(uri.path, Path::new("a b/?.db"));
        let options = [("journal", "wal"), ("cache", "64MiB")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(uri.options, options);
        assert_eq!(StoreUri::parse("redb:///x/y").unwrap().path, Path::new("/x/y"));
        assert_eq!(StoreUri::parse("redb:/x/y").unwrap().path, Path::new("/x/y"));
        assert_eq!(StoreUri::parse("null:").unwrap().path, Path::new(""));
    }

    #[test]
    fn refused() {
        for (text, message) in [
            ("bench.db", "expected SCHEME:PATH"),
            ("sqlite://x/y", "a host would follow"),
            ("sqlite:x%2", "two hexadecimal digits"),
            ("sqlite:x%zz", "two hexadecimal digits"),
            ("sqlite:x%00y", "%00"),
            ("sqlite:x?journal", "journal=VALUE"),
            ("sqlite:x?a=%ff", "not UTF-8"),
        ] {
            let error = StoreUri::parse(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_path_survives_encoding(path in proptest::collection::vec(1u8.., 0..40)) {
            let encoded: String = path.iter().map(|byte| format!("%{byte:02x}")).collect();
            let uri = StoreUri::parse(&format!("fjall:{encoded}")).unwrap();
            prop_assert_eq!(uri.path.into_os_string().into_vec(), path);
        }

        #[test]
        fn never_panics(text in ".*") {
            let _ = StoreUri::parse(&text);
        }
    }
}
