//! The tables of `docs/mongodb.md` say what the suites say.

use crate::harness::{SUITES, deviations};

/// The rows of the two tables: suites, and kinds of deviations.
fn rows() -> Vec<String> {
    let list = deviations();
    let kinds = list["kinds"].as_object().unwrap();
    let mut sums = vec![0; kinds.len()];
    let mut rows = Vec::new();
    for suite in &SUITES {
        let totals = suite.totals();
        for (sum, kind) in sums.iter_mut().zip(kinds.keys()) {
            *sum += totals.deviations.get(kind).unwrap_or(&0);
        }
        let found = kinds.keys().filter_map(|kind| Some(format!("{} {kind}", totals.deviations.get(kind)?)));
        let found = found.collect::<Vec<_>>().join(", ");
        rows.push(format!("| {} | {} | {} | {found} |", suite.name, totals.cases, totals.passed()));
    }
    for (sum, (kind, reason)) in sums.iter().zip(kinds) {
        rows.push(format!("| {kind} | {sum} | {} |", reason["reason"].as_str().unwrap()));
    }
    rows
}

#[test]
fn the_page_has_the_tables() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mongodb.md");
    let page = std::fs::read_to_string(page).unwrap();
    let missing: Vec<String> =
        rows().into_iter().filter(|row| !page.lines().any(|line| line == row)).collect();
    assert!(missing.is_empty(), "docs/mongodb.md lacks these rows:\n{}", missing.join("\n"));
}
