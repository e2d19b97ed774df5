//! Changes of a document: operators on single fields, fields set together, replacement.
//!
//! A change renders a new document from the old one. As in MongoDB, `_id` never changes, a number grows into a wider
//! type where it must, and a path leads into documents and, by a number, into arrays.

use super::RequestError;
use dyno_types::bson::{self, Element, kind};
use dyno_types::document::Modify;

/// Change of the element at a path.
#[derive(Clone, Copy)]
pub(super) struct Edit<'a> {
    pub(super) modify: Modify,
    pub(super) path: &'a str,
    /// The operand.
    pub(super) value: Element<'a>,
}

/// Items that an array may be filled up to by setting one beyond its end.
const FILL: u32 = 1_500_000;

/// Appends `document` changed by `edit`.
pub(super) fn apply(document: &[u8], edit: &Edit<'_>, out: &mut Vec<u8>) -> Result<(), RequestError> {
    if edit.path == "_id" || edit.path.starts_with("_id.") {
        return match bson::find_element(document, "_id") {
            Some(id) if edit.path == "_id" && (id.kind, id.value) == (edit.value.kind, edit.value.value) => {
                out.extend_from_slice(document);
                Ok(())
            }
            _ => Err(RequestError::ChangesId),
        };
    }
    walk(document, edit.path, false, edit, out)
}

/// Appends an element under another name.
pub(super) fn element(out: &mut Vec<u8>, name: &[u8], from: &Element<'_>) {
    out.push(from.kind);
    out.extend_from_slice(name);
    out.push(0);
    out.extend_from_slice(from.value);
}

fn walk(
    document: &[u8],
    path: &str,
    array: bool,
    edit: &Edit<'_>,
    out: &mut Vec<u8>,
) -> Result<(), RequestError> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let at = bson::open(out);
    let (mut found, mut items) = (false, 0);
    for member in bson::read_elements(document)? {
        let member = member?;
        items += 1;
        if found || member.name != name.as_bytes() {
            element(out, member.name, &member);
            continue;
        }
        found = true;
        match rest {
            None => one(Some(&member), name, array, edit, out)?,
            Some(rest) => match member.as_document() {
                Some(inner) => {
                    bson::put_head(out, member.kind, name);
                    walk(inner, rest, member.kind == kind::ARRAY, edit, out)?;
                }
                None if edit.modify == Modify::Unset => element(out, member.name, &member),
                None => return Err(RequestError::HoldsNoFields { name: name.into(), rest: rest.into() }),
            },
        }
    }
    if !found && edit.modify != Modify::Unset {
        if array {
            fill(name, items, out)?;
        }
        match rest {
            None => one(None, name, array, edit, out)?,
            Some(rest) => {
                bson::put_head(out, kind::DOCUMENT, name);
                walk(&[5, 0, 0, 0, 0], rest, false, edit, out)?;
            }
        }
    }
    bson::close(out, at);
    Ok(())
}

/// Appends nulls up to the item called `name`.
fn fill(name: &str, items: u32, out: &mut Vec<u8>) -> Result<(), RequestError> {
    let number: u32 = name.parse().map_err(|_| RequestError::NamedItem(name.into()))?;
    if number.saturating_sub(items) > FILL {
        return Err(RequestError::BeyondArray(number));
    }
    (items..number).for_each(|item| bson::put_item_head(out, kind::NULL, item));
    Ok(())
}

