//! A setting of a server or of its host that cannot be used.

/// A setting has a value that cannot be used, or does not go together with others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct InvalidSetting {
    /// Key, relative to what was checked, such as `limits.memory`; two are separated by a comma.
    pub key: String,
    /// Problem of the setting, and what is accepted.
    pub problem: String,
}

impl InvalidSetting {
    /// `key` has the problem that the text says.
    pub fn new(key: &str, problem: impl Into<String>) -> Self {
        InvalidSetting { key: key.to_owned(), problem: problem.into() }
    }

    /// The same, of a mapping that stands below the key `parent`.
    #[must_use]
    pub fn below_key(self, parent: &str) -> Self {
        InvalidSetting { key: format!("{parent}.{}", self.key), ..self }
    }
}
