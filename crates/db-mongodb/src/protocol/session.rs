//! Logical sessions, and which operations carry a number by which they are done at most once (MongoDB's "Driver Sessions" and
//! "Retryable Writes" specifications).
//!
//! A session belongs to an exchange: exchanges are used again for operation after operation and hold one at a time, so
//! there are as many sessions as operations that can be under way, and none is used twice at once.

use super::options::MongoOptions;
use dyno_types::bson::{self, kind};
use dyno_types::document::Action;
use dyno_types::{Content, Request, Verb};

/// A session: its random id, and the number of its last retryable write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogicalSession {
    id: [u8; 16],
    number: i64,
}

impl LogicalSession {
    /// A session with a fresh id; `None` where the system has no random bytes.
    pub fn begin() -> Option<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).ok()?;
        // A UUID of version 4.
        id[6] = id[6] & 0x0F | 0x40;
        id[8] = id[8] & 0x3F | 0x80;
        Some(LogicalSession { id, number: 0 })
    }

    /// A retryable write begins; a retry of it has the same number.
    pub fn next_write(&mut self) {
        self.number += 1;
    }

    /// Appends what a command in a transaction carries beside `lsid`; the first begins it.
    pub fn put_transaction(&self, first: bool, out: &mut Vec<u8>) {
        self.put_number(out);
        if first {
            bson::put_boolean(out, "startTransaction", true);
        }
        bson::put_boolean(out, "autocommit", false);
    }

    /// Appends `lsid`.
    pub fn put_id(&self, out: &mut Vec<u8>) {
        bson::put_head(out, kind::DOCUMENT, "lsid");
        let at = bson::open(out);
        bson::put_head(out, kind::BINARY, "id");
        out.extend_from_slice(&16i32.to_le_bytes());
        out.push(4);
        out.extend_from_slice(&self.id);
        bson::close(out, at);
    }

    /// Appends `txnNumber`.
    pub fn put_number(&self, out: &mut Vec<u8>) {
        bson::put_int64(out, "txnNumber", self.number);
    }
}

/// Writes the end of a transaction: a command to the database `admin`.
pub(super) fn put_end(
    action: &Action,
    session: Option<&LogicalSession>,
    options: &MongoOptions,
    out: &mut Vec<u8>,
) {
    let body = bson::open(out);
    let name = if *action == Action::Commit { "commitTransaction" } else { "abortTransaction" };
    bson::put_int32(out, name, 1);
    bson::put_string(out, "$db", "admin");
    if let Some(session) = session {
        session.put_id(out);
        session.put_transaction(false, out);
    }
    if !options.write_concern.is_default() {
        options.write_concern.put(out);
    }
    if let Some(api) = &options.server_api {
        api.put(out);
    }
    bson::close(out, body);
}

/// Returns whether a request is a write of single documents, which servers do at most once however often it is sent.
pub(super) fn is_retryable(content: &dyn Content, request: &Request) -> bool {
    match request.verb {
        Verb::Insert | Verb::Update | Verb::Delete => true,
        Verb::Document => match &content.shapes()[usize::from(request.shape)].action {
            Action::Insert { .. } | Action::FindAndModify { .. } => true,
            Action::Update { many, .. } | Action::Delete { many, .. } => !many,
            _ => false,
        },
        Verb::Read | Verb::Scan | Verb::Command | Verb::Recorded | Verb::Topology => false,
    }
}

/// Returns whether a request is a read that can be done twice.
pub(super) fn is_retryable_read(content: &dyn Content, request: &Request) -> bool {
    match request.verb {
        Verb::Read | Verb::Scan => true,
        Verb::Document => {
            let action = &content.shapes()[usize::from(request.shape)].action;
            !action.changes_data() && !action.ends_transaction()
        }
        Verb::Insert | Verb::Update | Verb::Delete | Verb::Command | Verb::Recorded | Verb::Topology => false,
    }
}

/// Returns whether a server that says what its sessions are expects them: members of replica sets and routers do.
pub(super) fn expected(hello: &[u8]) -> bool {
    let has = |name: &str| bson::find_element(hello, name);
    let routes = has("msg").and_then(|e| e.as_str()) == Some("isdbgrid");
    has("logicalSessionTimeoutMinutes").and_then(|e| e.as_i64()).is_some()
        && (routes || has("setName").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(fields: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        let at = bson::open(&mut out);
        fields(&mut out);
        bson::close(&mut out, at);
        out
    }

    #[test]
    fn ids_are_uuids_of_their_own() {
        let (one, two) = (LogicalSession::begin().unwrap(), LogicalSession::begin().unwrap());
        assert_ne!(one, two);
        let out = document(|out| one.put_id(out));
        let id = bson::element_at_path(&out, "lsid.id").unwrap();
        assert_eq!((id.kind, id.value.len(), id.value[4]), (kind::BINARY, 21, 4));
        assert_eq!((id.value[11] >> 4, id.value[13] >> 6), (4, 2));
    }

    #[test]
    fn servers_that_expect_sessions() {
        let minutes = |out: &mut Vec<u8>| bson::put_int32(out, "logicalSessionTimeoutMinutes", 30);
        assert!(!expected(&document(minutes)));
        assert!(!expected(&document(|out| bson::put_string(out, "setName", "rs"))));
        for (name, value) in [("setName", "rs"), ("msg", "isdbgrid")] {
            assert!(expected(&document(|out| {
                minutes(out);
                bson::put_string(out, name, value);
            })));
        }
    }
}
