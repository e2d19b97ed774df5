//! Documents in Redis, as far as its data model carries: each is one value, the BSON of the document, under the key
//! `collection:_id`. They are inserted (SET NX), found and deleted by their `_id`, and replaced; Redis looks into no value,
//! so that searches and changes of single fields are refused.

use super::cluster::key_slot;
use super::exchange::RedisExchange;
use super::resp::{NotResp, Token, put_array, put_bulk, put_command, put_length, read_token};
use super::state::RedisDriver;
use dyno_types::bson::{self, Element, kind};
use dyno_types::document::{Action, Change, DocumentFilter, FieldTest};
use dyno_types::{Content, Outcome, RefusalCode, Refused, Request};
use std::io::Write;

/// Refuses what Redis cannot do with documents.
pub(super) fn check(content: &dyn Content) -> Result<(), Refused> {
    for shape in content.shapes_used() {
        let why = match &shape.action {
            Action::Insert { .. } => None,
            Action::Find { fields, .. } if !fields.0.is_empty() => Some("single fields of a document"),
            Action::Find { filter, .. } => by_id(filter).err(),
            Action::Delete { filter, .. } => by_id(filter).err(),
            Action::Update { filter, change: Change::Replace, upsert: false, .. } => by_id(filter).err(),
            Action::Update { .. } | Action::FindAndModify { .. } => Some("changes of single fields"),
            Action::Sum { .. } | Action::Distinct { .. } | Action::Aggregate { .. } => Some("aggregations"),
            Action::Command { .. } => Some("commands of MongoDB"),
            Action::Commit | Action::Abort => Some("transactions of several requests"),
        };
        if let Some(why) = why {
            let name = &shape.name;
            return Err(Refused::new(
                RefusalCode::Unsupported,
                "workload",
                format!(
                    "Redis keeps a document as one value, found by its _id: it cannot do {name:?} ({why})"
                ),
            ));
        }
    }
    Ok(())
}

/// The filter's only operand, which `_id` must equal.
fn by_id(filter: &DocumentFilter) -> Result<u16, &'static str> {
    match &filter.0[..] {
        [one] if one.field == "_id" => match &one.test {
            FieldTest::Equal(operand) => Ok(*operand),
            _ => Err("searches of a range or a list"),
        },
        _ => Err("searches by anything but _id"),
    }
}

/// An `_id` as part of a key: numbers and texts as they are read, documents member by member, anything else as its bytes.
fn put_id(element: &Element<'_>, out: &mut Vec<u8>) {
    match (element.kind, element.as_i64(), element.as_str()) {
        (kind::STRING, _, Some(text)) => out.extend_from_slice(text.as_bytes()),
        (kind::DOCUMENT, ..) => {
            let members = bson::read_elements(element.value).into_iter().flatten().flatten();
            for (number, member) in members.enumerate() {
                if number > 0 {
                    out.push(b':');
                }
                put_id(&member, out);
            }
        }
        // Writing to a vector cannot fail.
        (_, Some(number), _) => drop(write!(out, "{number}")),
        _ => element.value.iter().for_each(|byte| drop(write!(out, "{byte:02x}"))),
    }
}

impl RedisDriver {
    /// Commands of a document request.
    pub(super) fn document_commands(&self, request: &Request) -> u32 {
        match self.content.shapes()[usize::from(request.shape)].action {
            Action::Insert { .. } | Action::Update { .. } | Action::Delete { .. } => {
                self.content.documents(request)
            }
            _ => 1,
        }
    }

    /// Renders the document (where there is one) into the scratch and the key into `batch_key`.
    fn render(&mut self, request: &Request, command: u32) {
        self.batch_key.clear();
        self.content.collection(request, &mut self.batch_key);
        self.batch_key.push(b':');
        self.scratch.clear();
        let action = &self.content.shapes()[usize::from(request.shape)].action;
        if action.renders_documents() {
            self.content.document(request, command, &mut self.scratch);
            if let Some(id) = bson::find_element(&self.scratch, "_id") {
                put_id(&id, &mut self.batch_key);
            }
            return;
        }
        if let Action::Find { filter, .. } | Action::Delete { filter, .. } = action
            && let Ok(operand) = by_id(filter)
        {
            let at = bson::open(&mut self.scratch);
            self.content.operand(request, command, operand, "_id", &mut self.scratch);
            bson::close(&mut self.scratch, at);
            if let Some(id) = bson::find_element(&self.scratch, "_id") {
                put_id(&id, &mut self.batch_key);
            }
        }
    }

    /// The slot of a command's document.
    pub(super) fn document_slot(&mut self, request: &Request, command: u32) -> u16 {
        self.render(request, command);
        key_slot(&self.batch_key)
    }

    /// Appends a command of a document request.
    pub(super) fn put_document(&mut self, request: &Request, command: u32, out: &mut Vec<u8>) {
        self.render(request, command);
        match self.content.shapes()[usize::from(request.shape)].action {
            Action::Find { .. } => put_command(out, &[b"GET", &self.batch_key]),
            Action::Delete { .. } => put_command(out, &[b"DEL", &self.batch_key]),
            ref action => {
                put_array(out, 4);
                out.extend_from_slice(b"$3\r\nSET\r\n");
                put_bulk(out, &self.batch_key);
                put_length(out, self.scratch.len());
                out.extend_from_slice(&self.scratch);
                // New ones must not be there, replaced ones must.
                let insert = matches!(action, Action::Insert { .. });
                out.extend_from_slice(if insert { b"\r\n$2\r\nNX\r\n" } else { b"\r\n$2\r\nXX\r\n" });
            }
        }
    }

    /// The reply to a command of a document request, and the position after it.
    pub(super) fn take_document(
        &mut self,
        x: &mut RedisExchange,
        input: &[u8],
    ) -> Result<Option<(Outcome, usize)>, NotResp> {
        let Some((found, next)) = read_token(input, 0)? else { return Ok(None) };
        let action = &self.content.shapes()[usize::from(x.request.shape)].action;
        let insert = matches!(action, Action::Insert { .. });
        let none = match insert {
            true => Outcome::Duplicate,
            false if action.means_one() => Outcome::NotFound,
            false => Outcome::Ok,
        };
        let outcome = match found {
            Token::Simple(_) | Token::Bulk(_) => {
                x.count();
                Outcome::Ok
            }
            Token::Int(n) if n > 0 => {
                x.count();
                Outcome::Ok
            }
            Token::Int(_) | Token::Null => none,
            Token::Error(text) => self.fail(text),
            _ => return Err(NotResp),
        };
        if outcome == Outcome::Duplicate {
            self.say("a document with this _id is there already");
        }
        Ok(Some((outcome, next)))
    }
}
