//! Files of a crate use each other in one direction: a circle of files can only be read, moved and tested as a whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::{files, none};

/// Crates whose files still use each other in a circle. The list only gets shorter.
const CIRCLES: &[&str] = &[
    "analysis",
    "cli",
    "compat-sysbench-mongodb",
    "compat-wsf",
    "compat-ycsb",
    "localhost",
    "monitor",
    "prove",
    "remote",
    "report",
    "rundir",
];

/// The segments of `a::b::c`.
type Segments = Vec<String>;

/// What one file defines and names. A module that stands inside of a file is an item of it.
#[derive(Default)]
struct Source {
    file: String,
    items: BTreeSet<String>,
    /// The names that `use` gives, public ones too, with what they stand for.
    names: BTreeMap<String, Segments>,
    /// The modules all of whose names `use` gives.
    globs: Vec<Segments>,
    /// The paths in its code and in its private `use`; a public one only passes a name on.
    paths: Vec<Segments>,
}

/// The files of a crate by the segments of their module.
type Sources = BTreeMap<Segments, Source>;

/// Each file with the files that it uses, and one path that says so.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// The words and signs of a source, without comments, texts and characters. A text that is a path is code (serde's `with`).
fn tokens(text: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let until = |rest: &str, end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let raw = rest.trim_start_matches('b').strip_prefix('r').filter(|raw| raw.starts_with(['"', '#']));
        let hashes = raw.map_or("", |raw| &raw[..raw.find(|c| c != '#').unwrap_or(0)]);
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            until(rest, "*/")
        } else if let Some(raw) = raw.filter(|raw| raw[hashes.len()..].starts_with('"')) {
            let start = rest.len() - raw.len() + hashes.len() + 1;
            start + until(&rest[start..], &format!("\"{hashes}"))
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            let end = end.map_or(rest.len(), |end| end + 2);
            let inside = rest[1..end].trim_end_matches('"');
            if inside.contains("::") && inside.chars().all(|c| is_word(c) || c == ':') {
                found.extend(tokens(inside));
            }
            end
        } else if first == '\'' {
            let second = rest[1..].chars().next().map_or(1, char::len_utf8);
            if rest[1..].starts_with('\\') {
                3 + until(&rest[3..], "'")
            } else if rest[1 + second..].starts_with('\'') {
                second + 2
            } else {
                1 + rest[1..].find(|c| !is_word(c)).unwrap_or(0)
            }
        } else {
            let length = if rest.starts_with("::") { 2 } else { word.max(first.len_utf8()) };
            found.extend(Some(&rest[..length]).filter(|token| !token.trim().is_empty()));
            length
        };
        rest = &rest[length..];
    }
    found
}

/// The tokens without the items of tests.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        if !tokens[i..].starts_with(&["#", "[", "cfg", "(", "test", ")", "]"]) {
            kept.push(tokens[i]);
            i += 1;
            continue;
        }
        i += 7;
        let mut depth = 0;
        while i < tokens.len() {
            depth += i32::from(["(", "[", "{"].contains(&tokens[i]));
            depth -= i32::from([")", "]", "}"].contains(&tokens[i]));
            i += usize::from(depth >= 0);
            if depth < 0 || depth == 0 && [";", "}"].contains(&tokens[i - 1]) {
                break;
            }
        }
    }
    kept
}

/// Adds the names of a tree of `use` behind `before`, and returns what follows it.
fn use_tree<'a>(
    mut rest: &'a [&'a str],
    before: &[String],
    into: &mut Vec<(String, Segments)>,
) -> &'a [&'a str] {
    let mut path = before.to_vec();
    while let Some((token, behind)) = rest.split_first() {
        rest = behind;
        match *token {
            "{" => {
                while rest.first().is_some_and(|next| *next != "}") {
                    rest = use_tree(rest, &path, into);
                    rest = rest.strip_prefix(&[","]).unwrap_or(rest);
                }
                return rest.get(1..).unwrap_or_default();
            }
            "::" => {}
            "self" if !before.is_empty() => {}
            word => path.push(word.to_owned()),
        }
        if let Some(&end @ ("as" | "," | "}" | ";")) = rest.first() {
            let name = if end == "as" { rest[1] } else { path.last().map_or("", String::as_str) };
            into.push((name.to_owned(), path));
            return &rest[if end == "as" { 2 } else { 0 }..];
        }
    }
    rest
}

