//! What documents name is there: paths, items of guides, crates of the map.

use crate::tidy::{code, files, has_word, is_of_tests, lines_with, none, root, workspace};
use std::collections::BTreeSet;
use std::fs;

/// The code of a line of Markdown: what stands between backticks.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).collect()
}

/// Returns whether a document describes the code: its guides, the architecture and the map.
fn describes_code(path: &str) -> bool {
    path.starts_with("docs/contributing/")
        || ["docs/architecture.md", "docs/map.md", "CONTRIBUTING.md"].contains(&path)
}

/// Paths below `crates/` that a line names.
fn named_paths(line: &str) -> Vec<&str> {
    let ends = |c: char| !(c.is_ascii_alphanumeric() || "/_.-".contains(c));
    let begins = line.match_indices("crates/").map(|(at, _)| &line[at..]);
    let paths =
        begins.map(|rest| rest.split(ends).next().unwrap_or_default().trim_end_matches(['.', '-', '/']));
    paths.filter(|path| path.len() > "crates/".len()).collect()
}

/// Ends of names of files in the tree.
const ENDS: [&str; 9] = [".rs", ".toml", ".svg", ".sh", ".py", ".js", ".yaml", ".yml", ".md"];

/// Files and modules that the code of a line names: `fault.rs`, `scripts/need`, `engine/event_loop`, `sqlite/`.
fn named_files(line: &str) -> Vec<&str> {
    let is_path =
        |span: &&str| span.chars().all(|c| c.is_ascii_alphanumeric() || "/_.-".contains(c)) && span.len() > 2;
    let names = |span: &&str| {
        let is_file = ENDS.iter().any(|end| span.ends_with(end));
        let is_module = span.contains('/') && span.starts_with(|c: char| c.is_ascii_lowercase());
        is_file || is_module
    };
    code_spans(line).into_iter().filter(is_path).filter(names).collect()
}

/// Returns whether `name`, as a document writes it, is a file, a folder or a module of the tree. One that begins with a crate is
/// in that crate; one of a row of the table of crates is in the row's; any other is the end of a path.
fn is_in_tree(name: &str, row: Option<&str>, paths: &BTreeSet<String>, crates: &BTreeSet<String>) -> bool {
    let is_there = |path: &str| {
        let path = path.trim_end_matches('/');
        let module = [format!("{path}.rs"), path.to_owned()];
        module.iter().any(|path| paths.contains(path))
    };
    let (first, rest) = name.split_once('/').unwrap_or((name, ""));
    if let Some(row) = row.filter(|_| name.ends_with('/')) {
        return is_there(&format!("crates/{row}/src/{name}"));
    }
    if crates.contains(first) && !rest.is_empty() {
        return is_there(&format!("crates/{first}/src/{rest}"))
            || is_there(&format!("crates/{name}"))
            || is_there(name);
    }
    let end = format!("/{}", name.trim_end_matches('/'));
    is_there(name) || paths.iter().any(|path| path.ends_with(&end) || path.ends_with(&format!("{end}.rs")))
}

/// Every file and folder of the tree, below its root.
fn paths_of_the_tree() -> BTreeSet<String> {
    let (root, mut found) = (root(), BTreeSet::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            let below = path.strip_prefix(&root).expect("below the root").display().to_string();
            if path.is_dir() && !path.is_symlink() && ![".git", "target"].contains(&below.as_str()) {
                folders.push(path);
            }
            found.insert(below);
        }
    }
    found
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
    let ends = |c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c));
    let names =
        code_spans(line).into_iter().flat_map(|code| code.split(ends)).map(|name| name.trim_matches(':'));
    names.filter(|name| name.contains("::") && !name.starts_with("std::") && !name.contains("NAME")).collect()
}

