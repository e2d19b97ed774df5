//! A comparison as Markdown, for a change request or a note.

use crate::comparison::text::verdict;
use crate::comparison::{FOOT, Pairing, number};
use crate::markdown::esc;
use std::fmt::Write as _;

fn row(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn differences(out: &mut String, title: &str, rows: &[(String, String, String)]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n| {title} that differ | first | second |\n|:---|:---|:---|");
    rows.iter().for_each(|(key, one, other)| row(out, &[esc(key), esc(one), esc(other)]));
}

/// All of it.
pub fn markdown(all: &[Pairing]) -> String {
    let mut out = String::from("# Comparison\n");
    for pairing in all {
        let _ = writeln!(out, "\n## {}\n\n**{}**", esc(&pairing.title()), esc(&pairing.verdict()));
        if !pairing.warnings.is_empty() {
            out.push('\n');
        }
        pairing.warnings.iter().for_each(|warning| {
            let _ = writeln!(out, "* {}", esc(warning));
        });
        if !pairing.figures.is_empty() {
            out.push_str(
                "\n| figure | first | second | unit | p | effect | verdict |\n|:---|---:|---:|:---|---:|:---|:---|\n",
            );
        }
        for figure in &pairing.figures {
            let found = &figure.found;
            let cells = [
                esc(&figure.name),
                number(found.means.0),
                number(found.means.1),
                figure.shown_unit().to_owned(),
                format!("{:.3}", found.p),
                figure.effect().to_owned(),
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