/// Reads the items, names and paths of one file.
fn source(file: &str, text: &str) -> Source {
    const ITEMS: [&str; 10] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod", "macro_rules"];
    let tokens = without_tests(&tokens(text));
    let word = |i: usize| tokens.get(i).filter(|t| t.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    let mut source = Source { file: file.to_owned(), ..Source::default() };
    let (mut i, mut depth) = (0, 0);
    while i < tokens.len() {
        let before = if i == 0 { "" } else { tokens[i - 1] };
        depth += i32::from(tokens[i] == "{") - i32::from(tokens[i] == "}");
        if tokens[i] == "use" && word(i + 1).is_some() {
            let mut leaves = Vec::new();
            i = tokens.len() - use_tree(&tokens[i + 1..], &[], &mut leaves).len();
            if !["pub", ")"].contains(&before) {
                source.paths.extend(leaves.iter().map(|(_, path)| path.clone()));
            }
            let (globs, names): (Vec<_>, Vec<_>) = leaves.into_iter().partition(|(name, _)| name == "*");
            source.globs.extend(globs.into_iter().map(|(_, path)| path[..path.len() - 1].to_vec()));
            source.names.extend(names);
            continue;
        }
        let name = word(i + 1 + usize::from(tokens.get(i + 1) == Some(&"!")));
        if let Some(name) = name.filter(|_| depth == 0 && ITEMS.contains(&tokens[i])) {
            let elsewhere = tokens[i] == "mod" && tokens.get(i + 2) == Some(&";");
            source.items.extend((!elsewhere).then(|| (*name).to_owned()));
        }
        if let Some(first) = word(i).filter(|_| !["::", "."].contains(&before)) {
            let mut path = vec![(*first).to_owned()];
            while let (Some(&"::"), Some(segment)) = (tokens.get(i + 1), word(i + 2)) {
                path.push((*segment).to_owned());
                i += 2;
            }
            // A single word may be a variable, unless it is called or begins with a capital.
            let named = tokens.get(i + 1) == Some(&"(") || first.starts_with(char::is_uppercase);
            let named = named && !ITEMS.contains(&before);
            source.paths.extend(Some(path).filter(|path| path.len() > 1 || named));
        }
        i += 1;
    }
    source
}

/// The path from the crate's root that `path` means in the module `at`; none if it leads out of the crate.
fn absolute(sources: &Sources, at: &[String], path: &[String]) -> Option<Segments> {
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    let start = match path.first()?.as_str() {
        "crate" => return Some(path[1..].to_vec()),
        "self" => [at, &path[1..]].concat(),
        "super" => [&at[..at.len().checked_sub(ups)?], &path[ups..]].concat(),
        first => {
            let child = [at, &[first.to_owned()]].concat();
            return sources.contains_key(&child).then(|| [at, path].concat());
        }
    };
    Some(start)
}

/// The module whose file defines what a path from the root names; none for a module as a whole.
fn home(sources: &Sources, path: &[String]) -> Option<Segments> {
    let modules = (0..=path.len()).take_while(|n| sources.contains_key(&path[..*n])).count();
    let at = &path[..modules.checked_sub(1)?];
    let (name, behind) = path[at.len()..].split_first()?;
    let source = &sources[at];
    if source.items.contains(name) {
        return Some(at.to_vec());
    }
    let gives = |module: &Segments| {
        sources.get(module).is_some_and(|s| s.items.contains(name) || s.names.contains_key(name))
    };
    let mut globs = source.globs.iter().filter_map(|glob| absolute(sources, at, glob));
    let target = match source.names.get(name) {
        Some(target) => absolute(sources, at, target)?,
        None => match globs.find(gives) {
            Some(module) => [&module[..], std::slice::from_ref(name)].concat(),
            None => return Some(at.to_vec()),
        },
    };
    home(sources, &[&target[..], behind].concat())
}

fn graph(sources: &Sources) -> Graph {
    let mut graph = Graph::new();
    for (at, source) in sources {
        let used = graph.entry(source.file.clone()).or_default();
        for path in &source.paths {
            // The path as it stands, or behind a name that `use` gives.
            let full = absolute(sources, at, path)
                .or_else(|| absolute(sources, at, &[source.names.get(&path[0])?, &path[1..]].concat()));
            if let Some(other) = full.and_then(|full| home(sources, &full)).filter(|other| other != at) {
                used.entry(sources[&other].file.clone()).or_insert_with(|| path.join("::"));
            }
        }
    }
    graph
}

/// The files that `from` uses, directly and through others.
fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut left: Vec<&str> = graph[from].keys().map(String::as_str).collect();
    while let Some(file) = left.pop() {
        if reached.insert(file) {
            left.extend(graph[file].keys().map(String::as_str));
        }
    }
    reached
}

