//! What documents name is there: paths, items of guides, crates of the map.

use crate::tidy::{files, lines_with, none, root, workspace};
use std::collections::BTreeSet;
use std::fs;

/// Paths below `crates/` that a line names.
fn named_paths(line: &str) -> Vec<&str> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || "/_.-".contains(c));
    let begins = line.match_indices("crates/").map(|(at, _)| &line[at..]);
    let paths =
        begins.map(|rest| rest.split(ends).next().unwrap_or_default().trim_end_matches(['.', '-', '/']));
    paths.filter(|path| path.len() > "crates/".len()).collect()
}

/// Names of boxes in the map of the crates; `compat-*` stands for all that begin so.
fn boxes_of_the_map() -> BTreeSet<String> {
    let map = fs::read_to_string(root().join("docs/images/map.svg")).expect("the map");
    let names = map.split("class=\"n\"").skip(1);
    let name = |rest: &str| rest.split_once('>')?.1.split_once('<').map(|(name, _)| name.to_owned());
    names.filter_map(name).collect()
}

#[test]
fn the_map_has_every_crate_and_no_other() {
    let (boxes, crates) = (boxes_of_the_map(), workspace());
    let stands_for = |shown: &str, name: &str| match shown.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => shown == name,
    };
    let gone = boxes.iter().filter(|shown| !crates.keys().any(|name| stands_for(shown, name)));
    none("boxes of docs/images/map.svg without a crate", &gone.cloned().collect::<Vec<_>>());
    let absent =
        crates.keys().filter(|name| *name != "xtask" && !boxes.iter().any(|shown| stands_for(shown, name)));
    none("crates that are not in docs/images/map.svg", &absent.cloned().collect::<Vec<_>>());
}

/// Names with `::` in the code of a line of Markdown, without those of Rust's own library.
fn qualified_names(line: &str) -> Vec<&str> {
    let code = line.split('`').skip(1).step_by(2);
    let ends = |c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c));
    let names = code.flat_map(|code| code.split(ends)).map(|name| name.trim_matches(':'));
    names.filter(|name| name.contains("::") && !name.starts_with("std::") && !name.contains("NAME")).collect()
}

/// Returns whether a file defines `name` and speaks of `owner`, or is its module.
fn defines(path: &str, text: &str, owner: &str, name: &str) -> bool {
    let is_module = path.ends_with(&format!("/{owner}.rs")) || path.contains(&format!("/{owner}/"));
    let keywords = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];
    let begins = |line: &str| {
        let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let named = |rest: &str| rest.strip_prefix(name).is_some_and(is_end);
        // An item; a variant or a field stands first in its line.
        let line = line.trim_start();
        let visible = line.strip_prefix("pub ").unwrap_or(line);
        named(visible)
            || keywords.iter().any(|keyword| {
                visible.split_once(keyword).is_some_and(|(before, rest)| {
                    (before.is_empty() || before.ends_with([' ', ')'])) && named(rest.trim_start())
                })
            })
    };
    (is_module || text.contains(owner)) && text.lines().any(begins)
}

#[test]
fn guides_name_items_that_exist() {
    let sources = files(&["rs"]);
    let mut guides = files(&["md"]);
    guides.retain(|(path, _)| path.starts_with("docs/contributing/"));
    let absent = |_: &str, line: &str| {
        let names = qualified_names(line).into_iter().filter(|name| {
            let (owner, item) = name.rsplit_once("::").unwrap_or_default();
            let owner = owner.rsplit("::").next().unwrap_or_default().trim_start_matches("dyno_");
            !sources.iter().any(|(path, text)| defines(path, text, owner, item))
        });
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| format!("names {}, which is not there", names.join(", ")))
    };
    assert_eq!(qualified_names("`a::b` and `Facts::set(x)`, not std: `std::fs`"), ["a::b", "Facts::set"]);
    assert!(defines("crates/x/src/a.rs", "    pub(crate) fn b(", "a", "b"));
    assert!(!defines("crates/x/src/a.rs", "    pub(crate) fn bc(", "a", "b"));
    none("items that guides name", &lines_with(&guides, absent));
}

#[test]
fn documents_name_paths_that_exist() {
    let is_placeholder = |path: &str| path.contains("NAME");
    let absent = |_: &str, line: &str| {
        let missing =
            named_paths(line).into_iter().find(|path| !is_placeholder(path) && !root().join(path).exists());
        missing.map(|path| format!("{path} is not there"))
    };
    none("documents name paths that exist", &lines_with(&files(&["md"]), absent));
    assert_eq!(
        named_paths("in `crates/db/src/target.rs`: [x](../../crates/no/such.rs)."),
        ["crates/db/src/target.rs", "crates/no/such.rs"]
    );
    assert!(
        absent("", "see crates/no/such.rs").is_some() && absent("", "`crates/db-NAME/NAME.rs`").is_none()
    );
}
