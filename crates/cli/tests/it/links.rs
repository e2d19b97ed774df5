//! Follows every link of the documentation: between its pages, to their headings, to files of the repository, and from
//! the sources to pages.

use crate::tidy::{files, none, root};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The table of contents of the site.
const CONTENTS: &str = "docs/SUMMARY.md";

/// What a page has and where it leads.
#[derive(Default)]
struct Page {
    anchors: BTreeSet<String>,
    links: Vec<String>,
}

/// The anchor that mdBook and GitHub give a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | ' '));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

fn page(text: &str) -> Page {
    let (mut page, mut heading) = (Page::default(), None::<String>);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let first = anchor(&heading.take().unwrap_or_default());
                let again = (1..).map(|n| format!("{first}-{n}"));
                let free = std::iter::once(first.clone()).chain(again).find(|a| !page.anchors.contains(a));
                page.anchors.extend(free);
            }
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                page.links.push(dest_url.into_string());
            }
            Event::Text(text) | Event::Code(text) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&text);
                }
            }
            _ => {}
        }
    }
    page
}

/// `link` of the page `from`, as a path below the root; `None` where it leaves the repository.
fn target(from: &str, link: &str) -> Option<String> {
    let mut path = Path::new(from).parent()?.to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => path.parent().map(Path::to_owned).map(|up| path = up)?,
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    Some(path.display().to_string())
}

fn is_elsewhere(link: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

/// Every link of `pages` that leads nowhere; `exists` knows files that are no pages.
fn broken(pages: &BTreeMap<String, Page>, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (from, page) in pages {
        for link in page.links.iter().filter(|link| !is_elsewhere(link)) {
            let (file, heading) = link.split_once('#').map_or((link.as_str(), None), |(f, h)| (f, Some(h)));
            let to = if file.is_empty() { Some(from.clone()) } else { target(from, file) };
            let Some(to) = to.filter(|to| pages.contains_key(to) || exists(to)) else {
                found.push(format!("{from}: {link}: there is no such file"));
                continue;
            };
            let has = |heading: &str| pages.get(&to).is_some_and(|page| page.anchors.contains(heading));
            if let Some(heading) = heading.filter(|heading| !has(heading)) {
                found.push(format!("{from}: {link}: {to} has no heading #{heading}"));
            }
        }
    }
    found
}

fn pages() -> BTreeMap<String, Page> {
    files(&["md"]).into_iter().map(|(path, text)| (path, page(&text))).collect()
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    none("links that lead nowhere", &broken(&pages(), |path| root().join(path).exists()));
}

#[test]
fn every_page_is_in_the_contents_once() {
    let pages = pages();
    let mut listed: Vec<PathBuf> =
        pages[CONTENTS].links.iter().map(|link| Path::new("docs").join(link)).collect();
    listed.sort();
    let is_page = |path: &&String| path.starts_with("docs/") && path.as_str() != CONTENTS;
    let mut there: Vec<PathBuf> = pages.keys().filter(is_page).map(PathBuf::from).collect();
    there.sort();
    assert_eq!(listed, there, "pages in {CONTENTS}, and pages below docs");
}

/// `docs/NAME.md#HEADING` in a line, without the sentence's own full stop.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "/-_.#".contains(c);
    let word = move |at: usize| {
        let rest = &line[at..];
        rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())].trim_end_matches(['.', '#'])
    };
    let begins = line.match_indices("docs/").filter(move |(at, _)| !line[..*at].ends_with(is_part));
    begins.map(move |(at, _)| word(at)).filter(|word| word.contains(".md"))
}

#[test]
fn pages_that_sources_name_are_there() {
    let pages = pages();
    let mut found = Vec::new();
    let mut sources = files(&["rs", "sh", "py", "toml", "yaml", "yml", "json", "html"]);
    // This file's own examples.
    sources.retain(|(path, _)| !path.ends_with("it/links.rs"));
    for (path, text) in sources {
        for name in text.lines().flat_map(named) {
            let (file, heading) = name.split_once('#').map_or((name, None), |(f, h)| (f, Some(h)));
            let page = pages.get(file);
            let has = |heading: &str| page.is_some_and(|page| page.anchors.contains(heading));
            if page.is_none() || heading.is_some_and(|heading| !has(heading)) {
                found.push(format!("{path}: {name}"));
            }
        }
    }
    none("pages or headings that are not there", &found);
}

#[test]
fn what_leads_nowhere_is_found() {
    let own = "# One `two`, three\n# One `two`, three\n[a](b.md#x) [c](#one-two-three-1) ![d](../e.svg) [f](https://g)\n";
    let (from, other) = ("docs/a.md".to_owned(), "docs/b.md".to_owned());
    let pages = BTreeMap::from([(from, page(own)), (other, page("# X\n"))]);
    assert_eq!(broken(&pages, |path| path == "e.svg"), Vec::<String>::new());
    let pages = BTreeMap::from([("docs/a.md".to_owned(), page(&own.replace("-1)", "-2)")))]);
    let found = broken(&pages, |_| false);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].ends_with("docs/a.md has no heading #one-two-three-2"), "{found:?}");
    let line = "see docs/a-b.md#c, docs/reference/d.md. Not other/docs/e.md or docs/f.json";
    assert_eq!(named(line).collect::<Vec<_>>(), ["docs/a-b.md#c", "docs/reference/d.md"]);
}
