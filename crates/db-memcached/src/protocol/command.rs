//! Subject of a command, in both text protocols: a key as it is sent, and the condition of a write.

/// A key as it is sent.
#[derive(Clone, Copy)]
pub(super) struct SentKey<'a> {
    pub bytes: &'a [u8],
    /// True if it travels in base64 (meta protocol).
    pub encoded: bool,
}

/// The condition of a write.
#[derive(Clone, Copy)]
pub(super) enum WriteCondition {
    /// The key is new.
    Add,
    /// The key is there.
    Replace,
    /// The value has this version.
    Swap(u64),
}
