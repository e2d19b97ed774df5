//! Replies into outcomes. Nothing is copied; lengths are believed as far as the reply reaches.

use super::errors::{ServerError, classify_code, describe_error, is_ok};
use super::exchange::MongoExchange;
use super::recorded_reply::classify_reply;
use dyno_types::bson::{self, Element, NotBson, kind};
use dyno_types::document::Action;
use dyno_types::{Content, Outcome, Then, Verb};

/// The parts of a reply that matter.
#[derive(Default)]
struct Parts<'a> {
    ok: Option<Element<'a>>,
    n: Option<i64>,
    cursor: Option<&'a [u8]>,
    values: Option<&'a [u8]>,
    value: Option<Element<'a>>,
    write_errors: Option<&'a [u8]>,
    concern_error: Option<&'a [u8]>,
    upserted: bool,
}

fn parts(reply: &[u8]) -> Result<Parts<'_>, NotBson> {
    let mut found = Parts::default();
    for element in bson::read_elements(reply)? {
        let element = element?;
        match element.name {
            b"ok" => found.ok = Some(element),
            b"n" => found.n = element.as_i64(),
            b"cursor" => found.cursor = element.as_document(),
            b"values" => found.values = element.as_document(),
            b"value" => found.value = Some(element),
            b"writeErrors" => found.write_errors = element.as_document(),
            b"writeConcernError" => found.concern_error = element.as_document(),
            b"upserted" => found.upserted = true,
            _ => {}
        }
    }
    Ok(found)
}

/// Takes a reply and returns what it means for its exchange. `error` receives the server's words where it failed.
pub(super) fn take(
    content: &dyn Content,
    x: &mut MongoExchange,
    command: u32,
    reply: &[u8],
    error: &mut String,
) -> Result<Then, NotBson> {
    let parts = parts(reply)?;
    if !is_ok(parts.ok) {
        return Ok(Then::Finish(fail(reply, error)));
    }
    if let Some(errors) = parts.write_errors {
        return write_errors(x, errors, records_of(parts.n), error).map(Then::Finish);
    }
    if let Some(concern) = parts.concern_error {
        return Ok(Then::Finish(fail(concern, error)));
    }
    let one = Ok(Then::Finish(Outcome::Ok));
    let n = records_of(parts.n);
    let found = |there: bool| Ok(Then::Finish(if there { Outcome::Ok } else { Outcome::NotFound }));
    match x.request.verb {
        Verb::Command | Verb::Recorded | Verb::Topology => one,
        Verb::Insert => {
            x.records = x.records.saturating_add(n);
            one
        }
        Verb::Update | Verb::Delete => {
            x.records = x.records.saturating_add(n);
            found(n > 0 || parts.upserted)
        }
        Verb::Read | Verb::Scan => cursor(content, x, command, &parts),
        Verb::Document => match &content.shapes()[usize::from(x.request.shape)].action {
            Action::Insert { .. } => {
                x.records = x.records.saturating_add(n);
                one
            }
            action @ (Action::Update { .. } | Action::Delete { .. }) => {
                x.records = x.records.saturating_add(n);
                found(n > 0 || parts.upserted || !action.means_one())
            }
            Action::FindAndModify { .. } => {
                let there = parts.value.is_some_and(|v| v.kind != kind::NULL);
                x.records = u32::from(there);
                found(there || parts.upserted)
            }
            Action::Distinct { .. } => {
                x.records = count(parts.values.ok_or(NotBson)?)?;
                one
            }
            Action::Commit | Action::Abort => one,
            // Of other cursors the first batch is enough.
            Action::Command { name, .. }
                if parts.cursor.is_some() && ["aggregate", "find"].contains(&name.as_str()) =>
            {
                cursor(content, x, command, &parts)
            }
            Action::Command { changes, .. } => {
                let value = parts.value.is_some_and(|value| value.kind != kind::NULL);
                x.records = match parts.values {
                    Some(values) => count(values)?,
                    None if value => 1,
                    None if *changes => n,
                    None => 0,
                };
                one
            }
            Action::Find { .. } | Action::Sum { .. } | Action::Aggregate { .. } => {
                cursor(content, x, command, &parts)
            }
        },
    }
}

/// The number of records that a server says it has written: any number, of a server that cannot be trusted.
fn records_of(n: Option<i64>) -> u32 {
    u32::try_from(n.unwrap_or(0).max(0)).unwrap_or(u32::MAX)
}

/// Returns whether a command was carried out as a whole: of its statements some may have failed all the same.
pub(super) fn is_done(reply: &[u8]) -> bool {
    is_ok(bson::find_element(reply, "ok")) && bson::find_element(reply, "writeConcernError").is_none()
}