/// Every circle: its files, and the uses among them.
fn circles(graph: &Graph) -> Vec<String> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|file| (file.as_str(), reached(graph, file))).collect();
    let mut found = BTreeMap::<BTreeSet<&str>, String>::new();
    for (file, used) in graph {
        let below = &reached[file.as_str()];
        let circle: BTreeSet<&str> =
            below.iter().copied().filter(|f| reached[f].contains(file.as_str())).collect();
        for (other, by) in used.iter().filter(|(other, _)| circle.contains(other.as_str())) {
            *found.entry(circle.clone()).or_default() += &format!("\n    {file} uses {other} by {by}");
        }
    }
    found.iter().map(|(circle, uses)| format!("a circle of {} files:{uses}", circle.len())).collect()
}

/// The sources of each crate, of files below the root with their text.
fn crates(files: &[(String, String)]) -> BTreeMap<String, Sources> {
    let mut crates = BTreeMap::<String, Sources>::new();
    for (file, text) in files {
        let mut parts = file.trim_end_matches(".rs").split('/').map(str::to_owned);
        let (Some("crates"), Some(name), Some("src")) =
            (parts.next().as_deref(), parts.next(), parts.next().as_deref())
        else {
            continue;
        };
        let mut module: Segments = parts.collect();
        // A library's program stays `main`: it uses the library by its name.
        let library = file.replace("src/main.rs", "src/lib.rs");
        module.pop_if(|last| {
            *last == "mod" || *last == "lib" || *last == "main" && files.iter().all(|(f, _)| *f != library)
        });
        crates.entry(name).or_default().insert(module, source(file, text));
    }
    crates
}

#[test]
fn files_of_a_crate_use_each_other_in_one_direction() {
    let mut found = Vec::new();
    for (name, sources) in crates(&files(&["rs"])) {
        let circles = circles(&graph(&sources));
        if CIRCLES.contains(&name.as_str()) {
            assert!(!circles.is_empty(), "{name} has no circle any more: take it off the list");
        } else {
            found.extend(circles);
        }
    }
    none("circles of files: move what they share to a file of its own", &found);
}

#[test]
fn a_circle_is_found() {
    let made = |sources: &[(&str, &str)]| {
        let files: Vec<(String, String)> =
            sources.iter().map(|(file, text)| (format!("crates/a/src/{file}"), (*text).to_owned())).collect();
        circles(&graph(&crates(&files)["a"]))
    };
    let child = ("b.rs", "use super::{c::{self, X as Y,}, One,};");
    for (parent, circle) in [
        // Used through a name that `use` gives, a group, serde's text, a macro; not by a comment or a text.
        ("mod b; struct One; fn f() { b::g() }", true),
        ("mod b; struct One; pub use b::B; fn f(_: B) {}", true),
        ("mod b; struct One; use b::{self as z}; impl One { const A: [z::B; 1] = []; }", true),
        ("mod b; macro_rules! One { () => { $crate::b::g() } }", true),
        ("mod b; struct One(#[serde(with = \"b::g\")] u8);", true),
        ("mod b; pub use b::B; struct One; // b::g()", false),
        ("mod b; struct One; const A: &str = r#\"\"\"#; const B: char = '\"'; /* b::g() */", false),
        ("mod b; struct One; #[cfg(test)] #[a] mod tests { fn f() { b::g() } }", false),
        // What is passed on belongs to the file that defines it.
        ("mod b; pub use d::One; fn f() { b::g() }", false),
        ("mod b; pub use self::d::*; fn f() { b::g() }", false),
    ] {
        let found =
            made(&[("lib.rs", parent), child, ("c.rs", "pub struct X;"), ("d/mod.rs", "pub struct One;")]);
        assert_eq!(found.len(), usize::from(circle), "{parent}: {found:?}");
    }
    let found = made(&[
        ("main.rs", "fn main() { a::f() }"),
        ("lib.rs", ""),
        ("x.rs", "use crate::y::B;"),
        ("y.rs", "type B = crate::x::A;"),
    ]);
    let uses = "\n    crates/a/src/x.rs uses crates/a/src/y.rs by crate::y::B";
    let back = "\n    crates/a/src/y.rs uses crates/a/src/x.rs by crate::x::A";
    assert_eq!(found, [format!("a circle of 2 files:{uses}{back}")]);
}