fn one(
    old: Option<&Element<'_>>,
    name: &str,
    array: bool,
    edit: &Edit<'_>,
    out: &mut Vec<u8>,
) -> Result<(), RequestError> {
    match (edit.modify, old) {
        (Modify::Set, _) | (Modify::Increment, None) => {
            if edit.modify == Modify::Increment && !is_number(&edit.value) {
                return Err(RequestError::AddsNoNumber);
            }
            element(out, name.as_bytes(), &edit.value);
        }
        (Modify::Increment, Some(old)) => add(old, &edit.value, name, out)?,
        (Modify::Push, None) => {
            bson::put_head(out, kind::ARRAY, name);
            push(&[5, 0, 0, 0, 0], &edit.value, out)?;
        }
        (Modify::Push, Some(old)) if old.kind == kind::ARRAY => {
            bson::put_head(out, kind::ARRAY, name);
            push(old.value, &edit.value, out)?;
        }
        (Modify::Push, Some(_)) => return Err(RequestError::NoArray(name.into())),
        // An item of an array leaves a null, so that the others keep their numbers.
        (Modify::Unset, _) if array => bson::put_null(out, name),
        (Modify::Unset, _) => {}
    }
    Ok(())
}

fn push(array: &[u8], value: &Element<'_>, out: &mut Vec<u8>) -> Result<(), RequestError> {
    let at = bson::open(out);
    let items = bson::read_elements(array)?.count() as u32;
    out.extend_from_slice(&array[4..array.len() - 1]);
    bson::put_item_head(out, value.kind, items);
    out.extend_from_slice(value.value);
    bson::close(out, at);
    Ok(())
}

pub(super) fn is_number(element: &Element<'_>) -> bool {
    matches!(element.kind, kind::INT32 | kind::INT64 | kind::DOUBLE)
}

fn add(old: &Element<'_>, by: &Element<'_>, name: &str, out: &mut Vec<u8>) -> Result<(), RequestError> {
    if !is_number(old) || !is_number(by) {
        return Err(RequestError::AddsToNoNumber(name.into()));
    }
    if old.kind == kind::DOUBLE || by.kind == kind::DOUBLE {
        bson::put_double(out, name, old.as_f64().unwrap_or_default() + by.as_f64().unwrap_or_default());
        return Ok(());
    }
    let (a, b) = (old.as_i64().unwrap_or_default(), by.as_i64().unwrap_or_default());
    let sum = a.checked_add(b).ok_or_else(|| RequestError::Overflow(name.into()))?;
    match i32::try_from(sum) {
        Ok(small) if old.kind == kind::INT32 && by.kind == kind::INT32 => bson::put_int32(out, name, small),
        _ => bson::put_int64(out, name, sum),
    }
    Ok(())
}

/// Appends `document` with each field of `fields` set.
pub(super) fn set_all(document: &[u8], fields: &[u8], out: &mut Vec<u8>) -> Result<(), RequestError> {
    let (mut old, mut new) = (document.to_vec(), Vec::new());
    for value in bson::read_elements(fields)? {
        let value = value?;
        let path = std::str::from_utf8(value.name)?;
        new.clear();
        apply(&old, &Edit { modify: Modify::Set, path, value }, &mut new)?;
        std::mem::swap(&mut old, &mut new);
    }
    out.extend_from_slice(&old);
    Ok(())
}

