//! Replies as recordings keep them: kind, size and class of error, without their bytes.

use dyno_types::bson::{self, Element, NotBson, kind};
use dyno_types::command::{ReplyFacts, ReplyKind};
use std::borrow::Cow;

/// What a reply is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyClass<'a> {
    /// Its kind; `None` for an error. A batch of a cursor is an array, `findAndModify` without a document nothing, and all else a
    /// status.
    pub kind: Option<ReplyKind>,
    /// Documents of a batch, or the number `n` of the reply; 0 where it has none.
    pub size: u64,
    /// The name of an error's code, or the code in digits where the server gives it no name; empty otherwise.
    pub error: Cow<'a, str>,
    /// The number of the cursor whose batch it is, 0 where that has no more to give; `None` of any other reply.
    pub cursor: Option<i64>,
}

impl ReplyClass<'_> {
    /// The same for a comparison.
    pub fn as_facts(&self) -> ReplyFacts<'_> {
        ReplyFacts { kind: self.kind, size: self.size, error: self.error.as_bytes() }
    }

    fn status(kind: ReplyKind, size: u64) -> Self {
        ReplyClass { kind: Some(kind), size, error: Cow::Borrowed(""), cursor: None }
    }
}

/// The class of an error document: a reply that failed, a write error, or a write concern error.
fn error_class(document: &[u8]) -> ReplyClass<'_> {
    let (mut name, mut code) = (None, 0);
    for element in bson::read_elements(document).into_iter().flatten().map_while(Result::ok) {
        match element.name {
            b"codeName" => name = element.as_str(),
            b"code" => code = element.as_i64().unwrap_or(0),
            _ => {}
        }
    }
    let error = match name.filter(|name| !name.is_empty()) {
        Some(name) => Cow::Borrowed(name),
        None => Cow::Owned(code.to_string()),
    };
    ReplyClass { kind: None, size: 0, error, cursor: None }
}

/// Cursor and size of a batch; `None` if the document is not that of a cursor.
fn batch_of(cursor: &[u8]) -> Result<Option<(i64, u64)>, NotBson> {
    let (mut number, mut documents) = (0, None);
    for element in bson::read_elements(cursor)? {
        let element = element?;
        match element.name {
            b"id" => number = element.as_i64().unwrap_or(0),
            b"firstBatch" | b"nextBatch" => documents = element.as_document(),
            _ => {}
        }
    }
    let Some(documents) = documents else { return Ok(None) };
    let mut size = 0;
    for document in bson::read_elements(documents)? {
        document?;
        size += 1;
    }
    Ok(Some((number, size)))
}

fn size_of(n: Option<Element<'_>>) -> u64 {
    let n = n.and_then(|n| n.as_i64()).unwrap_or(0);
    u64::try_from(n).unwrap_or(0)
}

/// Looks at the body of a reply.
///
/// # Errors
/// It is no well-formed document.
pub fn classify_reply(reply: &[u8]) -> Result<ReplyClass<'_>, NotBson> {
    let (mut ok, mut n, mut cursor, mut value, mut last) = (None, None, None, None, None);
    let (mut write_errors, mut concern_error) = (None, None);
    for element in bson::read_elements(reply)? {
        let element = element?;
        match element.name {
            b"ok" => ok = Some(element),
            b"n" => n = Some(element),
            b"cursor" => cursor = element.as_document(),
            b"value" => value = Some(element.kind),
            b"lastErrorObject" => last = element.as_document(),
            b"writeErrors" => write_errors = element.as_document(),
            b"writeConcernError" => concern_error = element.as_document(),
            _ => {}
        }
    }
    if !ok.is_some_and(|ok| ok.is_true()) {
        return Ok(error_class(reply));
    }
    let first = write_errors.map(|errors| bson::read_elements(errors).map(|mut all| all.next()));
    if let Some(Some(first)) = first.transpose()? {
        return Ok(error_class(first?.as_document().ok_or(NotBson)?));
    }
    if let Some(concern) = concern_error {
        return Ok(error_class(concern));
    }
    if let Some((number, size)) = cursor.map(batch_of).transpose()?.flatten() {
        return Ok(ReplyClass { cursor: Some(number), ..ReplyClass::status(ReplyKind::Array, size) });
    }
    Ok(match last {
        // `findAndModify`: the document that it found, or nothing.
        Some(_) if value.is_none_or(|found| found == kind::NULL) && !has_changed(last) => {
            ReplyClass::status(ReplyKind::Nil, 0)
        }
        Some(last) => ReplyClass::status(ReplyKind::Status, size_of(bson::find_element(last, "n"))),
        None => ReplyClass::status(ReplyKind::Status, size_of(n)),
    })
}

