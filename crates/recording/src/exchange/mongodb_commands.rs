//! Commands of MongoDB as a recording keeps them: name, database and body.

use super::Unreadable;
use super::cursor_links::{CursorLinks, CursorOpener};
use crate::entry::{Arguments, OPENED_BY};
use dyno_db_mongodb::protocol::message::{DocumentSequence, MessageParts, QueryParts};
use dyno_types::bson::{self, kind};

/// Commands that ask a server what it is: they belong to drivers, not to applications.
const SERVER_CHECKS: [&str; 2] = ["hello", "isMaster"];

/// A command that was sent, apart from its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandRole {
    /// Any other one.
    Other,
    /// The rest of a cursor.
    GetMore,
    /// A question of a driver's: it is no entry.
    ServerCheck,
}

impl CommandRole {
    /// Of a command's name.
    pub fn of_name(name: &[u8]) -> Self {
        let is = |other: &str| name.eq_ignore_ascii_case(other.as_bytes());
        match () {
            () if SERVER_CHECKS.iter().any(|check| is(check)) => CommandRole::ServerCheck,
            () if is("getMore") => CommandRole::GetMore,
            () => CommandRole::Other,
        }
    }
}

/// The parts of a command.
#[derive(Debug)]
pub(crate) struct CommandParts<'a> {
    /// Database, where it is named outside of the body.
    pub database: Option<&'a [u8]>,
    /// The body as it was sent.
    pub document: &'a [u8],
    /// Documents that belong into arrays of it.
    pub sequences: Vec<DocumentSequence<'a>>,
    /// How servers of a set are chosen, where that stands outside of the body.
    pub read_preference: Option<&'a [u8]>,
}

impl<'a> CommandParts<'a> {
    /// Of an OP_MSG.
    pub fn of_message(parts: MessageParts<'a>) -> Self {
        CommandParts {
            database: None,
            document: parts.document,
            sequences: parts.sequences,
            read_preference: None,
        }
    }

    /// Of an OP_QUERY; `None` if it is no command but a question of old.
    pub fn of_query(query: &QueryParts<'a>) -> Option<Self> {
        let database = query.collection.strip_suffix(b".$cmd")?;
        let inner = ["$query", "query"].iter().find_map(|name| {
            let first = bson::read_elements(query.document).ok()?.next()?.ok()?;
            first.as_document().filter(|_| first.name == name.as_bytes())
        });
        let preference =
            bson::find_element(query.document, "$readPreference").and_then(|one| one.as_document());
        Some(CommandParts {
            database: Some(database),
            document: inner.unwrap_or(query.document),
            sequences: Vec::new(),
            read_preference: preference.filter(|_| inner.is_some()),
        })
    }

    /// The command's name: the first key of its body.
    pub fn command_name(&self) -> Result<&'a [u8], Unreadable> {
        let first = bson::read_elements(self.document).map_err(|_| Unreadable)?.next();
        first.and_then(Result::ok).map(|first| first.name).ok_or(Unreadable)
    }

    /// The ids of the cursors that it goes on with, or ends; the first two of them.
    fn cursors(&self, role: CommandRole) -> [Option<i64>; 2] {
        let mut found = [None; 2];
        if role == CommandRole::GetMore {
            let first = bson::read_elements(self.document).ok().and_then(|mut all| all.next()?.ok());
            found[0] = first.and_then(|first| first.as_i64());
        } else if self.command_name().is_ok_and(|name| name.eq_ignore_ascii_case(b"killCursors")) {
            let list = bson::find_element(self.document, "cursors").and_then(|list| list.as_document());
            let ids = list.and_then(|list| bson::read_elements(list).ok());
            let ids = ids.into_iter().flatten().map_while(|id| id.ok()?.as_i64());
            found.iter_mut().zip(ids).for_each(|(place, id)| *place = Some(id));
        }
        found
    }

    /// The command that has opened the cursor which it goes on with, or ends. Of several cursors none is told.
    pub fn find_opener(&self, role: CommandRole, links: &mut CursorLinks) -> Option<CursorOpener> {
        match self.cursors(role) {
            [Some(cursor), None] => {
                let opener = links.find_opener(cursor);
                if role != CommandRole::GetMore {
                    links.forget_cursor(cursor);
                }
                opener
            }
            _ => None,
        }
    }

    /// Appends its words: name, database and body. A body longer than `limit` is not kept.
    pub fn put_words(
        &self,
        opener: Option<CursorOpener>,
        limit: usize,
        into: &mut Arguments,
    ) -> Result<(), Unreadable> {
        bson::check(self.document).map_err(|_| Unreadable)?;
        let mut database = self.database.unwrap_or_default();
        let mut body = Vec::with_capacity(self.document.len() + 64);
        let at = bson::open(&mut body);
        for element in bson::read_elements(self.document).map_err(|_| Unreadable)? {
            let element = element.map_err(|_| Unreadable)?;
            match element.name {
                b"$db" => {
                    let text = element.value.get(4..).and_then(|text| text.strip_suffix(&[0]));
                    database = text.filter(|_| element.kind == kind::STRING).ok_or(Unreadable)?;
                }
                b"$clusterTime" => {}
                name => put_element(&mut body, element.kind, name, element.value),
            }
        }
        if let Some(preference) = self.read_preference {
            put_element(&mut body, kind::DOCUMENT, b"$readPreference", preference);
        }
        for sequence in &self.sequences {
            body.push(kind::ARRAY);
            body.extend_from_slice(sequence.name);
            body.push(0);
            let list = bson::open(&mut body);
            for (number, document) in (0..).zip(*sequence) {
                let document = document.map_err(|_| Unreadable)?;
                bson::check(document).map_err(|_| Unreadable)?;
                bson::put_item_head(&mut body, kind::DOCUMENT, number);
                body.extend_from_slice(document);
            }
            bson::close(&mut body, list);
        }
        if let Some(opener) = opener {
            put_opener(&mut body, opener);
        }
        bson::close(&mut body, at);
        let name = self.command_name()?;
        into.push_limited(name, limit);
        into.push_limited(database, limit);
        into.push_limited(&body, limit);
        Ok(())
    }
}

/// Appends the field that names the opener of a command's cursor.
pub(crate) fn put_opener(out: &mut Vec<u8>, opener: CursorOpener) {
    let opener = bson::build_document(|out| {
        bson::put_int32(out, "connection", opener.connection as i32);
        bson::put_int64(out, "command", opener.command as i64);
    });
    bson::put_document(out, OPENED_BY, &opener);
}

fn put_element(out: &mut Vec<u8>, kind: u8, name: &[u8], value: &[u8]) {
    out.push(kind);
    out.extend_from_slice(name);
    out.push(0);
    out.extend_from_slice(value);
}
