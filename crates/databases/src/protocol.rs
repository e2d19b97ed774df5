//! A protocol by which a server can be told from those of other databases.

/// A database's protocol, as far as it is told from others.
#[derive(Debug)]
pub struct Protocol {
    /// Name of the database, with an apostrophe.
    pub name: &'static str,
    /// The scheme of its URIs.
    pub scheme: &'static str,
    /// A question that every server answers, also before a login.
    pub question: fn() -> Vec<u8>,
    /// Returns whether the bytes are an answer to it.
    pub is_answer: fn(&[u8]) -> bool,
}

impl PartialEq for Protocol {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme
    }
}
