//! What the sources may not hold: public items that are named nowhere.

use crate::tidy::{code, files, has_word, is_of_tests, lines_with, none};
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

/// Files whose constants are names of series.
const SERIES: [&str; 2] = ["crates/types/src/database_series.rs", "crates/types/src/mongod/counters.rs"];

/// Name and value of the text that a line makes a constant.
fn text_constant(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("pub const ")?.split_once(": &str = \"")?;
    Some((name, value.strip_suffix("\";")?))
}

/// The code of a source before its tests.
fn production(text: &str) -> String {
    let own = text.split("#[cfg(test)]").next().unwrap_or_default();
    own.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// A series that is renamed where it is made must not silence a rule, a chart or a column.
#[test]
fn names_of_series_have_one_home() {
    let sources: Vec<(String, String)> = files(&["rs"])
        .into_iter()
        .filter(|(path, _)| path.contains("/src/") && !is_of_tests(path))
        .map(|(path, text)| (path, production(&text)))
        .collect();
    let makes = |path: &str| {
        path.starts_with("crates/db-") || path.starts_with("crates/monitor/") || path == SERIES[1]
    };
    let made: Vec<_> = sources.iter().filter(|(path, _)| makes(path)).collect();
    let reads = |path: &str| !makes(path) && !path.starts_with("crates/types/");
    let mut found = Vec::new();
    let mut values = Vec::new();
    for file in SERIES {
        let text = &sources.iter().find(|(path, _)| path == file).expect("a file of names").1;
        for (name, value) in text.lines().filter_map(text_constant) {
            let uses = |text: &str| text.lines().filter(|line| has_word(line, name)).count();
            // The constant itself, and the row of the table that makes it.
            let is_made = made.iter().any(|(path, text)| uses(text) > usize::from(path == file));
            let is_read = sources.iter().any(|(path, text)| reads(path) && uses(text) > 0);
            if !is_made || !is_read {
                found.push(format!("{file}: {name}: made: {is_made}, read: {is_read}"));
            }
            values.push(value);
        }
    }
    assert!(values.len() > 30, "the constants are found");
    // A value with a dot is no word of another kind. Queries of Grafana are looked at below.
    let is_literal = |line: &str| {
        let value = values.iter().find(|value| value.contains('.') && line.contains(&format!("\"{value}\"")));
        value.map(|value| format!("{value} as a literal: name the constant"))
    };
    let elsewhere = ["crates/report/src/grafana/", "crates/bench/"];
    let may = |path: &str| SERIES.contains(&path) || elsewhere.iter().any(|part| path.starts_with(part));
    let literals: Vec<_> = sources.iter().filter(|(path, _)| !may(path)).cloned().collect();
    found.extend(lines_with(&literals, |_, line| is_literal(line)));
    // Queries of Grafana are texts, whose series are made under that name.
    let queries = sources.iter().filter(|(path, _)| path.starts_with("crates/report/src/grafana/"));
    for (path, text) in queries {
        for series in text.split("series=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
            let literal = format!("\"{series}\"");
            if !values.contains(&series) && !made.iter().any(|(_, text)| text.contains(&literal)) {
                found.push(format!("{path}: {series}: made by no monitor"));
            }
        }
    }
    none("names of series", &found);
}

/// Texts that are called `words`: the lines that bind one.
fn texts_called_words(sources: &[(String, String)]) -> Vec<String> {
    let name = concat!("wo", "rds");
    let texts = ["&str", "&'static str", "String", "impl Into<String>"];
    let bound = texts.map(|kind| format!("{name}: {kind}"));
    let made = [format!("let {name} = format!("), format!("let {name} = \"")];
    lines_with(sources, |_, line| bound.iter().chain(&made).find(|text| has_start(code(line), text)).cloned())
}

/// Returns whether a line holds `text`, and not in a longer name.
fn has_start(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Words are those of a command line; a text is a message, an output, a line.
#[test]
fn no_text_is_called_words() {
    let made = |text: &str| texts_called_words(&[("a.rs".to_owned(), text.to_owned())]).len();
    let name = concat!("wo", "rds");
    assert_eq!(made(&format!("fn f({name}: &str) {{}}\nlet {name} = format!(\"a\");")), 2);
    assert_eq!(made(&format!("fn f({name}: &[&str]) {{}}\nlet pass{name}: String;")), 0);
    none("a text is named for what it is: message, output, line, text", &texts_called_words(&files(&["rs"])));
}
