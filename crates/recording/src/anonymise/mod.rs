//! Recordings of Redis and memcached that say nothing of whose data they were: other words in place of keys, names of fields and
//! values, by a key.
//!
//! Equal words stay equal, in every recording that is made with the same key; lengths and hash tags stay; numbers, names of
//! commands and words of options stay as they are. Replies are kept as kinds and sizes alone, so there is nothing of them to
//! change.

mod memcached_words;
mod permutation;
mod redis_words;

use crate::entry::Arguments;
use crate::protocol::RecordedProtocol;
use permutation::KeyedPermutation;

/// Fewest bytes of a key.
pub const KEY_BYTES: usize = 16;

/// Puts other words in place of those that say something.
pub struct Anonymiser {
    permutation: KeyedPermutation,
    keep_scripts: bool,
}

impl Anonymiser {
    /// By a key of [`KEY_BYTES`] or more. `keep_scripts`: commands with scripts, patterns or a language of their own are kept,
    /// and what they say with them.
    pub fn new(key: &[u8], keep_scripts: bool) -> Self {
        Anonymiser { permutation: KeyedPermutation::new(key), keep_scripts }
    }

    /// Returns whether words of a protocol's commands can be replaced.
    pub(crate) fn knows(protocol: RecordedProtocol) -> bool {
        matches!(protocol, RecordedProtocol::Redis | RecordedProtocol::Memcached)
    }

    /// The words that stand for those of a command; the reason why nothing stands for it.
    pub(crate) fn change_command(
        &mut self,
        protocol: RecordedProtocol,
        arguments: &Arguments,
    ) -> Result<Arguments, &'static str> {
        let (permutation, keep_scripts) = (&mut self.permutation, self.keep_scripts);
        if protocol == RecordedProtocol::Memcached {
            return match memcached_words::reason_against(arguments) {
                Some(reason) => Err(reason),
                None => Ok(memcached_words::change_words(arguments, permutation)),
            };
        }
        match redis_words::reason_against(arguments, keep_scripts) {
            Some(reason) => Err(reason),
            None => Ok(redis_words::change_words(arguments, permutation, keep_scripts)),
        }
    }
}
