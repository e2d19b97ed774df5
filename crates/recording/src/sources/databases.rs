//! Databases of Redis' connections, where a source names the database of each command.

use super::SourceError;
use crate::entry::{Arguments, Entry};
use crate::format::RecordingWriter;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::Write;

/// Connections by what the source calls them: their number, and their database.
#[derive(Debug)]
pub(super) struct ConnectionDatabases<K> {
    known: HashMap<K, (u32, u32)>,
}

impl<K> Default for ConnectionDatabases<K> {
    fn default() -> Self {
        ConnectionDatabases { known: HashMap::new() }
    }
}

impl<K: Eq + Hash> ConnectionDatabases<K> {
    /// Returns the number of a command's connection. Writes a `SELECT` before it, if the connection was in another database as
    /// far as is known.
    pub(super) fn enter<Q, W: Write>(
        &mut self,
        at_ns: u64,
        name: &Q,
        database: u32,
        command: &Arguments,
        writer: &mut RecordingWriter<W>,
    ) -> Result<u32, SourceError>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ToOwned<Owned = K> + ?Sized,
    {
        let number = self.known.len() as u32;
        let (connection, known) = match self.known.get_mut(name) {
            Some(known) => known,
            None => self.known.entry(name.to_owned()).or_insert((number, 0)),
        };
        let selects = command.is_named("SELECT");
        if *known != database && !selects {
            *known = database;
            let mut select = Entry { at_ns, connection: *connection, implied: true, ..Entry::default() };
            select.arguments.push_word(b"SELECT");
            select.arguments.push_word(database.to_string().as_bytes());
            writer.push_entry(&select)?;
        }
        if selects && command.count() > 1 {
            let chosen = std::str::from_utf8(command.word(1)).ok().and_then(|text| text.parse().ok());
            *known = chosen.unwrap_or(*known);
        }
        Ok(*connection)
    }
}
