//! A comparison as Markdown, for a change request or a note.

use super::text::verdict;
use super::{FOOT, Pairing, number};
use dyno_analysis::compare::rank;
use std::fmt::Write as _;

/// Text that cannot become markup, nor leave its cell.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '#' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

fn row(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn differences(out: &mut String, title: &str, rows: &[(String, String, String)]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n| {title} that differ | first | second |\n|:---|:---|:---|");
    rows.iter().for_each(|(key, one, other)| row(out, &[plain(key), plain(one), plain(other)]));
}

/// All of it.
pub fn markdown(all: &[Pairing]) -> String {
    let mut out = String::from("# Comparison\n");
    for pairing in all {
        let _ = writeln!(out, "\n## {}\n\n**{}**", plain(&pairing.title()), plain(&pairing.verdict()));
        if !pairing.warnings.is_empty() {
            out.push('\n');
        }
        pairing.warnings.iter().for_each(|warning| {
            let _ = writeln!(out, "* {}", plain(warning));
        });
        if !pairing.figures.is_empty() {
            out.push_str(
                "\n| figure | first | second | unit | p | effect | verdict |\n|:---|---:|---:|:---|---:|:---|:---|\n",
            );
        }
        for figure in &pairing.figures {
            let found = &figure.found;
            let cells = [
                plain(&figure.name),
                number(found.means.0),
                number(found.means.1),
                figure.unit.to_owned(),
                format!("{:.3}", found.p),
                rank::size(found.delta).to_owned(),
                verdict(figure),
            ];
            row(&mut out, &cells);
        }
        differences(&mut out, "settings", &pairing.settings);
        differences(&mut out, "environment", &pairing.environment);
    }
    let _ = writeln!(out, "\n{FOOT}");
    out
}