/// Takes the reply to a command that was recorded, which is compared with that of then, and returns the outcome of its exchange.
/// An error as it was then is no failure.
pub(super) fn take_recorded(
    content: &dyn Content,
    x: &mut MongoExchange,
    reply: &[u8],
    error: &mut String,
) -> Result<Outcome, NotBson> {
    let class = classify_reply(reply)?;
    if let Some(cursor) = class.cursor {
        content.recorded_cursor(&x.request, cursor);
    }
    let as_then = content.compare_reply(&x.request, &class.as_facts());
    (x.answered, x.records) = (true, u32::try_from(class.size).unwrap_or(u32::MAX));
    Ok(if as_then || class.kind.is_some() { Outcome::Ok } else { recorded_failure(reply, error) })
}

/// The outcome of a recorded command that failed as a whole, in a statement, or in its write concern.
fn recorded_failure(reply: &[u8], error: &mut String) -> Outcome {
    let is_ok = is_ok(bson::find_element(reply, "ok"));
    let within = |name: &str| bson::find_element(reply, name).and_then(|found| found.as_document());
    let of_statement = within("writeErrors").and_then(|all| bson::find_element(all, "0")?.as_document());
    match of_statement.or_else(|| within("writeConcernError")).filter(|_| is_ok) {
        Some(own) => fail(own, error),
        None => fail(reply, error),
    }
}

pub(super) fn fail(document: &[u8], error: &mut String) -> Outcome {
    let ServerError { code, text, .. } = describe_error(document);
    error.clear();
    error.extend(text.chars().take(400));
    classify_code(code)
}

/// Some statements of a bulk have failed. The outcome is that of the first; a batch keeps one for each.
fn write_errors(
    x: &mut MongoExchange,
    errors: &[u8],
    n: u32,
    error: &mut String,
) -> Result<Outcome, NotBson> {
    let mut first = Outcome::ServerError;
    x.records = x.records.saturating_add(n);
    for (number, element) in bson::read_elements(errors)?.enumerate() {
        let document = element?.as_document().ok_or(NotBson)?;
        let outcome = if number == 0 {
            first = fail(document, error);
            first
        } else {
            classify_code(describe_error(document).code)
        };
        let index = bson::find_element(document, "index").and_then(|e| e.as_i64()).ok_or(NotBson)?;
        let index = u32::try_from(index).map_err(|_| NotBson)?;
        x.failed.push((x.part.0.saturating_add(index), outcome));
    }
    Ok(first)
}

fn count(array: &[u8]) -> Result<u32, NotBson> {
    let mut n = 0;
    for element in bson::read_elements(array)? {
        element?;
        n += 1;
    }
    Ok(n)
}

/// A batch of documents: counted, verified where the content can, and the next one asked for.
fn cursor(
    content: &dyn Content,
    x: &mut MongoExchange,
    command: u32,
    parts: &Parts<'_>,
) -> Result<Then, NotBson> {
    let (mut id, mut batch) = (0, None);
    for element in bson::read_elements(parts.cursor.ok_or(NotBson)?)? {
        let element = element?;
        match element.name {
            b"id" => id = element.as_i64().ok_or(NotBson)?,
            b"firstBatch" | b"nextBatch" => batch = element.as_document(),
            _ => {}
        }
    }
    let verb = x.request.verb;
    let verify = content.verifies() && verb == Verb::Read;
    let watched = verb == Verb::Scan && content.watches_scans();
    for element in bson::read_elements(batch.ok_or(NotBson)?)? {
        let document = element?.as_document().ok_or(NotBson)?;
        if verify || watched {
            look(content, x, document, watched)?;
        }
        x.records += 1;
    }
    if id != 0 {
        x.cursor = id;
        return Ok(Then::Send { first: command + 1, count: 1 });
    }
    let must_find = match verb {
        Verb::Document => content.shapes()[usize::from(x.request.shape)].action.means_one(),
        _ => verb == Verb::Read,
    };
    Ok(Then::Finish(if must_find && x.records == 0 { Outcome::NotFound } else { Outcome::Ok }))
}

/// Shows a document's fields to the content.
fn look(content: &dyn Content, x: &mut MongoExchange, document: &[u8], watched: bool) -> Result<(), NotBson> {
    let (mut good, mut fields) = (true, 0);
    for element in bson::read_elements(document)? {
        let element = element?;
        if element.name == b"_id" {
            continue;
        }
        fields += 1;
        let value = element.as_bytes().or_else(|| element.as_str().map(str::as_bytes)).unwrap_or_default();
        if watched {
            content.scanned(x.records, element.name, value);
        } else {
            good &= content.verify(&x.request, element.name, value);
        }
    }
    if !watched {
        // A field that is missing holds nothing right.
        good &= fields >= content.fields(&x.request).max(1);
        x.verified = Some(if good { Outcome::Ok } else { Outcome::Mismatch });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_say_any_number() {
        let said = [None, Some(-5), Some(7), Some(1 << 40), Some(i64::MAX)];
        assert_eq!(said.map(records_of), [0, 0, 7, u32::MAX, u32::MAX]);
    }
}
