//! What the sources may not hold: public items that are named nowhere.

use crate::tidy::{code, files, is_of_tests, none};
use std::collections::BTreeMap;

/// Public items that nothing names, and why they stay.
const UNNAMED: [(&str, &str); 1] = [
    // The wire protocol's flag: dyno sets it in no message and reads it in none.
    ("crates/db-mongodb/src/protocol/message.rs", "MORE_TO_COME"),
];

/// The name of the public item that a line defines.
fn public_item(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let kinds = ["const fn ", "const ", "static ", "fn ", "struct ", "enum ", "trait ", "type "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().filter(|name| !name.is_empty())
}

/// How often each word stands in the code, without comments.
fn count_words(sources: &[(String, String)]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for line in sources.iter().flat_map(|(_, text)| text.lines()) {
        for word in code(line).split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            *counts.entry(word).or_default() += 1;
        }
    }
    counts
}

/// Public items whose name stands nowhere else in `sources`, tests among them.
fn unnamed_items(sources: &[(String, String)]) -> Vec<String> {
    let counts = count_words(sources);
    let mut found = Vec::new();
    for (path, text) in sources.iter().filter(|(path, _)| path.contains("/src/") && !is_of_tests(path)) {
        for (i, line) in text.lines().enumerate() {
            let name = public_item(line).filter(|name| counts.get(name) == Some(&1));
            let name = name.filter(|name| !UNNAMED.contains(&(path.as_str(), *name)));
            found.extend(name.map(|name| format!("{path}:{}: {name}", i + 1)));
        }
    }
    found
}

/// Refusals without the option, key or file that a change of would help.
fn refusals_without_place(sources: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in sources {
        for call in ["Refused::new(", "refuse("] {
            for (at, _) in text.match_indices(call) {
                let end = at + call.len();
                let arguments = text[end..].trim_start();
                let place = match call {
                    "Refused::new(" => arguments.split_once(',').map_or("", |(_, rest)| rest.trim_start()),
                    _ => arguments,
                };
                if place.starts_with("\"\"") {
                    found.push(format!("{path}:{}", text[..at].lines().count()));
                }
            }
        }
    }
    found
}

#[test]
fn every_refusal_has_a_place() {
    let made = |text: &str| refusals_without_place(&[("a.rs".to_owned(), text.to_owned())]).len();
    let empty = concat!("\"", "\"");
    assert_eq!(made(&format!("Refused::new(\n    RefusalCode::Limit,\n    {empty},\n    text)")), 1);
    assert_eq!(made(&format!("return refuse({empty}, \"no\");")), 1);
    assert_eq!(made("Refused::new(RefusalCode::Limit, \"users\", text)"), 0);
    none("a refusal names the option, key or file that a change of would help", &{
        let mut sources = files(&["rs"]);
        sources.retain(|(path, _)| !path.starts_with("crates/cli/tests/it/tidy"));
        refusals_without_place(&sources)
    });
}

/// The compiler warns of private items alone, and of public ones in no crate.
#[test]
fn every_public_item_is_named_elsewhere() {
    let source = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let made = [
        source("crates/a/src/lib.rs", "pub fn used() {}\npub const LEFT: u8 = 1; // LEFT\n"),
        source("crates/b/tests/it.rs", "used();"),
    ];
    assert_eq!(unnamed_items(&made), ["crates/a/src/lib.rs:2: LEFT"]);
    none("public items that nothing names: remove them", &unnamed_items(&files(&["rs"])));
}
