//! A Rust source, as far as it defines and names things.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The segments of `a::b::c`.
pub(super) type Segments = Vec<String>;

/// What one file defines and names. A module that stands inside of a file is an item of it.
#[derive(Default)]
pub(super) struct Source {
    pub file: String,
    pub items: BTreeSet<String>,
    /// The names that `use` gives, public ones too, with what they stand for.
    pub names: BTreeMap<String, Segments>,
    /// The modules all of whose names `use` gives.
    pub globs: Vec<Segments>,
    /// The paths in its code and in its private `use`; a public one only passes a name on.
    pub paths: Vec<Segments>,
}

/// Where the inside of the text stands that `rest` begins with, and the length of its end; none if it begins otherwise.
fn text(rest: &str) -> Option<(Range<usize>, usize)> {
    let open = rest.find(|c| !"br#".contains(c)).filter(|at| rest[*at..].starts_with('"'))?;
    let end = format!("\"{}", "#".repeat(rest[..open].matches('#').count()));
    let escapes = !rest[..open].contains('r');
    let mut inside = open + 1..open + 1;
    while inside.end < rest.len() && !rest[inside.end..].starts_with(&end) {
        let escaped = escapes && rest[inside.end..].starts_with('\\');
        inside.end +=
            rest[inside.end..].chars().take(1 + usize::from(escaped)).map(char::len_utf8).sum::<usize>();
    }
    Some((inside, end.len()))
}

/// The words and signs of a source, without comments, texts and characters. A text that is a path is code (serde's `with`).
fn tokens(source: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let until = |rest: &str, end: &str| rest.find(end).map_or(rest.len(), |at| at + end.len());
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let word = |from: usize| rest[from..].find(|c| !is_word(c)).unwrap_or(rest.len() - from);
        let length = if rest.starts_with("//") {
            until(rest, "\n")
        } else if rest.starts_with("/*") {
            until(rest, "*/")
        } else if let Some((inside, end)) = text(rest) {
            let path = &rest[inside.clone()];
            if path.contains("::") && path.chars().all(|c| is_word(c) || c == ':') {
                found.extend(tokens(path));
            }
            inside.end + end
        } else if first == '\'' {
            let second = rest[1..].chars().next().map_or(1, char::len_utf8);
            match (rest[1..].starts_with('\\'), rest[1 + second..].starts_with('\'')) {
                (true, _) => 3 + until(&rest[3..], "'"),
                (false, true) => second + 2,
                // A lifetime.
                (false, false) => 1 + word(1),
            }
        } else {
            let length = if rest.starts_with("::") { 2 } else { word(0).max(first.len_utf8()) };
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
pub(super) fn source(file: &str, text: &str) -> Source {
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
