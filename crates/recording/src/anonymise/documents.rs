//! Commands of MongoDB, with other names and texts in place of those of collections, fields and values.
//!
//! Names of commands, of their options and of operators stay, as do numbers, dates, booleans and the ids of objects; texts,
//! binary values, regular expressions and code are permuted, and so are the names of fields, each step of a path by itself.

use super::permutation::KeyedPermutation;
use dyno_types::bson::{self, Element, kind};

/// Documents of a command that say how it is carried out, and name nothing.
const SETTINGS: [&[u8]; 10] = [
    b"writeConcern",
    b"readConcern",
    b"lsid",
    b"cursor",
    b"collation",
    b"$readPreference",
    b"_openedBy",
    b"storageEngine",
    b"validationLevel",
    b"validationAction",
];

/// Names of options in the documents of a command's lists: statements of `update` and `delete`, indexes of `createIndexes`.
const STATEMENT: [&[u8]; 20] = [
    b"q",
    b"u",
    b"c",
    b"upsert",
    b"multi",
    b"limit",
    b"collation",
    b"arrayFilters",
    b"hint",
    b"key",
    b"name",
    b"unique",
    b"sparse",
    b"expireAfterSeconds",
    b"partialFilterExpression",
    b"background",
    b"ns",
    b"v",
    b"sort",
    b"weights",
];

/// Commands whose lists hold such documents.
const WITH_STATEMENTS: [&[u8]; 3] = [b"updates", b"deletes", b"indexes"];

/// Deepest nesting that is changed; MongoDB takes 200.
const DEPTH: u32 = 200;

/// What the names of a document's fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// Those of a command.
    Command,
    /// Those of a statement.
    Statement,
    /// A user's own.
    Own,
}

/// The body of a command with other names and texts; `None` where it is no document.
pub(super) fn change_body(body: &[u8], permutation: &mut KeyedPermutation) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(body.len());
    change_document(body, Names::Command, permutation, &mut out, 0)?;
    Some(out)
}

/// A name of a collection or of a database.
pub(super) fn change_name(name: &[u8], permutation: &mut KeyedPermutation) -> Vec<u8> {
    match name {
        b"admin" | b"config" | b"local" => name.to_vec(),
        // Of system collections it says what they are.
        _ if name.starts_with(b"system.") => name.to_vec(),
        _ => permute_plain(name, permutation),
    }
}

/// A word without characters that mean something in names of collections, paths and databases.
fn permute_plain(word: &[u8], permutation: &mut KeyedPermutation) -> Vec<u8> {
    // Databases take none of these: hexadecimal digits of a keyed number do for every word.
    let mut out = Vec::with_capacity(word.len());
    let mut state = permutation.number_of(word);
    while out.len() < word.len().max(12) {
        out.extend_from_slice(format!("{state:016x}").as_bytes());
        state = permutation.number_of(&state.to_le_bytes());
    }
    out.truncate(word.len().max(12));
    // A step of a path that is a number would be the place of a list's item.
    out[0] = b'f';
    out
}

/// A path of names with dots between them: operators and places in lists stay.
fn change_path(path: &[u8], permutation: &mut KeyedPermutation, out: &mut Vec<u8>) {
    for (number, step) in path.split(|byte| *byte == b'.').enumerate() {
        if number > 0 {
            out.push(b'.');
        }
        let is_place = step.iter().all(u8::is_ascii_digit);
        match step {
            b"_id" => out.extend_from_slice(step),
            _ if is_place || step.starts_with(b"$") => out.extend_from_slice(step),
            _ => out.extend_from_slice(&permute_plain(step, permutation)),
        }
    }
}

/// A text: a path behind `$` stays one.
fn change_text(text: &[u8], permutation: &mut KeyedPermutation, out: &mut Vec<u8>) {
    match text {
        [b'$', b'$', ..] | [] => out.extend_from_slice(text),
        [b'$', rest @ ..] => {
            out.push(b'$');
            change_path(rest, permutation, out);
        }
        _ => {
            let made = permutation.permute(text);
            // BSON's texts are UTF-8.
            match std::str::from_utf8(&made) {
                Ok(_) => out.extend_from_slice(&made),
                Err(_) => out.extend_from_slice(&permute_plain(text, permutation)),
            }
        }
    }
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as i32 + 1).to_le_bytes());
    out.extend_from_slice(text);
    out.push(0);
}

fn change_document(
    document: &[u8],
    names: Names,
    permutation: &mut KeyedPermutation,
    out: &mut Vec<u8>,
    depth: u32,
) -> Option<()> {
    if depth > DEPTH {
        return None;
    }
    let at = bson::open(out);
    for (number, element) in bson::read_elements(document).ok()?.enumerate() {
        let element = element.ok()?;
        let stays = match names {
            Names::Command => true,
            Names::Statement => STATEMENT.contains(&element.name),
            Names::Own => false,
        };
        out.push(element.kind);
        match stays {
            true => out.extend_from_slice(element.name),
            false => change_path(element.name, permutation, out),
        }
        out.push(0);
        let is_command = names == Names::Command;
        if is_command && SETTINGS.contains(&element.name) {
            out.extend_from_slice(element.value);
        } else if is_command && element.kind == kind::STRING && (number == 0 || element.name == b"collection")
        {
            // The collection that a command is on.
            put_text(&change_name(element.as_str()?.as_bytes(), permutation), out);
        } else {
            let of_list = match is_command && WITH_STATEMENTS.contains(&element.name) {
                true => Names::Statement,
                false => Names::Own,
            };
            change_value(&element, of_list, permutation, out, depth)?;
        }
    }
    bson::close(out, at);
    Some(())
}