/// Returns whether `line` defines or names first the item `name`: a function, a type, a module, a variant, a field.
fn begins_item(line: &str, name: &str) -> bool {
    let keywords = ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let named = |rest: &str| rest.strip_prefix(name).is_some_and(is_end);
    let line = line.trim_start();
    let visible = line.strip_prefix("pub ").unwrap_or(line);
    named(visible)
        || keywords.iter().any(|keyword| {
            visible.split_once(keyword).is_some_and(|(before, rest)| {
                (before.is_empty() || before.ends_with([' ', ')'])) && named(rest.trim_start())
            })
        })
}

/// Returns whether a type or trait `owner` has `name`: in its definition or in one of its `impl` blocks.
fn block_defines(text: &str, owner: &str, name: &str) -> bool {
    let opens = |line: &str| {
        let head = line.trim_start();
        let head = head.strip_prefix("pub(crate) ").or(head.strip_prefix("pub ")).unwrap_or(head);
        let is_block = ["impl", "struct ", "enum ", "trait "].iter().any(|kind| head.starts_with(kind));
        is_block && line.ends_with('{') && has_word(head, owner)
    };
    let mut end = None;
    for line in text.lines() {
        match &end {
            None if opens(line) => {
                end = Some(format!("{}}}", &line[..line.len() - line.trim_start().len()]));
            }
            Some(closing) if closing == line => end = None,
            Some(_) if begins_item(line, name) => return true,
            _ => {}
        }
    }
    false
}

/// Returns whether a module defines `name` itself, or passes it on by `pub use`. One that passes on all of another is believed.
fn module_defines(text: &str, name: &str) -> bool {
    let uses = ["pub use ", "pub(crate) use "].into_iter().flat_map(|begin| text.split(begin).skip(1));
    let passed_on = uses.filter_map(|rest| rest.split(';').next());
    let outside = text.lines().filter(|line| !line.starts_with([' ', '}']));
    passed_on.into_iter().any(|list| has_word(list, name) || list.ends_with("::*"))
        || outside.into_iter().any(|line| begins_item(line, name))
}

/// Returns whether the file at `path` is where `qualified` (`Owner::item`, `dyno_crate::module::item`) is defined.
fn defines(path: &str, text: &str, qualified: &str) -> bool {
    let parts: Vec<&str> = qualified.split("::").collect();
    let [modules @ .., owner, name] = parts.as_slice() else { return false };
    let is_below = |module: &&str| {
        let module = module.trim_start_matches("dyno_");
        path.contains(&format!("/{}/", module.replace('_', "-"))) || path.contains(&format!("/{module}"))
    };
    let module = owner.trim_start_matches("dyno_");
    let is_module = path.ends_with(&format!("/{module}.rs"))
        || path.ends_with(&format!("/{module}/mod.rs"))
        || path.ends_with(&format!("crates/{}/src/lib.rs", module.replace('_', "-")));
    modules.iter().all(is_below)
        && (is_module && module_defines(text, name) || block_defines(text, owner, name))
}

/// Pairs of an item and the file that a line says it is in: `NAME` of (or in) `path.rs`. Of a list of items, each.
fn placed_items(line: &str) -> Vec<(&str, &str)> {
    let parts: Vec<&str> = line.split('`').collect();
    let mut found = Vec::new();
    for at in (3..parts.len()).step_by(2) {
        let path = parts[at];
        let is_path = path.ends_with(".rs") && !path.contains("NAME");
        if !is_path || ![" of ", " in ", " of [", " in ["].contains(&parts[at - 1]) {
            continue;
        }
        let mut item = at - 2;
        loop {
            let name = parts[item].split(['(', '{', '!']).next().unwrap_or_default();
            let is_item = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if is_item && name != "NAME" {
                found.push((name, path));
            }
            let goes_on = item >= 3 && [", ", " and "].contains(&parts[item - 1]);
            if !is_item || !goes_on {
                break;
            }
            item -= 2;
        }
    }
    found
}

