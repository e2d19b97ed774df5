//! Bodies of commands of then as bodies of now.

use super::cursors::CursorKey;
use super::mongodb_rules::TIMES;
use dyno_types::bson::{self, Element, NotBson, kind};
use dyno_types::rng::mix_bits;

/// A command's body as it is sent.
#[derive(Debug, Default)]
pub(super) struct SentBody {
    pub bytes: Vec<u8>,
    /// Where the number of the cursor is that it goes on with, or ends.
    pub cursor_at: Option<usize>,
    /// The command that opened this cursor.
    pub opened_by: Option<CursorKey>,
    /// It asks for no acknowledgement.
    pub unacknowledged: bool,
}

/// Appends an element as it is.
fn put_element(element: &Element<'_>, out: &mut Vec<u8>) {
    out.push(element.kind);
    out.extend_from_slice(element.name);
    out.push(0);
    out.extend_from_slice(element.value);
}

/// A session's id of now: it follows from the one of then, and from the number of the replay.
fn session_id(then: &[u8], replay_number: u64) -> [u8; 16] {
    let mut halves = [mix_bits(replay_number), mix_bits(replay_number ^ 0x9e37_79b9_7f4a_7c15)];
    for eight in then.chunks(8) {
        let mut word = [0; 8];
        word[..eight.len()].copy_from_slice(eight);
        let word = u64::from_le_bytes(word);
        for (number, half) in halves.iter_mut().enumerate() {
            *half = mix_bits(half.rotate_left(17 + number as u32) ^ word).wrapping_add(*half);
        }
    }
    let mut id = [0; 16];
    id[..8].copy_from_slice(&halves[0].to_le_bytes());
    id[8..].copy_from_slice(&halves[1].to_le_bytes());
    // A UUID of version 4.
    id[6] = id[6] & 0x0F | 0x40;
    id[8] = id[8] & 0x3F | 0x80;
    id
}

/// Appends the fields of a session's id of now in place of those of then.
fn put_session(then: &[u8], replay_number: u64, out: &mut Vec<u8>) {
    let at = bson::open(out);
    bson::put_head(out, kind::BINARY, "id");
    out.extend_from_slice(&16i32.to_le_bytes());
    out.push(4);
    let id = bson::find_element(then, "id").map_or(then, |id| id.value);
    out.extend_from_slice(&session_id(id, replay_number));
    bson::close(out, at);
}

/// The same for a list of sessions.
fn put_sessions(name: &str, then: &[u8], replay_number: u64, out: &mut Vec<u8>) -> Result<(), NotBson> {
    bson::put_head(out, kind::ARRAY, name);
    let list = bson::open(out);
    for (number, session) in bson::read_elements(then)?.enumerate() {
        let session = session?;
        let number = u32::try_from(number).map_err(|_| NotBson)?;
        match session.as_document() {
            Some(then) => {
                bson::put_item_head(out, kind::DOCUMENT, number);
                put_session(then, replay_number, out);
            }
            None => {
                bson::put_item_head(out, session.kind, number);
                out.extend_from_slice(session.value);
            }
        }
    }
    bson::close(out, list);
    Ok(())
}

/// Appends a read concern without the times of then.
fn put_read_concern(concern: &[u8], out: &mut Vec<u8>) -> Result<(), NotBson> {
    bson::put_head(out, kind::DOCUMENT, "readConcern");
    let at = bson::open(out);
    for element in bson::read_elements(concern)? {
        let element = element?;
        if !TIMES.iter().any(|time| time.as_bytes() == element.name) {
            put_element(&element, out);
        }
    }
    bson::close(out, at);
    Ok(())
}

fn read_opener(document: &[u8]) -> Option<CursorKey> {
    let number = |name| bson::find_element(document, name).and_then(|found| found.as_i64());
    Some((u32::try_from(number("connection")?).ok()?, number("command")?))
}

/// The body of a command as it is sent now: for its database, with sessions of this replay, and with room for a cursor's number.
pub(super) fn sent_body(
    name: &str,
    database: &str,
    body: &[u8],
    replay_number: u64,
) -> Result<SentBody, NotBson> {
    let mut sent = SentBody { bytes: Vec::with_capacity(body.len() + 64), ..SentBody::default() };
    let out = &mut sent.bytes;
    let at = bson::open(out);
    for element in bson::read_elements(body)? {
        let element = element?;
        match (element.name, element.as_document()) {
            (b"$db" | b"$clusterTime", _) => {}
            (b"_openedBy", document) => sent.opened_by = document.and_then(read_opener),
            (b"lsid", Some(then)) => {
                bson::put_head(out, kind::DOCUMENT, "lsid");
                put_session(then, replay_number, out);
            }
            (b"endSessions" | b"refreshSessions" | b"killSessions", Some(then))
                if element.name == name.as_bytes() =>
            {
                put_sessions(name, then, replay_number, out)?;
            }
            (b"readConcern", Some(concern)) => put_read_concern(concern, out)?,
            (b"getMore", _) if name == "getMore" => {
                bson::put_int64(out, "getMore", 0);
                sent.cursor_at = Some(out.len() - 8);
            }
            (b"cursors", Some(_)) if name == "killCursors" => {
                bson::put_head(out, kind::ARRAY, "cursors");
                let list = bson::open(out);
                bson::put_item_head(out, kind::INT64, 0);
                out.extend_from_slice(&[0; 8]);
                sent.cursor_at = Some(out.len() - 8);
                bson::close(out, list);
            }
            (b"writeConcern", concern) => {
                let w = concern.and_then(|concern| bson::find_element(concern, "w"));
                sent.unacknowledged = w.is_some_and(|w| w.as_i64() == Some(0));
                put_element(&element, out);
            }
            _ => put_element(&element, out),
        }
    }
    bson::put_string(out, "$db", database);
    bson::close(out, at);
    Ok(sent)
}