/// Returns whether a `findAndModify` has changed a document, or made one.
fn has_changed(last: Option<&[u8]>) -> bool {
    size_of(last.and_then(|last| bson::find_element(last, "n"))) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reply(ok: f64, fields: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        bson::build_document(|out| {
            fields(out);
            bson::put_double(out, "ok", ok);
        })
    }

    fn document(fields: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        bson::build_document(fields)
    }

    fn class(bytes: &[u8]) -> (Option<ReplyKind>, u64, String, Option<i64>) {
        let found = classify_reply(bytes).unwrap();
        (found.kind, found.size, found.error.into_owned(), found.cursor)
    }

    fn batch(name: &str, number: i64, documents: usize) -> Vec<u8> {
        reply(1.0, |out| {
            let cursor = document(|out| {
                bson::put_head(out, kind::ARRAY, name);
                let list = bson::open(out);
                for at in 0..documents {
                    bson::put_document(out, &at.to_string(), &document(|_| {}));
                }
                bson::close(out, list);
                bson::put_int64(out, "id", number);
                bson::put_string(out, "ns", "shop.items");
            });
            bson::put_document(out, "cursor", &cursor);
        })
    }

    #[test]
    fn batches_are_arrays_and_tell_their_cursor() {
        for name in ["firstBatch", "nextBatch"] {
            assert_eq!(
                class(&batch(name, 77, 3)),
                (Some(ReplyKind::Array), 3, String::new(), Some(77)),
                "{name}"
            );
        }
        assert_eq!(class(&batch("firstBatch", 0, 0)), (Some(ReplyKind::Array), 0, String::new(), Some(0)));
        // `explain` and the like have a field of this name that is no batch.
        let other = reply(1.0, |out| bson::put_document(out, "cursor", &document(|_| {})));
        assert_eq!(class(&other), (Some(ReplyKind::Status), 0, String::new(), None));
    }

    #[test]
    fn anything_else_that_was_done_is_a_status() {
        let status = |size| (Some(ReplyKind::Status), size, String::new(), None);
        assert_eq!(class(&reply(1.0, |out| bson::put_int32(out, "n", 5))), status(5));
        assert_eq!(class(&reply(1.0, |_| {})), status(0));
        assert_eq!(class(&reply(1.0, |out| bson::put_int64(out, "n", -5))), status(0));
        // No write has failed.
        let none = reply(1.0, |out| {
            bson::put_head(out, kind::ARRAY, "writeErrors");
            let list = bson::open(out);
            bson::close(out, list);
            bson::put_int32(out, "n", 2);
        });
        assert_eq!(class(&none), status(2));
        let found = |n: i32, is_there: bool| {
            reply(1.0, |out| {
                bson::put_document(out, "lastErrorObject", &document(|out| bson::put_int32(out, "n", n)));
                match is_there {
                    true => bson::put_document(out, "value", &document(|_| {})),
                    false => bson::put_null(out, "value"),
                }
            })
        };
        assert_eq!(class(&found(1, true)), status(1));
        // What was inserted by it was not there before.
        assert_eq!(class(&found(1, false)), status(1));
        assert_eq!(class(&found(0, false)), (Some(ReplyKind::Nil), 0, String::new(), None));
    }

    #[test]
    fn errors_have_the_name_of_their_code_or_its_digits() {
        let failed = |class: &str| (None, 0, class.to_owned(), None);
        let error = |out: &mut Vec<u8>, code: i32, name: Option<&str>| {
            bson::put_string(out, "errmsg", "no");
            bson::put_int32(out, "code", code);
            if let Some(name) = name {
                bson::put_string(out, "codeName", name);
            }
        };
        assert_eq!(
            class(&reply(0.0, |out| error(out, 59, Some("CommandNotFound")))),
            failed("CommandNotFound")
        );
        assert_eq!(class(&reply(0.0, |out| error(out, 59, None))), failed("59"));
        assert_eq!(class(&reply(0.0, |_| {})), failed("0"));
        let writes = reply(1.0, |out| {
            bson::put_int32(out, "n", 1);
            bson::put_head(out, kind::ARRAY, "writeErrors");
            let list = bson::open(out);
            bson::put_document(out, "0", &document(|out| error(out, 11_000, None)));
            bson::put_document(out, "1", &document(|out| error(out, 5, Some("GraphContainsCycle"))));
            bson::close(out, list);
        });
        assert_eq!(class(&writes), failed("11000"));
        let concern = reply(1.0, |out| {
            bson::put_document(
                out,
                "writeConcernError",
                &document(|out| error(out, 64, Some("WriteConcernFailed"))),
            );
        });
        assert_eq!(class(&concern), failed("WriteConcernFailed"));
    }

    proptest! {
        #[test]
        fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = classify_reply(&bytes);
        }

        #[test]
        fn no_changed_byte_panics(at in 0usize..100, value in any::<u8>()) {
            let mut bytes = batch("firstBatch", 77, 3);
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = classify_reply(&bytes);
        }
    }
}
