//! The answer of a search for the highest rate, for the terminal and for the experiment's page.

use dyno_experiment::directory::{finished, read_journal, read_record};
use dyno_experiment::journal::RunRecord;
use dyno_experiment::strategy;
use dyno_types::units::Rate;
use std::path::Path;

/// The highest rate that a search has found to keep the objectives, and the highest above it that invalid runs leave open.
pub fn highest_rate(ended: &[RunRecord], cell: usize, repetition: u32) -> (Option<f64>, Option<f64>) {
    let own = || ended.iter().filter(|run| (run.cell, run.repetition) == (cell, repetition));
    let highest =
        |of: fn(&RunRecord) -> bool| own().filter(|run| of(run)).map(|run| run.value).reduce(f64::max);
    let best = highest(strategy::kept);
    (best, highest(strategy::undecided).filter(|rate| best.is_none_or(|best| *rate > best)))
}

/// Answers that a page opens with, at most.
const SENTENCES: usize = 4;

/// What an experiment's searches for the highest rate have found, a sentence each; nothing of one that searches for something
/// else, or whose files cannot be read: its page says that.
pub fn searched(path: &Path) -> Vec<String> {
    let read = || -> Option<Vec<String>> {
        let record = read_record(path).ok().filter(|record| record.searches)?;
        let ended = finished(read_journal(path).ok()?);
        let is_rate = |run: &RunRecord| run.point.starts_with("rate=") && run.objective.is_none();
        if ended.is_empty() || !ended.iter().all(is_rate) {
            return None;
        }
        let mut all: Vec<(usize, u32)> = ended.iter().map(|run| (run.cell, run.repetition)).collect();
        all.sort_unstable();
        all.dedup();
        let words = |&(cell, repetition): &(usize, u32)| {
            let label = record.cells.iter().find(|one| one.number == cell).map_or("", |one| &one.label);
            let whose = match all.len() {
                1 => String::new(),
                _ => format!("{label}, repetition {repetition}: "),
            };
            let (best, open) = highest_rate(&ended, cell, repetition);
            let found = match best {
                Some(rate) => format!("{}/s is the highest rate that keeps the objectives", Rate(rate)),
                None => "No rate keeps the objectives".into(),
            };
            let open = open.map_or(String::new(), |rate| {
                format!("; runs up to {}/s are invalid and decide nothing", Rate(rate))
            });
            format!("{whose}{found}{open}.")
        };
        let mut sentences: Vec<String> = all.iter().take(SENTENCES).map(words).collect();
        if all.len() > SENTENCES {
            sentences.push(format!("{} searches more: see the cells.", all.len() - SENTENCES));
        }
        Some(sentences)
    };
    read().unwrap_or_default()
}
