//! Effects of faults on the load, as rows of a table: the same for text, page and Markdown.

use dyno_rundir::faults::FaultFigures;
use dyno_types::units::{Rate, ShownLatency};

/// Heads of the table.
pub(crate) const HEADS: [&str; 13] = [
    "fault",
    "begin",
    "end",
    "before",
    "detected",
    "at worst",
    "depth",
    "response before",
    "worst response",
    "lost",
    "failed",
    "recovered",
    "note",
];

/// A row; what is not known is `-`.
pub(crate) fn format_fault_row(one: &FaultFigures) -> Vec<String> {
    let seconds = |s: Option<f64>| s.map_or("-".to_owned(), |s| format!("{s:.2} s"));
    let time =
        |us: Option<f64>| us.map_or("-".to_owned(), |us| ShownLatency((us * 1e3).round() as u64).to_string());
    let rate = |n: Option<f64>| n.map_or("-".to_owned(), |n| format!("{}/s", Rate(n)));
    vec![
        format!("{} {}", one.number, one.fault),
        seconds(Some(one.begin_s)),
        seconds(one.end_s),
        rate(one.before_per_s),
        seconds(one.detect_s),
        rate(one.worst_per_s),
        one.depth.map_or("-".to_owned(), |depth| format!("{:.1} %", depth * 100.0)),
        time(one.before_us),
        time(one.worst_us),
        one.lost.map_or("-".to_owned(), |lost| format!("{lost:.0}")),
        one.failed.to_string(),
        seconds(one.recover_s),
        one.note.clone().unwrap_or_else(|| one.means.clone()),
    ]
}

/// Lines of the summary that a person reads at a glance.
pub(crate) fn render_fault_lines(all: &[FaultFigures]) -> String {
    let line = |one: &FaultFigures| {
        format!("fault {}  {} {}: {}\n", one.number, one.fault, one.describe_time(), one.describe_effect())
    };
    let text: String = all.iter().map(line).collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Legend of the figures.
pub(crate) const MEANING: &str = "Detected: from its begin to the end of the first interval with failed or missing operations. \
    At worst: the worst second, or the worst part as long as the fault, where that was shorter. Depth: that against the median \
    of at most ten seconds before. Response: the mean before, and the greatest \
    mean of an interval until it was over. Lost: operations that are missing against that \
    median until it has recovered. Recovered: from its begin until 90 % of that median are held for three seconds.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        let one =
            FaultFigures { number: 2, fault: "kill on server".into(), failed: 7, ..FaultFigures::default() };
        let row = format_fault_row(&one);
        assert_eq!(row.len(), HEADS.len());
        assert_eq!(row[..4], ["2 kill on server", "0.00 s", "-", "-"]);
        assert_eq!((row[9].as_str(), row[10].as_str()), ("-", "7"));
        assert!(
            render_fault_lines(&[one]).contains("fault 2  kill on server at 0.00 s until the end: 7 failed")
        );
        assert_eq!(render_fault_lines(&[]), "");
    }
}
