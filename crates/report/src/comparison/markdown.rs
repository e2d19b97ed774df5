//! A comparison as Markdown, for a change request or a note.

use crate::comparison::replays::ComparedReplays;
use crate::comparison::text::{describe_with_noise, format_p};
use crate::comparison::{Pairing, describe_columns, format_number};
use crate::markdown::escape_markdown;
use std::fmt::Write as _;

fn row(out: &mut String, cells: &[String]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

fn differences(out: &mut String, title: &str, rows: &[(String, String, String)]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n| {title} that differ | first | second |\n|:---|:---|:---|");
    rows.iter().for_each(|(key, one, other)| {
        row(out, &[escape_markdown(key), escape_markdown(one), escape_markdown(other)])
    });
}

/// All of it.
pub fn render_markdown(all: &[Pairing]) -> String {
    // Of one pair the heading below says what is compared.
    let title = match all.first().and_then(|one| one.experiment.as_ref()) {
        Some(name) => format!("{}: levels compared", escape_markdown(name)),
        None => "Comparison".to_owned(),
    };
    let mut out = format!("# {title}\n");
    for pairing in all {
        let _ = writeln!(
            out,
            "\n## {}\n\n**{}**",
            escape_markdown(&pairing.title()),
            escape_markdown(&pairing.verdict_sentence())
        );
        if !pairing.warnings.is_empty() {
            out.push('\n');
        }
        pairing.warnings.iter().for_each(|warning| {
            let _ = writeln!(out, "* {}", escape_markdown(warning));
        });
        // One pair has neither.
        let is_tested = !pairing.is_one_pair();
        if !pairing.figures.is_empty() {
            out.push_str(match is_tested {
                true => {
                    "\n| figure | first | second | unit | p | effect | verdict |\n|:---|---:|---:|:---|---:|:---|:---|\n"
                }
                false => "\n| figure | first | second | unit | verdict |\n|:---|---:|---:|:---|:---|\n",
            });
        }
        for figure in &pairing.figures {
            let found = &figure.found;
            let mut cells = vec![
                escape_markdown(&figure.name),
                format_number(found.means.0),
                format_number(found.means.1),
                figure.shown_unit().to_owned(),
            ];
            if is_tested {
                cells.extend([format_p(found), figure.describe_effect_size().to_owned()]);
            }
            cells.push(describe_with_noise(figure));
            row(&mut out, &cells);
        }
        if let Some(replays) = &pairing.replays {
            let _ = writeln!(out, "\n| of the traffic | first | second |\n|:---|---:|---:|");
            for (name, one, other) in replays.shares() {
                row(&mut out, &[name.to_owned(), one, other]);
            }
            if !replays.times.is_empty() {
                let _ = writeln!(out, "\n{}\n", escape_markdown(&replays.title()));
                row(&mut out, &ComparedReplays::HEADS.map(str::to_owned));
                let _ = writeln!(out, "|:---|---:|---:|---:|---:|---:|---:|");
                replays
                    .rows()
                    .iter()
                    .for_each(|cells| row(&mut out, &cells.clone().map(|cell| escape_markdown(&cell))));
            }
        }
        differences(&mut out, "settings", &pairing.settings);
        differences(&mut out, "facts of the environment", &pairing.environment);
    }
    let _ = writeln!(out, "\n{}", describe_columns(all));
    out
}
