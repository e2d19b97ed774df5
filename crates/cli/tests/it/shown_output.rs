//! Output that pages show has the lines that the program prints today: figures age well, lines that are no longer printed do not.

use dyno_testkit::{Dyno, stdout};
use std::collections::BTreeSet;
use std::path::Path;

/// Pages that begin with a summary or a comparison as the program prints it.
const PAGES: [&str; 4] = ["README.md", "docs/first-run.md", "docs/reading-results.md", "docs/memcached.md"];

/// The head of the table of response times.
const TIMES: &str = "response time ";

fn page(path: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Columns of a line: what two blanks or more keep apart.
fn columns(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Tables of response times in a text: the columns of the head, and the first column of each row with its indentation. The names
/// of operations are the workload's own and are left out.
fn tables(text: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let mut all = Vec::new();
    let mut lines = text.lines();
    while let Some(head) = lines.find(|line| line.starts_with(TIMES)) {
        let rows = lines.by_ref().take_while(|line| !line.is_empty() && !line.starts_with("```"));
        let names = rows.map(|row| {
            let indentation = row.len() - row.trim_start().len();
            &row[..row[indentation..].find("  ").map_or(row.len(), |end| indentation + end)]
        });
        let is_share =
            |name: &&str| name.starts_with(' ') || name.starts_with(|c: char| c.is_ascii_lowercase());
        all.push((columns(head), names.filter(is_share).collect()));
    }
    all
}

#[test]
fn summaries_of_pages_have_the_lines_that_are_printed() {
    let dyno = Dyno::new();
    let mut printed = BTreeSet::new();
    let mut heads = BTreeSet::new();
    for load in [["--users", "4"], ["--rate", "20k"]] {
        let done = dyno.run(&[&["run", "sim:", "--ops", "40000", "-q"][..], &load].concat());
        dyno.assert_ran(&done);
        let text = stdout(&done);
        let found = tables(&text);
        assert_eq!(found.len(), 1, "{text}");
        heads.extend(found.iter().flat_map(|table| &table.0).map(|head| (*head).to_owned()));
        printed.extend(found[0].1.iter().map(|row| first_words(row)));
    }
    let mut shown = 0;
    for path in PAGES {
        for (head, rows) in tables(&page(path)) {
            shown += 1;
            let unknown: Vec<&str> = head.into_iter().filter(|column| !heads.contains(*column)).collect();
            assert!(unknown.is_empty(), "{path}: columns that no summary has: {unknown:?}");
            let unknown: Vec<&str> =
                rows.into_iter().filter(|row| !printed.contains(&first_words(row))).collect();
            assert!(unknown.is_empty(), "{path}: lines that no summary has: {unknown:?}; it has {printed:?}");
        }
    }
    assert!(shown >= 3, "{shown} summaries are shown");
}

/// A row's name: its indentation and its first two words, which have no figures in them.
fn first_words(row: &str) -> String {
    let indentation = row.len() - row.trim_start().len();
    let words: Vec<&str> = row.split_whitespace().take(2).collect();
    format!("{}{}", " ".repeat(indentation), words.join(" "))
}

#[test]
fn comparisons_of_pages_have_the_columns_that_are_printed() {
    let dyno = Dyno::new();
    let file = "target: 'sim:'\nworkload: {ycsb: {workload: c, records: 100}}\n\
                phases: {measure: {operations: 2000, users: 2}}\nrepetitions: 4\n";
    std::fs::write(dyno.path("x.yaml"), file).expect("a file");
    for name in ["A", "B"] {
        dyno.assert_ran(&dyno.run(&["run", "x.yaml", "--out", name, "-q"]));
    }
    let done = dyno.run(&["compare", "A", "B"]);
    let text = stdout(&done);
    let head = |text: &str| -> Option<Vec<String>> {
        let line = text.lines().find(|line| line.trim_start().starts_with("first  second"))?;
        Some(columns(line).into_iter().map(str::to_owned).collect())
    };
    let printed = head(&text).unwrap_or_else(|| panic!("no comparison: {text}"));
    assert_eq!(head(&page("docs/first-run.md")), Some(printed));
}
