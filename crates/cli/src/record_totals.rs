//! What was recorded, in words.

use dyno_frontend::terminal;
use dyno_recording::{RecordingHeader, RecordingTotals};
use dyno_types::units::Thousands;
use std::path::Path;

/// Says what was recorded.
pub fn tell(out: &Path, header: Option<&RecordingHeader>, totals: &RecordingTotals) {
    let size = std::fs::metadata(out).map_or(0, |facts| facts.len());
    terminal::line(&format!(
        "{}: {} commands of {} connections in {:.1} s, {} bytes",
        out.display(),
        Thousands(totals.commands),
        Thousands(totals.connections),
        totals.length_ns as f64 / 1e9,
        Thousands(size)
    ));
    let mut names: Vec<(&String, &u64)> = totals.by_name.iter().collect();
    names.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
    let shown: Vec<String> =
        names.iter().take(8).map(|(name, count)| format!("{name} {}", Thousands(**count))).collect();
    let more = names.len().saturating_sub(8);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !shown.is_empty() {
        terminal::line(&format!("{}{more}", shown.join(", ")));
    }
    for (reason, count) in &totals.left_out {
        terminal::note(&format!("left out: {} {reason}", Thousands(*count)));
    }
    if let Some(header) = header.filter(|header| !header.lacks.is_empty()) {
        let lacks: Vec<&str> = header.lacks.iter().map(|lack| lack.lack_words()).collect();
        terminal::note(&format!("its source ({}) does not tell {}", header.source, lacks.join(", ")));
    }
}
