//! What a recording keeps of a reply of MongoDB.

use super::Unreadable;
use crate::entry::RecordedKind;
use dyno_types::bson::{self, Element};
use dyno_types::command::ReplyKind;

/// Longest name of an error that is kept, bytes: MongoDB's own are shorter.
const NAME_BYTES: usize = 64;

/// The facts of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFacts {
    /// Its kind.
    pub kind: RecordedKind,
    /// Documents of a batch; else the `n` of the reply, or 0.
    pub size: u64,
    /// The class of an error: the name of its code, or the code in digits.
    pub error: String,
    /// The cursor that stays open.
    pub cursor: Option<i64>,
}

impl ReplyFacts {
    fn of_reply(kind: ReplyKind, size: u64) -> Self {
        ReplyFacts { kind: RecordedKind::Reply(kind), size, error: String::new(), cursor: None }
    }

    fn of_error(class: String) -> Self {
        ReplyFacts { kind: RecordedKind::Error, size: 0, error: class, cursor: None }
    }
}

/// Elements of a reply that are looked at.
#[derive(Default)]
struct Elements<'a> {
    ok: Option<Element<'a>>,
    n: Option<Element<'a>>,
    cursor: Option<Element<'a>>,
    write_errors: Option<Element<'a>>,
    write_concern_error: Option<Element<'a>>,
    last_error: Option<Element<'a>>,
}

/// Class of an error: the name of its code, or the code in digits; of one without a code nothing.
fn error_class(document: &[u8]) -> String {
    let name = bson::find_element(document, "codeName").and_then(|name| name.as_str());
    if let Some(name) = name.filter(|name| (1..=NAME_BYTES).contains(&name.len())) {
        return name.to_owned();
    }
    let code = bson::find_element(document, "code").and_then(|code| code.as_i64());
    code.map(|code| code.to_string()).unwrap_or_default()
}

fn count_elements(array: &[u8]) -> Result<u64, Unreadable> {
    let mut count = 0;
    for element in bson::read_elements(array).map_err(|_| Unreadable)? {
        element.map_err(|_| Unreadable)?;
        count += 1;
    }
    Ok(count)
}