#[test]
fn guides_name_items_where_they_are() {
    let sources = files(&["rs"]);
    let mut guides = files(&["md"]);
    guides.retain(|(path, _)| describes_code(path));
    let absent = |_: &str, line: &str| {
        let qualified = qualified_names(line).into_iter();
        let mut names: Vec<String> = qualified
            .filter(|name| !sources.iter().any(|(path, text)| defines(path, text, name)))
            .map(str::to_owned)
            .collect();
        let placed = placed_items(line).into_iter().filter(|(name, file)| {
            let end = format!("/{file}");
            let mut here = sources.iter().filter(|(path, _)| path == file || path.ends_with(&end));
            !here.any(|(_, text)| text.lines().any(|line| begins_item(line, name)))
        });
        names.extend(placed.map(|(name, file)| format!("{name} in {file}")));
        (!names.is_empty()).then(|| format!("names {}, which is not there", names.join(", ")))
    };
    assert_eq!(qualified_names("`a::b` and `Facts::set(x)`, not std: `std::fs`"), ["a::b", "Facts::set"]);
    assert!(defines("crates/x/src/a.rs", "pub(crate) fn b(", "a::b"));
    assert!(defines("crates/x/src/lib.rs", "pub use y::{A,\n    B};", "dyno_x::B"));
    assert!(!defines("crates/x/src/a.rs", "pub(crate) fn bc(", "a::b"));
    let server = "impl Server {\n    pub fn inject_fault(&self) {\n    }\n}\nfn heal() {}\n";
    assert!(defines("crates/x/src/a.rs", server, "Server::inject_fault"));
    assert!(!defines("crates/x/src/a.rs", server, "Server::inject"), "the beginning of a name");
    assert!(!defines("crates/x/src/a.rs", server, "Server::heal"), "beside the type, not of it");
    assert_eq!(
        placed_items("`A`, `B` of `crates/x/a.rs`; `c(x)` in [`d.rs`](e)"),
        [("B", "crates/x/a.rs"), ("A", "crates/x/a.rs"), ("c", "d.rs")]
    );
    none("items that guides name", &lines_with(&guides, absent));
}

#[test]
fn guides_name_files_and_modules_that_exist() {
    let (paths, crates) = (paths_of_the_tree(), workspace().into_keys().collect::<BTreeSet<_>>());
    let mut guides = files(&["md"]);
    guides.retain(|(path, _)| describes_code(path));
    let absent = |_: &str, line: &str| {
        let row = line.strip_prefix("| `").and_then(|rest| rest.split('`').next());
        let row = row.filter(|name| crates.contains(*name));
        let names = named_files(line).into_iter().filter(|name| {
            !name.contains("NAME") && !name.starts_with("target/") && !is_in_tree(name, row, &paths, &crates)
        });
        let names: Vec<&str> = names.collect();
        (!names.is_empty()).then(|| format!("names {}, which is not there", names.join(", ")))
    };
    none("files and modules that guides name", &lines_with(&guides, absent));
    assert_eq!(named_files("`a.rs` in `x/y`, `sqlite/`, not `Type` or `no`"), ["a.rs", "x/y", "sqlite/"]);
    let is_there = |name: &str, row: Option<&str>| is_in_tree(name, row, &paths, &crates);
    assert!(is_there("engine/event_loop", None) && !is_there("worker/sums", None));
    assert!(is_there("sqlite/", Some("db-embedded")) && !is_there("sqlite/", Some("db-redis")));
    assert!(is_there("scripts/need", None) && is_there("fault.rs", None) && !is_there("no_such.rs", None));
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

/// What a screen reader cannot say of a page: columns without a name, headings that leave a level out.
fn unreadable_lines(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut is_code, mut level) = (Vec::new(), false, 0);
    let lines: Vec<&str> = text.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        let hashes = line.chars().take_while(|c| *c == '#').count();
        if is_code {
            continue;
        }
        if hashes > 0 && line[hashes..].starts_with(' ') {
            if level > 0 && hashes > level + 1 {
                found.push((number + 1, *line));
            }
            level = hashes;
        }
        let is_rule = |line: &&str| line.starts_with("|-") && line.chars().all(|c| "|-: ".contains(c));
        let names = line.trim().trim_matches('|').replace("\\|", "");
        if lines.get(number + 1).is_some_and(is_rule) && names.split('|').any(|name| name.trim().is_empty()) {
            found.push((number + 1, *line));
        }
    }
    found
}