fn change_value(
    element: &Element<'_>,
    names: Names,
    permutation: &mut KeyedPermutation,
    out: &mut Vec<u8>,
    depth: u32,
) -> Option<()> {
    match element.kind {
        kind::DOCUMENT => change_document(element.value, names, permutation, out, depth + 1)?,
        kind::ARRAY => {
            let at = bson::open(out);
            for item in bson::read_elements(element.value).ok()? {
                let item = item.ok()?;
                out.push(item.kind);
                // Names of items are their places.
                out.extend_from_slice(item.name);
                out.push(0);
                change_value(&item, names, permutation, out, depth + 1)?;
            }
            bson::close(out, at);
        }
        kind::STRING => {
            let mut text = Vec::new();
            change_text(element.as_str()?.as_bytes(), permutation, &mut text);
            put_text(&text, out);
        }
        kind::BINARY => {
            let (head, bytes) = element.value.split_at_checked(5)?;
            out.extend_from_slice(head);
            out.extend_from_slice(&permutation.permute(bytes));
        }
        kind::REGEX => {
            let end = element.value.iter().position(|byte| *byte == 0)?;
            out.extend_from_slice(&permute_plain(&element.value[..end], permutation));
            out.extend_from_slice(&element.value[end..]);
        }
        CODE | SYMBOL => {
            put_text(&permute_plain(element.value.get(4..)?.strip_suffix(&[0])?, permutation), out)
        }
        // Code with its variables: none of it can be changed and stay what it is.
        CODE_WITH_SCOPE | REFERENCE => return None,
        _ => out.extend_from_slice(element.value),
    }
    Some(())
}

/// Kinds of values with texts that dyno has no other use for.
const REFERENCE: u8 = 0x0c;
const CODE: u8 = 0x0d;
const SYMBOL: u8 = 0x0e;
const CODE_WITH_SCOPE: u8 = 0x0f;

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(bytes: &[u8], text: &str) -> bool {
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    }

    #[test]
    fn names_and_texts_are_changed_and_the_command_is_not() {
        let mut permutation = KeyedPermutation::new(b"a key of sixteen bytes");
        let body = bson::build_document(|out| {
            bson::put_string(out, "update", "customers");
            bson::put_head(out, kind::ARRAY, "updates");
            let list = bson::open(out);
            bson::put_item_head(out, kind::DOCUMENT, 0);
            let statement = bson::open(out);
            bson::put_document(
                out,
                "q",
                &bson::build_document(|out| bson::put_string(out, "address.town", "Lisbon-town")),
            );
            let set = bson::build_document(|out| {
                bson::put_string(out, "familyname", "Almeida-Santos");
                bson::put_int32(out, "age", 40);
                bson::put_binary(out, "portrait", b"a picture of bytes");
            });
            bson::put_document(out, "u", &bson::build_document(|out| bson::put_document(out, "$set", &set)));
            bson::put_boolean(out, "upsert", true);
            bson::close(out, statement);
            bson::close(out, list);
            bson::put_document(
                out,
                "writeConcern",
                &bson::build_document(|out| bson::put_string(out, "w", "majority")),
            );
        });
        let made = change_body(&body, &mut permutation).unwrap();
        bson::check(&made).unwrap();
        for text in
            ["customers", "address", "town", "Lisbon-town", "familyname", "Almeida", "portrait", "picture"]
        {
            assert!(holds(&body, text) && !holds(&made, text), "{text}");
        }
        for text in ["update", "updates", "$set", "upsert", "writeConcern", "majority"] {
            assert!(holds(&made, text), "{text}");
        }
        let statement = bson::find_element(&made, "updates").unwrap();
        let first = bson::read_elements(statement.value).unwrap().next().unwrap().unwrap();
        let set = bson::element_at_path(first.value, "u.$set").unwrap();
        let ages = bson::read_elements(set.value).unwrap().filter_map(|e| e.unwrap().as_i64());
        assert_eq!(ages.collect::<Vec<_>>(), [40]);
    }

    #[test]
    fn the_same_name_is_the_same_everywhere() {
        let mut permutation = KeyedPermutation::new(b"a key of sixteen bytes");
        let mut path = |text: &str| {
            let mut out = Vec::new();
            change_path(text.as_bytes(), &mut permutation, &mut out);
            String::from_utf8(out).unwrap()
        };
        let (whole, step) = (path("items.3.price"), path("price"));
        assert!(
            whole.ends_with(&format!(".3.{step}"))
                && path("_id") == "_id"
                && path("a.$[x]").ends_with(".$[x]")
        );
        let mut text = Vec::new();
        change_text(b"$price", &mut permutation, &mut text);
        assert_eq!(text, format!("${step}").as_bytes());
        assert_eq!(change_name(b"admin", &mut permutation), b"admin");
    }
}
