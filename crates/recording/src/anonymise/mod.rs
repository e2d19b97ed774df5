//! Recordings that say nothing of whose data they were: other words in place of keys, names of fields and values, by a key.
//!
//! Equal words stay equal, in every recording that is made with the same key; lengths and hash tags stay; numbers, names of
//! commands and words of options stay as they are. Replies are kept as kinds and sizes alone, so there is nothing of them to
//! change.

mod document_words;
mod left_out_entries;
mod memcached_words;
mod mongodb_expressions;
mod mongodb_grammar;
mod mongodb_words;
mod permutation;
mod redis_words;
mod slots;

use crate::entry::{Arguments, Entry};
use crate::protocol::RecordedProtocol;
use document_words::DocumentWords;
use left_out_entries::LeftOutEntries;
use permutation::KeyedPermutation;

/// Fewest bytes of a key.
pub const KEY_BYTES: usize = 16;

/// Puts other words in place of those that say something.
pub struct Anonymiser {
    permutation: KeyedPermutation,
    documents: DocumentWords,
    left_out: LeftOutEntries,
    keep_scripts: bool,
}

impl Anonymiser {
    /// By a key of [`KEY_BYTES`] or more. `keep_scripts`: commands with scripts, patterns or a language of their own are kept,
    /// and what they say with them.
    pub fn new(key: &[u8], keep_scripts: bool) -> Self {
        Anonymiser {
            permutation: KeyedPermutation::new(key),
            documents: DocumentWords::new(key),
            left_out: LeftOutEntries::default(),
            keep_scripts,
        }
    }

    /// The same, whose words of Redis stay in the slots of a cluster that they have as keys: a replay loads the nodes as it was.
    pub fn keeping_slots(self) -> Self {
        Anonymiser { permutation: self.permutation.keeping_slots(), ..self }
    }

    /// Returns whether words stay in the slots of a cluster.
    pub(crate) fn keeps_slots(&self) -> bool {
        self.permutation.keeps_slots
    }

    /// Returns whether words of a recording can be replaced. Values of a snapshot of Redis carry checksums.
    pub(crate) fn knows(protocol: RecordedProtocol, is_data_set: bool) -> bool {
        !is_data_set || protocol == RecordedProtocol::Mongodb
    }

    /// The words that stand for those of the next command; the reason why nothing stands for it.
    pub(crate) fn change_command(
        &mut self,
        protocol: RecordedProtocol,
        entry: &Entry,
    ) -> Result<Arguments, &'static str> {
        let (arguments, keep_scripts) = (&entry.arguments, self.keep_scripts);
        let reason = match protocol {
            RecordedProtocol::Mongodb => {
                let left_out = &self.left_out;
                let number_now = |connection, number| left_out.number_now(connection, number);
                let made =
                    mongodb_words::change_words(arguments, &mut self.documents, keep_scripts, number_now);
                self.left_out.note_entry(entry.connection, made.is_err());
                return made;
            }
            RecordedProtocol::Memcached => memcached_words::reason_against(arguments),
            RecordedProtocol::Redis => redis_words::reason_against(arguments, keep_scripts),
        };
        match (reason, protocol) {
            (Some(reason), _) => Err(reason),
            (None, RecordedProtocol::Memcached) => {
                Ok(memcached_words::change_words(arguments, &mut self.permutation))
            }
            (None, _) => Ok(redis_words::change_words(arguments, &mut self.permutation, keep_scripts)),
        }
    }
}