/// Reads the facts of a reply to a command. `is_find_and_modify`: the command was `findAndModify`, whose count stands elsewhere.
///
/// # Errors
/// It is no reply.
pub(crate) fn read_reply_facts(document: &[u8], is_find_and_modify: bool) -> Result<ReplyFacts, Unreadable> {
    let mut found = Elements::default();
    for element in bson::read_elements(document).map_err(|_| Unreadable)? {
        let element = element.map_err(|_| Unreadable)?;
        let place = match element.name {
            b"ok" => &mut found.ok,
            b"n" => &mut found.n,
            b"cursor" => &mut found.cursor,
            b"writeErrors" => &mut found.write_errors,
            b"writeConcernError" => &mut found.write_concern_error,
            b"lastErrorObject" => &mut found.last_error,
            _ => continue,
        };
        place.get_or_insert(element);
    }
    if !found.ok.ok_or(Unreadable)?.is_true() {
        return Ok(ReplyFacts::of_error(error_class(document)));
    }
    let write_errors = found.write_errors.and_then(|errors| errors.as_document());
    if let Some(first) = write_errors.and_then(|errors| bson::read_elements(errors).ok()?.next()) {
        let first = first.map_err(|_| Unreadable)?.as_document().ok_or(Unreadable)?;
        return Ok(ReplyFacts::of_error(error_class(first)));
    }
    if let Some(error) = found.write_concern_error.and_then(|error| error.as_document()) {
        return Ok(ReplyFacts::of_error(error_class(error)));
    }
    let number =
        |element: Option<Element<'_>>| element.and_then(|n| n.as_i64()).and_then(|n| u64::try_from(n).ok());
    if let Some(cursor) = found.cursor.and_then(|cursor| cursor.as_document()) {
        let batch = ["firstBatch", "nextBatch"].iter().find_map(|name| bson::find_element(cursor, name));
        if let Some(batch) = batch.and_then(|batch| batch.as_document()) {
            let id = bson::find_element(cursor, "id").and_then(|id| id.as_i64()).filter(|id| *id != 0);
            return Ok(ReplyFacts {
                cursor: id,
                ..ReplyFacts::of_reply(ReplyKind::Array, count_elements(batch)?)
            });
        }
    }
    if let Some(last) = found.last_error.and_then(|last| last.as_document()).filter(|_| is_find_and_modify) {
        return Ok(match number(bson::find_element(last, "n")) {
            Some(0) => ReplyFacts::of_reply(ReplyKind::Nil, 0),
            n => ReplyFacts::of_reply(ReplyKind::Status, n.unwrap_or(0)),
        });
    }
    Ok(ReplyFacts::of_reply(ReplyKind::Status, number(found.n).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_types::bson::{
        build_document, put_boolean, put_document, put_double, put_int32, put_int64, put_string,
    };

    fn array(name: &str, items: &[Vec<u8>]) -> impl Fn(&mut Vec<u8>) + use<> {
        let items = build_document(|out| {
            for (number, item) in (0..).zip(items) {
                bson::put_item_head(out, bson::kind::DOCUMENT, number);
                out.extend_from_slice(item);
            }
        });
        let name = name.to_owned();
        move |out| {
            bson::put_head(out, bson::kind::ARRAY, &name);
            out.extend_from_slice(&items);
        }
    }

    #[test]
    fn kinds_sizes_errors_and_cursors() {
        let empty = || build_document(|_| {});
        let batch = |name: &str, id: i64| {
            let fill = array(name, &[empty(), empty()]);
            build_document(|out| {
                let cursor = build_document(|out| {
                    fill(out);
                    put_int64(out, "id", id);
                    put_string(out, "ns", "a.b");
                });
                put_document(out, "cursor", &cursor);
                put_double(out, "ok", 1.0);
            })
        };
        let status = |size| ReplyFacts::of_reply(ReplyKind::Status, size);
        let error = |class: &str| ReplyFacts::of_error(class.to_owned());
        let of = |document: &[u8]| read_reply_facts(document, false).unwrap();
        let rows = ReplyFacts::of_reply(ReplyKind::Array, 2);
        assert_eq!(of(&batch("nextBatch", 0)), rows);
        assert_eq!(of(&batch("firstBatch", -7)), ReplyFacts { cursor: Some(-7), ..rows });
        let ok = |fields: &dyn Fn(&mut Vec<u8>)| {
            build_document(|out| {
                fields(out);
                put_int32(out, "ok", 1);
            })
        };
        assert_eq!(of(&ok(&|_| {})), status(0));
        assert_eq!(of(&ok(&|out| put_int32(out, "n", 12))), status(12));
        assert_eq!(of(&ok(&|out| put_double(out, "n", 3.0))), status(3));
        assert_eq!(of(&ok(&|out| put_int32(out, "n", -1))), status(0));
        let fault = |code: i32, name: Option<&str>| {
            build_document(|out| {
                put_int32(out, "index", 0);
                put_int32(out, "code", code);
                if let Some(name) = name {
                    put_string(out, "codeName", name);
                }
            })
        };
        let failed = array("writeErrors", &[fault(11_000, None), fault(5, Some("Later"))]);
        assert_eq!(of(&ok(&|out| failed(out))), error("11000"));
        assert_eq!(of(&ok(&array("writeErrors", &[]))), status(0));
        let late = fault(64, Some("WriteConcernFailed"));
        assert_eq!(
            of(&ok(&|out| put_document(out, "writeConcernError", &late))),
            error("WriteConcernFailed")
        );
        let refused = build_document(|out| {
            put_boolean(out, "ok", false);
            put_string(out, "errmsg", "no");
            put_int32(out, "code", 13);
        });
        assert_eq!(of(&refused), error("13"));
        let of_modify = |n: i32| {
            let last = build_document(|out| put_int32(out, "n", n));
            read_reply_facts(&ok(&|out| put_document(out, "lastErrorObject", &last)), true).unwrap()
        };
        assert_eq!(of_modify(1), status(1));
        assert_eq!(of_modify(0), ReplyFacts::of_reply(ReplyKind::Nil, 0));
        for wrong in [&b""[..], &empty(), &refused[..8]] {
            assert_eq!(read_reply_facts(wrong, false), Err(Unreadable));
        }
    }
}
