//! Files of a crate use each other in one direction: a circle of files can only be read, moved and tested as a whole.

mod source;

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::{files, none};
use source::{Segments, Source, source};

/// Crates whose files still use each other in a circle. The list only gets shorter.
const CIRCLES: &[&str] = &["cli"];

/// The files of a crate by the segments of their module.
type Sources = BTreeMap<Segments, Source>;

/// Each file with the files that it uses, and one path that says so.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

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
