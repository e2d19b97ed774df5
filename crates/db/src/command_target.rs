//! What a workload of commands asks its target before the load.

use dyno_engine::RunError;
use dyno_types::command::CommandFacts;
use dyno_types::key_rule::KeyRule;
use std::collections::BTreeMap;

/// A command as its words.
pub type Words = Vec<Vec<u8>>;

/// A target that takes commands of one's own, asked on connections that are waited for.
pub trait CommandTarget {
    /// Facts of commands, each given as one of the forms that it is sent in.
    ///
    /// # Errors
    /// The server lacks a command, in its words, or takes another number of arguments; or it does not answer. The number is
    /// that of the command.
    fn describe(&self, commands: &[Words]) -> Result<Vec<CommandFacts>, (usize, RunError)>;

    /// Where the keys of commands of these names, in capitals, are. Names that the server lacks are not in the answer.
    ///
    /// # Errors
    /// The server does not answer.
    fn key_rules(&self, _names: &[String]) -> Result<BTreeMap<String, KeyRule>, RunError> {
        Ok(BTreeMap::new())
    }

    /// The slot of a key, where the target is a cluster.
    fn slot(&self, _key: &[u8]) -> Option<u16> {
        None
    }

    /// Counts which of these keys are there.
    ///
    /// # Errors
    /// The server does not answer, or refuses it.
    fn existing(&self, keys: &[Vec<u8>]) -> Result<u64, RunError>;

    /// Number of elements that a key holds; 0 where there is none, `None` for one that has no elements.
    ///
    /// # Errors
    /// The server does not answer, or refuses it.
    fn size(&self, _key: &[u8]) -> Result<Option<u64>, RunError> {
        Ok(None)
    }

    /// Counts all keys, of all databases of the server; `None` where it cannot tell.
    ///
    /// # Errors
    /// The server does not answer, or refuses it.
    fn count_keys(&self) -> Result<Option<u64>, RunError> {
        Ok(None)
    }

    /// Removes keys; those that are not there are no error.
    ///
    /// # Errors
    /// The server does not answer, or refuses it.
    fn remove(&self, keys: &[Vec<u8>]) -> Result<(), RunError>;

    /// Sends one command, to the node of a key where there is one.
    ///
    /// # Errors
    /// The server refuses it, in its words, or does not answer.
    fn send(&self, words: &Words, key: Option<&[u8]>) -> Result<(), RunError>;

    /// Gives every node that may need it a script, or a library of functions.
    ///
    /// # Errors
    /// A server refuses it, in its words, or does not answer.
    fn load_script(&self, body: &[u8], function: bool) -> Result<(), RunError>;
}
