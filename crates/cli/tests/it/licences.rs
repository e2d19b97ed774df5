//! Licences of everything that dyno is built from, against a list.

use cargo_metadata::MetadataCommand;
use std::path::Path;

/// Licences that ask for no more than their text.
const ACCEPTED: [&str; 14] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Whether an SPDX expression can be met by accepted licences alone: one of the alternatives, all of its parts.
fn accepted(expression: &str) -> bool {
    let text = expression.replace(" / ", " OR ").replace('/', " OR ");
    let mut tokens: Vec<String> = Vec::new();
    for word in text.replace('(', " ( ").replace(')', " ) ").split_whitespace() {
        match tokens.last_mut() {
            // An exception belongs to the licence before it.
            Some(last) if word == "WITH" || last.ends_with("WITH") => *last = format!("{last} {word}"),
            _ => tokens.push(word.to_owned()),
        }
    }
    let mut at = 0;
    any(&tokens, &mut at) == Some(true) && at == tokens.len()
}

/// Alternatives; `None` where something is missing.
fn any(tokens: &[String], at: &mut usize) -> Option<bool> {
    let mut met = all(tokens, at)?;
    while tokens.get(*at).is_some_and(|token| token == "OR") {
        *at += 1;
        met |= all(tokens, at)?;
    }
    Some(met)
}

fn all(tokens: &[String], at: &mut usize) -> Option<bool> {
    let mut met = one(tokens, at)?;
    while tokens.get(*at).is_some_and(|token| token == "AND") {
        *at += 1;
        met &= one(tokens, at)?;
    }
    Some(met)
}

fn one(tokens: &[String], at: &mut usize) -> Option<bool> {
    let token = tokens.get(*at)?;
    *at += 1;
    if token != "(" {
        return Some(ACCEPTED.contains(&token.as_str()));
    }
    let met = any(tokens, at)?;
    let closed = tokens.get(*at).is_some_and(|token| token == ")");
    *at += 1;
    closed.then_some(met)
}

#[test]
fn every_licence_is_on_the_list() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let metadata =
        MetadataCommand::new().manifest_path(manifest).other_options(["--locked".to_owned()]).exec().unwrap();
    assert!(metadata.packages.len() > 100);
    let bad: Vec<String> = metadata
        .packages
        .iter()
        .filter(|package| !package.license.as_deref().is_some_and(accepted))
        .map(|package| format!("{} {}: {:?}", package.name, package.version, package.license))
        .collect();
    assert!(bad.is_empty(), "not on the list: {bad:#?}");
}

#[test]
fn expressions_are_read_as_they_are_meant() {
    for good in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-2.0-only OR Apache-2.0",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
    ] {
        assert!(accepted(good), "{good}");
    }
    for bad in
        ["GPL-3.0", "MIT AND GPL-3.0", "AGPL-3.0 OR SSPL-1.0", "(MIT AND LGPL-2.1)", "", "MIT OR", "MIT )"]
    {
        assert!(!accepted(bad), "{bad}");
    }
}
