//! Why something that was asked for cannot be done.

use std::fmt;

/// Kind of a refusal: stable words for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalCode {
    /// No option, key, scheme or property has this name.
    UnknownName,
    /// A value that is not accepted where it was given.
    BadValue,
    /// Something that is needed was not given.
    Missing,
    /// Things that do not go together.
    Conflict,
    /// The database, its version or its topology has no form for it.
    Unsupported,
    /// This program was built without it.
    NotBuilt,
    /// A file or a folder that cannot be used.
    BadFile,
    /// The data that are there are not those that were asked for.
    OtherData,
    /// A limit of the system or of dyno.
    Limit,
}

impl RefusalCode {
    /// Returns the stable word, such as `bad_value`.
    pub fn code_word(self) -> &'static str {
        match self {
            RefusalCode::UnknownName => "unknown_name",
            RefusalCode::BadValue => "bad_value",
            RefusalCode::Missing => "missing",
            RefusalCode::Conflict => "conflict",
            RefusalCode::Unsupported => "unsupported",
            RefusalCode::NotBuilt => "not_built",
            RefusalCode::BadFile => "bad_file",
            RefusalCode::OtherData => "other_data",
            RefusalCode::Limit => "limit",
        }
    }
}

/// Why something that was asked for cannot be done: exit code 2.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Refused {
    code: RefusalCode,
    place: String,
    text: String,
}

impl Refused {
    /// Refuses what was given at `place` (an option, a key, a part of a URI, a file; `target` for a whole URI); `text` is
    /// the whole message: what was found and what is accepted.
    pub fn new(code: RefusalCode, place: impl Into<String>, text: impl Into<String>) -> Self {
        Refused { code, place: place.into(), text: text.into() }
    }

    /// Returns the kind of the refusal.
    pub fn refusal_code(&self) -> RefusalCode {
        self.code
    }

    /// Returns the option, key or file that a change of would help.
    pub fn refused_place(&self) -> &str {
        &self.place
    }

    /// Returns the same refusal with words before its message.
    #[must_use]
    pub fn with_prefix(self, prefix: impl fmt::Display) -> Self {
        Refused { text: format!("{prefix}{}", self.text), ..self }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
