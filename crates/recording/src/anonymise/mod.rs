//! Recordings that say nothing of whose data they were: other words in place of keys, names of fields and values, by a key.
//!
//! Equal words stay equal, in every recording that is made with the same key; lengths and hash tags stay; numbers, names of
//! commands and words of options stay as they are. Replies are kept as kinds and sizes alone, so there is nothing of them to
//! change.

mod documents;
mod permutation;
mod redis_words;

use crate::entry::Arguments;
use crate::protocol::RecordedProtocol;
use dyno_types::bson;
use permutation::KeyedPermutation;

/// Fewest bytes of a key.
pub const KEY_BYTES: usize = 16;

/// The words of a document that cannot be changed.
const UNREADABLE: &str = "commands that cannot be anonymised";

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

    /// The words that stand for those of a command, and the reason why nothing stands for it. Of a command of MongoDB that is
    /// left out a `ping` keeps the place: later commands name those before them by their numbers.
    pub(crate) fn change_command(
        &mut self,
        protocol: RecordedProtocol,
        arguments: &Arguments,
    ) -> (Option<Arguments>, Option<&'static str>) {
        match protocol {
            RecordedProtocol::Redis => match redis_words::reason_against(arguments, self.keep_scripts) {
                Some(reason) => (None, Some(reason)),
                None => {
                    let changed =
                        redis_words::change_words(arguments, &mut self.permutation, self.keep_scripts);
                    (Some(changed), None)
                }
            },
            RecordedProtocol::Mongodb => match self.change_document(arguments) {
                Some(changed) => (Some(changed), None),
                None => (Some(ping()), Some(UNREADABLE)),
            },
            RecordedProtocol::Memcached => (None, Some(UNREADABLE)),
        }
    }

    /// Name, database and body of a command.
    fn change_document(&mut self, arguments: &Arguments) -> Option<Arguments> {
        if arguments.count() != 3 || (0..3).any(|number| arguments.long_value(number).is_some()) {
            return None;
        }
        let mut out = Arguments::default();
        out.push_word(arguments.word(0));
        out.push_word(&documents::change_name(arguments.word(1), &mut self.permutation));
        out.push_word(&documents::change_body(arguments.word(2), &mut self.permutation)?);
        Some(out)
    }
}

/// A command of MongoDB that does nothing.
fn ping() -> Arguments {
    let body = bson::build_document(|out| bson::put_int32(out, "ping", 1));
    Arguments::from_words([&b"ping"[..], b"admin", &body])
}
