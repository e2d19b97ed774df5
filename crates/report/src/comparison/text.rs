//! A comparison as text: the verdict in words first, then the figures it comes from.

use crate::comparison::replays::ComparedReplays;
use crate::comparison::{ComparedFigure, Pairing, describe_columns, format_number};
use dyno_analysis::compare::{Comparison, Conclusion, LeftOpen};
use dyno_types::units::{Change, change_span, counted};

/// The interval of a change, in per cent of the first side or as factors. One run says nothing about how much runs differ.
pub(crate) fn relative_interval(found: &Comparison) -> Option<String> {
    let ratio = &found.decision.ratio;
    found.has_intervals().then(|| change_span(ratio.value, (ratio.low, ratio.high)))
}

/// The p-value of the decision; a dash where there are too few runs for one.
pub(crate) fn format_p(found: &Comparison) -> String {
    match found.decision.p {
        None => "-".into(),
        Some(p) if p < 0.001 => "<0.001".into(),
        Some(p) => format!("{p:.3}"),
    }
}

/// The words for a conclusion.
pub fn describe_conclusion(figure: &ComparedFigure) -> String {
    let found = &figure.found;
    let ratio = found.decision.ratio.value;
    let interval = relative_interval(found).unwrap_or_else(|| format!("{}, no interval", Change(ratio)));
    let by = match ratio > 2.0 {
        true => format!(": {}", Change(ratio)),
        false => format!(" by {:.1} %", (ratio - 1.0).abs() * 100.0),
    };
    match found.decision.conclusion {
        Conclusion::Better => format!("better{by} ({interval})"),
        Conclusion::Worse => format!("worse{by} ({interval})"),
        Conclusion::Same => format!("no difference that matters ({interval})"),
        Conclusion::Unclear(runs) => describe_open(found, runs, &interval),
    }
}

/// The words for what is left open, and for how many more runs a side would tell.
fn describe_open(found: &Comparison, runs: u32, interval: &str) -> String {
    // The order of the runs is all that few of them say.
    let order = match (found.is_one_pair(), found.delta) {
        (true, _) => "",
        (_, delta) if delta >= 1.0 => "; every run of the second is above every run of the first",
        (_, delta) if delta <= -1.0 => "; every run of the second is below every run of the first",
        _ => "",
    };
    let more = match runs {
        0 => String::new(),
        1 => ": 1 more run a side".into(),
        runs => format!(": {} a side", counted(runs as usize, "more run")),
    };
    match found.decision.open {
        _ if found.is_one_pair() => {
            let change = Change(found.decision.ratio.value);
            format!(
                "not enough data: {change} between these two runs; {} a side at least",
                counted(runs as usize, "more run")
            )
        }
        Some(LeftOpen::Drift) => {
            format!("left open: the order of the runs explains it as well (without that {interval})")
        }
        Some(LeftOpen::Noise) => format!("within the noise floor ({interval})"),
        Some(LeftOpen::Margin) => {
            format!("there is a difference, but perhaps none that matters{more} ({interval})")
        }
        _ if runs > 100 => {
            format!("runs differ too much to say: some {runs} more a side ({interval}{order})")
        }
        _ => format!("not enough data{more} ({interval}{order})"),
    }
}

/// The words, with the noise floor where one is known.
pub(super) fn describe_with_noise(figure: &ComparedFigure) -> String {
    let mut verdict = describe_conclusion(figure);
    if figure.noise > 0.0 {
        verdict += &format!("; noise floor {:.1} %", figure.noise * 100.0);
    }
    verdict
}

/// All of it.
pub fn render_comparisons(all: &[Pairing]) -> String {
    let mut out = String::new();
    for pairing in all {
        let cell = if pairing.cell.is_empty() { String::new() } else { format!("  [{}]", pairing.cell) };
        out += &format!("{}  against  {}{cell}\n", pairing.second, pairing.first);
        for warning in &pairing.warnings {
            out += &format!("  note: {warning}\n");
        }
        if pairing.figures.is_empty() {
            out += "  nothing that both have\n";
        }
        out += &table(&pairing.figures);
        if let Some(replays) = &pairing.replays {
            out += &replay_tables(replays);
        }
        for (title, rows) in
            [("settings", &pairing.settings), ("facts of the environment", &pairing.environment)]
        {
            if !rows.is_empty() {
                out += &format!("  {title} that differ\n");
            }
            for (key, one, other) in rows {
                out += &format!("    {key}: {one} -> {other}\n");
            }
        }
        out.push('\n');
    }
    out += &format!("{}\n", describe_columns(all));
    out
}

fn replay_tables(replays: &ComparedReplays) -> String {
    let shares = replays.shares();
    let mut rows = vec![["of the traffic".to_owned(), "first".into(), "second".into()]];
    rows.extend(shares.into_iter().map(|(name, one, other)| [name.to_owned(), one, other]));
    let mut out = columns(&rows);
    if !replays.times.is_empty() {
        out += &format!("  {}\n", replays.title());
        let mut rows = vec![ComparedReplays::HEADS.map(str::to_owned)];
        rows.extend(replays.rows());
        out += &columns(&rows);
    }
    out
}

/// Rows with the first column to the left and the others to the right.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let wide = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(wide).collect();
    let mut out = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(
                |(at, (cell, width))| {
                    if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                },
            )
            .collect();
        out += &format!("  {}\n", cells.join("  ").trim_end());
    }
    out
}

fn table(figures: &[ComparedFigure]) -> String {
    let head = ["", "first", "second", "unit", "p", "effect", "verdict"].map(str::to_owned).to_vec();
    let mut rows = vec![head];
    for figure in figures {
        let found = &figure.found;
        rows.push(vec![
            figure.name.clone(),
            format_number(found.means.0),
            format_number(found.means.1),
            figure.shown_unit().to_owned(),
            format_p(found),
            figure.describe_effect_size().to_owned(),
            describe_with_noise(figure),
        ]);
    }
    if rows.len() == 1 {
        return String::new();
    }
    // One run of each has neither p nor effect.
    let known = |at: usize| !matches!(at, 4 | 5) || rows.iter().skip(1).any(|row| row[at] != "-");
    let known: Vec<bool> = (0..7).map(known).collect();
    let wide = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..7).map(wide).collect();
    let mut out = String::new();
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .enumerate()
            .filter(|(at, _)| known[*at])
            .map(|(at, cell)| match at {
                1 | 2 | 4 => format!("{cell:>width$}", width = widths[at]),
                _ => format!("{cell:<width$}", width = widths[at]),
            })
            .collect();
        out += &format!("  {}\n", cells.join("  ").trim_end());
    }
    out
}