#[test]
fn tables_name_their_columns_and_headings_leave_no_level_out() {
    let documents = files(&["md"]).into_iter().filter(|(path, _)| path.starts_with("docs/"));
    let found: Vec<String> = documents
        .flat_map(|(path, text)| {
            let lines =
                unreadable_lines(&text).into_iter().map(|(number, line)| format!("{path}:{number}: {line}"));
            lines.collect::<Vec<_>>()
        })
        .collect();
    none("a table's columns have names, and a heading is one level below the one above it at most", &found);
    let text = "# a\n\n### b\n\n| | c |\n|---|---|\n\n```\n| | d |\n|---|---|\n```\n\n| e | f |\n|---|---|\n";
    assert_eq!(unreadable_lines(text), [(3, "### b"), (5, "| | c |")]);
}

/// A guide, the words that its example is known by, and files that have these words for another reason than that an example of
/// its kind was added.
type GuidedExample = (&'static str, &'static [&'static str], &'static [&'static str]);

const EXAMPLES: [GuidedExample; 3] = [
    ("docs/contributing/add-a-database.md", &["dyno-db-memcached", "dyno_db_memcached"], &[]),
    (
        "docs/contributing/add-an-embedded-store.md",
        &["lmdb"],
        // What several stores share, and a default that presets print.
        &["crates/db-embedded/src/ordered/", "crates/presets/src/lib.rs"],
    ),
    (
        "docs/contributing/add-a-drop-in.md",
        &["dyno-compat-pocdriver", "dyno_compat_pocdriver", ".pocdriver"],
        // Proofs use its load and its documents.
        &["crates/prove/"],
    ),
];

/// Returns whether a guide names the file at `path`, or a folder that it is in.
fn is_guided(guide: &str, path: &str) -> bool {
    guide.lines().flat_map(named_paths_of_any_kind).any(|named| {
        named == path || path.starts_with(&format!("{}/", named.trim_end_matches('/'))) && named.contains('/')
    })
}

/// Paths of links and code of a line, from the root of the tree.
fn named_paths_of_any_kind(line: &str) -> Vec<&str> {
    let mut found = named_paths(line);
    found.extend(code_spans(line));
    found
}

#[test]
fn guides_name_every_file_that_their_example_is_in() {
    let mut sources = files(&["rs", "toml"]);
    sources.retain(|(path, _)| !is_of_tests(path) && !path.starts_with("fuzz/"));
    let mut found = Vec::new();
    for (guide, words, elsewhere) in EXAMPLES {
        let text = fs::read_to_string(root().join(guide)).expect("a guide");
        for (path, source) in &sources {
            let name = words[0].trim_start_matches("dyno-");
            let own = path.starts_with(&format!("crates/{name}/"))
                || path.starts_with(&format!("crates/db-embedded/src/{name}/"));
            let is_in = words.iter().any(|word| match word.strip_prefix('.') {
                Some(field) => source.lines().any(|line| code(line).contains(word) && has_word(line, field)),
                None => source.lines().any(|line| has_word(code(line), word)),
            });
            if is_in
                && !own
                && !elsewhere.iter().any(|part| path.starts_with(part))
                && !is_guided(&text, path)
            {
                found.push(format!("{guide}: {path}"));
            }
        }
    }
    none("files that an addition of this kind changes; the guide does not name them", &found);
    assert!(is_guided("see `crates/x/src/` and `Cargo.toml`", "crates/x/src/a.rs"));
    assert!(is_guided("`Cargo.toml`", "Cargo.toml") && !is_guided("`Cargo.toml`", "crates/x/Cargo.toml"));
}