/// Appends `by` as the document that takes the place of `document`: the `_id` stays, and comes first.
pub(super) fn replace(document: &[u8], by: &[u8], out: &mut Vec<u8>) -> Result<(), RequestError> {
    let (old, new) = (bson::find_element(document, "_id"), bson::find_element(by, "_id"));
    match (&old, &new) {
        (Some(old), Some(new)) if (old.kind, old.value) != (new.kind, new.value) => {
            return Err(RequestError::ChangesId);
        }
        _ => {}
    }
    let at = bson::open(out);
    if let Some(id) = old.or(new) {
        element(out, b"_id", &id);
    }
    for value in bson::read_elements(by)? {
        let value = value?;
        if value.name != b"_id" {
            element(out, value.name, &value);
        }
    }
    bson::close(out, at);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        let at = bson::open(&mut out);
        write(&mut out);
        bson::close(&mut out, at);
        out
    }

    fn sample() -> Vec<u8> {
        document(|out| {
            bson::put_int32(out, "_id", 1);
            bson::put_int32(out, "n", i32::MAX);
            bson::put_head(out, kind::ARRAY, "arr");
            let arr = bson::open(out);
            bson::put_item_head(out, kind::INT32, 0);
            out.extend_from_slice(&3i32.to_le_bytes());
            bson::close(out, arr);
            bson::put_string(out, "s", "text");
        })
    }

    fn changed(
        modify: Modify,
        path: &str,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<u8>, RequestError> {
        let operand = document(write);
        let value = bson::find_element(&operand, "v").unwrap();
        let mut out = Vec::new();
        apply(&sample(), &Edit { modify, path, value }, &mut out)?;
        bson::check(&out).unwrap();
        Ok(out)
    }

    #[test]
    fn numbers_grow_where_they_must() {
        let wide = changed(Modify::Increment, "n", |out| bson::put_int32(out, "v", 1)).unwrap();
        let n = bson::find_element(&wide, "n").unwrap();
        assert_eq!((n.kind, n.as_i64()), (kind::INT64, Some(i64::from(i32::MAX) + 1)));
        let same = changed(Modify::Increment, "n", |out| bson::put_int32(out, "v", -1)).unwrap();
        assert_eq!(bson::find_element(&same, "n").unwrap().kind, kind::INT32);
        let double = changed(Modify::Increment, "n", |out| bson::put_double(out, "v", 0.5)).unwrap();
        assert_eq!(bson::find_element(&double, "n").unwrap().as_f64(), Some(2_147_483_647.5));
        let item = changed(Modify::Increment, "arr.0", |out| bson::put_int32(out, "v", 1)).unwrap();
        assert_eq!(bson::element_at_path(&item, "arr.0").unwrap().as_i64(), Some(4));
        let fresh = changed(Modify::Increment, "new.deep", |out| bson::put_int64(out, "v", 9)).unwrap();
        assert_eq!(bson::element_at_path(&fresh, "new.deep").unwrap().as_i64(), Some(9));
        assert!(changed(Modify::Increment, "s", |out| bson::put_int32(out, "v", 1)).is_err());
        assert!(changed(Modify::Increment, "n", |out| bson::put_int64(out, "v", i64::MAX)).is_err());
    }

    #[test]
    fn fields_are_set_pushed_and_removed() {
        let set = changed(Modify::Set, "arr.3", |out| bson::put_int32(out, "v", 7)).unwrap();
        assert_eq!(bson::element_at_path(&set, "arr.3").unwrap().as_i64(), Some(7));
        assert_eq!(bson::element_at_path(&set, "arr.2").unwrap().kind, kind::NULL);
        assert!(changed(Modify::Set, "arr.x", |out| bson::put_int32(out, "v", 7)).is_err());
        assert!(changed(Modify::Set, "s.t", |out| bson::put_int32(out, "v", 7)).is_err());
        let pushed = changed(Modify::Push, "arr", |out| bson::put_string(out, "v", "x")).unwrap();
        assert_eq!(bson::element_at_path(&pushed, "arr.1").unwrap().as_str(), Some("x"));
        assert!(changed(Modify::Push, "s", |out| bson::put_int32(out, "v", 7)).is_err());
        let gone = changed(Modify::Unset, "s", |out| bson::put_null(out, "v")).unwrap();
        assert!(bson::find_element(&gone, "s").is_none());
        assert_eq!(changed(Modify::Unset, "x.y", |out| bson::put_null(out, "v")).unwrap(), sample());
        assert!(changed(Modify::Set, "_id", |out| bson::put_int32(out, "v", 2)).is_err());
        assert_eq!(changed(Modify::Set, "_id", |out| bson::put_int32(out, "v", 1)).unwrap(), sample());
    }

    #[test]
    fn a_replacement_keeps_the_id() {
        let mut out = Vec::new();
        replace(&sample(), &document(|out| bson::put_int32(out, "z", 5)), &mut out).unwrap();
        assert_eq!(bson::find_element(&out, "_id").unwrap().as_i64(), Some(1));
        assert_eq!(bson::read_elements(&out).unwrap().count(), 2);
        let other = document(|out| bson::put_int32(out, "_id", 5));
        assert!(replace(&sample(), &other, &mut Vec::new()).is_err());
    }
}