/// Name of a command and its collection, for messages: values stay out of them.
pub(in crate::replay) fn command_words(sent: &[u8]) -> String {
    let text = |name| bson::find_element(sent, name).and_then(|found| found.as_str()).unwrap_or_default();
    let first = bson::read_elements(sent).ok().and_then(|mut all| all.next()?.ok());
    let Some(first) = first else { return String::new() };
    let name = String::from_utf8_lossy(first.name);
    match first.as_str().unwrap_or_else(|| text("collection")) {
        "" => format!("{name} {}", text("$db")),
        collection => format!("{name} {}.{collection}", text("$db")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(byte: u8) -> Vec<u8> {
        bson::build_document(|out| {
            bson::put_head(out, kind::BINARY, "id");
            out.extend_from_slice(&16i32.to_le_bytes());
            out.push(4);
            out.extend_from_slice(&[byte; 16]);
        })
    }

    fn sent(name: &str, body: impl FnOnce(&mut Vec<u8>)) -> SentBody {
        sent_body(name, "shop", &bson::build_document(body), 7).unwrap()
    }

    #[test]
    fn a_body_stays_as_it_was_but_for_its_database() {
        let body = |out: &mut Vec<u8>| {
            bson::put_string(out, "insert", "items");
            bson::put_int64(out, "txnNumber", 9);
            bson::put_document(out, "$readPreference", &[5, 0, 0, 0, 0]);
        };
        let expected = bson::build_document(|out| {
            body(out);
            bson::put_string(out, "$db", "shop");
        });
        let found = sent("insert", |out| {
            body(out);
            bson::put_document(out, "$clusterTime", &[5, 0, 0, 0, 0]);
        });
        assert_eq!(found.bytes, expected);
        assert!(!found.unacknowledged && found.cursor_at.is_none() && found.opened_by.is_none());
        assert_eq!(command_words(&found.bytes), "insert shop.items");
    }

    #[test]
    fn a_session_of_then_is_one_of_now() {
        let with = |byte: u8| {
            let found = sent("find", |out| {
                bson::put_string(out, "find", "items");
                bson::put_document(out, "lsid", &session(byte));
            });
            bson::element_at_path(&found.bytes, "lsid.id").unwrap().value.to_vec()
        };
        assert_eq!(with(1), with(1));
        assert!(with(1) != with(2) && with(1)[5..] != [1; 16]);
        // A UUID of version 4, as drivers make them.
        assert_eq!((with(1).len(), with(1)[4], with(1)[11] >> 4, with(1)[13] >> 6), (21, 4, 4, 2));
        let ends = sent("endSessions", |out| {
            bson::put_head(out, kind::ARRAY, "endSessions");
            let list = bson::open(out);
            bson::put_document(out, "0", &session(2));
            bson::close(out, list);
        });
        assert_eq!(bson::element_at_path(&ends.bytes, "endSessions.0.id").unwrap().value, with(2));
        assert_ne!(session_id(&[1; 16], 7), session_id(&[1; 16], 8), "each replay has sessions of its own");
    }

    #[test]
    fn cursors_have_room_for_their_numbers() {
        let opener = bson::build_document(|out| {
            bson::put_int32(out, "connection", 4);
            bson::put_int64(out, "command", 11);
        });
        let more = sent("getMore", |out| {
            bson::put_int64(out, "getMore", 0x0102_0304_0506_0708);
            bson::put_string(out, "collection", "items");
            bson::put_document(out, "_openedBy", &opener);
        });
        assert_eq!((more.opened_by, more.cursor_at), (Some((4, 11)), Some(13)));
        assert!(bson::find_element(&more.bytes, "_openedBy").is_none());
        assert_eq!(command_words(&more.bytes), "getMore shop.items");
        let ends = sent("killCursors", |out| {
            bson::put_string(out, "killCursors", "items");
            bson::put_head(out, kind::ARRAY, "cursors");
            let list = bson::open(out);
            bson::put_int64(out, "0", 5);
            bson::put_int64(out, "1", 6);
            bson::close(out, list);
            bson::put_document(out, "_openedBy", &opener);
        });
        let mut bytes = ends.bytes;
        bytes[ends.cursor_at.unwrap()..][..8].copy_from_slice(&77i64.to_le_bytes());
        assert_eq!(bson::element_at_path(&bytes, "cursors.0").unwrap().as_i64(), Some(77));
        assert!(bson::element_at_path(&bytes, "cursors.1").is_none() && bson::check(&bytes).is_ok());
    }

    #[test]
    fn times_of_then_and_acknowledgements() {
        let found = sent("find", |out| {
            bson::put_string(out, "find", "items");
            let concern = bson::build_document(|out| {
                bson::put_string(out, "level", "majority");
                bson::put_head(out, kind::TIMESTAMP, "afterClusterTime");
                out.extend_from_slice(&[9; 8]);
            });
            bson::put_document(out, "readConcern", &concern);
            bson::put_document(
                out,
                "writeConcern",
                &bson::build_document(|out| bson::put_int32(out, "w", 0)),
            );
        });
        assert!(bson::element_at_path(&found.bytes, "readConcern.afterClusterTime").is_none());
        assert_eq!(
            bson::element_at_path(&found.bytes, "readConcern.level").unwrap().as_str(),
            Some("majority")
        );
        assert!(found.unacknowledged);
    }
}
